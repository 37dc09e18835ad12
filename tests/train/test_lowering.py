"""Every phase of both agents, lowered for accelerators that are not here: what a device would be given to compile."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import patch_programs, vq_programs
from tiny import TINY
from vq_tiny import VQ_TINY

# With the decoder that needs a solver: on a GPU it is a kernel, and nowhere a question to the host.
AGENTS = {
    "patches": (patch_programs, dataclasses.replace(TINY, decoder="conserving")),
    "vqvae": (vq_programs, dataclasses.replace(VQ_TINY, decoder="conserving")),
}
PHASES = [
    *(("patches", name) for name in ("play", "replay", "policy", "tokenizer", "world model", "imagination")),
    *(("vqvae", name) for name in ("play", "burn-in", "tokenizer", "encoding", "world model", "imagination")),
]
# The kernel of the matching, by the names that JAX has had for Triton's.
ALLOWED = {"cuda": {"__gpu$xla.gpu.triton", "triton_kernel_call_ffi", "triton_kernel_call"}, "tpu": set()}


@pytest.fixture(scope="module")
def programs():
    return {agent: list_programs(config) for agent, (list_programs, config) in AGENTS.items()}


def lower(traced, platform: str) -> str:
    """The program's text. Where it asks the host, JAX refuses, at the length of the program."""
    try:
        return traced.lower(lowering_platforms=(platform,)).as_text()
    except ValueError as problem:
        pytest.fail(f"cannot be lowered for {platform}: {problem}", pytrace=False)


def complaints(program: str, platform: str, donated: int) -> list[str]:
    """What an accelerator should not be given."""
    calls = set(re.findall(r"custom_call @([^\s(]+)", program))
    found = [f"custom call {name}" for name in sorted(calls - ALLOWED[platform])]
    if re.search(r"\bf64\b|xf64\b", program):
        found.append("float64")
    aliased = program.count("tf.aliasing_output") + program.count("jax.buffer_donor")
    if aliased != donated:
        found.append(f"{aliased} arrays are overwritten in place instead of {donated}")
    return found


@pytest.mark.parametrize(("agent", "phase"), PHASES)
def test_every_phase_lowers_for_accelerators(programs, agent, phase):
    program = programs[agent][phase]
    traced = program.traced()
    for platform in ALLOWED:
        assert complaints(lower(traced, platform), platform, program.donated) == [], platform


def test_no_phase_is_forgotten(programs):
    assert [(agent, name) for agent, named in programs.items() for name in named] == PHASES


@pytest.mark.parametrize(("bad", "words"), [
    (jax.jit(lambda x: jnp.linalg.svd(x[None], compute_uv=False)), "custom call"),
    (jax.jit(lambda x: x.astype(jnp.float64).sum()), "float64"),
    (jax.jit(lambda x: x + 1), "0 arrays are overwritten in place instead of 1"),
])  # fmt: skip
def test_what_an_accelerator_should_not_be_given_is_noticed(bad, words):
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        lowered = lower(bad.trace(jnp.ones(3, jnp.float32)), "cuda")
    assert any(words in complaint for complaint in complaints(lowered, "cuda", donated=int("overwritten" in words)))


def test_a_host_callback_is_noticed():
    asks = jax.jit(lambda x: jax.pure_callback(np.sin, x, x))
    with pytest.raises(pytest.fail.Exception, match="cannot be lowered for cuda"):
        lower(asks.trace(jnp.ones(3)), "cuda")
