"""The smallest agent that runs every phase, for tests of the loop rather than of learning."""

import dataclasses

from itc.policies.conv_gru import PolicyConfig
from itc.policies.encoders import EncoderConfig
from itc.policies.losses import PPOConfig
from itc.presets import find
from itc.train import loop
from itc.train.patch_agent.config import CollectConfig, ImagineConfig, PatchConfig
from itc.train.patch_agent.learn_tokenizer import TokenizerLearning
from itc.train.patch_agent.learn_world_model import WorldModelLearning
from itc.train.run_folder import RunFolder, flat
from itc.world_models.gpt import WorldModelConfig

TINY = PatchConfig(
    env="creatures",
    decoder="paper",  # needs no solver on the host, so that compiled programs can be cached for the next process
    interactions=4 * 4 * 12,
    collect=CollectConfig(num_envs=4, steps=12, replay_frames=400),
    tokenizer=TokenizerLearning(codes=256, updates=2),
    world_model=WorldModelConfig(codes=256, context_frames=4, layers=1, heads=2, embedding=16, hidden=16),
    world_model_learning=WorldModelLearning(updates=6, minibatches=1, sequences=4),
    policy=PolicyConfig(EncoderConfig((2, 2)), recurrent_size=4, hidden=8),
    ppo=PPOConfig(epochs=2, minibatches=2),
    imagine=ImagineConfig(updates=26, num_envs=4, steps=3, burn_in=2, warm_up=48),  # two parts of 13
)
EIGHT = dataclasses.replace(  # the same for up to four devices: three iterations, two minibatches of four environments
    TINY,
    interactions=3 * 8 * 12,
    collect=dataclasses.replace(TINY.collect, num_envs=8),
    world_model_learning=dataclasses.replace(TINY.world_model_learning, updates=3),
    imagine=dataclasses.replace(TINY.imagine, updates=2, num_envs=8, warm_up=100),  # from the second iteration on
)
PRESET = "creatures/quick"


def words_of(config, preset=PRESET):
    """Arguments of `itc train` for this config: the preset, and every setting that differs."""
    before, wanted = (flat(dataclasses.asdict(one)) for one in (find(preset).config, config))
    changed = {name.replace("_", "-"): value for name, value in wanted.items() if value != before[name]}
    options = [word for name, value in changed.items() for word in _option(name, value)]
    return [preset, *options]


def _option(name, value):
    if isinstance(value, bool):
        section, dot, switch = name.rpartition(".")
        return [f"--{name}" if value else f"--{section}{dot}no-{switch}"]
    return [f"--{name}", *(map(str, value) if isinstance(value, tuple) else [str(value)])]


class Watching:
    """A callback that does nothing; tests replace the methods they need."""

    on_part = on_iteration = on_save = on_saving = staticmethod(lambda *_: None)


def train_in(folder, env, config, parts=None, **changes):
    """Train in a folder; stop after a number of parts if one is given."""
    run, counted = RunFolder(folder), []
    watching = Watching()
    watching.on_part = lambda *_: counted.append(1)
    run.write_config(config, "tiny", 0)
    state, notes = loop.begin_or_resume(run, env, config, seed=0)
    stop = (lambda: False) if parts is None else (lambda: len(counted) >= parts)
    return loop.train(run, env, config, state, notes, [watching], should_stop=stop, **changes)
