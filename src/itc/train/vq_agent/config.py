"""All settings of a training run on Atari. The defaults are those of the paper's agent, ITC."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from itc.policies.actor_critic_loss import ActorCriticConfig
from itc.policies.lstm import LSTMPolicyConfig
from itc.settings import Count, CountOrZero, Fraction, NotNegative, Positive, Settings
from itc.tokenizers.vqvae import VQVAEConfig
from itc.train.config import DecoderName, EnvName, FileNames, TrainConfig, divides
from itc.world_models.pop import CONTEXT, POPConfig

LEAST_PIECE = 3  # steps of an episode that a training sequence of the world model has at least
SHORTEST_ROLLOUT = 4  # steps of an episode, at least, from whose end an imagined rollout can start


@dataclass(frozen=True)
class CollectConfig(Settings):
    """Playing the real environment, and the replay buffer."""

    epochs: Count = 500  # epochs, from the first on, in which the real environment is played
    steps: Count = 200  # steps in the real environment per epoch
    temperature: Positive = 1.0  # temperature of the policy's action distribution
    epsilon: Fraction = 0.01  # probability of a uniformly random action
    burn_in: Count = 20  # last frames of the episode, from which each epoch computes the policy's recurrent state
    replay_frames: Count = 110_000  # size of the replay buffer in frames: one per step, and one more per episode

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replay_frames < 2 * self.steps:
            raise ValueError(
                f"replay_frames {self.replay_frames} must be at least twice steps {self.steps}, the most "
                "that one epoch can store"
            )


@dataclass(frozen=True)
class TokenizerLearning(Settings):
    """The tokenizer (VQ-VAE), and how it learns."""

    vqvae: VQVAEConfig = field(default_factory=VQVAEConfig)
    perceptual_weights: FileNames = ()  # two files, VGG16's and LPIPS' linear weights; none: no perceptual loss
    updates: Count = 200  # updates per epoch
    frames: Count = 128  # frames per update
    after: CountOrZero = 5  # epochs before the tokenizer starts to learn
    until: Count | None = None  # epoch after which the tokenizer is frozen; None: it learns to the end, as published
    # At 0, as published, the codebook can collapse to a few codes where frames vary little and training is short.
    revive_after: CountOrZero = 0  # updates after which an unused code is moved to a badly encoded cell; 0: never
    learning_rate: Positive = 1e-4  # learning rate of AdamW
    weight_decay: NotNegative = 0.01  # weight decay of AdamW
    max_gradient_norm: Positive = 10.0  # gradients are clipped to this norm

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.until is not None and self.until <= self.after:
            raise ValueError(f"until {self.until} leaves no epoch to learn in after {self.after} without learning")
        if len(self.perceptual_weights) not in (0, 2):
            raise ValueError(
                "perceptual_weights takes two files, VGG16's and the linear weights, got "
                f"{len(self.perceptual_weights)}"
            )
        # Absolute paths, so that a run can be resumed from another folder.
        absolute = tuple(str(Path(file).absolute()) for file in self.perceptual_weights)
        object.__setattr__(self, "perceptual_weights", absolute)


@dataclass(frozen=True)
class WorldModelLearning(Settings):
    """How the world model learns."""

    updates: Count = 200  # updates per epoch
    sequences: Count = 32  # sequences per update, each of `world_model.context_frames` frames
    prioritised: Fraction = 0.3  # share of sequences that are sampled by priority, the last loss on them; rounded up
    after: CountOrZero = 25  # epochs before the world model starts to learn
    learning_rate: Positive = 2e-4  # learning rate of AdamW
    weight_decay: NotNegative = 0.05  # weight decay of AdamW
    max_gradient_norm: Positive = 3.0  # gradients are clipped to this norm

    @property
    def prioritised_sequences(self) -> int:
        return math.ceil(self.prioritised * self.sequences - 1e-9)  # 0.07 · 100 is a little more than 7


@dataclass(frozen=True)
class ImagineConfig(Settings):
    """Imagined rollouts, from which the policy learns."""

    updates: CountOrZero = 80  # imagined rollouts per epoch, each followed by one policy update; 0: no imagination
    num_envs: Count = 128  # environments in parallel in an imagined rollout
    burn_in: Count = 20  # real frames before a rollout's start, from which the policy's recurrent state is computed
    after: CountOrZero = 50  # epochs before the first imagined rollout
    curiosity: NotNegative = 1.0  # weight of the intrinsic reward, the disagreement of the world model's ensemble


@dataclass(frozen=True)
class EvaluateConfig(Settings):
    """Evaluation by the benchmark's rules, during training."""

    every: CountOrZero = 20  # epochs between evaluations; 0: no evaluation
    episodes: Count = 16  # episodes per evaluation; above 8, rounded up to a multiple of 8
    temperature: Positive = 0.5  # temperature of the policy's action distribution


