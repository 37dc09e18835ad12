"""A finished or running training run, as a value: its policy, its world model, its imagined rollouts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jax import Array

from itc.decoding.config import PRESETS, DecodeConfig
from itc.envs.base import Environment
from itc.envs.registry import allow, make
from itc.envs.rollout import Player
from itc.train import checkpoint
from itc.train.agent import Agent, Starts
from itc.train.agents import agent_of
from itc.train.config import TrainConfig
from itc.train.imagine import ModelEnv
from itc.train.run_folder import RunError, RunFolder
from itc.train.world_folder import is_world, read_world
from itc.types import Rollout


@dataclass(frozen=True)
class Run:
    """What a run folder holds."""

    path: Path
    preset: str
    seed: int
    config: TrainConfig
    env: Environment
    state: Any  # the agent's own kind of `TrainState`
    starts: Starts | None = None  # of a world: starting windows; its replay buffer holds the same

    @property
    def agent(self) -> Agent:
        return agent_of(self.config)

    @property
    def policy(self) -> Player:
        """The learned policy, as it is evaluated."""
        return self.agent.player(self.state, self.config)

    @property
    def world_model(self) -> Any:
        return self.state.world_model.model

    @property
    def codes(self) -> int:
        """How many codes are in use; 0 before the tokenizer is trained."""
        return self.agent.codes(self.state)

    @property
    def interactions(self) -> int:
        """Steps in the environment so far, including those of an iteration under way."""
        under_way = int(self.state.part) > 0
        return self.config.interactions_after(int(self.state.iteration) + under_way)

    def world(self, decoder: str | DecodeConfig | None = None) -> ModelEnv:
        """The world model as an environment to play in; the run's own decoder by default."""
        config = self.config.decode_config if decoder is None else decoder
        if isinstance(config, str):
            if config not in PRESETS:
                raise ValueError(f"unknown decoder {config!r}; known: {', '.join(PRESETS)}")
            config = PRESETS[config]
        return self.agent.world(self.state, self.env, self.config, config)

    def imagine(
        self, key: Array, num_envs: int = 1, steps: int | None = None, decoder: str | DecodeConfig | None = None
    ) -> Rollout:
        """Imagined rollouts of the policy, each started from frames of the replay buffer."""
        steps = self.config.imagination_steps if steps is None else steps
        with self.config.matmul_precision():
            return self.agent.imagine(self.state, self.world(decoder), self.config, key, num_envs, steps)


def load(path: str | Path, env: str | None = None) -> Run:
    """Read a run folder at its newest good checkpoint, or a world. Nothing in the folder is changed, or executed.

    `env` names an environment of your own, `module:function`, that may be imported if the run was made with it.
    """
    folder = RunFolder(Path(path))
    config, preset, seed = folder.read_config()
    if env is not None:
        allow(env)
    made = make(config.env)
    if is_world(folder.path):
        state, starts = read_world(folder.path, agent_of(config), made, config)
        return Run(folder.path, preset, seed, config, made, state, starts)
    found = checkpoint.restore(folder.checkpoints, agent_of(config).shape_of_state(made, config))
    if found is None:
        raise RunError(f"{folder.path} has no checkpoint yet")
    return Run(folder.path, preset, seed, config, made, found.state)
