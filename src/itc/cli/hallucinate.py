"""`itc hallucinate RUN…`: what is duplicated, lost or changed in imagination."""

from pathlib import Path
from typing import Annotated

import tyro

from itc.cli.measuring import measure_runs
from itc.cli.running import OwnEnvironments

LONGEST = 20  # steps, unless asked for more


def hallucinate(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional],
    horizon: int | None = None,
    windows: int = 500,
    decoders: tuple[str, ...] = (),
    own: OwnEnvironments = (),
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Imagined rollout on from frames of new play under the recorded actions, and follow the creatures through the imagined rollout.

    Duplication, disappearance and transmutation are per creature and step; what the simulator itself does stands beside
    them, as creatures do spawn and die there. So do the stay rate and how often tiles change: too few changes are as
    wrong as too many.

    Args:
        runs: Folders of training runs.
        horizon: Steps to imagined rollout; 20 by default, or what the model's context holds if that is less.
        windows: Pieces of play to imagined rollout from, at most.
        decoders: Which to compare; by default all presets but the Sinkhorn ones, and the run's own settings.
        json_file: Also write the numbers to this file; they always go to RUN/measures/hallucination.json.
    """
    from itc.evaluate.truth import measure_hallucination

    measure_runs(
        "hallucinate",
        "hallucination",
        runs,
        decoders,
        json_file,
        {"windows": windows} | ({} if horizon is None else {"horizon": horizon}),
        steps=windows * (horizon or LONGEST),
        own=own,
        measure=lambda trial, chosen: measure_hallucination(
            trial, chosen, horizon or trial.longest_rollout(LONGEST), windows
        ),
    )
