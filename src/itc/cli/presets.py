"""`itc presets`: list the training presets."""

import sys
from textwrap import fill
from typing import Annotated

import tyro

WIDE = 120  # columns of a terminal in which a table has room


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
    console = PlainConsole(width=None if sys.stdout.isatty() else 160)  # a table in pipes and files
    rows = _rows(of)
    if console.width >= WIDE:
        table = Table(title="itc presets", title_justify="left")
        for heading in ("preset", "decoder", "about", "needs", "published"):
            table.add_column(heading, no_wrap=heading == "preset", overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    else:
        for name, decoder, about, needs, published in rows:
            facts = [about, f"decoder {decoder}", needs, *([f"published: {published}"] if published else [])]
            console.print(name, style="bold")
            console.print(fill("; ".join(facts), console.width, initial_indent="  ", subsequent_indent="  "))
    if not of:
        console.print(f"GAME is one of {', '.join(GAMES)}.", soft_wrap=True)
    console.print("`itc train PRESET` runs one; `itc train PRESET --help` lists all settings.")


def _rows(of: str) -> list[tuple[str, str, str, str, str]]:
    """Name, decoder, description, hardware and published number of each preset."""
    from itc.envs.atari import GAMES
    from itc.presets import PRESETS

    first = f"atari/{GAMES[0]}/"
    rows = []
    for name, preset in PRESETS.items():
        shown, published = name, preset.published
        if not of and name.startswith("atari/"):
            if not name.startswith(first):
                continue
            shown, published = name.replace(first, "atari/GAME/"), "`itc presets atari/`" if published else ""
        elif not name.startswith(of):
            continue
        rows.append((shown, preset.config.decoder, preset.about, preset.hardware, published))
    return rows
