"""Which predictions count as plausible, on frames drawn by hand."""

import numpy as np
import pytest
from drawn import SPEC, classifier, frame, scrolled

from itc.evaluate.accuracy import accuracy, expect, plausible

NOOP, UP, LEFT, RIGHT = 0, 1, 3, 4
COW = frame(C=((2, 2),))


def is_plausible(before, after, predicted, action=NOOP):
    expected = expect(classifier(), SPEC, before[None], after[None], np.array([action]))
    return bool(plausible(classifier(), SPEC, expected, predicted[None])[0])


def test_the_true_frame_is_plausible_and_so_is_a_creature_that_went_elsewhere():
    assert is_plausible(COW, frame(C=((2, 3),)), frame(C=((2, 3),)))
    assert is_plausible(COW, frame(C=((2, 3),)), frame(C=((3, 2),)))


@pytest.mark.parametrize("predicted", [
    frame(), frame(C=((2, 2), (2, 3))), frame(Z=((2, 2),)), frame(C=((5, 5),)), frame(C=((2, 2),), **{"#": ((1, 1),)}),
])  # fmt: skip
def test_lost_doubled_turned_and_jumping_creatures_and_wrong_ground_are_not(predicted):
    assert not is_plausible(COW, COW, predicted)


def test_the_ground_a_real_creature_hides_must_be_what_it_was():
    assert not is_plausible(COW, frame(C=((2, 3),)), frame(C=((2, 2),), **{"#": ((2, 3),)}))


def test_the_truth_is_always_plausible_even_a_spawn_and_what_really_happened_may_be_imagined():
    spawned = frame(C=((2, 2),), Z=((6, 6),))
    assert is_plausible(COW, spawned, spawned)
    assert is_plausible(COW, spawned, frame(C=((2, 3),), Z=((6, 6),)))
    assert not is_plausible(COW, COW, spawned)


def test_the_ground_where_the_player_stood_is_unknown_but_the_player_must_be_there():
    before = frame(Z=((4, 5),))
    went_left = scrolled(frame(), 0, -1).reshape(SPEC.grid).copy()
    went_left[4, 5] = 3  # the zombie follows into the cell the player left
    calm = scrolled(frame(), 0, -1).reshape(SPEC.grid).copy()
    calm[4, 6] = 3  # the zombie stays
    assert is_plausible(before, went_left.ravel(), calm.ravel(), LEFT)
    eaten = calm.copy()
    eaten[4, 4] = 3
    eaten[4, 6] = 0
    assert not is_plausible(before, went_left.ravel(), eaten.ravel(), LEFT)


def test_what_comes_into_view_is_not_checked():
    after = scrolled(COW, 0, 1)
    predicted = after.reshape(SPEC.grid).copy()
    predicted[:, 8] = 4
    assert is_plausible(COW, after, predicted.ravel(), RIGHT)
    predicted[:, 7] = 4
    assert not is_plausible(COW, after, predicted.ravel(), RIGHT)


def test_a_creature_the_player_walks_into_may_be_gone():
    before = frame(C=((3, 4),))
    assert is_plausible(before, scrolled(frame(), -1, 0), scrolled(frame(), -1, 0), UP)
    assert not is_plausible(before, before, frame())


def test_no_creature_walks_where_its_kind_never_goes():
    """A wall right of the cow."""
    before, after = frame(C=((2, 2),), **{"#": ((2, 3),)}), frame(C=((3, 2),), **{"#": ((2, 3),)})
    expected = expect(classifier(), SPEC, before[None], after[None], np.array([NOOP]))
    walkable = np.ones((len(SPEC.creatures), 200), bool)
    through, around = frame(C=((2, 3),)), frame(C=((1, 2),), **{"#": ((2, 3),)})
    assert plausible(classifier(), SPEC, expected, through[None], walkable).all()
    walkable[:, classifier()(before[None]).kinds[0, 2, 3]] = False
    assert not plausible(classifier(), SPEC, expected, through[None], walkable).any()
    assert plausible(classifier(), SPEC, expected, around[None], walkable).all()


def test_the_ground_where_a_creature_stood_is_unknown():
    moved = frame(C=((2, 3),))
    assert is_plausible(COW, moved, frame(C=((2, 3),), **{"#": ((2, 2),)}))


def test_decoders_are_compared_transition_by_transition():
    before = np.stack([COW, COW, frame(), frame()])
    decoded = {"sample": np.stack([frame(), COW, frame(), COW]), "better": before}
    found = accuracy(
        classifier(), SPEC, before, before, np.zeros(4, int), np.ones(4, bool), decoded, np.arange(4), "context 1"
    )
    gains = {one.measure: one.value for one in found if one.decoder == "better"}
    assert gains["exact − sample · context 1 · all"] == 0.5
    assert gains["token error − sample · context 1 · all"] == pytest.approx(-2 / 324, abs=1e-6)


def test_shares_are_counted_by_group_with_their_number():
    before = np.stack([COW, COW, frame(), frame()])
    predicted = np.stack([COW, frame(), frame(), frame()])
    measures = {
        one.measure: one
        for one in accuracy(
            classifier(), SPEC, before, before, np.zeros(4, int), np.array([True, True, False, False]),
            {"it": predicted}, np.arange(4), "context 1",
        )
    }  # fmt: skip
    assert measures["exact · context 1 · all"].value == 0.75
    assert measures["exact · context 1 · with creatures"].value == 0.5
    assert measures["plausible · context 1 · without creatures"].value == 1.0
    assert measures["token error · context 1 · with creatures"].value == pytest.approx(1 / 162, abs=1e-6)
    assert measures["exact · context 1 · with creatures"].n == 2
    assert measures["token error · context 1 · all"].n == 4 * 81
