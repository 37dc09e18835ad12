"""`itc train PRESET`: the whole agent, resumable at any time."""

import os
import signal
import sys
import time
import warnings
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, cast

import tyro

from itc.cli.running import reading, sentences
from itc.cli.watch import Quiet, check_loggers, loggers, screen
from itc.compilation import keep_compiled
from itc.envs.base import Environment
from itc.envs.registry import allow, make
from itc.presets import find
from itc.runs import Run, load
from itc.settings import Count, CountOrZero, Positive, Settings
from itc.train import checkpoint, loop
from itc.train.agents import agent_of
from itc.train.config import TrainConfig
from itc.train.lock import locked
from itc.train.patch_agent.config import PatchConfig
from itc.train.run_folder import RunFolder, versions
from itc.train.state import check_memory, layout_of
from itc.viewer.run_pictures import draw_curve, draw_dreams

PATIENCE = 8.0  # seconds that a piece of work may take to end after a signal

AnyConfig = TypeVar("AnyConfig", bound=TrainConfig)


@dataclass(frozen=True)
class TrainArguments(Settings, Generic[AnyConfig]):
    """Train an agent. The same command again goes on where it stopped, with a larger number of iterations too."""

    preset: tyro.conf.Positional[str] = ""  # one of `itc presets`
    run: Path | None = None  # folder of the run; runs/PRESET-SEED by default
    resume: Path | None = None  # go on with this run, as it was set up
    from_scratch: bool = False  # start over; what the folder holds is kept in a folder inside
    seed: CountOrZero = 0  # where all chance comes from
    iterations: Count | None = None  # how many in all; instead of --interactions
    minutes: Positive | None = None  # stop and save after this long
    save_every: Count = 10  # iterations between checkpoints; ten minutes at most
    log: tuple[Literal["wandb", "trackio"], ...] = ()  # beside metrics.jsonl and TensorBoard
    config: Annotated[AnyConfig, tyro.conf.arg(name="")] = field(default_factory=cast(Any, PatchConfig))


class Asked(NamedTuple):
    """Where to run, and with what."""

    run: RunFolder
    config: TrainConfig
    preset: str
    seed: int


def train(words: list[str]) -> None:
    """What `itc train …` does with the words after it."""
    with reading("train"):
        arguments = read_arguments(words)
    start(arguments)


def read_arguments(words: list[str]) -> TrainArguments:
    """What the words after `itc train` ask for; the preset, if there is one, is the first."""
    named = bool(words) and not words[0].startswith("-")
    config = find(words[0]).config if named else PatchConfig()
    kind = cast(Any, TrainArguments)[type(config)]  # each agent has settings of its own
    defaults = kind(preset=words[0] if named else "", config=config)
    chosen = tyro.cli(kind, args=words, default=defaults, prog="itc train")
    if chosen.preset != defaults.preset:
        raise ValueError(f"the preset comes first: itc train {chosen.preset} …")
    if not chosen.preset and chosen.resume is None:
        raise ValueError("name a preset (`itc presets` lists them) or a run to --resume")
    allow(chosen.config.env)
    check_loggers(chosen.log)
    if chosen.resume is not None:
        changed = (replace(chosen.config, env=config.env), chosen.preset, chosen.seed, chosen.run)
        if changed != (PatchConfig(), "", 0, None):
            raise ValueError(
                "--resume goes on as the run was set up; only --iterations, --minutes, --save-every, --log and "
                "--from-scratch can be given with it, and --env for an environment of your own"
            )
    return chosen


def start(arguments: TrainArguments, teacher: Path | None = None) -> Run:
    """Set up, or pick up, a run, and train; a new one starts with the teacher's policy, if there is one."""
    with reading("train"):
        asked = asked_for(arguments)
        run, config, _, seed = asked
        env = make(config.env)
        if checkpoint.names(run.checkpoints) and not arguments.from_scratch:
            run.check_same(config, seed)
        with _shown_warnings():
            agent_of(config).check(env, config)
            check_memory(layout_of(agent_of(config).shape_of_state(env, config)))
    keep_compiled()
    with sentences("train"), locked(run.path):
        if arguments.from_scratch and (earlier := run.start_over()):
            print(f"starting over; what was there is in {earlier}")
        with _shown_warnings():
            state, notes = _begin_or_resume(asked, env)
        if teacher is not None and not notes:
            state = state._replace(policy=state.policy._replace(network=load(teacher).state.policy.network))
        if not run.has_config() or not notes or _is_longer(run, config):
            run.write_config(config, asked.preset, seed)
        return _train(asked, env, arguments, state, notes)


