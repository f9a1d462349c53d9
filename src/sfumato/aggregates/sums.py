"""Sums and averages.

SUM     (sum)           S * scale
        (count, sum)    S * scale + centre * N * weight
AVG     (count, sum)    centre + (S * scale) / (N * weight)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.centred_ratio import CentredRatio, limits, noisy_sums, over, within
from sfumato.aggregates.columns import scaled
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.aggregates.ratios import Estimate, fieller
from sfumato.aggregates.record import AggregateRecord
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.core.intervals import Interval
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss

__all__ = ["Average", "Sum", "half_width"]

_Noisy = npt.NDArray[np.int64] | npt.NDArray[np.object_]

_MEAN_DATE = "ask for MEDIAN(..), or for AVG(DATE_DIFF('day', DATE '2024-01-01', ..)), a number of days"


@dataclass(frozen=True, slots=True)
class Sum(AggregateRecord):
    """SUM(x); around the middle of the bounds where the number of rows is counted anyway."""

    adds_up: ClassVar[bool] = True

    def kind(self, argument: Kind | None) -> Kind | None:
        """Return the kind of what is added up; decimals get all the digits there are."""
        if argument is None or not argument.exact:
            return Kind.REAL
        return Kind.decimal(MOST_DIGITS, argument.scale) if argument.digits else argument

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return either side of zero that values are on."""
        [one] = arguments
        return Interval(
            Fraction(0) if one.low >= 0 else -math.inf, Fraction(0) if one.high <= 0 else math.inf
        )

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for the sum; around the middle of the bounds, if the number of rows is counted anyway.

        The rest is then put back from the count: with bounds 0 and w the noise has half the variance, for
        twice w/2 squared is w^2 / 2.
        """
        if asked.bounds_per_group is not None:
            measure, step, whole = asked.clamped_sum()
            return _summed(asked, (measure,), whole, scale=step)
        whole, beside = asked.argument().whole, asked.beside_count()
        chosen = asked if beside is None else beside
        centred = beside is not None
        factor, measures = chosen.factor(centred=centred), (chosen.moment(0, centred=centred),)
        if beside is None or factor.centre == 0:
            return _summed(asked, measures, whole, scale=factor.grid.step, centre=factor.centre)
        count, weight = beside.rows()
        return _summed(
            asked, (count, *measures), whole, scale=factor.grid.step, centre=factor.centre, weight=weight
        )

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return the sum, exactly, from one or two noisy integers."""
        laws, sums = (
            [one.noise.law for one in noisy],
            [one.sums.tolist() for one in noisy if one.sums is not None],
        )
        if len(sums) == 1:
            width = 0 if level is None else laws[0].half_width(level)
            return scaled(answer, sums[0], answer.scale, width, non_negative=non_negative)
        wide = Fraction(0 if level is None else half_width(answer, laws, miss(level)))
        count, total = Fraction(answer.centre) * answer.weight, answer.scale
        exact = [n * count + s * total for n, s in zip(*sums, strict=True)]
        return scaled(answer, exact, Fraction(1), wide, non_negative=non_negative)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the half-width of the noise: it depends on no data."""
        laws = [noise.law for noise in noises]
        if len(laws) == 1:
            return Forecast(name=answer.name, error=laws[0].half_width(level) * float(answer.scale))
        return Forecast(name=answer.name, error=half_width(answer, laws, miss(level)))

    def linear(self, answer: Answer) -> dict[str, float] | None:
        """Return the sum, and what the count puts back of it."""
        *count, total = answer.measures
        return {**{name: answer.centre * float(answer.weight) for name in count}, total: float(answer.scale)}

    def unit(self, answer: Answer) -> Fraction:
        """Return the step of its values."""
        return answer.scale


@dataclass(frozen=True, slots=True)
class Average(CentredRatio):
    """AVG(x); its interval covers with the stated probability at any group size."""

    products: ClassVar[tuple[tuple[int, ...], ...]] = ((0,),)
    instead: ClassVar[dict[Kind, str]] = {Kind.DATE: _MEAN_DATE, Kind.TIMESTAMP: _MEAN_DATE}

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return where the values lie."""
        return arguments[0]

    def range(self, widths: Sequence[Fraction], low: Fraction, high: Fraction) -> tuple[float, float]:
        """Return the bounds of the values."""
        return float(low), float(high)

    def estimate(
        self, answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float
    ) -> Estimate:
        """Return centre + S / n."""
        n, s = noisy_sums(noisy, laws, (float(answer.weight), float(answer.scale)))
        zero, one = np.zeros_like(n.total), np.ones_like(n.total)
        low, high = limits(answer, n.total)
        ends = fieller(
            s.total,
            n.total,
            laws=laws,
            weights=[(zero, -n.unit * one), (s.unit * one, zero)],
            low=low - answer.centre,
            high=high - answer.centre,
            chance=chance,
        )
        values = answer.centre + over(s.total, n.total)
        return within(answer, values, ends[0] + answer.centre, ends[1] + answer.centre)


def _summed(asked: MeasureRequest, measures: tuple[str, ...], whole: bool, **fields: Any) -> Answer:
    kind = Kind.INTEGER if whole else Kind.REAL
    return Answer(
        name=asked.name, function=asked.function, measures=measures, kind=kind, integer=whole, **fields
    )


def half_width(answer: Answer, laws: Sequence[NoiseLaw], chance: float) -> float:
    """Return what the noise of a sum around a centre, S * scale + centre * N, stays within."""
    zero, one = np.zeros(1), np.ones(1)
    units = (abs(answer.centre) * float(answer.weight), float(answer.scale))
    weights = [(unit * one, zero) for unit in units]
    far = np.full(1, np.inf)
    _, high = fieller(zero, one, laws=laws, weights=weights, low=-far, high=far, chance=chance)
    return float(high[0])
