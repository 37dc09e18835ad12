"""What devices exchange: the collectives of a program, and how many bytes each device sends for one."""

import re
from dataclasses import dataclass

from itc.bench.gpu.hlo import Computation, Instruction, Program

KINDS = {
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast",
}  # fmt: skip


@dataclass(frozen=True)
class Collective:
    """One place in a program at which all devices exchange something."""

    kind: str
    devices: int  # that exchange among themselves
    bytes: int  # of the operands, on each device
    times: int = 1  # how often it is done in one run of the program

    @property
    def sent(self) -> float:
        """Bytes that each device sends each time, around a ring."""
        n, size = self.devices, float(self.bytes)
        if self.kind == "all-reduce":
            return 2 * (n - 1) / n * size  # each part goes around once to be added up, once more as a sum
        if self.kind == "all-gather":
            return (n - 1) * size
        return size if self.kind.startswith("collective") else (n - 1) / n * size


def collective(program: Program, computation: Computation, instruction: Instruction) -> Collective | None:
    """What an instruction exchanges; None if it exchanges nothing."""
    kind = instruction.opcode.removesuffix("-start")
    devices = _group(program, instruction)
    if kind not in KINDS or devices == 1:
        return None
    operands = (computation.by_name[name] for name in instruction.operands if name in computation.by_name)
    return Collective(kind, devices, sum(operand.bytes for operand in operands))


def _group(program: Program, instruction: Instruction) -> int:
    """Among how many devices: [groups,size]<=[…], or lists of devices, or all if there are none."""
    found = re.search(r"replica_groups=(?:\[\d+,(\d+)\]|\{\{([\d,]+)\})", instruction.attributes)
    if found is None:
        return program.devices
    return int(found.group(1)) if found.group(1) else len(found.group(2).split(","))
