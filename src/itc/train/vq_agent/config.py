"""Everything that can be set about a training run on Atari. The defaults are those of the paper's agent, ITC."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from itc.policies.actor_critic_loss import ActorCriticConfig
from itc.policies.lstm import LSTMPolicyConfig
from itc.settings import Count, CountOrZero, Fraction, NotNegative, Positive, Settings
from itc.tokenizers.vqvae import VQVAEConfig
from itc.train.config import TrainConfig, divides
from itc.world_models.pop import CONTEXT, POPConfig

LEAST_PIECE = 3  # steps of an episode that the world model learns from
SHORTEST_ROLLOUT = 4  # steps of an episode that an imagined rollout goes on from


@dataclass(frozen=True)
class CollectConfig(Settings):
    """Playing the real game, and remembering it."""

    epochs: Count = 500  # the game is played in the first so many epochs, and never again
    steps: Count = 200  # of each of them
    temperature: Positive = 1.0
    epsilon: Fraction = 0.01  # how often any action is played
    burn_in: Count = 20  # frames of the running episode that the policy's memory sees before it goes on
    replay_frames: Count = 110_000  # a frame for each step, and one more for each episode

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replay_frames < 2 * self.steps:
            raise ValueError(
                f"replay_frames {self.replay_frames} must be at least twice steps {self.steps}, what "
                "one epoch can leave behind"
            )


@dataclass(frozen=True)
class TokenizerLearning(Settings):
    """The tokenizer, and how it learns."""

    vqvae: VQVAEConfig = field(default_factory=VQVAEConfig)
    perceptual_weights: tuple[str, ...] = ()  # files of VGG16's and of LPIPS' linear weights; none: pixels only
    updates: Count = 200  # per epoch
    frames: Count = 128  # of an update
    after: CountOrZero = 5  # epochs without learning
    until: Count | None = None  # the epoch after which it stays as it is; None: it learns to the end, as published
    # A code that no frame needed in so many updates moves to where one is missing. Not so in the published agents (0),
    # whose codebook can collapse to a few codes when there is little to see and little time.
    revive_after: CountOrZero = 0
    learning_rate: Positive = 1e-4
    weight_decay: NotNegative = 0.01
    max_gradient_norm: Positive = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.until is not None and self.until <= self.after:
            raise ValueError(f"until {self.until} leaves no epoch to learn in after {self.after} without learning")
        if len(self.perceptual_weights) not in (0, 2):
            raise ValueError(
                "perceptual_weights takes two files, VGG16's and the linear weights, got "
                f"{len(self.perceptual_weights)}"
            )
        # Whole paths, so that a run can go on from another folder.
        whole = tuple(str(Path(file).absolute()) for file in self.perceptual_weights)
        object.__setattr__(self, "perceptual_weights", whole)


@dataclass(frozen=True)
class WorldModelLearning(Settings):
    """How the world model learns."""

    updates: Count = 200
    sequences: Count = 32  # of an update
    surprising: Fraction = 0.3  # part of the sequences that are drawn by how much they surprised, rounded up
    after: CountOrZero = 25
    learning_rate: Positive = 2e-4
    weight_decay: NotNegative = 0.05
    max_gradient_norm: Positive = 3.0

    @property
    def surprising_sequences(self) -> int:
        return math.ceil(self.surprising * self.sequences - 1e-9)  # 0.07 · 100 is a little more than 7


@dataclass(frozen=True)
class ImagineConfig(Settings):
    """Playing in imagination; each is followed by one policy update."""

    updates: CountOrZero = 80
    num_envs: Count = 128
    burn_in: Count = 20  # real frames that the policy's memory sees before the imagined rollout starts
    after: CountOrZero = 50
    curiosity: NotNegative = 1.0  # weight of the ensemble's disagreement in the reward


@dataclass(frozen=True)
class EvaluateConfig(Settings):
    """Playing by the rules of the benchmark, now and then."""

    every: CountOrZero = 20  # epochs; 0: never
    episodes: Count = 16  # more than eight: in whole rounds of eight
    temperature: Positive = 0.5


@dataclass(frozen=True)
class Compat(Settings):
    """What the authors' code does otherwise; off unless asked for. (docs/atari.md says more of each.)"""

    late_ends: bool = False  # the end of an episode is learned one step late
    look_ahead: bool = (
        False  # the first action of an imagined rollout is chosen from the frame after the one it is applied to
    )
    perceptual_dropout: bool = False  # half of the perceptual loss is dropped at random
    curious_to_the_end: bool = False  # curiosity is rewarded after the last real step, too
    copy_after_done: bool = False  # tokens are copied across the end of an imagined episode
    first_step_sampled: bool = False  # the first frame of an imagined rollout is sampled, whatever the decoder


@dataclass(frozen=True)
class VQConfig(TrainConfig):
    """A training run of the agent whose tokens are learned."""

    agent: ClassVar[str] = "vqvae"
    extendable: ClassVar[str] = "epochs"
    evaluation_episodes: ClassVar[int] = 104  # a hundred, in whole rounds of eight
    precision: ClassVar[str | None] = "highest"  # as the published agents compute

    env: str = "atari/pong"
    decoder: str = "paper-atari"
    epochs: Count = 600
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
        """Say in a sentence what cannot work together, before anything is compiled."""
        super().__post_init__()
        tokenizer, learning, imagine = self.tokenizer, self.world_model_learning, self.imagine
        if not tokenizer.after <= learning.after <= imagine.after:
            raise ValueError(
                "tokenizer.after, world_model_learning.after and imagine.after must not decrease: each learns from "
                f"what the one before has learned, got {tokenizer.after}, {learning.after} and {imagine.after}"
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
        """As many as the world model was trained to look ahead."""
        return self.world_model.context_frames - CONTEXT

    @property
    def imagination_after(self) -> int | None:
        return self.interactions_after(self.imagine.after) if self.learn_policy and self.imagine.updates else None

    @property
    def recent_iterations(self) -> int:
        """How many iterations the reported return looks back on: episodes can be longer than one."""
        return max(1, min(self.collect.epochs, 50))
