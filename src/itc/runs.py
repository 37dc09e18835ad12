"""A finished or running training run, as a value: its policy, its world model, its dreams."""

from dataclasses import dataclass, replace
from pathlib import Path

import jax
from jax import Array

from itc.decoding.config import PRESETS, DecodeConfig
from itc.envs.base import Environment
from itc.envs.registry import make
from itc.policies.conv_gru import ActorCritic
from itc.tokenizers import patches
from itc.train import checkpoint
from itc.train.config import TrainConfig
from itc.train.imagine import WorldModelEnv
from itc.train.run_folder import RunError, RunFolder
from itc.train.state import TrainState, shape_of_state
from itc.train.work import dream_of_play
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
        return WorldModelEnv(self.world_model, self.codebook, self.env.spec, config, self.codebook.bucket)

    def imagine(
        self, key: Array, lanes: int = 1, steps: int | None = None, decoder: str | DecodeConfig | None = None
    ) -> Rollout:
        """Dreams of the policy at play, from moments out of the replay memory."""
        steps = self.config.imagine.steps if steps is None else steps
        config = replace(self.config.imagine, lanes=lanes, steps=steps)
        return _dream(self.world(decoder), self.policy, self.state.memory, key, config).rollout


_dream = jax.jit(dream_of_play, static_argnums=4)


def load(path: str | Path) -> Run:
    """Read a run folder at its newest good checkpoint."""
    folder = RunFolder(Path(path))
    config, preset, seed = folder.read_config()
    env = make(config.env)
    found = checkpoint.restore(folder.checkpoints, shape_of_state(env, config))
    if found is None:
        raise RunError(f"{folder.path} has no checkpoint yet")
    return Run(folder.path, preset, seed, config, env, found.state)
