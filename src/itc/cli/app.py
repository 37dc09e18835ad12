"""All commands, in groups, and how the words of a command line become a call of one of them."""

import sys
from difflib import get_close_matches
from inspect import getdoc
from types import FunctionType

from itc.cli.accuracy import accuracy
from itc.cli.arguments import parse
from itc.cli.bench import bench
from itc.cli.demo import demo
from itc.cli.envs import envs
from itc.cli.evaluate import evaluate
from itc.cli.export import export
from itc.cli.fsck import fsck
from itc.cli.hallucinate import hallucinate
from itc.cli.hub import pull, push
from itc.cli.inspect import inspect
from itc.cli.play import play
from itc.cli.presets import presets
from itc.cli.report import report
from itc.cli.reproduce import reproduce
from itc.cli.sweep import sweep
from itc.cli.world_model import world_model

HELP = (["-h"], ["--help"])


def train(words: list[str]) -> None:
    """Train an agent; rerunning the command resumes.

    usage: itc train PRESET [OPTIONS]
           itc train --resume RUN [OPTIONS]

    `itc presets` lists the presets; minatar/breakout/quick trains in minutes.
    `itc train PRESET --help` lists all settings, with the values of that preset.
    """
    if words in HELP:
        return print(_text(train))
    if not words:
        print(f"{_text(train)}\n\nitc train: name a preset", file=sys.stderr)
        sys.exit(2)
    # Imports JAX. The options depend on the preset, so this command parses them itself.
    from itc.cli.train import train as train_with

    train_with(words)


GROUPS: dict[str, tuple[FunctionType, ...]] = {
    "start": (demo, play, train, report),
    "look": (envs, presets, inspect, fsck),
    "measure": (evaluate, accuracy, hallucinate, sweep),
    "share": (export, push, pull),
    "paper": (reproduce, bench, world_model),
}
COMMANDS = {command.__name__.replace("_", "-"): command for group in GROUPS.values() for command in group}


def run(words: list[str]) -> None:
    """Run the command that the first word names; without one, print the map."""
    if not words or words in HELP:
        return print(command_map())
    name, *others = words
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        print(f"itc: there is no command {name!r}.{meant} `itc --help` lists all commands.", file=sys.stderr)
        sys.exit(2)
    command = COMMANDS[name]
    return train(others) if command is train else parse(command, others, f"itc {name}")


def command_map() -> str:
    """All commands in their groups; each line is the first of the command's docstring."""
    lines = ["usage: itc COMMAND …", "", "World models made of tokens, whose dreams stay true."]
    for group, commands in GROUPS.items():
        lines += ["", group]
        for name in (name for name, command in COMMANDS.items() if command in commands):
            lines.append(f"  {name:11}  {_text(COMMANDS[name]).splitlines()[0]}")
    return "\n".join([*lines, "", "`itc COMMAND --help` explains a command, `itc --version` prints the version."])


def _text(command: FunctionType) -> str:
    return getdoc(command) or ""
