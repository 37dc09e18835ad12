"""The 26 games of Atari 100K, on the Arcade Learning Environment. The only file that imports ale-py.

An agent's step is four frames of the console with one action. Frames are shrunk to 64×64 pixels in colour; a token is
a patch of 8×8 of them. Training and testing define episodes differently: see `TRAINING` and `TESTING`.
"""

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Int, Int8, Int32, Key, UInt8, UInt32

from itc.envs.base import Environment, Step
from itc.extras import require_for
from itc.types import AnyArray, EnvSpec

# As ale-py spells them.
GAMES = (
    "alien", "amidar", "assault", "asterix", "bank_heist", "battle_zone", "boxing", "breakout", "chopper_command",
    "crazy_climber", "demon_attack", "freeway", "frostbite", "gopher", "hero", "jamesbond", "kangaroo", "krull",
    "kung_fu_master", "ms_pacman", "pong", "private_eye", "qbert", "road_runner", "seaquest", "up_n_down",
)  # fmt: skip

SIDE, PATCH = 64, 8
GRID = SIDE // PATCH
SKIP = 4  # the console's frames in one step of the agent
# Bytes kept for a console. About 14,400 are used, a few more or less: its random numbers are saved as decimal text.
CAPACITY = 16_384


@dataclass(frozen=True)
class Rules:
    """What an episode is. Frames are the console's, not the agent's."""

    most_frames: int  # the time limit of a game; frames without an action count, too
    most_noops: int  # a game begins with 1 to this many frames without an action
    signs: bool  # only the sign of each frame's reward counts
    a_life_each: bool  # losing a life ends the episode, though not the game: the next episode continues from there


TRAINING = Rules(most_frames=20_000, most_noops=30, signs=True, a_life_each=True)
TESTING = Rules(most_frames=108_000, most_noops=1, signs=False, a_life_each=False)


class AtariState(NamedTuple):
    """The state of all environments. One environment's is the same without the first dimension."""

    console: UInt8[AnyArray, "b capacity"]  # as ale-py saves it, then zeros
    length: Int32[AnyArray, " b"]  # how many of these bytes are the console's
    frames: Int32[AnyArray, " b"]  # of the console, since the game began
    lives: Int32[AnyArray, " b"]
    seed: UInt32[AnyArray, "b 2"]  # with the number of games, the random seed of the next one
    games: Int32[AnyArray, " b"]  # begun so far


