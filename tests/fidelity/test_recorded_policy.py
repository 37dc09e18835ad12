"""The policy with the published agent's weights gives its numbers: policy outputs, advantages, updates.

Tolerances are about three times what we measured, in float32, where sums in another order differ in the sixth digit.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, random
from recorded import WARM, load, parameters, policy_inputs, with_recorded_weights

from itc.envs.base import Step
from itc.envs.rollout import RolloutState
from itc.policies.conv_gru import ActionRecord, ActorCritic, log_probability
from itc.policies.returns import ReturnNormaliser, advantages
from itc.presets import PRESETS
from itc.train.patch_agent import learn_policy as ppo
from itc.train.patch_agent.phases import burn_in
from itc.types import EnvSpec, Rollout

PRESET = {"minatar": "minatar/breakout/itc-paper", "craftax-classic": "craftax-classic/itc-paper"}
ACTIONS = {"minatar": 3, "craftax-classic": 17}
# Everything else is as in MinAtar's preset.
PPO = replace(PRESETS[PRESET["minatar"]].config.ppo, learning_rate=1e-5, epochs=2, minibatches=2)

unroll = jax.jit(lambda network, *seen: network.unroll(*seen))
new_state = jax.jit(lambda network: ppo.new_policy_state(network, PPO))
make_batch = jax.jit(
    lambda state, recurrent, rollout, final: ppo.make_batch(state, recurrent, rollout, final, PPO, leaky=True)
)
learn_in_epochs = jax.jit(lambda state, batch: ppo.policy_epochs(state, batch, PPO))
learn_from_imagination = jax.jit(
    lambda state, batch: ppo.policy_update(state, batch, PPO, PPO.imagined_entropy_coefficient)
)


def spec_of(case: str) -> EnvSpec:
    """What the network needs to know of the environment, without making it."""
    frame_shape, frame_max, grid, patch = {
        "minatar": ((10, 10, 4), 1, (5, 5), (2, 2)),
        "craftax-classic": ((63, 63, 3), 255, (9, 9), (7, 7)),
    }[case]
    actions = tuple(str(number) for number in range(ACTIONS[case]))
    return EnvSpec(
        case, frame_shape, frame_max, actions, grid, patch, np.ones(grid, bool), (0.0, 1.0), None, entities=("none",)
    )


def network_of(case: str) -> ActorCritic:
    config = PRESETS[PRESET[case]].config.policy
    return with_recorded_weights(jax.eval_shape(lambda: ActorCritic(random.key(0), spec_of(case), config)))


def inputs_of(case: str) -> dict[str, Array]:
    return policy_inputs(case, spec_of(case).frame_shape, ACTIONS[case])


class Played(NamedTuple):
    """A rollout of MinAtar as the recorded agent saw it, and where the game stood afterwards."""

    network: ActorCritic
    inputs: dict[str, Array]
    rollout: Rollout
    final: RolloutState


@pytest.fixture(scope="module")
def played():
    network, inputs = network_of("minatar"), inputs_of("minatar")
    recurrent_state, output = unroll(network, inputs["memory"], inputs["frames"], inputs["first"])
    probability = log_probability(output.logits, inputs["action"]) + inputs["shift"]
    record = ActionRecord(probability, output.value, inputs["first"])
    done = inputs["done"]
    outcome = Step(None, inputs["reward"], done, jnp.zeros_like(done), None, jnp.zeros((*done.shape, 0), bool))
    rollout = Rollout(inputs["frames"], inputs["action"], outcome, record, inputs["after"])
    return Played(network, inputs, rollout, RolloutState(None, inputs["after"], done[:, -1], recurrent_state))


@pytest.mark.parametrize(("case", "tolerance"), [
    ("minatar", 2e-5),
    ("craftax-classic", 2e-4),  # sixteen times as many numbers to sum up
])  # fmt: skip
def test_policy_outputs_and_recurrent_state(case, tolerance):
    theirs, inputs = load(f"policy_{case}"), inputs_of(case)
    recurrent_state, output = unroll(network_of(case), inputs["memory"], inputs["frames"], inputs["first"])
    ours, recorded = (jax.nn.log_softmax(jnp.asarray(logits)) for logits in (output.logits, theirs["logits"]))
    np.testing.assert_allclose(ours, recorded, rtol=0, atol=tolerance)
    np.testing.assert_allclose(output.value, theirs["value"], rtol=0, atol=tolerance)
    np.testing.assert_allclose(recurrent_state, theirs["memory"], rtol=0, atol=tolerance / 2)


def test_leaky_advantages_and_correct_ones():
    """Recorded were the leaky ones. At ends and in an environment's last episode nothing leaks: both are the same."""
    theirs = load("gae")
    reward, value, done = (jnp.asarray(theirs[name]) for name in ("reward", "value", "done"))
    leaky, correct = (advantages(reward, value, done, 0.925, 0.625, leaky) for leaky in (True, False))
    np.testing.assert_allclose(leaky, theirs["advantage"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(leaky + value[:, :-1], theirs["target"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(leaky[done], (reward - value[:, :-1])[done], rtol=0, atol=2e-6)
    last_episode = np.cumsum(theirs["done"][:, ::-1], axis=1)[:, ::-1] == 0
    same = last_episode | theirs["done"]
    difference = np.abs(correct - theirs["advantage"])
    assert difference[same].max() < 2e-6
    assert difference[~same].max() > 0.1


def check_update(before: ppo.PolicyState, after: ppo.PolicyState, metrics, theirs, case: str) -> None:
    losses = [metrics["loss"], metrics["policy_loss"], metrics["value_loss"], -metrics["entropy"]]
    np.testing.assert_allclose(losses, theirs[f"{case} losses"].mean(axis=0), rtol=0, atol=2e-5)
    start, now = parameters(before.network), parameters(after.network)
    assert {f"{case} norm {name}" for name in now} == {name for name in theirs if name.startswith(f"{case} norm ")}
    for name in now:
        change = now[name] - start[name]
        np.testing.assert_allclose(np.linalg.norm(change), theirs[f"{case} norm {name}"], rtol=5e-5, err_msg=name)
        if f"{case} change {name}" in theirs:  # to a twentieth of a step of Adam's
            np.testing.assert_allclose(
                change, theirs[f"{case} change {name}"], rtol=0, atol=PPO.learning_rate / 20, err_msg=name
            )


@pytest.mark.parametrize("case", ["A", "B"])
def test_ppo_on_a_real_rollout(played, case):
    """Two epochs of two minibatches: A with a fresh return normaliser, B with one in the middle of training."""
    theirs = load("ppo_minatar")
    network, inputs, rollout, final = played
    state = new_state(network)
    if case == "B":
        state = state._replace(normaliser=ReturnNormaliser(*(jnp.float32(number) for number in WARM)))
    batch = make_batch(state, inputs["memory"], rollout, final)
    np.testing.assert_array_equal(rollout.record.first, theirs["A reset"])
    np.testing.assert_allclose(rollout.record.value, theirs["values"][:, :-1], rtol=0, atol=3e-5)
    np.testing.assert_allclose(rollout.record.log_probability, theirs["log_prob"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(batch.advantage, theirs[f"{case} advantage"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(batch.returns, theirs[f"{case} target"], rtol=0, atol=1e-5)
    learned, metrics = learn_in_epochs(state, batch)
    check_update(state, learned, metrics, theirs, case)
    np.testing.assert_allclose(learned.normaliser, theirs[f"{case} normaliser"], rtol=1e-5)


def test_ppo_on_an_imagined_rollout(played):
    """C: one update, after a burn-in with the published reset of the recurrent state."""
    theirs = load("ppo_minatar")
    network, inputs, rollout, final = played
    window = {"frame": inputs["window"], "done": inputs["window_done"]}
    recurrent_state, first = jax.jit(burn_in, static_argnums=2)(network, window, True)
    np.testing.assert_allclose(recurrent_state, theirs["C memory"], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(first, theirs["C first"])
    # Policy outputs of the imagined rollout were not recorded: the values and probabilities of A stand in for them.
    rollout = rollout._replace(record=rollout.record._replace(first=rollout.record.first.at[:, 0].set(first)))
    np.testing.assert_array_equal(rollout.record.first, theirs["C reset"])
    normaliser = ReturnNormaliser(*(jnp.float32(number) for number in WARM))
    state = new_state(network)._replace(normaliser=normaliser)
    batch = make_batch(state, recurrent_state, rollout, final)
    np.testing.assert_allclose(batch.advantage, theirs["C advantage"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(batch.returns, theirs["C target"], rtol=0, atol=1e-5)
    check_update(state, *learn_from_imagination(state, batch), theirs, "C")
