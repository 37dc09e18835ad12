"""`itc envs`: the environments and their specifications."""

from itertools import groupby


def envs(names: bool = False) -> None:
    """List the environments: frames, tokens, actions, episode lengths.

    Args:
        names: Also list the range of rewards and the names of actions, entities and achievements.
    """
    from rich import box
    from rich.table import Table

    from itc.cli.console import PlainConsole
    from itc.envs.listing import listing

    console = PlainConsole()
    table = Table(title="itc envs", title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    for heading in ("environment", "frame", "values", "tokens", "patch", "actions", "steps"):
        table.add_column(heading, justify="left" if heading == "environment" else "right")
    for env in listing():
        shapes = ["×".join(map(str, shape)) for shape in (env.frame_shape, env.grid, env.patch)]
        steps = "any" if env.episode_length is None else f"≤ {env.episode_length:,}"
        table.add_row(env.name, shapes[0], f"0–{env.frame_max}", *shapes[1:], str(len(env.actions)), steps)
    console.print(table)
    for line in _missing([env.name for env in listing()]):
        console.print(line)
    if not names:
        console.print("`itc envs --names` adds rewards, actions, entities and achievements.")
        return
    for env in listing():
        low, high = env.reward_range
        scale = "" if env.return_scale is None else f", 100 % = {env.return_scale:g}"
        console.print(f"{env.name}   reward {low:g} to {high:g}{scale}", style="bold")
        for heading in ("actions", "entities", "achievements"):
            console.print(f"  {heading}: {', '.join(getattr(env, heading)) or 'none'}")


def _missing(names: list[str]) -> list[str]:
    """A sentence for each family of environments that lacks a package."""
    from itc.extras import MissingExtra, require_for

    sentences = []
    for family, members in groupby(names, key=lambda name: name.split("/")[0]):
        first, *others = members
        try:
            require_for(first)
        except MissingExtra as missing:
            subject = f"{first} and {len(others)} more of {family} cannot" if others else f"{first} cannot"
            sentences.append(f"{subject} be made here: {missing}")
    return sentences
