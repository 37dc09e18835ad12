"""A world model in plain JAX and its imagined rollouts under `scan`: `python examples/jax_world_model.py` (seconds).

The world: eight cells in a row, some with a walker (token 1). In each step neighbours may swap places; the action says
which: cells 0 and 1, 2 and 3, …, or 1 and 2, 3 and 4, … One step in ten ends the episode. Within an episode walkers
never appear or vanish, but a model that predicts each cell on its own does not know that.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import random

import itc

GRID, CELLS, CODES, ACTIONS, WIDTH = (1, 8), 8, 2, 2, 32
# For each action and cell, the cell to swap with.
PARTNERS = jnp.array([[1, 0, 3, 2, 5, 4, 7, 6], [0, 2, 1, 4, 3, 6, 5, 7]])


def first_frames(key, batch):
    return random.bernoulli(key, 0.3, (batch, CELLS)).astype(jnp.int32)


def real_step(key, tokens, action):
    draw_key, done_key, first_key = random.split(key, 3)
    partner, draws = PARTNERS[action], random.uniform(draw_key, tokens.shape)
    swap = jnp.minimum(draws, jnp.take_along_axis(draws, partner, axis=1)) < 0.3  # the same for both of a pair
    done = random.bernoulli(done_key, 0.1, (len(tokens),))
    moved = jnp.where(swap, jnp.take_along_axis(tokens, partner, axis=1), tokens)
    return jnp.where(done[:, None], first_frames(first_key, len(tokens)), moved), done


def new_model(key):
    shapes = {"action": (ACTIONS, CELLS, WIDTH), "mix": (3 * CODES, WIDTH), "codes": (WIDTH, CODES), "end": (WIDTH,)}
    keys = random.split(key, len(shapes))
    return {name: 0.3 * random.normal(key, shape) for key, (name, shape) in zip(keys, shapes.items(), strict=True)}


def predict(model, tokens, action):
    """Tokens (b, n) and action (b) in; logits of the next tokens (b, n, k) and of the episode's end (b) out."""
    padded = jnp.pad(jax.nn.one_hot(tokens, CODES), ((0, 0), (1, 1), (0, 0)))
    around = jnp.concatenate([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]], axis=2)
    x = jax.nn.relu(around @ model["mix"] + model["action"][action])
    return x @ model["codes"], x.mean(axis=1) @ model["end"]


def loss(model, tokens, action, target, done):
    logits, end = predict(model, tokens, action)
    right = jnp.take_along_axis(jax.nn.log_softmax(logits), target[..., None], axis=2)
    return -right.mean() - jax.nn.log_sigmoid(jnp.where(done, end, -end)).mean()


@partial(jax.jit, static_argnames=("updates", "batch"))
def learn(key, updates=600, batch=64):
    def update(carry, key):
        model, tokens = carry
        action_key, step_key = random.split(key)
        action = random.randint(action_key, (batch,), 0, ACTIONS)
        target, done = real_step(step_key, tokens, action)
        gradient = jax.grad(loss)(model, tokens, action, target, done)
        return (jax.tree.map(lambda x, dx: x - 0.3 * dx, model, gradient), target), None

    model_key, first_key, key = random.split(key, 3)
    start = (new_model(model_key), first_frames(first_key, batch))
    return jax.lax.scan(update, start, random.split(key, updates))[0][0]


@partial(jax.jit, static_argnames=("steps", "config"))
def imagine(key, model, tokens, steps, config):
    """Imagined frames (t, b, n), and whether each is the first of a new episode (t, b)."""

    def step(tokens, key):
        action_key, done_key, token_key = random.split(key, 3)
        action = random.randint(action_key, (len(tokens),), 0, ACTIONS)  # a policy would choose
        logits, end = predict(model, tokens, action)
        done = random.bernoulli(done_key, jax.nn.sigmoid(end))
        tokens = itc.decode(logits, tokens, grid=GRID, config=config, key=token_key, done=done).tokens
        return tokens, (tokens, done)

    return jax.lax.scan(step, tokens, random.split(key, steps))[1]


if __name__ == "__main__":
    learn_key, first_key, imagine_key = random.split(random.key(0), 3)
    model, start = learn(learn_key), first_frames(first_key, 64)
    for config in ("sample", "conserving"):
        frames, ends = imagine(imagine_key, model, start, 15, config)
        kept = (frames[1:].sum(axis=2) == frames[:-1].sum(axis=2))[~ends[1:]]
        moved = (frames[1:] != frames[:-1]).any(axis=2)[~ends[1:]]
        print(f"{config}: walkers conserved in {kept.mean():.0%} of steps, some move in {moved.mean():.0%}")
