"""All settings of a training run on Atari. The defaults are those of the paper's agent, ITC."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from itc.policies.actor_critic_loss import ActorCriticConfig
from itc.policies.lstm import LSTMPolicyConfig
from itc.settings import Count, CountOrZero, Fraction, NotNegative, Positive, Settings
from itc.tokenizers.vqvae import VQVAEConfig
from itc.train.config import DecoderName, EnvName, FileNames, Precision, TrainConfig, divides
from itc.world_models.pop import CONTEXT, POPConfig

# A training sequence of the world model: the context, which is not predicted, and at least one frame that is.
MIN_STEPS_FOR_TRAINING = CONTEXT + 1
# The end of an episode from which a rollout is imagined: the last frame is left out, as the episode may be over there;
# before it stands the context. One step more than these 3, as in the authors' code.
MIN_STEPS_FOR_IMAGINATION = 4


@dataclass(frozen=True)
class CollectConfig(Settings):
    """Playing the real environment, and the replay buffer."""

    iterations: Count = 500  # the real environment is played in the first so many iterations
    steps: Count = 200  # steps in the real environment per iteration
    temperature: Positive = 1.0  # temperature of the policy's action distribution
    epsilon: Fraction = 0.01  # probability of a uniformly random action
    burn_in: Count = 20  # frames of the current episode replayed through the LSTM at the start of each iteration
    replay_frames: Count = 110_000  # size of the replay buffer in frames: one per step, and one more per episode

    @property
    def most_stored(self) -> int:
        """The most steps that one iteration can store: each may end an episode, whose last frame is one more."""
        return 2 * self.steps

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replay_frames < self.most_stored:
            raise ValueError(
                f"replay_frames {self.replay_frames} must be at least twice steps {self.steps}, the most "
                "that one iteration can store"
            )


@dataclass(frozen=True)
class TokenizerLearning(Settings):
    """Tokenizer training"""

    vqvae: VQVAEConfig = field(default_factory=VQVAEConfig)
    perceptual_weights: FileNames = ()  # two files, VGG16's and LPIPS' linear weights; none: no perceptual loss
    updates: Count = 200  # updates per iteration
    batch_size: Count = 128  # frames per update
    start_iteration: CountOrZero = 5  # iterations before the tokenizer is trained
    stop_iteration: Count | None = None  # iterations after which the tokenizer is frozen; None: never, as published
    # updates without use after which a dead code is reset to the encoder output with the largest quantisation error;
    # 0: never
    revive_after_updates: CountOrZero = 0
    # share of the reconstruction loss in which a pixel counts by how unusual it is: its distance from its mean, divided
    # by the average of that distance; 0: all pixels count alike
    rare_weight: Fraction = 0.0
    # first updates in which the decoder sees the encoder's vectors instead of codes, which only follow them; 0: none
    continuous_updates: CountOrZero = 0
    learning_rate: Positive = 1e-4  # learning rate of AdamW
    weight_decay: NotNegative = 0.01  # weight decay of AdamW
    max_gradient_norm: Positive = 10.0  # gradients are clipped to this norm

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stop_iteration is not None and self.stop_iteration <= self.start_iteration:
            raise ValueError(
                f"stop_iteration {self.stop_iteration} must be greater than start_iteration {self.start_iteration}"
            )
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
    """World-model training"""

    updates: Count = 200  # updates per iteration
    batch_size: Count = 32  # sequences per update, each of `world_model.context_frames` frames
    prioritised: Fraction = 0.3  # share of sequences that are sampled by priority, the last loss on them; rounded up
    start_iteration: CountOrZero = 25  # iterations before the world model is trained
    learning_rate: Positive = 2e-4  # learning rate of AdamW
    weight_decay: NotNegative = 0.05  # weight decay of AdamW
    max_gradient_norm: Positive = 3.0  # gradients are clipped to this norm

    @property
    def prioritised_sequences(self) -> int:
        return math.ceil(self.prioritised * self.batch_size - 1e-9)  # 0.07 · 100 is a little more than 7


@dataclass(frozen=True)
class ImagineConfig(Settings):
    """Imagined rollouts, on which the policy is trained; each has `world_model.context_frames` − 2 steps"""

    updates: CountOrZero = 80  # imagined rollouts per iteration, each followed by one policy update; 0: no imagination
    num_envs: Count = 128  # environments in parallel in an imagined rollout
    burn_in: Count = 20  # real frames replayed through the LSTM before an imagined rollout
    start_iteration: CountOrZero = 50  # iterations before the first imagined rollout
    intrinsic_reward_weight: NotNegative = 1.0  # weight of the intrinsic reward, the disagreement of the ensemble
    learn_after_end: bool = True  # train also on imagined steps after an episode end, as the published agents do


@dataclass(frozen=True)
class EvaluateConfig(Settings):
    """Evaluation during training (Atari 100K protocol)"""

    every: CountOrZero = 20  # iterations between evaluations; 0: no evaluation
    episodes: Count = 16  # episodes per evaluation, 8 in parallel; above 8, rounded up to a multiple of 8
    temperature: Positive = 0.5  # temperature of the policy's action distribution


@dataclass(frozen=True)
class Compat(Settings):
    """What the authors' code does differently; all are off by default. (Details: docs/atari.md.)"""

    done_one_step_late: bool = False  # the world model is trained to predict the end of an episode one step late
    look_ahead: bool = False  # the policy sees the next frame when it chooses the first imagined action
    perceptual_dropout: bool = False  # half of the differences in the perceptual loss are dropped at random
    intrinsic_reward_after_collection: bool = False  # the intrinsic reward stays on after `collect.iterations`
    copy_after_done: bool = False  # tokens are copied across the end of an imagined episode
    first_frame_without_copying: bool = False  # the first imagined frame is sampled, whatever the decoder


