"""Answers that are weighted sums of noisy integers: counts and sums. Their error depends on no data."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Answer, Fitted, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.ratios import fieller
from sfumato.aggregates.record import AggregateRecord
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss, widest_quantile

__all__ = ["LinearRecord", "fitted_widths", "half_width", "scaled"]


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
        fitted = [one.fitted for one in noisy if one.fitted is not None]
        if fitted:
            parts = [weight / one.parts for weight, one in zip(weights, fitted, strict=True)]
            return _fitted_sum(answer, parts, noisy, fitted, level, non_negative=non_negative)
        sums = [one.sums.tolist() for one in noisy if one.sums is not None]
        noises = [one.noise for one in noisy]
        if len(sums) == 1:
            width = 0 if level is None else noises[0].half_width(level)
            return scaled(answer, sums[0], weights[0], width, non_negative=non_negative)
        wide = Fraction(0 if level is None else half_width(weights, noises, miss(level)))
        exact = [
            sum((weight * one for weight, one in zip(weights, each, strict=True)), Fraction(0))
            for each in zip(*sums, strict=True)
        ]
        return scaled(answer, exact, Fraction(1), wide, non_negative=non_negative)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the half-width of the noise."""
        weights = list(self.linear(answer).values())
        if len(noises) == 1:
            return Forecast(name=answer.name, error=noises[0].half_width(level) * float(weights[0]))
        return Forecast(name=answer.name, error=half_width(weights, noises, miss(level)))


def fitted_widths(
    weights: Sequence[Fraction], fitted: Sequence[Fitted], laws: Sequence[NoiseLaw], level: float | None
) -> list[int]:
    """Return, for each group, what a weighted sum of fitted integers stays within: noise and rounding.

    In units of the first weight. Estimates are sums of many noises: see `widest_quantile`.
    """
    if level is None:
        return [0] * len(fitted[0].deviations)
    if len(fitted) == 1 and fitted[0].noises:
        return [math.ceil(one.half_width(level)) + fitted[0].step for one in fitted[0].noises]
    sizes = [abs(float(weight / weights[0])) for weight in weights]
    squares = sum((size * one.deviations) ** 2 for size, one in zip(sizes, fitted, strict=True))
    steps = sum(size * one.step for size, one in zip(sizes, fitted, strict=True))
    wide = widest_quantile(miss(level), laws) * np.sqrt(squares) + steps
    return [int(width) for width in np.ceil(wide).tolist()]


def _fitted_sum(
    answer: Answer,
    weights: Sequence[Fraction],
    noisy: Sequence[NoisyMeasure],
    fitted: Sequence[Fitted],
    level: float | None,
    *,
    non_negative: bool,
) -> NoisyColumn:
    """Return the sum of fitted integers, exactly."""
    widths = fitted_widths(weights, fitted, [one.noise.law for one in noisy], level)
    shown = [one.sums.tolist() for one in noisy if one.sums is not None]
    signed = [one.signed for one in fitted if one.signed is not None]
    centres = [one.tolist() for one in signed] if len(signed) == len(shown) else shown
    first, sizes = weights[0], [weight / weights[0] for weight in weights]
    sums, middles = (
        [sum(size * one for size, one in zip(sizes, each, strict=True)) for each in zip(*some, strict=True)]
        for some in (shown, centres)
    )
    return scaled(answer, sums, first, widths, non_negative=non_negative, centres=middles)


def half_width(weights: Sequence[Fraction], noises: Sequence[AddedNoise], chance: float) -> float:
    """Return what a weighted sum of several noises stays within."""
    zero, one, far = np.zeros(1), np.ones(1), np.full(1, np.inf)
    pairs = [
        (weight, noise.law) for weight, noise in zip(weights, noises, strict=True) for _ in range(noise.times)
    ]
    laws, parts = [law for _, law in pairs], [(abs(float(weight)) * one, zero) for weight, _ in pairs]
    _, high = fieller(zero, one, laws=laws, weights=parts, low=-far, high=far, chance=chance)
    return float(high[0])


def scaled(
    answer: Answer,
    noisy: Sequence[int | Fraction],
    unit: Fraction,
    width: int | Fraction | Sequence[int],
    *,
    non_negative: bool,
    centres: Sequence[int | Fraction] | None = None,
) -> NoisyColumn:
    """Return exact numbers times a unit; ends of whole numbers are whole, and rounded outward.

    Intervals are around the numbers, or around `centres` and as wide as to hold the numbers.
    """
    n, d = unit.numerator, unit.denominator
    widths = width if isinstance(width, Sequence) else repeat(width, len(noisy))
    around = list(zip(noisy if centres is None else centres, widths, strict=True))

    def real(value: int | Fraction) -> float:
        try:
            return float(value * n / d)  # one rounding, to the nearest float
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    if answer.integer:
        values: list[Any] = [(2 * value * n + d) // (2 * d) for value in noisy]
        low: list[Any] = [(value - width) * n // d for value, width in around]
        high: list[Any] = [-(-(value + width) * n // d) for value, width in around]
    else:
        values = [real(value) for value in noisy]
        low = [real(value - width) for value, width in around]
        high = [real(value + width) for value, width in around]
    if non_negative:
        values, low, high = (_clipped(each, answer) for each in (values, low, high))
    if centres is not None:
        low, high = list(map(min, low, values)), list(map(max, high, values))
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
