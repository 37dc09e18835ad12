"""Operations of the Atari agent's updates, and of a whole run.

They are additions and multiplications of matrix products and convolutions, counted by hand for the published form of
each part: one product forwards, two backwards, nothing for computing anything twice. Where ours gets by with fewer
(convolutions of upsampled pictures) or does more (masked scores, forward passes again to save memory), its rate is an
effective one, and comparable all the same.
"""

from itertools import pairwise
from typing import NamedTuple

from itc.envs.atari import GRID, SIDE
from itc.networks.hl_gauss import VALUES
from itc.tokenizers import perceptual
from itc.tokenizers.vqvae import VQVAEConfig
from itc.train.vq_agent.config import VQConfig
from itc.world_models.pop import CONTEXT

CELLS = GRID * GRID


def encoder_operations(config: VQVAEConfig) -> int:
    """Of one frame, forwards, with the search for the nearest codes."""
    channels, side, total = config.channels, SIDE, _convolution(SIDE, 3, config.channels[0])
    for inputs, outputs in pairwise(channels):
        side //= 2
        total += _convolution(side, inputs, outputs)
    return total + _convolution(side, channels[-1], config.code_size) + 2 * CELLS * config.codes * config.code_size


def decoder_operations(config: VQVAEConfig) -> int:
    """Of one frame, forwards; pictures are upsampled first and convolved then, as published."""
    channels, side = config.channels[::-1], SIDE // config.shrinking
    total = _convolution(side, config.code_size, channels[0])
    for inputs, outputs in pairwise(channels):
        side *= 2
        total += _convolution(side, inputs, outputs)
    return total + _convolution(SIDE, channels[-1], 3)


def tokenizer_operations(config: VQConfig) -> int:
    vqvae, frames = config.tokenizer.vqvae, config.tokenizer.batch_size
    return 3 * frames * (encoder_operations(vqvae) + decoder_operations(vqvae))


def perceptual_operations(config: VQConfig) -> int:
    """VGG16 runs forwards on both pictures; the backward pass goes through one of them, and to no weights."""
    total = 0
    for number, layers in enumerate(perceptual.BLOCKS):
        inputs, outputs = perceptual.CHANNELS[number : number + 2]
        for layer in layers:
            total += _convolution(SIDE >> number, inputs if layer == layers[0] else outputs, outputs)
    return 3 * config.tokenizer.batch_size * total


def world_model_operations(config: VQConfig) -> int:
    """Trunk and heads; the ensemble's members share the batch, so they cost as much as one head."""
    model, learning = config.world_model, config.world_model_learning
    heads = 2 * (model.context_frames - CONTEXT) * _token_head(config)
    return 3 * learning.batch_size * (_trunk(config, model.context_frames, model.blocks_per_chunk) + heads)


def imagination_operations(config: VQConfig, steps: int) -> int:
    """The trunk's, in all environments: the block before the first frame, then a block and a prediction per step."""
    past = (CONTEXT - 1) * _trunk(config, 1, 1, predicts=False)
    return config.imagine.num_envs * (past + steps * _trunk(config, 1, 1))


def imagination_head_operations(config: VQConfig, steps: int) -> int:
    return config.imagine.num_envs * steps * (1 + config.world_model.members) * _token_head(config)


def policy_operations(config: VQConfig, burn_in: int, learned: int) -> int:
    """Frames of the burn-in, and frames that are learned from. (The actor's few columns are left out.)"""
    policy = config.policy
    first, second = policy.channels
    frame = _convolution(GRID, config.world_model.width, first) + _convolution(GRID, first, second)
    frame += 2 * CELLS * second * policy.hidden
    recurrence = 2 * 8 * policy.hidden**2
    value_head = 2 * policy.hidden * VALUES.bins
    return config.imagine.num_envs * (
        burn_in * (frame + recurrence) + 3 * learned * (frame + 2 * recurrence + value_head)
    )


def actor_critic_operations(config: VQConfig) -> int:
    """An imagined rollout and the update that follows it. The published agent also computes a step after the
    last one it uses."""
    steps = config.imagination_steps
    networks = policy_operations(config, config.imagine.burn_in, steps + 1)
    return imagination_operations(config, steps) + imagination_head_operations(config, steps) + networks


def _convolution(side: int, inputs: int, outputs: int) -> int:
    return 2 * 9 * side * side * inputs * outputs


def _token_head(config: VQConfig) -> int:
    """Of one frame. (Those for reward and end see one token of it, and are left out.)"""
    model = config.world_model
    return 2 * CELLS * model.head_hidden * (model.width + model.codes)


def _trunk(config: VQConfig, blocks: int, chunk: int, predicts: bool = True) -> int:
    """Of one sequence, forwards. Real tokens see their chunk, masked or not, and the recurrent state before it;
    prediction tokens see each other and the recurrent state."""
    model, slots = config.world_model, CELLS + 1
    real, predicted = blocks * slots, blocks * CELLS if predicts else 0
    in_products = (real + predicted) * (5 * model.width**2 + 2 * model.width * model.hidden)
    in_chunks = 2 * model.width * (real * chunk * slots + predicted * CELLS)
    in_recurrence = (2 * real + predicted) * model.width * model.head_size
    return 2 * model.layers * (in_products + in_chunks + in_recurrence)


class Updates(NamedTuple):
    """How many a run has."""

    tokenizer: int
    world_model: int
    actor_critic: int


def scheduled_updates(config: VQConfig) -> Updates:
    phases = (config.tokenizer, config.world_model_learning, config.imagine)
    last = config.total_iterations
    stops = (min(config.tokenizer.stop_iteration or last, last), last, last)
    return Updates(*((stop - phase.start_iteration) * phase.updates for phase, stop in zip(phases, stops, strict=True)))


def frames_read(config: VQConfig) -> int:
    """In every iteration that trains the world model, all frames seen so far are encoded again; only the new ones, once
    a frozen tokenizer has encoded all."""
    trained = range(config.world_model_learning.start_iteration, config.total_iterations)
    return sum(
        min(config.interactions_after(iteration + 1), config.steps_to_encode(iteration)) for iteration in trained
    )


class CountedRun(NamedTuple):
    """Operations of a whole run; those of playing and evaluating are left out, being few."""

    tokenizer: int
    perceptual: int
    reading: int
    world_model: int
    actor_critic: int


def counted_run(config: VQConfig) -> CountedRun:
    updates = scheduled_updates(config)
    return CountedRun(
        tokenizer=updates.tokenizer * tokenizer_operations(config),
        perceptual=updates.tokenizer * perceptual_operations(config),
        reading=frames_read(config) * encoder_operations(config.tokenizer.vqvae),
        world_model=updates.world_model * world_model_operations(config),
        actor_critic=updates.actor_critic * actor_critic_operations(config),
    )
