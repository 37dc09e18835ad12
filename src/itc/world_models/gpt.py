"""The world model: a block-causal transformer over frames and actions, to be read from top to bottom.

A sequence is `context_frames` blocks (the tokens of a frame, the action taken there). All tokens of a block see each
other and everything before. The output at a cell predicts that cell's token in the next frame; the output at the action
predicts the reward and whether the episode ends.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Float32, Int, Int32

from itc.networks.layers import Linear, Normalise
from itc.settings import Count, CountOrZero, FractionBelowOne, Positive, Settings
from itc.sharding import whole
from itc.world_models.attention import block_attention, cached_attention
from itc.world_models.dropout import dropout
from itc.world_models.heads import Rotation, split_heads
from itc.world_models.layout import Layout, rotary_angles

EMBEDDING_SCALE = 0.02  # standard deviation of initial embeddings
# Added to the logit of a code that the model has not been trained on: e^−20 of the probability of one it has.
UNKNOWN_CODE_BIAS = -20.0


# The defaults are the paper's.
@dataclass(frozen=True)
class WorldModelConfig(Settings):
    """World-model architecture: a transformer."""

    codes: Count = 4096  # size of the codebook
    context_frames: Count = 20  # context length in frames, each with its action
    layers: Count = 3  # transformer layers
    heads: Count = 8  # attention heads
    embedding: Count = 128  # embedding size
    hidden: Count = 512  # width of the feed-forward layers
    dropout: FractionBelowOne = 0.1  # dropout rate, of embeddings, attention and residuals
    # Rotary position embedding: over the token index (1d), over time, row and column (3d), or none.
    rotary: Literal["none", "1d", "3d"] = "3d"
    absolute: bool = True  # learned absolute position embedding of each cell (and of the action)
    # Standard deviation of the layers' initial weights (not the heads'); small models learn faster from 1/√embedding.
    weight_scale: Positive = 0.02
    # Things move to nearby cells; a model that is shown them need not first learn to look there.
    neighbours: CountOrZero = 0  # size of the embedding by which a cell is shown its eight neighbours; 0: none

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embedding % self.heads or (self.embedding // self.heads) % 8:
            raise ValueError(
                f"embedding {self.embedding} over {self.heads} heads must leave each a multiple of 8 numbers to rotate"
            )

    @property
    def head_size(self) -> int:
        return self.embedding // self.heads


class Prediction(NamedTuple):
    """Logits of what comes next, after each (frame, action)."""

    tokens: Float32[Array, "*b n k"]
    reward: Float32[Array, "*b 2"]
    done: Float32[Array, "*b 2"]


class Cache(NamedTuple):
    """Rotated keys, and values, of the blocks seen so far, for every layer."""

    keys: Float32[Array, "layers b h p d"]
    values: Float32[Array, "layers b h p d"]
    block: Int32[Array, ""]  # how many blocks have been seen


def linear(key: Array, inputs: int, outputs: int, scale: float) -> Linear:
    """A linear layer of small random weights."""
    return Linear(scale * random.normal(key, (inputs, outputs)))


class Head(eqx.Module):
    """Two linear layers with a ReLU between them, which at first keep the scale of what comes in (LeCun)."""

    inner: Linear
    outer: Linear

    def __init__(self, key: Array, size: int, outputs: int):
        inner_key, outer_key = random.split(key)
        lecun = jax.nn.initializers.lecun_normal()
        self.inner = Linear(lecun(inner_key, (size, size), jnp.float32))
        self.outer = Linear(lecun(outer_key, (size, outputs), jnp.float32))

    def __call__(self, x: Float32[Array, "... e"], outputs: int | None = None) -> Float32[Array, "... k"]:
        """Only the first `outputs` are computed."""
        outer = jax.tree.map(lambda w: w[..., :outputs], self.outer)
        return outer(jax.nn.relu(self.inner(x)))


class Neighbourhood(eqx.Module):
    """What a cell and the eight around it show, as one vector: a convolution over embedded tokens."""

    embedding: Float32[Array, "k m"]
    mix: Linear

    def __init__(self, key: Array, codes: int, size: int, outputs: int):
        embedding_key, mix_key = random.split(key)
        self.embedding = random.normal(embedding_key, (codes, size))
        self.mix = linear(mix_key, 9 * size, outputs, EMBEDDING_SCALE)

    def __call__(self, tokens: Int[Array, "b t n"], grid: tuple[int, int]) -> Float32[Array, "b t n e"]:
        (b, t, n), (h, w) = tokens.shape, grid
        cells = self.embedding[tokens].reshape(b * t, h, w, -1)
        padded = jnp.pad(cells, ((0, 0), (1, 1), (1, 1), (0, 0)))
        around = [padded[:, row : row + h, column : column + w] for row in range(3) for column in range(3)]
        return self.mix(jnp.concatenate(around, axis=-1)).reshape(b, t, n, -1)


class Layer(eqx.Module):
    """Attention, then a feed-forward network, each normalised before and added to what came in."""

    attention_norm: Normalise
    attention_in: Linear  # queries, keys and values side by side
    attention_out: Linear
    feed_norm: Normalise
    feed_in: Linear
    feed_out: Linear

    def __init__(self, key: Array, config: WorldModelConfig):
        keys = random.split(key, 4)
        size, scale = config.embedding, config.weight_scale
        self.attention_norm, self.feed_norm = Normalise(size), Normalise(size)
        self.attention_in = linear(keys[0], size, 3 * size, scale)
        self.attention_out = linear(keys[1], size, size, scale)
        self.feed_in = linear(keys[2], size, config.hidden, scale)
        self.feed_out = linear(keys[3], config.hidden, size, scale)

    def project(self, x: Float32[Array, "*b s e"], heads: int) -> Float32[Array, "*b s 3 h d"]:
        """Queries, keys and values of each head, side by side."""
        return self.attention_in(self.attention_norm(x)).reshape(*x.shape[:-1], 3, heads, -1)

    def finish(self, x: Float32[Array, "*b s e"], attended: Float32[Array, "*b s e"], seeds, rate: float):
        """Add what attention gathered, then the feed-forward network."""
        first, second = (None, None) if seeds is None else (seeds[0], seeds[1])
        x = x + dropout(first, self.attention_out(attended), rate)
        fed = self.feed_out(jax.nn.gelu(self.feed_in(self.feed_norm(x)), approximate=True))
        return x + dropout(second, fed, rate)


class WorldModel(eqx.Module):
    """Predicts the next frame's tokens, the reward class and the end of the episode."""

    token_embedding: Float32[Array, "k e"]
    action_embedding: Float32[Array, "a e"]
    slot_embedding: Float32[Array, "s e"] | None
    neighbourhood: Neighbourhood | None
    layers: Layer | tuple[Layer, ...]  # the parameters of all layers, stacked; one by one if `unstacked`
    final_norm: Normalise
    token_head: Head
    reward_head: Head
    done_head: Head
    layout: Layout = eqx.field(static=True)
    config: WorldModelConfig = eqx.field(static=True)

    def __init__(self, key: Array, grid: tuple[int, int], actions: int, config: WorldModelConfig = WorldModelConfig()):
        keys = random.split(key, 7)
        size = config.embedding
        self.layout, self.config = Layout(grid, config.context_frames), config
        self.token_embedding = EMBEDDING_SCALE * random.normal(keys[0], (config.codes, size))
        self.action_embedding = EMBEDDING_SCALE * random.normal(keys[1], (actions, size))
        slots = EMBEDDING_SCALE * random.normal(keys[2], (self.layout.slots, size))
        self.slot_embedding = slots if config.absolute else None
        self.neighbourhood = (
            Neighbourhood(random.fold_in(key, 7), config.codes, config.neighbours, size) if config.neighbours else None
        )
        self.layers = jax.vmap(lambda layer_key: Layer(layer_key, config))(random.split(keys[3], config.layers))
        self.final_norm = Normalise(size)
        token_head = Head(keys[4], size, config.codes)
        self.token_head = _with_bias(token_head, jnp.full(config.codes, UNKNOWN_CODE_BIAS, jnp.float32))
        self.reward_head, self.done_head = Head(keys[5], size, 2), Head(keys[6], size, 2)

    def __call__(
        self, tokens: Int[Array, "b t n"], actions: Int[Array, "b t"], bucket: int, key: Array | None = None
    ) -> Prediction:
        """Predict what follows every block of whole sequences; with a key, with dropout, for training."""
        b, t, _ = tokens.shape
        rate = self.config.dropout
        rotation = self.rotation(t)
        training = key is not None
        embedding_seed = layer_seeds = None
        if key is not None:
            first_key, layers_key = random.split(key)
            embedding_seed = random.bits(first_key)
            layer_seeds = random.bits(layers_key, (self.config.layers, b * t + 2))

        def layer(x, parameters_and_seeds):
            parameters, seeds = parameters_and_seeds
            attention_seeds = whole(seeds[2:].reshape(b, t)) if training else None
            attended = block_attention(rotation, parameters.project(x, self.config.heads), attention_seeds, rate)
            return parameters.finish(x, attended, seeds[:2] if training else None, rate), None

        x = dropout(embedding_seed, self.embed(tokens, actions), rate)
        # Unrolled: inside a loop the compiler would not spread elementwise work over cores.
        x, _ = lax.scan(layer, x, (self.layers, layer_seeds), unroll=True)
        return self.predict(x, bucket)

    def empty_cache(self, b: int) -> Cache:
        config, layout = self.config, self.layout
        shape = (config.layers, b, config.heads, layout.blocks * layout.slots, config.head_size)
        return Cache(jnp.zeros(shape), jnp.zeros(shape), jnp.int32(0))

    def step(
        self, cache: Cache, tokens: Int[Array, "b n"], actions: Int[Array, " b"], bucket: int
    ) -> tuple[Cache, Prediction]:
        """Take in one more block, and predict what follows it. The cache holds `context_frames` of them."""
        keys, values, block = cache
        slots = self.layout.slots
        here = jax.tree.map(
            lambda part: lax.dynamic_slice_in_dim(part, block * slots, slots), self.rotation(self.layout.blocks)
        )
        x = self.embed(tokens[:, None], actions[:, None])[:, 0]
        for index, layer in enumerate(self._layers()):
            q, k, v = jax.vmap(partial(split_heads, here))(layer.project(x, self.config.heads))
            place = (index, 0, 0, block * slots, 0)
            keys, values = (lax.dynamic_update_slice(*pair, place) for pair in ((keys, k[None]), (values, v[None])))
            x = layer.finish(x, cached_attention(q, keys, values, index, block), None, 0.0)
        return Cache(keys, values, block + 1), self.predict(x, bucket)

    def unstacked(self, bucket: int) -> "WorldModel":
        """The same model for many steps that compute `bucket` logits: cutting its layers and the token head out of what
        they are stored in, in each step, costs a GPU a launch for every parameter."""
        outer = jax.tree.map(lambda w: w[..., :bucket], self.token_head.outer)
        return eqx.tree_at(lambda model: (model.layers, model.token_head.outer), self, (self._layers(), outer))

    def _layers(self) -> tuple[Layer, ...]:
        if isinstance(self.layers, tuple):
            return self.layers
        return tuple(jax.tree.map(lambda stack, i=i: stack[i], self.layers) for i in range(self.config.layers))

    def embed(self, tokens: Int[Array, "b t n"], actions: Int[Array, "b t"]) -> Float32[Array, "b t s e"]:
        cells = self.token_embedding[tokens]
        if self.neighbourhood is not None:
            cells = cells + self.neighbourhood(tokens, self.layout.grid)
        x = jnp.concatenate([cells, self.action_embedding[actions][:, :, None]], axis=2)
        return x if self.slot_embedding is None else x + self.slot_embedding[None, None]

    def predict(self, x: Float32[Array, "*b s e"], bucket: int) -> Prediction:
        """Read the predictions off the last layer: tokens at the cells, reward and end at the action."""
        x = self.final_norm(x)
        cells, action = x[..., :-1, :], x[..., -1, :]
        return Prediction(self.token_head(cells, bucket), self.reward_head(action), self.done_head(action))

    def with_token_bias(self, bias: Float32[Array, " k"]) -> "WorldModel":
        """The same model with another bias of the codes' logits."""
        return eqx.tree_at(lambda model: model.token_head, self, _with_bias(self.token_head, bias))

    def rotation(self, blocks: int) -> Rotation:
        """How the tokens of the first blocks are rotated."""
        layout = Layout(self.layout.grid, blocks)
        positions = layout.positions_3d() if self.config.rotary == "3d" else layout.positions_1d()
        angles = jnp.asarray(rotary_angles(positions, self.config.head_size)).reshape(blocks * layout.slots, -1)
        if self.config.rotary == "none":
            angles = jnp.zeros_like(angles)
        return Rotation(jnp.sin(angles), jnp.cos(angles))


def _with_bias(head: Head, bias: Float32[Array, " k"]) -> Head:
    return eqx.tree_at(lambda head: head.outer.bias, head, bias)
