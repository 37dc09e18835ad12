"""`itc presets`: list the training presets."""

import sys
from typing import Annotated

import tyro


def presets(
    of: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[PREFIX]", help_behavior_hint="")] = "",
) -> None:
    """List the training presets, their hardware and published numbers.

    Args:
        of: List only presets whose name begins with this. If not given: all, with Atari's 26 games in one row.
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
    console = PlainConsole(width=None if sys.stdout.isatty() else 160)  # full names in pipes and files
    console.print(table)
    if not of:
        console.print(f"GAME is one of {', '.join(GAMES)}.", soft_wrap=True)
    console.print("`itc train PRESET` runs one; `itc train PRESET --help` lists all settings.")
