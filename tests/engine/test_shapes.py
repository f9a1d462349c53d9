"""Shapes of questions, end to end, with next to no noise: they mean what they mean in DuckDB."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.session import Database

PEOPLE = pa.table(
    {
        "uid": [1, 2, 3, 4, 5, 6, None],
        "age": [10, 25, 35, 35, 60, None, 70],
        "region": ["north", "north", "south", None, "south", "north", "north"],
        "member": [True, False, None, True, False, True, True],
    }
)
REGIONS = pa.table({"region": ["north", "north", "west"], "size": [1, 2, 3]})


@cache
def database() -> Database:
    return sf.connect(
        PEOPLE,
        name="people",
        unit="uid",
        columns={"age": sf.between(0, 110), "region": sf.one_of("north", "south")},
        budget=sf.Budget(epsilon=10**7, delta=1e-6),
        public={"regions": REGIONS},
        max_groups=1,
        max_rows=1,
    )


def answer(text: str, **options: Any) -> list[tuple[Any, ...]]:
    """Return the rows of an answer whose noise is nothing."""
    return list(database().sql(text, epsilon=10**4, noise="laplace", **options).release().rows)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people p WHERE NOT EXISTS (FROM people q WHERE q.uid = p.uid AND q.member)",
        "SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM regions r WHERE r.region = p.region)",
        "SELECT COUNT(*) FROM people p, people q WHERE p.uid = q.uid AND p.age > 20",
        "SELECT COUNT(*) FROM people p, regions r WHERE p.region = r.region",
        "SELECT COUNT(*) FROM people WHERE member IS NOT TRUE",
        "SELECT COUNT(*) FROM people WHERE member IS NOT FALSE",
        "SELECT COUNT(*) FROM people WHERE region IS DISTINCT FROM 'north'",
        "SELECT COUNT(*) FROM people WHERE age // 10 = 3",
        "SELECT COUNT(*) AS n, COUNT(member) AS m, n - m AS missing FROM people",
    ],
)
def test_it_means_what_it_means_in_duckdb(text: str) -> None:
    """Rows of nobody are dropped: the plain answer is that of the other rows."""
    people = PEOPLE.slice(0, 6)  # found by its name, as is the next
    regions = REGIONS
    plain = duckdb.sql(text).fetchall()
    assert len(people) and len(regions)
    assert answer(text, max_rows=4) == plain


def test_grouping_tells_a_missing_value_from_a_sum_over_all() -> None:
    rows = answer(
        "SELECT age > 30 AS older, GROUPING(age > 30) AS summed, COUNT(*) AS n FROM people"
        " GROUP BY ROLLUP(age > 30) ORDER BY summed, older NULLS LAST",
        min_units=1,
    )
    assert rows == [(False, 0, 2), (True, 0, 3), (None, 1, 6)] or rows == [
        (False, 0, 2),
        (True, 0, 3),
        (None, 0, 1),
        (None, 1, 6),
    ]
    both = answer(
        "SELECT region, member, GROUPING(region, member) AS g, COUNT(*) AS n FROM people"
        " WHERE member IS NOT NULL GROUP BY CUBE(region, member) HAVING GROUPING(region) = 0 ORDER BY ALL"
    )
    assert {row[2] for row in both} <= {0, 1} and all(row[0] is not None for row in both)


def test_histograms_of_lists_and_of_truths() -> None:
    question = database().sql("SELECT HISTOGRAM(region), HISTOGRAM(age > 30) FROM people", epsilon=10**4)
    release = question.release()
    assert release.rows == (([3, 2], [2, 3]),)
    assert "cells of `HISTOGRAM(region)`: north, south" in release.notes
    assert "cells of `HISTOGRAM(age > 30)`: False, True" in release.notes
    with pytest.raises(sf.errors.QueryRefused, match="needs a list of its values"):
        database().sql("SELECT HISTOGRAM(upper(region)) FROM people", epsilon=1).explain()
