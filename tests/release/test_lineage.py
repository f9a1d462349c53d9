"""Intervals travel where a result column is plainly a released aggregate, and nowhere else."""

from __future__ import annotations

import pytest

from sfumato.release.answers import Origin
from sfumato.release.lineage import chooses, trace

TABLES = {"released": ("k", "n", "Avg x"), "other": ("m",)}


def origins(sql: str) -> list[tuple[str, str] | None] | None:
    found = trace(sql, TABLES)
    if found is None:
        return None
    return [
        None if each is None else (each.column, each.expression) if each.over is None
        else (f"{each.column} / {each.over}", each.expression)
        for each in found.origins
    ]  # fmt: skip


X = '"x"'


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT k, n FROM released", [("k", X), ("n", X)]),
        ("SELECT N AS total FROM RELEASED", [("n", X)]),
        (
            'SELECT r."Avg x" AS a, r.n FROM released AS r WHERE n > 3 ORDER BY 1 LIMIT 2',
            [("Avg x", X), ("n", X)],
        ),
        ("SELECT * FROM released", [("k", X), ("n", X), ("Avg x", X)]),
        ("SELECT r.* FROM released r", [("k", X), ("n", X), ("Avg x", X)]),
        ("SELECT n * 100 FROM released", [("n", '("x") * 100')]),
        (
            "SELECT -round(n / 3.0, 1)::DOUBLE FROM released",
            [("n", '-CAST(ROUND(("x") / 3.0, 1) AS DOUBLE)')],
        ),
        ("SELECT n, rank() OVER (ORDER BY n) AS r FROM released QUALIFY r < 3", [("n", X), None]),
        ("SELECT n / (SELECT sum(n) FROM released) AS share, k FROM released", [None, ("k", X)]),
        ('SELECT n * n, n + "Avg x", abs(n), upper(k) FROM released', [None, None, None, None]),
        ("SELECT 2 * t FROM (SELECT n + 1 AS t FROM released) s", [("n", '2 * (("x") + 1)')]),
        ("WITH a AS (SELECT * FROM released), b AS (SELECT n AS z FROM a) SELECT * FROM b", [("n", X)]),
        ("SELECT m FROM other", [("m", X)]),
        ('SELECT "Avg x" / n AS r FROM released', [("Avg x / n", '"x" / 1')]),
        (
            "SELECT round(100.0 * k / nullif(n, 0), 2) FROM released",
            [("k / n", 'ROUND(100.0 * "x" / 1, 2)')],
        ),
        (
            "SELECT 1 - 2 * r FROM (SELECT k::DOUBLE / (n * 3) AS r FROM released)",
            [("k / n", '1 - 2 * (CAST("x" AS DOUBLE) / (1 * 3))')],
        ),
        ("SELECT (n + 1) / k, n / k::INT, n / (k - 1), 1 / n, n / k / n FROM released", [None] * 5),
        ("SELECT r / n FROM (SELECT n, k + 1 AS r FROM released)", [None]),
        ("SELECT r / n FROM (SELECT n, n / k AS r FROM released)", [None]),
        ("SELECT p.label, r.n FROM released r JOIN places p ON p.k = r.k", [None, ("n", X)]),
        ("SELECT label, 2 * n FROM places LEFT JOIN released USING (k)", [None, ("n", '2 * ("x")')]),
        ("SELECT label, x.* FROM places, (SELECT k, n FROM released) x", [None, ("k", X), ("n", X)]),
        ("SELECT n, p.n FROM released JOIN (SELECT 1 AS n) p ON true", [("n", X), None]),
    ],
)
def test_followed(sql: str, expected: list[tuple[str, str] | None]) -> None:
    assert origins(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT r.n FROM released r, other",
        "SELECT n FROM released JOIN other ON true",
        "SELECT a.n FROM released a JOIN released b USING (k)",
        "SELECT * FROM released JOIN places USING (k)",
        "SELECT p.*, n FROM released JOIN places p USING (k)",
        "SELECT n FROM released SEMI JOIN places USING (k)",
        "SELECT n FROM released POSITIONAL JOIN places",
        "SELECT n FROM released, unnest([1, 2]) u",
        "SELECT k, sum(n) FROM released GROUP BY k",
        "SELECT DISTINCT n FROM released",
        "SELECT n FROM released UNION ALL SELECT m FROM other",
        "SELECT * EXCLUDE (n) FROM released",
        "SELECT * REPLACE (n + 1 AS n) FROM released",
        "SELECT a FROM released AS r(a, b, c)",
        "SELECT n FROM released USING SAMPLE 10%",
        "SELECT 1",
        "WITH released AS (SELECT 1 AS n) SELECT n FROM released",
        "SELECT n FROM (SELECT k, max(n) AS n FROM released GROUP BY k)",
        "SELECT n AS __sfumato_row FROM released",
        "FROM (PIVOT released ON k USING sum(n))",
    ],
)
def test_not_followed(sql: str) -> None:
    assert origins(sql) is None


def test_the_hidden_column_is_the_last() -> None:
    found = trace("SELECT n FROM released ORDER BY n", TABLES)
    assert found is not None and found.table == "released"
    assert found.sql == 'SELECT n, "released".rowid AS "__sfumato_row" FROM released ORDER BY n'
    assert found.origins == (Origin(column="n"),)


@pytest.mark.parametrize(
    ("sql", "chosen"),
    [
        ("SELECT * FROM released ORDER BY n", False),
        ("SELECT * FROM released WHERE k = 'a' ORDER BY n DESC", False),
        ("SELECT * FROM released ORDER BY k LIMIT 3", False),
        ("SELECT n FROM released r JOIN places p ON p.k = r.k WHERE p.size > 3", False),
        ("SELECT * FROM released WHERE N > 3", True),
        ("SELECT * FROM released WHERE k = (SELECT max(k) FROM released WHERE n > 3)", True),
        ("SELECT * FROM released ORDER BY n DESC LIMIT 3", True),
        ("SELECT * FROM released ORDER BY 2 LIMIT 3", True),
        ("SELECT * FROM released ORDER BY k, -n OFFSET 3", True),
        ("SELECT k, 2 * n AS twice FROM released ORDER BY twice LIMIT 3", True),
        (
            "WITH a AS (SELECT n AS x FROM released), b AS (SELECT x + 1 AS y FROM a) FROM b WHERE y > 0",
            True,
        ),
        ("SELECT k, n FROM released QUALIFY row_number() OVER (ORDER BY n) < 3", True),
        (
            "FROM (SELECT *, row_number() OVER (ORDER BY n) AS place FROM released) WHERE place < 3",
            True,
        ),
        ("SELECT r.n FROM released r JOIN places p ON p.size = r.n", True),
        ("SELECT k, n FROM released JOIN places USING (n)", True),
    ],
)
def test_rows_that_noisy_numbers_choose_are_told(sql: str, chosen: bool) -> None:
    assert chooses(sql, ["n"]) == chosen
