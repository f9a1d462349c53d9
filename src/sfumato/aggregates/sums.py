"""Sums and averages.

SUM     (sum)           S * scale
        (count, sum)    S * scale + centre * N * weight
        (distinct sum)  S * scale
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

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.centred_ratio import CentredRatio, limits, noisy_sums, over, within
from sfumato.aggregates.linear import LinearRecord
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.aggregates.ratios import Estimate, fieller
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.core.intervals import Interval
from sfumato.core.noise_law import NoiseLaw

__all__ = ["Average", "Sum", "SumDistinct"]

_Noisy = npt.NDArray[np.int64] | npt.NDArray[np.object_]

_MEAN_DATE = "ask for MEDIAN(..), or for AVG(DATE_DIFF('day', DATE '2024-01-01', ..)), a number of days"


@dataclass(frozen=True, slots=True)
class Sum(LinearRecord):
    """SUM(x); around the middle of the bounds where the number of rows is counted anyway."""

    adds_up: ClassVar[bool] = True
    adds_truths: ClassVar[bool] = True

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
        chosen, centred = beside or asked, beside is not None
        factor, total = chosen.factor(centred=centred), chosen.moment(0, centred=centred)
        fields = {"scale": factor.grid.step, "centre": factor.centre}
        if beside is None or factor.centre == 0:
            return _summed(asked, (total,), whole, **fields)
        count, weight = beside.rows()
        return _summed(asked, (count, total), whole, weight=weight, **fields)

    def linear(self, answer: Answer) -> dict[str, Fraction]:
        """Return the sum, and what the count puts back of it."""
        *count, total = answer.measures
        return {**{name: Fraction(answer.centre) * answer.weight for name in count}, total: answer.scale}


@dataclass(frozen=True, slots=True)
class SumDistinct(Sum):
    """SUM(DISTINCT x): each value once, however many rows have it."""

    adds_up: ClassVar[bool] = False

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Take numbers; among one unit's own rows integers, whose sum depends on no order."""
        return kind is not None and (kind is Kind.INTEGER if inner else kind.numeric)

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for the sum."""
        measure, step, whole = asked.distinct_sum()
        return _summed(asked, (measure,), whole, scale=step)


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
