"""All environments, by name."""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

from itc.envs.atari import GAMES as ATARI_GAMES
from itc.envs.base import Environment

# An environment's packages are imported when it is made, not when it is listed.


def _craftax_classic() -> Environment:
    from itc.envs.craftax import CraftaxClassic
    from itc.envs.wrappers import Lanes

    return Lanes(CraftaxClassic())


def _craftax() -> Environment:
    from itc.envs.craftax import Craftax
    from itc.envs.wrappers import Lanes

    return Lanes(Craftax())


def _minatar(title: str) -> Environment:
    from itc.envs.minatar import MinAtar
    from itc.envs.wrappers import Lanes

    return Lanes(MinAtar(title))


def _atari(title: str) -> Environment:
    from itc.envs.atari import Atari

    return Atari(title)


def _creatures() -> Environment:
    from itc.envs.creatures import Creatures
    from itc.envs.wrappers import Lanes

    return Lanes(Creatures())


ENVIRONMENTS: dict[str, Callable[[], Environment]] = {
    "craftax-classic": _craftax_classic,
    "craftax": _craftax,
    "minatar/asterix": partial(_minatar, "asterix"),
    "minatar/breakout": partial(_minatar, "breakout"),
    "minatar/freeway": partial(_minatar, "freeway"),
    "minatar/space_invaders": partial(_minatar, "space_invaders"),
    "creatures": _creatures,
    **{f"atari/{title}": partial(_atari, title) for title in ATARI_GAMES},
}


@cache  # environments hold no state between calls, and sharing one shares what was compiled for it
def make(name: str) -> Environment:
    """The environment of this name, or the one that `module:function` returns."""
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name]()
    if ":" in name:
        module, function = name.split(":", maxsplit=1)
        return getattr(import_module(module), function)()
    known = ", ".join(ENVIRONMENTS)
    raise ValueError(f"unknown environment {name!r}; known: {known}, or module:function for one of your own")
