"""`itc world-model ENV`: train a world model without training a policy, and draw imagined rollouts."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from itc.cli.arguments import EnvName, RunOption
from itc.cli.running import reading

if TYPE_CHECKING:
    from itc.policies.conv_gru import PolicyConfig
    from itc.train.config import TrainConfig
    from itc.train.runs import Run

MINUTES, MINUTES_ON_ATARI = 2.0, 8.5  # Atari trains a tokenizer first


def world_model(
    env: EnvName,
    preset: Literal["quick", "paper"] = "quick",
    minutes: float | None = None,
    iterations: int | None = None,
    run: RunOption = None,
    seed: int = 0,
    policy: RunOption = None,
) -> None:
    """Train a world model on random play, without training a policy.

    It is then measured on held-out seeds, and imagined rollouts are drawn. Rerunning the command resumes.

    Args:
        env: Name of an environment; `itc envs` lists them.
        preset: "quick" trains in minutes on two cores; "paper" has the paper's sizes.
        minutes: Minutes of training, including compilation. If not given: 2; on Atari 8.5.
        iterations: Stop after this many iterations, if that comes sooner.
        run: Folder for config, metrics, checkpoints and picture. If not given: runs/world-model-ENV.
        seed: Random seed.
        policy: Training run on the same environment whose policy plays instead of random actions; not on Atari.
    """
    from itc.cli.train import TrainArguments, start
    from itc.train.patch_agent.config import PatchConfig
    from itc.train.run_folder import RunFolder

    with reading("world-model", (env,)):
        config = _config(env, preset, policy)
        folder = run or Path("runs") / f"world-model-{env.replace('/', '-')}"
        name = f"world model of {env}, {preset}"
        patches = isinstance(config, PatchConfig)
        if minutes is None:
            minutes = MINUTES if patches else MINUTES_ON_ATARI
        arguments = TrainArguments(
            preset=name, run=folder, seed=seed, iterations=iterations, minutes=minutes, devices=1, config=config
        )
    trained = start(arguments, policy_from=policy)
    # On Atari the tokenizer has codes long before the world model is trained.
    ready = trained.codes and (patches or "world_model/loss" in RunFolder(folder).read_metrics()[-1])
    if not ready:
        sys.exit("itc world-model: stopped before the world model was trained; rerunning the command resumes")
    (_measure if patches else _measure_foresight)(trained)


def _config(env: str, preset: str, policy: Path | None) -> "TrainConfig":
    """Training an agent without training its policy; without a given policy, it plays at random."""
    from itc.envs.registry import make
    from itc.presets import PRESETS
    from itc.presets.creatures import QUICK
    from itc.train.patch_agent.config import PatchConfig
    from itc.train.vq_agent.config import VQConfig

    make(env)  # raises if there is no such environment
    at_paper_size = PRESETS[f"{env}/itc-paper"].config if f"{env}/itc-paper" in PRESETS else PatchConfig()
    if isinstance(at_paper_size, VQConfig):
        if policy is not None:
            raise ValueError(f"a policy on {env} depends on its own tokenizer and cannot play for another run")
        config = PRESETS[f"{env}/quick"].config if preset == "quick" else at_paper_size
        never = dataclasses.replace(config.evaluate, every=0)
        return dataclasses.replace(config, train_policy=False, total_iterations=10**6, evaluate=never)
    config = dataclasses.replace(QUICK if preset == "quick" else at_paper_size, env=env, train_policy=False)
    return dataclasses.replace(config, policy=_player(env, policy), interactions=10**9)


def _player(env: str, policy: Path | None) -> "PolicyConfig":
    """The network that plays: a given run's, or the smallest possible, as an untrained one plays at random anyway."""
    from itc.policies.conv_gru import PolicyConfig
    from itc.policies.encoders import EncoderConfig
    from itc.train.patch_agent.config import PatchConfig
    from itc.train.run_folder import RunFolder
    from itc.worlds import find

    if policy is None:
        return PolicyConfig(EncoderConfig((1,), resize=(1, 1)), recurrent_size=1, hidden=1)
    playing, _, _ = RunFolder(find(policy)).read_config()
    if not isinstance(playing, PatchConfig) or playing.env != env:
        raise ValueError(f"the policy of {policy} plays {playing.env}, not {env}")
    return playing.policy


def _measure(run: "Run") -> None:
    """One-step accuracy on held-out seeds."""
    from jax import random

    from itc.cli.console import working
    from itc.evaluate.one_step import one_step_accuracy
    from itc.train.files import write_json
    from itc.viewer.imagination import HELD_OUT

    with working() as work, run.config.matmul_precision():
        work.step("measuring accuracy on held-out seeds")
        accuracy = one_step_accuracy(run.env, run.world_model, run.state.codebook, random.key(run.seed + HELD_OUT))
    write_json(run.path / "accuracy.json", accuracy._asdict())
    said = f"One step ahead on held-out seeds: {accuracy.tokens:.2%} of tokens, {accuracy.frames:.1%} of frames correct"
    if accuracy.settled is not None:
        said += f"; {accuracy.settled:.2%} of the tokens that were certain"
    print(said)


def _measure_foresight(run: "Run") -> None:
    """Errors and losses on held-out seeds, next to those of baselines that learn nothing."""
    from jax import random

    from itc.cli.console import working
    from itc.evaluate.foresight import beats, foresight
    from itc.train.files import write_json
    from itc.viewer.imagination import HELD_OUT

    with working() as work, run.config.matmul_precision():
        work.step("measuring errors and losses on held-out seeds")
        found = foresight(run, random.key(run.seed + HELD_OUT))
    write_json(run.path / "foresight.json", found)
    for name, value in found.items():
        print(f"{name}: {value:.4g}")
    for sentence, holds in beats(found).items():
        print(f"{'yes' if holds else 'NO '}  {sentence}")
