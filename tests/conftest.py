"""Strictness for all tests: shapes checked while they run, no silent promotion, warnings are errors."""

# ruff: noqa: E402  JAX reads its environment when it is imported

import dataclasses
import gc
import os
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Tests compile a great deal and compute very little: a program half as fast that compiles six times as fast wins.
# Set in the environment and before JAX is imported, so that it holds for programs which tests start, too. Where
# XLA_FLAGS are set already they stay: `XLA_FLAGS= pytest` tests what users run.
FAST_TO_COMPILE = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("XLA_FLAGS", " ".join(FAST_TO_COMPILE))
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(ROOT / ".cache" / "jax")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # keeping a program costs less than compiling any

import jax
import pytest
from jaxtyping import install_import_hook

pytest_plugins = ["times"]

# These take whatever people pass, and have error messages of their own for bad input.
DOORS = {"itc.decoding.api", "itc.decoding.checks", "itc.decoding.config", "itc.decoding.edges"}
# Compiled by Triton from its source text, which must not be changed.
COMPILED = {"itc.decoding.torch_triton"}
MODULES = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in (ROOT / "src/itc").rglob("*.py")}
install_import_hook(sorted(MODULES - DOORS - COMPILED), "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Tracing makes hundreds of thousands of small objects; looking through them every 700 costs an eighth of all time.
gc.set_threshold(100_000, 20, 20)

MAPS = Path("/proc/self/maps")
MANY = 30_000  # pieces of memory; Linux gives a process 65,530 by default, and compiled programs take several each


@pytest.fixture(autouse=True, scope="module")
def clear_compiled_programs():
    """After a module, before the compiler runs out of pieces of memory and crashes."""
    yield
    if MAPS.exists() and MAPS.read_text().count("\n") > MANY:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory):
    """The folder of a run of one iteration; not to be written to."""
    from itc.envs.registry import make
    from itc.train import loop
    from itc.train.run_folder import RunFolder
    from train.tiny import TINY

    folder = tmp_path_factory.mktemp("runs") / "trained"
    config, run, env = dataclasses.replace(TINY, interactions=48), RunFolder(folder), make(TINY.env)
    run.write_config(config, "creatures/tiny", 0)
    state, notes = loop.begin_or_resume(run, env, config, seed=0)
    loop.train(run, env, config, state, notes, [])
    return folder


@pytest.fixture(scope="session")
def exported_world(trained_run, tmp_path_factory):
    """The same run as a world; not to be written to."""
    from itc.evaluate.export import export
    from itc.train.runs import load

    return export(load(trained_run), tmp_path_factory.mktemp("worlds") / "tiny", windows=6)
