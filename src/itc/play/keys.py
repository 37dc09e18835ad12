"""Which keys play which actions, as players of each game know them. Key names are those of browsers."""

from itc.types import EnvSpec

ARROWS = {"ArrowUp": "up", "ArrowDown": "down", "ArrowLeft": "left", "ArrowRight": "right"}
WASD = {"w": "up", "s": "down", "a": "left", "d": "right"}
# Craftax's own keys, as far as the two games have the actions.
CRAFTAX = {
    **WASD,
    " ": "do",
    "q": "noop",
    "t": "place_table",
    "1": "make_wood_pickaxe",
    "2": "make_stone_pickaxe",
    "3": "make_iron_pickaxe",
    "4": "make_wood_sword",
    "5": "make_stone_sword",
    "6": "make_iron_sword",
    "z": "sleep",
    "f": "place_furnace",
    "p": "place_plant",
    "r": "place_stone",  # elsewhere r starts again; here Enter does
    "7": "make_diamond_pickaxe",
    "8": "make_diamond_sword",
    "9": "make_iron_armour",
    "0": "make_diamond_armour",
    "<": "ascend",
    ">": "descend",
    "y": "shoot_arrow",
    "u": "make_arrow",
    "j": "place_torch",
    "n": "rest",
}


def keys_of(spec: EnvSpec) -> dict[str, int]:
    """Keys of the keyboard, with the index of the action that each plays."""
    wanted = {**ARROWS, **CRAFTAX} if spec.name.startswith("craftax") else {**ARROWS, **WASD, " ": "fire"}
    # Atari's combinations, such as "upfire", have no key of their own: two keys are held together.
    return {key: spec.actions.index(name) for key, name in wanted.items() if name in spec.actions}
