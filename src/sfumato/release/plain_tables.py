"""Plain tables: noisy tables as plain columns with SQL types, as the sandbox and frames take them."""

from __future__ import annotations

import datetime
from typing import Any

from sfumato.aggregates.answer import Answer
from sfumato.analysis.bounded import Bounding
from sfumato.backends import DUCKDB
from sfumato.catalog.kind import Kind
from sfumato.core.steps import spend
from sfumato.plan.tree import GROUPING_SET
from sfumato.release.answers import NoisyTable
from sfumato.release.reports import Reported, report_types, reports
from sfumato.release.sandbox import PlainTable

__all__ = ["expected_table", "plain_table_of", "sample_table", "widened"]

_MOST_SAMPLED = 10_000
_WORD, _HUGE = 2**63 - 1, 10**38 - 1


def plain_table_of(table: NoisyTable, reported: Reported = ()) -> PlainTable:
    """Return a noisy table's columns; whole numbers beyond 64 bits widen their column.

    After them come columns of those aggregates that are `reported` with their intervals. Where there are
    several grouping sets, a last column says in which of them a row is: the NULL of a key that is summed
    over can then be told from the NULL of a group.
    """
    columns = [(name, _key_type(kind), table.key(place)) for place, (name, kind) in enumerate(table.keys)]
    columns += [
        (answer.name, _type(answer), table.aggregate(answer, None).values) for answer in table.answers
    ]
    columns += reports(table, reported, {answer.name: _type(answer) for answer in table.answers})
    columns += [(GROUPING_SET, "BIGINT", table.sets)] if len(table.groups) > 1 else []
    names, types, values = zip(*columns, strict=True)
    return PlainTable(columns=names, types=tuple(map(widened, types, values)), values=values)


def expected_table(bounding: Bounding, reported: Reported = ()) -> PlainTable:
    """Return the empty table of a question that has not been asked yet, to try post-processing on."""
    columns = [(name, _key_type(expression.kind)) for name, expression in bounding.query.keys]
    columns += [(answer.name, _type(answer)) for answer in bounding.answers]
    types = {answer.name: _type(answer) for answer in bounding.answers}
    columns += report_types(bounding.answers, reported, types)
    columns += [(GROUPING_SET, "BIGINT")] if len(bounding.query.grouping_sets) > 1 else []
    names, kinds = zip(*columns, strict=True)
    return PlainTable(columns=names, types=kinds, values=tuple([[] for _ in columns]))


def sample_table(bounding: Bounding, times: int, reported: Reported = ()) -> PlainTable:
    """Return all rows that an answer over declared keys will have, with numbers that are none of its own.

    Aggregates are 1, 2, 3, .. in the order of the rows, `times` over; reports are NULL.
    """
    query, empty = bounding.query, expected_table(bounding, reported)
    nothing = [None for _ in reported]
    rows: list[list[Any]] = []
    declared = (query.declared or ())[:_MOST_SAMPLED]
    spend(len(declared) * len(query.grouping_sets) * len(empty.columns) // 25)
    for place, chosen in enumerate(query.grouping_sets):
        keys = dict.fromkeys(tuple(key[at] for at in chosen) for key in declared)
        for key in keys:
            known = dict(zip(chosen, key, strict=True))
            number = times * (len(rows) + 1)
            shown = [known.get(at) for at in range(len(query.keys))]
            kinds = empty.types[len(shown) : len(shown) + len(bounding.answers)]
            several = [place] if len(query.grouping_sets) > 1 else []
            rows.append([*shown, *(_sampled(kind, number) for kind in kinds), *nothing, *several])
    columns = tuple([row[at] for row in rows] for at in range(len(empty.columns)))
    return PlainTable(columns=empty.columns, types=empty.types, values=columns)


def _sampled(kind: str, number: int) -> Any:
    value: Any = number
    if kind in ("BOOLEAN", "VARCHAR"):
        value = str(number) if kind == "VARCHAR" else number % 2 == 1
    if kind.removesuffix("[]") in ("DATE", "TIMESTAMP"):
        value = datetime.datetime(1900, 1, 1) + datetime.timedelta(days=number % 1_000_000)
    return [value, value] if kind.endswith("[]") else value


def widened(kind: str, values: list[Any]) -> str:
    """Return the type that holds all values: 128 bits where 64 do not suffice, reals beyond."""
    if not kind.startswith("BIGINT"):
        return kind
    largest = _largest(values)
    wide = "BIGINT" if largest <= _WORD else "HUGEINT" if largest <= _HUGE else "DOUBLE"
    return kind.replace("BIGINT", wide)


def _largest(values: list[Any]) -> Any:
    """Return the largest size of the numbers of a column, which may be in lists; 0 if there is none."""
    largest: Any = 0
    for value in values:
        if value is not None:
            largest = max(largest, _largest(value) if isinstance(value, list) else abs(value))
    return largest


def _key_type(kind: Kind | None) -> str:
    return "VARCHAR" if kind is None else DUCKDB.sql_type(kind)


def _type(answer: Answer) -> str:
    single = "BIGINT" if answer.integer else "DOUBLE"
    if answer.function.record.chooses or answer.kind in (Kind.DATE, Kind.TIMESTAMP):
        single = DUCKDB.sql_type(answer.kind)
    return f"{single}[]" if answer.many else single
