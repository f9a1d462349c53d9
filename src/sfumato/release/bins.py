"""Bins: a histogram as one row per bin, with the edges or the value of the bin beside its count.

Post-processing: the bins follow from the question, and each count is one of the noisy integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.columns import dates
from sfumato.backends import DUCKDB
from sfumato.catalog.kind import MOST_DIGITS, Kind, kind_of
from sfumato.release.answers import NoisyTable, Origin
from sfumato.release.plain_tables import widened
from sfumato.release.release import Release

__all__ = ["by_bin", "shown_histogram"]


def shown_histogram(origins: Sequence[Origin | None], table: NoisyTable | None) -> Answer | None:
    """Return how the only histogram that is shown as it is was answered; None: there is none, or several."""
    answers = {} if table is None else {answer.name: answer for answer in table.answers}
    plain = [one.column for one in origins if one is not None and one == Origin(column=one.column)]
    found = [answers[name] for name in plain if name in answers and answers[name].function.record.lists]
    return found[0] if len(found) == 1 else None


def by_bin(release: Release, answer: Answer) -> Release:
    """Return a release with one row per bin of a histogram that it shows.

    `ages` becomes `ages_from`, `ages_to` and `ages`: the edges of a bin, the upper one outside of it, and how
    many are in it. Of listed values it becomes `ages_value` and `ages`.
    """
    assert release.lines is not None
    place = release.origins.index(Origin(column=answer.name))
    name, marks = release.columns[place], _marks(answer)
    rows, lines, items = [], [], []
    for row, line in zip(release.rows, release.lines, strict=True):
        counts = [None] if row[place] is None else row[place]
        for item, count in enumerate(counts):
            bins = [None if row[place] is None else values[item] for _, _, values in marks]
            rows.append(_spliced(row, place, bins, count))
            lines.append(line)
            items.append(item)
    counted = widened(release.types[place].removesuffix("[]"), [row[place + len(marks)] for row in rows])
    return replace(
        release,
        columns=_spliced(release.columns, place, [f"{name}_{end}" for end, _, _ in marks], name),
        types=_spliced(release.types, place, [kind for _, kind, _ in marks], counted),
        origins=_spliced(release.origins, place, [None] * len(marks), Origin(column=answer.name, item=True)),
        rows=tuple(rows),
        lines=tuple(lines),
        items=tuple(items),
    )


def _marks(answer: Answer) -> list[tuple[str, str, Sequence[Any]]]:
    """Return what says which bin is meant: the ends of column names, SQL types, and a value for each bin."""
    if answer.labels:
        kind = _common({kind_of(label) or Kind.TEXT for label in answer.labels})
        values: list[Any] = list(answer.labels)
        if kind is Kind.REAL:
            values = list(map(float, values))
        return [("value", widened(DUCKDB.sql_type(kind), values), values)]
    edges: Sequence[Any] = answer.edges
    kind = Kind.REAL
    if answer.epoch is not None:
        edges = dates(answer.epoch, answer.edges)
        kind = kind_of(answer.epoch) or Kind.DATE
    return [("from", DUCKDB.sql_type(kind), edges[:-1]), ("to", DUCKDB.sql_type(kind), edges[1:])]


def _common(kinds: set[Kind]) -> Kind:
    """Return a kind that holds values of several: decimals with digits enough, else the first of them."""
    scale = max(kind.scale for kind in kinds)
    digits = scale + max(kind.digits - kind.scale for kind in kinds)
    if any(kind.digits for kind in kinds):
        decimal = all(kind.digits for kind in kinds) and digits <= MOST_DIGITS
        return Kind.decimal(digits, scale) if decimal else Kind.REAL
    return min(kinds, key=lambda kind: kind.value)


def _spliced(items: tuple[Any, ...], place: int, marks: Sequence[Any], counted: Any) -> tuple[Any, ...]:
    """Return items with others at a place instead of one."""
    return (*items[:place], *marks, counted, *items[place + 1 :])
