"""What is seen side by side: imagined play with one decoder, and the real game, step by step and back again."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Float32, Int32, UInt8

from itc.decoding.config import DecodeConfig
from itc.evaluate.hallucination import happenings
from itc.evaluate.imagination import first_block
from itc.play.decoders import Frame, decode_frame
from itc.play.game import Game
from itc.train.world_folder import simulator_state

REAL = "real"  # the name of the panel that is no dream
REWIND = 400  # steps: so many states of the simulator are kept


class Counted(NamedTuple):
    """What happened to the creatures since the start."""

    creatures: int = 0  # creature-steps
    duplicated: int = 0
    vanished: int = 0
    transmuted: int = 0
    paired: int = 0  # creatures that were found again while the view stood still
    stayed: int = 0  # of those, in the same place


class Shown(NamedTuple):
    """A panel after a number of steps."""

    frame: Frame
    reward: float  # since the start
    ended: bool
    counted: Counted
    picture: UInt8[np.ndarray, "H W c"] | None = None  # where a network draws it, or the simulator


@dataclass
class Panel(ABC):
    """The history of one panel. Frame 0 is the current frame of the starting window."""

    game: Game
    name: str
    window: int
    history: list[Shown] = field(default_factory=list)

    def __post_init__(self) -> None:
        tokens = self.game.starts.tokens[self.window, -1].astype(np.int32)
        n = len(tokens)
        first = Frame(tokens, np.arange(n, dtype=np.int32), np.zeros(n, np.float32))
        self.history.append(Shown(first, 0.0, False, Counted(), self._picture(tokens)))

    @property
    def shown(self) -> Shown:
        return self.history[-1]

    @abstractmethod
    def step(self, action: int, key: Array) -> None:
        """One step; after its end a panel stays as it is."""

    def rewind(self, steps: int) -> None:
        """Back to the frame after so many steps."""
        del self.history[steps + 1 :]

    def _picture(self, tokens: Int32[np.ndarray, " n"]) -> UInt8[np.ndarray, "H W c"] | None:
        return None if self.game.drawn_by_codes else self.game.render(tokens)

    def _add(self, frame: Frame, action: int, reward: float, picture: Any = None) -> None:
        before = self.shown
        counted = count(self.game, before, frame.tokens, action)
        self.history.append(Shown(frame, before.reward + reward, False, counted, picture))

    def _end(self, reward: float) -> None:
        """The last frame stays: what follows it belongs to another episode."""
        self.history.append(self.shown._replace(reward=self.shown.reward + reward, ended=True))


@dataclass
class Dream(Panel):
    """Imagined play."""

    config: DecodeConfig = field(kw_only=True)
    logits: Float32[np.ndarray, "n k"] | None = None  # of the last frame, before decoding
    model_state: Any = None
    blocks: tuple[int, int] = (0, 0)  # which (frame, action) pairs of all the model's state has taken in: from, until
    actions: list[int] = field(default_factory=list)

    @property
    def past(self) -> int:
        """Frames of the window before frame 0."""
        return self.game.starts.tokens.shape[1] - 1

    def step(self, action: int, key: Array) -> None:
        predict_key, token_key = random.split(key)
        outlook = self._predict(action, predict_key)
        done = bool(outlook.done[0])
        self.logits = np.asarray(outlook.logits[0])
        self.actions.append(action)
        if done:
            return self._end(float(outlook.reward[0]))
        before, spec = self.shown.frame.tokens, self.game.spec
        frame = decode_frame(outlook.logits, before, spec, self.config, token_key, self.game.world.codes)
        self._add(frame, action, float(outlook.reward[0]), self._picture(frame.tokens))

    def rewind(self, steps: int) -> None:
        super().rewind(steps)
        del self.actions[steps:]
        self.model_state, self.blocks, self.logits = None, (0, 0), None

    def _predict(self, action: int, key: Array) -> Any:
        """Take in the current frame and the action.

        When the model's context is full, it starts again from its second half. Where it starts depends on the number
        of steps only, so that a state which is lost on the way back is computed again exactly.
        """
        at = self.past + len(self.actions)
        begin = first_block(at, self.game.world.max_context)
        if self.model_state is None or self.blocks != (begin, at):
            self.model_state = self.game.before_any_frame()
            for block in range(begin, at):
                self.model_state, _ = self.game.predict(self.model_state, *self._block(block), key)
        self.model_state, outlook = self.game.predict(self.model_state, self.shown.frame.tokens, action, key)
        self.blocks = (begin, at + 1)
        return outlook

    def _block(self, block: int) -> tuple[Int32[np.ndarray, " n"], int]:
        """A frame and the action taken there, counted from the beginning of the window."""
        starts = self.game.starts
        if block < self.past:
            return starts.tokens[self.window, block].astype(np.int32), int(starts.actions[self.window, block])
        return self.history[block - self.past].frame.tokens, self.actions[block - self.past]


@dataclass
class RealGame(Panel):
    """The simulator, from the state of the window where it can be put there, else from a new episode."""

    seed: int = field(kw_only=True)
    states: dict[int, Any] = field(default_factory=dict)  # of the simulator, by number of steps

    def __post_init__(self) -> None:
        super().__post_init__()
        env, starts = self.game.run.env, self.game.starts
        if self.same_state:
            self.states[0] = simulator_state(env, starts, self.window)
            return
        state, frame = env.reset(random.key(self.seed), 1)
        self.states[0] = state
        tokens, picture = self._read(frame)
        first = self.shown.frame._replace(tokens=tokens)
        self.history[0] = self.shown._replace(frame=first, picture=picture)

    @property
    def same_state(self) -> bool:
        return self.game.starts.simulator is not None

    def warm_up(self) -> None:
        """Compile a step, without making it."""
        _, outcome = self.game.run.env.step(self.states[0], jnp.zeros(1, jnp.int32))
        self._read(outcome.frame)

    def step(self, action: int, key: Array) -> None:
        at = len(self.history) - 1
        state, outcome = self.game.run.env.step(self.states[at], jnp.array([action], jnp.int32))
        self.states[at + 1] = state
        self.states.pop(at + 1 - REWIND, None)
        reward = float(outcome.reward[0])
        if bool(outcome.terminated[0]) or bool(outcome.truncated[0]):
            return self._end(reward)
        tokens, picture = self._read(outcome.frame)
        n = len(tokens)
        self._add(
            Frame(tokens, np.full(n, -1, np.int32), np.zeros(n, np.float32)), action, reward, picture
        )  # nothing is copied or doubted here

    def rewind(self, steps: int) -> None:
        super().rewind(steps)
        self.states = {at: state for at, state in self.states.items() if at <= steps}

    def _read(self, frame: Any) -> tuple[Int32[np.ndarray, " n"], UInt8[np.ndarray, "H W c"] | None]:
        seen = np.asarray(frame[0])
        return self.game.encode(seen), (None if self.game.drawn_by_codes else seen)


def count(game: Game, before: Shown, tokens: Int32[np.ndarray, " n"], action: int) -> Counted:
    """Add what happened in one step, by the code that `itc hallucinate` counts with."""
    if game.classifier is None:
        return before.counted
    pair = np.stack([before.frame.tokens, tokens])[None]
    seen = happenings(game.classifier, game.spec, pair, np.array([[action]]), np.ones((1, 1), bool), np.zeros(1, int))
    new = (seen.creatures, seen.duplicated, seen.disappeared, seen.transmuted, seen.paired, seen.displaced[..., 0])
    return Counted(*(old + int(part[0, 0]) for old, part in zip(before.counted, new, strict=True)))


class Policy:
    """The learned policy as a player of the first panel."""

    def __init__(self, game: Game):
        self.game, self.player = game, game.run.policy
        self.state: Any = None
        self.at = -1  # steps after which `state` holds

    def act(self, panel: Panel, at: int, key: Array) -> int:
        """The action after so many steps; the recurrent state is warmed up on the frames before if it is not there."""
        if self.at != at or self.state is None:
            self.state = self.player.initial_state(1)
            for tokens in self._recent(panel, at):
                self.state, _ = _act(self.player, self.state, self._frame(tokens), key)
        frame = panel.shown.picture
        seen = self._frame(panel.shown.frame.tokens) if frame is None else jnp.asarray(frame)[None]
        self.state, action = _act(self.player, self.state, seen, key)
        self.at = at + 1
        return int(action[0])

    def _recent(self, panel: Panel, at: int) -> list[Int32[np.ndarray, " n"]]:
        burn_in = self.game.run.config.burn_in
        window = [tokens.astype(np.int32) for tokens in self.game.starts.tokens[panel.window, :-1]]
        frames = window + [shown.frame.tokens for shown in panel.history[:-1]]
        return frames[-burn_in:] if burn_in else []

    def _frame(self, tokens: Int32[np.ndarray, " n"]) -> Any:
        return jnp.asarray(self.game.render(tokens))[None]


@jax.jit
def _act(player: Any, state: Any, frame: Any, key: Array) -> tuple[Any, Array]:
    state, action, _ = player(state, frame, jnp.zeros(1, bool), key)
    return state, action
