"""Craftax-classic: `itc train craftax-classic/itc-paper --seed 0`; ten seeds in the paper, 48 h each on an RTX 3090.

Published: return in percent of 22 over the last 50,000 of 1M interactions / score in percent.
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

GPU = "one GPU, 48 h on an RTX 3090"

ITC_PAPER = PatchConfig(env="craftax-classic", decoder="paper")
ROPE3D = replace(ITC_PAPER, decoder="sample")
DEDIEU_TUNED = replace(ROPE3D, world_model=WorldModelConfig(rotary="1d", absolute=False))
DEDIEU = replace(DEDIEU_TUNED, imagine=ImagineConfig(updates=150, warm_up=200_000))

# Small networks. The policy is not initialised as published: its convolutions and gates have unit gain, as in all
# measurements with the quick presets.
QUICK = replace(
    ITC_PAPER,
    interactions=73_728,
    collect=CollectConfig(num_envs=16, steps=96, replay_frames=64_000),
    tokenizer=TokenizerLearning(codes=1024, updates=5),
    world_model=WorldModelConfig(
        codes=1024, context_frames=8, layers=2, heads=4, embedding=64, hidden=128, dropout=0.0, weight_scale=0.125
    ),
    world_model_learning=WorldModelLearning(updates=50, minibatches=1, sequences=4, learning_rate=2e-3),
    policy=PolicyConfig(EncoderConfig((16, 32, 32)), recurrent_size=64, hidden=128, initial_weights="unit-gain"),
    imagine=ImagineConfig(updates=25, num_envs=16, steps=8, warm_up=3_000),
)

# No imagination: the policy learns from real play only, and a world model with the paper's context learns next to it,
# to measure decoders with. Small minibatches, as in the other quick presets: the number of updates matters most. The
# policy is smaller still: its convolutions would take most of the time.
WORLD_MODEL = replace(
    QUICK,
    interactions=110_592,
    collect=CollectConfig(),
    tokenizer=TokenizerLearning(updates=5),
    world_model=WorldModelConfig(layers=2, heads=4, embedding=64, hidden=256, dropout=0.0, weight_scale=0.125),
    world_model_learning=WorldModelLearning(updates=300, minibatches=1, sequences=2, learning_rate=2e-3),
    policy=PolicyConfig(EncoderConfig((8, 16, 16)), recurrent_size=64, hidden=128, initial_weights="unit-gain"),
    imagine=ImagineConfig(updates=0),
)

# An hour on two cores, with everything that keeps imagination true (docs/imagination.md). As in MinAtar's `hour`,
# iterations are short, and rollouts too, from three real frames. Frames are tiles of 7×7 pixels: a policy whose first
# layer sees them so learns six times as fast. There are as many logits as codes, so that nothing is compiled again; at
# night noise would fill any codebook, and the nearest of 512 codes will do.
HOUR = replace(
    QUICK,
    interactions=122_880,
    collect=CollectConfig(steps=32, replay_frames=122_880),
    tokenizer=TokenizerLearning(codes=512, updates=5, use_all_new_frames=True, min_logits=512),
    world_model=replace(QUICK.world_model, codes=512, context_frames=10, neighbours=32),
    world_model_learning=WorldModelLearning(
        updates=200,
        minibatches=1,
        sequences=8,
        learning_rate=1.5e-3,
        final_lr_fraction=0.05,
        recent_fraction=0.25,
    ),
    policy=replace(QUICK.policy, encoder=EncoderConfig((32, 64), residuals=1, patch=7)),
    ppo=PPOConfig(learning_rate=1e-3, return_decay=0.99),
    imagine=ImagineConfig(
        updates=50,
        steps=8,
        initial_frames=3,
        recent_fraction=0.5,
        learn_after_end=False,
        update_return_normaliser=False,
        warm_up=12_000,
    ),
)

# The world that comes with the package. The policy learns from real play only, four times as much of it, so that the
# model sees what a player reaches. A shorter context makes its updates cheaper.
WORLD = replace(
    HOUR,
    decoder="conserving",
    interactions=506_880,
    collect=CollectConfig(num_envs=96, steps=96, replay_frames=193_536),
    world_model=replace(HOUR.world_model, context_frames=8),
    imagine=replace(HOUR.imagine, updates=0, steps=6),
)

PRESETS = {
    "craftax-classic/dedieu": Preset(
        DEDIEU, "baseline of Dedieu et al.: 1-D positions, plain sampling", GPU, "68.14 / 24.89"
    ),
    "craftax-classic/dedieu-tuned": Preset(
        DEDIEU_TUNED, "the same baseline with the paper's tuning (†)", GPU, "68.55 / 27.24"
    ),
    "craftax-classic/rope3d": Preset(
        ROPE3D, "3-D and absolute positions, plain sampling: the control for any decoder", GPU, "71.85 / 33.94"
    ),
    "craftax-classic/itc-paper": Preset(ITC_PAPER, "the paper's agent", GPU, "72.46 / 35.60"),
    "craftax-classic/itc": Preset(replace(ITC_PAPER, decoder="conserving"), "our decoder", GPU),
    "craftax-classic/world-model": Preset(
        WORLD_MODEL, "real play and a world model of it, to measure decoders with", "two CPU cores"
    ),
    "craftax-classic/quick": Preset(QUICK, "all phases with small networks; too short to learn much", "two CPU cores"),
    "craftax-classic/world": Preset(
        WORLD, "that of the world in the package: real play, and a world model of it", "one CPU core, an hour"
    ),
    "craftax-classic/hour": Preset(HOUR, "small networks, learns the first achievements", "two CPU cores, an hour"),
}
