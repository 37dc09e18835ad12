"""Everything that can be set about a training run on Atari. The defaults are those of the paper's agent, ITC."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from itc.policies.actor_critic_loss import ActorCriticConfig
from itc.policies.lstm import LSTMPolicyConfig
from itc.tokenizers.vqvae import VQVAEConfig
from itc.train.config import TrainConfig, at_least_one
from itc.world_models.pop import POPConfig

LEAST_PIECE = 3  # steps of an episode that the world model learns from
LEAST_DREAM = 4  # steps of an episode that a dream goes on from


@dataclass(frozen=True)
class CollectConfig:
    """Playing the real game, and remembering it."""

    epochs: int = 500  # the game is played in the first so many epochs, and never again
    steps: int = 200  # of each of them
    temperature: float = 1.0
    epsilon: float = 0.01  # how often any action is played
    burn_in: int = 20  # frames of the running episode that the policy's memory sees before it goes on
    replay_frames: int = 110_000  # a frame for each step, and one more for each episode


@dataclass(frozen=True)
class TokenizerLearning:
    """The tokenizer, and how it learns."""

    vqvae: VQVAEConfig = field(default_factory=VQVAEConfig)
    perceptual_weights: tuple[str, ...] = ()  # files of VGG16's and of LPIPS' linear weights; none: pixels only
    updates: int = 200  # per epoch
    frames: int = 128  # of an update
    after: int = 5  # epochs without learning
    # A code that no frame needed in so many updates moves to where one is missing. Not so in the published agents (0),
    # whose codebook can collapse to a few codes when there is little to see and little time.
    revive_after: int = 0
    learning_rate: float = 1e-4
    weight_decay: float = 0.01
    max_gradient_norm: float = 10.0


@dataclass(frozen=True)
class WorldModelLearning:
    """How the world model learns."""

    updates: int = 200
    sequences: int = 32  # of an update
    surprising: float = 0.3  # part of the sequences that are drawn by how much they surprised, rounded up
    after: int = 25
    learning_rate: float = 2e-4
    weight_decay: float = 0.05
    max_gradient_norm: float = 3.0

    @property
    def surprising_sequences(self) -> int:
        return -(-round(1000 * self.surprising) * self.sequences // 1000)


@dataclass(frozen=True)
class ImagineConfig:
    """Playing in dreams; each is followed by one policy update."""

    updates: int = 80
    lanes: int = 128
    burn_in: int = 20  # real frames that the policy's memory sees before the dream starts
    after: int = 50
    curiosity: float = 1.0  # weight of the ensemble's disagreement in the reward


@dataclass(frozen=True)
class EvaluateConfig:
    """Playing by the rules of the benchmark, now and then."""

    every: int = 20  # epochs; 0: never
    episodes: int = 16
    temperature: float = 0.5


@dataclass(frozen=True)
class Compat:
    """What the authors' code does otherwise; off unless asked for. (docs/atari.md says more of each.)"""

    late_ends: bool = False  # the end of an episode is learned one step late
    look_ahead: bool = False  # the first action of a dream is chosen from the frame after the one it is applied to
    perceptual_dropout: bool = False  # half of the perceptual loss is dropped at random
    curious_to_the_end: bool = False  # curiosity is rewarded after the last real step, too
    copy_after_done: bool = False  # tokens are copied across the end of a dreamed episode
    first_step_sampled: bool = False  # the first frame of a dream is sampled, whatever the decoder


