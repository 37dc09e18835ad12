"""Settings say what is wrong with a value, wherever it comes from."""

import dataclasses
import json
import math
from typing import Literal

import pytest

from itc.presets import PRESETS
from itc.settings import ADDED, RENAMED, Count, Fraction, Positive, Settings, from_json
from itc.train.configs import CONFIGS
from itc.train.patch_agent.config import PatchConfig
from itc.train.run_folder import flat


@dataclasses.dataclass(frozen=True)
class Inner(Settings):
    size: Count = 2
    rate: Positive = 0.5
    sizes: tuple[Count, ...] = (1, 2)
    pair: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True)
class Outer(Settings):
    inner: Inner = Inner()
    kind: Literal["a", "b"] = "a"
    share: Fraction = 0.5
    name: str = ""
    switch: bool = False


def test_what_was_written_is_read():
    outer = Outer(Inner(3, 2, (), (1, -2)), "b", 1, "x", True)
    assert from_json(Outer, json.loads(json.dumps(dataclasses.asdict(outer)))) == outer


@pytest.mark.parametrize("name", ["minatar/breakout/quick", "craftax-classic/itc-paper", "atari/pong/itc-paper"])
def test_presets_survive_a_file(name):
    config = PRESETS[name].config
    assert from_json(type(config), json.loads(json.dumps(dataclasses.asdict(config)))) == config


@pytest.mark.parametrize(("inside", "name", "value", "words"), [
    (True, "size", 0, r"inner.size must be at least 1, got 0"),
    (True, "size", 1.5, r"inner.size must be a whole number, got 1.5"),
    (True, "size", True, r"inner.size must be a whole number, got True"),
    (True, "size", "3", r"inner.size must be a whole number, got '3'"),
    (True, "size", 2**40, r"inner.size must be a number of at most 2,147,483,647"),
    (True, "rate", 0, r"inner.rate must be greater than 0, got 0"),
    (True, "rate", math.nan, r"inner.rate must be a finite number, got nan"),
    (True, "rate", math.inf, r"inner.rate must be a finite number, got inf"),
    (True, "sizes", [1, 0], r"inner.sizes must be a list, each at least 1, got \(1, 0\)"),
    (True, "sizes", 3, r"inner.sizes must be a list, got 3"),
    (True, "pair", [1], r"inner.pair must be a list of 2 or nothing, got \(1,\)"),
    (True, "colour", 1, r"there is no setting inner.colour"),
    (False, "kind", "c", r"^kind must be one of 'a', 'b', got 'c'"),
    (False, "share", 1.01, r"^share must be in \[0, 1\], got 1.01"),
    (False, "name", None, r"^name must be text, got None"),
    (False, "switch", 1, r"^switch must be true or false, got 1"),
    (False, "inner", [], r"^inner must be an object, got \[\]"),
])  # fmt: skip
def test_a_wrong_value_is_named(inside, name, value, words):
    values = dataclasses.asdict(Outer())
    (values["inner"] if inside else values)[name] = value
    with pytest.raises(ValueError, match=words):
        from_json(Outer, values)


def test_renamed_settings_are_gone_and_their_new_names_exist():
    settings = [flat(dataclasses.asdict(config())) for config in CONFIGS.values()]
    for old, now in RENAMED.items():
        having = [names for names in settings if now in names]
        assert having, f"{now} is the new name of {old}, but there is no such setting"
        assert not any(old in names for names in having), f"{old} and {now} are both there"


def test_an_old_name_is_refused_only_where_it_was():
    config = dataclasses.asdict(PRESETS["craftax-classic/itc-paper"].config)
    assert config["ppo"]["accumulate"] == 1  # not the earlier top-level setting of that name
    with pytest.raises(ValueError, match=r"no setting accumulate; it is called ppo\.accumulate now"):
        from_json(PatchConfig, config | {"accumulate": 6})
    with pytest.raises(ValueError, match=r"no setting ppo\.newest$"):
        from_json(PatchConfig, config | {"ppo": config["ppo"] | {"newest": 1}})


def test_a_missing_value_is_named():
    values = dataclasses.asdict(Outer())
    del values["inner"]["rate"]
    with pytest.raises(ValueError, match=r"the setting inner.rate is missing"):
        from_json(Outer, values)


@pytest.mark.parametrize("agent", CONFIGS)
def test_what_was_saved_before_a_setting_existed_has_its_default(agent):
    config = CONFIGS[agent]()
    values = dataclasses.asdict(config)
    removed = {name for name in ADDED if remove(values, name)}
    assert "precision" in removed
    assert from_json(CONFIGS[agent], values) == config


def test_every_setting_that_came_later_is_one_of_some_agent():
    assert all(any(remove(dataclasses.asdict(config()), name) for config in CONFIGS.values()) for name in ADDED)


def remove(values, name):
    """Remove a setting by its full name; whether there was one."""
    *groups, last = name.split(".")
    for group in groups:
        values = values.get(group, {})
    return values.pop(last, remove) is not remove


def test_programs_are_answered_as_files_are():
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        Inner(size=0)
