"""Count what a compiled program does: kernels launched, arithmetic, memory traffic, and where it waits for the host.

Every instruction of the entry computation that computes something is one launch. Those in the body of a loop count as
often as it runs.
"""

import json
import re
from dataclasses import dataclass, replace

from itc.bench.gpu.collectives import KINDS, Collective, collective
from itc.bench.gpu.hlo import Computation, Instruction, Program, read_program

# These launch nothing: they name, bundle or wait.
FREE = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier", "add-dependency",
    "partition-id", "replica-id", "copy-done", "async-done", "async-update", *(f"{kind}-done" for kind in KINDS),
}  # fmt: skip
# What a kernel reads of an operand through these is as much as they return.
READS_SOME = {"dynamic-slice", "gather", "slice"}
LIBRARIES = ("__cublas$", "__cudnn$")


@dataclass(frozen=True)
class Counts:
    """What one run of a program does."""

    launches: int = 0
    flop: float = 0.0  # additions and multiplications in matrix products and convolutions
    bytes: float = 0.0  # read and written by kernels
    unknown_loops: int = 0  # loops whose length is not known: the device asks the host in every round
    branches: int = 0  # conditionals: the device asks the host which one to take
    callbacks: int = 0  # calls of a function on the host
    collectives: tuple[Collective, ...] = ()  # what devices exchange, if there are several

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(a + b for a, b in zip(self._values(), other._values(), strict=True)))

    def times(self, turns: int) -> "Counts":
        """Several times; a place in the program at which it waits stays one place."""
        return Counts(
            turns * self.launches, turns * self.flop, turns * self.bytes,
            self.unknown_loops, self.branches, self.callbacks,
            tuple(replace(one, times=turns * one.times) for one in self.collectives),
        )  # fmt: skip

    def _values(self) -> tuple:
        found = (self.launches, self.flop, self.bytes, self.unknown_loops, self.branches, self.callbacks)
        return (*found, self.collectives)


def count(text: str) -> Counts:
    """Of a program, from what `Compiled.as_text()` returns. Loops of unknown length count as one round."""
    program = read_program(text)
    return _computation(program, program.entry)


def _computation(program: Program, computation: Computation) -> Counts:
    total = Counts()
    for instruction in computation.instructions:
        total += _instruction(program, computation, instruction)
    return total


def _instruction(program: Program, computation: Computation, instruction: Instruction) -> Counts:
    opcode = instruction.opcode
    if opcode in FREE:
        return Counts()
    if opcode == "while":
        turns = instruction.trip_count
        body = _called(program, instruction, "body")
        if turns is not None:
            return body.times(turns)
        return body + _called(program, instruction, "condition") + Counts(unknown_loops=1)
    if opcode == "conditional":
        cases = [_computation(program, program.computations[name]) for name in instruction.branches]
        return max(cases, key=lambda case: case.launches, default=Counts()) + Counts(branches=1)
    if opcode == "call":
        return _called(program, instruction, "to_apply")
    if opcode == "async-start":
        return _called(program, instruction, "calls")
    flop, traffic = _flop(program, computation, instruction), _bytes(program, computation, instruction)
    exchanged = collective(program, computation, instruction)
    return Counts(
        1, flop, traffic,
        callbacks=int(opcode == "custom-call" and "callback" in instruction.target),
        collectives=() if exchanged is None else (exchanged,),
    )  # fmt: skip


def _called(program: Program, instruction: Instruction, attribute: str) -> Counts:
    name = instruction.computation(attribute)
    return Counts() if name is None else _computation(program, program.computations[name])


def _flop(program: Program, computation: Computation, instruction: Instruction) -> float:
    """Of an instruction, or of all that are fused in it. Two for each multiplication with its addition."""
    if instruction.opcode == "fusion":
        fused = program.computations[instruction.computation("calls") or ""]
        return sum(_flop(program, fused, part) for part in fused.instructions)
    if instruction.opcode == "dot":
        found = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", instruction.attributes)
        return _product(computation, instruction, [int(axis) for axis in found.group(1).split(",")] if found else [])
    if instruction.opcode == "convolution" or "conv" in instruction.target:
        return _convolution(computation, instruction)
    if "gemm" in instruction.target or "matmul" in instruction.target:
        found = re.search(r'"lhs_contracting_dimensions":(\[[^\]]*\])', instruction.attributes)
        return _product(computation, instruction, [int(axis) for axis in json.loads(found.group(1))] if found else [])
    return 0.0


def _product(computation: Computation, instruction: Instruction, contracting: list[int]) -> float:
    left = computation.by_name[instruction.operands[0]].arrays[0]
    summed = 1
    for axis in contracting:
        summed *= left.shape[axis]
    return 2.0 * instruction.arrays[0].size * summed


def _convolution(computation: Computation, instruction: Instruction) -> float:
    """The same forwards and backwards: every output with every weight of its channel."""
    result, first, second = (
        instruction.arrays[0],
        *(computation.by_name[name].arrays[0] for name in instruction.operands[:2]),
    )
    if "BackwardFilter" in instruction.target:
        output, weight = second, result
    elif "BackwardInput" in instruction.target:
        output, weight = first, second
    else:
        output, weight = result, second
    labels = re.search(r"dim_labels=\w+_(\w+)->", instruction.attributes)
    channels = weight.shape[labels.group(1).index("o")] if labels else weight.shape[-1]
    return 2.0 * output.size * weight.size / max(1, channels)


def _bytes(program: Program, computation: Computation, instruction: Instruction) -> float:
    """Read and written. A fusion that reads or changes a part of an array moves no more than that part."""
    operands = [computation.by_name[name] for name in instruction.operands if name in computation.by_name]
    if instruction.opcode in READS_SOME:
        return 2.0 * instruction.bytes
    if instruction.opcode == "dynamic-update-slice":
        return 2.0 * operands[1].bytes
    if instruction.opcode != "fusion":
        # A library's second result is the room it works in.
        written = instruction.arrays[0].bytes if instruction.target.startswith(LIBRARIES) else instruction.bytes
        return float(written + sum(operand.bytes for operand in operands))
    fused = program.computations[instruction.computation("calls") or ""]
    read = sum(_read_of(fused, part) for part in fused.instructions if part.opcode == "parameter")
    return read + _written(fused, fused.root)


def _read_of(fused: Computation, value: Instruction) -> float:
    """How much of a fusion's operand its instructions read."""
    total = 0.0
    for user in fused.users(value.name):
        if user.opcode in READS_SOME and user.operands[0] == value.name:
            total += user.bytes
        elif user.opcode == "dynamic-update-slice" and user.operands[0] == value.name:
            continue  # stays where it is
        elif user.opcode == "bitcast":
            total += _read_of(fused, user)
        else:
            return float(value.bytes)
    return min(total, float(value.bytes))


def _written(fused: Computation, root: Instruction) -> float:
    if root.opcode == "tuple":
        return sum(_written(fused, fused.by_name[name]) for name in root.operands)
    if root.opcode == "bitcast":
        return _written(fused, fused.by_name[root.operands[0]])
    if root.opcode == "dynamic-update-slice":
        return float(fused.by_name[root.operands[1]].bytes)
    return float(root.bytes)
