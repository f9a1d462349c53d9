"""Information: which answers say nothing, because their intervals cover all that the answers could be.

Everything here is post-processing: it reads noisy integers, and public parameters of noise and bounds.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.aggregates.answer import AddedNoise, Answer, NoisyColumn
from sfumato.aggregates.columns import dates
from sfumato.release.answers import NoisyTable

__all__ = ["helpful_factor", "informative", "rows_flagged", "says_nothing"]

_FACTORS = (2, 3, 5, 10, 20, 30, 50, 100)
_MOST_ROWS = 10_000  # of a table for which help is looked for, again and again
_SLACK = 1e-9  # of the range: ends are moved by rounding


def says_nothing(
    table: NoisyTable, answer: Answer, column: NoisyColumn, *, share: float = 1.0
) -> list[bool | list[bool]]:
    """Return for each row whether its interval is at least `share` of all that the answer could be.

    It is so for no answer without a public range, such as a count, and for a quantile around which nothing
    was measured, since that was asked for. A list of quantiles has a list of flags.
    """
    ends = _range(table, answer)
    return [
        [_wide(a, b, ends, share) for a, b in zip(low, high, strict=True)]
        if isinstance(low, list)
        else _wide(low, high, ends, share)
        for low, high in zip(column.low, column.high, strict=True)
    ]


def rows_flagged(flags: Sequence[Any]) -> list[int]:
    """Return the rows that are flagged, in some item if they have several.

    >>> rows_flagged([True, False, [False, True], None])
    [0, 2]
    """
    return [row for row, flag in enumerate(flags) if (any(flag) if isinstance(flag, list) else flag)]


def informative(value: Any, nothing: Any) -> Any:
    """Return a value, or None where it is flagged; of a list item by item.

    >>> informative([1.5, 2.5], [False, True])
    [1.5, None]
    """
    if isinstance(value, list) and isinstance(nothing, list):
        return [informative(item, flag) for item, flag in zip(value, nothing, strict=True)]
    return None if nothing is True else value


def helpful_factor(
    table: NoisyTable, answer: Answer, rows: Sequence[int], level: float
) -> tuple[int, int] | None:
    """Return about how many times the epsilon would help, and in how many of these rows it would.

    It helps where an interval becomes at most half as wide as all that the answer could be. The noisy
    integers stay, and the noise around them shrinks: so the same question would be answered with more
    epsilon, if these integers were exact. None: not even a hundred times the epsilon would help.
    """
    best: tuple[int, int] | None = None
    for factor in _FACTORS if len(table.sets) <= _MOST_ROWS else ():
        sharper = replace(table, noises=tuple(_sharper(noise, factor) for noise in table.noises))
        flags = says_nothing(sharper, answer, sharper.aggregate(answer, level), share=0.5)
        helped = len(rows) - len(rows_flagged([flags[row] for row in rows]))
        if helped > (0 if best is None else best[1]):
            best = factor, helped
        if helped == len(rows):
            break
    return best


def _range(table: NoisyTable, answer: Answer) -> tuple[Any, Any] | None:
    """Return between which ends an answer lies for public reasons, None if they are not known."""
    if answer.function.record.ranks:
        [name] = answer.measures
        found = table.noise(name, 0).quantile is not None
        if found and all(len(groups.layers[name]) == 1 for groups in table.groups):
            return None
        ends = (answer.edges[0], answer.edges[-2 if answer.points else -1])
    elif answer.lower is not None and answer.upper is not None:
        ends = (answer.lower, answer.upper)
    else:
        return None
    if ends[0] >= ends[1]:
        return None
    if answer.epoch is not None:
        return dates(answer.epoch, ends[:1])[0], dates(answer.epoch, ends[1:])[0]
    return ends


def _wide(low: Any, high: Any, ends: tuple[Any, Any] | None, share: float) -> bool:
    if low is None or high is None:
        return False
    if ends is None:
        numbers = not isinstance(low, datetime.date)
        return numbers and math.isinf(low) and math.isinf(high)
    return bool((high - low) / (ends[1] - ends[0]) >= share * (1 - _SLACK))


def _sharper(noise: AddedNoise, factor: int) -> AddedNoise:
    rate, anchor = noise.row_rate, noise.anchor
    return replace(
        noise,
        law=noise.law.scaled(Fraction(1, factor)),
        row_rate=None if rate is None else rate * factor,
        anchor=None if anchor is None else anchor.scaled(Fraction(1, factor)),
    )
