"""World models made of tokens, whose dreams stay true."""

from typing import TYPE_CHECKING

from itc.decoding.api import decode, match
from itc.decoding.config import PRESETS, DecodeConfig
from itc.decoding.edges import Edges, all_edges, grid_edges
from itc.types import Decoded, Matching

if TYPE_CHECKING:
    from pathlib import Path

    from itc.runs import Run

__version__ = "0.1.0"


def load(run: "str | Path") -> "Run":
    """A training run from its folder: its policy, its world model, its dreams. Needs the extra `train`."""
    from itc.runs import load

    return load(run)


__all__ = [
    "PRESETS",
    "DecodeConfig",
    "Decoded",
    "Edges",
    "Matching",
    "all_edges",
    "decode",
    "grid_edges",
    "load",
    "match",
]
