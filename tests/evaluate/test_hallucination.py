"""Creatures followed through frames drawn by hand, where it is plain what happened."""

import numpy as np
import pytest
from drawn import SPEC, classifier, frame, scrolled

from itc.evaluate.hallucination import hallucination, happenings

NOOP, UP, DOWN, LEFT, RIGHT = range(5)


def happened(before, after, action=NOOP):
    """The events of one step, those that are not zero."""
    seen = happenings(
        classifier(),
        SPEC,
        np.stack([before, after])[None],
        np.array([[action]]),
        np.ones((1, 1), bool),
        np.zeros(1, int),
    )
    single = {
        name: int(getattr(seen, name)[0, 0])
        for name in ("duplicated", "disappeared", "transmuted", "changed_near", "changed_far", "turned", "paired")
    }
    return {name: count for name, count in single.items() if count}


def test_a_creature_that_stays_or_steps_aside_is_found_again():
    assert happened(frame(C=((2, 2),)), frame(C=((2, 2),))) == {"paired": 1}
    assert happened(frame(C=((2, 2),)), frame(C=((2, 3),))) == {"paired": 1}


def test_one_that_is_there_twice_was_duplicated():
    assert happened(frame(C=((2, 2),)), frame(C=((2, 2), (2, 3)))) == {"paired": 1, "duplicated": 1}


def test_one_that_is_gone_disappeared():
    assert happened(frame(Z=((2, 2),)), frame()) == {"disappeared": 1}


def test_one_that_jumps_is_gone_here_and_from_nowhere_there():
    assert happened(frame(Z=((2, 2),)), frame(Z=((6, 6),))) == {"disappeared": 1, "duplicated": 1}


def test_one_that_turned_into_another_was_transmuted_and_nothing_else():
    assert happened(frame(C=((2, 2),)), frame(Z=((2, 2),))) == {"transmuted": 1}
    assert happened(frame(C=((2, 2),)), frame(Z=((2, 3),))) == {"transmuted": 1}


@pytest.mark.parametrize("cell", [(0, 4), (8, 3), (5, 0), (3, 8)])
def test_whoever_comes_or_goes_over_the_rim_is_excused(cell):
    assert happened(frame(C=(cell,)), frame()) == {}
    assert happened(frame(), frame(C=(cell,))) == {}


def test_a_spawn_in_the_middle_counts_so_that_the_simulator_has_a_rate_of_its_own():
    assert happened(frame(), frame(Z=((2, 6),)))["duplicated"] == 1


def test_creatures_are_followed_while_the_view_scrolls():
    before = frame(C=((2, 2),), Z=((6, 3),))
    assert happened(before, scrolled(before, 0, 1), RIGHT) == {}  # found again, but only a still view counts as paired
    assert happened(before, scrolled(frame(C=((3, 2),), Z=((6, 3),)), -1, 0), UP) == {}
    assert happened(before, scrolled(frame(C=((2, 2),)), -1, 0), UP) == {"disappeared": 1}


def test_a_view_that_did_not_move_although_the_player_wanted_to_is_recognised():
    before = frame(C=((2, 2),))
    assert happened(before, frame(C=((2, 3),)), RIGHT) == {"paired": 1}


def test_what_comes_into_view_may_be_anywhere_near_the_new_edge():
    before = frame()
    after = scrolled(before, 0, 1).reshape(SPEC.grid)
    after[3, 7] = 2  # it stood just outside, the view came towards it, and it took a step itself
    assert happened(before, after.ravel(), RIGHT) == {}


def test_tiles_that_change_next_to_the_player_and_elsewhere_are_counted_separately():
    assert happened(frame(), frame(**{"#": ((4, 5),)})) == {"changed_near": 1}
    assert happened(frame(), frame(**{"#": ((1, 1),)})) == {"changed_far": 1}


def test_two_creatures_that_pass_each_other_are_both_found_and_none_is_followed_twice():
    before, after = frame(C=((2, 2), (2, 3))), frame(C=((2, 3), (2, 4)))
    assert happened(before, after) == {"paired": 2}


def test_rates_are_per_creature_and_step_and_steps_after_the_end_do_not_count():
    tokens = np.stack([frame(C=((2, 2), (6, 6))), frame(C=((2, 2),)), frame()])[None]
    actions = np.zeros((1, 2), int)
    both = happenings(classifier(), SPEC, tokens, actions, np.ones((1, 2), bool), np.zeros(1, int))
    first = happenings(classifier(), SPEC, tokens, actions, np.array([[True, False]]), np.zeros(1, int))
    rates = {one.measure: one.value for one in hallucination("it", both, both)}
    assert rates["disappearance"] == pytest.approx(2 / 3, abs=1e-5)
    assert rates["disappearance · step 1"] == 0.5
    assert rates["disappearance · step 2"] == 1.0
    assert rates["count error"] == 0.0
    cut = {one.measure: one.value for one in hallucination("it", first, both)}
    assert cut["disappearance"] == 0.5
    assert "disappearance · step 2" not in cut


def test_the_distance_between_displacements_is_their_total_variation():
    stays = np.stack([frame(C=((2, 2),)), frame(C=((2, 2),))])[None].repeat(4, axis=0)
    half = stays.copy()
    half[:2, 1] = frame(C=((2, 3),))
    actions, counted = np.zeros((4, 1), int), np.ones((4, 1), bool)
    imagined, real = (
        happenings(classifier(), SPEC, tokens, actions, counted, np.arange(4)) for tokens in (half, stays)
    )
    found = {one.measure: one.value for one in hallucination("it", imagined, real)}
    assert found["displacement distance"] == 0.5
    assert found["stay rate"] == 0.5


def test_two_halves_of_the_simulators_worlds_differ_as_well():
    """The simulator's own displacement distance: here all odd worlds stay still and all even ones move."""
    tokens = np.stack([[frame(C=((2, 2),)), frame(C=((2, 2 + world % 2),))] for world in range(4)])
    real = happenings(classifier(), SPEC, tokens, np.zeros((4, 1), int), np.ones((4, 1), bool), np.arange(4))
    found = {one.measure: one.value for one in hallucination("simulator", real, real)}
    assert found["displacement distance"] == 1.0
