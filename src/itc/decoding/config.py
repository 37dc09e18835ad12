"""The decoder's settings, checked when they are made, and the presets by name."""

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

# "No cap on how far a token may move", for any grid one would decode.
UNCAPPED = 10**9


@dataclass(frozen=True)
class DecodeConfig:
    """How the next frame's tokens are chosen. The defaults are the paper's Craftax setting, solved exactly."""

    # What a copy and a new token are worth.
    distance_cost: float = 0.6  # c_d, per unit of squared grid distance
    wildcard_cost: float = 0.3  # c_w, what generating costs against copying
    max_distance: int = 4  # largest squared grid distance of a copy
    affinity: Literal["probability", "log"] = "probability"
    # What c_w is charged for: every generated token, or only one that a cell within reach holds; then novelty is free.
    charge_for: Literal["generated", "duplicates"] = "generated"

    # Which of an environment's two masks is meant (`EnvSpec.copyable_by`); `decode` itself copies where `copyable`
    # says. As published, the rim of a scrolling view is always generated. To a decoder that moves tokens it is a hole
    # then: it takes tokens out of the rim for nothing, so that things inside can vanish.
    rim: Literal["generated", "copied"] = "generated"

    # Random draws: one for each code in each cell; for each copy; for each code that could be copied into a cell, and
    # one for generating there; or none.
    noise: Literal["cell", "edge", "token", "none"] = "cell"
    generate: Literal["sample", "argmax"] = "sample"
    temperature: float = 1.0

    # How the correspondence is found.
    solver: Literal["exact", "auction", "sinkhorn", "none"] = "exact"
    sinkhorn_epsilon: float = 1e-5
    sinkhorn_relative: bool = True  # ε is a multiple of the dense cost matrix's standard deviation
    sinkhorn_iterations: int = 2000  # at most this many
    sinkhorn_tolerance: float = 1e-3  # stop when the row marginals are off by less than this; 0: never
    sinkhorn_rounding: Literal["one-to-one", "argmax"] = "one-to-one"
    # Credit c_w to copies instead of charging it to wildcards: the same optimum, but not the same unfinished Sinkhorn.
    sinkhorn_bonus: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _checked(field.name, field.type, getattr(self, field.name)))
        if self.noise in ("edge", "token") and self.affinity != "log":
            raise ValueError(f'noise="{self.noise}" needs affinity="log", got affinity={self.affinity!r}')
        if self.charge_for == "duplicates" and (self.noise != "cell" or self.solver == "sinkhorn"):
            raise ValueError(
                'charge_for="duplicates" needs noise="cell" and an exact solver, '
                f"got noise={self.noise!r} and solver={self.solver!r}"
            )
        if self.generate == "argmax" and self.noise != "none":
            raise ValueError(f'generate="argmax" needs noise="none", got noise={self.noise!r}: noise makes it a sample')

    @property
    def reach(self) -> int:
        """Largest squared distance at which a copy can still gain anything.

        A copy gains at most c_w − c_d·d, unless every edge has noise of its own. At reach 0 no token can move, and
        the exact answer is the closed form: keep the cell's token if its gain is positive.
        """
        gains_everywhere = self.distance_cost * self.max_distance < self.wildcard_cost
        if self.noise in ("edge", "token") or self.solver == "sinkhorn" or gains_everywhere:
            return self.max_distance
        if self.wildcard_cost == 0:
            return 0
        return max(0, math.ceil(self.wildcard_cost / self.distance_cost) - 1)

    @property
    def needs_noise(self) -> bool:
        """Whether decoding draws random numbers."""
        return self.generate == "sample"


# Gains are float32: next to a larger cost, differences between probabilities would be rounded away.
LARGEST_COST = 10_000
LARGEST_INTEGER = 2**31 - 1
# Smallest and largest value of each number. What must be greater than 0 stays where float32 can divide by it.
_LIMITS = {
    "distance_cost": (0, LARGEST_COST),
    "wildcard_cost": (0, LARGEST_COST),
    "max_distance": (0, LARGEST_INTEGER),
    "temperature": (1e-30, 1e30),
    "sinkhorn_epsilon": (1e-12, 1e6),
    "sinkhorn_iterations": (1, LARGEST_INTEGER),
    "sinkhorn_tolerance": (0, 1e30),
}


def _checked(name: str, kind: Any, value: Any) -> Any:
    """The value as a plain Python one, if it fits the field."""
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            choices = ", ".join(repr(choice) for choice in get_args(kind))
            raise ValueError(f"{name} must be one of {choices}, got {value!r}")
        return value
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, Real if kind is float else Integral):
        raise ValueError(f"{name} must be a{' number' if kind is float else 'n integer'}, got {value!r}")
    if value != value or abs(value) == math.inf:  # math.isfinite fails on integers beyond float64
        raise ValueError(f"{name} must be finite, got {value!r}")
    lowest, highest = _LIMITS[name]
    if value < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {value!r}")
    if value > highest:
        raise ValueError(f"{name} must be at most {highest}, got {value!r}")
    return kind(value)


PRESETS = MappingProxyType(
    {
        # No correspondence: every cell on its own.
        "sample": DecodeConfig(solver="none"),
        "argmax": DecodeConfig(solver="none", noise="none", generate="argmax"),
        # The published coefficients, solved exactly.
        "paper": DecodeConfig(),
        "paper-minatar": DecodeConfig(distance_cost=0.2, wildcard_cost=0.05),
        "paper-atari": DecodeConfig(distance_cost=0.05, wildcard_cost=0.01),
        # The same through entropic transport: as released, as the paper's table says, as released for Atari.
        "sinkhorn": DecodeConfig(solver="sinkhorn"),
        "sinkhorn-table": DecodeConfig(
            solver="sinkhorn", sinkhorn_relative=False, sinkhorn_iterations=10, sinkhorn_tolerance=0.0
        ),
        "released-atari": DecodeConfig(
            distance_cost=0.05,
            wildcard_cost=0.01,
            max_distance=UNCAPPED,
            solver="sinkhorn",
            sinkhorn_relative=False,
            sinkhorn_iterations=10,
            sinkhorn_tolerance=0.0,
            sinkhorn_rounding="argmax",
            sinkhorn_bonus=True,
        ),
        # Ours: a wildcard expensive enough that copies are preferred, a distance cheap enough that they may move.
        "conserving": DecodeConfig(distance_cost=0.02, wildcard_cost=4.0, affinity="log", rim="copied"),
        # For tokens that are pieces of pictures: what moves turns into other tokens, so new ones must stay cheap.
        "conserving-minatar": DecodeConfig(
            distance_cost=0.3, wildcard_cost=0.5, affinity="log", rim="copied", temperature=0.7
        ),
    }
)