@dataclass(frozen=True)
class Compat(Settings):
    """What the authors' code does differently; all are off by default. (Details: docs/atari.md.)"""

    late_ends: bool = False  # the world model learns the end of an episode one step late
    look_ahead: bool = False  # the first action of an imagined rollout is chosen from the frame after its own
    perceptual_dropout: bool = False  # half of the differences in the perceptual loss are dropped at random
    curious_to_the_end: bool = False  # the intrinsic reward stays on after the last real step
    copy_after_done: bool = False  # tokens are copied across the end of an imagined episode
    first_step_sampled: bool = False  # the first imagined frame is sampled without copying, whatever the decoder


@dataclass(frozen=True)
class VQConfig(TrainConfig):
    """A training run of the agent whose tokenizer is learned."""

    agent: ClassVar[str] = "vqvae"
    extendable: ClassVar[str] = "epochs"
    evaluation_episodes: ClassVar[int] = 104  # the benchmark's 100, rounded up to a multiple of 8
    precision: ClassVar[str | None] = "highest"  # as in the published agents

    env: EnvName = "atari/pong"  # environment: a name from `itc envs`, or module:function for one of your own
    decoder: DecoderName = (
        "paper-atari"  # preset that turns predicted logits into the next frame's tokens (docs/decoders.md)
    )
    epochs: Count = 600  # iterations of the whole run
    collect: CollectConfig = field(default_factory=CollectConfig)
    tokenizer: TokenizerLearning = field(default_factory=TokenizerLearning)
    world_model: POPConfig = field(default_factory=POPConfig)
    world_model_learning: WorldModelLearning = field(default_factory=WorldModelLearning)
    policy: LSTMPolicyConfig = field(default_factory=LSTMPolicyConfig)
    actor_critic: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    imagine: ImagineConfig = field(default_factory=ImagineConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    compat: Compat = field(default_factory=Compat)

    def __post_init__(self) -> None:
        """Refuse impossible settings with a sentence, before anything is compiled."""
        super().__post_init__()
        tokenizer, learning, imagine = self.tokenizer, self.world_model_learning, self.imagine
        if not tokenizer.after <= learning.after <= imagine.after:
            raise ValueError(
                "tokenizer.after, world_model_learning.after and imagine.after must not decrease: each needs what "
                f"the one before has learned, got {tokenizer.after}, {learning.after} and {imagine.after}"
            )
        vqvae, model = tokenizer.vqvae, self.world_model
        if (vqvae.codes, vqvae.code_size) != (model.codes, model.width):
            raise ValueError(
                f"tokenizer.vqvae has {vqvae.codes} codes of {vqvae.code_size} numbers, world_model {model.codes} "
                f"codes of width {model.width}: they must be equal"
            )
        divides("world_model.members", model.members, "world_model_learning.sequences", learning.sequences)
        for name, count in (
            ("tokenizer.frames", tokenizer.frames),
            ("world_model_learning.sequences", learning.sequences),
            ("imagine.num_envs", imagine.num_envs),
        ):
            if count > self.collect.replay_frames:
                raise ValueError(f"{name} {count} must not exceed collect.replay_frames {self.collect.replay_frames}")
        self.check_decoder()

    @property
    def iterations(self) -> int:
        return self.epochs

    @property
    def interactions_per_iteration(self) -> int:
        return self.collect.steps

    def interactions_after(self, iteration: int) -> int:
        return min(iteration, self.collect.epochs) * self.collect.steps

    def with_iterations(self, iterations: int) -> "VQConfig":
        return replace(self, epochs=iterations)

    @property
    def context_frames(self) -> int:
        return self.world_model.context_frames

    @property
    def imagination_steps(self) -> int:
        """As many as the world model was trained to predict."""
        return self.world_model.context_frames - CONTEXT

    @property
    def imagination_after(self) -> int | None:
        return self.interactions_after(self.imagine.after) if self.train_policy and self.imagine.updates else None
