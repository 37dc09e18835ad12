"""Does a decoder keep what there is, and does it let it move? Measured where a token is an object."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int


class Conservation(NamedTuple):
    """One without the other means nothing: a frozen world conserves everything."""

    right_number: float  # share of frames with as many objects as there were
    count_error: float  # mean of |objects after − objects before|
    stay_rate: float  # share of objects whose cell holds an object in the next frame, too


def conservation(previous: Int[np.ndarray, "b n"], tokens: Int[np.ndarray, "b n"], object_token: int) -> Conservation:
    """Compare decoded frames with the frames before them, in a world where objects neither appear nor vanish."""
    before, after = previous == object_token, tokens == object_token
    difference = np.abs(after.sum(axis=1) - before.sum(axis=1))
    return Conservation(
        right_number=float((difference == 0).mean()),
        count_error=float(difference.mean()),
        stay_rate=float((before & after).sum() / before.sum()),
    )
