"""World models made of tokens, whose dreams stay true."""

from itc.decoding.api import decode, match
from itc.decoding.config import PRESETS, DecodeConfig
from itc.decoding.edges import Edges, all_edges, grid_edges
from itc.types import Decoded, Matching

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "DecodeConfig",
    "Decoded",
    "Edges",
    "Matching",
    "all_edges",
    "decode",
    "grid_edges",
    "match",
]
