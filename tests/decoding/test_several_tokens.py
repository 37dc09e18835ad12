"""The recipe for several tokens per cell, as the documentation has it."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from problems import SHAPES, make_problem

import itc

PAGE = (Path(__file__).parents[2] / "docs" / "decoders.md").read_text()
GRID = (4, 3)
EDGES = itc.grid_edges(GRID, 4)


@pytest.fixture(scope="module")
def recipe():
    (block,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def decode_several" in block)
    names = {}
    exec(compile(block, "docs/decoders.md", "exec"), names)
    return names["decode_several"]


@pytest.mark.parametrize("kind", ["random", "confident"])
def test_with_one_token_it_is_conserving(recipe, kind):
    problem = make_problem(SHAPES[3], kind, seed=3, batch=20, masks=False)
    expected = problem.decode("torch", itc.PRESETS["conserving"])
    logits, previous, gumbel = (torch.from_numpy(x) for x in (problem.logits, problem.previous, problem.gumbel))
    tokens, source = recipe(logits[:, :, None], previous.long()[..., None], gumbel[:, :, None], EDGES)
    np.testing.assert_array_equal(source, expected.source)
    np.testing.assert_array_equal(tokens[..., 0], expected.tokens)
    assert (expected.source >= 0).any()
    assert (expected.source < 0).any()


def test_all_tokens_of_a_cell_come_from_one_source_and_each_source_once(recipe):
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(20, 12, 3, 5, generator=generator)
    previous = torch.randint(5, (20, 12, 3), generator=generator)
    tokens, source = recipe(logits, previous, torch.zeros_like(logits), EDGES, wildcard_cost=6.0)
    for b in range(20):
        copied = source[b] >= 0
        assert torch.equal(tokens[b][copied], previous[b][source[b][copied]])
        assert len(set(source[b][copied].tolist())) == copied.sum()
        assert torch.equal(tokens[b][~copied], logits[b][~copied].argmax(dim=-1))
    moved = (source >= 0) & (source != torch.arange(12))
    assert moved.any()
    assert (source < 0).any()
