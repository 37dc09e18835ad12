"""The smallest agent that goes through every phase, for tests that care about the loop and not about learning."""

from itc.policies.conv_gru import PolicyConfig
from itc.policies.encoders import EncoderConfig
from itc.policies.losses import PPOConfig
from itc.train import loop
from itc.train.patch_agent.config import CollectConfig, ImagineConfig, PatchConfig
from itc.train.patch_agent.learn_tokenizer import TokenizerLearning
from itc.train.patch_agent.learn_world_model import WorldModelLearning
from itc.train.run_folder import RunFolder
from itc.world_models.gpt import WorldModelConfig

TINY = PatchConfig(
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


def train_in(folder, env, config, parts=None, **changes):
    """Train in a folder, stopping after a number of parts if asked to."""
    run, counted = RunFolder(folder), []

    class Counter:
        on_iteration = on_save = staticmethod(lambda _: None)
        on_part = staticmethod(lambda *_: counted.append(1))

    run.write_config(config, "tiny", 0)
    state, notes = loop.begin_or_resume(run, env, config, seed=0)
    stop = (lambda: False) if parts is None else (lambda: len(counted) >= parts)
    return loop.train(run, env, config, state, notes, [Counter()], should_stop=stop, **changes)
