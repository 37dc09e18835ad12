"""The agent of Atari: tokens are learned, a retention network predicts them, an actor-critic learns in imagination only."""

from dataclasses import replace

import jax
import numpy as np
from jax import Array

from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import Player
from itc.policies.token_player import TokenPolicy
from itc.tokenizers.vqvae import VQVAE
from itc.train.agent import Agent, CodePictures, Part
from itc.train.vq_agent.config import VQConfig
from itc.train.vq_agent.learn_tokenizer import perceptual_of
from itc.train.vq_agent.model_env import VQWorld
from itc.train.vq_agent.state import VQState, new_state, shape_of_state
from itc.train.vq_agent.work import imagine_from_replay, parts_of, player_of, world_of
from itc.types import Rollout


class VQAgent(Agent):
    def check(self, env: Environment, config: VQConfig) -> None:
        grid, spec = config.tokenizer.vqvae.grid(env.spec.frame_shape), env.spec
        if grid != spec.grid:
            raise ValueError(f"tokenizer.vqvae makes a grid of {grid} of a frame, {spec.name} has {spec.grid}")
        perceptual_of(config.tokenizer.perceptual_weights, config.compat.perceptual_dropout)

    def new_state(self, env: Environment, config: VQConfig, seed: int) -> VQState:
        return new_state(env, config, seed)

    def shape_of_state(self, env: Environment, config: VQConfig) -> VQState:
        return shape_of_state(env, config)

    def parts_of(self, env: Environment, config: VQConfig, iteration: int) -> list[Part]:
        return parts_of(env, config, iteration)

    def player(self, state: VQState, config: VQConfig) -> Player:
        return player_of(state, config.evaluate.temperature)

    def codes(self, state: VQState) -> int:
        return int(state.tokenizer.in_use.sum())

    def code_pictures(self, state: VQState) -> CodePictures:
        """What is drawn for a code depends on its neighbours, so each is drawn in a frame made of that code alone."""
        vqvae, in_use = state.tokenizer.model, np.flatnonzero(state.tokenizer.in_use)
        (height, width), side = vqvae.grid, vqvae.config.shrinking
        alone = np.repeat(in_use[:, None], height * width, axis=1).astype(np.int32)
        top, left = side * (height // 2), side * (width // 2)
        drawn = [np.asarray(_draw(vqvae, some[None], state.tokenizer.statistics)[0]) for some in alone]
        pictures = np.array([frame[top : top + side, left : left + side] for frame in drawn], np.uint8)
        note = "from the middle of a frame that is made of this code alone"
        return CodePictures(pictures.reshape(-1, side, side, vqvae.frame_shape[2]), vqvae.config.codes, note)

    def world(self, state: VQState, env: Environment, config: VQConfig, decoder: DecodeConfig) -> VQWorld:
        return world_of(state, env, config, decoder)

    def imagine(
        self, state: VQState, world: VQWorld, config: VQConfig, key: Array, num_envs: int, steps: int
    ) -> Rollout:
        asked = replace(config.imagine, num_envs=num_envs)
        act = TokenPolicy(state.policy.network, world.tokenizer.codebook, forgets=False)
        return _imagine(world, act, state.memory, key, asked, steps, config.compat.look_ahead)


def _imagined_frames(world: VQWorld, *arguments) -> Rollout:
    """An imagined rollout to look at: what the policy saw as tokens, as frames."""
    imagined = imagine_from_replay(world, *arguments, read=True).rollout
    frames = jax.vmap(world.show)(imagined.frames)
    return imagined._replace(frames=frames, final_frame=world.show(imagined.final_frame))


_draw = jax.jit(VQVAE.decode)
_imagine = jax.jit(_imagined_frames, static_argnums=(4, 5, 6))
