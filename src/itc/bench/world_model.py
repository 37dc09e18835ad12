"""What a training step of the world model costs, compared with the plain way to write it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Float32

from itc.bench.measure import (
    Record,
    Target,
    bytes_needed,
    interleave,
    memory_record,
    rate_record,
    ratio_record,
    time_record,
)
from itc.train.optimise import begin_optimising, follow_gradient
from itc.train.patch_agent.learn_world_model import (
    Experience,
    WorldModelLearning,
    WorldModelState,
    new_world_model_state,
    world_model_update,
)
from itc.world_models.gpt import WorldModel
from itc.world_models.heads import split_heads
from itc.world_models.losses import REWARD_THRESHOLD, cross_entropy

SEQUENCES = 16  # in a minibatch


@dataclass(frozen=True)
class Size:
    """A game at the paper's size. The plain way is timed on a slice of the sequences, and scaled."""

    name: str
    grid: tuple[int, int]
    actions: int
    codes_in_use: int
    bucket: int
    slice: int = SEQUENCES
    target: Target | None = None


SIZES = (
    Size("MinAtar", (5, 5), 6, 57, 64, SEQUENCES, Target(">=", 8.0)),
    Size("Craftax-classic", (9, 9), 17, 500, 512, 2, Target(">=", 4.0)),
)
# Compiled for its memory only: running an update takes long.
LARGEST = Size("Craftax", (13, 11), 43, 4096, 4096)
MATRIX = 2048  # rows and columns of the product that measures the machine's peak


def bench_world_model() -> Iterator[Record]:
    """Every measurement, as it is made."""
    for size in SIZES:
        model = WorldModel(random.key(0), size.grid, size.actions)
        ours, bytes_of_ours = _ours(model, size)
        contestants: dict[str, Callable] = {
            "ours": ours,
            "plain": _plain(model, _experience(size, size.slice)),
            "matrix product": partial(jax.jit(jnp.matmul), *2 * [random.normal(random.key(0), (MATRIX, MATRIX))]),
        }
        seconds = interleave(contestants, wait=jax.block_until_ready)
        scaled = seconds["plain"] * (SEQUENCES / size.slice)
        scaling = "" if size.slice == SEQUENCES else f", timed on {size.slice} of {SEQUENCES} sequences and scaled"
        yield time_record(f"{size.name}: world-model update", seconds["ours"])
        yield time_record(f"{size.name}: plain world-model update{scaling}", scaled)
        yield ratio_record(f"{size.name}: plain / ours, world-model update", scaled, seconds["ours"], size.target)
        yield rate_record(f"{size.name}: world-model update", update_operations(model, size.bucket), seconds["ours"])
        yield rate_record(
            f"{MATRIX}×{MATRIX} matrix product in the same rounds", 2 * MATRIX**3, seconds["matrix product"]
        )
        yield memory_record(f"{size.name}: world-model update, memory", bytes_of_ours)
    model = WorldModel(random.key(0), LARGEST.grid, LARGEST.actions)
    bytes_of_largest = bytes_needed(_compiled_update(new_world_model_state(model), LARGEST))
    yield memory_record(f"{LARGEST.name}: world-model update, memory (compiled, not run)", bytes_of_largest)


def update_operations(model: WorldModel, bucket: int) -> float:
    """Additions and multiplications that the matrix products of an update need: one product forwards, two backwards,
    nothing for masked scores, for codes beyond the bucket, or for computing anything twice."""
    config, layout = model.config, model.layout
    e = config.embedding
    in_layers = config.layers * (4 * e * e + 2 * e * config.hidden)
    in_token_head = layout.cells / layout.slots * (e * e + e * bucket)
    seen = layout.slots * (layout.blocks + 1) / 2  # by a token, on average
    in_attention = config.layers * 2 * seen * e
    tokens = SEQUENCES * layout.blocks * layout.slots
    return 3 * 2 * tokens * (in_layers + in_token_head + in_attention)


