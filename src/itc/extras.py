"""Third-party packages: a missing one is an error that names the extra; their code runs under JAX's default rules."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec

# What pip installs. `itc` is only the module and the command: on the package index that is somebody else's project.
DISTRIBUTION = "itc-world-models"

# Of the extra `train`, what every run and every command may need.
TRAIN = ("jax", "equinox", "optax", "orbax.checkpoint", "matplotlib", "PIL", "rich", "tensorboardX", "tyro")
# What environments need as well, by the first part of their names: an extra, and packages of it.
ENVIRONMENTS = {
    "craftax-classic": ("train", "craftax"),
    "craftax": ("train", "craftax"),
    "minatar": ("train", "gymnax", "six"),
    "atari": ("atari", "ale_py", "PIL"),
}


class MissingExtra(ImportError):
    """A package that an optional part of itc needs is not installed."""


def require(*packages: str, extra: str, purpose: str) -> None:
    """Raise `MissingExtra` unless all packages can be imported."""
    missing = [package for package in packages if not _is_there(package)]
    if missing:
        raise MissingExtra(f"{purpose} needs {', '.join(missing)}: pip install '{DISTRIBUTION}[{extra}]'")


def require_for(environment: str) -> None:
    """Raise `MissingExtra` unless all packages of an environment of ours can be imported."""
    extra, *packages = ENVIRONMENTS.get(environment.split("/")[0], ("train",))
    require(*packages, extra=extra, purpose=f"the environment {environment}")


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package that it is inside of
        return False


@contextmanager
def foreign_rules() -> Generator[None, None, None]:
    """Trace third-party code under JAX's default promotion rules, however strict the caller's are."""
    import jax

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
