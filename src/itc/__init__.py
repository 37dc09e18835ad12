"""World models made of tokens, whose dreams stay true."""

from typing import TYPE_CHECKING

from itc.decoding.api import decode, match
from itc.decoding.config import PRESETS, DecodeConfig
from itc.decoding.edges import Edges, all_edges, grid_edges
from itc.types import Decoded, Matching

if TYPE_CHECKING:
    from pathlib import Path

    from itc.train.runs import Run

__version__ = "0.2.0"


def load(run: "str | Path", env: str | None = None) -> "Run":
    """A training run from its folder, or a world by its name or folder: its policy, its world model, its imagined
    rollouts. Needs the extra `train`.

    `env` names an environment of your own, `module:function`, that the run was made with. It is imported, so a folder
    alone cannot ask for it.
    """
    from itc.extras import TRAIN, require

    require(*TRAIN, extra="train", purpose="itc.load")
    from itc.train.runs import load
    from itc.worlds import find

    return load(find(run), env)


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
