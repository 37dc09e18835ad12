"""Jobs as an array of SLURM: a script with a case for each, which saves and queues itself again when time runs out."""

import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from itc.launch.job import NO_GPU, STOPPED, Job, LaunchError, share
from itc.launch.shared_folder import MARKER, mark
from itc.train.files import replace_file

AHEAD = 120  # seconds before the time limit
SCRIPT, SUBMITTED = "slurm.sh", "slurm.job"  # in the runs folder: the script, and the number SLURM gave it

# SIGUSR1 and not SIGTERM from SLURM: `scancel` sends SIGTERM, too, and what was cancelled must not come back.
BODY = """\
run= stopped= again=
stop() { stopped=yes; [ -z "$run" ] || kill -TERM "$run" 2>/dev/null; }
trap stop TERM INT
trap 'again=yes; stop' USR1

begin() {  # LOG FAILURE
    log=$1 failure=$2
    mkdir -p "$(dirname "$log")" && touch "$log" && rm -f "$failure"
}

step() {  # COMMAND, in the background: while a shell waits for one in the foreground, it hears no signal
    [ -z "$stopped" ] || return 143
    "$@" </dev/null >>"$log" 2>&1 &
    run=$!
    wait "$run"; code=$?
    while kill -0 "$run" 2>/dev/null; do wait "$run"; code=$?; done  # a signal ends `wait`, not the command
    run=
    return "$code"
}
"""
END = """\
code=$?
[ -z "$stopped" ] || code=143
case $code in 0STOPPED) ;; *) echo "$code" >"$failure" ;; esac
if [ -n "$again" ]; then scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"; fi
exit $code
"""


@dataclass(frozen=True)
class Slurm:
    """A SLURM cluster; the jobs stay with it when the command ends."""

    folder: Path  # of all runs, which every node must see
    cpus: int = 1
    gpus: int = 0
    at_once: int | None = None  # None: as many as SLURM allows

    @property
    def about(self) -> str:
        return f"on SLURM, {share(self.cpus, self.gpus)}"

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> list[Job]:
        """Write the script, and submit it if SLURM is here; none of the jobs has failed yet."""
        self._check_not_queued()
        script = self.folder / SCRIPT
        text = self.script(jobs, mark(self.folder))
        replace_file(script, text)
        typed = f"sbatch {shlex.quote(str(script))}"
        if shutil.which("sbatch") is None:
            print(f"{script} is written; there is no sbatch here: `{typed}` submits it where there is", flush=True)
            return []
        finished = subprocess.run(["sbatch", "--parsable", str(script)], capture_output=True, text=True)
        if finished.returncode != 0:
            raise LaunchError(f"`{typed}` failed: {' '.join(finished.stderr.split())}")
        number = finished.stdout.strip().split(";")[0]  # the cluster's name may follow
        replace_file(self.folder / SUBMITTED, f"{number}\n")
        print(
            f"{script} is submitted as job {number}: `scancel {number}` stops it, --status shows how far it is",
            flush=True,
        )
        return []

    def script(self, jobs: Sequence[Job], text: str) -> str:
        """The script of an array with one element for each job."""
        folder = str(self.folder)
        if "\n" in folder or '"' in folder:
            raise LaunchError(f"SLURM cannot write to a folder with a line break or a quotation mark in it: {folder!r}")
        limit = "" if self.at_once is None else f"%{self.at_once}"
        options = [
            "--job-name=itc",
            f"--array=0-{len(jobs) - 1}{limit}",
            "--ntasks=1",
            f"--cpus-per-task={self.cpus}",
            *([f"--gres=gpu:{self.gpus}"] if self.gpus else []),
            "--requeue",  # after a machine failed or was needed for something else
            "--open-mode=append",
            f'--output="{folder.replace("%", "%%")}/slurm-%a.log"',
            f"--signal=B:USR1@{AHEAD}",
        ]
        marker = shlex.quote(str(self.folder / MARKER))
        unseen = shlex.quote(f" does not see {folder} as it is where the script was written")
        return "\n".join([
            "#!/bin/bash",
            *(f"#SBATCH {option}" for option in options),
            f"# {AHEAD} s before the time limit a run gets SIGTERM, saves and is queued again; its commands resume it.",
            "",
            f'[ "$(cat {marker})" = {text} ] || {{ echo "$(hostname)"{unseen} >&2; exit 1; }}',
            *([] if self.gpus else [f"export {' '.join(f'{name}={value}' for name, value in NO_GPU.items())}"]),
            BODY,
            'case "$SLURM_ARRAY_TASK_ID" in',
            *(line for index, job in enumerate(jobs) for line in _case(index, job)),
            "esac",
            END.replace("STOPPED", "".join(f"|{code}" for code in STOPPED if code > 0)),
        ])  # fmt: skip

    def _check_not_queued(self) -> None:
        """Two jobs would train the same run."""
        file = self.folder / SUBMITTED
        if not file.is_file() or shutil.which("squeue") is None:
            return
        number = file.read_text().strip()
        queued = subprocess.run(["squeue", "--noheader", "--jobs", number], capture_output=True, text=True)
        if queued.returncode == 0 and queued.stdout.strip():  # SLURM forgets jobs that have ended: an error then
            raise LaunchError(f"job {number} of these runs is still queued; wait for it, or stop it: scancel {number}")


def _case(index: int, job: Job) -> list[str]:
    """What element `index` of the array does."""
    begin = shlex.join(["begin", str(job.log), str(job.failure)])
    steps = [shlex.join(["step", *command]) for command in job.commands]
    return [f"{index})", *(f"    {line} &&" for line in [begin, *steps[:-1]]), f"    {steps[-1]} ;;"]
