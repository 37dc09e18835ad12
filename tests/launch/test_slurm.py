"""The script for SLURM, executed as SLURM would: with bash, once for each index of the array."""

import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from commands import ITC, program
from itc.launch.job import Job, LaunchError
from itc.launch.shared_folder import mark
from itc.launch.slurm import Slurm
from launch.test_local import python
from launch.test_process import SAVING, wait_for
from train.tiny import TINY, words_of


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Stands in for SLURM's commands: each notes how it was called. `squeue` lists what `queue` holds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    answers = {"sbatch": "echo '77;cluster'", "squeue": f"cat {tmp_path}/queue 2>/dev/null", "scontrol": ":"}
    for name, answer in answers.items():
        tool = folder / name
        tool.write_text(f'#!/bin/bash\necho "{name} $*" >>{tmp_path}/called\n{answer}\n')
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def written(folder, jobs, **options) -> Path:
    """The script, in a file."""
    script = folder / "script"
    script.write_text(Slurm(folder, **options).script(jobs, mark(folder)))
    return script


def element(script, index) -> subprocess.Popen:
    """One element of the array."""
    ids = {"SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": str(index)}
    return subprocess.Popen(
        ["bash", str(script)], env=os.environ | ids, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def code_of(one) -> int:
    """Its code, once it has ended."""
    said = one.communicate(timeout=300)
    assert said == ("", "")
    return one.returncode


def test_every_element_runs_its_own_commands(tmp_path):
    folder = tmp_path / "runs of $HOME"  # which a shell must leave alone
    folder.mkdir()
    say = "import os, sys; print(sys.argv[1:], os.environ['JAX_PLATFORMS'], repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    jobs = [
        Job(f"{n}", [[*python(say), f"it's {n}"], python("print('two')")], folder / f"{n}" / "log") for n in range(3)
    ]
    script = written(folder, jobs)
    for index, job in enumerate(jobs):
        assert code_of(element(script, index)) == 0
        assert job.log.read_text() == f"[\"it's {index}\"] cpu ''\ntwo\n"
        assert not job.failure.exists()


def test_a_failure_is_noted_and_ends_its_element(tmp_path):
    job = Job("bad", [python("raise SystemExit(5)"), python("print('never')")], tmp_path / "bad" / "sweep.log")
    one = element(written(tmp_path, [job]), 0)
    assert code_of(one) == 5
    assert (job.log.read_text(), job.failure.read_text()) == ("", "5\n")
    (tmp_path / ".shared").write_text("other")
    one = element(tmp_path / "script", 0)
    _, said = one.communicate()
    assert one.returncode == 1
    assert f"does not see {tmp_path} as it is where the script was written" in said


@pytest.mark.parametrize(("number", "comes_back"), [(signal.SIGUSR1, True), (signal.SIGTERM, False)])
def test_before_the_time_limit_a_run_saves_and_is_queued_again_but_not_after_scancel(tools, number, comes_back):
    job = Job("long", [[*python(SAVING), str(tools)], python("print('never')")], tools / "log")
    one = element(written(tools, [job]), 0)
    wait_for((tools / "begun").exists)
    one.send_signal(number)
    assert code_of(one) == 143
    assert (tools / "saved").exists(), "it got SIGTERM, and was waited for"
    assert job.log.read_text() == ""
    assert not job.failure.exists()
    called = (tools / "called").read_text() if (tools / "called").exists() else ""
    assert called == ("scontrol requeue 77_0\n" if comes_back else "")


def test_the_script_asks_for_what_the_runs_need(tmp_path):
    folder = tmp_path / "100%"
    jobs = [Job(str(number), [["true"]], folder / str(number) / "log") for number in range(12)]
    lines = Slurm(folder, cpus=8, gpus=1, at_once=4).script(jobs, "text").splitlines()
    asked = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
    for option in ("--array=0-11%4", "--cpus-per-task=8", "--gres=gpu:1", "--requeue", "--signal=B:USR1@120"):
        assert option in asked
    assert f'--output="{tmp_path}/100%%/slurm-%a.log"' in asked
    assert not any("CUDA_VISIBLE_DEVICES" in line for line in lines)
    assert lines[0] == "#!/bin/bash"


