"""The loss of the world model of Atari, where its gradients go, and its intrinsic reward."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from test_pop import ACTIONS, CELLS, SMALL, make

from itc.networks.hl_gauss import REWARDS
from itc.world_models.pop import POPConfig, POPWorldModel
from itc.world_models.pop_losses import Sequences, decays, intrinsic_reward, pop_loss

B, T = 6, 4
CODEBOOK = jnp.asarray(np.random.default_rng(5).normal(size=(SMALL.codes, SMALL.width)), jnp.float32)
LENGTHS = np.array([4, 4, 3, 4, 3, 4])


def some_sequences(lengths=LENGTHS, seed=7):
    generator = np.random.default_rng(seed)
    return Sequences(
        jnp.asarray(generator.integers(SMALL.codes, size=(B, T, CELLS)), jnp.int32),
        jnp.asarray(generator.integers(ACTIONS, size=(B, T)), jnp.int32),
        jnp.asarray(generator.normal(size=(B, T)), jnp.float32),
        jnp.asarray(generator.random((B, T)) < 0.4),
        jnp.asarray(np.arange(T)[None] < lengths[:, None]),
    )


@pytest.fixture(scope="module")
def model():
    return make()


evaluate = jax.jit(lambda model, sequences: pop_loss(model, CODEBOOK, sequences, None))
with_slopes = jax.jit(jax.value_and_grad(pop_loss, argnums=(0, 1), has_aux=True))
curiosity_slopes = jax.jit(jax.grad(lambda model, sequences: evaluate(model, sequences)[1][1]["curiosity_loss"]))


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))


def test_losses_equal_plain_loops(model):
    sequences = some_sequences()
    prediction = jax.jit(lambda m: m(CODEBOOK[sequences.tokens], sequences.actions))(model)
    tokens, _, _, ends, mask = (np.asarray(part) for part in sequences)
    predicted, reward, done, members = (log_softmax(part) for part in prediction)
    targets = np.asarray(REWARDS.targets(sequences.rewards), np.float64)
    token_losses, reward_losses, done_losses, late_losses, curiosity_losses = [], [], [], [], []
    priority = []
    for b in range(B):
        of_tokens, of_rewards = [], []
        for t in range(T):
            for n in range(CELLS if t >= 2 and mask[b, t] else 0):
                of_tokens.append(-predicted[b, t, n, tokens[b, t, n]])
                curiosity_losses.append(-members[b // 2, b, t, n, tokens[b, t, n]])
            if t >= 1 and mask[b, t]:
                of_rewards.append(-(targets[b, t - 1] * reward[b, t]).sum())
                done_losses.append(-done[b, t, int(ends[b, t - 1])])
            if t < T - 1 and mask[b, t]:
                late_losses.append(-done[b, t, int(ends[b, t])])
        priority.append(np.mean(of_tokens) + np.mean(of_rewards))
        token_losses += of_tokens
        reward_losses += of_rewards
    parts = {"token_loss": token_losses, "reward_loss": reward_losses, "done_loss": done_losses}
    expected = {name: np.mean(part) for name, part in (parts | {"curiosity_loss": curiosity_losses}).items()}
    loss, (ours, metrics) = evaluate(model, sequences)
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(loss, sum(expected.values()), rtol=1e-4)
    np.testing.assert_allclose(ours, priority, rtol=1e-4)
    assert 0 <= float(metrics["token_accuracy"]) <= 1
    late = jax.jit(partial(pop_loss, done_one_step_late=True))(model, CODEBOOK, sequences, None)[1][1]
    np.testing.assert_allclose(late["done_loss"], np.mean(late_losses), rtol=1e-4)
    np.testing.assert_allclose(late["reward_loss"], metrics["reward_loss"], rtol=1e-5)


def test_padding_changes_nothing(model):
    sequences, other = some_sequences(), some_sequences(seed=8)
    padded = sequences._replace(
        **{
            name: jnp.where(
                jnp.expand_dims(sequences.mask, tuple(range(2, getattr(sequences, name).ndim))),
                getattr(sequences, name),
                getattr(other, name),
            )
            for name in ("tokens", "actions", "rewards", "ends")
        }
    )
    assert not jnp.array_equal(sequences.tokens, padded.tokens)
    for a, b in zip(*(jax.tree.leaves(evaluate(model, x)) for x in (sequences, padded)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_nothing_to_average_is_no_loss_and_no_slope(model, length):
    sequences = some_sequences(np.full(B, length))
    (loss, (priority, metrics)), slope = with_slopes(model, CODEBOOK, sequences, random.key(0))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((loss, priority, slope)))
    assert float(metrics["token_loss"]) == float(metrics["curiosity_loss"]) == 0
    if length < 2:
        assert float(loss) == 0
        np.testing.assert_array_equal(priority, 0)


def test_neither_the_codebook_nor_the_trunk_learns_from_where_it_should_not(model):
    sequences = some_sequences()
    np.testing.assert_array_equal(with_slopes(model, CODEBOOK, sequences, random.key(0))[1][1], 0)
    slopes = curiosity_slopes(model, sequences)
    rest = eqx.tree_at(lambda m: m.members, slopes, None)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(rest))
    assert all((jnp.abs(leaf).sum(axis=range(1, leaf.ndim)) > 0).all() for leaf in jax.tree.leaves(slopes.members))
    features = random.normal(random.key(0), (CELLS, SMALL.width))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: model.read(x).members.sum()))(features), 0)


def test_all_but_the_unused_row_learns(model):
    _, (slopes, _) = with_slopes(model, CODEBOOK, some_sequences(), random.key(0))
    for path, leaf in jax.tree_util.tree_leaves_with_path(slopes):
        assert (leaf != 0).any(), jax.tree_util.keystr(path)
    np.testing.assert_array_equal(slopes.prediction_embedding[CELLS], 0)
    assert (slopes.prediction_embedding[:CELLS] != 0).any()


def test_each_member_learns_from_its_own_share(model):
    """The second of three members sees sequences 2 and 3 only."""
    sequences = some_sequences()
    other = sequences._replace(tokens=sequences.tokens.at[3, 3].add(1) % SMALL.codes)
    before, after = (curiosity_slopes(model, part).members.outer.bias for part in (sequences, other))
    np.testing.assert_array_equal(np.asarray(before != after).any(axis=1), [False, True, False])


def test_a_batch_that_cannot_be_shared_is_named(model):
    sequences = Sequences(*(part[:4] for part in some_sequences()))
    with pytest.raises(ValueError, match="a batch of 4 cannot be split evenly among 3 members"):
        pop_loss(model, CODEBOOK, sequences, None)


def test_disagreement_is_between_nothing_and_the_logarithm_of_the_members():
    generator, disagreement = np.random.default_rng(0), jax.jit(intrinsic_reward)
    same = np.repeat(generator.normal(size=(1, 3, CELLS, 20)).astype(np.float32), 4, axis=0)
    np.testing.assert_allclose(disagreement(same), np.zeros(3), atol=1e-6)
    for m in (2, 4):
        certain = np.broadcast_to(100 * np.eye(m, 20, dtype=np.float32)[:, None, None], (m, 3, CELLS, 20))
        np.testing.assert_allclose(disagreement(certain), np.full(3, np.log(m)), rtol=1e-5)
    different = generator.normal(size=(2, 3, CELLS, 20)).astype(np.float32)
    p = np.exp(log_softmax(different))
    entropy = lambda p: -(p * np.log(p)).sum(axis=-1)  # noqa: E731
    expected = (entropy(p.mean(axis=0)) - entropy(p).mean(axis=0)).mean(axis=-1)
    np.testing.assert_allclose(disagreement(different), expected, rtol=1e-4)
    assert ((expected > 0) & (expected < np.log(2))).all()


def test_which_parameters_decay():
    shrinks = jax.tree_util.tree_leaves_with_path(decays(make()))
    assert {jax.tree_util.keystr(path) for path, shrinks_here in shrinks if shrinks_here} == {
        ".cell_embedding",
        *(f".layers.{name}.weight" for name in ("retention_in", "retention_out", "feed_in", "feed_out")),
        *(f".{head}.{part}.weight" for head in HEADS for part in ("inner", "outer")),
        *(f".{head}.norm.scale" for head in HEADS if head != "reward_head"),
    }


HEADS = ("token_head", "reward_head", "done_head", "members")


@pytest.mark.slow
def test_first_losses_at_the_papers_size():
    """Codes are hardly distinguished yet, so their loss is about ln 512 = 6.24; rewards start from the bias around
    zero, where they would cost 4.31 if the head added nothing."""
    config = POPConfig(context_frames=4, blocks_per_chunk=4)
    model = jax.jit(lambda key: POPWorldModel(key, (8, 8), 18, config))(random.key(0))
    keys = random.split(random.key(1), 3)
    codebook = random.uniform(keys[0], (512, 256), minval=-1 / 512, maxval=1 / 512)
    tokens = random.randint(keys[1], (4, 4, 64), 0, 512)
    actions = random.randint(keys[2], (4, 4), 0, 18)
    nothing = jnp.zeros((4, 4), bool)
    sequences = Sequences(tokens, actions, jnp.zeros((4, 4)), nothing, ~nothing)
    _, (priority, metrics) = jax.jit(pop_loss)(model, codebook, sequences, random.key(2))
    np.testing.assert_allclose(metrics["token_loss"], 6.30, atol=0.15)
    np.testing.assert_allclose(metrics["curiosity_loss"], 6.29, atol=0.15)
    np.testing.assert_allclose(metrics["reward_loss"], 4.2, atol=0.8)
    np.testing.assert_allclose(metrics["done_loss"], 0.6, atol=0.4)
    np.testing.assert_allclose(priority.mean(), metrics["token_loss"] + metrics["reward_loss"], rtol=1e-4)
