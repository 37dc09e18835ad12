"""What the whole package agrees on: the letters of shapes, and the containers that travel between rooms.

Shapes are written with one alphabet everywhere:
b batch · t time · n tokens of a frame (= h·w) · h rows · w columns · k codes · m copies that can reach a cell ·
s sources (= n for frames) · a actions · e embedding · c channels.
"""

from typing import Any, NamedTuple

# NumPy, JAX or PyTorch array: the decoder takes any and answers in kind.
AnyArray = Any


class Decoded(NamedTuple):
    """The next frame, and where each of its tokens came from."""

    tokens: AnyArray  # (…, n)
    source: AnyArray  # (…, n) cell of the previous frame each token was copied from, −1 where generated
    value: AnyArray  # (…)    objective reached: the sum of the gains of the copies, 0 without a solver
    gap: AnyArray  # (…)    certified bound on optimum − value


class Matching(NamedTuple):
    """Which source each destination takes, what that is worth, and how far from the best it can be at most."""

    source: AnyArray  # (…, n) −1 where nothing is taken
    value: AnyArray  # (…)
    gap: AnyArray  # (…)
