"""`itc evaluate RUN`: play episodes with the trained policy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from itc.cli.arguments import JsonFile, OwnEnvironments, Run
from itc.cli.running import reading
from itc.settings import MOST

if TYPE_CHECKING:
    from itc.cli.console import Work

VIDEO_STEPS = 500  # at most


def evaluate(
    run: Run,
    episodes: int | None = None,
    seed: int = 1_000_000,
    video: bool = False,
    own: OwnEnvironments = (),
    json_file: JsonFile = None,
) -> None:
    """Play episodes with a run's policy; compare with random play.

    Plays whole episodes on held-out seeds.
    The numbers are written to evaluation.json in the run's folder (of a world: in runs/worlds/WORLD); `itc report`
    reads them there.

    Args:
        run: Folder of a training run, or a world.
        episodes: Number of episodes. If not given: as many as the paper plays in this environment.
        seed: Random seed of the episodes; training uses other seeds.
        video: Instead of measuring, write one episode as an animation to episode.gif in the run's folder.
        json_file: Also write the numbers to this file.
    """
    from itc.cli.compilation import keep_compiled
    from itc.cli.console import PlainConsole, working
    from itc.train.files import write_json
    from itc.train.run_folder import RunFolder
    from itc.train.runs import load
    from itc.worlds import find

    with reading("evaluate", own):
        for name, number, least in (("episodes", episodes, 1), ("seed", seed, 0)):
            if number is not None and not least <= number <= MOST:
                raise ValueError(f"{name} must be in [{least}, {MOST}], got {number}")
        keep_compiled()
        with working() as work:
            work.step(f"loading {run}")
            loaded = load(find(run))
            if video:
                work.step("playing one episode")
                film = _film(loaded, seed)
            else:
                episodes = loaded.config.evaluation_episodes if episodes is None else episodes
                numbers = measure(loaded, episodes, seed, work)
        if video:
            return print(f"One episode: {film}")
        RunFolder(loaded.path).write_evaluation(numbers)
        if json_file is not None:
            write_json(json_file, numbers)
        console = PlainConsole()
        console.print(summary(numbers, loaded.env.spec.return_scale), soft_wrap=not console.is_terminal)


def summary(numbers: dict[str, Any], return_scale: float | None) -> str:
    """The result in sentences."""
    interval = ""
    if "return_interval" in numbers:
        low, high = numbers["return_interval"]
        interval = f" (95 % interval {low:.2f} … {high:.2f})"
    episodes = numbers["episodes"]
    said = [
        f"{numbers['environment']} after {numbers['interactions']:,} interactions: return {numbers['return']:.2f}"
        f"{interval} in {episodes:,} {'episodes' if episodes > 1 else 'episode'}, {numbers['random_return']:.2f} with "
        "random play."
    ]
    if "return_percent" in numbers and return_scale is not None:
        said.append(f"The return is {numbers['return_percent']:.2f} % of {return_scale:g}.")
    if "score" in numbers:
        said.append(f"Score {numbers['score']:.2f} %.")
    return " ".join(said)


def measure(run, episodes: int, seed: int, work: "Work") -> dict[str, Any]:
    """Return with its interval, length, and score and success rates where the environment has achievements."""
    import jax.numpy as jnp
    from jax import random

    from itc.envs.whole_episodes import play_episodes
    from itc.evaluate.statistics import mean_interval
    from itc.train.collect import score

    spec = run.env.spec
    env = run.env.for_evaluation
    many = f"{episodes:,} {'episodes' if episodes > 1 else 'episode'}"
    work.step(f"playing {many} of {spec.name}", episodes)
    with run.config.matmul_precision():
        played = play_episodes(env, run.policy, random.key(seed), episodes, work.advance)
    work.step(f"playing {many} at random", episodes)
    at_random = play_episodes(env, None, random.key(seed), episodes, work.advance)
    numbers = {
        "environment": spec.name,
        "iterations": int(run.state.iteration),
        "interactions": run.interactions,
        "episodes": episodes,
        "return": round(float(played.returns.mean()), 4),
        # One episode has no spread.
        **({"return_interval": [round(end, 4) for end in mean_interval(played.returns)]} if episodes > 1 else {}),
        "random_return": round(float(at_random.returns.mean()), 4),
        **(
            {"random_return_interval": [round(end, 4) for end in mean_interval(at_random.returns)]}
            if episodes > 1
            else {}
        ),
        "length": round(float(played.lengths.mean()), 2),
    }
    if spec.achievements:
        rates = jnp.asarray(played.achievements.mean(axis=0, dtype="float32"))
        if spec.return_scale is not None:
            numbers["return_percent"] = round(100 * numbers["return"] / spec.return_scale, 3)
        numbers["score"] = round(score(rates), 3)
        shown = zip(spec.achievements, rates.tolist(), strict=True)
        numbers["success_rates"] = {name: round(rate, 4) for name, rate in shown}
    return numbers


def _film(run, seed: int) -> Path:
    """One episode, frame by frame."""
    import jax
    import numpy as np
    from jax import random

    from itc.envs.rollout import begin
    from itc.train.collect import collect, ends_of
    from itc.train.run_folder import RunFolder
    from itc.viewer.filmstrip import write_animation

    env, policy = run.env.for_evaluation, run.policy
    world, frame = env.reset(random.key(seed), 1)
    start = begin(world, frame, policy.initial_state(1))
    with run.config.matmul_precision():
        _, seen = collect(env, policy, start, random.key(seed + 1), VIDEO_STEPS)
    ends = np.flatnonzero(np.asarray(jax.device_get(ends_of(seen)))[0])
    last = int(ends[0]) + 1 if len(ends) else VIDEO_STEPS
    path = RunFolder(run.path).results / "episode.gif"
    write_animation(np.asarray(seen.frames[0, :last]), run.env.spec.frame_max, path)
    return path