@dataclass(frozen=True)
class VQConfig(TrainConfig):
    """A training run of the agent whose tokens are learned."""

    agent: ClassVar[str] = "vqvae"
    extendable: ClassVar[str] = "epochs"
    evaluation_episodes: ClassVar[int] = 104  # a hundred, in whole rounds of eight

    env: str = "atari/pong"
    decoder: str = "paper-atari"
    epochs: int = 600
    collect: CollectConfig = field(default_factory=CollectConfig)
    tokenizer: TokenizerLearning = field(default_factory=TokenizerLearning)
    world_model: POPConfig = field(default_factory=POPConfig)
    world_model_learning: WorldModelLearning = field(default_factory=WorldModelLearning)
    policy: LSTMPolicyConfig = field(default_factory=LSTMPolicyConfig)
    actor_critic: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    learn_policy: bool = True  # off: play as at the start for ever, and learn the world model only
    imagine: ImagineConfig = field(default_factory=ImagineConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    compat: Compat = field(default_factory=Compat)

    def __post_init__(self) -> None:
        """Say in a sentence what cannot work, before anything is compiled."""
        at_least_one(self, "", "epochs")
        at_least_one(self.collect, "collect", "epochs", "steps")
        at_least_one(self.tokenizer, "tokenizer", "updates", "frames")
        at_least_one(self.world_model_learning, "world_model_learning", "updates", "sequences")
        at_least_one(self.imagine, "imagine", "lanes")
        at_least_one(self.evaluate, "evaluate", "episodes")
        for config, name in ((self.tokenizer, "tokenizer"), (self.world_model_learning, "world_model_learning"),
                             (self.imagine, "imagine")):  # fmt: skip
            if config.after < 0:
                raise ValueError(f"{name}.after must not be negative, got {config.after}")
        if min(self.imagine.updates, self.evaluate.every) < 0:
            raise ValueError("imagine.updates and evaluate.every must not be negative")
        if not self.tokenizer.after <= self.world_model_learning.after <= self.imagine.after:
            raise ValueError(
                "tokenizer.after, world_model_learning.after and imagine.after must not decrease: each learns from "
                f"what the one before has learned, got {self.tokenizer.after}, {self.world_model_learning.after} and "
                f"{self.imagine.after}"
            )
        vqvae, model = self.tokenizer.vqvae, self.world_model
        if (vqvae.codes, vqvae.code_size) != (model.codes, model.width):
            raise ValueError(
                f"tokenizer.vqvae has {vqvae.codes} codes of {vqvae.code_size} numbers, world_model {model.codes} "
                f"codes of width {model.width}: they must be equal"
            )
        if self.dream_steps < 1:
            raise ValueError(
                f"world_model.blocks {model.blocks} leave no room for a dream after a context of {model.context}"
            )
        if self.imagine.burn_in < 1 or self.collect.burn_in < 1:
            raise ValueError("imagine.burn_in and collect.burn_in must be at least 1")
        if self.collect.replay_frames < 2 * self.collect.steps:
            raise ValueError(
                f"collect.replay_frames {self.collect.replay_frames} must be at least twice collect.steps "
                f"{self.collect.steps}, what one epoch can leave behind"
            )
        if self.world_model_learning.sequences % model.members:
            raise ValueError(
                f"world_model.members {model.members} must divide world_model_learning.sequences "
                f"{self.world_model_learning.sequences}"
            )
        if not 0 <= self.world_model_learning.surprising <= 1:
            raise ValueError(
                f"world_model_learning.surprising must be in [0, 1], got {self.world_model_learning.surprising}"
            )
        if len(self.tokenizer.perceptual_weights) not in (0, 2):
            raise ValueError(
                "tokenizer.perceptual_weights takes two files, VGG16's and the linear weights, got "
                f"{len(self.tokenizer.perceptual_weights)}"
            )
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
    def context(self) -> int:
        return self.world_model.blocks

    @property
    def dream_steps(self) -> int:
        """As many as the world model was trained to look ahead."""
        return self.world_model.blocks - self.world_model.context

    @property
    def learns_to_act(self) -> bool:
        return self.learn_policy

    @property
    def dreams_after(self) -> int | None:
        return self.interactions_after(self.imagine.after) if self.learn_policy and self.imagine.updates else None

    @property
    def recent_iterations(self) -> int:
        """How many iterations the reported return looks back on: episodes can be longer than one."""
        return max(1, min(self.collect.epochs, 50))
