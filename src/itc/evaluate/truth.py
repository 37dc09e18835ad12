"""Are imagined rollouts true? Record a run's play in new worlds; measure every decoder on the same model and data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jax import random
from jaxtyping import Bool

from itc.decoding.config import PRESETS, DecodeConfig
from itc.evaluate.accuracy import accuracy
from itc.evaluate.footing import walkable_ground
from itc.evaluate.hallucination import SIMULATOR, Happenings, hallucination, happenings
from itc.evaluate.imagination import imagine_windows
from itc.evaluate.predictions import decoded_predictions
from itc.evaluate.recording import Recording, Transitions, record
from itc.evaluate.records import Measure
from itc.evaluate.scenes import EntityClassifier, classifier_for
from itc.train.runs import Run

# Random seeds that no run trains on: worlds to fit the entity classifier in, worlds to choose settings in, and others
# to measure in, so that no setting is measured where it was chosen.
FITTING, TUNING, MEASURING = 2_000_000, 3_000_000, 4_000_000
NUM_ENVS = 64
LEAST_STEPS = 200  # per environment: enough to get away from the start
# All presets but those that go through Sinkhorn, which takes hours on so many frames; they can be named.
DECODERS = tuple(name for name, config in PRESETS.items() if config.solver != "sinkhorn")


@dataclass(frozen=True)
class Trial:
    """Everything a measurement of a run needs."""

    run: Run
    classifier: EntityClassifier
    recording: Recording
    walkable: Bool[np.ndarray, "classes kinds"]  # which kinds of ground each class of creatures goes on

    @property
    def reading(self) -> str:
        """The entity classifier's error on real frames, in a sentence."""
        seen, true = self.classifier(self.recording.tokens).creatures, self.classifier.truth(self.recording).creatures
        found, right = ((seen & true).sum() / max(1, whole.sum()) for whole in (true, seen))
        return (
            f"{self.classifier.error(self.recording):.2%} of real cells are misclassified; "
            f"{found:.1%} of creatures are found, and {right:.1%} of those found are there"
        )


def prepare(run: Run, steps: int, worlds: int = MEASURING) -> Trial:
    """Play at least so many steps in new worlds, after fitting the entity classifier in others."""
    if not run.env.spec.creatures:
        raise ValueError(f"{run.env.spec.name} does not say where its creatures are, which this measure follows")
    if not run.codes:
        raise ValueError(f"{run.path} has learned nothing yet: its codebook is empty")
    per_env = max(LEAST_STEPS, -(-steps // NUM_ENVS))
    fitting, measuring = (
        record(run.env, run.policy, run.state.codebook, random.key(run.seed + seed), NUM_ENVS, per_env)
        for seed in (FITTING, worlds)
    )
    classifier = classifier_for(run.env.spec, run.state.codebook, fitting)
    return Trial(run, classifier, measuring, walkable_ground(classifier, run.env.spec, fitting))


def measure_accuracy(trial: Trial, decoders: Mapping[str, DecodeConfig], transitions: int) -> Iterator[Measure]:
    """One step ahead, with one frame of context and with as many as the model takes, on the same steps."""
    run, spec = trial.run, trial.run.env.spec
    blocks = run.config.context_frames
    steps = _transitions(trial, transitions)
    for context in sorted({1, blocks}):
        decoded = decoded_predictions(
            run.world_model,
            run.state.codebook,
            spec,
            decoders,
            steps.tokens[:, -context:],
            steps.actions[:, -context:],
            random.key(run.seed),
        )
        yield from accuracy(
            trial.classifier, spec, steps.tokens[:, -1], steps.after, steps.actions[:, -1], steps.creatures, decoded,
            steps.env_index, f"context {context}", trial.walkable,
        )  # fmt: skip


def measure_hallucination(
    trial: Trial, decoders: Mapping[str, DecodeConfig], horizon: int, count: int, initial_frames: int | None = None
) -> Iterator[Measure]:
    """Imagined rollouts under recorded actions, compared with the simulator.

    They start from so many real frames; if no number is given, from as many as in training.
    """
    run, spec = trial.run, trial.run.env.spec
    worlds = {name: run.world(config) for name, config in decoders.items()}
    if initial_frames is None:
        initial_frames = next(iter(worlds.values())).initial_frames
    if not 1 <= initial_frames <= run.config.context_frames:
        raise ValueError(
            f"initial_frames must be in 1..{run.config.context_frames}, the model's context, got {initial_frames}"
        )
    past = initial_frames - 1
    windows = trial.recording.windows(count, past + horizon)
    if not len(windows.env_index):
        raise ValueError(f"{run.path}: no episode of its policy lasts {past + horizon} steps; a shorter horizon may do")
    actions = windows.actions[:, past:]

    def happened(tokens: np.ndarray, counted: np.ndarray) -> Happenings:
        return happenings(trial.classifier, spec, tokens, actions, counted, windows.env_index)

    real = happened(windows.tokens[:, past:], np.ones(actions.shape, bool))
    yield from hallucination(SIMULATOR, real, real)
    for name, world in worlds.items():
        imagined = imagine_windows(world, windows.tokens[:, :initial_frames], windows.actions, random.key(run.seed))
        yield from hallucination(name, happened(*imagined), real)


def measure_single_steps(trial: Trial, decoders: Mapping[str, DecodeConfig], transitions: int) -> Iterator[Measure]:
    """Accuracy and hallucination of single steps with the model's full context: quick, as there are no rollouts."""
    run, spec = trial.run, trial.run.env.spec
    blocks = run.config.context_frames
    steps = _transitions(trial, transitions)
    before, actions = steps.tokens[:, -1], steps.actions[:, -1:]
    decoded = decoded_predictions(
        run.world_model, run.state.codebook, spec, decoders, steps.tokens, steps.actions, random.key(run.seed)
    )

    def happened(after: np.ndarray) -> Happenings:
        counted = np.ones(actions.shape, bool)
        return happenings(trial.classifier, spec, np.stack([before, after], axis=1), actions, counted, steps.env_index)

    real = happened(steps.after)
    yield from hallucination(SIMULATOR, real, real, by_step=False)
    for name, tokens in decoded.items():
        yield from hallucination(name, happened(tokens), real, by_step=False)
    yield from accuracy(
        trial.classifier, spec, before, steps.after, actions[:, 0], steps.creatures, decoded, steps.env_index,
        f"context {blocks}", trial.walkable,
    )  # fmt: skip


def _transitions(trial: Trial, count: int) -> Transitions:
    """Steps with as many frames before them as the model takes."""
    blocks = trial.run.config.context_frames
    steps = trial.recording.transitions(count, blocks)
    if not len(steps.env_index):
        raise ValueError(f"{trial.run.path}: no episode of its policy lasts the {blocks} steps of the model's context")
    return steps


def named_decoders(names: Sequence[str]) -> dict[str, DecodeConfig]:
    unknown = [name for name in names if name not in PRESETS]
    if unknown:
        raise ValueError(f"unknown decoder {unknown[0]!r}; known: {', '.join(PRESETS)}")
    return {name: PRESETS[name] for name in names}
