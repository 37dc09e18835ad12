"""What PyTorch does on a GPU, where there is none: devices of tensors without values, and the kernel interpreted."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_gpu import GPU, fake_gpu

import itc
from itc.decoding import torch_kernel, torch_matching, torch_sinkhorn

B, N, K, GRID = 3, 20, 7, (5, 4)


def waits_for_the_device(flags):
    raise AssertionError("the host was asked")


@pytest.fixture
def triton(monkeypatch):
    """On a GPU there is Triton; tensors without values do not reach it."""
    monkeypatch.setattr(torch_kernel, "has_triton", lambda: True)


def decoded(config, **keywords):
    """Results on the fake GPU, from all arguments there are; random draws come from its global generator."""
    with fake_gpu():
        logits, previous = torch.zeros(B, N, K, device=GPU), torch.zeros(B, N, dtype=torch.int32, device=GPU)
        done = torch.zeros(B, dtype=torch.bool, device=GPU)
        mask = np.ones(GRID, bool)
        return itc.decode(logits, previous, grid=GRID, config=config, codes=5, copyable=mask, done=done, **keywords)


@pytest.mark.parametrize("name", [name for name in itc.PRESETS if itc.PRESETS[name].solver != "sinkhorn"])
def test_exact_decoders_stay_on_the_device(triton, monkeypatch, name):
    """And never wait for it."""
    monkeypatch.setattr(torch_matching, "none_left", waits_for_the_device)
    answer = decoded(name)
    assert [part.device for part in answer] == [GPU] * 4
    assert [part.shape for part in answer] == [(B, N), (B, N), (B,), (B,)]
    assert [part.dtype for part in answer] == [torch.int32, torch.int64, torch.float32, torch.float32]


@pytest.mark.parametrize("name", [name for name in itc.PRESETS if itc.PRESETS[name].solver == "sinkhorn"])
def test_sinkhorn_stays_on_the_device(monkeypatch, name):
    """It may ask whether it has converged."""
    monkeypatch.setattr(torch_sinkhorn, "none_left", lambda flags: flags.device == GPU)
    assert [part.device for part in decoded(name)] == [GPU] * 4


def test_gains_of_ones_own_stay_on_the_device(triton, monkeypatch):
    monkeypatch.setattr(torch_matching, "none_left", waits_for_the_device)
    with fake_gpu():
        found = itc.match(torch.zeros(B, 6, 4, device=GPU), itc.all_edges(6, 4))
    assert [part.device for part in found] == [GPU] * 3


@pytest.mark.parametrize("missing", ["Triton", "registers"])
def test_without_the_kernel_the_auction_asks_now_and_then(monkeypatch, missing):
    """Where Triton is missing, or more sources than a kernel's registers hold."""
    asked = []
    monkeypatch.setattr(torch_kernel, "has_triton", lambda: missing != "Triton")
    monkeypatch.setattr(torch_matching, "none_left", lambda flags: not asked.append(flags.device))
    n = 6 if missing == "Triton" else 1025
    with fake_gpu():
        found = itc.match(torch.zeros(1, n, n, device=GPU), itc.all_edges(n, n))
    assert asked == [GPU]
    assert found.source.device == GPU


def test_tensors_without_values_leave_nothing_behind(triton):
    """Tables of edges are kept per device: a stand-in among them would spoil every later call."""
    decoded("conserving")
    assert not any(device == GPU for _, _, device in torch_matching._TABLES)


@pytest.fixture(scope="module", params=["plain", "interpreted", "compiled"])
def kernel(request):
    """What the program said of the kernel."""
    if request.param != "plain" and find_spec("triton") is None:
        pytest.skip("Triton is not installed: pip install -e '.[triton]', 286 MB")
    program = [sys.executable, str(Path(__file__).with_name("kernel.py")), request.param]
    finished = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_the_kernel(kernel):
    """Run, it answers as SciPy does; compiled, it is machine code for three GPUs and spills no registers."""
    assert len(kernel) > 5
    assert all(kernel.values()), kernel
