"""`itc presets`: what can be trained."""

import sys


def presets() -> None:
    """List the training presets, with what they need and what the paper reports for them."""
    from rich.console import Console
    from rich.table import Table

    from itc.presets import PRESETS

    table = Table(title="itc presets", title_justify="left")
    for heading in ("preset", "decoder", "about", "needs", "published"):
        table.add_column(heading, overflow="fold")
    for name, preset in PRESETS.items():
        table.add_row(name, preset.config.decoder, preset.about, preset.hardware, preset.published)
    console = Console(width=None if sys.stdout.isatty() else 160)  # whole names where nobody can widen a window
    console.print(table)
    console.print("`itc train PRESET` runs one; `itc train PRESET --help` lists everything that can be changed.")
