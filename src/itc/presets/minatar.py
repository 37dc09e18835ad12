"""MinAtar: `itc train minatar/breakout/itc-paper --seed 0`; ten seeds per game in the paper.

Published: mean return of 1,000 evaluation episodes after 1M interactions.
"""

from dataclasses import replace

from itc.policies.conv_gru import PolicyConfig
from itc.policies.encoders import EncoderConfig
from itc.policies.losses import PPOConfig
from itc.presets.preset import Preset
from itc.train.patch_agent.config import CollectConfig, ImagineConfig, PatchConfig
from itc.train.patch_agent.learn_tokenizer import TokenizerLearning
from itc.train.patch_agent.learn_world_model import WorldModelLearning
from itc.world_models.gpt import WorldModelConfig

GPU = "one GPU"
PUBLISHED = {  # game: Dedieu et al., ITC
    "asterix": ("44.81", "50.04"),
    "breakout": ("93.92", "99.53"),
    "freeway": ("71.12", "71.34"),
    "space_invaders": ("186.16", "188.85"),
}

ITC_PAPER = PatchConfig(
    decoder="paper-minatar",
    world_model_learning=WorldModelLearning(updates=2000, reward_coefficient=10.0, done_coefficient=10.0),
    policy=PolicyConfig(EncoderConfig(normalise="picture", activation="swish"), shared_trunk=True),
    ppo=PPOConfig(discount=0.95, gae_lambda=0.75, imagined_entropy_coefficient=0.05, return_decay=0.925),
    imagine=ImagineConfig(updates=2000, warm_up=200_000),
)
ROPE3D = replace(ITC_PAPER, decoder="sample")
DEDIEU = replace(ROPE3D, world_model=WorldModelConfig(rotary="1d", absolute=False))

# Small networks. The policy is not initialised as published: its convolutions and gates have unit gain, as in all
# measurements with small presets. The return normaliser averages over longer than the paper's 0.925.
SMALL = replace(
    ITC_PAPER,
    interactions=110_592,
    collect=CollectConfig(replay_frames=110_592),
    tokenizer=TokenizerLearning(codes=1024, updates=5),
    world_model=WorldModelConfig(
        codes=1024, layers=2, heads=4, embedding=64, hidden=128, dropout=0.0, weight_scale=0.125
    ),
    world_model_learning=WorldModelLearning(
        updates=300, minibatches=1, sequences=4, learning_rate=2e-3, reward_coefficient=10.0, done_coefficient=10.0
    ),
    policy=PolicyConfig(
        EncoderConfig((16, 16, 32), normalise="picture", activation="swish"),
        recurrent_size=64,
        hidden=128,
        shared_trunk=True,
        initial_weights="unit-gain",
    ),
    ppo=replace(ITC_PAPER.ppo, return_decay=0.99),
    imagine=ImagineConfig(updates=0),
)
# No imagination: the policy learns from real play only, and a world model with the paper's context learns next to it.
WORLD_MODEL = SMALL

# Minutes on two cores, with everything that keeps imagination true (docs/imagination.md): a world model that is shown
# neighbours and mostly learns tokens, rollouts that are short, start from three real frames and end where the model
# says so, and returns normalised by real play. Iterations are short: with or without imagination, a policy that is
# updated four times as often learns twice as much.
QUICK = replace(
    SMALL,
    interactions=46_080,
    collect=CollectConfig(steps=24, replay_frames=46_080),
    tokenizer=TokenizerLearning(codes=1024, updates=5, use_all_new_frames=True, min_logits=256),
    world_model=replace(SMALL.world_model, context_frames=8, heads=2, neighbours=32),
    world_model_learning=WorldModelLearning(
        updates=450,
        minibatches=1,
        sequences=8,
        learning_rate=1.5e-3,
        final_lr_fraction=0.05,
        recent_fraction=0.25,
    ),
    policy=replace(SMALL.policy, encoder=replace(SMALL.policy.encoder, channels=(16, 32), residuals=1)),
    ppo=replace(SMALL.ppo, learning_rate=1e-3),
    imagine=ImagineConfig(
        updates=120,
        num_envs=96,
        steps=5,
        initial_frames=3,
        recent_fraction=0.5,
        learn_after_end=False,
        update_return_normaliser=False,
        warm_up=6_000,
    ),
)
# The same with four times the play, and more learning per iteration: a third more of the world model, twice as much in
# imagination.
HOUR = replace(
    QUICK,
    interactions=184_320,
    collect=replace(QUICK.collect, replay_frames=184_320),
    world_model_learning=replace(QUICK.world_model_learning, updates=600),
    imagine=replace(QUICK.imagine, updates=240),
)

PRESETS = {
    f"minatar/{game}/{variant}": Preset(replace(config, env=f"minatar/{game}"), about, hardware, published)
    for game, (dedieu, itc) in PUBLISHED.items()
    for variant, config, about, hardware, published in (
        ("dedieu", DEDIEU, "baseline of Dedieu et al.: 1-D positions, plain sampling", GPU, dedieu),
        ("rope3d", ROPE3D, "3-D and absolute positions, plain sampling: the control for any decoder", GPU, ""),
        ("itc-paper", ITC_PAPER, "the paper's agent", GPU, itc),
        ("itc", replace(ITC_PAPER, decoder="conserving-minatar"), "our decoder", GPU, ""),
        (
            "world-model",
            WORLD_MODEL,
            "real play and a world model of it, to measure decoders with",
            "two CPU cores",
            "",
        ),
        ("quick", QUICK, "small networks, learns in minutes", "two CPU cores, 8 minutes", ""),
        ("hour", HOUR, "the same for longer, learns to play", "two CPU cores, an hour", ""),
    )
}
