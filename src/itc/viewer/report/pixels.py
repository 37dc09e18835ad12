"""Frames and codes as pictures inside the page, at their original size: the browser enlarges them."""

import base64
import io

import numpy as np
from jaxtyping import UInt8

from itc.viewer.filmstrip import as_picture

GAP = 1  # pixels between codes


def data_uri(picture: UInt8[np.ndarray, "H W colours"]) -> str:
    """A PNG as a data URI."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def frame_uri(frame: UInt8[np.ndarray, "H W c"], frame_max: int) -> str:
    return data_uri(as_picture(frame, frame_max))


def contact_sheet(patches: UInt8[np.ndarray, "k ph pw c"], frame_max: int, columns: int) -> UInt8[np.ndarray, "H W 4"]:
    """All codes row by row, the gaps between them transparent."""
    count, height, width, _ = patches.shape
    rows = -(-count // columns)
    sheet = np.zeros((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, 4), np.uint8)
    for index, patch in enumerate(patches):
        top, left = (index // columns) * (height + GAP), (index % columns) * (width + GAP)
        place = sheet[top : top + height, left : left + width]
        place[..., :3] = as_picture(patch, frame_max)
        place[..., 3] = 255
    return sheet
