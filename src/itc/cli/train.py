"""`itc train PRESET`: the whole agent, resumable at any time."""

import os
import signal
import sys
import time
import warnings
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, cast

import tyro

from itc.cli.watch import loggers, screen
from itc.compilation import keep_compiled
from itc.envs.base import Environment
from itc.envs.registry import make
from itc.presets import find
from itc.runs import Run, load
from itc.train import checkpoint, loop
from itc.train.agents import agent_of
from itc.train.config import TrainConfig
from itc.train.patch_agent.config import PatchConfig
from itc.train.run_folder import RunError, RunFolder, versions
from itc.viewer.run_pictures import draw_curve, draw_dreams

AnyConfig = TypeVar("AnyConfig", bound=TrainConfig)


@dataclass(frozen=True)
class TrainArguments(Generic[AnyConfig]):
    """Train an agent. The same command again goes on where it stopped, with a larger number of iterations too."""

    preset: tyro.conf.Positional[str] = ""  # one of `itc presets`
    run: Path | None = None  # folder of the run; runs/PRESET-SEED by default
    resume: Path | None = None  # go on with this run, as it was set up
    seed: int = 0  # where all chance comes from
    iterations: int | None = None  # how many in all; instead of --interactions
    minutes: float | None = None  # stop and save after this long
    save_every: int = 10  # iterations between checkpoints; ten minutes at most
    log: tuple[Literal["wandb", "trackio"], ...] = ()  # beside metrics.jsonl and TensorBoard
    config: Annotated[AnyConfig, tyro.conf.arg(name="")] = field(default_factory=cast(Any, PatchConfig))


class Settings(NamedTuple):
    """Where to run, and with what."""

    run: RunFolder
    config: TrainConfig
    preset: str
    seed: int


def train(words: list[str]) -> None:
    """What `itc train …` does with the words after it."""
    try:
        arguments = read_arguments(words)
    except ValueError as impossible:
        sys.exit(f"itc train: {impossible}")
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
    if chosen.resume is not None and (chosen.config, chosen.preset, chosen.seed) != (PatchConfig(), "", 0):
        raise ValueError("--resume goes on as the run was set up; only --iterations can be given with it")
    return chosen


def start(arguments: TrainArguments, teacher: Path | None = None) -> Run:
    """Set up, or pick up, a run, and train; a new one starts with the teacher's policy, if there is one."""
    try:
        run, config, preset, seed = settings(arguments)
        env = make(config.env)
        if checkpoint.names(run.checkpoints):
            run.check_same(config, seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            agent_of(config).check(env, config)
    except (RunError, ValueError, OSError) as problem:
        sys.exit(f"itc train: {problem}")
    for warning in caught:
        print(f"itc train: {warning.message}", file=sys.stderr)
    try:
        keep_compiled()
        state, notes = loop.begin_or_resume(run, env, config, seed)
        if teacher is not None and not notes:
            state = state._replace(policy=state.policy._replace(network=load(teacher).state.policy.network))
        run.write_config(config, preset, seed)
        return _train(run, env, config, preset, seed, arguments, state, notes)
    except (RunError, checkpoint.CheckpointError, loop.NotANumber, OSError) as problem:
        sys.exit(f"itc train: {problem}")


def settings(arguments: TrainArguments) -> Settings:
    """As given, or as the run to resume was set up."""
    if arguments.resume is not None:
        run = RunFolder(arguments.resume)
        config, preset, seed = run.read_config()
    else:
        config, preset, seed = arguments.config, arguments.preset, arguments.seed
        run = RunFolder(arguments.run or Path("runs") / f"{preset.replace('/', '-')}-{seed}")
    if arguments.iterations is not None:
        if arguments.iterations < 1:
            raise ValueError(f"iterations must be at least 1, got {arguments.iterations}")
        config = config.with_iterations(arguments.iterations)
    return Settings(run, config, preset, seed)


def _train(
    run: RunFolder,
    env: Environment,
    config: TrainConfig,
    preset: str,
    seed: int,
    arguments: TrainArguments,
    state: Any,
    notes: dict[str, Any],
) -> Run:
    begun = int(state.iteration)
    deadline = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    with screen(config, preset, run, versions(), begun, deadline) as view, _stop_signals() as stop:
        watchers = [view, *loggers(run, begun, arguments.log)]

        def should_stop() -> bool:
            return stop.asked or (deadline is not None and time.monotonic() > deadline)

        # In a thread of its own: Python hears signals only while the main thread is not inside compiled code.
        with ThreadPoolExecutor(1) as worker:
            training = worker.submit(
                loop.train, run, env, config, state, notes, watchers, loop.SaveEvery(arguments.save_every), should_stop
            )
            while not training.done():
                wait([training], timeout=0.2)
            state = training.result()
        for watcher in watchers:
            watcher.close()
    if stop.asked:
        view.goodbye()
        sys.exit(128 + stop.signal)
    curve = draw_curve(run, preset, config.dreams_after) if config.learn_policy else None
    trained = Run(run.path, preset, seed, config, env, state)
    view.farewell(curve, draw_dreams(trained) if trained.codes else None)
    return trained


class _Stop:
    asked = False
    signal = 0


@contextmanager
def _stop_signals() -> Generator[_Stop]:
    """Ctrl-C and SIGTERM ask to stop; a second Ctrl-C insists."""
    stop = _Stop()

    def ask(number, frame):
        if stop.asked and number == signal.SIGINT:
            print("\nstopped at once; the last checkpoint is good", file=sys.stderr, flush=True)
            os._exit(128 + number)
        stop.asked, stop.signal = True, number
        print("\nstopping after this piece of work, then saving …", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
