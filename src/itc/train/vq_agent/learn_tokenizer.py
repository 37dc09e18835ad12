"""One update of the tokenizer on frames of the replay buffer."""

import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Bool, Int32, UInt8

from itc.tokenizers.perceptual import Perceptual, load_perceptual
from itc.tokenizers.rarity import PixelStatistics, follow_pixels, new_pixel_statistics, pixel_weights
from itc.tokenizers.vqvae import VQVAE, Statistics, codes_used, from_bytes, new_statistics, revive, vqvae_loss
from itc.train.agent import Metrics
from itc.train.optimise import begin_optimising, clipped_adamw, follow_gradient
from itc.train.vq_agent.config import TokenizerLearning

IN_USE_WINDOW = 200  # a code is in use if it was used in this many updates; the paper's agent has 200 per iteration


class TokenizerState(NamedTuple):
    """The tokenizer and what its training needs."""

    model: VQVAE
    latent_stats: Statistics  # of the decoder's input
    optimiser: optax.OptState
    idle: Int32[Array, " k"]  # updates since each code was last used; at first `IN_USE_WINDOW`: none is in use
    pixel_stats: PixelStatistics | None  # of the frames, for `rare_weight`; None without it

    @property
    def in_use(self) -> Bool[Array, " k"]:
        """Which codes were used in the last `IN_USE_WINDOW` updates; none before the first update."""
        return self.idle < IN_USE_WINDOW


def new_tokenizer_state(model: VQVAE, learning: TokenizerLearning) -> TokenizerState:
    idle = jnp.full(model.config.codes, IN_USE_WINDOW, jnp.int32)
    optimiser = begin_optimising(_optimiser(learning), model)
    pixel_stats = new_pixel_statistics(model.frame_shape) if learning.rare_weight else None
    return TokenizerState(model, new_statistics(model.config), optimiser, idle, pixel_stats)


def _optimiser(learning: TokenizerLearning) -> optax.GradientTransformation:
    return clipped_adamw(learning.learning_rate, learning.max_gradient_norm, learning.weight_decay)


def tokenizer_update(
    state: TokenizerState,
    frames: UInt8[Array, "b H W c"],
    perceptual: Perceptual | None,
    key: Array,
    learning: TokenizerLearning,
) -> tuple[TokenizerState, Metrics]:
    """One update on a batch of frames."""
    pixel_stats, weights = state.pixel_stats, None
    quantised = True
    if learning.continuous_updates:
        quantised = optax.tree.get(state.optimiser, "count") >= learning.continuous_updates
    if pixel_stats is not None:
        pixel_stats = follow_pixels(pixel_stats, from_bytes(frames))
        weights = pixel_weights(pixel_stats, from_bytes(frames), learning.rare_weight)
    gradient, (output, metrics) = jax.grad(vqvae_loss, has_aux=True)(
        state.model, state.latent_stats, frames, perceptual, key, weights, quantised
    )
    model, optimiser, metrics["gradient_norm"] = follow_gradient(
        _optimiser(learning), state.optimiser, state.model, gradient
    )
    idle = jnp.where(codes_used(output.tokens, len(state.idle)), 0, state.idle + 1)
    if learning.revive_after_updates:
        # A code that stays unused is reset again and again.
        dead = (idle > 0) & (idle % learning.revive_after_updates == 0)
        codebook = revive(model.codebook, dead, output.z, output.tokens)
        model = eqx.tree_at(lambda model: model.codebook, model, codebook)
    return TokenizerState(model, output.latent_stats, optimiser, idle, pixel_stats), metrics


@cache  # the files are large: read once per process
def perceptual_of(weights: tuple[str, ...], dropout: bool) -> Perceptual | None:
    """The perceptual loss; without weights None, with a warning."""
    if weights:
        vgg, linear = (Path(file) for file in weights)
        return load_perceptual(vgg, linear, dropout)
    warnings.warn(
        "the tokenizer learns from pixels only: the published agents add a perceptual loss; "
        "--tokenizer.perceptual-weights VGG16 LINEAR adds it",
        stacklevel=2,
    )
    return None
