"""What became of a column: generalised values, and the values that each of them stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity.classes import group
from sfumato.anonymity.columns import Coded, Floats, Integers, Scale, texts_of
from sfumato.anonymity.ladders import STAR, Ladder, certainty

__all__ = ["Recoded", "by_level", "by_run"]

_SHORT = 8  # a set of more categories than this is written by its first and its last


@dataclass(frozen=True, kw_only=True)
class Recoded:
    """A generalised column.

    `values` are the distinct values of the table, in an order in which each generalised value stands for a
    run of them: `starts` to `stops`, for each of the `labels`. `positions` is where the value of
    each row is in that order, and `of_row` the label that each row got: -1 for rows that were suppressed.
    `costs` is how much of the column each label leaves open; `level` and `height` are those of a hierarchy.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"age": [31, 34, 38, 52, 54, 57]})
    >>> [age] = reach(people, ["age"], Goal(k=3)).columns
    >>> age.name, age.of_row.tolist()
    ('age', [0, 0, 0, 1, 1, 1])
    """

    name: str
    values: Any
    positions: Integers
    labels: Any
    starts: Integers
    stops: Integers
    of_row: Integers
    costs: Floats
    level: int | None = None
    height: int | None = None

    def stands_for(self, label: int) -> Any:
        """Return the values of the table that a generalised value can stand for, an Arrow array."""
        return self.values.slice(self.starts[label], self.stops[label] - self.starts[label])

    def without(self, suppressed: np.ndarray) -> Recoded:
        """Return the same with some rows suppressed."""
        return replace(self, of_row=np.where(suppressed, -1, self.of_row))


def by_level(ladder: Ladder, level: int) -> Recoded:
    """Generalise every row to one level of a hierarchy."""
    rung, column = ladder.levels[level], ladder.column
    starts, stops = ladder.runs(level)
    return Recoded(
        name=column.name,
        values=column.values.take(pa.array(ladder.order)),
        positions=ladder.position[column.codes],
        labels=pa.array(rung.labels, pa.string()) if level else column.values,
        starts=starts,
        stops=stops,
        of_row=rung.groups[column.codes],
        costs=rung.costs,
        level=level,
        height=ladder.height,
    )


def by_run(ladder: Ladder, low: Integers, high: Integers, of_row: Integers) -> Recoded:
    """Generalise each class of rows to what lies between two positions, both included.

    With a hierarchy that is the lowest of its values that covers them; else an interval or a set.
    `of_row` is the class of each row.
    """
    column = ladder.column
    many = column.size
    values = column.values.take(pa.array(ladder.order))
    if ladder.height > 1:
        low, high, labels, costs = _covering(ladder, low, high)
        number, _, first = group((low, high), (many, many))
        labels, costs = [labels[place] for place in first], costs[first]
    else:
        number, _, first = group((low, high), (many, many))
        labels = _written(column, values, low[first], high[first])
        costs = certainty(column, low[first], high[first] + 1)
    starts, stops = low[first], high[first] + 1
    plain = bool((stops - starts == 1).all())
    return Recoded(
        name=column.name,
        values=values,
        positions=ladder.position[column.codes],
        labels=values.take(pa.array(starts)) if plain else pa.array(labels, pa.string()),
        starts=starts,
        stops=stops,
        of_row=number[of_row],
        costs=np.zeros(len(starts)) if plain else costs,
    )


def _covering(
    ladder: Ladder, low: Integers, high: Integers
) -> tuple[Integers, Integers, list[str | None], Floats]:
    """Return the lowest value of a hierarchy that covers each run: its ends, its name and its cost."""
    texts = texts_of(ladder.column.values)
    low, high = low.copy(), high.copy()
    left = np.ones(len(low), dtype=bool)
    labels: list[str | None] = [None] * len(low)
    costs = np.zeros(len(low))
    for number, level in enumerate(ladder.levels):
        groups = level.groups[ladder.order]
        here = np.flatnonzero(left & (groups[low] == groups[high]))
        own = groups[low[here]]
        starts, stops = ladder.runs(number)
        low[here], high[here], costs[here], left[here] = starts[own], stops[own] - 1, level.costs[own], False
        for place, which in zip(here.tolist(), own.tolist(), strict=True):
            labels[place] = level.labels[which] if number else _alone(texts[which])
    return low, high, labels, costs


def _written(column: Coded, values: Any, low: Integers, high: Integers) -> list[str | None]:
    """Write runs: one value as it is, numbers and moments as [low, high], categories as {a, b}."""
    texts = texts_of(values)
    known = column.size - column.missing
    shown = [str(text) for text in texts[:known]]
    if column.scale is Scale.CATEGORY:
        shown = [_quoted(text) for text in shown]
    written: list[str | None] = []
    for first, last in zip(low.tolist(), high.tolist(), strict=True):
        if first == last:
            written.append(_alone(texts[first]))
        elif last - first + 1 == column.size:
            written.append(STAR)
        else:
            end = min(last, known - 1)
            missing = ["missing" if text is None else text for text in texts[max(first, known) : last + 1]]
            several = column.scale is Scale.CATEGORY and end - first < _SHORT
            if end == first:
                missing.insert(0, shown[first])
            elif end > first:
                all_of_them = f"{{{', '.join(shown[first : end + 1])}}}"
                missing.insert(0, all_of_them if several else f"[{shown[first]}, {shown[end]}]")
            written.append(" or ".join(missing))
    return written


def _alone(text: str | None) -> str | None:
    """Write a value by itself: as it is, unless it looks like something that stands for several."""
    if text is None or not (text[:1] in ("{", "[", '"') or text == STAR or text.endswith(" or missing")):
        return text
    return json.dumps(text, ensure_ascii=False)


def _quoted(text: str) -> str:
    plain = text and text == text.strip() and not any(mark in text for mark in ',{}[]"*')
    return text if plain else json.dumps(text, ensure_ascii=False)
