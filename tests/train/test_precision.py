"""`--precision`: products in bfloat16, weights in float32, and an agent that learns all the same."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import pytest
from jax import random
from programs import patch_programs, vq_programs
from tiny import TINY, train_in
from vq_tiny import VQ_TINY

from itc.cli.world_model import _config
from itc.envs.registry import make
from itc.evaluate.one_step import one_step_accuracy

PROGRAMS = {"patches": (patch_programs, TINY), "vqvae": (vq_programs, VQ_TINY)}
NAMES, PRECISION, TYPES = (
    r"stablehlo\.(?:dot_general|convolution)\b",
    r"precision(?: = \[| )([A-Z]+)",
    r"tensor<([^>]+)>",
)
PRODUCT = re.compile(rf"{NAMES}.*?{PRECISION}.*: \({TYPES}, {TYPES}\)")


def traced(agent, phase, precision):
    list_programs, config = PROGRAMS[agent]
    config = dataclasses.replace(config, precision=precision)
    with config.matmul_precision():
        return list_programs(config)[phase].traced()


def products(program) -> set[tuple[str, str]]:
    """Precision and type of the factors of every product in the program, lowered for a GPU."""
    text = program.lower(lowering_platforms=("cuda",)).as_text()
    found = PRODUCT.findall(text)
    assert len(found) == len(re.findall(NAMES, text)) > 0
    types = {(precision, *(shape.split("x")[-1] for shape in shapes)) for precision, *shapes in found}
    assert all(first == second for _, first, second in types)
    return {(precision, first) for precision, first, _ in types}


@pytest.mark.parametrize(("agent", "phase", "exact"), [
    ("patches", "policy", set()),
    ("patches", "world model", set()),
    ("vqvae", "world model", set()),
    ("vqvae", "imagination", {("HIGHEST", "f32")}),  # the mean of a predicted distribution
])  # fmt: skip
def test_networks_multiply_in_bfloat16_and_weights_stay_as_they_are(agent, phase, exact):
    program = traced(agent, phase, "bfloat16")
    assert products(program) == {("DEFAULT", "bf16")} | exact
    assert not any(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(program.out_info))


@pytest.mark.parametrize("phase", ["tokenizer", "encoding"])
def test_the_learned_tokenizer_stays_exact(phase):
    assert products(traced("vqvae", phase, "bfloat16")) == {("HIGHEST", "f32")}


@pytest.mark.parametrize(("agent", "precision", "name"), [
    ("patches", None, "DEFAULT"),
    ("patches", "tf32", "HIGH"),
    ("patches", "float32", "HIGHEST"),
    ("vqvae", "float32", "HIGHEST"),
])  # fmt: skip
def test_other_precisions_are_jax_s(agent, precision, name):
    assert products(traced(agent, "play", precision)) == {(name, "f32")}


def test_the_defaults_are_those_of_the_published_agents():
    assert (TINY.precision, VQ_TINY.precision) == (None, "float32")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the tokenizer learns from pixels only")
@pytest.mark.parametrize("agent", PROGRAMS)
@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_every_phase_runs_here_in_any_precision(tmp_path, agent, precision):
    config = dataclasses.replace(PROGRAMS[agent][1], precision=precision)
    state = train_in(tmp_path, make(config.env), config)
    assert int(state.iteration) == config.iterations
    assert not any(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(state))


@pytest.mark.slow
def test_a_world_model_learns_creatures_in_bfloat16(tmp_path):
    """As far as one in float32 must (test_world_model.py)."""
    env, config = make("creatures"), _config("creatures", "quick", None).with_iterations(16)
    config = dataclasses.replace(config, precision="bfloat16")
    state = train_in(tmp_path, env, config)
    with config.matmul_precision():
        accuracy = one_step_accuracy(env, state.world_model.model, state.codebook, random.key(10_000))
    assert accuracy.settled >= 0.995
