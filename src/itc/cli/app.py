"""All commands, by name."""

from tyro.extras import SubcommandApp

from itc.cli.accuracy import accuracy
from itc.cli.bench import bench
from itc.cli.demo import demo
from itc.cli.envs import envs
from itc.cli.evaluate import evaluate
from itc.cli.fsck import fsck
from itc.cli.hallucinate import hallucinate
from itc.cli.inspect import inspect
from itc.cli.presets import presets
from itc.cli.report import report
from itc.cli.reproduce import reproduce
from itc.cli.sweep import sweep
from itc.cli.world_model import world_model

app = SubcommandApp()
MEASURING = (evaluate, accuracy, hallucinate, report, sweep, reproduce)
COMMANDS = (demo, presets, inspect, fsck, *MEASURING, world_model, envs, bench)
for command in COMMANDS:
    app.command(command)


@app.command
def train(preset: str) -> None:
    """Train an agent: `itc train PRESET`. `itc train PRESET --help` lists all settings.

    Args:
        preset: Name of a preset; `itc presets` lists them.
    """
    raise AssertionError("`itc.cli._run` handles this command before this list is used")
