"""`itc train PRESET`: train the whole agent; resumable at any time."""

import os
import signal
import sys
import time
import warnings
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, cast

import jax
import tyro
from jax.sharding import Mesh

from itc.cli.arguments import RunOption, parse
from itc.cli.compilation import keep_compiled
from itc.cli.console import PlainConsole
from itc.cli.running import reading, sentences
from itc.cli.several import together, where_of
from itc.cli.voice import Voice
from itc.cli.watch import Quiet, check_loggers, greet, loggers, screen
from itc.cli.watched import check_watch, watched
from itc.envs.base import Environment
from itc.envs.registry import ENVIRONMENTS, allow, make, require_packages
from itc.presets import find
from itc.settings import RENAMED, Count, CountOrZero, Positive, Settings
from itc.train import checkpoint, loop, processes
from itc.train.agents import agent_of
from itc.train.config import TrainConfig
from itc.train.lock import locked
from itc.train.mesh import mesh_for
from itc.train.origin import versions
from itc.train.patch_agent.config import PatchConfig
from itc.train.placing import gather, place
from itc.train.run_folder import RunFolder, flat
from itc.train.runs import Run, load
from itc.train.state import check_memory, layout_of
from itc.train.world_folder import is_world
from itc.viewer.run_pictures import draw_curve, draw_imagination
from itc.worlds import find as find_world

PATIENCE = 8.0  # seconds that the current part may take to finish after a signal

AnyConfig = TypeVar("AnyConfig", bound=TrainConfig)


@dataclass(frozen=True)
class TrainArguments(Settings, Generic[AnyConfig]):
    """Train an agent. Rerunning the command resumes; more iterations than before extend the run."""

    preset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET")] = (
        ""  # name of a preset; `itc presets` lists them
    )
    run: RunOption = None  # folder of the run (runs/PRESET-SEED if not given)
    resume: RunOption = None  # without a preset: resume the run in this folder with its saved settings
    from_scratch: bool = False  # start over; the folder's present content moves to a subfolder
    seed: CountOrZero = 0  # random seed
    iterations: Count | None = None  # total number of iterations; None: the preset's
    minutes: Positive | None = None  # stop and save after this many minutes; None: no limit
    save_every: Count = 10  # iterations between checkpoints; also saved every ten minutes
    devices: Count | None = None  # devices of each process to train on; None: all
    # Of several processes that train together: where process 0 can be reached by all of them.
    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    processes: Count | None = None  # how many processes train together
    process_id: CountOrZero | None = None  # which of them this is, counted from 0; 0 reads and writes the run folder
    # In place of these three: ask JAX, which detects SLURM, Open MPI, Kubernetes and Cloud TPUs.
    distributed: Annotated[Literal["auto"] | None, tyro.conf.arg(help_behavior_hint="")] = None
    watch: bool = False  # serve a page of the run under way at an address that is printed (of several: by process 0)
    log: tuple[Literal["wandb", "trackio"], ...] = ()  # services to log to, next to metrics.jsonl and TensorBoard
    config: Annotated[AnyConfig, tyro.conf.arg(name="")] = field(default_factory=cast(Any, PatchConfig))


class Asked(NamedTuple):
    """Where to run, and with what."""

    run: RunFolder
    config: TrainConfig
    preset: str
    seed: int


def train(words: list[str]) -> None:
    """Run `itc train` with these command-line words."""
    with reading("train"):
        arguments = read_arguments(words)
    start(arguments)


def read_arguments(words: list[str]) -> TrainArguments:
    """Parse the words after `itc train`; the preset, if there is one, comes first."""
    named = bool(words) and not words[0].startswith("-")
    config = find(words[0]).config if named else PatchConfig()
    _refuse_old_names(words, config)
    kind = cast(Any, TrainArguments)[type(config)]  # each agent has its own settings
    defaults = kind(preset=words[0] if named else "", config=config)
    chosen = parse(kind, words, f"itc train {defaults.preset}".rstrip(), default=defaults)
    if chosen.preset != defaults.preset:
        raise ValueError(f"the preset comes first: itc train {chosen.preset} …")
    if not chosen.preset and chosen.resume is None:
        raise ValueError("name a preset (`itc presets` lists them) or a run to --resume")
    allow(chosen.config.env)
    check_loggers(chosen.log)
    if chosen.watch:
        check_watch()
    where_of(chosen)
    if chosen.resume is not None:
        own = chosen.config.env not in ENVIRONMENTS  # only such a name has to be given again
        given = replace(chosen.config, env=config.env) if own else chosen.config
        if (given, chosen.preset, chosen.seed, chosen.run) != (PatchConfig(), "", 0, None):
            raise ValueError(
                "--resume continues a run with its saved settings; only --iterations, --minutes, --save-every, "
                "--devices, --log, --watch, --from-scratch, what joins several processes and, for an environment of "
                "your own, --env can be given with it"
            )
    return chosen


