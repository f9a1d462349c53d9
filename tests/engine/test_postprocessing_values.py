"""Post-processing has a value or NULL for every noisy number, and loses no answer that was paid for."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.release import Release
from sfumato.release.release import _through
from sfumato.session import Database

GROUPS = "WITH r AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) "


def database(rows: int = 300) -> Database:
    regions = (["north", "south", "west"] * rows)[:rows]
    costs = pa.array([float(i % 50) for i in range(rows)], pa.float64())
    data = {"region": pa.array(regions, pa.string()), "cost": costs}
    return sf.connect(
        pa.table(data),
        name="visits",
        unit=None,
        columns={"region": sf.one_of("north", "south", "west"), "cost": sf.between(0, 50)},
        budget=sf.Budget(epsilon=1e9, delta=1e-6, rule="pure"),
    )


def answer(text: str, rows: int = 300, epsilon: float = 1e4) -> Release:
    return database(rows).sql(text, epsilon=epsilon).release()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("COUNT(*) / 0", None),
        ("COUNT(*) / (COUNT(*) - COUNT(*))", None),
        ("LN(COUNT(*) * 0)", None),
        ("LN(-COUNT(*))", None),
        ("SQRT(COUNT(*) - 1e9)", None),
        ("EXP(COUNT(*) * 1e6)", None),
        ("POWER(-COUNT(*), 0.5)", None),
        ("COUNT(*) * 1e308 * 1e308", None),
        ("CAST(COUNT(*) AS TINYINT)", None),
        ("CAST(COUNT(*) * 1e9 AS INTEGER)", None),
        ("COUNT(*) * 9223372036854775807", None),
        ("COUNT(*) + 9223372036854775807", None),
        ("SUBSTR('abc', COUNT(*) * 1000000000000)", None),
        ("CAST('abc' || CAST(COUNT(*) AS VARCHAR) AS INTEGER)", None),
        ("COUNT(*) // 0", None),
        ("COUNT(*) % 0", None),
        ("COALESCE(COUNT(*) / 0, -1)", -1.0),
        ("COALESCE(COUNT(*) * 9223372036854775807, -1)", -1),
        ("CASE WHEN COUNT(*) / 0 > 3 THEN 'more' ELSE 'less' END", "less"),
        ("1 + COALESCE(CAST(COUNT(*) AS TINYINT), 4)", 5),
        ("COUNT(*) / 100", 3.0),
    ],
)
def test_what_has_no_value_is_null_where_it_stands(value: str, expected: Any) -> None:
    """Among them all that once were infinite, or failed after they were paid for."""
    release = answer(f"SELECT {value} AS v, COUNT(*) AS n FROM visits")
    assert release.rows == ((expected, 300),)
    assert not any("post-processing" in note for note in release.notes)
    [interval] = release.intervals().get("v", [None])
    assert expected is not None or interval is None


def test_quotients_of_nothing_are_null() -> None:
    """On an empty table, where noisy counts are as often zero as not; 60 answers, of which some are NULL."""
    asked = database(0).sql("SELECT SUM(cost) / COUNT(*) AS a, COUNT(cost) / COUNT(*) AS b FROM visits")
    found = [
        value for _ in range(60) for value in asked.database.ask(asked.request, epsilon=8).release().rows[0]
    ]
    assert None in found
    assert all(value is None or math.isfinite(value) for value in found)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, NTILE(-COUNT(*)) OVER (ORDER BY region) AS t FROM visits GROUP BY region",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING region = COUNT(*)",
        GROUPS + "SELECT (SELECT n FROM r WHERE n > 90 AND n < 110) AS x",
    ],
)
def test_what_fails_on_these_numbers_shows_the_noisy_table(text: str) -> None:
    release = answer(text)
    assert release.columns == ("region", "count(*)")
    assert release.rows == (("north", 100), ("south", 100), ("west", 100))
    assert len(release.intervals()["count(*)"]) == 3 and release.receipt
    assert [note for note in release.notes if "nothing is lost" in note]
    again = Release.from_json(release.to_json())
    assert again.rows == release.rows and again.notes == release.notes


def test_of_several_tables_the_first_is_shown_and_all_are_kept() -> None:
    text = (
        GROUPS + ", s AS (SELECT COUNT(*) AS m FROM visits) SELECT n, NTILE(-m) OVER (ORDER BY n) FROM r, s"
    )
    release = answer(text)
    assert len(release.tables) == 2 and len(release.rows) == 3
    assert any("the first of 2" in note for note in release.notes)


def test_a_subquery_of_several_declared_groups_is_refused_before_it_is_paid_for() -> None:
    opened = database()
    with pytest.raises(QueryRefused, match="More than one row") as refused:
        opened.sql(GROUPS + "SELECT (SELECT n FROM r) AS x", epsilon=1).release()
    assert refused.value.hints and opened.budget.spent == 0
    for one in ("SELECT (SELECT MAX(n) FROM r) AS x", "SELECT (SELECT n FROM r ORDER BY n LIMIT 1) AS x"):
        assert 95 < opened.sql(GROUPS + one, epsilon=1e4).release().rows[0][0] < 105
    largest = "SELECT region FROM r WHERE n = (SELECT MAX(n) FROM r) LIMIT 1"
    assert len(opened.sql(GROUPS + largest, epsilon=1e4).release()) == 1


def test_infinite_ends_of_intervals_stay() -> None:
    """A quotient by what may be zero has an interval without end, and so has a hundred times it."""
    assert _through('"x" * 100', [-math.inf, math.inf, 1.0]) == [-math.inf, math.inf, 100.0]
    assert _through('CAST("x" AS TINYINT)', [5, 1000]) == [5, None]
