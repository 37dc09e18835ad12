"""What an Atari agent's tokenizer and world model have learned, on play they have not learned from.

Losses say nothing by themselves where most of a frame never changes. So each is reported next to what is reached
without learning: drawing the mean frame, guessing each cell's token by how often it occurs there, copying the last
frame.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Float32, Float64, Int32, UInt8

from itc.evaluate.imagination import Played, continue_from, encode, held_out_play, render
from itc.evaluate.things import THINGS, Thing
from itc.tokenizers.vqvae import from_bytes
from itc.train.imagine import ModelEnv
from itc.train.runs import Run
from itc.train.vq_agent.model_env import VQWorld
from itc.world_models.losses import cross_entropies, most_probable

NUM_ENVS, STEPS = 8, 150
LEAD_IN = 30  # steps played before: episodes begin with little to see
AT_ONCE = 16  # windows
DECODERS = ("sample", "paper-atari", "conserving")  # whose imagined rollouts are measured
MIXTURES = np.geomspace(1e-4, 1.0, 80)  # how often a copy may be wrong: the best of these counts


class Windows(NamedTuple):
    """Pieces of play, each within an episode and as long as the model was trained on."""

    frames: UInt8[np.ndarray, "b t H W c"]
    actions: Int32[np.ndarray, "b t"]


def foresight(run: Run, key: Array) -> dict[str, float]:
    """Errors of the tokenizer and losses of the world model, what they must beat, and what imagined rollouts keep."""
    world = run.world()
    context = world.initial_frames
    windows = cut(held_out_play(run, key, NUM_ENVS, LEAD_IN, STEPS), run.config.context_frames)
    tokens = np.stack([np.asarray(encode(world, frames)) for frames in windows.frames])
    losses, hits = zip(*(_predict(world, *batch) for batch in _batches(tokens, windows.actions)), strict=True)
    following, last = tokens[:, context:], tokens[:, context - 1 : -1]
    drawn = np.stack([np.asarray(render(world, some)) for some in tokens])
    real, mean = _floats(windows.frames), _floats(windows.frames).mean(axis=(0, 1))
    found = {
        "tokenizer error": float(np.square(real - _floats(drawn)).mean()),
        "mean frame error": float(np.square(real - mean).mean()),
        "codes used": float(len(np.unique(tokens))),
        "token loss": float(np.concatenate(losses)[: len(tokens)].mean()),
        "marginal entropy": marginal_entropy(following),
        "copy loss": copy_loss(last, following),
        "token accuracy": float(np.concatenate(hits)[: len(tokens)].mean()),
        "copy accuracy": float((last == following).mean()),
    }
    return found | _kept(run, windows, drawn, random.fold_in(key, 1))


def beats(found: dict[str, float]) -> dict[str, bool]:
    """What must hold of a model that has learned something, in sentences."""
    token_loss = found["token loss"]
    return {
        "the tokenizer's error is at most a fifth of the mean frame's": found["tokenizer error"]
        <= found["mean frame error"] / 5,
        "tokens are predicted better than by how often they occur": token_loss < found["marginal entropy"],
        "tokens are predicted better than by copying": token_loss < found["copy loss"],
    }


def cut(played: Played, length: int) -> Windows:
    """One piece after the other of each environment, without those in which an episode ends before the last step."""
    num_envs, steps = played.ended.shape
    places = [
        (env_index, slice(start, start + length))
        for env_index in range(num_envs)
        for start in range(0, steps - length + 1, length)
        if not played.ended[env_index, start : start + length - 1].any()
    ]
    if not places:
        raise ValueError(f"no episode lasts {length} steps in {steps} steps of play")
    return Windows(*(np.stack([part[place] for place in places]) for part in (played.frames, played.actions)))


def marginal_entropy(tokens: Int32[np.ndarray, "b t n"]) -> float:
    """Nats per token of the best guess that knows only the cell: it has seen the very tokens it is measured on."""
    cells = tokens.reshape(-1, tokens.shape[-1])
    shares = [np.unique(cell, return_counts=True)[1] / len(cell) for cell in cells.T]
    return float(np.mean([-(share * np.log(share)).sum() for share in shares]))


def copy_loss(last: Int32[np.ndarray, "b t n"], following: Int32[np.ndarray, "b t n"]) -> float:
    """Nats per token of copying the last frame's token, and of guessing by the cell where that is wrong.

    How often it is taken to be wrong is chosen afterwards, to its best.
    """
    chance = _cell_shares(following)
    same = last == following
    return float(min(-np.log((1 - mixture) * same + mixture * chance).mean() for mixture in MIXTURES))


def _cell_shares(tokens: Int32[np.ndarray, "b t n"]) -> Float64[np.ndarray, "b t n"]:
    """How often each token occurs in its cell."""
    shares = np.empty(tokens.shape)
    for cell in range(tokens.shape[-1]):
        _, index, counts = np.unique(tokens[..., cell], return_inverse=True, return_counts=True)
        shares[..., cell] = (counts / counts.sum())[index].reshape(tokens.shape[:-1])
    return shares


def _kept(run: Run, windows: Windows, drawn: UInt8[np.ndarray, "b t H W c"], key: Array) -> dict[str, float]:
    """How often the things of the game are visible: in real frames, in frames drawn from their tokens, and in rollouts
    imagined by each decoder, in all their frames and in the last; and how long they stay."""
    things = THINGS.get(run.env.spec.name)
    if things is None:
        return {}
    context = run.world().initial_frames
    real, start = windows.frames[:, context:], drawn[:, context - 1]
    imagined = {decoder: _imagined(run.world(decoder), windows, key) for decoder in DECODERS}
    found = {}
    for name, thing in things.items():
        found[f"{name} real"] = float(thing.seen(_flat(real)).mean())
        found[f"{name} in tokens"] = float(thing.seen(_flat(drawn[:, context:])).mean())
        found[f"{name} kept in tokens"] = _mean(thing.kept(_flat(windows.frames), _flat(drawn)))
        for decoder, frames in imagined.items():
            found[f"{name} imagined by {decoder}"] = float(thing.seen(_flat(frames)).mean())
            found[f"{name} imagined last by {decoder}"] = float(thing.seen(frames[:, -1]).mean())
        for whose, frames in {"real": real, **imagined}.items():
            shares = survival(thing, start, frames)
            found |= {f"{name} {whose}, step {step}": share for step, share in enumerate(shares, start=1)}
    return found


def survival(thing: Thing, start: UInt8[np.ndarray, "b H W c"], frames: UInt8[np.ndarray, "b t H W c"]) -> list[float]:
    """Of the rollouts whose first frame shows a thing, the share that show it after each step; 0 if none does."""
    shown = thing.seen(start)
    return [_mean(thing.seen(frames[shown, step])) for step in range(frames.shape[1])]


def _mean(which: Bool[np.ndarray, " b"]) -> float:
    return float(which.mean()) if len(which) else 0.0


def _flat(frames: UInt8[np.ndarray, "b t H W c"]) -> UInt8[np.ndarray, "frames H W c"]:
    return frames.reshape(-1, *frames.shape[2:])


def _imagined(world: ModelEnv, windows: Windows, key: Array) -> UInt8[np.ndarray, "b imagined H W c"]:
    """Each window again, as imagined from its first frames under the same actions."""
    tokens = [
        continue_from(world, random.fold_in(key, at), frames, actions[:, :-1])[0]
        for at, (frames, actions) in enumerate(_batches(*windows))
    ]
    return np.stack([np.asarray(render(world, some)) for some in np.concatenate(tokens)[: len(windows.frames)]])


def _batches(*arrays: np.ndarray):
    """Equal shapes, the last filled up with what was before it."""
    for start in range(0, len(arrays[0]), AT_ONCE):
        index = np.arange(start, start + AT_ONCE).clip(max=len(arrays[0]) - 1)
        yield tuple(jnp.asarray(array[index]) for array in arrays)


def _floats(frames: UInt8[np.ndarray, "b t H W c"]) -> np.ndarray:
    return np.asarray(from_bytes(jnp.asarray(_flat(frames)))).reshape(frames.shape)


@jax.jit
def _predict(
    world: VQWorld, tokens: Int32[Array, "b t n"], actions: Int32[Array, "b t"]
) -> tuple[Float32[Array, "b predicted n"], Float32[Array, "b predicted n"]]:
    """Of each token, its loss and whether it was the likeliest, from the frames and actions before it."""
    logits = world.model(world.tokenizer.embedding(tokens), actions).tokens[:, world.initial_frames :]
    following = tokens[:, world.initial_frames :]
    return cross_entropies(logits, following), most_probable(logits, following)
