"""`itc envs`: the environments and their specifications."""

from itertools import groupby


def envs(names: bool = False) -> None:
    """List all environments with their specifications.

    Args:
        names: Also list the range of rewards and the names of actions, entities and achievements.
    """
    from rich import box
    from rich.table import Table

    from itc.cli.console import PlainConsole
    from itc.envs.registry import ENVIRONMENTS, make
    from itc.extras import MissingExtra

    console = PlainConsole()
    table = Table(title="itc envs", title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    for heading in ("environment", "frame", "values", "tokens", "patch", "actions", "steps"):
        table.add_column(heading, justify="left" if heading == "environment" else "right")
    specs, missing = [], {}
    with console.status("Making every environment …"):
        for name in ENVIRONMENTS:
            try:
                specs.append(make(name).spec)
            except MissingExtra as error:
                missing[name] = error
    for spec in specs:
        shapes = ["×".join(map(str, shape)) for shape in (spec.frame_shape, spec.grid, spec.patch)]
        steps = "any" if spec.episode_length is None else f"≤ {spec.episode_length:,}"
        table.add_row(spec.name, shapes[0], f"0–{spec.frame_max}", *shapes[1:], str(spec.num_actions), steps)
    console.print(table)
    for family, absent in groupby(missing, key=lambda name: name.split("/")[0]):
        first, *others = absent
        subject = f"{first} and {len(others)} more of {family} are" if others else f"{first} is"
        console.print(f"{subject} not there: {missing[first]}")
    if not names:
        console.print("`itc envs --names` adds rewards, actions, entities and achievements.")
        return
    for spec in specs:
        low, high = spec.reward_range
        scale = "" if spec.return_scale is None else f", 100 % = {spec.return_scale:g}"
        console.print(f"{spec.name}   reward {low:g} to {high:g}{scale}", style="bold")
        for heading in ("actions", "entities", "achievements"):
            console.print(f"  {heading}: {', '.join(getattr(spec, heading)) or 'none'}")
