"""The whole of a training run as one value: what is saved, resumed and compared."""

import hashlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Int32

from itc import replay
from itc.envs.base import Environment
from itc.envs.rollout import Play, begin
from itc.policies.conv_gru import ActorCritic
from itc.tokenizers import patches
from itc.train.collect import Tally, new_tally
from itc.train.config import TrainConfig
from itc.train.learn_policy import PolicyState, new_policy_state
from itc.train.learn_world_model import WorldModelState, new_world_model_state
from itc.world_models.gpt import WorldModel


class TrainState(NamedTuple):
    """Everything that changes while training. `iteration` and `part` say what comes next."""

    iteration: Int32[Array, ""]
    part: Int32[Array, ""]  # of the iteration's work
    play: Play
    tally: Tally
    policy: PolicyState
    memory: replay.Replay
    codebook: patches.Codebook
    world_model: WorldModelState
    key: Array  # never changes: every piece of work derives its own from it


def new_train_state(env: Environment, config: TrainConfig, seed: int) -> TrainState:
    """Nothing learned yet."""
    env_key, policy_key, model_key, key = random.split(random.key(seed), 4)
    lanes, spec = config.collect.lanes, env.spec
    world, frame = env.reset(env_key, lanes)
    network = ActorCritic(policy_key, spec, config.policy)
    model = WorldModel(model_key, spec.grid, spec.num_actions, config.world_model)
    one_step = {
        "frame": jax.ShapeDtypeStruct(spec.frame_shape, jnp.uint8),
        "action": jax.ShapeDtypeStruct((), jnp.int32),
        "reward": jax.ShapeDtypeStruct((), jnp.float32),
        "done": jax.ShapeDtypeStruct((), jnp.bool_),
    }
    return TrainState(
        iteration=jnp.zeros((), jnp.int32),
        part=jnp.zeros((), jnp.int32),
        play=begin(world, frame, network.empty_memory(lanes)),
        tally=new_tally(spec, lanes, config.recent_iterations),
        policy=new_policy_state(network, config.ppo),
        memory=replay.empty_replay(one_step, replay.ReplayConfig(config.collect.replay_frames, lanes)),
        codebook=patches.empty_codebook(config.tokenizer.config(spec)),
        world_model=new_world_model_state(model, config.world_model_learning),
        key=key,
    )


def shape_of_state(env: Environment, config: TrainConfig) -> TrainState:
    """The same without any numbers, for reading a checkpoint: nothing is compiled or allocated."""
    return jax.eval_shape(lambda: new_train_state(env, config, 0))


def plain_arrays(state: Any) -> list[Any]:
    """The leaves that can be written to a file: random keys as the numbers behind them, empty arrays not at all."""
    return [random.key_data(leaf) if _is_key(leaf) else leaf for leaf in jax.tree.leaves(state) if leaf.size]


def from_plain_arrays(like: Any, arrays: list[Any]) -> Any:
    """The value of the shape of `like` that has these leaves."""
    leaves, tree = jax.tree.flatten(like)
    given = iter(arrays)

    def leaf_like(leaf):
        if not leaf.size:
            return jnp.zeros(leaf.shape, leaf.dtype)
        return random.wrap_key_data(next(given)) if _is_key(leaf) else next(given)

    return tree.unflatten([leaf_like(leaf) for leaf in leaves])


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def digest(state: Any) -> str:
    """A fingerprint of a state, of nothing else: equal digests, equal states."""
    fingerprint = hashlib.sha256()
    paths = [jax.tree_util.keystr(path) for path, leaf in jax.tree.leaves_with_path(state) if leaf.size]
    for path, array in zip(paths, plain_arrays(state), strict=True):
        numbers = np.ascontiguousarray(array)
        fingerprint.update(f"{path} {numbers.shape} {numbers.dtype}".encode())
        fingerprint.update(numbers.reshape(-1).view(np.uint8).data)
    return fingerprint.hexdigest()