def _refuse_old_names(words: list[str], config: TrainConfig) -> None:
    """An old name of one agent's setting may still be that of another's."""
    settings = flat(asdict(config))
    renamed = {old: now for old, now in RENAMED.items() if old not in settings and now in settings}
    old = {_option(name, no): _option(now, no) for name, now in renamed.items() for no in ("", "no-")}
    for word in words:
        given = word.partition("=")[0].replace("_", "-")
        if given in old:
            raise ValueError(f"{given} is called {old[given]} now")


def _option(setting: str, no: str) -> str:
    """The option of a setting; with `no`, the one that switches it off, such as --ppo.no-setting."""
    group, dot, name = setting.replace("_", "-").rpartition(".")
    return f"--{group}{dot}{no}{name}"


def start(arguments: TrainArguments, policy_from: Path | None = None) -> Run:
    """Start or resume a run, and train; a new one may start with the policy of another run.

    Of several processes, the first reads and writes the run folder, and the only one to say something.
    """
    with together(where_of(arguments)) as command:
        return _start(arguments, policy_from, command)


def _start(arguments: TrainArguments, policy_from: Path | None, command: str) -> Run:
    with reading(command):
        asked = asked_for(arguments)
        run, config, _, seed = asked
        if first := processes.is_first():
            _check_folder(asked, arguments)
        require_packages([config.env])
        env = make(config.env)
        processes.check_same(_terms(asked, arguments.devices))
        with _shown_warnings():
            agent_of(config).check(env, config)
            check_memory(layout_of(agent_of(config).shape_of_state(env, config)))
            mesh = mesh_for(env, config, arguments.devices)
    kept = keep_compiled()
    with sentences(command), locked(run.path) if first else nullcontext():
        if first and arguments.from_scratch and (earlier := run.start_over()):
            print(f"starting over; the earlier content is in {earlier}")
        greet(asked.preset, versions(), kept)
        doing = "reading the checkpoint" if checkpoint.names(run.checkpoints) else "initialising the networks"
        with _shown_warnings(), Voice(PlainConsole(), doing).speaking():
            state, notes = _begin_or_resume(asked, env, mesh)
        if policy_from is not None and not notes:
            network = load(find_world(policy_from)).state.policy.network
            state = place(mesh, state._replace(policy=state.policy._replace(network=network)))
        is_new = not notes and arguments.resume is None
        if first and (not run.has_config() or is_new or _is_longer(run, config)):
            run.write_config(config, asked.preset, seed)
        return _train(asked, env, arguments, state, notes, mesh)


def _check_folder(asked: Asked, arguments: TrainArguments) -> None:
    """Raise an error if the folder cannot be used for this run."""
    run, config, _, seed = asked
    run.check_links()
    if is_world(run.path):
        raise ValueError(f"{run.path} is a world, without what training needs; it cannot be trained")
    if checkpoint.names(run.checkpoints) and not arguments.from_scratch:
        run.check_same(config, seed)


def _terms(asked: Asked, devices: int | None) -> dict[str, Any]:
    """What must be the same in all processes of a run."""
    own = {"seed": asked.seed, "agent": asked.config.agent, "devices": devices or jax.local_device_count()}
    here = {name: version for name, version in versions().items() if name not in ("device", "machine")}
    return own | flat(asdict(asked.config)) | here


def asked_for(arguments: TrainArguments) -> Asked:
    """The run as given, or as saved in the folder to resume."""
    if arguments.resume is not None:
        run = RunFolder(arguments.resume)
        config, preset, seed = run.read_config()
    else:
        config, preset, seed = arguments.config, arguments.preset, arguments.seed
        run = RunFolder(arguments.run or Path("runs") / f"{preset.replace('/', '-')}-{seed}")
    if arguments.iterations is not None:
        config = config.with_iterations(arguments.iterations)
    return Asked(run, config, preset, seed)


