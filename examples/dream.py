"""Load a training run and dream with it: `python examples/dream.py runs/minatar-breakout-quick-0`."""

import sys

import jax

import itc

run = itc.load(sys.argv[1])
print(f"{run.preset}: {int(run.state.iteration)} iterations, {run.codes} codes")

# Eight dreams of the policy at play, from moments it remembers, decoded two ways.
for decoder in ("sample", "conserving"):
    dream = run.imagine(jax.random.key(0), lanes=8, decoder=decoder)
    copied = (dream.outcome.source >= 0).mean()
    print(f"{decoder}: {dream.actions.shape[1]} steps, reward {dream.outcome.reward.sum():.0f}, {copied:.0%} copied")
