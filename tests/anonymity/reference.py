"""The definitions once more, slow and obvious: lists of rows, one class and one value after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Row = tuple[Any, ...]

TYPES = {
    "age": pa.int64(),
    "size": pa.float64(),
    "town": pa.string(),
    "ill": pa.string(),
    "pay": pa.float64(),
}
QUASI = ("age", "size", "town")

VALUES = {
    "age": st.one_of(st.integers(-3, 4), st.none()),
    "size": st.sampled_from([0.0, -0.0, 1.5, 2.5, -7.25, math.nan, None]),
    "town": st.sampled_from(["Zürich", "東京", "", "a, b", "{a}", "*", "b", None]),
    "ill": st.sampled_from(["flu", "cold", "gout", None]),
    "pay": st.sampled_from([1.0, 2.0, 10.0, -0.0, math.nan, None]),
}


def tables(*, least: int = 1, most: int = 14) -> st.SearchStrategy[pa.Table]:
    """Return small tables with NULL, NaN, two zeros, and texts that look like something else.

    In some all rows are drawn freely, and most are unique; in others people share a few profiles.
    """
    sensitive = st.tuples(VALUES["ill"], VALUES["pay"])
    profile = st.tuples(*(VALUES[name] for name in QUASI))
    free = st.lists(st.tuples(profile, sensitive), min_size=least, max_size=most)
    shared = st.lists(profile, min_size=1, max_size=5, unique_by=repr).flatmap(
        lambda few: st.lists(st.tuples(st.sampled_from(few), sensitive), min_size=least, max_size=2 * most)
    )
    return st.one_of(shared, free).map(lambda rows: table_of([(*one, *other) for one, other in rows]))


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        {name: pa.array(values, TYPES[name]) for name, values in zip(TYPES, columns, strict=True)}
    )


def same(value: Any) -> Any:
    """Return what stands for a value where values are compared: NaN is one, zeros are one, NULL is one."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN!"
    return "NULL!" if value is None else value + 0.0 if isinstance(value, float) else value


def column(table: pa.Table, name: str) -> list[Any]:
    return [same(value) for value in table.column(name).to_pylist()]


def classes(table: pa.Table, quasi: Sequence[str]) -> list[list[int]]:
    """Return the rows of each class, by number."""
    columns = [column(table, name) for name in quasi]
    found: dict[Row, list[int]] = {}
    for row in range(table.num_rows):
        found.setdefault(tuple(values[row] for values in columns), []).append(row)
    return list(found.values())


def shares(values: Sequence[Any]) -> dict[Any, float]:
    return {value: many / len(values) for value, many in Counter(values).items()}


def entropy(values: Sequence[Any]) -> float:
    return -sum(share * math.log(share) for share in shares(values).values())


def ranked(values: Sequence[Any]) -> list[Any]:
    """Return distinct values in order: NaN after all others, and NULL after that."""
    last = ["NaN!", "NULL!"]
    known = sorted(value for value in set(values) if value not in last)
    return known + [value for value in last if value in values]


def distance(values: Sequence[Any], table: Sequence[Any], *, ordered: bool) -> float:
    """Return the earth mover's distance, by moving."""
    inside, outside = shares(values), shares(table)
    if not ordered:
        return sum(abs(inside.get(value, 0) - share) for value, share in outside.items()) / 2
    steps = ranked(table)
    carried = moved = 0.0
    for value in steps:
        carried += inside.get(value, 0) - outside[value]
        moved += abs(carried)
    return moved / (len(steps) - 1) if len(steps) > 1 else 0.0


def reaches(
    inside: Sequence[int], rows: Sequence[int], table: pa.Table, goal: Any, sensitive: Sequence[str]
) -> bool:
    """Return whether some rows are a class as wanted, in a table that has only `rows`."""
    good = len(inside) >= goal.k
    for name in sensitive:
        values = column(table, name)
        ours, all_of_them = [values[row] for row in inside], [values[row] for row in rows]
        if goal.l is not None:
            good &= len(set(ours)) >= goal.l
        if goal.entropy_l is not None:
            good &= entropy(ours) >= math.log(goal.entropy_l) - 1e-9
        if goal.t is not None:
            good &= distance(ours, all_of_them, ordered=name == "pay") <= goal.t + 1e-9
    return good
