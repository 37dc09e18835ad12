"""Where a run was made: the machine, the versions, and the commit of the source if it is a checkout."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import itc

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "orbax-checkpoint", "numpy", "craftax", "gymnax", "ale-py")
SECONDS = 5  # that git may take; without an answer the commit is not recorded


def versions() -> dict[str, str]:
    """Python, device, machine, commit and packages."""
    import jax

    device = jax.devices()[0]
    found = {
        "python": platform.python_version(),
        "device": f"{device.platform} {device.device_kind}".strip(),
        "machine": machine(),
        "itc": itc.__version__,
    }
    made_from = commit(Path(itc.__file__).parents[2])
    found |= {} if made_from is None else {"commit": made_from}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Processor, cores and memory; not its name, as reports are shown to others."""
    parts = [platform.machine(), _processor(), f"{os.cpu_count()} cores", _memory(), platform.system()]
    return ", ".join(part for part in parts if part)


def commit(root: Path) -> str | None:
    """The commit that is checked out at `root`, "… with changes" if its sources were changed since; None elsewhere."""
    if not (root / ".git").exists():  # an installed package may lie inside a checkout of something else
        return None
    head = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", "src")
    return None if not head else f"{head} with changes" if changed else head


def _git(root: Path, *words: str) -> str | None:
    try:
        answer = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return ""
    return f"{size / 2**30:.0f} GB"
