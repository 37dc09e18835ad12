"""A program that decodes inside `torch.compile` and prints what came out, for test_torch_compile.py.

A program of its own, because the first call in a fresh process is the point, and because tests check types at every
call, which a compiler would have to trace: `python compiled.py BACKEND`.
"""

import json
import sys
import warnings

import numpy as np
import torch

import itc

torch.set_num_threads(1)
backend = sys.argv[1]
warnings.simplefilter("error")
warnings.filterwarnings("ignore", ".*torch.jit.*")  # the default backend's own

torch.manual_seed(0)
LOGITS, PREVIOUS = torch.randn(4, 25, 16), torch.randint(16, (4, 25))
GRID, EDGES = (5, 5), itc.grid_edges((5, 5), 4)
MASK = np.arange(25).reshape(GRID) % 3 > 0


def equal(answer, expected) -> bool:
    return all(torch.equal(a, b) for a, b in zip(answer, expected, strict=True))


def compiled(function, fullgraph=True):
    torch.compiler.reset()  # one function with many settings would be taken for one that is compiled again and again
    return torch.compile(function, backend=backend, fullgraph=fullgraph)


def preset(name: str) -> bool:
    config = itc.PRESETS[name]

    def step(logits, previous):
        return itc.decode(logits * 2, previous, grid=GRID, config=config, key=3, codes=9, copyable=MASK)

    return equal(compiled(step)(LOGITS, PREVIOUS), step(LOGITS, PREVIOUS))


def by_name_as_rows_and_columns() -> bool:
    def step(logits, previous, done):
        return itc.decode(logits.view(2, 2, 5, 5, 16), previous.view(2, 2, 5, 5), config="conserving", key=1, done=done)

    done = torch.tensor([[True, False], [False, True]])
    return equal(compiled(step)(LOGITS, PREVIOUS, done), step(LOGITS, PREVIOUS, done))


def global_generator() -> list[bool]:
    """The same noise from the same seed; other noise in a second call of the same program.

    Programs with a gradient are those in which compilers look for calls that are the same.
    """
    logits = LOGITS.clone().requires_grad_()

    def step(logits, previous):
        decode = lambda: itc.decode(logits, previous, grid=GRID, config="sample").tokens  # noqa: E731
        return decode(), decode(), (logits * logits).sum()

    step = compiled(step)
    torch.manual_seed(1)
    first, second, _ = step(logits, PREVIOUS)
    torch.manual_seed(1)
    return [torch.equal(first, step(logits, PREVIOUS)[0]), not torch.equal(first, second)]


def generator() -> list:
    """Graphs around a call with a generator, and whether it draws what it draws without a compiler."""

    def step(logits, previous, key):
        return itc.decode(logits * 2, previous, grid=GRID, config="conserving", key=key).tokens + 1

    arguments = lambda: (LOGITS, PREVIOUS, torch.Generator().manual_seed(2))  # noqa: E731
    graphs = torch._dynamo.explain(step)(*arguments()).graph_count
    return [graphs, torch.equal(compiled(step, fullgraph=False)(*arguments()), step(*arguments()))]


def gradient() -> list[bool]:
    """None flows through, and the rest of the program keeps its own."""
    logits = LOGITS.clone().requires_grad_()

    def step(logits, previous):
        return itc.decode(logits * 2, previous, grid=GRID, config="paper"), (logits * logits).sum()

    decoded, loss = compiled(step)(logits, PREVIOUS)
    loss.backward()
    return [not any(part.requires_grad for part in decoded), torch.equal(logits.grad, 2 * LOGITS)]


def matching() -> bool:
    gains = torch.randn(3, 25, 13)
    return equal(compiled(lambda gains: itc.match(gains + 0, EDGES))(gains), itc.match(gains, EDGES))


def complaint() -> str:
    try:
        compiled(lambda x, u: itc.decode(x * torch.nan, u, grid=GRID, config="paper"))(LOGITS, PREVIOUS)
    except ValueError as error:
        return str(error)
    return "none"


presets = itc.PRESETS if backend == "aot_eager" else ("sample", "paper", "conserving")
print(
    json.dumps(
        {
            "presets": {name: preset(name) for name in presets},
            "by name, as rows and columns": by_name_as_rows_and_columns(),
            "global generator": global_generator(),
            "generator": generator(),
            "gradient": gradient(),
            "match": matching(),
            "complaint": complaint(),
        }
    )
)
