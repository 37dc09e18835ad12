"""Third-party packages: a missing one is an error that names the extra; their code runs under JAX's default rules."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec


class MissingExtra(ImportError):
    """A package that an optional part of itc needs is not installed."""


def require(*packages: str, extra: str, purpose: str) -> None:
    """Raise `MissingExtra` unless all packages can be imported."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingExtra(f"{purpose} needs {', '.join(missing)}: pip install 'itc[{extra}]'")


@contextmanager
def foreign_rules() -> Generator[None, None, None]:
    """Trace third-party code under JAX's default promotion rules, however strict the caller's are."""
    import jax

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
