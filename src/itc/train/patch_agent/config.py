"""All settings of a training run on Craftax or MinAtar. The defaults are the paper's, for Craftax-classic."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from itc.policies.conv_gru import PolicyConfig
from itc.policies.losses import PPOConfig
from itc.settings import Count, CountOrZero, Fraction, Settings
from itc.train.config import TrainConfig, divides
from itc.train.patch_agent.learn_tokenizer import TokenizerLearning
from itc.train.patch_agent.learn_world_model import WorldModelLearning
from itc.world_models.gpt import WorldModelConfig


@dataclass(frozen=True)
class CollectConfig(Settings):
    """Real rollouts and replay buffer."""

    num_envs: Count = 48  # environments in parallel
    steps: Count = 96  # steps per environment and iteration
    replay_frames: Count = 128_000  # size of the replay buffer in frames, over all environments


@dataclass(frozen=True)
class ImagineConfig(Settings):
    """Imagination."""

    updates: CountOrZero = 300  # imagined rollouts per iteration, each followed by one policy update; 0: none
    num_envs: Count = 48  # environments in parallel in an imagined rollout
    steps: Count = 20  # steps of an imagined rollout
    burn_in: CountOrZero = 5  # real frames before the first imagined one that warm up the policy's recurrent state
    initial_frames: Count = 1  # real frames that the world model is given at the start of a rollout
    recent_fraction: Fraction = 0.0  # fraction of rollouts that start in this iteration's real rollouts
    learn_after_end: bool = True  # learn also from steps after an imagined episode end
    update_return_normaliser: bool = True  # imagined returns update the return normaliser; off: only real ones do
    warm_up: CountOrZero = 50_000  # real interactions before the first imagined rollout


@dataclass(frozen=True)
class Compat(Settings):
    """Mistakes in the authors' code that may affect its results; all are off by default."""

    leaky_gae: bool = False  # advantages are computed across episode ends
    burn_in_reset: bool = False  # during burn-in, an episode end resets the recurrent state one frame too early
    copy_after_done: bool = False  # tokens are copied across the end of an imagined episode


@dataclass(frozen=True)
class PatchConfig(TrainConfig):
    """A training run of the agent whose tokens are image patches."""

    agent: ClassVar[str] = "patches"
    extendable: ClassVar[str] = "interactions"
    evaluation_episodes: ClassVar[int] = 1000

    interactions: Count = 1_000_000  # steps in the real environments in total, rounded down to whole iterations
    collect: CollectConfig = field(default_factory=CollectConfig)
    tokenizer: TokenizerLearning = field(default_factory=TokenizerLearning)
    world_model: WorldModelConfig = field(default_factory=WorldModelConfig)
    world_model_learning: WorldModelLearning = field(default_factory=WorldModelLearning)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    imagine: ImagineConfig = field(default_factory=ImagineConfig)
    compat: Compat = field(default_factory=Compat)

    def __post_init__(self) -> None:
        """Refuse impossible settings with a sentence, before anything is compiled."""
        super().__post_init__()
        collect, imagine, context_frames = self.collect, self.imagine, self.world_model.context_frames
        if imagine.initial_frames - 1 + imagine.steps > context_frames:
            raise ValueError(
                f"imagine.steps {imagine.steps} after imagine.initial_frames {imagine.initial_frames} exceed "
                f"world_model.context_frames {context_frames}, the model's context"
            )
        if self.interactions < self.interactions_per_iteration:
            raise ValueError(
                f"interactions {self.interactions} are fewer than one iteration has: "
                f"{collect.num_envs} environments × {collect.steps} steps = {self.interactions_per_iteration}"
            )
        slots = collect.replay_frames // collect.num_envs
        if slots < collect.steps:
            raise ValueError(
                f"collect.replay_frames {collect.replay_frames} hold {slots} steps per environment, fewer than the "
                f"collect.steps {collect.steps} of one iteration"
            )
        window = max(context_frames, imagine.burn_in) + 1
        if collect.steps < window:  # so many are in the replay buffer after the first iteration
            raise ValueError(
                f"windows of {window} steps (world_model.context_frames or imagine.burn_in, plus 1) do not fit into "
                f"collect.steps {collect.steps}"
            )
        divides("ppo.minibatches", self.ppo.minibatches, "collect.num_envs", collect.num_envs)
        envs_per_minibatch = collect.num_envs // self.ppo.minibatches
        divides("ppo.accumulate", self.ppo.accumulate, "environments of a minibatch", envs_per_minibatch)
        divides("ppo.accumulate", self.ppo.accumulate, "imagine.num_envs", imagine.num_envs)
        if self.imagination_after is not None and not self.world_model_learning.updates:
            raise ValueError(
                f"world_model_learning.updates 0 train no world model for imagine.updates {imagine.updates} to imagine "
                "with; without imagination, imagine.updates must be 0, too"
            )
        if self.tokenizer.codes != self.world_model.codes:
            raise ValueError(
                f"tokenizer.codes {self.tokenizer.codes} and world_model.codes {self.world_model.codes} must be equal"
            )
        self.check_decoder()

    @property
    def interactions_per_iteration(self) -> int:
        return self.collect.num_envs * self.collect.steps

    @property
    def iterations(self) -> int:
        return self.interactions // self.interactions_per_iteration

    def interactions_after(self, iteration: int) -> int:
        return iteration * self.interactions_per_iteration

    def with_iterations(self, iterations: int) -> "PatchConfig":
        return replace(self, interactions=iterations * self.interactions_per_iteration)

    @property
    def context_frames(self) -> int:
        return self.world_model.context_frames

    @property
    def imagination_steps(self) -> int:
        return self.imagine.steps

    @property
    def burn_in(self) -> int:
        return self.imagine.burn_in

    @property
    def imagination_after(self) -> int | None:
        return self.imagine.warm_up if self.train_policy and self.imagine.updates else None

    @property
    def learns_world_model(self) -> bool:
        """Whether there is a world model, and therefore a tokenizer; without imagination neither is needed."""
        return self.world_model_learning.updates > 0

    def imagines_in(self, iteration: int) -> bool:
        """Whether the policy learns in imagination in this iteration (counted from 0): the warm-up is over."""
        return self.imagination_after is not None and self.interactions_after(iteration + 1) > self.imagination_after
