"""Strictness for all tests: shapes checked while they run, no silent promotion, warnings are errors."""

from pathlib import Path

import jax
from jaxtyping import install_import_hook

ROOT = Path(__file__).parent.parent

# These are handed whatever people pass, and answer bad input in words of their own.
DOORS = {"itc.decoding.api", "itc.decoding.checks", "itc.decoding.config", "itc.decoding.edges"}
MODULES = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in (ROOT / "src/itc").rglob("*.py")}
install_import_hook(sorted(MODULES - DOORS), "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(ROOT / ".cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
