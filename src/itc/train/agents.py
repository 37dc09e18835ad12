"""All agents, by name (`TrainConfig.agent`)."""

from itc.train.agent import Agent
from itc.train.config import TrainConfig
from itc.train.patch_agent import PatchAgent
from itc.train.vq_agent import VQAgent

AGENTS: dict[str, Agent] = {"patches": PatchAgent(), "vqvae": VQAgent()}


def agent_of(config: TrainConfig) -> Agent:
    return AGENTS[config.agent]