def test_it_is_submitted_once(tools, capsys):
    slurm, jobs = Slurm(tools), [Job("one", [["true"]], tools / "log")]
    assert slurm.run(jobs, lambda: None) == []
    assert (tools / "called").read_text() == f"sbatch --parsable {tools}/slurm.sh\n"
    assert "submitted as job 77: `scancel 77` stops it" in capsys.readouterr().out
    (tools / "queue").write_text("77_0 waits\n")
    with pytest.raises(LaunchError, match="job 77 of these runs is still queued"):
        slurm.run(jobs, lambda: None)
    (tools / "queue").write_text("")
    slurm.run(jobs, lambda: None)
    assert "squeue --noheader --jobs 77\n" in (tools / "called").read_text()


def test_without_slurm_it_says_how_and_what_slurm_refuses_is_said(tmp_path, tools, monkeypatch, capsys):
    slurm, jobs = Slurm(tmp_path / "my runs"), [Job("one", [["true"]], tmp_path / "log")]
    (tools / "bin" / "sbatch").write_text("#!/bin/bash\necho 'invalid partition' >&2\nexit 1\n")
    with pytest.raises(LaunchError, match=r"sbatch .* failed: invalid partition"):
        slurm.run(jobs, lambda: None)
    monkeypatch.setenv("PATH", "")
    slurm.run(jobs, lambda: None)
    assert f"`sbatch '{tmp_path}/my runs/slurm.sh'` submits it" in capsys.readouterr().out
    with pytest.raises(LaunchError, match="quotation mark"):
        Slurm(tmp_path / 'a"b').script(jobs, "text")


@pytest.mark.slow
def test_a_sweep_whose_time_runs_out_again_and_again_ends_as_if_it_had_not(tools):
    """By `itc sweep --on slurm`, with tiny agents; SIGUSR1 after every few iterations."""
    preset, *settings = " ".join([*words_of(replace(TINY, interactions=8 * 4 * 12)), "--save-every", "1"]).split(" --")
    grid = [setting.replace(" ", "=", 1) for setting in settings]
    command = ("sweep", preset, "--train", "--grid", "seed=0,1", *grid, "--out", str(tools / "runs"),
               "--episodes", "2", "--on", "slurm")  # fmt: skip
    said = program(*command).stdout
    assert "2 runs" in said
    assert "submitted as job 77" in said
    for index in (0, 1):
        attempts = 0
        while True:
            one, log = element(tools / "runs" / "slurm.sh", index), f"seed={index},*/metrics.jsonl"
            before = sum(file.read_text().count("\n") for file in (tools / "runs").glob(log))
            while one.poll() is None and attempts < 2:
                after = sum(file.read_text().count("\n") for file in (tools / "runs").glob(log))
                if after > before:
                    one.send_signal(signal.SIGUSR1)
                    attempts += 1
                    break
                time.sleep(0.05)
            if code_of(one) == 0:
                break
            assert one.returncode == 143
        assert attempts == 2
    assert (tools / "called").read_text().count("scontrol requeue") == 4
    finished = program(*command)
    assert "2 of them done" in finished.stdout
    assert "| creatures/quick" in finished.stdout or re.search(r"\| 2 +\|", finished.stdout)
    for seed in (0, 1):
        words = [word for setting in settings for word in f"--{setting}".split()]
        run = str(tools / "undisturbed" / str(seed))
        assert subprocess.run([*ITC, "train", preset, *words, "--seed", str(seed), "--run", run]).returncode == 0
        (swept,) = (tools / "runs").glob(f"seed={seed},*")
        digests = [re.search("digest: .*", program("inspect", str(folder)).stdout)[0] for folder in (run, swept)]
        assert digests[0] == digests[1]
