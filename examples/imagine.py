"""Load a training run and imagined rollout with it: `python examples/imagine.py runs/minatar-breakout-quick-0`."""

import sys

import jax

import itc

run = itc.load(sys.argv[1])
print(f"{run.preset}: {int(run.state.iteration)} iterations, {run.codes} codes")

# Eight imagined rollouts of the policy at play, from moments it remembers, decoded two ways.
for decoder in ("sample", "conserving"):
    imagined = run.imagine(jax.random.key(0), num_envs=8, decoder=decoder)
    copied = (imagined.outcome.source >= 0).mean()
    print(
        f"{decoder}: {imagined.actions.shape[1]} steps, reward {imagined.outcome.reward.sum():.0f}, {copied:.0%} copied"
    )
