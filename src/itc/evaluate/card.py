"""The card of a world: how it was trained, how true it is, how well its policy plays, and what it cannot do."""

from itc.evaluate.hallucination import SIMULATOR
from itc.evaluate.records import MEASURES, Measure, read_measures
from itc.train.config import AS_TRAINED
from itc.train.run_folder import RunFolder
from itc.train.runs import Run

TRUTH = {  # in the card, with the measures of `itc hallucinate`
    "duplication": "creatures duplicated, per creature and step",
    "disappearance": "creatures that vanish, per creature and step",
    "transmutation": "creatures that change their kind, per creature and step",
    "stay rate": "creatures that stay where they are",
    "novelty: tiles elsewhere": "tiles that change away from the player, per frame",
}


def card(run: Run, name: str, command: str, windows: int) -> str:
    """The text of README.md."""
    spec = run.env.spec
    lines = [
        f"# {name}",
        "",
        f'A learned world model of `{spec.name}` to play in: `itc play {name}`, or `itc.load("{name}")` in Python.',
        "",
        "## How it was trained",
        "",
        f"    {command}",
        "",
        f"{run.interactions:,} steps in the real environment, {int(run.state.iteration):,} iterations, decoder "
        f"`{run.config.decoder}`, {run.codes:,} codes of {spec.grid[0]}×{spec.grid[1]} tokens per frame. All settings "
        "are in config.json, the versions of all packages in versions.json.",
        "",
        "## How true it is",
        "",
        *_truth(run),
        "",
        "## How well its policy plays",
        "",
        _play(run),
        "",
        "## What it cannot do",
        "",
        *_limits(run, windows),
        "",
    ]
    return "\n".join(lines)


def _measures(run: Run, what: str) -> list[Measure]:
    file = run.path / MEASURES / f"{what}.json"
    return read_measures(file) if file.is_file() else []


def _truth(run: Run) -> list[str]:
    chosen = [one for one in _measures(run, "accuracy") if one.measure.startswith(("exact", "plausible"))]
    chosen = [one for one in chosen if one.decoder in _own_decoders(run) and " · " not in one.measure]
    lines = [f"- frames right, one step ahead, {one.measure}, `{one.decoder}`: {one.value:.1%}" for one in chosen[:6]]
    found = _measures(run, "hallucination")
    by = {(one.decoder, one.measure): one.value for one in found}
    for measure, words in TRUTH.items():
        if (SIMULATOR, measure) in by:
            values = [f"`{who}` {by[who, measure]:.4g}" for who in _own_decoders(run) if (who, measure) in by]
            lines.append(f"- {words}: {', '.join(values)}; in the simulator {by[SIMULATOR, measure]:.4g}")
    return lines or ["Not measured yet: `itc accuracy` and `itc hallucinate` measure it."]


def _own_decoders(run: Run) -> tuple[str, ...]:
    return tuple(dict.fromkeys((run.config.decoder, AS_TRAINED, "sample")))


def _play(run: Run) -> str:
    numbers = RunFolder(run.path).read_evaluation()
    if numbers is None:
        return "Not evaluated yet: `itc evaluate` plays it."
    interval = numbers.get("return_interval")
    spread = f" (95 % interval {interval[0]:.2f} … {interval[1]:.2f})" if interval else ""
    return (
        f"Mean return {numbers['return']:.2f}{spread} in {numbers['episodes']:,} episodes on held-out seeds; random "
        f"play {numbers['random_return']:.2f}."
    )


def _limits(run: Run, windows: int) -> list[str]:
    world = run.world()
    # A model that sees the current frame only has no limit.
    context = f"- It conditions on at most {world.max_context} frames: what it saw earlier it has forgotten."
    lines = [context] if world.max_context < 10_000 else []
    lines += [
        "- It has seen only what its policy reached while training; elsewhere it makes things up.",
        "- Rewards are predicted, not counted by the game's rules.",
        f"- Play starts from one of {windows} windows of real play, not from anywhere.",
    ]
    if not run.env.pure:
        lines.append("- The real game cannot be put into the state of a window: beside it, another episode is played.")
    return lines
