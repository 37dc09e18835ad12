"""`itc hallucinate RUN…`: creatures that are duplicated, lost or changed in imagined rollouts."""

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
    """Start imagined rollouts from held-out play, follow its recorded actions, and count what happens to creatures.

    Duplication, disappearance and transmutation are per creature and step. The simulator's own rates are printed next
    to them, as creatures also spawn and die there. So are the stay rate and the rate at which tiles change: too few
    changes are as wrong as too many.

    Args:
        runs: Folders of training runs.
        horizon: Steps of each imagined rollout. If not given: 20, or the model's context length if that is shorter.
        windows: Maximum number of imagined rollouts per decoder.
        decoders: Decoders to compare. If not given: all presets except the Sinkhorn ones, and the run's own decoder.
        json_file: Also write the numbers to this file. They are always written to RUN/measures/hallucination.json.
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
