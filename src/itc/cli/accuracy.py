"""`itc accuracy RUN…`: how often each decoder predicts the next frame correctly."""

from pathlib import Path
from typing import Annotated

import tyro

from itc.cli.measuring import measure_runs
from itc.cli.running import OwnEnvironments


def accuracy(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional],
    transitions: int = 10_000,
    decoders: tuple[str, ...] = (),
    own: OwnEnvironments = (),
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Predict single steps of held-out play with a run's world model, and decode the predictions with every decoder.

    `exact`: every token is correct. `plausible`: the frame is a possible next frame; brightness and newly visible edges
    do not count.
    Compare both with the stay rate of `itc hallucinate`: a model in which nothing moves scores well here.

    Args:
        runs: Folders of training runs.
        transitions: Number of steps to predict, in environments with held-out seeds.
        decoders: Decoders to compare. If not given: all presets except the Sinkhorn ones, and the run's own decoder.
        json_file: Also write the numbers to this file. They are always written to RUN/measures/accuracy.json.
    """
    from itc.evaluate.truth import measure_accuracy

    # Each step needs a full context before it, and episodes may be short: play twice as many.
    measure_runs(
        "accuracy",
        "accuracy",
        runs,
        decoders,
        json_file,
        {"transitions": transitions},
        steps=2 * transitions,
        own=own,
        measure=lambda trial, chosen: measure_accuracy(trial, chosen, transitions),
    )
