"""`itc hallucinate RUN…`: creatures that are duplicated, lost or changed in imagined rollouts."""

from itc.cli.arguments import Decoders, JsonFile, OwnEnvironments, Runs
from itc.cli.measuring import measure_runs

LONGEST = 20  # steps, unless asked for more


def hallucinate(
    runs: Runs,
    horizon: int | None = None,
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
        one_by_one=True,
        measure=lambda trial, chosen: measure_hallucination(
            trial, chosen, horizon or trial.longest_rollout(LONGEST), windows
        ),
    )
