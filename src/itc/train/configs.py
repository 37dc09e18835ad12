"""The configuration class of each agent, by the agent's name."""

from itc.train.config import TrainConfig
from itc.train.patch_agent.config import PatchConfig
from itc.train.vq_agent.config import VQConfig

CONFIGS: dict[str, type[TrainConfig]] = {kind.agent: kind for kind in (PatchConfig, VQConfig)}
