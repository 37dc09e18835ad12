"""Read a compiled program's text: computations, their instructions, and what each of those refers to."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4}
BYTES |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r"\s([a-z][\w\-]*)\(")
_ARRAY = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")
_DEVICES = re.compile(r"^HloModule .*\bnum_partitions=(\d+)", re.MULTILINE)
_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


@dataclass(frozen=True)
class Array:
    """The type and the sides of an array."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * BYTES.get(self.dtype, 0)  # tokens have no size


@dataclass(frozen=True)
class Instruction:
    """One line of a computation."""

    name: str
    opcode: str
    arrays: tuple[Array, ...]  # its result, or the parts of it
    operands: tuple[str, ...]
    attributes: str  # everything after the operands
    is_root: bool

    @property
    def bytes(self) -> int:
        return sum(array.bytes for array in self.arrays)

    def computation(self, attribute: str) -> str | None:
        """The name of the computation that this attribute (calls, body, to_apply, …) refers to."""
        found = re.search(rf"\b{attribute}=%?([\w.\-]+)", self.attributes)
        return found.group(1) if found else None

    @property
    def branches(self) -> list[str]:
        """Of a conditional."""
        found = re.search(r"branch_computations=\{([^}]*)\}", self.attributes)
        if found:
            return [name.strip().lstrip("%") for name in found.group(1).split(",")]
        names = (self.computation(f"{case}_computation") for case in ("true", "false"))
        return [name for name in names if name]

    @property
    def trip_count(self) -> int | None:
        """How often the body of a loop runs; None if the compiler does not know."""
        found = _TRIP_COUNT.search(self.attributes)
        return int(found.group(1)) if found else None

    @property
    def target(self) -> str:
        """Of a custom call."""
        found = re.search(r'custom_call_target="([^"]*)"', self.attributes)
        return found.group(1) if found else ""


@dataclass(frozen=True)
class Computation:
    name: str
    instructions: tuple[Instruction, ...]

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        return {instruction.name: instruction for instruction in self.instructions}

    @property
    def root(self) -> Instruction:
        return next(instruction for instruction in reversed(self.instructions) if instruction.is_root)

    def users(self, name: str) -> Iterator[Instruction]:
        return (instruction for instruction in self.instructions if name in instruction.operands)


@dataclass(frozen=True)
class Program:
    entry: Computation
    computations: dict[str, Computation]
    devices: int = 1  # among which it is divided


class NotHLO(ValueError):
    """A text without an entry computation."""


def read_program(text: str) -> Program:
    """A program from what `Compiled.as_text()` returns."""
    computations: dict[str, Computation] = {}
    entry, name, lines = "", None, []
    for line in text.splitlines():
        begins = _COMPUTATION.match(line)
        if begins:
            name, lines = begins.group(2), []
            entry = name if begins.group(1) else entry
        elif name is not None and line.startswith("}"):
            computations[name] = Computation(name, tuple(lines))
            name = None
        elif name is not None and (found := _INSTRUCTION.match(line)):
            lines.append(_instruction(found.group(2), found.group(3), bool(found.group(1))))
    if not entry:
        raise NotHLO("the text has no entry computation: it is not a compiled program")
    divided = _DEVICES.search(text)
    return Program(computations[entry], computations, int(divided.group(1)) if divided else 1)


def _instruction(name: str, rest: str, is_root: bool) -> Instruction:
    rest = re.sub(r"/\*.*?\*/", "", rest)  # positions in long tuples
    opcode = _OPCODE.search(" " + rest)
    if opcode is None:
        raise NotHLO(f"the instruction {name} has no operation")
    kind, start = rest[: opcode.start()], opcode.end() - 1
    end = _closing(rest, start)
    arrays = tuple(
        Array(dtype, tuple(int(side) for side in sides.split(",") if side)) for dtype, sides in _ARRAY.findall(kind)
    )
    inside = rest[start:end]
    names = () if opcode.group(1) in ("parameter", "constant") else _names(inside)
    return Instruction(name, opcode.group(1), arrays, names, rest[end:], is_root)


def _closing(text: str, start: int) -> int:
    """Where the parenthesis before `start` is closed."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def _names(operands: str) -> tuple[str, ...]:
    """Operands, with or without their types in front."""
    return tuple(re.findall(r"%([\w.\-]+)", operands))
