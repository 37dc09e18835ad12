"""`itc presets`: what can be trained."""

import sys
from typing import Annotated

import tyro


def presets(of: Annotated[str, tyro.conf.Positional] = "") -> None:
    """List the training presets, with what they need and what the paper reports for them.

    Args:
        of: Only those whose names begin like this; all by default, Atari's 26 games in one.
    """
    from rich.table import Table

    from itc.cli.console import PlainConsole
    from itc.envs.atari import GAMES
    from itc.presets import PRESETS

    if not any(name.startswith(of) for name in PRESETS):
        sys.exit(f"itc presets: no preset begins with {of!r}")
    first = f"atari/{GAMES[0]}/"

    table = Table(title="itc presets", title_justify="left")
    for heading in ("preset", "decoder", "about", "needs", "published"):
        table.add_column(heading, overflow="fold")
    for name, preset in PRESETS.items():
        shown, published = name, preset.published
        if not of and name.startswith("atari/"):
            if not name.startswith(first):
                continue
            shown, published = name.replace(first, "atari/GAME/"), "`itc presets atari/`" if published else ""
        elif not name.startswith(of):
            continue
        table.add_row(shown, preset.config.decoder, preset.about, preset.hardware, published)
    console = PlainConsole(width=None if sys.stdout.isatty() else 160)  # whole names where nobody can widen a window
    console.print(table)
    if not of:
        console.print(f"GAME is one of {', '.join(GAMES)}.", soft_wrap=True)
    console.print("`itc train PRESET` runs one; `itc train PRESET --help` lists everything that can be changed.")
