"""Compiled programs are kept between runs: JAX compiles for minutes what it then runs in seconds."""

import os
from pathlib import Path

# Half as fast programs, compiled in a fraction of the time.
FAST_TO_COMPILE = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)


def compile_fast() -> None:
    """For commands that compute little: they would wait for the compiler most of the time.

    It must be called before JAX computes anything. Flags that the user has set stay.
    """
    os.environ.setdefault("XLA_FLAGS", " ".join(FAST_TO_COMPILE))


def keep_compiled() -> None:
    """Keep what takes a while to compile in a folder of the user's, unless JAX is configured otherwise."""
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir") is None:  # noqa: B009  not in its declared type
        caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        jax.config.update("jax_compilation_cache_dir", str(caches / "itc" / "jax"))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
