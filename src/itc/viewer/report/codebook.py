"""The codebook: every code in use."""

from collections.abc import Sequence

from itc.train.runs import Run
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.pixels import contact_sheet, data_uri
from itc.viewer.report.section import Section, prose

LARGE = 28  # approximate width of a code on the screen, in pixels
COLUMNS = 32


def codebook(sheets: Sequence[Markup]) -> Section | None:
    """The sheets of all groups; None while no run has codes."""
    if not sheets:
        return None
    return Section("codebook", "The codebook", (prose("Every code in use."), *sheets))


def sheet_of(name: str, run: Run) -> Markup | None:
    """All codes of a run."""
    if not run.codes:
        return None
    pictures, most, note = run.agent.code_pictures(run.state)
    size, height, width, _ = pictures.shape
    sheet = contact_sheet(pictures, run.env.spec.frame_max, min(size, COLUMNS))
    scale = max(1, round(LARGE / width))
    said = f"{size:,} of at most {most:,} codes, {height}×{width} pixels each, {note}"
    picture = element(
        "img", src=data_uri(sheet), alt=f"The codes of {name}", class_="pixels", width=scale * sheet.shape[1],
        height=scale * sheet.shape[0],
    )  # fmt: skip
    return element("figure", element("figcaption", element("b", name), " ", element("small", said)), picture,
                   class_="sheet")  # fmt: skip
