"""`itc fsck RUN`: check a run folder for damaged files."""

import sys

from itc.cli.arguments import OwnEnvironments, Run
from itc.cli.running import reading


def fsck(run: Run, repair: bool = False, own: OwnEnvironments = ()) -> None:
    """Check a run folder for damaged files.

    Verifies config, metrics, measurements and every checkpoint. The exit code is 1 if something is wrong.

    Args:
        run: Folder of a training run, or a world.
        repair: Move damaged checkpoints and unreadable lines of metrics aside, and delete unfinished files.
    """
    from contextlib import nullcontext

    from itc.evaluate.fsck import check_run
    from itc.train.lock import locked
    from itc.worlds import find

    wrong = 0
    with reading("fsck", own):
        run = find(run)
        if not run.is_dir():
            raise ValueError(f"{run} is not a folder")
        with locked(run) if repair else nullcontext():
            for what, problem, note, fix in check_run(run):
                if not problem:
                    print(f"good   {what}{f': {note}' if note else ''}")
                elif repair and fix is not None:
                    print(f"FIXED  {what}: {problem}; {fix()}")
                else:
                    wrong += 1
                    print(f"WRONG  {what}: {problem}")
    if wrong:
        hint = "" if repair else "; --repair fixes what can be fixed"
        sys.exit(f"itc fsck: {wrong} {'things are' if wrong > 1 else 'thing is'} wrong in {run}{hint}")
    print("Everything is good.")
