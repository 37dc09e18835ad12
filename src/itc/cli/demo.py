"""`itc demo`: every decoder on random walkers, where the ground truth is known, as a table and a picture."""

import time
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from itc.cli.arguments import File, JsonFile
from itc.decoding.api import decode
from itc.decoding.config import PRESETS, DecodeConfig
from itc.envs.walkers import WALKER, Transitions, Walkers
from itc.evaluate.conservation import Conservation, conservation
from itc.train.files import write_json
from itc.types import Decoded

# Next to the presets: other settings of the same formulation.
DECODERS = {
    **PRESETS,
    "probability 0.1 / 0.9": DecodeConfig(distance_cost=0.1, wildcard_cost=0.9),
    "edge noise 0.1 / 8": DecodeConfig(distance_cost=0.1, wildcard_cost=8.0, affinity="log", noise="edge"),
    "no noise 0.02 / 4": DecodeConfig(distance_cost=0.02, wildcard_cost=4.0, affinity="log", noise="none"),
}
PICTURED = ("sample", "paper", "conserving")


def demo(steps: int = 1000, seed: int = 0, picture: File = Path("demo.png"), json_file: JsonFile = None) -> None:
    """Compare all decoders on random walkers, as a table and a picture.

    Their predictions are perfect. Which decoders keep the number of walkers, and which let them move?

    Args:
        steps: Number of steps to decode.
        seed: Random seed of the walkers and of the decoders' noise.
        picture: File for the picture of one step.
        json_file: Also write the numbers to this file.
    """
    from rich.table import Table

    from itc.cli.console import PlainConsole, working

    if steps < 1:
        raise SystemExit(f"itc demo: steps must be at least 1, got {steps}")
    console = PlainConsole()
    started = time.perf_counter()
    world = Walkers()
    decoded = {}
    with working() as work:
        work.step(f"listing every outcome of {steps:,} steps")
        transitions = world.record(steps, seed)
        work.step(f"decoding them with {len(DECODERS)} decoders", len(DECODERS))
        for name, config in DECODERS.items():
            decoded[name] = _decode(transitions, world, config, seed)
            work.advance()

    truth = conservation(transitions.previous, transitions.next, WALKER)
    title = (
        f"{steps:,} steps of {world.fewest}–{world.most} walkers on {world.grid[0]}×{world.grid[1]}, perfect marginals"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("decoder")
    for heading in ("right number", "count error", f"stay rate (truth {truth.stay_rate:.2f})"):
        table.add_column(heading, justify="right")
    measured = {name: conservation(transitions.previous, a.tokens, WALKER) for name, a in decoded.items()}
    for name, kept in measured.items():
        row = [name, f"{kept.right_number:.1%}", f"{kept.count_error:.2f}", f"{kept.stay_rate:.2f}"]
        table.add_row(*row, style="bold" if name == "conserving" else None)
    console.print(table)
    if json_file is not None:
        _write(json_file, steps, seed, truth, measured)

    _draw(transitions, decoded, world, picture)
    console.print(f"Picture of one step: {picture}   ({time.perf_counter() - started:.0f} s)")


def _write(path: Path, steps: int, seed: int, truth: Conservation, measured: dict[str, Conservation]) -> None:
    numbers = {
        "steps": steps,
        "seed": seed,
        "truth": truth._asdict(),
        "decoders": {name: kept._asdict() for name, kept in measured.items()},
    }
    write_json(path, numbers)


def _decode(transitions: Transitions, world: Walkers, config: DecodeConfig, seed: int) -> Decoded:
    import jax
    import jax.numpy as jnp

    answer = decode(
        jnp.asarray(transitions.logits),
        jnp.asarray(transitions.previous),
        grid=world.grid,
        config=config,
        key=jax.random.key(seed),
    )
    return Decoded(*(np.asarray(part) for part in answer))


def _draw(transitions: Transitions, decoded: dict[str, Decoded], world: Walkers, picture: Path) -> None:
    from itc.viewer.arrows import Panel, draw_arrows

    step = _illustrative_step(transitions, decoded)
    panels = [
        Panel("ground truth", transitions.next[step], None),
        *(Panel(name, decoded[name].tokens[step], decoded[name].source[step]) for name in PICTURED),
    ]
    wrong = ", ".join(f"{name} {_miscounted(transitions, decoded[name]).mean():.0%}" for name in PICTURED)
    caption = (
        f"Rings: before.  Discs: after; blue copied (with arrow), orange generated.  Steps with a wrong count: {wrong}."
    )
    draw_arrows(transitions.previous[step], panels, world.grid, WALKER, picture, caption)


def _illustrative_step(transitions: Transitions, decoded: dict[str, Decoded]) -> int:
    """The first step, if any, where `sample` and `paper` miscount and `conserving` does not, and moves two or more."""
    conserving = decoded["conserving"]
    elsewhere = conserving.source != np.arange(conserving.source.shape[1])
    moved = ((conserving.tokens == WALKER) & (conserving.source >= 0) & elsewhere).sum(axis=1)
    wrong = {name: _miscounted(transitions, decoded[name]) for name in PICTURED}
    return int(np.argmax(wrong["sample"] & wrong["paper"] & ~wrong["conserving"] & (moved >= 2)))


def _miscounted(transitions: Transitions, decoded: Decoded) -> Bool[np.ndarray, " b"]:
    """Steps after which the number of walkers is wrong; it never changes in truth."""
    before, after = ((tokens == WALKER).sum(axis=1) for tokens in (transitions.previous, decoded.tokens))
    return before != after
