"""Compiled programs are kept between runs: JAX compiles for minutes what it then runs in seconds."""

import os
from pathlib import Path


def keep_compiled() -> None:
    """Keep what takes a while to compile in a folder of the user's, unless JAX is configured otherwise."""
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir") is None:  # noqa: B009  not in its declared type
        caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        jax.config.update("jax_compilation_cache_dir", str(caches / "itc" / "jax"))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
