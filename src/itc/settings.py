"""Settings: frozen dataclasses that check what they are given, whether by a program, a command line or a file."""

import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

# Earlier names of settings with the names they have now, both in full, for whoever still has a run or a script that
# uses them. One agent's earlier name may be another's present one.
RENAMED = {
    "collect.lanes": "collect.num_envs",
    "imagine.lanes": "imagine.num_envs",
    "world_model.blocks": "world_model.context_frames",
    "policy.memory": "policy.recurrent_size",
    "accumulate": "ppo.accumulate",
    "world_model_learning.surprising": "world_model_learning.prioritised",
    "learn_policy": "train_policy",
    "tokenizer.newest": "tokenizer.use_all_new_frames",
    "tokenizer.least_bucket": "tokenizer.min_logits",
    "world_model_learning.newest": "world_model_learning.recent_fraction",
    "world_model_learning.anneal_to": "world_model_learning.final_lr_fraction",
    "ppo.target_decay": "ppo.return_decay",
    "imagine.context": "imagine.initial_frames",
    "imagine.newest": "imagine.recent_fraction",
    "imagine.moves_normaliser": "imagine.update_return_normaliser",
    "epochs": "total_iterations",
    "collect.epochs": "collect.iterations",
    "tokenizer.after": "tokenizer.start_iteration",
    "tokenizer.until": "tokenizer.stop_iteration",
    "tokenizer.frames": "tokenizer.batch_size",
    "tokenizer.revive_after": "tokenizer.revive_after_updates",
    "world_model_learning.after": "world_model_learning.start_iteration",
    "world_model_learning.sequences": "world_model_learning.batch_size",
    "imagine.after": "imagine.start_iteration",
    "imagine.curiosity": "imagine.intrinsic_reward_weight",
    "actor_critic.lambda_": "actor_critic.return_lambda",
    "actor_critic.return_tail": "actor_critic.return_quantile",
    "compat.late_ends": "compat.done_one_step_late",
    "compat.curious_to_the_end": "compat.intrinsic_reward_after_collection",
    "compat.first_step_sampled": "compat.first_frame_without_copying",
}
# Settings that came later, in full. What was saved without one has the default, which is how it was before.
ADDED = {"precision", "policy.encoder.patch", "tokenizer.rare_weight", "tokenizer.continuous_updates"}
MOST = 2**31 - 1  # counts are 32-bit numbers in compiled programs


@dataclass(frozen=True)
class Range:
    """Which numbers are allowed; stands in a field's type."""

    low: int | float
    high: int | float = math.inf
    without_low: bool = False
    without_high: bool = False

    def __contains__(self, value: int | float) -> bool:
        above = value > self.low if self.without_low else value >= self.low
        below = value < self.high if self.without_high else value <= self.high
        return above and below

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{'greater than' if self.without_low else 'at least'} {self.low}"
        return f"in {'(' if self.without_low else '['}{self.low}, {self.high}{')' if self.without_high else ']'}"


Count = Annotated[int, Range(1)]
CountOrZero = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, without_low=True)]
NotNegative = Annotated[float, Range(0)]
Fraction = Annotated[float, Range(0, 1)]
FractionBelowOne = Annotated[float, Range(0, 1, without_high=True)]


@dataclass(frozen=True)
class Settings:
    """A dataclass whose values have the types and ranges that its fields state. Numbers are finite."""

    def __post_init__(self) -> None:
        _check(type(self), vars(self))


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The type of each field, with its range."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def from_json(kind: type, values: Any, where: str = "") -> Any:
    """Settings from what `dataclasses.asdict` and JSON made of them; all must be there but those of `ADDED`, and
    nothing else.

    Raises `ValueError` that names the setting, as in `world_model.heads must be at least 1, got 0`.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{where.rstrip('.') or 'the settings'} must be an object, got {values!r:.80}")
    hints = hints_of(kind)
    for name in values:
        if name not in hints:
            old = where + name
            renamed = f"; it is called {RENAMED[old]} now" if old in RENAMED else ""
            raise ValueError(f"there is no setting {old}{renamed}")
    missing = [name for name in hints if name not in values]
    for name in missing:
        if where + name not in ADDED:
            raise ValueError(f"the setting {where}{name} is missing")
    defaults = {name: getattr(kind, name) for name in missing}  # a dataclass keeps them as attributes
    given = {
        name: defaults[name] if name in missing else _from_json(hint, values[name], f"{where}{name}.")
        for name, hint in hints.items()
    }
    try:
        _check(kind, given)
        return kind(**given)
    except ValueError as problem:
        raise ValueError(f"{where}{problem}") from problem


def _from_json(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        return from_json(hint, value, where)
    if isinstance(value, list):
        return tuple(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and _is_float(hint) and is_finite(value) else value


def _is_float(hint: Any) -> bool:
    return hint is float or any(_is_float(part) for part in get_args(hint))


def _check(kind: type, values: Mapping[str, Any]) -> None:
    for name, hint in hints_of(kind).items():
        expected = _expected(hint, values[name])
        if expected is not None:
            raise ValueError(f"{name} must be {expected}, got {values[name]!r:.80}")


def _expected(hint: Any, value: Any) -> str | None:
    """What a value of this type is, if this one is not."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        ranges = (str(part) for part in arguments[1:] if isinstance(part, Range) and value not in part)
        return _expected(arguments[0], value) or next(ranges, None)
    if origin in (Union, types.UnionType):
        expected = [_expected(option, value) for option in arguments]
        return None if None in expected else " or ".join(map(str, expected))
    if origin is Literal:
        return None if value in arguments else f"one of {', '.join(map(repr, arguments))}"
    if origin is tuple:
        return _expected_tuple(arguments, value)
    return _expected_single(hint, value)


def _expected_tuple(items: tuple[Any, ...], value: Any) -> str | None:
    if not isinstance(value, tuple):
        return "a list"
    if items[-1] is Ellipsis:
        items = items[:1] * len(value)
    if len(items) != len(value):
        return f"a list of {len(items)}"
    wrong = (_expected(item, part) for item, part in zip(items, value, strict=True))
    return next((f"a list, each {expected}" for expected in wrong if expected is not None), None)


def _expected_single(hint: Any, value: Any) -> str | None:
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, Integral):
            return "a whole number"
        return None if abs(int(value)) <= MOST else f"a number of at most {MOST:,}"
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, Real) or not is_finite(value):
            return "a finite number"
        return None
    names = {bool: "true or false", str: "text", type(None): "nothing"}
    return None if not isinstance(hint, type) or isinstance(value, hint) else names.get(hint, hint.__name__)


def is_finite(value: Any) -> bool:
    """Whether something is a number, and neither infinite nor beyond what a float can hold."""
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False
