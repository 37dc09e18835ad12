"""`itc accuracy RUN…`: how often each decoder predicts the next frame correctly."""

from itc.cli.arguments import Decoders, JsonFile, OwnEnvironments, Runs
from itc.cli.measuring import measure_runs


def accuracy(
    runs: Runs,
    transitions: int = 10_000,
    decoders: Decoders = (),
    own: OwnEnvironments = (),
    json_file: JsonFile = None,
) -> None:
    """Measure how often each decoder predicts the next frame correctly.

    A run's world model predicts single steps of held-out play; every decoder decodes the same predictions.

    `exact`: every token is correct. `plausible`: the frame is a possible next frame; brightness and newly visible edges
    do not count.
    Compare both with the stay rate of `itc hallucinate`: a model in which nothing moves scores well here.

    Args:
        runs: Folders of training runs, or worlds.
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
