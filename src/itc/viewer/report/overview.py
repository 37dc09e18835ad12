"""The top of the page: the runs it is about."""

from collections.abc import Sequence

from itc.viewer.report.colours import colour
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.origin import origin
from itc.viewer.report.reading import Group
from itc.viewer.report.section import Section
from itc.viewer.report.tables import Row, row, table


def title_of(groups: Sequence[Group]) -> str:
    envs = list(dict.fromkeys(one.env for one in groups))
    if len(groups) == 1:
        return groups[0].runs[0].preset
    return f"{len(groups)} groups of runs on {envs[0] if len(envs) == 1 else f'{len(envs)} environments'}"


def overview(groups: Sequence[Group], sections: Sequence[Section]) -> Markup:
    """Title, a row for each group, and links to the sections."""
    runs = sum(len(one.runs) for one in groups)
    what = f"{runs} {'run' if runs == 1 else 'runs'}: token world models, and policies trained in their imagination"
    return element(
        "header",
        element("p", "itc report", class_="kicker"),
        element("h1", title_of(groups)),
        element("p", what, ".", class_="prose"),
        table(("", "environment", "decoder", "seeds", "interactions", "device", "itc", "jax"),
              [_line(one) for one in groups], "Runs"),
        origin(groups),
        element("nav", [element("a", part.title, href=f"#{part.anchor}") for part in sections], aria_label="Sections"),
    )  # fmt: skip


def _line(one: Group) -> Row:
    config, versions = one.runs[0].config, one.runs[0].versions
    costs = [
        f"{name} {cost:g}"
        for name, cost in (("c_d", config.distance_cost), ("c_w", config.wildcard_cost))
        if cost is not None
    ]
    return row(
        [swatch(one.number), one.name],
        one.env,
        ", ".join([config.decoder, *costs]),
        ", ".join(map(str, one.seeds)),
        _interactions(one),
        " ".join(dict.fromkeys(str(versions.get("device", "–")).split())),  # "cpu cpu" becomes "cpu"
        versions.get("itc", "–"),
        versions.get("jax", "–"),
    )


def swatch(index: int) -> Markup:
    return element("i", class_="swatch", style=f"background:{colour(index)}")


def _interactions(one: Group) -> str:
    """Interactions so far, and the total if the run is not finished."""
    config = one.runs[0].config
    whole = config.interactions_after(config.iterations)
    reached = min((run.metrics[-1]["interactions"] if run.metrics else 0) for run in one.runs)
    return f"{reached:,}" if reached >= whole else f"{reached:,} of {whole:,}"
