"""Ratios of centred sums: what averages, variances, covariances and correlations share.

n, S, Q, C are noisy sums in real units: of ones, of (x - centre), of its square, of a cross product.
Each statistic theta makes `numerator - theta * denominator` zero in exact sums. Intervals are Fieller's
(see `ratios`). A group whose size is not clear of its own noise gets the whole declared range.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.columns import column
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.aggregates.ratios import Estimate
from sfumato.aggregates.record import AggregateRecord
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss
from sfumato.errors import Unsupported

__all__ = ["CentredRatio", "NoisySum", "half_of", "limits", "noisy_sums", "over", "within"]

_Floats = npt.NDArray[np.float64]
_Noisy = npt.NDArray[np.int64] | npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class CentredRatio(AggregateRecord):
    """An aggregate that is divided by a count, and needs moments of centred values.

    Its measures are the count, then one moment for each of `products`: places of its arguments, which
    are multiplied.
    """

    products: ClassVar[tuple[tuple[int, ...], ...]]
    counts_rows: ClassVar[bool] = True

    @abstractmethod
    def estimate(
        self, answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float
    ) -> Estimate:
        """Return the statistic of each group, with an interval that fails to cover with at most `chance`."""

    @abstractmethod
    def range(self, widths: Sequence[Fraction], low: Fraction, high: Fraction) -> tuple[float, float]:
        """Return what an exact answer cannot be beyond; the first argument is from low to high.

        Infinite ends are none.
        """

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for the count, and for the moments of centred factors."""
        arguments = [asked.argument(place) for place in range(self.arity)]
        factors = [asked.factor(place) for place in range(self.arity)]
        count, weight = asked.rows()
        widths = [argument.high - argument.low for argument in arguments]
        ends = self.range(widths, arguments[0].low, arguments[0].high)
        lower, upper = (end if math.isfinite(end) else None for end in ends)
        second = factors[-1] if self.arity > 1 else None
        return Answer(
            name=asked.name,
            function=asked.function,
            measures=(count, *(asked.moment(*places) for places in self.products)),
            weight=weight,
            scale=factors[0].grid.step,
            centre=factors[0].centre,
            second_scale=Fraction(1) if second is None else second.grid.step,
            second_centre=0.0 if second is None else second.centre,
            half_widths=tuple(float(factor.grid.sensitivity * factor.grid.step) for factor in factors),
            lower=lower,
            upper=upper,
        )

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return the estimate of every group."""
        laws = [one.noise.law for one in noisy]
        chance = 0.0 if level is None else miss(level)
        sums = [one.sums for one in noisy if one.sums is not None]
        return column(answer, self.estimate(answer, sums, laws, chance))

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the interval that a release shows where values lie at the worst place in their bounds."""
        if size is None:
            return Forecast(name=answer.name, error=None, needs_size=True)
        error = self.worst(answer, [noise.law for noise in noises], size, level)
        if answer.lower is not None and answer.upper is not None:
            error = min(error, answer.upper - answer.lower)
        return Forecast(name=answer.name, error=error, needs_size=True)

    def worst(self, answer: Answer, laws: Sequence[NoiseLaw], size: float, level: float) -> float:
        """Return the half-width of the interval where all values are as far from the centre as can be.

        With m the mean's distance from the centre, at most the half-width h, the noise of an average is
        dS - m dN, of a variance dQ - 2 m dS + (m^2 - v) dN with v at most h^2 - m^2, of a covariance
        dC - m' dS - m dS' + (m m' - c) dN: largest at m = h, where v and c are zero. The noise of the sums
        themselves is taken to have made the group smaller, and the means larger, than they are.
        """
        weight, scales = float(answer.weight), (float(answer.scale), float(answer.second_scale))
        lost = weight * laws[0].half_width(level)
        if size <= 2 * lost:
            return math.inf
        n = size - lost
        far = []
        for place in range(len(answer.half_widths)):
            noise = scales[place] * laws[1 + place].half_width(level)
            far.append((half_of(answer, place) * size + noise) / n / scales[place])
        sums = [n / weight, *(n * math.prod(far[place] for place in places) for places in self.products)]
        free = replace(answer, lower=None, upper=None, centre=0.0, second_centre=0.0)
        found = self.estimate(free, [np.array([one]) for one in sums], laws, miss(level))
        return float(max(found.high[0] - found.values[0], found.values[0] - found.low[0]))


def half_of(answer: Answer, place: int) -> float:
    """Return how far a factor can be from its centre: its bounds, as the measures have them."""
    return max(answer.half_widths[place], 1e-300)  # values that are all one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisySum:
    """A noisy sum in real units: `unit` is the size of one of its integers, `spread` its deviation."""

    total: _Floats
    unit: float
    law: NoiseLaw

    @property
    def spread(self) -> float:
        """The deviation of its noise."""
        return self.unit * self.law.deviation


def noisy_sums(noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], units: Sequence[float]) -> list[NoisySum]:
    """Return noisy integers in real units."""
    if not len(noisy) == len(laws) == len(units):
        raise Unsupported("an aggregate that is answered from other measures than its function says")
    return [
        NoisySum(total=np.asarray(integers, dtype=np.float64) * unit, unit=unit, law=law)
        for integers, law, unit in zip(noisy, laws, units, strict=True)
    ]


def over(numerator: _Floats, denominator: _Floats, otherwise: float = np.nan) -> _Floats:
    """Divide where the denominator is above zero."""
    positive = denominator > 0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(positive, numerator / np.where(positive, denominator, 1.0), otherwise)


def limits(answer: Answer, like: _Floats) -> tuple[_Floats, _Floats]:
    """Return the declared range, for each group."""
    low = -np.inf if answer.lower is None else answer.lower
    high = np.inf if answer.upper is None else answer.upper
    return np.full_like(like, low), np.full_like(like, high)


def within(answer: Answer, values: _Floats, low: _Floats, high: _Floats) -> Estimate:
    """Move values into the declared range, and let intervals include them."""
    with np.errstate(invalid="ignore"):
        values = np.clip(values, *limits(answer, values))
        low, high = np.fmin(low, values), np.fmax(high, values)
    return Estimate(values=values, low=low, high=high)
