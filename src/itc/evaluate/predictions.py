"""Let a world model predict one step ahead on recorded play, and decode each prediction in several ways."""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Int32

from itc.decoding.api import decode
from itc.decoding.config import DecodeConfig
from itc.tokenizers.patches import Codebook
from itc.types import EnvSpec
from itc.world_models.gpt import WorldModel

AT_ONCE = 32  # windows predicted together


def decoded_predictions(
    model: WorldModel,
    codebook: Codebook,
    spec: EnvSpec,
    decoders: Mapping[str, DecodeConfig],
    tokens: Int32[np.ndarray, "windows context n"],
    actions: Int32[np.ndarray, "windows context"],
    key: Array,
) -> dict[str, Int32[np.ndarray, "windows n"]]:
    """The frame after each window, by each decoder. All decode the same prediction, with the same noise."""
    found = {name: [] for name in decoders}
    for start in range(0, len(tokens), AT_ONCE):
        # The last piece is filled up, so that one shape is compiled.
        window = np.arange(start, start + AT_ONCE).clip(max=len(tokens) - 1)
        logits = _predict(model, jnp.asarray(tokens[window]), jnp.asarray(actions[window]), codebook.bucket)
        previous, noise = jnp.asarray(tokens[window, -1]), random.fold_in(key, start)
        for name, config in decoders.items():
            chosen = _decode(logits, previous, noise, codebook.size, spec, config)
            found[name].append(np.asarray(chosen)[: len(tokens) - start])
    return {name: np.concatenate(parts) for name, parts in found.items()}


@partial(jax.jit, static_argnums=3)
def _predict(model: WorldModel, tokens: Array, actions: Array, bucket: int) -> Array:
    return model(tokens, actions, bucket).tokens[:, -1]


@partial(jax.jit, static_argnums=(4, 5))
def _decode(logits: Array, previous: Array, key: Array, codes: Array, spec: EnvSpec, config: DecodeConfig) -> Array:
    codes = jnp.minimum(codes, logits.shape[-1])
    copyable = spec.copyable_by(config.rim)
    return decode(logits, previous, grid=spec.grid, config=config, key=key, codes=codes, copyable=copyable).tokens
