"""The examples of a world model, as people would run them."""

import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from jax import random

from itc.extras import foreign_rules

EXAMPLES = Path(__file__).parents[1] / "examples"


def output_of(name, *arguments):
    """The lines that an example prints."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


@pytest.mark.parametrize("name", ["torch_world_model", "jax_world_model"])
def test_a_world_model_imagines(name):
    said = {line.split(":")[0]: [int(x) for x in re.findall(r"(\d+)%", line)] for line in output_of(name)}
    assert said["sample"][0] < 80
    assert said["conserving"][0] >= 98
    assert min(moved for _, moved in said.values()) > 30, "the world is frozen"


@pytest.mark.slow
def test_a_world_model_of_ones_own_learns_and_imagines():
    sizes = {"--iterations": 2, "--num-envs": 8, "--model-updates": 60, "--imagined-updates": 2}
    _, *lines = output_of("own_world_model", *(str(word) for option in sizes.items() for word in option))
    numbers = r"real reward (\S+) a step, .*; model loss (\S+); imagined reward (\S+) a step, (\d+)% of frames"
    (_, before, *_), (_, after, imagined, _) = ([float(x) for x in re.search(numbers, line).groups()] for line in lines)
    assert after < before / 2 < 15, "nats per frame; 100 cells of 16 equally likely codes have 277"
    assert 0 <= imagined < 0.5


def test_its_tokenizer_loses_nothing(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from own_world_model import CODES, OwnWorld

    world, frames = OwnWorld({}, None, None), random.bernoulli(random.key(0), 0.4, (5, 10, 10, 4)).astype(jnp.uint8)
    with foreign_rules():  # examples broadcast as people do
        tokens = world.encode(frames)
        again = world.render(tokens)
    assert tokens.shape == (5, 100)
    assert 0 <= tokens.min() < tokens.max() < CODES
    assert (again == frames).all()
