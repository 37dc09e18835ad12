"""`itc world-model ENV`: learn a world model from random play, and show what it dreams."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Annotated, Literal

import tyro

SHOWN = ("sample", "paper", "conserving")  # decoders in the picture
STRIP = 8  # frames in the picture


def world_model(
    env: Annotated[str, tyro.conf.Positional],
    preset: Literal["quick", "paper"] = "quick",
    minutes: float = 2.0,
    run: Path | None = None,
    seed: int = 0,
) -> None:
    """Learn a world model of an environment from random play, measure it on new worlds, and draw its dreams.

    Args:
        env: An environment by name; `itc envs` lists them.
        preset: "quick" learns in minutes on two cores, "paper" has the paper's sizes.
        minutes: How long to learn, compilation included.
        run: Folder for config, metrics, checkpoint and picture; runs/world-model-ENV by default.
        seed: Where all chance comes from.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from itc.envs.registry import make
    from itc.envs.rollout import random_policy
    from itc.train.learn_from_play import learn_from_play, start_learning

    try:
        environment = make(env)
    except ValueError as unknown:
        raise SystemExit(f"itc world-model: {unknown}") from None
    if minutes <= 0:
        raise SystemExit(f"itc world-model: minutes must be greater than 0, got {minutes}")
    folder = run or Path("runs") / f"world-model-{env.replace('/', '-')}"
    config = _config(preset)
    folder.mkdir(parents=True, exist_ok=True)
    resolved = {"env": env, "preset": preset, "minutes": minutes, "seed": seed, **dataclasses.asdict(config)}
    (folder / "config.json").write_text(json.dumps(resolved, indent=1) + "\n")

    console = Console()
    console.print(f"Learning a world model of {env} for {minutes:g} minutes; everything goes to {folder}")
    started = time.monotonic()
    deadline = started + 60 * minutes
    learned = start_learning(environment, config, seed)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    frames = updates = 0
    with (folder / "metrics.jsonl").open("w") as log, Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("compiling …", total=60 * minutes)
        policy = random_policy(environment.spec.num_actions)
        for state, metrics in learn_from_play(environment, policy, config, learned, deadline):
            learned = state
            frames, updates = frames + metrics["frames"], updates + metrics["updates"]
            seconds = time.monotonic() - started
            line = {**metrics, "seconds": round(seconds, 2), "frames": frames, "updates": updates}
            log.write(json.dumps(line) + "\n")
            log.flush()
            said = (
                f"loss {metrics['loss']:.3f} · tokens {metrics['token_accuracy']:.1%} · {metrics['codes']} codes · "
                f"{frames:,} frames · {metrics['updates_per_second']:.1f} updates/s"
            )
            progress.update(bar, completed=min(seconds, 60 * minutes), description=said)
            if not console.is_terminal:
                console.print(f"{seconds:5.0f} s  {said}")
    _finish(environment, learned, folder, seed, console)


def _config(preset: str):
    from itc.train.learn_from_play import LearnFromPlay
    from itc.train.learn_world_model import WorldModelLearning
    from itc.world_models.gpt import WorldModelConfig

    if preset == "paper":
        return LearnFromPlay()
    small = WorldModelConfig(
        codes=1024, blocks=8, layers=2, heads=4, embedding=64, hidden=128, dropout=0.0, weight_scale=0.125
    )
    # Small minibatches, many of them: within minutes the number of updates counts.
    learning = WorldModelLearning(learning_rate=2e-3)
    return LearnFromPlay(codes=1024, sequences=4, updates=200, model=small, learning=learning)


def _finish(environment, learned, folder: Path, seed: int, console) -> None:
    """Save, measure on worlds of another seed, and draw."""
    from jax import random

    from itc.evaluate.one_step import one_step_accuracy
    from itc.train.checkpoint import save

    save(folder / "checkpoint", {"model": learned.world_model.model, "codebook": learned.codebook})
    held_out = random.key(seed + 1_000_000)
    accuracy = one_step_accuracy(environment, learned.world_model.model, learned.codebook, held_out)
    (folder / "accuracy.json").write_text(json.dumps(accuracy._asdict(), indent=1) + "\n")
    said = f"On new worlds, one step ahead: {accuracy.tokens:.2%} of tokens, {accuracy.frames:.1%} of frames right"
    if accuracy.settled is not None:
        said += f"; {accuracy.settled:.2%} of the tokens that were certain"
    console.print(said)
    _draw(environment, learned, folder / "dreams.png", held_out)
    console.print(f"Real and imagined frames: {folder / 'dreams.png'}")


def _draw(environment, learned, path: Path, key) -> None:
    import jax
    import numpy as np
    from jax import random

    from itc.decoding.config import PRESETS
    from itc.envs.rollout import begin, random_policy, recorded_policy, rollout
    from itc.tokenizers import patches
    from itc.train.imagine import WorldModelEnv, imagine
    from itc.viewer.filmstrip import draw_filmstrip

    spec = environment.spec
    reset_key, play_key, dream_key = random.split(key, 3)
    state, frame = environment.reset(reset_key, 1)
    play = jax.jit(rollout, static_argnums=(0, 2, 4))
    _, real = play(environment, begin(state, frame), random_policy(spec.num_actions), play_key, STRIP)
    rows = {"real": np.asarray(real.frames[0])}
    bucket = patches.bucket_of(int(learned.codebook.size), len(learned.codebook.patches))
    for name in SHOWN:
        dreamer = WorldModelEnv(learned.world_model.model, learned.codebook, spec, PRESETS[name], bucket)
        actions = real.actions[:, : STRIP - 1]
        dream = imagine(
            dreamer,
            dream_key,
            real.frames[:, :1],
            actions[:, :0],
            recorded_policy(actions),
            jax.numpy.int32(0),
            STRIP - 1,
        )
        rows[name] = np.concatenate([np.asarray(dream.frames[0]), np.asarray(dream.final_frame)])
    draw_filmstrip(rows, spec.frame_max, path, "The world, and what the model dreams under the same actions")
