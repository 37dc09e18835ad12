"""Saving what was learned, and reading it back."""

import shutil
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp


def save(path: Path, state: Any) -> None:
    """Write a pytree of arrays; an older checkpoint of the same name is replaced only when the new one is complete."""
    path = Path(path).absolute()
    fresh = path.with_name(path.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(fresh, jax.tree.leaves(state))
    shutil.rmtree(path, ignore_errors=True)
    fresh.rename(path)


def restore(path: Path, like: Any) -> Any:
    """Read a pytree of the structure and shapes of `like`."""
    path = Path(path).absolute()
    if not path.exists():
        raise FileNotFoundError(f"no checkpoint at {path}")
    leaves, tree = jax.tree.flatten(like)
    with ocp.StandardCheckpointer() as checkpointer:
        return tree.unflatten(checkpointer.restore(path, leaves))
