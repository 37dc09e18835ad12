"""`itc hallucinate RUN…`: creatures that are duplicated, lost or changed in imagined rollouts."""

from itc.cli.arguments import Decoders, JsonFile, OwnEnvironments, Runs
from itc.cli.measuring import measure_runs


def hallucinate(
    runs: Runs,
    horizon: int = 20,
    initial_frames: int | None = None,
    windows: int = 500,
    decoders: Decoders = (),
    own: OwnEnvironments = (),
    json_file: JsonFile = None,
) -> None:
    """Count creatures duplicated or lost in imagined rollouts.

    The rollouts start from held-out play and follow its recorded actions.
    Duplication, disappearance and transmutation are per creature and step. The simulator's own rates are printed next
    to them, as creatures also spawn and die there. So are the stay rate and the rate at which tiles change: too few
    changes are as wrong as too many.

    Args:
        runs: Folders of training runs, or worlds.
        horizon: Steps of each imagined rollout. When the model's context is full, it goes on from its second half.
        initial_frames: Real frames that a rollout starts from. If not given: as many as in training.
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
        {"windows": windows, "horizon": horizon},
        steps=windows * (horizon + (initial_frames or 1)),
        own=own,
        one_by_one=True,
        measure=lambda trial, chosen: measure_hallucination(trial, chosen, horizon, windows, initial_frames),
    )
