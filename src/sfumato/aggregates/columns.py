"""Columns of numbers for people, from noisy integers and from estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sfumato.aggregates.answer import Answer, NoisyColumn
from sfumato.aggregates.dates import dates
from sfumato.aggregates.ratios import Estimate

__all__ = ["column", "lists", "scaled"]


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


def column(answer: Answer, estimate: Estimate) -> NoisyColumn:
    """Return Python numbers, None for NaN."""
    low, high = estimate.low.tolist(), estimate.high.tolist()
    values = [None if math.isnan(value) else value for value in estimate.values.tolist()]
    if answer.epoch is not None:
        return NoisyColumn(
            values=dates(answer.epoch, values),
            low=dates(answer.epoch, low),
            high=dates(answer.epoch, high, up=True),
        )
    if not answer.integer:
        return NoisyColumn(values=values, low=low, high=high)
    return NoisyColumn(
        values=[None if value is None else round(value) for value in values],
        low=[math.floor(value) if math.isfinite(value) else value for value in low],
        high=[math.ceil(value) if math.isfinite(value) else value for value in high],
    )


def lists(columns: Sequence[NoisyColumn], groups: int) -> NoisyColumn:
    """Return one list per group, of what several columns have in it."""
    return NoisyColumn(
        values=[[one.values[group] for one in columns] for group in range(groups)],
        low=[[one.low[group] for one in columns] for group in range(groups)],
        high=[[one.high[group] for one in columns] for group in range(groups)],
    )
