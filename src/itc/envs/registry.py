"""All environments, by name."""

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module

from itc.envs.atari import GAMES as ATARI_GAMES
from itc.envs.base import Environment
from itc.extras import require_for

# An environment's packages are imported when it is made, not when it is listed.


def _craftax_classic() -> Environment:
    from itc.envs.craftax import CraftaxClassic
    from itc.envs.wrappers import VectorEnv

    return VectorEnv(CraftaxClassic())


def _craftax() -> Environment:
    from itc.envs.craftax import Craftax
    from itc.envs.wrappers import VectorEnv

    return VectorEnv(Craftax())


def _minatar(title: str) -> Environment:
    from itc.envs.minatar import MinAtar
    from itc.envs.wrappers import VectorEnv

    return VectorEnv(MinAtar(title))


def _atari(title: str) -> Environment:
    from itc.envs.atari import Atari

    return Atari(title)


def _creatures() -> Environment:
    from itc.envs.creatures import Creatures
    from itc.envs.wrappers import VectorEnv

    return VectorEnv(Creatures())


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


_allowed: set[str] = set()  # environments of the user's own that this program may import


def allow(*names: str) -> None:
    """Let this program import environments of the user's own, each given as `module:function`.

    Call it with what a person typed, never with what a file says: importing executes code, and a run folder may come
    from anybody.
    """
    for name in names:
        _check_name(name)
    _allowed.update(names)


def require_packages(names: Iterable[str]) -> None:
    """Stop if what one of these environments needs is not installed; the user's own import what they need."""
    for name in dict.fromkeys(names):
        if name in ENVIRONMENTS:
            require_for(name)


def _check_name(name: str) -> None:
    if name not in ENVIRONMENTS and not re.fullmatch(r"\w+(\.\w+)*:\w+", name):
        known = ", ".join(ENVIRONMENTS)
        raise ValueError(f"unknown environment {name!r}; known: {known}, or module:function for one of your own")


def training_episodes(name: str) -> str:
    """What a return in training is of, in words, where that is not the game's: the benchmark's rules for Atari."""
    return "of one life, rewards as signs" if name.startswith("atari/") else ""


@cache  # environments hold no state between calls, and sharing one shares what was compiled for it
def make(name: str) -> Environment:
    """The environment of this name, or the one that `module:function` returns, if that is allowed."""
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name]()
    _check_name(name)
    if name not in _allowed:
        raise ValueError(
            f"{name!r:.100} is no environment of itc's. If it is your own, and you trust it, name it: --env {name} "
            "in a command, itc.load(run, env=…) or itc.envs.registry.allow(…) in a program"
        )
    module, function = name.split(":")
    try:
        made = getattr(import_module(module), function)()
    except (ImportError, AttributeError, TypeError) as problem:
        raise ValueError(f"environment {name!r} cannot be made: {problem}") from problem
    if not isinstance(made, Environment):
        raise ValueError(f"environment {name!r} must be an itc.envs.base.Environment, got a {type(made).__name__}")
    return made
