"""What a training run prints and logs while it runs."""

import shlex
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from itc.cli.console import PlainConsole
from itc.cli.voice import Voice
from itc.envs.registry import ENVIRONMENTS, training_episodes
from itc.extras import require
from itc.train import checkpoint
from itc.train.checkpoint import Saved
from itc.train.config import TrainConfig
from itc.train.run_folder import RunFolder, flat

SHOWN = {  # metrics in the line of an iteration, after its return
    "score": "score {:.2f} %",
    "world_model/token_loss": "token loss {:.3f}",
    "imagination/reward": "imagined reward {:.3f}",
    "imagination/intrinsic_reward": "of it intrinsic {:.3f}",
    "imagination/impossible": "impossible {:.1%}",
    "codes": "{} codes",
    "evaluation/return": "return in evaluation {:.2f}",
}
NOT_GREETED = ("device", "machine", "commit")  # long, and in versions.json


def greet(preset: str, versions: dict[str, str], kept: str) -> None:
    """The first lines: what runs on what, and what becomes of compiled programs."""
    listed = " · ".join(f"{name} {version}" for name, version in versions.items() if name not in NOT_GREETED)
    PlainConsole().print(f"{preset or 'run'} on {versions['device']} · {listed}", soft_wrap=True)
    PlainConsole().print(kept, soft_wrap=True)


@contextmanager
def screen(config: TrainConfig, run: RunFolder, begun: int, deadline: float | None) -> Generator["Screen"]:
    """A live view on a terminal, plain lines elsewhere; the deadline, if any, is a time of `time.monotonic`."""
    console = PlainConsole()
    where = "starting" if begun == 0 else f"resuming after iteration {begun}"
    many = f"{config.iterations} iterations" if deadline is None else f"{deadline - time.monotonic():.0f} s"
    console.print(
        f"{where}: {many}, {config.interactions_per_iteration:,} interactions per iteration with play, "
        f"decoder {config.decoder}; output in {run.path}",
        soft_wrap=True,
    )
    columns = (
        TextColumn("{task.fields[name]}", markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Screen(console, progress, config, run, begun, deadline)


class Screen(Voice):
    """Prints progress for a person."""

    def __init__(
        self,
        console: PlainConsole,
        progress: Progress,
        config: TrainConfig,
        run: RunFolder,
        begun: int,
        deadline: float | None,
    ):
        super().__init__(console, "starting", live=console.is_terminal)
        self.config, self.run, self.progress = config, run, progress
        self.started, self.begun, self.deadline = time.monotonic(), begun, deadline
        total = config.iterations if deadline is None else None  # None: unknown until the deadline
        self.whole = progress.add_task("", total=total, completed=begun, name="training")
        self.phase = progress.add_task("", total=1, name="iteration")

    def on_compile(self, words: str) -> None:
        self.progress.update(self.phase, description=words)
        super().on_compile(words)

    def on_compiled(self, words: str) -> None:
        super().on_compiled(words)
        self.progress.update(self.phase, description=self.doing)

    def on_part(self, phase: str, done: int, of: int, metrics: dict[str, float]) -> None:
        loss = f" · loss {metrics['loss']:.3f}" if "loss" in metrics else ""
        self.begin(f"{phase} · {done}/{of}{loss}")
        self.progress.update(self.phase, completed=done, total=of, description=f"{phase}{loss}")

    def on_iteration(self, line: dict[str, Any]) -> None:
        seconds = time.monotonic() - self.started
        config, iteration = self.config, line["iteration"]
        speed = (line["interactions"] - config.interactions_after(self.begun)) / seconds
        left = (config.iterations - iteration) * seconds / (iteration - self.begun)
        if self.deadline is not None:
            left = min(left, self.deadline - time.monotonic())
        said = [f"{line['interactions']:,} interactions", _return_of(line, training_episodes(config.env))]
        said += [form.format(line[name]) for name, form in SHOWN.items() if name in line]
        said += [f"{speed:,.0f}/s", f"{max(0, left) / 60:.1f} min left"]
        self.progress.update(self.whole, completed=line["iteration"], description=" · ".join(said[:4]))
        of = "" if self.deadline is not None else f"/{self.config.iterations}"
        self.say(f"{line['iteration']:4d}{of}  {' · '.join(said)}")

    def on_saving(self) -> None:
        self.interrupt("saving a checkpoint")

    def on_save(self, saved: Saved) -> None:
        self.go_on()
        self.say(f"saved {saved.path.name}: {saved.megabytes:,.0f} MB in {saved.seconds:.1f} s")

    def goodbye(self, saved: bool) -> None:
        """Say how to resume after a stop; `saved` is whether the current part was saved."""
        again = f"itc train --resume {shlex.quote(str(self.run.path))}"
        if self.config.env not in ENVIRONMENTS:
            again += f" --env {self.config.env}"
        kept = "Stopped and saved." if saved else f"Stopped at once. {self._last_checkpoint()}"
        self.say(f"{kept} `{again}` resumes.")

    def _last_checkpoint(self) -> str:
        found = checkpoint.names(self.run.checkpoints)
        return f"The last checkpoint is {found[-1]}." if found else "There was no checkpoint yet."

    def close(self) -> None:
        pass

    def farewell(self, curve: Path | None, imagination: Path | None) -> None:
        """Say where the results are."""
        shown = {
            "return curve": curve,
            "real and imagined frames": imagination,
            "checkpoints": self.run.checkpoints,
            "metrics": self.run.metrics,
        }
        for what, path in shown.items():
            if path is not None:
                self.say(f"{what}: {path}")


def _return_of(line: dict[str, Any], of: str) -> str:
    """Of the episodes that ended in this iteration, or else of those that have not ended yet; nothing is shown for an
    iteration without play."""
    if "return" in line:
        return f"return {line['return']:.2f} {of}".rstrip()
    if "play" not in line["seconds"]:
        return "no play"
    return f"no episode ended, running return {line['running_return']:.2f}"


class Quiet:
    """Ignores all events; callbacks override those they need."""

    def on_part(self, phase: str, done: int, of: int, metrics: dict[str, float]) -> None:
        pass

    def on_iteration(self, line: dict[str, Any]) -> None:
        pass

    def on_saving(self) -> None:
        pass

    def on_save(self, saved: Saved) -> None:
        pass

    def close(self) -> None:
        pass


class TensorBoard(Quiet):
    """Logs to TensorBoard."""

    def __init__(self, run: RunFolder, begun: int):
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(run.path / "tensorboard"), purge_step=begun + 1, flush_secs=10)

    def on_iteration(self, line: dict[str, Any]) -> None:
        for name, value in numbers(line).items():
            self.writer.add_scalar(name, value, line["iteration"])
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class Tracker(Quiet):
    """Logs to Weights & Biases or trackio, which have the same interface."""

    def __init__(self, run: RunFolder, service: str):
        self.service_run = import_module(service).init(project="itc", name=run.path.name)

    def on_iteration(self, line: dict[str, Any]) -> None:
        self.service_run.log(numbers(line), step=line["iteration"])

    def close(self) -> None:
        self.service_run.finish()


def numbers(line: dict[str, Any]) -> dict[str, int | float]:
    return {name: value for name, value in flat(line).items() if isinstance(value, int | float)}


def check_loggers(services: tuple[str, ...]) -> None:
    """Stop if a service to log to is not installed."""
    for service in services:
        require(service, extra=service, purpose=f"--log {service}")


def loggers(run: RunFolder, begun: int, services: tuple[str, ...]) -> list[Any]:
    return [TensorBoard(run, begun), *(Tracker(run, service) for service in services)]
