"""Every preset has valid settings and is what its name says."""

import dataclasses

import pytest

from itc.decoding.config import PRESETS as DECODERS
from itc.envs.registry import make
from itc.policies.losses import PPOConfig
from itc.presets import PRESETS, find
from itc.settings import from_json
from itc.train.agents import agent_of
from itc.train.patch_agent.config import CollectConfig, ImagineConfig, PatchConfig
from itc.train.patch_agent.learn_world_model import WorldModelLearning
from itc.world_models.gpt import WorldModelConfig


def to_build():
    """All; of Atari's, each variant in one game and each game in one variant; another test compares the games."""
    return [name for name in PRESETS if not name.startswith("atari/") or "/pong/" in name or name.endswith("/quick")]


@pytest.mark.parametrize("name", to_build())
def test_every_preset_has_a_training_state(name):
    config = find(name).config
    assert name.startswith(config.env)
    if not config.env.startswith("craftax"):  # takes long to trace; another test covers it
        shape = agent_of(config).shape_of_state(make(config.env), config)
        num_envs, slots = shape.buffer.steps["frame"].shape[:2]
        assert num_envs * slots <= config.collect.replay_frames < num_envs * (slots + 1)


def test_atari_presets_of_a_variant_differ_only_in_the_game():
    for name in (name for name in PRESETS if name.startswith("atari/")):
        _, game, variant = name.split("/")
        expected = dataclasses.replace(find(f"atari/pong/{variant}").config, env=f"atari/{game}")
        assert find(name).config == expected


def test_the_papers_schedule():
    config = find("craftax-classic/itc-paper").config
    assert (config.interactions_per_iteration, config.iterations) == (4608, 217)
    assert config.recent_iterations == 11
    assert [config.imagines_in(iteration) for iteration in (9, 10)] == [False, True]  # 46,080 and 50,688 interactions
    assert (find("minatar/freeway/itc").config.decoder, find("minatar/freeway/dedieu").config.imagine.warm_up) == (
        "conserving-minatar",
        200_000,
    )


def test_costs_and_solver_settings_can_be_given_instead_of_the_decoders_own():
    config = PatchConfig(decoder="sinkhorn-table", wildcard_cost=0.6, sinkhorn_epsilon=1e-4, sinkhorn_iterations=100)
    expected = dataclasses.replace(
        DECODERS["sinkhorn-table"], wildcard_cost=0.6, sinkhorn_epsilon=1e-4, sinkhorn_iterations=100
    )
    assert config.decode_config == expected


def phases(config, iteration):
    return {part.phase for part in agent_of(config).parts_of(make(config.env), config, iteration)}


@pytest.mark.parametrize("name", ["creatures/quick", "minatar/breakout/quick", "atari/pong/quick"])
def test_quick_presets_run_all_phases_and_reach_imagination(name):
    config = find(name).config
    reached = [phases(config, iteration) for iteration in range(config.iterations)]
    everything = {"play", "tokenizer", "world model", "imagination"}
    assert set.union(*reached) == everything | ({"encoding", "evaluation"} if name.startswith("atari") else set())
    # On Atari the phases start one after the other, imagination last.
    assert "imagination" in reached[-2 if name.startswith("atari") else config.iterations // 4]


def test_the_control_without_imagination_needs_no_world_model_and_then_no_tokenizer():
    without = dataclasses.replace(find("minatar/breakout/hour").config, imagine=ImagineConfig(updates=0, steps=5))
    assert phases(without, 100) == {"play", "tokenizer", "world model"}
    learning = dataclasses.replace(without.world_model_learning, updates=0)
    assert phases(dataclasses.replace(without, world_model_learning=learning), 100) == {"play"}


def test_hour_presets_imagine_for_most_of_the_run():
    for name in ("craftax-classic/hour", "minatar/breakout/hour"):
        config = find(name).config
        assert config.interactions_after(config.iterations) >= 100_000
        assert config.imagines_in(config.iterations // 8)


def test_atari_variants_differ_in_what_their_names_say():
    simulus, control, released, paper, ours = (
        find(f"atari/pong/{variant}").config
        for variant in ("simulus", "simulus-rope3d", "itc-released", "itc-paper", "itc")
    )
    assert (simulus.decoder, simulus.world_model.rotary, simulus.world_model.absolute) == ("sample", "1d", False)
    assert dataclasses.replace(simulus, world_model=control.world_model) == control
    assert (control.world_model.rotary, control.world_model.absolute) == ("3d", True)
    assert dataclasses.replace(control, decoder="paper-atari") == paper
    assert dataclasses.replace(control, decoder="conserving") == ours
    assert dataclasses.replace(released, decoder="sample", compat=control.compat) == control
    assert all(dataclasses.asdict(released.compat).values())
    assert not any(dataclasses.asdict(paper.compat).values())


def test_a_config_survives_json():
    config = find("minatar/breakout/quick").config
    assert from_json(PatchConfig, dataclasses.asdict(config)) == config


@pytest.mark.parametrize(("changes", "words"), [
    ({"decoder": "magic"}, "unknown decoder 'magic'"),
    ({"imagine": ImagineConfig(steps=21)}, "imagine.steps 21 after imagine.initial_frames 1 exceed world_model"),
    ({"interactions": 100}, "fewer than one iteration has"),
    ({"collect": CollectConfig(num_envs=20)}, "ppo.minibatches 8 must divide collect.num_envs 20"),
    ({"ppo": PPOConfig(accumulate=4)}, "ppo.accumulate 4 must divide environments of a minibatch 6"),
    ({"collect": CollectConfig(steps=10)}, "windows of 21 steps"),
    ({"world_model": WorldModelConfig(codes=100)}, "must be equal"),
    ({"world_model_learning": WorldModelLearning(updates=0)}, "imagine.updates must be 0, too"),
    ({"distance_cost": -1.0}, "distance_cost"),
    ({"sinkhorn_iterations": 0}, "sinkhorn_iterations"),
])  # fmt: skip
def test_impossible_settings_are_refused_with_a_sentence(changes, words):
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        PatchConfig(**changes)


def test_for_an_unknown_preset_similar_names_are_listed():
    with pytest.raises(ValueError, match="unknown preset 'minatar/pong'; known: minatar/asterix/dedieu"):
        find("minatar/pong")
    with pytest.raises(ValueError, match=r"known: atari/pong/simulus, (atari/pong/[a-z0-9-]+, ){4}atari/pong/quick$"):
        find("atari/pong/quack")
    with pytest.raises(ValueError, match=r"known: (atari/pong/[a-z0-9-]+, )+.*lists more"):
        find("atari/pongg/quick")
