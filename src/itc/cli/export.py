"""`itc export RUN FOLDER`: make a world of a run."""

from pathlib import Path
from typing import Annotated

import tyro

from itc.cli.arguments import OwnEnvironments, Run
from itc.cli.running import reading


def export(
    run: Run,
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")],
    windows: int = 256,
    own: OwnEnvironments = (),
) -> None:
    """Make a world of a run: a small folder to play in.

    It holds config, weights, codebook, windows of real play to start from, versions, digests and a card. Every command
    that takes RUN takes such a folder.

    Args:
        run: Folder of a training run.
        folder: New folder for the world. Its name is the world's name.
        windows: Number of windows to start from, at most.
    """
    from itc.cli.compilation import keep_compiled
    from itc.cli.console import PlainConsole, working
    from itc.evaluate.export import export as export_run
    from itc.train.runs import load
    from itc.train.world_folder import MOST_WINDOWS, read_notes

    with reading("export", own):
        if not 1 <= windows <= MOST_WINDOWS:
            raise ValueError(f"windows must be in 1..{MOST_WINDOWS}, got {windows}")
        keep_compiled()
        with working() as work:
            work.step(f"loading {run}")
            export_run(load(run), folder, windows, work.step)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        identity = read_notes(folder).identity
    PlainConsole().print(f"world: {folder}   ({size / 1e6:.2f} MB, digest {identity[:16]}…)", soft_wrap=True)
