"""What was logged in each iteration, as lines: the mean over seeds with its interval, and each seed."""

from collections.abc import Sequence

from itc.evaluate.metrics import curve
from itc.viewer.report.colours import colour
from itc.viewer.report.line_chart import Line, Mark
from itc.viewer.report.over_seeds import mean_over_seeds
from itc.viewer.report.reading import Group

INTERACTIONS = "interactions with the real environment"
MOST_POINTS = 250  # more than can be seen


def lines_of(one: Group, metric: str, name: str | None = None, dashed: bool = False) -> list[Line]:
    """The mean over seeds where all have a point, and each seed; the group's name by default."""
    found = [points for run in one.runs if (points := curve(run.metrics, metric))]
    if not found:
        return []
    called, shade = one.name if name is None else name, colour(one.number)
    common = _thinned([x for x in found[0] if all(x in points for points in found)])
    singles = [Line(called, shade, list(points), list(points.values()), dashed=dashed, faint=True) for points in found]
    if not common:
        return [single._replace(faint=False) for single in singles]
    estimates = [mean_over_seeds([points[x] for points in found]) for x in common]
    values, lows, highs = ([getattr(one, part) for one in estimates] for part in ("value", "low", "high"))
    if len(found) == 1:
        return [Line(called, shade, common, values, dashed=dashed)]
    return [Line(called, shade, common, values, lows, highs, dashed=dashed), *singles]


def _thinned(xs: list[int]) -> list[int]:
    """At most `MOST_POINTS`, evenly spaced, including the last."""
    every = -(-len(xs) // MOST_POINTS)
    return xs[::-1][::every][::-1] if every > 1 else xs


def warm_ups(groups: Sequence[Group]) -> list[Mark]:
    """Where imagination begins, with the names of the groups if it differs between them."""
    together: dict[int, list[str]] = {}
    for one in groups:
        config = one.runs[0].config
        if config.imagination_after is not None:
            together.setdefault(config.imagination_after, []).append(one.name)
    imagining = {name for names in together.values() for name in names}
    if len(together) == 1:
        without = [one.name for one in groups if one.name not in imagining]
        label = f"imagination begins, except {', '.join(without)}" if without else "imagination begins"
        return [Mark(at, label) for at in together]
    return [Mark(at, f"imagination begins: {', '.join(names)}") for at, names in together.items()]
