"""`itc envs`: which environments are there, and what do they look like?"""


def envs() -> None:
    """List all environments with their specifications."""
    from rich.console import Console
    from rich.table import Table

    from itc.envs.registry import ENVIRONMENTS, make
    from itc.extras import MissingExtra

    console = Console()
    table = Table(title="itc envs", title_justify="left")
    table.add_column("environment", no_wrap=True)
    for heading in ("frame", "tokens", "patch", "actions", "achievements", "reward", "episode", "entities"):
        table.add_column(heading, justify="left" if heading == "entities" else "right")
    with console.status("Making every environment …"):
        for name in ENVIRONMENTS:
            try:
                spec = make(name).spec
            except MissingExtra as missing:
                table.add_row(name, str(missing))
                continue
            table.add_row(
                name,
                f"{'×'.join(map(str, spec.frame_shape))}, 0–{spec.frame_max}",
                "×".join(map(str, spec.grid)),
                "×".join(map(str, spec.patch)),
                str(spec.num_actions),
                str(len(spec.achievements)),
                " … ".join(f"{bound:g}" for bound in spec.reward_range),
                "–" if spec.episode_length is None else f"≤ {spec.episode_length:,}",
                ", ".join(spec.entities[1:]),
            )
    console.print(table)