class Atari(Environment):
    """One of the games.

    A single console serves all environments: each one's state is loaded into it, played a step and saved again. So
    nothing is left in here between two calls, and an environment depends neither on the others nor on their number.
    Only the screen is not saved: games draw it again, all but the first frame of a step, which is seen only if the game
    ends in it.
    """

    pure = False

    def __init__(self, title: str, rules: Rules = TRAINING):
        require_for(f"atari/{title}")
        self.rules = rules
        self._title = title
        self._console = _Console(title)
        most_reward = float(SKIP) if rules.signs else float("inf")
        self.spec = EnvSpec(
            name=f"atari/{title}",
            frame_shape=(SIDE, SIDE, 3),
            frame_max=255,
            actions=tuple(action.name.lower() for action in self._console.actions),
            grid=(GRID, GRID),
            patch=(PATCH, PATCH),
            copyable=np.ones((GRID, GRID), bool),
            reward_range=(-most_reward, most_reward),
            return_scale=None,
            entities=("none",),
            episode_length=-(-rules.most_frames // SKIP),
        )

    def reset(self, key: Key[Array, ""], num_envs: int) -> tuple[AtariState, UInt8[AnyArray, "b H W c"]]:
        with self._console.lock:
            begun = [self._first_game(seed) for seed in _seeds(key, num_envs)]
        return _stack([state for state, _ in begun]), _stack([frame for _, frame in begun])

    def step(self, state: AtariState, action: Int[AnyArray, " b"]) -> tuple[AtariState, Step]:
        states = _unstack(jax.tree.map(np.asarray, state))
        with self._console.lock:
            played = [self._step(one, int(taken)) for one, taken in zip(states, np.asarray(action), strict=True)]
        return _stack([state for state, _ in played]), _stack([step for _, step in played])

    def entities(self, state: AtariState) -> Int8[AnyArray, "b h w"]:
        raise ValueError(f"{self.spec.name} has no entities: an emulator does not say what stands on which cell")

    def shapes(self, num_envs: int) -> tuple[AtariState, jax.ShapeDtypeStruct]:
        number = jax.ShapeDtypeStruct((num_envs,), jnp.int32)
        console = jax.ShapeDtypeStruct((num_envs, CAPACITY), jnp.uint8)
        seed = jax.ShapeDtypeStruct((num_envs, 2), jnp.uint32)
        frame = jax.ShapeDtypeStruct((num_envs, *self.spec.frame_shape), jnp.uint8)
        return AtariState(console, number, number, number, seed, number), frame

    @cached_property
    def for_evaluation(self) -> "Atari":
        return self if self.rules == TESTING else Atari(self._title, TESTING)

    def _first_game(self, seed: UInt32[np.ndarray, "2"]) -> tuple[AtariState, UInt8[np.ndarray, "H W c"]]:
        # Some games keep data of the previous one: a new environment starts with a console just switched on.
        self._console.switch_on()
        self._new_game(seed, 0)
        return self._save(seed, 1), self._console.picture()

    def _step(self, state: AtariState, action: int) -> tuple[AtariState, Step]:
        """One step of one environment."""
        console, seed, games = self._console, state.seed, int(state.games)
        console.load(state)
        last_frame, reward = self._act(action)
        life_lost = self.rules.a_life_each and 0 < console.lives < state.lives
        terminated = console.over or life_lost
        truncated = self._time_is_up and not terminated
        frame = last_frame
        if life_lost and not self._ended:
            frame, _ = self._act(0)  # the game continues; a step without an action takes the place of a reset
        if self._ended:
            self._new_game(seed, games)
            frame, games = console.picture(), games + 1
        outcome: dict[str, Any] = {
            "frame": frame,
            "reward": np.float32(reward),
            "terminated": np.bool_(terminated),
            "truncated": np.bool_(truncated),
            "last_frame": last_frame,
            "achievements": np.zeros(0, bool),
        }
        return self._save(seed, games), Step(**outcome)

    def _act(self, action: int) -> tuple[UInt8[np.ndarray, "H W c"], float]:
        """A step's frames with one action: what is seen, and the reward.

        Seen is the brighter of the last two frames, pixel by pixel: some games draw half of their things in every
        other frame. Where the game ends, the last frame alone.
        """
        reward, pictures = 0.0, []
        for frame in range(SKIP):
            points = self._console.play(action)
            reward += float(np.sign(points)) if self.rules.signs else points
            if self._ended:
                return self._console.picture(), reward
            if frame >= SKIP - 2:
                pictures.append(self._console.picture())
        return np.maximum(*pictures), reward

    def _new_game(self, seed: UInt32[np.ndarray, "2"], games: int) -> None:
        """Begin the game of this number, and let some frames pass: otherwise all would be the same."""
        noops = np.random.default_rng([*seed.tolist(), games]).integers(1, self.rules.most_noops, endpoint=True)
        self._console.restart()
        # Right after a restart a saved console is not exact (Q*bert plays differently); after one frame it is.
        for _ in range(noops):
            self._console.play(0)
            if self._ended:
                self._console.restart()

    @property
    def _ended(self) -> bool:
        return self._console.over or self._time_is_up

    @property
    def _time_is_up(self) -> bool:
        return self._console.frames >= self.rules.most_frames

    def _save(self, seed: UInt32[np.ndarray, "2"], games: int) -> AtariState:
        saved = self._console.save()
        if len(saved) > CAPACITY:
            raise ValueError(f"{self.spec.name}: a console of {len(saved)} bytes, but a state has room for {CAPACITY}")
        console = np.zeros(CAPACITY, np.uint8)
        console[: len(saved)] = np.frombuffer(saved, np.uint8)
        numbers = (np.int32(number) for number in (len(saved), self._console.frames, self._console.lives))
        return AtariState(console, *numbers, seed, np.int32(games))


class _Console:
    """An emulator with one game in it. Whoever uses it holds its lock."""

    def __init__(self, title: str):
        from ale_py import ALEInterface, LoggerMode, roms

        ALEInterface.setLoggerMode(LoggerMode.Error)  # otherwise it prints a banner at every start
        self._ale = ALEInterface()
        self._ale.setInt("random_seed", 1)  # any but −1, the time of day; no game uses it
        self._ale.setFloat("repeat_action_probability", 0.0)
        rom = roms.get_rom_path(title)
        if rom is None:
            raise ValueError(f"ale-py has no game called {title!r}")
        self._ale.loadROM(rom)
        self.lock = Lock()
        self.actions = self._ale.getMinimalActionSet()  # the first does nothing
        self.frames = 0
        self._as_delivered = self.save()

    @property
    def lives(self) -> int:
        return self._ale.lives()

    @property
    def over(self) -> bool:
        return self._ale.game_over(with_truncation=False)

    def switch_on(self) -> None:
        self._load(self._as_delivered)

    def restart(self) -> None:
        self._ale.reset_game()
        self.frames = 0

    def play(self, action: int) -> float:
        """One frame; its reward."""
        self.frames += 1
        return float(self._ale.act(self.actions[action]))

    def picture(self) -> UInt8[np.ndarray, "H W c"]:
        """The screen, shrunk."""
        from PIL import Image

        screen = Image.fromarray(self._ale.getScreenRGB())
        return np.asarray(screen.resize((SIDE, SIDE), Image.Resampling.BILINEAR))

    def save(self) -> bytes:
        saved: Any = self._ale.cloneState(include_rng=True).__getstate__()  # bytes, though declared a tuple
        return saved

    def load(self, state: AtariState) -> None:
        self._load(state.console[: state.length].tobytes())
        self.frames = int(state.frames)

    def _load(self, saved: Any) -> None:
        from ale_py import ALEState

        state = ALEState.__new__(ALEState)
        state.__setstate__(saved)
        self._ale.restoreState(state)


def _seeds(key: Key[Array, ""], num_envs: int) -> UInt32[np.ndarray, "b 2"]:
    """Two numbers for each environment, independent of how many there are."""
    return np.stack([random.bits(random.fold_in(key, env_index), (2,), jnp.uint32) for env_index in range(num_envs)])


def _unstack(state: AtariState) -> list[AtariState]:
    """One state for each environment."""
    return [AtariState(*(leaf[env_index] for leaf in state)) for env_index in range(len(state.length))]


def _stack(parts: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)
