"""Compiled programs are kept between runs: JAX compiles for minutes what it then runs in seconds."""

import os
from pathlib import Path

SWITCH, FOLDER = "JAX_ENABLE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_DIR"  # JAX's own, read when it is imported
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


def keep_compiled() -> str:
    """Keep what takes a while to compile in a folder of the user's, unless JAX is configured otherwise.

    Returns a sentence about it.
    """
    import jax

    settings = jax.config.values
    if not settings["jax_enable_compilation_cache"]:
        return f"compiled programs are not kept: {SWITCH} is off"
    folder = settings["jax_compilation_cache_dir"]
    if folder is None:
        caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        folder = str(caches / "itc" / "jax")
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            why = f"{folder} cannot be made ({problem.strerror})"
            return f"compiled programs are not kept: {why}; {FOLDER} names another folder"
        jax.config.update("jax_compilation_cache_dir", folder)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    return f"compiled programs are kept in {folder}; {SWITCH}=false turns that off"
