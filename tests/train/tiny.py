"""The smallest agent that goes through every phase, for tests that care about the loop and not about learning."""

from itc.policies.conv_gru import PolicyConfig
from itc.policies.encoders import EncoderConfig
from itc.policies.losses import PPOConfig
from itc.train.config import CollectConfig, ImagineConfig, TrainConfig
from itc.train.learn_tokenizer import TokenizerLearning
from itc.train.learn_world_model import WorldModelLearning
from itc.world_models.gpt import WorldModelConfig

TINY = TrainConfig(
    env="creatures",
    decoder="conserving",
    interactions=4 * 4 * 12,
    collect=CollectConfig(lanes=4, steps=12, replay_frames=400),
    tokenizer=TokenizerLearning(codes=256, updates=2),
    world_model=WorldModelConfig(codes=256, blocks=4, layers=1, heads=2, embedding=16, hidden=16),
    world_model_learning=WorldModelLearning(updates=6, minibatches=1, sequences=4),
    policy=PolicyConfig(EncoderConfig((2, 2)), memory=4, hidden=8),
    ppo=PPOConfig(epochs=2, minibatches=2),
    imagine=ImagineConfig(updates=26, lanes=4, steps=3, burn_in=2, warm_up=48),  # two parts of 13
)
