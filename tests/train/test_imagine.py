"""Imagined rollouts: the world model as an environment, by the same rollout function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from tiny import TINY

import itc
from itc.envs.registry import make
from itc.envs.rollout import RandomPolicy, begin, recorded_policy, rollout
from itc.tokenizers import patches
from itc.train.imagine import imagine
from itc.train.patch_agent.learn_world_model import world_model_update
from itc.train.patch_agent.model_env import PatchWorld
from itc.train.patch_agent.phases import draw_experience, parts_of
from itc.train.patch_agent.state import new_state
from itc.world_models.gpt import WorldModel, WorldModelConfig

NUM_ENVS, STEPS = 4, 5
SMALL = WorldModelConfig(codes=64, context_frames=6, layers=2, heads=2, embedding=32, hidden=32)


@pytest.fixture(scope="module")
def env():
    return make("creatures")


@pytest.fixture(scope="module")
def real(env):
    state, frame = env.reset(random.key(0), NUM_ENVS)
    play = jax.jit(rollout, static_argnums=(0, 2, 4))
    return play(env, begin(state, frame), RandomPolicy(env.spec.num_actions), random.key(1), STEPS + 1)[1]


@pytest.fixture(scope="module")
def make_world(env, real):
    config = patches.PatchTokenizerConfig((4, 4, 3), codes=64)
    codebook = patches.update(patches.empty_codebook(config), real.frames.reshape(-1, *env.spec.frame_shape), config)
    model = WorldModel(random.key(2), env.spec.grid, env.spec.num_actions, SMALL)
    return lambda preset: PatchWorld(
        model=model, codebook=codebook, spec=env.spec, decoder=itc.PRESETS[preset], bucket=64, initial_frames=1
    )


def imagine_with(make_world, real, preset, context=1, key=3):
    actions = real.actions[:, context - 1 : STEPS]
    return jax.jit(
        lambda world, frames, actions, past: imagine(
            world, random.key(key), frames, past, recorded_policy(actions), jnp.int32(0), actions.shape[1]
        )[1]
    )(make_world(preset), real.frames[:, :context], actions, real.actions[:, : context - 1])


@pytest.mark.parametrize("preset", ["sample", "paper", "conserving"])
def test_an_imagined_rollout_has_the_shape_of_a_real_one(make_world, real, preset):
    imagined = imagine_with(make_world, real, preset)
    assert imagined.frames.shape == real.frames[:, :STEPS].shape
    np.testing.assert_array_equal(imagined.frames[:, 0], real.frames[:, 0])
    np.testing.assert_array_equal(imagined.actions, real.actions[:, :STEPS])
    assert imagined.outcome.tokens.shape == imagined.outcome.source.shape == (NUM_ENVS, STEPS, 81)
    assert set(np.unique(imagined.outcome.reward)) <= {0.0, 1.0}
    assert not imagined.outcome.truncated.any()


def test_frames_show_the_tokens_and_copies_equal_their_source(make_world, real):
    imagined = imagine_with(make_world, real, "conserving")
    codebook = make_world("conserving").codebook
    shown = patches.encode(codebook, imagined.frames[:, 1:].reshape(-1, *imagined.frames.shape[2:])).reshape(
        NUM_ENVS, STEPS - 1, 81
    )
    np.testing.assert_array_equal(shown, imagined.outcome.tokens[:, :-1])
    assert (np.asarray(imagined.outcome.tokens) < int(codebook.size)).all(), "an unused code was imagined"
    before = np.concatenate(
        [patches.encode(codebook, real.frames[:, 0])[:, None], imagined.outcome.tokens[:, :-1]], axis=1
    )
    source, tokens = np.asarray(imagined.outcome.source), np.asarray(imagined.outcome.tokens)
    copied = source >= 0
    np.testing.assert_array_equal(tokens[copied], np.take_along_axis(before, source.clip(0), axis=2)[copied])
    ended = np.asarray(imagined.outcome.terminated)
    assert ended.any(), "an untrained model should end some episodes, or this tests nothing"
    assert (source[ended] == -1).all(), "something was copied into a new episode"


def test_a_longer_context_is_the_same_as_stepping_through_it(make_world, real):
    """Starting from three real frames gives the same cache as two steps of the model through the first two."""
    world = make_world("argmax")
    state, frame = jax.jit(lambda w, f, a: w.start(random.key(0), f, a))(world, real.frames[:, :3], real.actions[:, :2])
    np.testing.assert_array_equal(frame, real.frames[:, 2])
    cache = world.model.empty_cache(NUM_ENVS)
    for t in range(2):
        cache, _ = world.model.step(cache, patches.encode(world.codebook, real.frames[:, t]), real.actions[:, t], 64)
    np.testing.assert_allclose(state.cache.keys, cache.keys, atol=1e-5)
    assert int(state.cache.block) == 2
    assert imagine_with(make_world, real, "argmax", context=3).actions.shape == (NUM_ENVS, 3)


def test_rollouts_too_long_for_the_context_are_refused(make_world, real):
    with pytest.raises(ValueError, match=r"steps must be in 1\.\.6, what the model's context leaves room for, got 7"):
        imagine(make_world("sample"), random.key(0), real.frames[:, :1], real.actions[:, :0], RandomPolicy(5), (), 7)
    with pytest.raises(ValueError, match="actions must be one fewer than the 2 frames, got 0"):
        imagine(make_world("sample"), random.key(0), real.frames[:, :2], real.actions[:, :0], RandomPolicy(5), (), 2)


def test_codes_new_to_the_model_are_not_imagined(env):
    """Codes added since the last update have less than a thousandth of the probability, whatever the bucket."""
    state = new_state(env, TINY, seed=0)
    for part in parts_of(env, TINY, 0):
        state, _ = part.do(state, state.key)
    known = int(state.world_model.trained_codes)
    assert known == int(state.codebook.size) < 64
    experience = draw_experience(state.buffer, state.codebook, random.key(5), TINY)
    for bucket in (64, 256):
        logits = jax.jit(WorldModel.__call__, static_argnums=3)(
            state.world_model.model, experience.tokens[:, :-1], experience.actions, bucket
        )
        mass = jax.nn.softmax(logits.tokens)[..., known:].sum(axis=-1)
        assert float(mass.max()) < 1e-3
    # After an update, they are as likely as any other new code.
    updated, _ = world_model_update(state.world_model, experience, jnp.int32(known + 10), random.key(0), 64)
    bias = np.asarray(updated.model.token_head.outer.bias)
    assert (bias[known : known + 10] > -1).all()
    assert (bias[known + 10 : 64] < -19).all()
