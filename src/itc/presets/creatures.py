"""The built-in environment of walkers: `itc train creatures/quick`. The paper has no numbers for it."""

from dataclasses import replace

from itc.policies.conv_gru import PolicyConfig
from itc.policies.encoders import EncoderConfig
from itc.presets.minatar import SMALL
from itc.presets.preset import Preset
from itc.train.patch_agent.config import CollectConfig, ImagineConfig
from itc.train.patch_agent.learn_world_model import WorldModelLearning

QUICK = replace(
    SMALL,
    env="creatures",
    decoder="conserving",
    interactions=73_728,
    collect=CollectConfig(num_envs=16, steps=96, replay_frames=32_000),
    world_model=replace(SMALL.world_model, context_frames=8),
    # Many small minibatches: within minutes the number of updates matters most.
    world_model_learning=WorldModelLearning(updates=200, minibatches=1, sequences=4, learning_rate=2e-3),
    policy=PolicyConfig(EncoderConfig((16, 16, 32)), recurrent_size=64, hidden=128, initial_weights="unit-gain"),
    imagine=ImagineConfig(updates=25, num_envs=16, steps=8, warm_up=3_000),
)

# The world that comes with the package. There are five tiles, so a small codebook will do; with neighbours the model
# need not first learn where to look when the view scrolls. The policy learns from real play only.
WORLD = replace(
    QUICK,
    interactions=46_080,
    collect=CollectConfig(num_envs=48, steps=48, replay_frames=46_080),
    tokenizer=replace(SMALL.tokenizer, codes=64, use_all_new_frames=True),
    world_model=replace(QUICK.world_model, codes=64, heads=2, neighbours=32),
    world_model_learning=WorldModelLearning(
        updates=350, minibatches=1, sequences=4, learning_rate=1.5e-3, final_lr_fraction=0.05
    ),
    ppo=replace(QUICK.ppo, learning_rate=1e-3),
    imagine=replace(QUICK.imagine, updates=0),
)

PRESETS = {
    "creatures/quick": Preset(QUICK, "small environment whose ground truth is known", "two CPU cores, minutes"),
    "creatures/world": Preset(WORLD, "that of the world in the package", "one CPU core, minutes"),
}
