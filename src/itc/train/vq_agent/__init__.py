"""The agent of Atari: tokens are learned, a retention network predicts them, an actor-critic learns in dreams only."""

from dataclasses import replace

import jax
from jax import Array

from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import Player
from itc.policies.token_player import TokenPolicy
from itc.train.agent import Agent, Part
from itc.train.vq_agent.config import VQConfig
from itc.train.vq_agent.dream_world import VQWorld
from itc.train.vq_agent.state import VQState, new_state, shape_of_state
from itc.train.vq_agent.work import dream_of_play, parts_of, player_of, world_of
from itc.types import Rollout


class VQAgent(Agent):
    def new_state(self, env: Environment, config: VQConfig, seed: int) -> VQState:
        return new_state(env, config, seed)

    def shape_of_state(self, env: Environment, config: VQConfig) -> VQState:
        return shape_of_state(env, config)

    def parts_of(self, env: Environment, config: VQConfig, iteration: int) -> list[Part]:
        return parts_of(env, config, iteration)

    def player(self, state: VQState, config: VQConfig) -> Player:
        return player_of(state, config.evaluate.temperature)

    def codes(self, state: VQState) -> int:
        """All, as soon as the tokenizer has learned."""
        return len(state.tokenizer.model.codebook) if bool(state.tokenizer.statistics.mean.any()) else 0

    def world(self, state: VQState, env: Environment, config: VQConfig, decoder: DecodeConfig) -> VQWorld:
        return world_of(state, env, config, decoder)

    def dream(self, state: VQState, world: VQWorld, config: VQConfig, key: Array, lanes: int, steps: int) -> Rollout:
        asked = replace(config.imagine, lanes=lanes)
        act = TokenPolicy(state.policy.network, world.tokenizer.codebook, forgets=False)
        return _dream(world, act, state.memory, key, asked, steps, config.compat.look_ahead)


def _dreamed_frames(world: VQWorld, *arguments) -> Rollout:
    """A dream to look at: what the policy saw as tokens, as frames."""
    dream = dream_of_play(world, *arguments).rollout
    frames = jax.vmap(world.show)(dream.frames)
    return dream._replace(frames=frames, final_frame=world.show(dream.final_frame))


_dream = jax.jit(_dreamed_frames, static_argnums=(4, 5, 6))
