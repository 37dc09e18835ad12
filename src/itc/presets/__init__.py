"""Presets by name, ENV/VARIANT: short files that state only differences from the defaults, which are the paper's."""

from itc.presets import atari, craftax, craftax_classic, creatures, minatar
from itc.presets.preset import Preset

PRESETS: dict[str, Preset] = {
    **craftax_classic.PRESETS,
    **craftax.PRESETS,
    **minatar.PRESETS,
    **creatures.PRESETS,
    **atari.PRESETS,
}


def find(name: str) -> Preset:
    """The preset of this name."""
    if name in PRESETS:
        return PRESETS[name]
    near = [known for known in PRESETS if known.startswith(name.split("/")[0])]
    raise ValueError(f"unknown preset {name!r}; known: {', '.join(near or PRESETS)}")
