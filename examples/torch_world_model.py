"""A world model in PyTorch and its imagined rollouts: `python examples/torch_world_model.py` (seconds).

The world: eight cells in a row, some with a walker (token 1). In each step neighbours may swap places; the action says
which: cells 0 and 1, 2 and 3, …, or 1 and 2, 3 and 4, … One step in ten ends the episode. Within an episode walkers
never appear or vanish, but a model that predicts each cell on its own does not know that.
"""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

import itc

GRID, CELLS, CODES, ACTIONS = (1, 8), 8, 2, 2
# For each action and cell, the cell to swap with.
PARTNERS = torch.tensor([[1, 0, 3, 2, 5, 4, 7, 6], [0, 2, 1, 4, 3, 6, 5, 7]])


def first_frames(batch):
    return (torch.rand(batch, CELLS) < 0.3).long()


def real_step(tokens, action):
    partner = PARTNERS[action]
    draws = torch.rand(tokens.shape)
    swap = torch.minimum(draws, draws.gather(1, partner)) < 0.3  # the same for both of a pair
    done = torch.rand(len(tokens)) < 0.1
    moved = torch.where(swap, tokens.gather(1, partner), tokens)
    return torch.where(done[:, None], first_frames(len(tokens)), moved), done


class WorldModel(nn.Module):
    """Tokens (b, n) and action (b) in; logits of the next tokens (b, n, k) and of the episode's end (b) out."""

    def __init__(self, width=32):
        super().__init__()
        self.tokens, self.action = nn.Embedding(CODES, width), nn.Embedding(ACTIONS, width * CELLS)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.next_tokens, self.end = nn.Linear(width, CODES), nn.Linear(width, 1)

    def forward(self, tokens, action):
        x = self.tokens(tokens) + self.action(action).unflatten(1, (CELLS, -1))
        x = self.mix(x.mT).mT.relu()
        return self.next_tokens(x), self.end(x.mean(dim=1))[:, 0]


def learn(model, updates=300, batch=64):
    optimizer, tokens = torch.optim.Adam(model.parameters(), lr=1e-2), first_frames(batch)
    for _ in range(updates):
        action = torch.randint(ACTIONS, (batch,))
        target, done = real_step(tokens, action)
        logits, end = model(tokens, action)
        loss = cross_entropy(logits.flatten(0, 1), target.flatten()) + binary_cross_entropy_with_logits(
            end, done.float()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tokens = target


@torch.no_grad()
def imagine(model, tokens, steps, config):
    """Imagined frames (t, b, n), and whether each is the first of a new episode (t, b)."""
    frames, ends = [], []
    for _ in range(steps):
        action = torch.randint(ACTIONS, (len(tokens),))  # a policy would choose
        logits, end = model(tokens, action)
        done = torch.rand(len(tokens)) < end.sigmoid()
        tokens = itc.decode(logits, tokens, grid=GRID, config=config, done=done).tokens
        frames.append(tokens)
        ends.append(done)
    return torch.stack(frames), torch.stack(ends)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)  # tensors this small do not need more
    model = WorldModel()
    learn(model)
    for config in ("sample", "conserving"):
        frames, ends = imagine(model, first_frames(64), 15, config)
        kept = (frames[1:].sum(dim=2) == frames[:-1].sum(dim=2))[~ends[1:]].float().mean()
        moved = (frames[1:] != frames[:-1]).any(dim=2)[~ends[1:]].float().mean()
        print(f"{config}: walkers conserved in {kept:.0%} of steps, some move in {moved:.0%}")
