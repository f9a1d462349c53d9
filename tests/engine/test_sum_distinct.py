"""SUM(DISTINCT x): each value once, over all people; of one person, at most so many values."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.analysis.measures import _largest_sum

PRECISE = 10**8


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    generator = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "who": np.arange(600) // 3,
            "place": generator.choice(["a", "b", "c"], 600),
            "x": generator.choice([-7, -2, 0, 1, 5, 11, 40, 90], 600),
            "y": generator.integers(0, 500, 600),
            "half": generator.choice([0.5, 1.25, -3.0], 600),
            "truth": generator.random(600) < 0.5,
            "text": ["5"] * 600,
        }
    )


def connected(rows: pd.DataFrame, unit: str | None, **options: Any) -> sf.Database:
    return sf.connect(
        rows,
        name="t",
        unit=unit,
        columns={
            "place": sf.one_of("a", "b", "c"),
            "x": sf.between(-10, 50),
            "y": sf.between(0, 499),
            "half": sf.one_of(-3.0, 0.5, 1.25),
        },
        budget=sf.Budget(epsilon=10**12, rule="pure"),
        **options,
    )


@pytest.fixture(scope="module")
def databases(rows: pd.DataFrame) -> dict[str, sf.Database]:
    caps = {"max_groups": 3, "max_rows": 3}
    return {
        "units": connected(rows, "who", **caps),
        "texts": connected(rows.assign(who=rows["who"].astype(str) + "!"), "who", **caps),
        "rows": connected(rows.drop(columns="who"), None, max_groups=1),
    }


QUESTIONS = [
    "SELECT SUM(DISTINCT x) FROM t",
    "SELECT SUM(DISTINCT y), COUNT(DISTINCT y), SUM(y) FROM t",
    "SELECT SUM(DISTINCT half), SUM(DISTINCT truth) FROM t",
    "SELECT place, SUM(DISTINCT x) FILTER (WHERE truth) AS s, SUM(DISTINCT y % 7) FROM t GROUP BY place",
    "SELECT SUM(DISTINCT CASE WHEN x > 0 THEN LEAST(x, 50) * y END) FROM t WHERE y < 40",
    "SELECT SUM(DISTINCT NULLIF(x, 5)) - MAX(1) * 0 FROM t",
]


@pytest.mark.parametrize("which", ["units", "texts", "rows"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_it_means_what_duckdb_means(
    text: str, which: str, databases: dict[str, sf.Database], rows: pd.DataFrame
) -> None:
    """At an epsilon at which noise on whole numbers has a chance below e^-1000, with values within bounds."""
    order = " ORDER BY place" if "GROUP BY" in text else ""
    clamped = rows.assign(x=rows["x"].clip(-10, 50))
    with duckdb.connect() as plain:
        plain.register("t", clamped)
        expected = plain.execute(text + order).fetchall()
    found = databases[which].sql(text + order, epsilon=PRECISE).release().rows
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)


def test_python_asks_the_same(databases: dict[str, sf.Database]) -> None:
    asked = databases["units"].sql("SELECT SUM(DISTINCT x) AS s FROM t", epsilon=PRECISE)
    called = databases["units"].table("t").agg(s=sf.sum_distinct("x")).ask(epsilon=PRECISE)
    assert asked.priced().costs == called.priced().costs and asked.release().rows == called.release().rows


def test_of_one_persons_own_values(databases: dict[str, sf.Database], rows: pd.DataFrame) -> None:
    inner = "SELECT who, LEAST(GREATEST(SUM(DISTINCT x), -30), 200) AS s FROM t GROUP BY who"
    found = databases["units"].sql(f"SELECT SUM(s) FROM ({inner}) AS u", epsilon=PRECISE).release().rows
    with duckdb.connect() as plain:
        plain.register("t", rows)
        [(expected,)] = plain.execute(f"SELECT SUM(s) FROM ({inner}) AS u").fetchall()
    assert found == ((expected,),)


def test_what_one_person_changes(databases: dict[str, sf.Database]) -> None:
    """The largest values that a person can bring, no two alike: 50 + 49 + 48; as rows, one of them."""
    texts = {"units": 50 + 49 + 48, "rows": 50}
    for which, expected in texts.items():
        asked = databases[which].sql("SELECT SUM(DISTINCT x) FROM t", epsilon=1).priced()
        assert [one.sensitivity for one in asked.boundings[0].query.measures] == [expected]
    few = databases["units"].sql("SELECT SUM(DISTINCT x) FROM t", epsilon=1, max_distinct=1).priced()
    assert few.boundings[0].query.measures[0].sensitivity == 50


@pytest.mark.parametrize("low", range(-4, 4))
@pytest.mark.parametrize("most", [1, 2, 5])
def test_largest_sums_by_trying_all_sets(low: int, most: int) -> None:
    from itertools import combinations

    for high in range(low, 5):
        sets = (some for size in range(most + 1) for some in combinations(range(low, high + 1), size))
        assert _largest_sum(low, high, most) == max(map(sum, sets))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT SUM(DISTINCT x / 3) FROM t", "whole numbers"),
        ("SELECT SUM(DISTINCT text) FROM t", "takes numbers"),
        ("SELECT SUM(DISTINCT CAST(text AS BIGINT)) FROM t", "bounds"),
        ("SELECT AVG(DISTINCT x) FROM t", "only COUNT and SUM"),
        ("SELECT SUM(DISTINCT x, y) FROM t", "not supported"),
        ("SELECT SUM(s) FROM (SELECT who, SUM(DISTINCT half) AS s FROM t GROUP BY who) AS u", "integer"),
    ],
)
def test_what_has_no_bound_is_refused(text: str, hint: str, databases: dict[str, sf.Database]) -> None:
    with pytest.raises(sf.errors.QueryRefused, match=hint):
        databases["units"].sql(text, epsilon=1).priced()
