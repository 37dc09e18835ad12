"""Every preset is possible, and says what it is."""

import dataclasses

import jax
import pytest

from itc.decoding.config import PRESETS as DECODERS
from itc.envs.registry import make
from itc.presets import PRESETS, find
from itc.train.patch_agent.config import CollectConfig, ImagineConfig, PatchConfig
from itc.train.patch_agent.state import shape_of_state
from itc.train.run_folder import from_dict
from itc.world_models.gpt import WorldModelConfig


@pytest.mark.parametrize("name", PRESETS)
def test_a_state_can_be_made_of_every_preset(name):
    config = find(name).config
    assert name.startswith(config.env)
    if not config.env.startswith("craftax"):  # whose worlds take long to trace; another test makes theirs
        shape = shape_of_state(make(config.env), config)
        assert jax.tree.leaves(shape.memory.steps)[0].shape[0] == config.collect.lanes


def test_the_papers_schedule():
    config = find("craftax-classic/itc-paper").config
    assert (config.interactions_per_iteration, config.iterations) == (4608, 217)
    assert config.recent_iterations == 11
    assert [config.dreams_in(iteration) for iteration in (9, 10)] == [False, True]  # 46,080 and 50,688 interactions
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


def test_quick_reaches_imagination_by_its_third_iteration():
    for name in (name for name in PRESETS if name.endswith("quick")):
        assert PRESETS[name].config.dreams_in(2), name


def test_a_config_survives_json():
    config = find("minatar/breakout/quick").config
    assert from_dict(PatchConfig, dataclasses.asdict(config)) == config


@pytest.mark.parametrize(("changes", "words"), [
    ({"decoder": "magic"}, "unknown decoder 'magic'"),
    ({"imagine": ImagineConfig(steps=21)}, "imagine.steps 21 exceed world_model.blocks 20"),
    ({"interactions": 100}, "less than one iteration"),
    ({"collect": CollectConfig(lanes=20)}, "ppo.minibatches 8 must divide collect.lanes 20"),
    ({"accumulate": 4}, "accumulate 4 must divide lanes of a minibatch 6"),
    ({"collect": CollectConfig(steps=10)}, "windows of 21 steps"),
    ({"world_model": WorldModelConfig(codes=100)}, "must be equal"),
    ({"distance_cost": -1.0}, "distance_cost"),
    ({"sinkhorn_iterations": 0}, "sinkhorn_iterations"),
])  # fmt: skip
def test_impossible_settings_are_answered_with_a_sentence(changes, words):
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        PatchConfig(**changes)


def test_unknown_presets_are_answered_with_near_ones():
    with pytest.raises(ValueError, match="unknown preset 'minatar/pong'; known: minatar/asterix/dedieu"):
        find("minatar/pong")