@dataclass(frozen=True)
class VQConfig(TrainConfig):
    """A training run of the agent whose tokenizer is learned."""

    agent: ClassVar[str] = "vqvae"
    extendable: ClassVar[str] = "total_iterations"
    evaluation_episodes: ClassVar[int] = 104  # the benchmark's 100, rounded up to a multiple of 8

    env: EnvName = "atari/pong"  # environment: a name from `itc envs`, or module:function for one of your own
    # rule that picks the next frame's tokens from the logits (docs/decoders.md)
    decoder: DecoderName = "paper-atari"
    # precision of the matrix products of world model and policy; weights, optimiser and tokenizer are always float32;
    # None: JAX's default, which is float32 on a CPU and tf32 on a GPU
    precision: Precision | None = "float32"
    total_iterations: Count = 600  # iterations of the whole run
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
        starts = [phase.start_iteration for phase in (tokenizer, learning, imagine)]
        if sorted(starts) != starts:
            raise ValueError(
                "start_iteration of tokenizer, world_model_learning and imagine must not decrease: each needs what the "
                f"one before has learned, got {', '.join(map(str, starts))}"
            )
        vqvae, model = tokenizer.vqvae, self.world_model
        if (vqvae.codes, vqvae.code_size) != (model.codes, model.width):
            raise ValueError(
                f"tokenizer.vqvae has {vqvae.codes} codes of {vqvae.code_size} numbers, world_model {model.codes} "
                f"codes of width {model.width}: they must be equal"
            )
        divides("world_model.members", model.members, "world_model_learning.batch_size", learning.batch_size)
        for name, count in (
            ("tokenizer.batch_size", tokenizer.batch_size),
            ("world_model_learning.batch_size", learning.batch_size),
            ("imagine.num_envs", imagine.num_envs),
        ):
            if count > self.collect.replay_frames:
                raise ValueError(f"{name} {count} must not exceed collect.replay_frames {self.collect.replay_frames}")
        self.check_decoder()

    @property
    def iterations(self) -> int:
        return self.total_iterations

    @property
    def interactions_per_iteration(self) -> int:
        return self.collect.steps

    def interactions_after(self, iteration: int) -> int:
        return min(iteration, self.collect.iterations) * self.collect.steps

    def with_iterations(self, iterations: int) -> "VQConfig":
        return replace(self, total_iterations=iterations)

    def tokenizer_is_frozen(self, iteration: int) -> bool:
        stop = self.tokenizer.stop_iteration
        return stop is not None and iteration >= stop

    def steps_to_encode(self, iteration: int) -> int:
        """How many of the newest steps may not have tokens of the current tokenizer: all in the replay buffer, until
        an earlier iteration has encoded them with the frozen tokenizer."""
        encoded_before = iteration > self.world_model_learning.start_iteration
        if not (encoded_before and self.tokenizer_is_frozen(iteration)):
            return self.collect.replay_frames
        return self.collect.most_stored if iteration < self.collect.iterations else 0

    @property
    def context_frames(self) -> int:
        return self.world_model.context_frames

    @property
    def imagination_steps(self) -> int:
        """As many as the world model was trained to predict."""
        return self.world_model.context_frames - CONTEXT

    @property
    def burn_in(self) -> int:
        return self.imagine.burn_in

    @property
    def imagination_after(self) -> int | None:
        if not (self.train_policy and self.imagine.updates):
            return None
        return self.interactions_after(self.imagine.start_iteration)