def _begin_or_resume(asked: Asked, env: Environment, mesh: Mesh | None) -> tuple[Any, dict[str, Any]]:
    try:
        return loop.begin_or_resume(asked.run, env, asked.config, asked.seed, mesh)
    except checkpoint.CheckpointError as problem:
        hint = "--from-scratch starts over and keeps the earlier files"
        raise checkpoint.CheckpointError(f"{problem}. {hint}") from problem


def _is_longer(run: RunFolder, config: TrainConfig) -> bool:
    """A run can be extended. Fewer iterations stop it earlier this time and leave its saved length as it was."""
    return config.iterations > run.read_config()[0].iterations


def _train(
    asked: Asked, env: Environment, arguments: TrainArguments, state: Any, notes: dict[str, Any], mesh: Mesh | None
) -> Run:
    run, config, preset, seed = asked
    begun, first = int(state.iteration), processes.is_first()
    deadline = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    with (
        screen(config, run, begun, deadline) as view,
        view.speaking(),
        _stop_signals() as stop,
        watched(arguments.watch and first, run, config, begun, deadline) as page,
    ):
        logging = loggers(run, begun, arguments.log) if first else []
        callbacks = [view, stop, *logging, *([] if page is None else [page])]

        def look(state: Any) -> None:
            if processes.agreed(page is not None and page.is_due()):
                whole = gather(mesh, state)  # which all processes must ask for
                if page is not None:
                    page.on_state(whole)

        def should_stop() -> bool:
            return stop.asked or (deadline is not None and time.monotonic() > deadline)

        # In its own thread: Python handles signals only while the main thread is not inside compiled code.
        with ThreadPoolExecutor(1) as worker:
            every = loop.SaveEvery(arguments.save_every)
            training = worker.submit(
                loop.train, run, env, config, state, notes, callbacks, every, should_stop, look, mesh
            )
            _wait(training, stop, view)
            state = training.result()
        stopped = processes.agreed(stop.asked)
        if page is not None:
            page.stopped = stopped
        for callback in callbacks:
            callback.close()
    if stopped:
        view.goodbye(saved=True)
        sys.exit(128 + stop.signal)
    trained, curve, imagination = Run(run.path, preset, seed, config, env, state), None, None
    if not first:
        return trained
    if config.train_policy:
        curve = draw_curve(run, preset, config.imagination_after)
    if trained.codes:
        with Voice(PlainConsole(), "drawing imagined rollouts").speaking():
            imagination = draw_imagination(trained)
    view.farewell(curve, imagination)
    return trained


def _wait(training: Future, stop: "_Stop", view: Any) -> None:
    """Wait until training ends; if it was asked to stop and cannot do so soon (compiling takes minutes), exit here.

    The last checkpoint stays as it is, and a save in progress is finished first.
    """
    while not training.done():
        wait([training], timeout=0.2)
        if stop.asked and not stop.saving and time.monotonic() > stop.asked_at + PATIENCE and not training.done():
            view.progress.stop()
            view.goodbye(saved=False)
            sys.stdout.flush()
            os._exit(128 + stop.signal)


class _Stop(Quiet):
    """Whether a stop was requested, and whether a save is in progress."""

    asked = False
    asked_at = 0.0
    signal = signal.SIGTERM  # if another process was asked
    saving = False

    def on_saving(self) -> None:
        self.saving = True

    def on_save(self, saved: checkpoint.Saved) -> None:
        self.saving = False


@contextmanager
def _stop_signals() -> Generator[_Stop]:
    """Ctrl-C and SIGTERM request a stop; a second Ctrl-C stops at once."""
    stop = _Stop()

    def ask(number, frame):
        if stop.asked and number == signal.SIGINT:
            print("\nstopped at once; nothing was saved just now", file=sys.stderr, flush=True)
            os._exit(128 + number)
        if stop.asked:
            return
        stop.asked, stop.asked_at, stop.signal = True, time.monotonic(), number
        if processes.is_first():
            print("\nstopping after this part, then saving …", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _shown_warnings() -> Generator[None]:
    """Warnings inside are printed as sentences, without their place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught if processes.is_first() else ():
        print(f"itc train: {warning.message}", file=sys.stderr)
