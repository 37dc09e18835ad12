"""`itc accuracy RUN…`: how often the next frame is predicted right, by every decoder."""

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
    """Predict single steps of new play with a run's world model, and decode the same predictions in every way.

    `exact`: every token is right. `plausible`: the frame might as well have come next, whatever the light and the newly
    seen edges.
    Read both beside the stay rate of `itc hallucinate`: a frozen world is easy to get right.

    Args:
        runs: Folders of training runs.
        transitions: How many steps to predict, on worlds no run has seen.
        decoders: Which to compare; by default all presets but the Sinkhorn ones, and the run's own settings.
        json_file: Also write the numbers to this file; they always go to RUN/measures/accuracy.json.
    """
    from itc.evaluate.truth import measure_accuracy

    # Every step needs a full context before it, and episodes may be short: play twice as much.
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
