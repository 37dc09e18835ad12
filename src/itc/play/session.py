"""One person's play: panels that start at the same window and get the same actions, to be rewound and recorded."""

import secrets
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from jax import random

from itc.decoding.config import PRESETS, DecodeConfig
from itc.play.decoders import Likely, likeliest
from itc.play.game import Game
from itc.play.panels import REAL, REWIND, Dream, Panel, Policy, RealGame
from itc.play.recording import MOST_PANELS, MOST_STEPS, Recording, fingerprint
from itc.train.config import AS_TRAINED

MOST_LIKELY = 8


class Refused(ValueError):
    """What was asked for is not possible; the message says why."""


class Session:
    """A game in progress."""

    def __init__(self, game: Game, seed: int | None = None):
        self.game = game
        self.decoders = decoders_of(game)
        self.names = first_panels(game)
        self.order = np.random.default_rng(seed).permutation(len(game.starts.tokens))
        self.turn = 0
        self.policy = Policy(game)
        self.begin(int(self.order[0]), secrets.randbits(31) if seed is None else seed)

    def begin(self, window: int, seed: int) -> None:
        """Start at a window, with the panels as they are."""
        self.window, self.seed = window, seed
        self.key = random.key(seed)
        self.actions: list[int] = []
        self.changes: list[tuple[int, int, dict[str, Any]]] = []  # step, panel, settings
        self.panels: list[Panel] = [self._panel(name) for name in self.names]
        self.policy = Policy(self.game)

    def _panel(self, name: str, config: DecodeConfig | None = None) -> Panel:
        if name == REAL:
            return RealGame(self.game, REAL, self.window, seed=self.seed)
        return Dream(self.game, name, self.window, config=config or self.decoders[name])

    @property
    def steps(self) -> int:
        return len(self.actions)

    @property
    def over(self) -> bool:
        return self.panels[0].shown.ended

    def new_start(self) -> None:
        """Another window, with other random numbers."""
        self.turn += 1
        self.begin(int(self.order[self.turn % len(self.order)]), secrets.randbits(31))

    def step(self, action: int | None) -> int:
        """One step of every panel; without an action, the policy chooses it from what the first panel shows."""
        if self.over:
            raise Refused("the episode of the first panel has ended; start again")
        if self.steps >= MOST_STEPS:
            raise Refused(f"a recording has at most {MOST_STEPS:,} steps; start again")
        if action is None:
            action = self.policy.act(self.panels[0], self.steps, random.fold_in(self.key, 2 * self.steps + 1))
        for panel in self.panels:
            self._advance(panel, action, self.steps)
        self.actions.append(action)
        return action

    def _advance(self, panel: Panel, action: int, at: int) -> None:
        # The same random numbers in every panel, so that only the decoder makes the difference.
        if not panel.shown.ended:
            panel.step(action, random.fold_in(self.key, 2 * at))

    def rewind(self, steps: int) -> int:
        """Back by so many steps, as far as the simulator's states are kept; returns how many were made."""
        made = min(steps, self.steps, REWIND - 1)
        back_to = self.steps - made
        for panel in self.panels:
            panel.rewind(back_to)
        del self.actions[back_to:]
        self.policy = Policy(self.game)  # it must not remember frames that are gone
        self._apply_changes()
        return made

    def _apply_changes(self) -> None:
        """Settings as they were at this step."""
        self.changes = [change for change in self.changes if change[0] <= self.steps]
        for index, panel in enumerate(self.panels):
            if isinstance(panel, Dream):
                known = [settings for _, which, settings in self.changes if which == index]
                panel.config = replace(self.decoders[panel.name], **known[-1]) if known else self.decoders[panel.name]

    def show(self, names: list[str]) -> None:
        """Other panels: new ones start at the same window and get all actions so far."""
        if not 1 <= len(names) <= MOST_PANELS or len(set(names)) < len(names):
            raise Refused(f"there can be 1 to {MOST_PANELS} panels, each another")
        unknown = [name for name in names if name != REAL and name not in self.decoders]
        if unknown:
            raise Refused(f"there is no decoder {unknown[0]!r:.40}; there are {', '.join(self.decoders)}, {REAL}")
        before = {panel.name: (index, panel) for index, panel in enumerate(self.panels)}
        moved = {before[name][0]: place for place, name in enumerate(names) if name in before}
        self.changes = [
            (step, moved[which], settings) for step, which, settings in self.changes if which in moved
        ]  # fmt: skip
        panels = []
        for name in names:
            panel = before[name][1] if name in before else self._panel(name)
            if isinstance(panel, RealGame) and name not in before:
                panel.warm_up()
            for at in range(len(panel.history) - 1, self.steps):
                self._advance(panel, self.actions[at], at)
            panels.append(panel)
        self.panels, self.names = panels, list(names)
        self.policy = Policy(self.game)  # it saw what another panel showed

    def configure(self, index: int, settings: dict[str, Any]) -> DecodeConfig:
        """Change the settings of a panel's decoder from the next step on."""
        panel = self.panels[index] if index < len(self.panels) else None
        if not isinstance(panel, Dream):
            raise Refused("this panel has no decoder")
        try:
            config = replace(panel.config, **settings)
        except ValueError as problem:
            raise Refused(str(problem)) from problem
        base = asdict(self.decoders[panel.name])
        changed = {name: value for name, value in asdict(config).items() if value != base[name]}
        self.changes = [change for change in self.changes if change[:2] != (self.steps, index)]
        self.changes.append((self.steps, index, changed))
        panel.config = config
        return config

    def likeliest(self, index: int, cell: int) -> list[Likely]:
        """The tokens that the model considered for a cell of the last frame."""
        panel = self.panels[index] if index < len(self.panels) else None
        if not isinstance(panel, Dream) or panel.logits is None or cell >= self.game.spec.cells:
            return []
        codes = min(self.game.codes, panel.logits.shape[1])
        return likeliest(panel.logits, cell, codes, MOST_LIKELY, panel.config.temperature)

    def recording(self, last: int | None = None) -> Recording:
        """Everything since the start, to be replayed; of it, the last steps are shown if a number is given."""
        return Recording(
            world=self.game.name,
            identity=self.game.identity,
            window=self.window,
            seed=self.seed,
            panels=tuple(self.names),
            actions=tuple(self.actions),
            changes=tuple(self.changes),
            shown_from=0 if last is None else max(0, self.steps - last),
            result=fingerprint([panel.shown.frame.tokens for panel in self.panels]),
        )

    def replay(self, recording: Recording) -> None:
        """Play a recording again; at the end everything must be as it was, else nothing changes here."""
        if recording.identity != self.game.identity:
            raise Refused(
                f"the recording is of another world ({recording.world!r:.40}, {recording.identity[:12]}…; this is "
                f"{self.game.name}, {self.game.identity[:12]}…)"
            )
        self._check(recording)
        other = Session(self.game, recording.seed)
        other.names = list(recording.panels)
        other.begin(recording.window, recording.seed)
        for action in recording.actions:
            other._change_as(recording)
            # Not by `step`: the panel that is first now may have ended while another one was.
            for panel in other.panels:
                other._advance(panel, action, other.steps)
            other.actions.append(action)
        other._change_as(recording)
        if other.recording().result != recording.result:
            raise Refused("the recording was made with other versions or on another machine: it ends differently")
        other.order, other.turn = self.order, self.turn
        vars(self).update(vars(other))

    def _change_as(self, recording: Recording) -> None:
        """The settings that a recording changes at this step."""
        self.changes += [change for change in recording.changes if change[0] == self.steps]
        self._apply_changes()

    def _check(self, recording: Recording) -> None:
        spec = self.game.spec
        unknown = [name for name in recording.panels if name != REAL and name not in self.decoders]
        if unknown or not recording.panels or len(recording.panels) > MOST_PANELS:
            raise Refused(f"the recording has panels that are not here: {', '.join(recording.panels)[:80]}")
        if len(set(recording.panels)) < len(recording.panels):
            raise Refused(f"the recording has a panel twice: {', '.join(recording.panels)[:80]}")
        if recording.window >= len(self.game.starts.tokens):
            raise Refused(f"the recording starts at window {recording.window}, which is not here")
        if any(action >= spec.num_actions for action in recording.actions) or len(recording.actions) > MOST_STEPS:
            raise Refused(f"the recording has actions that {spec.name} does not have")
        for _, which, settings in recording.changes:
            name = recording.panels[which] if which < len(recording.panels) else REAL
            if name == REAL:
                raise Refused("the recording changes the settings of a panel without a decoder")
            try:
                replace(self.decoders[name], **settings)
            except (ValueError, TypeError) as problem:
                raise Refused(f"the recording has settings that are not possible: {problem}") from problem


def first_panels(game: Game) -> list[str]:
    """A decoder that conserves, where tokens are pieces of the frame, else the world's own; and plain sampling."""
    conserving = "conserving-minatar" if game.spec.frame_max == 1 else "conserving"
    first = conserving if game.drawn_by_codes else next(iter(decoders_of(game)))
    return [first, "sample" if first != "sample" else "argmax"]


def decoders_of(game: Game) -> dict[str, DecodeConfig]:
    """All decoders by name, the world's own first."""
    config = game.run.config
    own, name = config.decode_config, config.decoder
    if own != PRESETS[name]:
        return {AS_TRAINED: own, **PRESETS}
    return {name: own, **{other: preset for other, preset in PRESETS.items() if other != name}}
