"""The agent of Craftax and MinAtar: tokens are image patches, a transformer predicts them, PPO trains the policy."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax import Array

from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import Player
from itc.policies.conv_gru import SamplingPolicy
from itc.train.agent import Agent, CodePictures, Part, Starts
from itc.train.patch_agent.config import PatchConfig
from itc.train.patch_agent.exported import in_use_only, world_state
from itc.train.patch_agent.model_env import PatchWorld
from itc.train.patch_agent.phases import imagine_from_replay, num_logits, parts_of, world_of
from itc.train.patch_agent.state import PatchState, new_state, shape_of_state
from itc.types import Rollout


class PatchAgent(Agent):
    def new_state(self, env: Environment, config: PatchConfig, seed: int) -> PatchState:
        return new_state(env, config, seed)

    def shape_of_state(self, env: Environment, config: PatchConfig) -> PatchState:
        return shape_of_state(env, config)

    def parts_of(self, env: Environment, config: PatchConfig, iteration: int) -> list[Part]:
        return parts_of(env, config, iteration)

    def player(self, state: PatchState, config: PatchConfig) -> Player:
        return SamplingPolicy(state.policy.network)

    def codes(self, state: PatchState) -> int:
        return int(state.codebook.size)

    def token_limit(self, state: PatchState) -> int:
        return min(self.codes(state), len(state.codebook.patches))

    def code_pictures(self, state: PatchState) -> CodePictures:
        patches = np.asarray(state.codebook.patches)
        return CodePictures(patches[: self.codes(state)], len(patches), "in the order in which they were found")

    def world(self, state: PatchState, env: Environment, config: PatchConfig, decoder: DecodeConfig) -> PatchWorld:
        return world_of(state, env, config, decoder)

    def learned(self, state: PatchState, config: PatchConfig) -> dict[str, Any]:
        model = in_use_only(state.world_model.model, self.codes(state), num_logits(state, config))
        return {"policy": state.policy.network, "world_model": model, "codebook": state.codebook}

    def shape_of_learned(self, env: Environment, config: PatchConfig) -> dict[str, Any]:
        state = shape_of_state(env, config)
        return {"policy": state.policy.network, "world_model": state.world_model.model, "codebook": state.codebook}

    def state_of(
        self, learned: dict[str, Any], config: PatchConfig, starts: Starts, iteration: int, part: int
    ) -> PatchState:
        return world_state(learned, starts, iteration, part)

    def imagine(
        self, state: PatchState, world: PatchWorld, config: PatchConfig, key: Array, num_envs: int, steps: int
    ) -> Rollout:
        imagine_config = replace(config.imagine, num_envs=num_envs, steps=steps)
        recent_steps, early_reset = config.collect.steps, config.compat.burn_in_reset
        network, buffer = state.policy.network, state.buffer
        return _imagine(world, network, buffer, key, imagine_config, recent_steps, early_reset).rollout


_imagine = jax.jit(imagine_from_replay, static_argnums=(4, 5, 6))
