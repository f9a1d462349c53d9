"""What people write out of habit is answered with what it means: synonyms, conversions, lists, regressions.

Each question is asked at an epsilon so large that its noise is far below the tolerance, and of plain DuckDB.
"""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import sfumato as sf

PEOPLE = 600
FRAME = pd.DataFrame(
    {
        "who": range(PEOPLE),
        "region": ["north", "south", "west"] * (PEOPLE // 3),
        "x": [place % 7 for place in range(PEOPLE)],
        "y": [(place * 5) % 11 + place % 7 for place in range(PEOPLE)],
        "married": [place % 2 for place in range(PEOPLE)],
        "member": [place % 3 == 0 for place in range(PEOPLE)],
        "born": pd.date_range("1990-01-01", periods=PEOPLE, freq="D"),
        "mail": [f"p{place % 4}@{'ab'[place % 2]}.example" for place in range(PEOPLE)],
    }
)
REGIONS = "(VALUES ('north', 'N', 1), ('south', 'S', 2.5)) AS v(region, name, factor)"


@pytest.fixture(scope="module")
def database() -> sf.Database:
    return sf.connect(
        FRAME,
        name="people",
        unit="who",
        columns={
            "x": sf.between(0, 6),
            "y": sf.between(0, 20),
            "region": sf.one_of("north", "south", "west"),
        },
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=1e9, delta=1e-6, rule="pure"),
    )


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("SELECT VAR(x) AS a, STD(y) AS b FROM people", "SELECT VAR_SAMP(x), STDDEV_SAMP(y) FROM people"),
        (
            "SELECT TOP 2 region, SUM(x) AS n FROM people GROUP BY region ORDER BY n DESC",
            "SELECT region, SUM(x) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 2",
        ),
        ("SELECT DISTINCT married FROM people ORDER BY married", ""),
        ("SELECT SUM(member) AS a, SUM(x > 3) AS b FROM people", ""),
        ("SELECT COUNT(*) AS n FROM people WHERE NOT married AND x = '3' AND member = 1", ""),
        ("SELECT COUNT(*) AS n FROM people WHERE born < DATE '1991-01-01' - INTERVAL 90 DAY", ""),
        (
            "SELECT COUNT(*) AS n FROM people WHERE mail ~ '^p[12]@a' AND SPLIT_PART(mail, '@', 2) LIKE 'a%'",
            "",
        ),
        ("SELECT REGR_SLOPE(y, x) AS a, REGR_INTERCEPT(y, x) AS b, REGR_R2(y, x) AS c FROM people", ""),
        (f"SELECT SUM(x * factor) AS a FROM people JOIN {REGIONS} ON people.region = v.region", ""),
        (
            f"SELECT name, COUNT(*) AS n FROM people JOIN {REGIONS} USING (region) GROUP BY name ORDER BY 1",
            "",
        ),
        ("SELECT COUNT(*) AS n FROM people WHERE x IN (SELECT u.a FROM UNNEST([1, 2, 9]) AS u(a))", ""),
        ("SELECT COUNT(*) AS n FROM (people) AS p WHERE p.x = 1", ""),
        (
            "SELECT FORMAT('{:,}', COUNT(*)), LPAD(region, 7, '.') FROM people GROUP BY region ORDER BY 2",
            "",
        ),
        ("SELECT ARG_MAX(x, s) AS a FROM (SELECT x, SUM(y) AS s FROM people GROUP BY x)", ""),
    ],
)
def test_means_what_duckdb_means(asked: str, meant: str, database: sf.Database) -> None:
    people = FRAME  # noqa: F841 -- DuckDB reads it by its name
    expected = duckdb.sql(meant or asked).fetchall()
    release = database.sql(asked, epsilon=1e6).release()
    assert len(release.rows) == len(expected)
    for row, plain in zip(release.rows, expected, strict=True):
        if all(isinstance(value, (int, float)) for value in row):
            assert row == pytest.approx(tuple(map(float, plain)), abs=2e-3)
        else:
            assert row == plain


def test_months_by_name_are_groups_that_everybody_knows(database: sf.Database) -> None:
    asked = database.sql("SELECT MONTHNAME(born) AS m, COUNT(*) AS n FROM people GROUP BY m", epsilon=1e6)
    assert len(asked.release().rows) == 12


def test_a_line_of_one_point_has_no_slope_and_an_interval_without_ends(database: sf.Database) -> None:
    """At the level 1 - 1e-9 only noise that is as rare makes x seem to vary; at 95% it is one in fifty."""
    text = "SELECT REGR_SLOPE(y, x) AS a FROM people WHERE x = 3"
    release = database.sql(text, epsilon=1).release()
    [(low, high)] = release.intervals(1 - 1e-9)["a"]
    assert low == -float("inf") and high == float("inf")
