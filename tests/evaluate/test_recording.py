"""Recorded play, measured in the creatures' world, where everything is known."""

import jax.numpy as jnp
import numpy as np
import pytest
from drawn import SPEC
from jax import random

from itc.envs.creatures import TILE_PIXELS
from itc.envs.registry import make
from itc.evaluate.following import headings, view_motion
from itc.evaluate.footing import walkable_ground
from itc.evaluate.hallucination import happenings
from itc.evaluate.recording import record
from itc.evaluate.scenes import Scene, classifier_for
from itc.policies.conv_gru import ActorCritic, PolicyConfig, SamplingPolicy
from itc.policies.encoders import EncoderConfig
from itc.tokenizers.patches import Codebook

NUM_ENVS, STEPS = 16, 60


@pytest.fixture(scope="module")
def played():
    network = ActorCritic(
        random.key(0), SPEC, PolicyConfig(EncoderConfig((1,), resize=(1, 1)), recurrent_size=1, hidden=1)
    )
    codebook = Codebook(jnp.asarray(TILE_PIXELS), jnp.int32(len(TILE_PIXELS)))
    recording = record(make("creatures"), SamplingPolicy(network), codebook, random.key(1), NUM_ENVS, STEPS)
    return recording, classifier_for(SPEC, codebook, recording)


def test_the_entity_classifier_learns_what_every_code_means(played):
    recording, classifier = played
    assert classifier.error(recording) == 0.0
    scene, truth = classifier(recording.tokens), classifier.truth(recording)
    assert (scene.creatures == truth.creatures).all()
    assert (truth.creatures.any(axis=(2, 3, 4)) == recording.creatures).all()


def test_in_a_world_without_spawning_no_creature_comes_from_nowhere(played):
    """Any error about the view's motion would show as creatures that appear."""
    recording, classifier = played
    seen = happenings(
        classifier, SPEC, recording.tokens, recording.actions, recording.same_episode, np.arange(NUM_ENVS)
    )
    counted = recording.same_episode
    assert seen.creatures[counted].sum() > 500
    assert seen.duplicated[counted].sum() == 0
    assert seen.transmuted[counted].sum() == 0
    # Only eaten cows disappear: those the player walked onto.
    assert seen.disappeared[counted].sum() < 0.02 * seen.creatures[counted].sum()
    assert seen.changed_far[counted].sum() == 0


def test_the_view_moves_as_the_player_does(played):
    """A player that is not stopped by anything moves the view; walls in front stop it."""
    recording, classifier = played
    before, after = (
        Scene(
            *(
                part[:, cut].reshape(-1, *part.shape[2:])[recording.same_episode.ravel()]
                for part in classifier(recording.tokens)
            )
        )
        for cut in (slice(None, -1), slice(1, None))
    )
    heading = headings(SPEC, recording.actions[recording.same_episode])
    motion = view_motion(SPEC, before, after, heading)
    ahead = before.kinds[np.arange(len(heading)), 4 + heading[:, 0], 4 + heading[:, 1]]
    wants = heading.any(axis=1)
    assert not motion[wants & (ahead == 4)].any()
    free = wants & (ahead == 0)
    assert (motion[free] == heading[free]).all(axis=1).mean() == 1.0


def test_windows_stay_within_their_episode_and_transitions_keep_what_led_to_them(played):
    recording, _ = played
    windows = recording.windows(1000, 10)
    assert windows.tokens.shape[1:] == (11, SPEC.cells)
    for tokens, actions, env_index in zip(*windows, strict=True):
        starts = [
            start
            for start in range(STEPS - 9)
            if (recording.tokens[env_index, start : start + 11] == tokens).all()
            and (recording.actions[env_index, start : start + 10] == actions).all()
        ]
        assert any(recording.same_episode[env_index, start : start + 10].all() for start in starts)
    # Every stretch of an episode is cut from its beginning.
    expected = 0
    for same in recording.same_episode:
        lengths = np.diff(np.concatenate([[-1], np.flatnonzero(~same), [len(same)]])) - 1
        expected += (lengths // 10).sum()
    assert len(windows.env_index) == expected
    assert len(recording.windows(5, 10).env_index) == 5
    steps = recording.transitions(50, 3)
    assert len(steps.env_index) == 50
    one = 17
    env_index = steps.env_index[one]
    at = [
        time
        for time in range(3, STEPS + 1)
        if (recording.tokens[env_index, time - 3 : time] == steps.tokens[one]).all()
        and (recording.tokens[env_index, time] == steps.after[one]).all()
    ]
    assert at
    assert recording.same_episode[env_index, at[0] - 3 : at[0]].all()


def test_creatures_walk_on_the_ground_but_not_through_walls(played):
    recording, classifier = played
    walkable = walkable_ground(classifier, SPEC, recording)
    ground, wall = 0, 4  # as tiles
    assert walkable.shape[0] == len(SPEC.creatures)
    assert walkable[:, ground].all()
    assert not walkable[:, wall].any()
