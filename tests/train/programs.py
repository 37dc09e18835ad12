"""The programs that an iteration of each agent calls, small, as traced from shapes: nothing is computed."""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from itc import replay
from itc.envs.registry import make
from itc.envs.rollout import rollout
from itc.policies.conv_gru import SamplingPolicy
from itc.train.collect import as_steps
from itc.train.patch_agent import phases as patch_phases
from itc.train.patch_agent.state import shape_of_state as shape_of_patch_state
from itc.train.vq_agent import phases as vq_phases
from itc.train.vq_agent.state import shape_of_state as shape_of_vq_state

KEY = jax.eval_shape(lambda: random.key(0))
NUMBER = jax.ShapeDtypeStruct((), jnp.int32)
UPDATES = 2  # more than one, so that a program repeats them


class Program(NamedTuple):
    """A compiled function and its arguments, of which the first few are overwritten."""

    function: Callable
    arguments: tuple
    overwritten: int = 0

    def traced(self):
        return self.function.trace(*self.arguments)

    @property
    def donated(self) -> int:
        """How many arrays may be overwritten."""
        return len(jax.tree.leaves(self.arguments[: self.overwritten]))


@cache
def patch_programs(config) -> dict[str, Program]:
    env = make(config.env)
    state = shape_of_patch_state(env, config)
    steps, codes = config.collect.steps, np.int32(5)
    player = jax.eval_shape(SamplingPolicy, state.policy.network)
    play = partial(rollout, env, steps=steps)
    final, real = jax.eval_shape(play, state.rollout_state, player, KEY)
    tokenizer = (config.collect.num_envs, config.world_model.context_frames + 1, config.tokenizer.updates)
    world = jax.eval_shape(
        lambda state: patch_phases.world_of(
            state._replace(codebook=state.codebook._replace(size=codes)), env, config, config.decode_config
        ),
        state,
    )
    learned = (state.world_model, state.buffer, state.codebook, KEY, UPDATES, world.bucket, config)
    before = state.rollout_state.policy
    return {
        "play": Program(jax.jit(play), (state.rollout_state, player, KEY)),
        "replay": Program(replay._add, (state.buffer, jax.eval_shape(as_steps, real), NUMBER), 1),
        "policy": Program(patch_phases.play_updates, (state.policy, before, real, final, config), 1),
        "tokenizer": Program(
            patch_phases._grown, (state.codebook, state.buffer, KEY, *tokenizer, config.tokenizer.config(env.spec), 0)
        ),
        "world model": Program(patch_phases.world_model_updates, learned, 1),
        "imagination": Program(
            patch_phases.imagination_updates, (state.policy, world, state.buffer, KEY, UPDATES, config), 1
        ),
    }


@cache
def vq_programs(config) -> dict[str, Program]:
    env = make(config.env)
    state = shape_of_vq_state(env, config)
    player = jax.eval_shape(lambda state: vq_phases.player_of(state, 1.0), state)
    now = state.rollout_state
    world = jax.eval_shape(
        lambda state: vq_phases.world_of(state._replace(iteration=0), env, config, config.decode_config), state
    )
    codebook = state.tokenizer.model.codebook
    return {
        "play": Program(jax.jit(lambda player, *seen: player(*seen)), (player, now.policy, now.frame, now.first, KEY)),
        "burn-in": Program(vq_phases._burned_in, (player, state.buffer, NUMBER, config.collect.burn_in)),
        "tokenizer": Program(
            vq_phases.tokenizer_updates, (state.tokenizer, state.buffer, None, KEY, UPDATES, config), 1
        ),
        "encoding": Program(vq_phases.encode_replay, (state.buffer, state.tokenizer.model, NUMBER, NUMBER), 1),
        "world model": Program(
            vq_phases.world_model_updates, (state.world_model, state.buffer, codebook, KEY, UPDATES, config), 2
        ),
        "imagination": Program(
            vq_phases.imagination_updates, (state.policy, world, state.buffer, KEY, UPDATES, config), 1
        ),
    }
