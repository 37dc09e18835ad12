"""The words dreams are made of: every code in use."""

from collections.abc import Sequence

import numpy as np

from itc.runs import Run
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.pixels import contact_sheet, data_uri
from itc.viewer.report.section import Section, prose

LARGE = 28  # pixels of the screen that a code is about as wide as


def codebook(sheets: Sequence[Markup]) -> Section | None:
    """Sheets of the groups; None while nobody has any codes."""
    if not sheets:
        return None
    note = prose("Every patch that became a code, in the order in which they were found.")
    return Section("codebook", "The codebook", (note, *sheets))


def sheet_of(name: str, run: Run) -> Markup | None:
    """All codes of a run."""
    if not run.codes:
        return None
    size, room = run.codes, len(run.state.codebook.patches)
    patches = np.asarray(run.state.codebook.patches[:size])
    columns = min(size, 32)
    sheet = contact_sheet(patches, run.env.spec.frame_max, columns)
    scale = max(1, round(LARGE / patches.shape[2]))
    said = f"{size:,} of at most {room:,} codes, {patches.shape[1]}×{patches.shape[2]} pixels each"
    picture = element(
        "img", src=data_uri(sheet), alt=f"The codes of {name}", class_="pixels", width=scale * sheet.shape[1],
        height=scale * sheet.shape[0],
    )  # fmt: skip
    return element("figure", element("figcaption", element("b", name), " ", element("small", said)), picture,
                   class_="sheet")  # fmt: skip
