"""A program that runs or compiles the Triton kernel without a GPU and prints what came of it, for test_torch_gpu.py.

A program of its own, because Triton decides when it is imported whether it interprets. `python kernel.py plain` runs
the kernel in NumPy, without Triton; `interpreted` runs it in Triton's interpreter; `compiled` makes machine code of it.
"""

import json
import os
import sys

MODE = sys.argv[1]
os.environ["TRITON_INTERPRET"] = str(int(MODE == "interpreted"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

if MODE == "plain":
    import plain_triton

    plain_triton.import_kernel()

import itc  # noqa: E402
from itc.decoding import torch_kernel, torch_triton  # noqa: E402
from itc.decoding.assignment import assign  # noqa: E402

torch.set_num_threads(1)
RNG = np.random.default_rng(0)


def solved(gains: np.ndarray, edges: itc.Edges) -> bool:
    """Valid, worth what SciPy's answer is worth, and certified by its own prices."""
    gains = np.where(edges.valid, gains, -np.inf).astype(np.float32)
    found = torch_kernel.in_kernel(torch.from_numpy(gains), edges)
    _, value = assign(gains, edges)
    good = np.allclose(found.value, value, rtol=1e-5, atol=1e-5) and np.allclose(found.gap, 0, atol=1e-4)
    for source, of_frame in zip(found.source.numpy(), gains, strict=True):
        copied = np.flatnonzero(source >= 0)
        at_edge = (edges.source[copied] == source[copied, None]) & edges.valid[copied]
        good &= len(set(source[copied])) == len(copied) and bool((at_edge.sum(axis=1) == 1).all())
        good &= bool((of_frame[copied][at_edge] > 0).all())
    return bool(good)


def random_gains(edges: itc.Edges, frames: int = 1) -> np.ndarray:
    return RNG.normal(size=(frames, *edges.source.shape))


def region_of_equals(edges: itc.Edges) -> np.ndarray:
    """Half of the tokens missing and everybody wants the rest: the longest searches there are."""
    return np.where(edges.source % 2 == 0, 4.0 - 0.02 * edges.distance, -np.inf)[None]


def interpreted() -> dict[str, bool]:
    row, square, far = itc.grid_edges((1, 6), 4), itc.grid_edges((5, 5), 4), itc.grid_edges((4, 3), 9)
    full = itc.all_edges(7, 5)
    too_large = torch.full((1, 4, 3), 3e38)
    return {
        "a row": solved(random_gains(row, 2), row),
        "5×5": solved(random_gains(square), square),
        "5×5, ties": solved(random_gains(square).round(), square),
        "5×5, equal tokens": solved(region_of_equals(square), square),
        "beyond distance 4": solved(random_gains(far, 2), far),
        "a full matrix": solved(random_gains(full, 3), full),
        "nothing gains": solved(np.zeros((1, 7, 5)), full),
        "no frames": torch_kernel.in_kernel(torch.zeros(0, 7, 5), full).source.shape == (0, 7),
        "too large for float32": torch_kernel.in_kernel(too_large, itc.all_edges(4, 3)).gap.item() == np.inf,
    }


def plain() -> dict[str, bool]:
    """The same, and frames of the sizes that there are, with few and with many copies that gain, and with ties."""
    answers = interpreted()
    for grid, reach in (((8, 8), 4), ((9, 9), 4), ((13, 11), 4), ((5, 5), 32), ((9, 9), 16)):
        edges, name = itc.grid_edges(grid, reach), f"{grid[0]}×{grid[1]} within {reach}"
        gains = np.concatenate([random_gains(edges, 3) + shift for shift in (-2, 0, 1, 5)])
        answers[name] = solved(gains, edges)
        answers[f"{name}, ties"] = solved(gains.round(), edges)
        answers[f"{name}, equal tokens"] = solved(region_of_equals(edges), edges)
    return answers


def compiled() -> dict[str, bool]:
    """For an A100, an RTX 3090 and an H100, with the fewest and the most sources."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"gains_ptr": "*fp32", "owner_ptr": "*i32", "price_ptr": "*fp32", "n": "i32", "s": "constexpr"}
    programs = {}
    for capability in (80, 86, 90):
        for s in (128, 1024):
            source = ASTSource(torch_triton.solve, types, {"s": s})
            options = {"num_warps": max(1, s // torch_triton.SOURCES_PER_WARP)}
            made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
            spills = "st.local" in made.asm["ptx"]
            programs[f"sm_{capability}, {s} sources"] = len(made.asm["cubin"]) > 0 and not spills
    return programs


print(json.dumps({"plain": plain, "interpreted": interpreted, "compiled": compiled}[MODE]()))
