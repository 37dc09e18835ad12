"""Load a training run and imagine with it: `python examples/imagine.py runs/minatar-breakout-quick-0`."""

import sys

import jax

import itc

run = itc.load(sys.argv[1])
print(f"{run.preset}: {int(run.state.iteration)} iterations, {run.codes} codes")

# Eight imagined rollouts under the policy, from frames of the replay buffer, with two decoders.
for decoder in ("sample", "conserving"):
    rollout = run.imagine(jax.random.key(0), num_envs=8, decoder=decoder)
    copied = (rollout.outcome.source >= 0).mean()
    print(
        f"{decoder}: {rollout.actions.shape[1]} steps, reward {rollout.outcome.reward.sum():.0f}, {copied:.0%} copied"
    )
