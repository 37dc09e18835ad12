"""What is particular to PyTorch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import SHAPES, make_problem

import itc

CONSERVING = itc.PRESETS["conserving"]


@pytest.fixture
def tensors():
    problem = make_problem(SHAPES[3], "confident", seed=4, masks=False)
    return torch.from_numpy(problem.logits), torch.from_numpy(problem.previous), problem.grid


@pytest.mark.parametrize("name", itc.PRESETS)
def test_no_gradient_flows_through(tensors, name):
    logits, previous, grid = tensors
    logits.requires_grad_()
    gumbel = torch.zeros_like(logits, requires_grad=True)
    for noise in ({"key": torch.Generator()}, {"gumbel": gumbel}):
        decoded = itc.decode(logits, previous, grid=grid, config=itc.PRESETS[name], **noise)
        assert not any(part.requires_grad for part in decoded)


@pytest.mark.parametrize("name", ["sample", "argmax", "paper", "paper-minatar", "paper-atari"])
def test_the_closed_form_never_leaves_the_device(name):
    """Tensors without values stand in for another device: anything that fetched one would fail."""
    logits, previous = torch.zeros(2, 12, 5, device="meta"), torch.zeros(2, 12, dtype=torch.long, device="meta")
    gumbel = torch.zeros(2, 12, 5, device="meta")
    decoded = itc.decode(logits, previous, grid=(4, 3), config=itc.PRESETS[name], gumbel=gumbel)
    assert all(part.device.type == "meta" for part in decoded)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", [*itc.PRESETS, "auction"])
def test_the_default_dtype_does_not_leak_in(tensors, name, dtype):
    logits, previous, grid = tensors
    config = itc.PRESETS.get(name) or replace(CONSERVING, solver="auction")
    decode = lambda: itc.decode(logits, previous, grid=grid, config=config, key=torch.Generator().manual_seed(0))  # noqa: E731
    expected = decode()
    torch.set_default_dtype(dtype)
    try:
        answer = decode()
    finally:
        torch.set_default_dtype(torch.float32)
    for a, b in zip(answer, expected, strict=True):
        assert torch.equal(a, b)
        assert a.dtype == b.dtype


def test_float64_logits_keep_their_differences():
    logits = torch.tensor([[[1e9, 1e9 + 3], [0.0, -1e39]]], dtype=torch.float64)
    for config in (itc.PRESETS["argmax"], itc.PRESETS["paper"]):
        decoded = itc.decode(
            logits, torch.zeros(1, 2, dtype=torch.long), grid=(1, 2), config=config, gumbel=torch.zeros(1, 2, 2)
        )
        assert decoded.value.isfinite().all()
        assert decoded.tokens[0, 0] == 1


def test_strided_tensors_and_numpy_masks(tensors):
    logits, previous, grid = tensors
    keywords = {"grid": grid, "config": CONSERVING, "gumbel": torch.zeros_like(logits)}
    strided = torch.empty(*reversed(logits.shape)).permute(2, 1, 0).copy_(logits)
    mask = np.ones(grid, bool)
    mask.setflags(write=False)
    expected = itc.decode(logits, previous, **keywords)
    answer = itc.decode(strided, previous.T.contiguous().T, copyable=mask, **keywords)
    assert torch.equal(answer.source, expected.source)
