"""The picture of `itc demo` shows a step chosen by a rule."""

import numpy as np

from itc.cli.demo import _illustrative_step
from itc.envs.walkers import Transitions
from itc.types import Decoded

TWO, THREE = [1, 1, 0, 0], [1, 1, 1, 0]


def decoded(tokens, source):
    value = np.zeros(len(tokens), np.float32)
    return Decoded(np.array(tokens), np.array(source), value, value)


def test_the_first_step_in_which_others_miscount_and_conserving_moves_two():
    previous = np.array([TWO] * 5, np.int32)
    transitions = Transitions(previous, np.zeros((5, 4, 2), np.float32), previous)
    generated, stay, move = [-1] * 4, [0, 1, 2, 3], [1, 0, 2, 3]
    #         paper right   sample right  conserving wrong  nothing moved  this one
    steps = {
        "sample": decoded([THREE, TWO, THREE, THREE, THREE], [generated] * 5),
        "paper": decoded([TWO, THREE, THREE, THREE, THREE], [stay] * 5),
        "conserving": decoded([TWO, TWO, THREE, TWO, TWO], [move, move, move, stay, move]),
    }
    assert _illustrative_step(transitions, steps) == 4
