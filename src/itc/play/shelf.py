"""What the page shows of the worlds before one is opened: read from their files alone, as opening one takes seconds."""

import base64
import io
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from itc.envs.listing import listing
from itc.train.errors import TrainError
from itc.train.run_folder import RunFolder
from itc.train.world_folder import STARTS, WEIGHTS
from itc.viewer.filmstrip import as_picture

PATCHES = "['codebook'].patches"  # in the weights of worlds whose codes are pieces of frames


def how_well(folder: Path) -> str:
    """How well its policy plays, if that was measured."""
    try:
        numbers = RunFolder(folder).read_evaluation() or {}
    except TrainError:  # opening the world says what is wrong
        return ""
    if not {"return", "random_return"} <= numbers.keys():
        return ""
    return f"its policy returns {numbers['return']:.1f}, random play {numbers['random_return']:.1f}"


def first_frame(folder: Path, environment: str) -> UInt8[np.ndarray, "H W 3"] | None:
    """The current frame of the first starting window; None where a network draws frames.

    For worlds of the package: of others nothing is read before it is compared with its digest.
    """
    spec = next(one for one in listing() if one.name == environment)
    with (
        np.load(folder / WEIGHTS, allow_pickle=False) as weights,
        np.load(folder / STARTS, allow_pickle=False) as starts,
    ):
        if PATCHES not in weights:
            return None
        pieces = weights[PATCHES][starts["tokens"][0, -1]]
    _, height, width, channels = pieces.shape
    rows, columns = spec.grid
    together = pieces.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return as_picture(together.reshape(rows * height, columns * width, channels), spec.frame_max)


def as_text(picture: UInt8[np.ndarray, "H W 3"]) -> str:
    """A PNG in base64."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")
