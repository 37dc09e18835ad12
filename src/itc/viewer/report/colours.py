"""Colours of decoders and phases, the same on the whole page.

The style sheet defines them, one set for light and one for dark.
"""

from itc.decoding.config import PRESETS
from itc.evaluate.hallucination import SIMULATOR

COLOURS = 8
PHASES = ("play", "tokenizer", "world model", "imagination", "encoding")
# The decoders that are shown most often get the colours that differ most.
FIRST = ("sample", "paper", "conserving", "argmax", "paper-minatar", "conserving-minatar", "paper-atari")
DECODERS = tuple(dict.fromkeys((*FIRST, *PRESETS)))


def colour(index: int) -> str:
    return f"var(--c{index % COLOURS})"


def decoder_colour(name: str) -> str:
    """Grey for unknown decoders, the colour of text for the simulator."""
    if name == SIMULATOR:
        return "var(--ink)"
    return colour(DECODERS.index(name)) if name in DECODERS else "var(--soft)"


def phase_colour(name: str) -> str:
    return colour(PHASES.index(name)) if name in PHASES else "var(--soft)"
