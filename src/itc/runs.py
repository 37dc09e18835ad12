"""A finished or running training run, as a value: its policy, its world model, its dreams."""

from dataclasses import dataclass
from pathlib import Path

import jax
from jax import Array, random

from itc import replay
from itc.decoding.config import PRESETS, DecodeConfig
from itc.envs.base import Environment
from itc.envs.registry import make
from itc.policies.conv_gru import ActorCritic
from itc.tokenizers import patches
from itc.train import checkpoint
from itc.train.collect import sampling_policy
from itc.train.config import TrainConfig
from itc.train.imagine import WorldModelEnv, imagine
from itc.train.run_folder import RunError, RunFolder
from itc.train.state import TrainState, shape_of_state
from itc.train.work import burn_in
from itc.types import Rollout
from itc.world_models.gpt import WorldModel


@dataclass(frozen=True)
class Run:
    """What a run folder holds."""

    path: Path
    preset: str
    seed: int
    config: TrainConfig
    env: Environment
    state: TrainState

    @property
    def policy(self) -> ActorCritic:
        return self.state.policy.network

    @property
    def world_model(self) -> WorldModel:
        return self.state.world_model.model

    @property
    def codebook(self) -> patches.Codebook:
        return self.state.codebook

    def world(self, decoder: str | DecodeConfig | None = None) -> WorldModelEnv:
        """The learned world, playable like an environment; the run's own decoder by default."""
        config = self.config.decode_config if decoder is None else decoder
        if isinstance(config, str):
            if config not in PRESETS:
                raise ValueError(f"unknown decoder {config!r}; known: {', '.join(PRESETS)}")
            config = PRESETS[config]
        bucket = patches.bucket_of(int(self.codebook.size), len(self.codebook.patches))
        return WorldModelEnv(self.world_model, self.codebook, self.env.spec, config, bucket)

    def imagine(
        self, key: Array, lanes: int = 1, steps: int | None = None, decoder: str | DecodeConfig | None = None
    ) -> Rollout:
        """Dreams of the policy at play, from moments out of the replay memory."""
        steps = self.config.imagine.steps if steps is None else steps
        sample_key, dream_key = random.split(key)
        window = replay.sample(self.state.memory, sample_key, lanes, self.config.imagine.burn_in + 1)
        memory, first = burn_in(self.policy, window, released=False)
        start, no_actions = window["frame"][:, -1:], window["action"][:, :0]
        _, dream = _imagine(self.world(decoder), dream_key, start, no_actions, self.policy, memory, steps, first)
        return dream


@jax.jit(static_argnums=6)
def _imagine(world, key, frames, actions, network, memory, steps: int, first):
    return imagine(world, key, frames, actions, sampling_policy(network), memory, steps, first)


def load(path: str | Path) -> Run:
    """Read a run folder at its newest good checkpoint."""
    folder = RunFolder(Path(path))
    config, preset, seed = folder.read_config()
    env = make(config.env)
    found = checkpoint.restore(folder.checkpoints, shape_of_state(env, config))
    if found is None:
        raise RunError(f"{folder.path} has no checkpoint yet")
    return Run(folder.path, preset, seed, config, env, found.state)