def _experience(size: Size, sequences: int) -> Experience:
    keys, blocks = random.split(random.key(1), 4), 20
    return Experience(
        tokens=random.randint(keys[0], (sequences, blocks + 1, size.grid[0] * size.grid[1]), 0, size.codes_in_use),
        actions=random.randint(keys[1], (sequences, blocks), 0, size.actions),
        rewards=random.uniform(keys[2], (sequences, blocks)),
        dones=random.bernoulli(keys[3], 0.01, (sequences, blocks)),
    )


def _compiled_update(state: WorldModelState, size: Size):
    experience = _experience(size, SEQUENCES)
    return world_model_update.lower(
        state, experience, jnp.int32(size.codes_in_use), random.key(0), size.bucket
    ).compile()


def _ours(model: WorldModel, size: Size) -> tuple[Callable, int]:
    """An update, and the bytes it needs."""
    experience, codes = _experience(size, SEQUENCES), jnp.int32(size.codes_in_use)
    # The learner donates its state, so each contestant keeps one of its own.
    kept = [new_world_model_state(jax.tree.map(jnp.copy, model))]
    compiled = _compiled_update(kept[0], size)

    def update():
        kept[0], metrics = compiled(kept[0], experience, codes, random.key(0))
        return metrics["loss"]

    return update, bytes_needed(compiled)


def _plain(model: WorldModel, experience: Experience) -> Callable:
    optimiser = WorldModelLearning().optimiser()

    @partial(jax.jit, donate_argnums=(0, 1))
    def update(model, state):
        loss, gradient = jax.value_and_grad(plain_loss)(model, experience, random.key(0))
        model, state, _ = follow_gradient(optimiser, state, model, gradient)
        return model, state, loss

    kept = [jax.tree.map(jnp.copy, model), begin_optimising(optimiser, model)]

    def run():
        *kept[:], loss = update(*kept)
        return loss

    return run


def plain_loss(model: WorldModel, experience: Experience, key: Array | None) -> Float32[Array, ""]:
    """The same loss as one would write it first: all scores, masked; bernoulli dropout; a softmax over all codes."""
    tokens, actions = experience.tokens[:, :-1], experience.actions
    b, t, _ = tokens.shape
    rotation = model.rotation(t)
    block = jnp.repeat(jnp.arange(t), model.layout.slots)
    hidden = (block[None, :] > block[:, None])[None, None]
    keys = iter(random.split(random.key(0) if key is None else key, 1 + 3 * model.config.layers))

    def drop(x: Array) -> Array:
        rate, draw = model.config.dropout, next(keys)
        return x if key is None else jnp.where(random.bernoulli(draw, 1 - rate, x.shape), x / (1 - rate), 0.0)

    x = drop(model.embed(tokens, actions))
    for index in range(model.config.layers):
        layer = jax.tree.map(lambda parameter, index=index: parameter[index], model.layers)
        projected = layer.project(x, model.config.heads).reshape(b, len(block), 3, model.config.heads, -1)
        q, k, v = jax.vmap(partial(split_heads, rotation))(projected)
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k)
        weights = drop(jax.nn.softmax(jnp.where(hidden, -jnp.inf, scores)))
        attended = jnp.einsum("bhqk,bhkd->bqhd", weights, v).reshape(x.shape)
        x = x + drop(layer.attention_out(attended))
        x = x + drop(layer.feed_out(jax.nn.gelu(layer.feed_in(layer.feed_norm(x)), approximate=True)))
    prediction = model.predict(x, model.config.codes)
    return (
        cross_entropy(prediction.tokens, experience.tokens[:, 1:])
        + cross_entropy(prediction.reward, (experience.rewards >= REWARD_THRESHOLD).astype(jnp.int32))
        + cross_entropy(prediction.done, experience.dones.astype(jnp.int32))
    )
