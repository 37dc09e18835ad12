"""Decoding one frame at a time for a person: settings act at once, and what the model thought is kept to be shown.

Temperature, c_d and c_w are arguments of the compiled program, so moving a slider compiles nothing. The rest of a
`DecodeConfig` chooses the program. The matching is solved here, outside of it.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Float32, Int32

from itc.decoding import jax_backend
from itc.decoding.api import decode
from itc.decoding.assignment import assign
from itc.decoding.config import PRESETS, DecodeConfig
from itc.decoding.edges import Edges, grid_edges
from itc.types import EnvSpec


class Frame(NamedTuple):
    """A decoded frame."""

    tokens: Int32[np.ndarray, " n"]
    source: Int32[np.ndarray, " n"]  # the cell each token was copied from, −1 where generated
    entropy: Float32[np.ndarray, " n"]  # of the model's prediction, in nats


class _Scored(NamedTuple):
    token: Int32[Array, " n"]  # if generated
    gains: Float32[Array, "n m"]  # of copies
    entropy: Float32[Array, " n"]


def decode_frame(
    logits: Float32[Array, "1 n k"],
    previous: Int32[np.ndarray, " n"],
    spec: EnvSpec,
    config: DecodeConfig,
    key: Array,
    codes: Any,
) -> Frame:
    """What `itc.decode` gives for one frame, from the same key."""
    copyable = spec.copyable_by(config.rim).reshape(-1)
    if config.solver == "sinkhorn" or config.charge_for == "duplicates":
        given = jnp.asarray(previous)[None]
        decoded = decode(
            logits, given, grid=spec.grid, config=config, key=key, codes=codes, copyable=copyable,
            done=jnp.array([False]),
        )  # fmt: skip
        entropy = _entropy(logits, codes, jnp.float32(config.temperature))
        return Frame(np.asarray(decoded.tokens[0]), np.asarray(decoded.source[0]), np.asarray(entropy))
    family, edges = program_of(config, spec)
    settings = jnp.array([config.temperature, config.distance_cost, config.wildcard_cost], jnp.float32)
    found = _scored(logits, jnp.asarray(previous), key, codes, jnp.asarray(copyable), settings, family, edges)
    token, gains, entropy = (np.asarray(part) for part in found)
    if config.solver == "none":
        return Frame(token, np.full(token.shape, -1, np.int32), entropy)
    if edges.disjoint:
        source = np.where(gains[:, 0] > 0, edges.source[:, 0], -1)
    else:
        source = assign(gains[None], edges)[0][0]
    source = source.astype(np.int32)
    return Frame(np.where(source >= 0, previous[source], token).astype(np.int32), source, entropy)


def program_of(config: DecodeConfig, spec: EnvSpec) -> tuple[DecodeConfig, Edges]:
    """The settings that choose the program, the others at fixed values; and the copies that it weighs.

    Of a preset only those that can gain anything, as in training; of settings that somebody moves, all.
    """
    preset = config in PRESETS.values()
    edges = grid_edges(spec.grid, config.reach if preset else config.max_distance)
    return replace(config, temperature=1.0, distance_cost=0.0, wildcard_cost=0.0), edges


@partial(jax.jit, static_argnames=("family", "edges"))
def _scored(
    logits: Float32[Array, "1 n k"],
    previous: Int32[Array, " n"],
    key: Array,
    codes: Any,
    copyable: Bool[Array, " n"],
    settings: Float32[Array, " 3"],
    family: DecodeConfig,
    edges: Edges,
) -> _Scored:
    temperature, distance_cost, wildcard_cost = settings
    masked = jax_backend.mask(logits[0], family, codes) / temperature
    frame_key = random.fold_in(key, jnp.uint32(0))  # as in a batch of one
    entropy = _entropy_of(masked)
    if family.solver == "none":
        token = jax_backend._generate(masked, family, frame_key, None)
        return _Scored(token, jnp.zeros((len(token), 0), jnp.float32), entropy)
    allowed = copyable[:, None] & jnp.asarray(edges.valid)
    found = jax_backend.scores(masked, previous, edges, family, frame_key, None, allowed.any(axis=1))
    copy = found.copy - distance_cost * edges.distance
    gains = jnp.where(allowed, copy - (found.generate - wildcard_cost)[:, None], -jnp.inf)
    return _Scored(found.token, gains, entropy)


@jax.jit
def _entropy(logits: Float32[Array, "1 n k"], codes: Any, temperature: Float32[Array, ""]) -> Float32[Array, " n"]:
    return _entropy_of(jax_backend.mask(logits[0], PRESETS["sample"], codes) / temperature)


def _entropy_of(logits: Float32[Array, "n k"]) -> Float32[Array, " n"]:
    log_p = jax.nn.log_softmax(logits)
    return -jnp.where(jnp.isfinite(log_p), jnp.exp(log_p) * log_p, 0.0).sum(axis=-1)


class Likely(NamedTuple):
    """One of the tokens that the model considers for a cell."""

    token: int
    probability: float


def likeliest(logits: Float32[np.ndarray, "n k"], cell: int, codes: int, k: int, temperature: float) -> list[Likely]:
    """The most probable tokens of a cell, before anything is copied."""
    scores = logits[cell, :codes].astype(np.float64) / temperature
    p = np.exp(scores - scores.max())
    p /= p.sum()
    return [Likely(int(token), float(p[token])) for token in np.argsort(-p, kind="stable")[:k]]
