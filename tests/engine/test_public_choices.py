"""DISTINCT, ORDER BY, LIMIT and UNION ALL of public rows mean what they mean in DuckDB."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused

PEOPLE = pd.DataFrame({"uid": range(600), "g": [place % 7 for place in range(600)]})
REGIONS = pd.DataFrame(
    {
        "g": [0, 1, 2, 3, 4, 5, 6, 6, 5, 4],
        "size": [30, 10, None, 20, 10, 50, 40, 40, 5, 60],
        "zone": list("aabbcaabbc"),
    }
)

QUESTIONS = [
    "SELECT COUNT(*) FROM t JOIN (SELECT g FROM r ORDER BY size, g LIMIT 3) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t JOIN (SELECT g FROM r ORDER BY size DESC, zone LIMIT 4 OFFSET 1) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t JOIN (SELECT g FROM r ORDER BY size NULLS FIRST, g LIMIT 1) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t JOIN (SELECT g AS h, size * 2 AS d FROM r ORDER BY d, 1 LIMIT 2) s ON t.g = s.h",
    "SELECT COUNT(*) FROM t JOIN (SELECT g FROM r ORDER BY -g LIMIT 3) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t JOIN (SELECT DISTINCT g FROM r) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t JOIN (SELECT DISTINCT zone, g FROM r ORDER BY zone, g LIMIT 4) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t JOIN (SELECT g FROM r ORDER BY size) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t JOIN (SELECT g FROM r UNION ALL SELECT g + 1 FROM r) s ON t.g = s.g",
    "SELECT COUNT(*) FROM t WHERE g IN (SELECT g FROM r ORDER BY g LIMIT 2)",
    "SELECT COUNT(*) FROM t WHERE g IN (SELECT g FROM r UNION ALL SELECT 6 FROM r WHERE g > 3)",
    "WITH s AS (SELECT g FROM r ORDER BY g DESC LIMIT 3) SELECT COUNT(*) FROM t JOIN s ON t.g = s.g",
    "WITH a AS (SELECT g FROM r LIMIT 5) SELECT COUNT(*) FROM t JOIN (SELECT g FROM a LIMIT 2) b USING (g)",
]


def database() -> sf.Database:
    return sf.connect(
        {"t": PEOPLE},
        unit="uid",
        public={"r": REGIONS},
        max_rows=10,
        budget=sf.Budget(epsilon=10**6, delta=1e-6),
    )


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_answer_is_the_engine_s(text: str) -> None:
    """At this epsilon noise is zero but for a chance below e^-400."""
    connection = duckdb.connect()
    connection.register("t", PEOPLE)
    connection.register("r", REGIONS)
    [(expected,)] = connection.execute(text).fetchall()
    [[found]] = database().sql(text, epsilon=10_000).release().rows
    assert found == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT COUNT(*) FROM (SELECT uid, g FROM t LIMIT 3)", "LIMIT picks some people's rows"),
        ("SELECT COUNT(*) FROM (SELECT t.uid FROM t JOIN r ON t.g = r.g LIMIT 3)", "LIMIT picks some"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT g FROM t)", "DISTINCT would merge"),
        ("SELECT COUNT(*) FROM t JOIN (SELECT g FROM r LIMIT 1 + 1) s USING (g)", "take a whole number"),
        ("SELECT COUNT(*) FROM t JOIN (SELECT DISTINCT g FROM r ORDER BY size) s USING (g)", "not a column"),
        ("SELECT COUNT(*) FROM t JOIN (SELECT DISTINCT ON (g) g FROM r) s USING (g)", "DISTINCT ON"),
        ("SELECT COUNT(*) FROM t JOIN (SELECT g FROM r UNION SELECT g FROM r) s USING (g)", "of public rows"),
        ("SELECT COUNT(*) FROM t JOIN (SELECT g FROM r EXCEPT SELECT 1) s USING (g)", "of public rows"),
    ],
)
def test_what_is_not_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryRefused, match=message) as caught:
        database().sql(text, epsilon=1)
    assert caught.value.code == "SF404" and caught.value.hints


def test_rows_that_order_leaves_equal_are_chosen_by_their_columns() -> None:
    """Else which ones are chosen could depend on threads, and so on the data beside them."""
    text = "SELECT COUNT(*) FROM t JOIN (SELECT g FROM r ORDER BY zone LIMIT 1) s ON t.g = s.g"
    turned = REGIONS.iloc[::-1].reset_index(drop=True)
    counts = []
    for regions in (REGIONS, turned):
        db = sf.connect(
            {"t": PEOPLE}, unit="uid", public={"r": regions}, max_rows=10,
            budget=sf.Budget(epsilon=10**6, delta=1e-6),
        )  # fmt: skip
        counts.append(db.sql(text, epsilon=10_000).release().rows)
    assert counts[0] == counts[1] == (((PEOPLE["g"] == 0).sum(),),)
