"""Imagined rollouts under recorded actions: beyond the model's context, and from several real frames."""

from itertools import pairwise

import numpy as np
import pytest
from jax import random

from itc.decoding.config import PRESETS
from itc.evaluate.imagination import AT_ONCE, first_block, imagine_windows
from itc.evaluate.predictions import decoded_predictions
from itc.evaluate.recording import record
from itc.train.runs import load

ARGMAX = {"argmax": PRESETS["argmax"]}  # draws nothing, and copies nothing whose episode would matter


@pytest.fixture(scope="module")
def run(trained_run):
    return load(trained_run)


@pytest.fixture(scope="module")
def played(run):
    """Frames and actions of more windows than are imagined at once."""
    recording = record(run.env, run.policy, run.state.codebook, random.key(0), AT_ONCE + 1, 20)
    return recording.tokens, recording.actions


def predicted(run, tokens, actions):
    """The frame after the last by the likeliest tokens."""
    decoded = decoded_predictions(
        run.world_model, run.state.codebook, run.env.spec, ARGMAX, tokens, actions, random.key(1)
    )
    return decoded["argmax"]


@pytest.mark.parametrize("initial", [1, 3])
def test_every_frame_is_predicted_from_those_before_it_that_fit_into_the_context(run, played, initial):
    """Eleven steps with a context of four frames."""
    (tokens, actions), context = played, run.config.context_frames
    past, steps = initial - 1, 11
    actions = actions[:, : past + steps]
    frames, _ = imagine_windows(run.world(PRESETS["argmax"]), tokens[:, :initial], actions, random.key(2))
    assert frames.shape == (AT_ONCE + 1, steps + 1, tokens.shape[-1])
    np.testing.assert_array_equal(frames[:, 0], tokens[:, past])
    seen = np.concatenate([tokens[:, :past], frames], axis=1)
    for at in range(past, past + steps):
        begin = first_block(at, context)
        np.testing.assert_array_equal(
            seen[:, at + 1], predicted(run, seen[:, begin : at + 1], actions[:, begin : at + 1]), err_msg=f"{at}"
        )


def test_steps_count_until_the_first_imagined_end(run, played):
    tokens, actions = played
    _, going = imagine_windows(run.world(PRESETS["sample"]), tokens[:, :1], actions[:, :20], random.key(3))
    assert going.shape == (AT_ONCE + 1, 20)
    assert (going[:, 1:] <= going[:, :-1]).all()
    assert not going.all()  # it hardly knows anything, and so ends some


@pytest.mark.parametrize("context", [1, 2, 3, 8, 20])
def test_the_context_never_overflows(context):
    begins = [first_block(at, context) for at in range(200)]
    assert all(0 <= at - begin < context for at, begin in enumerate(begins))
    assert all(later >= earlier for earlier, later in pairwise(begins))
    assert all(at - begin >= min(at, context // 2) for at, begin in enumerate(begins))
