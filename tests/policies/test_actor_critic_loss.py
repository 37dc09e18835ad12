"""The loss against NumPy, its initial values, and that it improves a policy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax, random
from scipy.stats import norm

from drawn_weights import drawn
from itc.extras import foreign_rules
from itc.policies.actor_critic_loss import ActorCriticConfig, actor_critic_loss
from itc.policies.lstm import LSTMActorCritic, LSTMPolicyConfig, PolicyOutput
from itc.policies.returns import until_end

BATCH, STEPS, ACTIONS, BINS = 3, 4, 5, 129
GENERATOR = np.random.default_rng(0)
OUTPUT = PolicyOutput(
    *(jnp.asarray(GENERATOR.normal(size=(BATCH, STEPS + 1, size)), jnp.float32) for size in (ACTIONS, BINS))
)
TAKEN = jnp.asarray(GENERATOR.integers(0, ACTIONS, (BATCH, STEPS + 1)), jnp.int32)
RETURNS = jnp.asarray(GENERATOR.normal(0, 3, (BATCH, STEPS)), jnp.float32)
ENDS = jnp.zeros((BATCH, STEPS), bool).at[0, 1].set(True).at[2, 3].set(True)


def softmax(logits):
    p = np.exp(np.asarray(logits, np.float64))
    return p / p.sum(-1, keepdims=True)


def by_numpy(output, actions, returns, scale, mask):
    """The parts of the loss, step by step as they are defined; bins of a normal distribution of the log of returns."""
    p, q = softmax(output.logits), softmax(output.value_logits)
    edges = np.linspace(-15, 15, BINS + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    actor, critic, entropy, values = [], [], [], []
    for b in range(BATCH):
        for t in range(STEPS + 1):
            if not mask[b, t]:
                continue
            entropy.append(-(p[b, t] * np.log(p[b, t])).sum())
            if t == STEPS:
                continue
            log_value, goal = q[b, t] @ middle, float(returns[b, t])
            values.append(np.sign(log_value) * np.expm1(abs(log_value)))
            actor.append(-np.log(p[b, t, actions[b, t]]) * (goal - values[-1]) / scale)
            cumulated = norm.cdf(edges, np.sign(goal) * np.log1p(abs(goal)), 0.75 * 30 / BINS)
            target = np.diff(cumulated) / (cumulated[-1] - cumulated[0])
            critic.append(-(target * np.log(q[b, t])).sum())
    return {
        "actor_loss": np.mean(actor),
        "critic_loss": np.mean(critic),
        "entropy": np.mean(entropy),
        "value": np.mean(values),
    }


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("given", [STEPS, STEPS + 1])
def test_the_loss_equals_numpy(masked, given):
    mask = until_end(ENDS) if masked else None
    compiled = jax.jit(actor_critic_loss, static_argnums=4)
    loss, metrics = compiled(OUTPUT, TAKEN[:, :given], RETURNS, jnp.float32(2.5), 0.05, mask)
    expected = by_numpy(OUTPUT, TAKEN, RETURNS, 2.5, np.ones((BATCH, STEPS + 1)) if mask is None else mask)
    assert set(metrics) == {"loss", *expected}
    for name, number in expected.items():
        assert float(metrics[name]) == pytest.approx(number, rel=2e-4), name
    total = expected["actor_loss"] + expected["critic_loss"] - 0.05 * expected["entropy"]
    assert float(loss) == pytest.approx(total, rel=2e-4)


def test_frames_count_until_an_action_has_ended_the_episode():
    np.testing.assert_array_equal(until_end(ENDS), [[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])


def test_masked_steps_have_no_gradient():
    mask = until_end(ENDS)

    def loss(output):
        return actor_critic_loss(output, TAKEN, RETURNS, jnp.float32(1), 0.1, mask)[0]

    gradient = jax.jit(jax.grad(loss))(OUTPUT)
    for leaf in gradient:
        np.testing.assert_array_equal(np.asarray(leaf).any(axis=-1)[:, :STEPS], mask[:, :STEPS])
    np.testing.assert_array_equal(np.asarray(gradient.logits).any(axis=-1), mask)


def test_advantages_are_taken_as_they_are():
    """No gradient reaches the returns or their scale, and the actor's does not reach the critic."""

    def loss(returns, scale, value_logits):
        output = PolicyOutput(OUTPUT.logits, value_logits)
        return actor_critic_loss(output, TAKEN, returns, scale, 0.1)[1]["actor_loss"]

    for leaf in jax.jit(jax.grad(loss, (0, 1, 2)))(RETURNS, jnp.float32(2), OUTPUT.value_logits):
        assert not leaf.any()


def test_steps_must_fit():
    with pytest.raises(ValueError, match="3 returns need 4 steps of policy output and 3 or 4 actions, got 5, 5"):
        actor_critic_loss(OUTPUT, TAKEN, RETURNS[:, :3], jnp.float32(1), 0.1)


def test_where_learning_starts():
    codes = jnp.asarray(GENERATOR.normal(size=(16, 9, 16, 16)), jnp.float32)
    returns = jnp.asarray(GENERATOR.normal(0, 0.1, (16, 8)), jnp.float32)
    actions = jnp.zeros((16, 8), jnp.int32)

    @jax.jit
    def evaluate(key):
        network = LSTMActorCritic(key, (4, 4), 16, 18, LSTMPolicyConfig((16, 8), 64))
        output = network.unroll(network.initial_state(16), codes, actions)
        return actor_critic_loss(output, actions, returns, jnp.float32(1), 0.001)

    _, metrics = evaluate(random.key(0, impl="unsafe_rbg"))  # a generator that compiles sooner
    assert float(metrics["critic_loss"]) == pytest.approx(3.8, abs=0.15)
    assert float(metrics["entropy"]) == pytest.approx(np.log(18), abs=0.05)


def test_the_better_arm_is_found():
    """Two arms, the second of which pays: it is played more often, and the critic predicts what it pays."""
    network = drawn(lambda key: LSTMActorCritic(key, (1, 1), 2, 2, LSTMPolicyConfig((4, 4), 8)))
    codes, optimiser = jnp.ones((32, 2, 1, 2)), optax.adam(0.02)

    def learn(learner, key):
        network, state = learner

        def loss(network):
            output = network.unroll(network.initial_state(32), codes, jnp.zeros((32, 1), jnp.int32))
            actions = random.categorical(key, output.logits[:, :1]).astype(jnp.int32)
            returns = jnp.where(actions == 1, 2.0, 0.0)
            _, metrics = actor_critic_loss(output, actions, returns, jnp.float32(1), 0.001)
            return metrics["loss"], (actions, metrics)

        gradient, (actions, metrics) = jax.grad(loss, has_aux=True)(network)
        with foreign_rules():
            updates, state = optimiser.update(gradient, state)
        plays = (actions == 1).mean(dtype=jnp.float32)
        return (optax.apply_updates(network, updates), state), (plays, metrics["value"])

    @jax.jit
    def learn_long(network, key):
        return lax.scan(learn, (network, optimiser.init(network)), random.split(key, 80))[1]

    plays, value = learn_long(network, random.key(1))
    assert float(plays[0]) < 0.7
    assert float(plays[-5:].mean()) > 0.9
    assert float(value[-1]) == pytest.approx(2, abs=0.4)


@pytest.mark.parametrize(
    "wrong", [{"discount": 1.1}, {"return_lambda": -0.1}, {"return_quantile": 0.5}, {"return_batches": 0}]
)
def test_settings_out_of_range(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ActorCriticConfig(**wrong)
