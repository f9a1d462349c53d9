"""Answers that are weighted sums of noisy integers: counts and sums. Their error depends on no data."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.ratios import fieller
from sfumato.aggregates.record import AggregateRecord
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss

__all__ = ["LinearRecord", "half_width", "scaled"]


@dataclass(frozen=True, slots=True)
class LinearRecord(AggregateRecord):
    """An aggregate that is a sum of its measures, each times a public weight."""

    @abstractmethod
    def linear(self, answer: Answer) -> Mapping[str, Fraction]:
        """Return what one integer of each measure is worth, in the order of the measures."""

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return the sum, exactly."""
        weights = list(self.linear(answer).values())
        sums = [one.sums.tolist() for one in noisy if one.sums is not None]
        laws = [one.noise.law for one in noisy]
        if len(sums) == 1:
            width = 0 if level is None else laws[0].half_width(level)
            return scaled(answer, sums[0], weights[0], width, non_negative=non_negative)
        wide = Fraction(0 if level is None else half_width(weights, laws, miss(level)))
        exact = [
            sum((weight * one for weight, one in zip(weights, each, strict=True)), Fraction(0))
            for each in zip(*sums, strict=True)
        ]
        return scaled(answer, exact, Fraction(1), wide, non_negative=non_negative)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the half-width of the noise."""
        weights, laws = list(self.linear(answer).values()), [noise.law for noise in noises]
        if len(laws) == 1:
            return Forecast(name=answer.name, error=laws[0].half_width(level) * float(weights[0]))
        return Forecast(name=answer.name, error=half_width(weights, laws, miss(level)))


def half_width(weights: Sequence[Fraction], laws: Sequence[NoiseLaw], chance: float) -> float:
    """Return what a weighted sum of several noises stays within."""
    zero, one, far = np.zeros(1), np.ones(1), np.full(1, np.inf)
    parts = [(abs(float(weight)) * one, zero) for weight in weights]
    _, high = fieller(zero, one, laws=laws, weights=parts, low=-far, high=far, chance=chance)
    return float(high[0])


def scaled(
    answer: Answer,
    noisy: Sequence[int | Fraction],
    unit: Fraction,
    width: int | Fraction,
    *,
    non_negative: bool,
) -> NoisyColumn:
    """Return exact numbers times a unit; ends of whole numbers are whole, and rounded outward."""
    n, d = unit.numerator, unit.denominator

    def real(value: int | Fraction) -> float:
        try:
            return float(value * n / d)  # one rounding, to the nearest float
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    if answer.integer:
        values: list[Any] = [(2 * value * n + d) // (2 * d) for value in noisy]
        low: list[Any] = [(value - width) * n // d for value in noisy]
        high: list[Any] = [-(-(value + width) * n // d) for value in noisy]
    else:
        values = [real(value) for value in noisy]
        low, high = [real(value - width) for value in noisy], [real(value + width) for value in noisy]
    if non_negative:
        values, low, high = (_clipped(each, answer) for each in (values, low, high))
    return NoisyColumn(values=values, low=low, high=high)


def _clipped(values: list[Any], answer: Answer) -> list[Any]:
    lower = max(0.0, answer.lower or 0.0) if answer.function.record.counts else answer.lower
    if lower is not None:
        least = math.ceil(lower) if answer.integer else lower
        values = [max(value, least) for value in values]
    if answer.upper is not None:
        most = math.floor(answer.upper) if answer.integer else answer.upper
        values = [min(value, most) for value in values]
    return values
