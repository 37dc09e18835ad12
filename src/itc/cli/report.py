"""`itc report RUN… -o report.html`: everything about a few runs on one page."""

import sys
from pathlib import Path
from typing import Annotated

import tyro


def report(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html"),
) -> None:
    """Write a page about one or more runs that needs no network: curves, evaluation, dreams and how true they are.

    Runs that differ only in their seed are shown as one. What is not measured yet is named with the command for it.

    Args:
        runs: Folders of training runs.
        out: The page to write.
    """
    from rich.console import Console

    from itc.compilation import keep_compiled
    from itc.extras import require
    from itc.train.checkpoint import CheckpointError
    from itc.train.run_folder import RunError
    from itc.viewer.report.page import report as page_about

    require("matplotlib", "PIL", extra="train", purpose="`itc report`")
    if not runs:
        sys.exit("itc report: name the folder of at least one run")
    keep_compiled()
    console = Console()
    try:
        with console.status("reading …") as status:
            page = page_about(runs, lambda said: status.update(f"{said} …"))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    except (RunError, CheckpointError, ValueError, OSError) as problem:
        sys.exit(f"itc report: {problem}")
    console.print(f"report: {out}   ({len(page) / 1e6:.1f} MB, opens in any browser)", soft_wrap=True)
