"""The decoder inside `torch.compile`, in a fresh process, and inside `torch.vmap`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import itc

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=BACKENDS)
def compiled(request):
    """What the program printed; whole graphs unless it says otherwise, and any warning would have stopped it."""
    finished = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compiled.py")), request.param],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return json.loads(finished.stdout)


def test_every_preset_is_one_graph_and_answers_as_without_a_compiler(compiled):
    assert {"sample", "paper", "conserving"} <= compiled["presets"].keys()
    assert all(compiled["presets"].values())
    assert compiled["by name, as rows and columns"]


def test_the_global_generator_draws_anew_in_every_call(compiled):
    assert compiled["global generator"] == [True, True]


def test_a_generator_costs_one_break(compiled):
    assert compiled["generator"] == [2, True]


def test_no_gradient_flows_through(compiled):
    assert compiled["gradient"] == [True, True]


def test_gains_of_ones_own(compiled):
    assert compiled["match"]


def test_values_are_checked_when_the_program_runs(compiled):
    assert compiled["complaint"] == "logits contain NaN"


def test_vmap_is_refused_in_words():
    with pytest.raises(ValueError, match=r"logits is inside torch\.vmap, which is not supported and not needed"):
        torch.vmap(lambda x, u: itc.decode(x, u, grid=(1, 2), config="argmax").tokens)(
            torch.zeros(3, 2, 4), torch.zeros(3, 2, dtype=torch.long)
        )
    with pytest.raises(ValueError, match=r"gains is inside torch\.vmap"):
        torch.vmap(lambda gains: itc.match(gains, itc.all_edges(2, 4)).value)(torch.zeros(3, 2, 4))
