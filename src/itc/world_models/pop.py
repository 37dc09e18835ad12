"""The world model of Atari: a retention network that predicts all tokens of a frame in one pass.

A block is the tokens of a frame and the action taken there. Before each frame stand prediction tokens, one for each of
its cells: each sees all earlier blocks and the prediction tokens before it. Their outputs predict the frame, the reward
of the step that led there, and whether that step ended the episode. An ensemble of heads predicts the tokens, too; its
disagreement is the intrinsic reward. (POP: parallel observation prediction.)
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Float32, Int, Int32, UInt32

from itc.networks.hl_gauss import REWARDS, reward_bias
from itc.networks.layers import Linear, Normalise, standardise, uniform_linear
from itc.settings import Count, FractionBelowOne, Settings
from itc.world_models.dropout import dropout
from itc.world_models.heads import Rotation
from itc.world_models.layout import Layout
from itc.world_models.retention import block_rotation, retention

CONTEXT = 2  # the first blocks of a sequence, too early to predict: an imagined rollout starts from as many real ones
TRUNK_EPSILON = 1e-6  # of the trunk's normalisations; those of the heads have the usual 1e-5


# The defaults are the paper's; rotary "1d" without `absolute` is Simulus.
@dataclass(frozen=True)
class POPConfig(Settings):
    """World-model architecture"""

    codes: Count = 512  # size of the codebook
    layers: Count = 10  # number of retention layers
    width: Count = 256  # width of the network, also the size of the tokenizer's code vectors
    heads: Count = 4  # retention heads per layer
    hidden: Count = 1024  # width of the feed-forward layers
    dropout: FractionBelowOne = 0.1  # dropout rate on retention outputs, feed-forward layers and residuals
    # rotary position embedding: over the token index (1d) or over time, row and column (3d)
    rotary: Literal["1d", "3d"] = "3d"
    absolute: bool = True  # add a learned embedding per cell of the grid
    context_frames: Count = 10  # frames per training sequence
    blocks_per_chunk: Count = 5  # frames (with their actions) per retention chunk; affects speed and memory only
    head_hidden: Count = 512  # hidden width of the token and reward heads; that of the episode-end head is `width`
    members: Count = 4  # ensemble size; the disagreement of its members is the intrinsic reward

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads or (self.width // self.heads) % 8:
            raise ValueError(
                f"width {self.width} over {self.heads} heads must leave each a multiple of 8 numbers to rotate"
            )
        if self.context_frames % self.blocks_per_chunk:
            raise ValueError(
                f"blocks_per_chunk must divide context_frames {self.context_frames}, got {self.blocks_per_chunk}"
            )
        if self.context_frames <= CONTEXT:
            raise ValueError(
                f"context_frames must be more than {CONTEXT}, the first frames, which are not predicted, "
                f"got {self.context_frames}"
            )

    @property
    def head_size(self) -> int:
        return self.width // self.heads


class POPPrediction(NamedTuple):
    """Predicted logits of a frame, and of the step that leads there."""

    tokens: Float32[Array, "*b n k"]
    reward: Float32[Array, "*b bins"]  # of itc.networks.hl_gauss.REWARDS
    done: Float32[Array, "*b 2"]
    members: Float32[Array, "m *b n k"]  # the ensemble's predictions of the tokens


class RetentionState(NamedTuple):
    """The recurrent state after the blocks so far; its size does not grow."""

    recurrent: Float32[Array, "layers b h d d"]
    block: Int32[Array, ""]  # how many blocks have been seen


def xavier_linear(key: Array, inputs: int, outputs: int, parts: int = 1) -> Linear:
    """Normal weights of variance 2 / (inputs + outputs) and no bias, for several layers of this size side by side."""
    return Linear(math.sqrt(2 / (inputs + outputs)) * random.normal(key, (inputs, parts * outputs)))


class Head(eqx.Module):
    """Two linear layers with a SiLU between them, after a normalisation if asked for."""

    inner: Linear
    norm: Normalise | None
    outer: Linear

    def __init__(self, key: Array, size: int, hidden: int, outputs: int, normalised: bool = True):
        inner_key, outer_key = random.split(key)
        self.inner, self.outer = uniform_linear(inner_key, size, hidden), uniform_linear(outer_key, hidden, outputs)
        self.norm = Normalise(hidden) if normalised else None

    def __call__(self, x: Float32[Array, "... e"]) -> Float32[Array, "... k"]:
        x = self.inner(x)
        return self.outer(jax.nn.silu(x if self.norm is None else self.norm(x)))


class Layer(eqx.Module):
    """Retention, then a feed-forward network, each normalised before and added to what came in."""

    retention_norm: Normalise
    retention_in: Linear  # queries, keys, values and gates side by side
    retention_out: Linear
    feed_norm: Normalise
    feed_in: Linear
    feed_out: Linear

    def __init__(self, key: Array, config: POPConfig):
        keys = random.split(key, 4)
        size = config.width
        self.retention_norm, self.feed_norm = (Normalise(size, epsilon=TRUNK_EPSILON) for _ in range(2))
        self.retention_in = xavier_linear(keys[0], size, size, parts=4)
        self.retention_out = xavier_linear(keys[1], size, size)
        self.feed_in = xavier_linear(keys[2], size, config.hidden)
        self.feed_out = xavier_linear(keys[3], config.hidden, size)

    def __call__(
        self,
        x: Float32[Array, "b t s e"],
        state: Float32[Array, "b h d d"],
        rotation: Rotation,
        slots: int,
        seeds: UInt32[Array, " 4"] | None,
        config: POPConfig,
    ) -> tuple[Float32[Array, "b t s e"], Float32[Array, "b h d d"]]:
        """The output for a few blocks, given the recurrent state before them; and the state after them."""
        first, second, third, fourth = (None,) * 4 if seeds is None else seeds
        rate = config.dropout
        projected = self.retention_in(self.retention_norm(x))
        projected = projected.reshape(*x.shape[:-1], 4, config.heads, config.head_size)
        # Any chunk gives the same result, so that sequences of unusual length just get a smaller one.
        chunk = math.gcd(x.shape[1], config.blocks_per_chunk)
        state, gathered = retention(slots, chunk, rotation, projected[..., :3, :, :], state)
        # Each head by itself: without a softmax, nothing else keeps what it gathers at one scale.
        gathered = standardise(dropout(first, gathered, rate), (-1,), TRUNK_EPSILON)
        gathered = (gathered * jax.nn.silu(projected[..., 3, :, :])).reshape(x.shape)
        x = x + dropout(second, self.retention_out(gathered), rate)
        fed = dropout(third, jax.nn.silu(self.feed_in(self.feed_norm(x))), rate)
        return x + dropout(fourth, self.feed_out(fed), rate), state


class POPWorldModel(eqx.Module):
    """Predicts a frame's tokens, the reward and the end of the episode from all that came before the frame."""

    action_embedding: Float32[Array, "a e"]
    prediction_embedding: Float32[Array, "s e"]  # the last is never used: there is no action to predict
    cell_embedding: Float32[Array, "n e"] | None
    layers: Layer  # the parameters of all layers, stacked
    token_head: Head
    reward_head: Head
    done_head: Head
    members: Head  # token heads, stacked
    layout: Layout = eqx.field(static=True)
    config: POPConfig = eqx.field(static=True)

    def __init__(self, key: Array, grid: tuple[int, int], actions: int, config: POPConfig = POPConfig()):
        keys = random.split(key, 8)
        size, hidden = config.width, config.head_hidden
        self.layout, self.config = Layout(grid, config.context_frames), config
        self.action_embedding = random.normal(keys[0], (actions, size))
        self.prediction_embedding = random.normal(keys[1], (self.layout.slots, size))
        self.cell_embedding = random.normal(keys[2], (self.layout.cells, size)) if config.absolute else None
        self.layers = jax.vmap(lambda key: Layer(key, config))(random.split(keys[3], config.layers))
        self.token_head = Head(keys[4], size, hidden, config.codes)
        reward_head = Head(keys[5], size, hidden, REWARDS.bins, normalised=False)
        self.reward_head = eqx.tree_at(lambda head: head.outer.bias, reward_head, reward_bias())
        self.done_head = Head(keys[6], size, size, 2)
        self.members = jax.vmap(lambda key: Head(key, size, hidden, config.codes))(
            random.split(keys[7], config.members)
        )

    def __call__(
        self, codes: Float32[Array, "b t n e"], actions: Int[Array, "b t"], key: Array | None = None
    ) -> POPPrediction:
        """Predictions of every frame of whole sequences from the blocks before it; with a key, with dropout."""
        return self.read(self.features(codes, actions, key))

    def features(
        self, codes: Float32[Array, "b t n e"], actions: Int[Array, "b t"], key: Array | None = None
    ) -> Float32[Array, "b t n e"]:
        """The inputs of the heads for every block; with a key, with dropout, for training."""
        b, t = actions.shape
        seeds = None if key is None else random.bits(key, (self.config.layers, 4))
        x = jnp.concatenate([self.embed(codes, actions), self.prediction_tokens(b, t)], axis=2)
        x, _ = self.through_layers(x, self.empty_state(b), seeds)
        return x[:, :, self.layout.slots :]

    def empty_state(self, b: int) -> RetentionState:
        config = self.config
        shape = (config.layers, b, config.heads, config.head_size, config.head_size)
        return RetentionState(jnp.zeros(shape), jnp.int32(0))

    def observe(
        self, state: RetentionState, codes: Float32[Array, "b n e"], actions: Int[Array, " b"]
    ) -> RetentionState:
        """Take in one more block."""
        return self.through_layers(self.embed(codes[:, None], actions[:, None]), state)[1]

    def predict(self, state: RetentionState) -> POPPrediction:
        """The prediction of the next frame. It does not change the state."""
        x, _ = self.through_layers(self.prediction_tokens(state.recurrent.shape[1], 1), state)
        return self.read(x[:, 0])

    def embed(self, codes: Float32[Array, "b t n e"], actions: Int[Array, "b t"]) -> Float32[Array, "b t s e"]:
        """The real tokens. The code vectors belong to the tokenizer, which learns nothing from here."""
        codes = lax.stop_gradient(codes)
        cells = codes if self.cell_embedding is None else codes + self.cell_embedding[None, None]
        return jnp.concatenate([cells, self.action_embedding[actions][:, :, None]], axis=2)

    def prediction_tokens(self, b: int, t: int) -> Float32[Array, "b t n e"]:
        """The prediction tokens, the same ones for every block."""
        tokens = self.prediction_embedding[: self.layout.cells]
        return jnp.broadcast_to(tokens, (b, t, *tokens.shape))

    def through_layers(
        self, x: Float32[Array, "b t s e"], state: RetentionState, seeds: UInt32[Array, "layers 4"] | None = None
    ) -> tuple[Float32[Array, "b t s e"], RetentionState]:
        """Blocks of real tokens, prediction tokens, or the former followed by the latter, and the state after them."""
        blocks = x.shape[1]
        rotation = self.rotation(state.block + jnp.arange(blocks), x.shape[2])

        def layer(x, of_layer):
            parameters, recurrent, seeds = of_layer
            return parameters(x, recurrent, rotation, self.layout.slots, seeds, self.config)

        # For the backward pass only the large matrix products are kept, the rest is computed again: that takes half
        # the memory and hardly more time. A loop, not unrolled: it takes as long to compile with ten layers as with
        # one, and the products outweigh the elementwise work that a loop leaves to one core.
        kept = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
        again = jax.checkpoint(layer, prevent_cse=False, policy=kept)
        x, recurrent = lax.scan(again, x, (self.layers, state.recurrent, seeds))
        return x, RetentionState(recurrent, state.block + blocks)

    def rotation(self, blocks: Int[Array, " t"], tokens: int) -> Rotation:
        """How that many tokens of each block are rotated: a prediction token like the one that it stands for."""
        slots, cells = self.layout.slots, self.layout.cells
        at = {cells: [slice(cells)], slots: [slice(slots)], slots + cells: [slice(slots), slice(cells)]}[tokens]
        whole = block_rotation(self.layout.grid, self.config.rotary, self.config.head_size, blocks)
        return Rotation(*(jnp.concatenate([part[:, where] for where in at], axis=1) for part in whole))

    def read(self, features: Float32[Array, "*b n e"]) -> POPPrediction:
        """The predictions: tokens from all cells, reward and end from the last; the ensemble sends no gradient back."""
        last = features[..., -1, :]
        apart = lax.stop_gradient(features)
        members = jax.vmap(lambda head: head(apart))(self.members)
        return POPPrediction(self.token_head(features), self.reward_head(last), self.done_head(last), members)
