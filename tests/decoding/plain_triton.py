"""As much of Triton as the kernel needs, in NumPy: its source runs as it stands, one program after the other.

Triton itself is 286 MB, and its own interpreter takes ten times as long.
"""

import sys
from types import ModuleType
from unittest.mock import patch

import numpy as np


class Pointer:
    """Where something lies in an array: one place, or a vector of places."""

    def __init__(self, array, offset=0):
        self.array, self.offset = array, offset

    def __add__(self, offset):
        return Pointer(self.array, self.offset + offset)


class Number(int):
    def to(self, dtype):
        return self


class Launched:
    """A function with square brackets, in which the number of programs stands."""

    def __init__(self, function):
        self.function = function

    def __getitem__(self, grid):
        def launch(*arguments, num_warps):
            arguments = [Pointer(x.numpy().reshape(-1)) if hasattr(x, "numpy") else x for x in arguments]
            for program in range(grid[0]):
                language.program_id = lambda axis, program=program: Number(program)
                with np.errstate(all="ignore"):
                    self.function(*arguments)

        return launch


def store(pointer, values):
    assert pointer.array.dtype == values.dtype
    pointer.array[pointer.offset] = values


language = ModuleType("triton.language")
language.constexpr = int
language.int32, language.int64, language.float32 = np.int32, np.int64, np.float32
language.arange = lambda start, stop: np.arange(start, stop, dtype=np.int32)
language.zeros, language.full = np.zeros, np.full
language.where, language.maximum = np.where, np.maximum
language.min, language.max = np.min, np.max
language.sum = lambda values, axis: values.sum(axis, dtype=values.dtype)
language.load = lambda pointer: pointer.array[pointer.offset]
language.store = store


def import_kernel():
    """Import the kernel with this in Triton's place, and leave the place as it was: PyTorch looks there, too."""
    triton = ModuleType("triton")
    triton.jit, triton.language = Launched, language
    with patch.dict(sys.modules, {"triton": triton, "triton.language": language}):
        from itc.decoding import torch_triton
    sys.modules[torch_triton.__name__] = torch_triton  # patching has forgotten what was imported meanwhile
