"""Everything that can be set about a training run. The defaults are the paper's, for Craftax-classic."""

from dataclasses import dataclass, field, replace

from itc.decoding.config import PRESETS, DecodeConfig
from itc.policies.conv_gru import PolicyConfig
from itc.policies.losses import PPOConfig
from itc.train.learn_tokenizer import TokenizerLearning
from itc.train.learn_world_model import WorldModelLearning
from itc.world_models.gpt import WorldModelConfig

RECENT = 50_000  # interactions: episodes that ended within them make up the reported return


@dataclass(frozen=True)
class CollectConfig:
    """Playing the real game, and remembering it."""

    lanes: int = 48
    steps: int = 96  # per lane and iteration
    replay_frames: int = 128_000


@dataclass(frozen=True)
class ImagineConfig:
    """Playing in dreams."""

    updates: int = 300  # dreams per iteration, each followed by one policy update; 0 switches imagination off
    lanes: int = 48
    steps: int = 20
    burn_in: int = 5  # real frames that the policy's memory sees before the dream starts
    warm_up: int = 50_000  # real interactions before the first dream


@dataclass(frozen=True)
class Compat:
    """Mistakes of the authors' code that may matter to its results; off unless asked for."""

    leaky_gae: bool = False  # advantages pass through episode ends
    burn_in_reset: bool = False  # the memory is cleared by the same step's end, one frame too early, during burn-in
    copy_after_done: bool = False  # tokens are copied across the end of a dreamed episode


@dataclass(frozen=True)
class TrainConfig:
    """A training run."""

    env: str = "craftax-classic"
    decoder: str = "paper"
    distance_cost: float | None = None  # instead of the decoder's own
    wildcard_cost: float | None = None
    sinkhorn_epsilon: float | None = None  # matters to decoders that are solved by Sinkhorn
    sinkhorn_iterations: int | None = None
    interactions: int = 1_000_000  # rounded down to whole iterations
    accumulate: int = 1  # groups of lanes whose policy gradients are summed up one after the other, to save memory
    collect: CollectConfig = field(default_factory=CollectConfig)
    tokenizer: TokenizerLearning = field(default_factory=TokenizerLearning)
    world_model: WorldModelConfig = field(default_factory=WorldModelConfig)
    world_model_learning: WorldModelLearning = field(default_factory=WorldModelLearning)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    learn_policy: bool = True  # off: play as at the start for ever, and learn the world model only
    imagine: ImagineConfig = field(default_factory=ImagineConfig)
    compat: Compat = field(default_factory=Compat)

    def __post_init__(self) -> None:
        """Say in a sentence what cannot work, before anything is compiled."""
        collect, imagine, blocks = self.collect, self.imagine, self.world_model.blocks
        _at_least_one(collect, "collect", "lanes", "steps", "replay_frames")
        _at_least_one(imagine, "imagine", "lanes", "steps")
        _at_least_one(self, "", "accumulate", "interactions")
        if min(imagine.updates, imagine.burn_in, imagine.warm_up) < 0:
            raise ValueError("imagine.updates, imagine.burn_in and imagine.warm_up must not be negative")
        if imagine.steps > blocks:
            raise ValueError(f"imagine.steps {imagine.steps} exceed world_model.blocks {blocks}, the model's context")
        if self.interactions < self.interactions_per_iteration:
            raise ValueError(
                f"interactions {self.interactions} are less than one iteration of "
                f"{collect.lanes} lanes × {collect.steps} steps = {self.interactions_per_iteration}"
            )
        slots = collect.replay_frames // collect.lanes
        if slots < collect.steps:
            raise ValueError(
                f"collect.replay_frames {collect.replay_frames} hold {slots} steps per lane, less than the "
                f"collect.steps {collect.steps} of one iteration"
            )
        window = max(blocks, imagine.burn_in) + 1
        if min(slots, collect.steps) < window:
            raise ValueError(
                f"windows of {window} steps (world_model.blocks or imagine.burn_in, and one more) do not fit: "
                f"collect.steps is {collect.steps}, and collect.replay_frames leave {slots} steps per lane"
            )
        _divides("ppo.minibatches", self.ppo.minibatches, "collect.lanes", collect.lanes)
        lanes_of_minibatch = collect.lanes // self.ppo.minibatches
        _divides("accumulate", self.accumulate, "lanes of a minibatch", lanes_of_minibatch)
        _divides("accumulate", self.accumulate, "imagine.lanes", imagine.lanes)
        if self.tokenizer.codes != self.world_model.codes:
            raise ValueError(
                f"tokenizer.codes {self.tokenizer.codes} and world_model.codes {self.world_model.codes} must be equal"
            )
        if self.decoder not in PRESETS:
            raise ValueError(f"unknown decoder {self.decoder!r}; known: {', '.join(PRESETS)}")
        self.decode_config  # noqa: B018  raises where the costs are impossible

    @property
    def decode_config(self) -> DecodeConfig:
        settable = ("distance_cost", "wildcard_cost", "sinkhorn_epsilon", "sinkhorn_iterations")
        given = {name: getattr(self, name) for name in settable if getattr(self, name) is not None}
        return replace(PRESETS[self.decoder], **given)

    @property
    def interactions_per_iteration(self) -> int:
        return self.collect.lanes * self.collect.steps

    @property
    def iterations(self) -> int:
        return self.interactions // self.interactions_per_iteration

    @property
    def recent_iterations(self) -> int:
        """How many iterations the reported return looks back on."""
        return max(1, round(RECENT / self.interactions_per_iteration))

    def dreams_in(self, iteration: int) -> bool:
        """Whether this iteration (from 0) dreams: there is something to learn in dreams, and the warm-up is over."""
        played = (iteration + 1) * self.interactions_per_iteration
        return self.learn_policy and self.imagine.updates > 0 and played > self.imagine.warm_up


def _at_least_one(config, where: str, *names: str) -> None:
    for name in names:
        if getattr(config, name) < 1:
            raise ValueError(f"{where}{'.' if where else ''}{name} must be at least 1, got {getattr(config, name)}")


def _divides(name: str, parts: int, whole_name: str, whole: int) -> None:
    if whole % parts:
        raise ValueError(f"{name} {parts} must divide {whole_name} {whole}")
