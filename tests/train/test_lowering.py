"""Every phase of both agents, lowered for accelerators that are not here: what a device would be given to compile."""

import dataclasses
import re

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
# The Triton kernel of the matching, by the names that JAX has given it, and threefry's, which draws random numbers.
ALLOWED = {
    "cuda": {"__gpu$xla.gpu.triton", "triton_kernel_call_ffi", "triton_kernel_call", "cu_threefry2x32_ffi"},
    "tpu": set(),
}


@pytest.fixture(scope="module")
def programs():
    return {agent: list_programs(config) for agent, (list_programs, config) in AGENTS.items()}


def complaints(program: str, platform: str, donated: int) -> list[str]:
    """What an accelerator should not be given."""
    calls = set(re.findall(r"custom_call @([^\s(]+)", program))
    found = [f"custom call {name}" for name in sorted(calls - ALLOWED[platform])]
    if "callback" in program:
        found.append("a host callback")
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
        lowered = traced.lower(lowering_platforms=(platform,)).as_text()
        assert complaints(lowered, platform, program.donated) == [], platform


def test_no_phase_is_forgotten(programs):
    assert [(agent, name) for agent, named in programs.items() for name in named] == PHASES
