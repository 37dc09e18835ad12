"""`itc report RUN… -o report.html`: everything about a few runs on one page."""

from pathlib import Path
from typing import Annotated

import tyro

from itc.cli.arguments import OwnEnvironments, Runs
from itc.cli.running import reading


def report(
    runs: Runs,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("report.html"),
    own: OwnEnvironments = (),
) -> None:
    """Write an offline page about one or more runs.

    It has curves, evaluation, imagined rollouts and their accuracy.
    Runs that differ only in their seed form one group. Missing measurements are listed with their commands.

    Args:
        runs: Folders of training runs, or worlds.
        out: File to write the page to.
    """
    from itc.cli.compilation import compile_fast, keep_compiled
    from itc.cli.console import PlainConsole, working
    from itc.train.files import replace_file
    from itc.viewer.report.page import report as page_about
    from itc.worlds import find

    console = PlainConsole()
    with reading("report", own):
        if not runs:
            raise ValueError("name the folder of at least one run")
        compile_fast()  # a few imagined rollouts of ten steps
        keep_compiled()
        with working() as work:
            work.step("reading")
            page = page_about([find(run) for run in runs], work.step)
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, page)
    console.print(f"report: {out}   ({len(page) / 1e6:.1f} MB, opens in any browser)", soft_wrap=True)
