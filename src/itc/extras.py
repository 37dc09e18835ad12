"""Optional dependencies: a missing one is an error that names the extra to install."""

from importlib.util import find_spec


class MissingExtra(ImportError):
    """A package that an optional part of itc needs is not installed."""


def require(*packages: str, extra: str, purpose: str) -> None:
    """Raise `MissingExtra` unless all packages can be imported."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingExtra(f"{purpose} needs {', '.join(missing)}: pip install 'itc[{extra}]'")
