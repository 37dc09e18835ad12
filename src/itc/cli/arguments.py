"""Arguments that several commands share, and the words that help texts show for them: RUN, PRESET, ENV, FILE."""

import types
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Union, get_args

import tyro
from tyro.conf import Positional, arg
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

Run = Annotated[Path, Positional, arg(metavar="RUN")]
Runs = Annotated[tuple[Path, ...], Positional, arg(metavar="RUN [RUN …]", help_behavior_hint="(required)")]
EnvName = Annotated[str, Positional, arg(metavar="ENV")]
RunOption = Annotated[Path | None, arg(metavar="RUN", help_behavior_hint="")]
RunsOption = Annotated[tuple[Path, ...], arg(metavar="RUN [RUN …]", help_behavior_hint="")]
File = Annotated[Path, arg(metavar="FILE")]
Folder = Annotated[Path, arg(metavar="FOLDER")]
JsonFile = Annotated[Path | None, arg(name="json", metavar="FILE", help_behavior_hint="")]
Place = Annotated[str, arg(metavar="local|slurm|ray|ray://HOST:PORT")]
PlaceOption = Annotated[str | None, arg(metavar="local|slurm|ray|ray://HOST:PORT", help_behavior_hint="")]
Decoders = Annotated[tuple[str, ...], arg(metavar="DECODER [DECODER …]", help_behavior_hint="")]
OwnEnvironments = Annotated[
    tuple[str, ...],
    arg(
        name="env",
        metavar="MODULE:FUNCTION",
        help="Your own environments that the runs were trained on. They must be named here, as importing them executes "
        "code: code named only in a run folder is never executed.",
        help_behavior_hint="",
    ),
]

_RULES = ConstructorRegistry()


@_RULES.primitive_rule
def _optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """Help texts show INT, not {None}|INT, for what may be left out; the word None is still understood."""
    options = [option for option in get_args(info.type) if option is not type(None)]
    if info.type_origin not in (Union, types.UnionType) or len(options) != 1:
        return None
    inner = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(options[0], info.markers))
    if not isinstance(inner, PrimitiveConstructorSpec) or not isinstance(inner.nargs, int) or inner.choices:
        return None
    return replace(
        inner,
        nargs=1 if inner.nargs == 1 else (1, inner.nargs),
        instance_from_str=lambda words: None if words == ["None"] else inner.instance_from_str(words),
        is_instance=lambda value: value is None or inner.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else inner.str_from_instance(value),
    )


def parse(kind: Any, words: list[str], prog: str, **more: Any) -> Any:
    """Call a function, or make settings, from the words of a command line; a mistake or --help ends the program."""
    return tyro.cli(kind, args=words, prog=prog, registry=_RULES, **more)
