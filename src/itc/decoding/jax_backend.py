"""The decoder for JAX arrays: pure functions of one frame, batched at the edge, for `jit`, `vmap` and `scan`."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float, Float32, Int, Int32, Integer

from itc.decoding import jax_matching, jax_sinkhorn
from itc.decoding.config import DecodeConfig
from itc.decoding.edges import Edges
from itc.decoding.reference import IMPOSSIBLE, draws_lazily
from itc.sharding import by_device, devices
from itc.types import Decoded, Matching

# A random key, typed or raw; None where the configuration draws nothing.
Key = Any
# Codes are sampled in two stages, first a block of this many, then one of its codes: no cumulative sum over all codes.
SAMPLING_BLOCK = 64


class Scores(NamedTuple):
    """What the choices at each cell are worth before any cost, and the token that generating would give."""

    copy: Float32[Array, "n m"]
    generate: Float32[Array, " n"]
    token: Int32[Array, " n"]


@partial(jax.jit, static_argnames=("edges", "config"))
def decode(
    logits: Float[Array, "b n k"],
    previous: Integer[Array, "b n"],
    edges: Edges,
    config: DecodeConfig,
    key: Key,
    gumbel: Float[Array, "b n k"] | None,
    codes: Int[Array, ""] | int | None,
    copyable: Bool[Array, "#b n"] | None,
    done: Bool[Array, " b"] | None,
) -> Decoded:
    """Decode every frame of a batch; frame i draws from the key folded with i, whatever the batch around it."""
    b = len(logits)
    copyable = jnp.broadcast_to(True if copyable is None else copyable, previous.shape)
    done = jnp.zeros(b, bool) if done is None else done
    gumbel = None if gumbel is None else lax.stop_gradient(gumbel).astype(jnp.float32)
    keys = None if key is None else jax.vmap(partial(random.fold_in, key))(jnp.arange(b, dtype=jnp.uint32))

    on_host = devices() == 1  # asked from several devices at once, a host with few cores may never answer

    def frame(codes, logits, previous, key, gumbel, copyable, done):
        logits = mask(lax.stop_gradient(logits), config, codes)
        allowed = copyable[:, None] & ~done & jnp.asarray(edges.valid)
        return _decode_frame(logits, previous.astype(jnp.int32), edges, config, key, gumbel, allowed, on_host)

    frames = by_device(jax.vmap(frame, in_axes=(None, 0, 0, 0, 0, 0, 0)), None, 0, 0, 0, 0, 0, 0)
    decoded = frames(codes, logits, previous, keys, gumbel, copyable, done)
    return decoded._replace(tokens=decoded.tokens.astype(previous.dtype))


def _decode_frame(logits, previous, edges, config, key, gumbel, allowed, on_host) -> Decoded:
    if config.solver == "none":
        nothing = jnp.full(previous.shape, -1, jnp.int32)
        return Decoded(_generate(logits, config, key, gumbel), nothing, jnp.float32(0), jnp.float32(0))
    found = scores(logits, previous, edges, config, key, gumbel, allowed.any(axis=1))
    if config.solver == "sinkhorn":
        matching = jax_sinkhorn.sinkhorn(found.copy, found.generate, edges, config, allowed)
    else:
        matching = match(gains(found, edges, config, allowed), edges, config.solver, on_host)
    tokens = jnp.where(matching.source >= 0, previous[matching.source], found.token)
    return Decoded(tokens, *matching)


def mask(
    logits: Float[Array, "n k"], config: DecodeConfig, codes: Int[Array, ""] | int | None
) -> Float32[Array, "n k"]:
    """Logits over the codes in use, at the configured temperature, with the largest of each cell at 0."""
    if logits.dtype != jnp.float64:
        logits = logits.astype(jnp.float32)
    if codes is not None:
        logits = jnp.where(jnp.arange(logits.shape[-1])[None] < codes, logits, -jnp.inf)
    # Shifted before noise is added and before float64 is given up, so that huge logits do not swallow the rest.
    logits = (logits - logits.max(axis=-1, keepdims=True)).astype(jnp.float32)
    return logits if config.temperature == 1 else logits / config.temperature


def scores(
    logits: Float32[Array, "n k"],
    previous: Int32[Array, " n"],
    edges: Edges,
    config: DecodeConfig,
    key: Key,
    gumbel: Float[Array, "n k"] | None,
    allowed: Bool[Array, " n"],
) -> Scores:
    """Score the copies and the generated tokens, with the configured noise.

    Where c_w is for duplicates only and the cell may copy, what is new, and possible, is worth c_w more, which takes
    it back.
    """
    held = previous[edges.source]
    if config.noise in ("edge", "token"):
        return edge_scores(key, logits, held, edges, config.noise == "token")
    free = config.wildcard_cost * allowed.astype(jnp.float32) if config.charge_for == "duplicates" else None
    if draws_lazily(config, edges, logits.shape[1]) and gumbel is None:
        return lazy_cell_scores(key, logits, held, edges, free)
    if config.noise == "cell":
        if config.affinity == "log":
            logits = jax.nn.log_softmax(logits)
        logits = logits + (draw_gumbel(key, logits.shape) if gumbel is None else gumbel)
        token = argmax(logits)
    else:
        token = _generate(logits, config, key, gumbel)
    if free is not None:
        return _with_free_novelty(logits, held, edges, config, free)
    copy, best = jnp.take_along_axis(logits, held, axis=1), logits.max(axis=1)
    if config.affinity == "log" and config.noise == "cell":
        return Scores(copy, best, token)
    # Only the scores that are needed are normalised, not all k.
    log_total = best + jnp.log(jnp.exp(logits - best[:, None]).sum(axis=1))
    copy, best = copy - log_total[:, None], best - log_total
    return Scores(copy, best, token) if config.affinity == "log" else Scores(jnp.exp(copy), jnp.exp(best), token)


def _with_free_novelty(
    logits: Float32[Array, "n k"],
    held: Int32[Array, "n m"],
    edges: Edges,
    config: DecodeConfig,
    free: Float32[Array, " n"],
) -> Scores:
    """Scores from logits that have their noise already, in full."""
    score = logits if config.affinity == "log" else jax.nn.softmax(logits)
    new = _without(score, held, edges) > IMPOSSIBLE[config.affinity]
    worth = jnp.where(new, score + free[:, None], score)
    return Scores(jnp.take_along_axis(score, held, axis=1), worth.max(axis=1), argmax(worth))


def _without(scores: Float32[Array, "n k"], held: Int32[Array, "n m"], edges: Edges) -> Float32[Array, "n k"]:
    """−∞ for the codes that a copy could bring."""
    beyond_the_end = scores.shape[1]
    return jax.vmap(lambda row, code: row.at[code].set(-jnp.inf, mode="drop"))(
        scores, jnp.where(jnp.asarray(edges.valid), held, beyond_the_end)
    )


def lazy_cell_scores(
    key: Key,
    logits: Float32[Array, "n k"],
    held: Int32[Array, "n m"],
    edges: Edges,
    free: Float32[Array, " n"] | None = None,
) -> Scores:
    """Cell noise drawn only where it can matter: for the codes a copy could bring, and once for all others together.

    The largest of many logits with Gumbel noise is their logsumexp with Gumbel noise, and independent of which one it
    is. Scores are up to a constant per cell, which gains do not see.
    """
    held_key, others_key, token_key = random.split(key, 3)
    valid = jnp.asarray(edges.valid)
    noise = _shared(draw_gumbel(held_key, held.shape), held, edges)
    copy = jnp.where(valid, jnp.take_along_axis(logits, held, axis=1) + noise, -jnp.inf)
    best_copy = copy.max(axis=1)

    other_token, log_total = sample(token_key, _without(logits, held, edges))
    best_other = log_total + draw_gumbel(others_key, log_total.shape)
    best_other = best_other if free is None else best_other + free

    best_held = jnp.take_along_axis(held, copy.argmax(axis=1)[:, None], axis=1)[:, 0]
    token = jnp.where(best_other > best_copy, other_token, best_held)
    return Scores(copy, jnp.maximum(best_copy, best_other), token)


def _shared(draw: Float32[Array, "n m"], held: Int32[Array, "n m"], edges: Edges) -> Float32[Array, "n m"]:
    """Edges that hold the same code share its noise: each takes the draw of the first edge that holds it."""
    same = (held[:, :, None] == held[:, None, :]) & jnp.asarray(edges.valid)[:, None, :]
    return jnp.take_along_axis(draw, argmax(same), axis=1)


def edge_scores(
    key: Key, logits: Float32[Array, "n k"], held: Int32[Array, "n m"], edges: Edges, share: bool
) -> Scores:
    """A draw per possible copy, or per code that could be copied; the wildcard's value is one more, its token an
    independent sample."""
    edge_key, wildcard_key, token_key = random.split(key, 3)
    token, log_total = sample(token_key, logits)
    draw = draw_gumbel(edge_key, held.shape)
    draw = _shared(draw, held, edges) if share else draw
    copy = jnp.take_along_axis(logits, held, axis=1) - log_total[:, None] + draw
    return Scores(copy, draw_gumbel(wildcard_key, token.shape), token)


def draw_gumbel(key: Key, shape: tuple[int, ...]) -> Float32[Array, "..."]:
    # Noise of one frame is never spread over devices, so it need not pay for that: each call of the generator then
    # gives two numbers instead of one.
    with jax.threefry_partitionable(False):
        return random.gumbel(key, shape, jnp.float32)


def _generate(logits, config, key, gumbel):
    """The most likely code of each cell, or a sample from each cell on its own."""
    if config.generate == "argmax":
        return argmax(logits)
    return sample(key, logits)[0] if gumbel is None else argmax(logits + gumbel)


def sample(key: Key, logits: Float32[Array, "n k"]) -> tuple[Int32[Array, " n"], Float32[Array, " n"]]:
    """One code per cell by its probability, from two uniforms instead of k Gumbels, and the logsumexp of the logits.

    Logits are at most 0. A cell whose codes are all impossible has logsumexp −∞ and an arbitrary code.
    """
    n, k = logits.shape
    logits = jnp.pad(logits, ((0, 0), (0, -k % SAMPLING_BLOCK)), constant_values=-jnp.inf)
    logits = logits.reshape(n, -1, SAMPLING_BLOCK)
    uniform = random.uniform(key, (2, n), jnp.float32)
    block_weights = jnp.exp(logits).sum(axis=2)
    block = inverse_cdf(block_weights, uniform[0])
    in_block = jnp.take_along_axis(logits, block[:, None, None], axis=1)[:, 0]
    code = inverse_cdf(jnp.exp(in_block), uniform[1])
    return jnp.minimum(block * SAMPLING_BLOCK + code, k - 1), jnp.log(block_weights.sum(axis=1))


def inverse_cdf(weights: Float32[Array, "n k"], uniform: Float32[Array, " n"]) -> Int32[Array, " n"]:
    """The first index at which the running sum passes `uniform` of the total: never one of weight 0."""
    running = jnp.cumsum(weights, axis=1)
    passed = running > uniform[:, None] * running[:, -1:]
    return jnp.minimum((~passed).sum(axis=1, dtype=jnp.int32), weights.shape[1] - 1)


def argmax(x: Array) -> Int32[Array, "..."]:
    """Index of the first largest entry along the last axis, as two reductions, which compile to faster code."""
    index = jnp.arange(x.shape[-1], dtype=jnp.int32)
    return jnp.where(x == x.max(axis=-1, keepdims=True), index, x.shape[-1] - 1).min(axis=-1)


def gains(found: Scores, edges: Edges, config: DecodeConfig, allowed: Bool[Array, "n m"]) -> Float32[Array, "n m"]:
    """How much better each copy is than generating; −∞ where the copy is not allowed."""
    copy = found.copy - config.distance_cost * edges.distance
    generate = found.generate - config.wildcard_cost
    return jnp.where(allowed, copy - generate[:, None], -jnp.inf)


def match(gains: Float32[Array, "n m"], edges: Edges, solver: str, on_host: bool = True) -> Matching:
    """The matching of largest total gain: closed form if nothing competes, else by solver and device."""
    if edges.disjoint:
        return jax_matching.keep_gaining(gains, edges)
    if solver == "auction" or not (on_host and jax_matching.host_can_answer()):
        return jax_matching.in_program(gains, edges)
    return lax.platform_dependent(
        gains, cpu=partial(jax_matching.on_host, edges=edges), default=partial(jax_matching.in_program, edges=edges)
    )


@partial(jax.jit, static_argnames=("edges", "solver"))
def match_frames(gains: Float[Array, "b n m"], edges: Edges, solver: str) -> Matching:
    """The best matching of every frame, for gains from elsewhere."""
    gains = jnp.where(jnp.asarray(edges.valid), lax.stop_gradient(gains).astype(jnp.float32), -jnp.inf)
    return jax.vmap(lambda of_frame: match(of_frame, edges, solver))(gains)


@jax.jit
def tops(logits: Float[Array, "*b n k"], codes: Int[Array, ""] | int | None) -> Float[Array, "*b n"]:
    """Each cell's largest logit among the codes in use; NaN where one of them is, which a maximum may lose on a CPU."""
    if codes is not None:
        in_use = jnp.broadcast_to(jnp.arange(logits.shape[-1]) < codes, logits.shape)
        logits = jnp.where(in_use, logits, -jnp.inf)
    return jnp.where(jnp.isnan(logits).any(axis=-1), jnp.nan, logits.max(axis=-1))


@jax.jit
def extremes(x: Array) -> tuple[Array, Array]:
    """The smallest and the largest entry; NaN where an entry is."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x.min(), x.max()
    has_nan = jnp.isnan(x).any()
    return jnp.where(has_nan, jnp.nan, x.min()), jnp.where(has_nan, jnp.nan, x.max())
