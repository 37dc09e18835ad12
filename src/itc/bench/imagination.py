"""What an imagined rollout costs with each decoder: 48 sequences, 20 steps, world model and decoder only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Float32, Int32

from itc.bench.measure import Record, Target, bytes_needed, interleave, memory_record, ratio_record, time_record
from itc.decoding.api import decode
from itc.decoding.config import PRESETS, DecodeConfig
from itc.train.patch_agent.model_env import ImaginationState
from itc.world_models.gpt import WorldModel

SEQUENCES, STEPS = 48, 20


@dataclass(frozen=True)
class Game:
    """A game at the paper's size, with a bucket as large as its codes in use need."""

    name: str
    grid: tuple[int, int]
    actions: int
    bucket: int
    paper: str  # the preset that holds the paper's settings for this game


GAMES = (
    Game("MinAtar", (5, 5), 6, 64, "paper-minatar"),
    Game("Craftax-classic", (9, 9), 17, 512, "paper"),
)
PAPER_TARGET = Target("<=", 1.03)  # against our own sampling
CONSERVING_TARGET = Target("<=", 1.0)  # against sampling with a Gumbel number per code
PLAIN = "sample with plain Gumbel noise"


# (key, logits, previous tokens) → tokens
Chooser = Callable[[Array, Float32[Array, "b n k"], Int32[Array, "b n"]], Int32[Array, "b n"]]


def bench_imagination() -> Iterator[Record]:
    """Every measurement, as it is made."""
    for game in GAMES:
        # Any code may be drawn from this untrained model: its imagined rollouts are nonsense, but cost as much.
        model = WorldModel(random.key(0), game.grid, game.actions)
        model = model.with_token_bias(jnp.zeros(model.config.codes))
        choosers: dict[str, Chooser] = {name: _preset(game, PRESETS[name]) for name in _presets(game)}
        choosers[PLAIN] = lambda key, logits, _: random.categorical(key, logits).astype(jnp.int32)
        compiled = {name: _compile(model, game, choose) for name, choose in choosers.items()}
        seconds = interleave({name: run for name, (run, _) in compiled.items()}, wait=jax.block_until_ready)
        label = f"{game.name}: imagined rollout of {SEQUENCES}×{STEPS}"
        for name, of_contestant in seconds.items():
            yield time_record(f"{label}, {name}", of_contestant)
        yield ratio_record(f"{label}, {game.paper} / sample", seconds[game.paper], seconds["sample"], PAPER_TARGET)
        yield ratio_record(f"{label}, conserving / {PLAIN}", seconds["conserving"], seconds[PLAIN], CONSERVING_TARGET)
        yield memory_record(f"{label}, memory", max(size for _, size in compiled.values()))


def _presets(game: Game) -> tuple[str, ...]:
    return "sample", game.paper, "conserving"


def _preset(game: Game, config: DecodeConfig) -> Chooser:
    return lambda key, logits, previous: decode(logits, previous, grid=game.grid, config=config, key=key).tokens


def _compile(model: WorldModel, game: Game, choose: Chooser) -> tuple[Callable, int]:
    """An imagined rollout from random tokens under random actions, and the bytes it needs."""
    start_key, action_key, imagination_key = random.split(random.key(1), 3)
    tokens = random.randint(start_key, (SEQUENCES, game.grid[0] * game.grid[1]), 0, game.bucket)
    actions = random.randint(action_key, (STEPS, SEQUENCES), 0, game.actions)

    @jax.jit
    def run(model: WorldModel, tokens, actions, key):
        def step(state: ImaginationState, action):
            key, decode_key = random.split(state.key)
            cache, prediction = model.step(state.cache, state.tokens, action, game.bucket)
            tokens = choose(decode_key, prediction.tokens, state.tokens)
            return ImaginationState(cache, tokens, key), tokens

        return lax.scan(step, ImaginationState(model.empty_cache(SEQUENCES), tokens, key), actions)[1]

    arguments = (model, tokens, actions, imagination_key)
    compiled = run.lower(*arguments).compile()
    return lambda: compiled(*arguments), bytes_needed(compiled)
