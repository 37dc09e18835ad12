"""Presets by name, ENV/VARIANT. They state only differences from the defaults, which are the paper's."""

from difflib import get_close_matches

from itc.presets import atari, craftax, craftax_classic, creatures, minatar
from itc.presets.preset import Preset

PRESETS: dict[str, Preset] = {
    **craftax_classic.PRESETS,
    **craftax.PRESETS,
    **minatar.PRESETS,
    **creatures.PRESETS,
    **atari.PRESETS,
}

MANY = 40  # more names than this are not listed in an error


def find(name: str) -> Preset:
    """The preset of this name."""
    if name in PRESETS:
        return PRESETS[name]
    near = list(PRESETS)
    for parts in (1, 2):
        near = [known for known in near if known.split("/")[:parts] == name.split("/")[:parts]] or near
    if len(near) > MANY:
        near = [*get_close_matches(name, near, n=6, cutoff=0.0), "… (`itc presets PREFIX` lists more)"]
    raise ValueError(f"unknown preset {name!r}; known: {', '.join(near)}")
