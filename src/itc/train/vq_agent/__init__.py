"""The agent of Atari: a VQ-VAE makes tokens, a retention network predicts them, the policy learns in imagination."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax import Array

from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import Player
from itc.policies.token_player import TokenPolicy
from itc.tokenizers.vqvae import VQVAE
from itc.train.agent import Agent, CodePictures, Part, Starts
from itc.train.vq_agent.config import VQConfig
from itc.train.vq_agent.exported import world_state
from itc.train.vq_agent.learn_tokenizer import perceptual_of
from itc.train.vq_agent.model_env import VQWorld
from itc.train.vq_agent.phases import imagine_from_replay, parts_of, player_of, world_of
from itc.train.vq_agent.state import VQState, new_state, shape_of_state
from itc.types import Rollout


class VQAgent(Agent):
    def check(self, env: Environment, config: VQConfig) -> None:
        grid, spec = config.tokenizer.vqvae.grid(env.spec.frame_shape), env.spec
        if grid != spec.grid:
            raise ValueError(f"tokenizer.vqvae makes a grid of {grid} from a frame, {spec.name} has {spec.grid}")
        # Raises an error if a file is wrong, and warns if none is given; the weights stay in its cache.
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

    def token_limit(self, state: VQState) -> int:
        return state.tokenizer.model.config.codes

    def code_pictures(self, state: VQState) -> CodePictures:
        """Each code is decoded in a frame of that code only, because its picture depends on its neighbours."""
        vqvae, in_use = state.tokenizer.model, np.flatnonzero(state.tokenizer.in_use)
        (height, width), side = vqvae.grid, vqvae.config.shrinking
        uniform = np.repeat(in_use[:, None], height * width, axis=1).astype(np.int32)
        top, left = side * (height // 2), side * (width // 2)
        frames = [np.asarray(_decode(vqvae, tokens[None], state.tokenizer.latent_stats)[0]) for tokens in uniform]
        pictures = np.array([frame[top : top + side, left : left + side] for frame in frames], np.uint8)
        note = "from the middle of a frame of nothing but this code"
        return CodePictures(pictures.reshape(-1, side, side, vqvae.frame_shape[2]), vqvae.config.codes, note)

    def world(self, state: VQState, env: Environment, config: VQConfig, decoder: DecodeConfig) -> VQWorld:
        return world_of(state, env, config, decoder)

    def learned(self, state: VQState, config: VQConfig) -> dict[str, Any]:
        tokenizer = state.tokenizer
        return {
            "policy": state.policy.network,
            "world_model": state.world_model.model,
            "tokenizer": tokenizer.model,
            "latent_stats": tokenizer.latent_stats,
            "idle": tokenizer.idle,
        }

    def shape_of_learned(self, env: Environment, config: VQConfig) -> dict[str, Any]:
        return self.learned(shape_of_state(env, config), config)

    def state_of(self, learned: dict[str, Any], config: VQConfig, starts: Starts, iteration: int, part: int) -> VQState:
        return world_state(learned, starts, iteration, part)

    def imagine(
        self, state: VQState, world: VQWorld, config: VQConfig, key: Array, num_envs: int, steps: int
    ) -> Rollout:
        imagine_config = replace(config.imagine, num_envs=num_envs)
        # As in training: an imagined rollout goes on after an end with the same recurrent state.
        policy = TokenPolicy(state.policy.network, world.tokenizer.codebook, reset_on_first=False)
        return _imagine(world, policy, state.buffer, key, imagine_config, steps, config.compat.look_ahead)


def _imagine_frames(world: VQWorld, *arguments) -> Rollout:
    """An imagined rollout with decoded frames instead of tokens."""
    imagined = imagine_from_replay(world, *arguments, reencode=True).rollout
    frames = jax.vmap(world.render)(imagined.frames)
    return imagined._replace(frames=frames, final_frame=world.render(imagined.final_frame))


_decode = jax.jit(VQVAE.decode)
_imagine = jax.jit(_imagine_frames, static_argnums=(4, 5, 6))
