"""The law of integer noise: one class knows all that is ever asked about one kind of noise.

A law is public: a parameter, never data. A new kind of noise is one subclass and one line in `_HOMES`:
nothing outside the subclasses asks which kind of noise it has.
"""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.events.base import Event
from sfumato.core.mechanism import confidence
from sfumato.core.search import SLACK, round_up
from sfumato.errors import InvalidArgument

__all__ = ["NoiseLaw", "noise_law", "noise_laws", "shortened"]

_HOMES = {"gaussian": "gaussian.GaussianNoise", "laplace": "laplace.LaplaceNoise"}
_BITS = 32  # parameters that are searched for are kept this short


@dataclass(frozen=True, slots=True)
class NoiseLaw(ABC):
    """Integer noise that is symmetric around zero, and rarer the further from it.

    `parameter` is proportional to 1 / cost: the cost of a vector of shifts is about norm / parameter, where
    the norm is the sum of squared shifts if the law is `euclidean`, and the sum of shifts otherwise.
    """

    parameter: Fraction

    name: ClassVar[str]  # in stored releases, and in a question's `noise`
    pure: ClassVar[bool]  # whether it has a pure epsilon, which is then exactly norm / parameter
    euclidean: ClassVar[bool]
    fourth: ClassVar[float]  # Var(X^2) / Var(X)^2: how much the square of the noise varies

    def __post_init__(self) -> None:
        if self.parameter <= 0:
            raise InvalidArgument("the parameter of noise must be above zero", place="parameter")

    # -- the law ------------------------------------------------------------------------

    @property
    @abstractmethod
    def variance(self) -> Fraction:
        """An upper bound of the variance: that of the continuous law."""

    @property
    @abstractmethod
    def exact_variance(self) -> float:
        """The variance of the discrete law, to a relative 1e-12."""

    @abstractmethod
    def mass(self, distance: int) -> float:
        """Return P(noise = distance), accurate to a relative 1e-12."""

    @abstractmethod
    def loss(self, to_x: int, to_y: int) -> Fraction:
        """Return ln(P(noise = to_x) / P(noise = to_y)), exactly."""

    @abstractmethod
    def tail(self, gap: int) -> float:
        """Return P(noise >= gap) for a gap of at least 1. Rounds: up."""

    def tail_within(self, most: int, gap: int) -> float:
        """Return P(noise >= gap | |noise| <= most), for 1 <= gap <= most + 1. Rounds: up.

        Assumes: half of all draws are within `most`, at least.
        """
        if gap > most:
            return 0.0
        beyond = self.tail(most + 1)  # rounded up, as is the tail at the gap, by more than the formulas err
        between = self.tail(gap) - beyond * (1 - 4 * SLACK)
        return min(1.0, round_up(between / (1 - 2 * beyond)))

    @abstractmethod
    def least_half_width(self, miss: Fraction) -> int:
        """Return the smallest w with P(|noise| > w) <= miss."""

    def summed(self, times: int) -> Self | None:
        """Return the law of the sum of independent noises, if it is of this kind."""
        return self if times == 1 else None

    @abstractmethod
    def sum_half_width(self, times: int, miss: Fraction) -> int:
        """Return a w with P(|sum of `times` independent noises| > w) <= miss; rounded up, and by little."""

    @abstractmethod
    def draw(self, size: int | None = None) -> Any:
        """Return one exact draw, or an array of independent ones."""

    def draw_within(self, most: int, size: int) -> Any:
        """Return an array of independent exact draws, each under the condition |noise| <= most."""
        drawn = self.draw(size)
        while (far := np.flatnonzero(np.abs(drawn) > most)).size:
            drawn[far] = self.draw(far.size)
        return drawn

    @staticmethod
    @abstractmethod
    def standard_tail(z: FloatArray) -> FloatArray:
        """Return P(|X| >= z deviations) of the continuous law."""

    @staticmethod
    @abstractmethod
    def standard_quantile(chance: float) -> float:
        """Return the z whose `standard_tail` is `chance`."""

    @classmethod
    def sum_tail(
        cls, laws: Sequence[NoiseLaw], sizes: Sequence[FloatArray], gap: FloatArray
    ) -> FloatArray | None:
        """Return P(|sum of sizes[j] * X_j| >= gap) of continuous laws of this kind, None if none is known."""
        return None

    @property
    def deviation(self) -> float:
        """An upper bound of the standard deviation."""
        return math.sqrt(self.variance)

    def half_width(self, level: Any) -> int:
        """Return the smallest w with P(|noise| <= w) >= level, exactly that of the discrete law."""
        return _half_width(self, confidence(level))

    # -- what it costs ------------------------------------------------------------------

    @abstractmethod
    def event(self, shift: int) -> Event:
        """Return what noise on one number costs which one person moves by `shift`."""

    @abstractmethod
    def joint_event(self, *, l1: int, l2_squared: int) -> Event:
        """Return what noise on many numbers costs of whose shifts only the two norms are known."""

    @abstractmethod
    def choice(self, shift: int, part: Fraction) -> Fraction:
        """Return the range of losses of a choice that costs about `part` of this noise on a shift."""

    @abstractmethod
    def widened(self, groups: int) -> Self:
        """Return noise for the sum of those of `groups` numbers that are not shown by themselves.

        Of a person's shifts by one in each of the numbers, j are shown and groups - j are in the sum:
        for every j the cost is at most that of all of them shown, or of one shift by `groups` where the
        law is not euclidean (see `analysis/remainder_group`). Rounds: up.
        """

    # -- how much of it -----------------------------------------------------------------

    @classmethod
    def power(cls) -> int:
        """Return the power of the parameter that the variance is proportional to."""
        return 1 if cls.euclidean else 2

    @classmethod
    def norm(cls, l1: int | Fraction, l2_squared: int | Fraction) -> int | Fraction:
        """Return the norm that the cost depends on."""
        return l2_squared if cls.euclidean else l1

    @classmethod
    def divided(cls, whole: int, number: int) -> int:
        """Return the largest shift of which `number` ones have a norm of one shift by `whole` at most."""
        return math.isqrt(whole * whole // number) if cls.euclidean else whole // number

    @classmethod
    def first_level(
        cls, parts: Sequence[tuple[int | Fraction, float, int]], price: Callable[[Event], float]
    ) -> float:
        """Return where to begin the search for the level at which all noises together have a price of 1.

        At a level each has the parameter level * ratio * sensitivity^(2 / power); `parts` holds the norm,
        ratio and sensitivity of each.
        """
        return 1.0

    @classmethod
    def relative(cls, amount: Fraction, sensitivity: int) -> Self:
        """Return noise whose parameter is about `amount` for a sensitivity of one. Rounds: up."""
        return cls(shortened(amount * sensitivity ** (2 // cls.power())))

    def scaled(self, factor: int | Fraction) -> Self:
        """Return noise of `factor` times the deviation: it costs the same on shifts as many times as far."""
        return type(self)(self.parameter * factor ** (2 // self.power()))

    def share(self, part: Fraction) -> Self:
        """Return the noise that costs this part of the cost: exactly if it is pure, else about."""
        return type(self)(self.parameter / part)


@lru_cache(maxsize=1024)
def _half_width(law: NoiseLaw, level: Fraction) -> int:
    return law.least_half_width(1 - level)


def noise_laws(name: str | None = None) -> tuple[type[NoiseLaw], ...]:
    """Return the kind of noise of this name, or all kinds."""
    if name is not None and name not in _HOMES:
        raise InvalidArgument(
            f"noise must be {' or '.join(sorted(_HOMES, reverse=True))}, got {name!r}",
            place="noise",
            hints=("leave it out, and the better one is used",),
        )
    return tuple(_law(home) for known, home in _HOMES.items() if name in (None, known))


def noise_law(name: str, parameter: Fraction) -> NoiseLaw:
    """Return the law that was stored under a name.

    >>> noise_law("laplace", Fraction(2)).half_width(0.95)
    6
    """
    [law] = noise_laws(name)
    return law(parameter)


def _law(home: str) -> type[NoiseLaw]:
    module, kind = home.split(".")
    found: type[NoiseLaw] = getattr(importlib.import_module(f"sfumato.core.{module}"), kind)
    return found


def shortened(value: Fraction) -> Fraction:
    """Round up to a fraction of few bits, a power of two below."""
    shift = _BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    unit = Fraction(2) ** -shift
    return math.ceil(value / unit) * unit