def asked_for(arguments: TrainArguments) -> Asked:
    """As given, or as the run to resume was set up."""
    if arguments.resume is not None:
        run = RunFolder(arguments.resume)
        config, preset, seed = run.read_config()
    else:
        config, preset, seed = arguments.config, arguments.preset, arguments.seed
        run = RunFolder(arguments.run or Path("runs") / f"{preset.replace('/', '-')}-{seed}")
    if arguments.iterations is not None:
        config = config.with_iterations(arguments.iterations)
    return Asked(run, config, preset, seed)


def _begin_or_resume(asked: Asked, env: Environment) -> tuple[Any, dict[str, Any]]:
    try:
        return loop.begin_or_resume(asked.run, env, asked.config, asked.seed)
    except checkpoint.CheckpointError as problem:
        raise checkpoint.CheckpointError(f"{problem}. --from-scratch starts over and keeps what is there") from problem


def _is_longer(run: RunFolder, config: TrainConfig) -> bool:
    """A run can be extended. Asked for fewer iterations, it stops earlier this time, and stays as long as it was."""
    return config.iterations > run.read_config()[0].iterations


def _train(asked: Asked, env: Environment, arguments: TrainArguments, state: Any, notes: dict[str, Any]) -> Run:
    run, config, preset, seed = asked
    begun = int(state.iteration)
    deadline = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    with screen(config, preset, run, versions(), begun, deadline) as view, _stop_signals() as stop:
        watchers = [view, stop, *loggers(run, begun, arguments.log)]

        def should_stop() -> bool:
            return stop.asked or (deadline is not None and time.monotonic() > deadline)

        # In a thread of its own: Python hears signals only while the main thread is not inside compiled code.
        with ThreadPoolExecutor(1) as worker:
            training = worker.submit(
                loop.train, run, env, config, state, notes, watchers, loop.SaveEvery(arguments.save_every), should_stop
            )
            _wait(training, stop, view)
            state = training.result()
        for watcher in watchers:
            watcher.close()
    if stop.asked:
        view.goodbye(saved=True)
        sys.exit(128 + stop.signal)
    curve = draw_curve(run, preset, config.dreams_after) if config.learn_policy else None
    trained = Run(run.path, preset, seed, config, env, state)
    view.farewell(curve, draw_dreams(trained) if trained.codes else None)
    return trained


def _wait(training: Future, stop: "_Stop", view: Any) -> None:
    """Until training ends; if it was asked to stop and cannot soon (compiling takes minutes), the process ends here.

    The last checkpoint stays as it is, and a save under way is waited for.
    """
    while not training.done():
        wait([training], timeout=0.2)
        if stop.asked and not stop.saving and time.monotonic() > stop.asked_at + PATIENCE and not training.done():
            view.progress.stop()
            view.goodbye(saved=False)
            sys.stdout.flush()
            os._exit(128 + stop.signal)


class _Stop(Quiet):
    """Whether somebody wants training to stop, and whether it may."""

    asked = False
    asked_at = 0.0
    signal = 0
    saving = False

    def on_saving(self) -> None:
        self.saving = True

    def on_save(self, saved: checkpoint.Saved) -> None:
        self.saving = False


@contextmanager
def _stop_signals() -> Generator[_Stop]:
    """Ctrl-C and SIGTERM ask to stop; a second Ctrl-C insists."""
    stop = _Stop()

    def ask(number, frame):
        if stop.asked and number == signal.SIGINT:
            print("\nstopped at once; the last checkpoint is good", file=sys.stderr, flush=True)
            os._exit(128 + number)
        stop.asked, stop.asked_at, stop.signal = True, time.monotonic(), number
        print("\nstopping after this piece of work, then saving …", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _shown_warnings() -> Generator[None]:
    """Warnings inside are shown as sentences, without where in the code they come from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        print(f"itc train: {warning.message}", file=sys.stderr)
