"""Free answers: what a released table determines costs nothing and covers, for the same data and caps."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.workloads.marginal_release import Marginals

ROWS = 3_000
PLACES = tuple(range(2_000))
PEOPLE = pa.table(
    {
        "person": range(ROWS),
        "region": [("north", "south", "west")[at % 3] for at in range(ROWS)],
        "kind": [("a", "b", "c", None)[at % 4] for at in range(ROWS)],
        "age": [20 + at % 60 for at in range(ROWS)],
        "place": [at % 2_000 for at in range(ROWS)],
    }
)
COLUMNS: dict[str, Any] = {
    "age": sf.between(0, 110),
    "region": sf.one_of("north", "south", "west"),
    "kind": sf.one_of("a", "b", "c"),
    "place": sf.one_of(*PLACES),
}
TWO_WAY = "SELECT region, kind, COUNT(*) AS n, SUM(age) AS age FROM people GROUP BY region, kind"


def database(people: pa.Table = PEOPLE, **changes: Any) -> sf.Database:
    arguments: dict[str, Any] = {
        "unit": None,
        "name": "people",
        "columns": COLUMNS,
        "budget": sf.Budget(epsilon=9, delta=1e-7),
    }
    return sf.connect(people, **{**arguments, **changes})


@pytest.fixture(scope="module")
def asked() -> tuple[sf.Database, sf.Release]:
    db = database()
    return db, db.sql(TWO_WAY, epsilon=1).release()


DETERMINED = (
    ("SELECT region, COUNT(*) AS n FROM people GROUP BY region", 3),
    ("SELECT kind, SUM(age) AS age, COUNT(*) AS n FROM people GROUP BY kind ORDER BY kind DESC", 3),
    ("SELECT COUNT(*) AS n, SUM(age) AS age FROM people", 9),
    ("SELECT COUNT(*) AS n FROM people WHERE kind = 'a'", 3),
    (
        "SELECT region, COUNT(*) AS n FROM people WHERE kind IN ('a', 'c') AND region <> 'west' GROUP BY 1",
        2,
    ),
    ("SELECT region, COUNT(*) FILTER (WHERE kind = 'b') AS n FROM people GROUP BY region", 1),
    (
        "SELECT CASE WHEN region = 'west' THEN 'w' ELSE 'e' END AS s, COUNT(*) AS n FROM people GROUP BY 1",
        6,
    ),
    ("SELECT kind, region, SUM(age) AS age FROM people GROUP BY kind, region", 1),
    ("SELECT p.kind, COUNT(*) AS n FROM people AS p WHERE p.region = 'west' GROUP BY p.kind", 1),
    ("SELECT region, kind, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, kind)", 9),
)


@pytest.mark.parametrize(("text", "cells"), DETERMINED)
def test_sums_of_cells_are_free(asked: tuple[sf.Database, sf.Release], text: str, cells: int) -> None:
    """The answer is what DuckDB makes of the released table, and the charge is nothing."""
    db, released = asked
    spent, history = db.balance.spent_units, len(db.ledger.history())
    assert "without a charge" in repr(db.sql(text, epsilon=0.1)) and "without a charge" in repr(db.sql(text))
    answer = db.sql(text, free=True).release()
    assert (db.balance.spent_units, len(db.ledger.history())) == (spent, history)
    assert answer.cost["epsilon"] == 0 and any("nothing was charged" in note for note in answer.notes)
    connection = duckdb.connect()
    connection.register("released", released.to_arrow())
    sums = text.replace("COUNT(*)", "SUM(n)").replace("FROM people", "FROM released")
    truth = connection.execute(sums).fetchall()
    assert sorted(map(repr, answer.rows)) == sorted(repr(tuple(map(_plain, row))) for row in truth)
    noise = max(one.times if one.law.name == "laplace" else 1 for one in answer.tables[0].noises)
    assert noise in (1, cells)


@pytest.mark.soak
def test_generated_conditions_on_keys_mean_what_they_mean_to_the_engine(
    asked: tuple[sf.Database, sf.Release],
) -> None:
    """The sum of the cells that DuckDB finds, or a refusal where there is none."""
    db, released = asked
    connection, source = duckdb.connect(), random.Random(5)
    connection.register("released", released.to_arrow())
    for _ in range(25):
        where = _condition(source, 2)
        [(total,)] = connection.execute(f"SELECT SUM(n) FROM released WHERE {where}").fetchall()
        found = db.sql(f"SELECT COUNT(*) AS n FROM people WHERE {where}").from_releases()
        assert (None if found is None else found.release.rows[0][0]) == (
            None if total is None else int(total)
        )


def _condition(source: random.Random, depth: int) -> str:
    if depth and source.random() < 0.7:
        first, second = (_condition(source, depth - 1) for _ in range(2))
        return source.choice((f"({first} AND {second})", f"({first} OR {second})", f"NOT ({first})"))
    return source.choice(
        (
            f"region = '{source.choice(('north', 'south', 'west'))}'",
            f"kind <> '{source.choice('abc')}'",
            f"region || kind IN ('north{source.choice('abc')}', 'west{source.choice('abc')}')",
            f"length(region) {source.choice('<>=')} 5",
            f"CASE kind WHEN 'a' THEN region = 'west' WHEN 'b' THEN NULL ELSE {source.random() < 0.5} END",
        )
    )


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) or hasattr(value, "as_tuple") else value


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_intervals_of_sums_cover(noise: str) -> None:
    """Of 2,000 independent sums of three cells, at most 165 and at least 33 miss their 95% interval.

    False alarm below 1e-9: half-widths are whole, so that a sum misses with a chance of 0.0482 (Laplace) or
    0.0428 (Gaussian), and a binomial of 2,000 is then outside with a chance below 1e-10. Power: the noise of
    one cell instead of three misses 470 times, three times the width of one cell never.
    """
    db = database(budget=sf.Budget(epsilon=9, delta=1e-7))
    db.sql(
        "SELECT place, kind, COUNT(*) AS n FROM people GROUP BY place, kind", epsilon=1, noise=noise
    ).release()
    answer = db.sql("SELECT place, COUNT(*) AS n FROM people GROUP BY place", free=True).release()
    place, kind = (PEOPLE[name].to_pylist() for name in ("place", "kind"))
    truth = np.bincount([at for at, one in zip(place, kind, strict=True) if one], minlength=len(PLACES))
    ends = zip(answer.column("place"), answer.intervals()["n"], strict=True)
    missed = sum(not low <= truth[at] <= high for at, (low, high) in ends)
    assert 33 <= missed <= 165
    assert any("`kind` is NULL" in note for note in answer.notes)  # a fourth of the rows is in no cell


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM people WHERE age > 30",
        "SELECT COUNT(*) AS n FROM people WHERE kind IS NULL",
        "SELECT place, COUNT(*) AS n FROM people GROUP BY place",
        "SELECT COUNT(DISTINCT age) AS n FROM people",
        "SELECT MAX(age) AS n FROM people",
        "SELECT SUM(age, contribution_bounds_per_group => (0, 50)) AS n FROM people",
        "SELECT SUM(age + 1) AS n FROM people",
        "SELECT age, COUNT(*) AS n FROM people GROUP BY age",
    ],
)
def test_what_the_table_does_not_say_is_refused(asked: tuple[sf.Database, sf.Release], text: str) -> None:
    db, _ = asked
    with pytest.raises(QueryRefused) as refusal:
        db.sql(text, free=True).release()
    assert refusal.value.code == "SF409" and "refused" in repr(db.sql(text, free=True))
    assert "without a charge" not in repr(db.sql(text, epsilon=0.1))


TOTAL = "SELECT COUNT(*) AS n FROM people"
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


@pytest.mark.parametrize(
    "options",
    [{"min_units": 5}, {"keys": "selected"}, {"keys": "selected", "others": True}],
    ids=["few units", "selected", "others"],
)
def test_groups_that_may_be_missing_determine_nothing(options: Any) -> None:
    db = database()
    db.sql(BY_REGION, epsilon=1, **options).release()
    assert db.sql(TOTAL).from_releases() is None and db.sql(BY_REGION).from_releases() is None
    db.sql(BY_REGION, epsilon=1).release()
    assert db.sql(TOTAL).from_releases() is not None
    assert db.sql(BY_REGION, **options).from_releases() is None  # it may show fewer


def test_a_filtered_table_is_about_fewer_rows() -> None:
    db = database()
    db.sql("SELECT region, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY region", epsilon=1).release()
    assert db.sql(TOTAL).from_releases() is None
    assert db.sql(f"{TOTAL} WHERE age > 31").from_releases() is None
    for same in ("WHERE age > 30", "WHERE region = 'west' AND age > 30"):
        assert db.sql(f"{TOTAL} {same}").from_releases() is not None


def test_releases_are_found_after_a_restart_for_the_same_data_and_declarations(tmp_path: Path) -> None:
    ledger, data = tmp_path / "people.ledger", tmp_path / "people.parquet"
    pq.write_table(PEOPLE, data)
    first = database(str(data), ledger=ledger)
    first.workload([BY_REGION, "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind"], epsilon=1).release()
    again = database(str(data), ledger=ledger)
    assert again.sql(TOTAL, free=True).release().cost["epsilon"] == 0
    narrower = database(str(data), ledger=ledger, columns={**COLUMNS, "region": sf.one_of("north", "south")})
    assert narrower.sql(TOTAL).from_releases() is None
    pq.write_table(PEOPLE.slice(1), data)
    assert database(str(data), ledger=ledger).sql(TOTAL).from_releases() is None


def test_caps_must_mean_the_same() -> None:
    """Where a unit is in several cells, a sum of capped cells is not the capped sum; the same cells are."""
    several = PEOPLE.set_column(0, "person", [[at // 3 for at in range(ROWS)]])
    db = database(several, unit="person", max_groups=2, max_rows=2)
    mean = "SELECT region, COUNT(*) AS n, AVG(age) AS age, MEDIAN(age) AS mid FROM people GROUP BY region"
    released = db.sql(mean, epsilon=1).release()
    assert db.sql(TOTAL).from_releases() is None
    assert db.sql(BY_REGION, max_groups=1).from_releases() is None
    again = db.sql(mean, free=True).release()
    assert again.rows == released.rows and again.intervals() == released.intervals()
    assert db.sql(BY_REGION, free=True).release().column("n") == released.column("n")
    assert db.sql(mean.replace("MEDIAN(age)", "QUANTILE(age, 0.9)")).from_releases() is None
    single = database(several, unit="person", max_groups=1, max_rows=1)
    single.sql(BY_REGION, epsilon=1).release()
    answer = single.sql(TOTAL, free=True).release()
    assert any("several rows" in note for note in answer.notes)
    low, high = answer.intervals(1 - 1e-10)["n"][0]
    assert low <= ROWS // 3 <= high  # each person once


def test_sums_of_the_same_cells_have_no_interval_of_their_ratio(
    asked: tuple[sf.Database, sf.Release],
) -> None:
    """Their noise is shared: an interval for independent noise would be wrong where a ratio is negative."""
    db, _ = asked
    share = "SELECT COUNT(*) FILTER (WHERE kind = 'b') / COUNT(*) AS share FROM people"
    answer = db.sql(share, free=True).release()
    assert answer.intervals() == {} and 0.2 < answer.rows[0][0] < 0.5
    mean = db.sql("SELECT SUM(age) / COUNT(*) AS mean FROM people", free=True).release()
    assert set(mean.intervals()) == {"mean"}  # of two measurements


def test_what_was_chosen_from_a_histogram_is_not_the_histogram() -> None:
    db = database()
    counted = (
        "SELECT region, COUNT(*) AS n, COUNT(*) FILTER (WHERE age > 30) AS old FROM people GROUP BY region"
    )
    db.sql(counted, epsilon=1).release()
    assert db.sql("SELECT COUNT(*) FILTER (WHERE age > 30) AS old FROM people").from_releases() is not None
    for paid, other in (("MODE(kind)", "HISTOGRAM(kind)"), ("MEDIAN(age)", "HISTOGRAM(age)")):
        db.sql(f"SELECT {paid} AS x FROM people", epsilon=1).release()
        assert db.sql(f"SELECT {paid} AS x FROM people").from_releases() is not None
        assert db.sql(f"SELECT {other} AS x FROM people").from_releases() is None


def test_the_best_release_answers() -> None:
    db = database()
    for epsilon in (0.2, 2, 0.1):
        db.sql(BY_REGION, epsilon=epsilon).release()
    found = db.sql(TOTAL).from_releases()
    assert found is not None and found.numbers == (db.ledger.history()[1].sequence,)


def test_python_asks_the_same(asked: tuple[sf.Database, sf.Release]) -> None:
    db, _ = asked
    built = db.table("people").where(sf.col("kind") == "a").agg(n=sf.count())
    same = db.sql("SELECT COUNT(*) AS n FROM people WHERE kind = 'a'", free=True).release()
    assert built.ask(free=True).release().rows == same.rows


def test_what_another_analyst_was_told_is_not_free() -> None:
    """A grant bounds what one analyst learns; the owner may learn what anybody did."""
    db = database()
    for name in ("alice", "bob"):
        db.ledger.grant(db.unit, name, db.terms)
    alice, bob = (replace(db, analyst=name) for name in ("alice", "bob"))
    alice.sql(BY_REGION, epsilon=0.5).release()
    assert alice.sql(TOTAL).from_releases() is not None and db.sql(TOTAL).from_releases() is not None
    assert bob.sql(TOTAL).from_releases() is None
    with pytest.raises(QueryRefused) as refusal:
        bob.sql(TOTAL, free=True).release()
    assert refusal.value.code == "SF409"


MARGINAL_QUESTIONS: tuple[tuple[str, list[dict[str, Any]]], ...] = (
    ("SELECT COUNT(*) AS n FROM people", [{}]),
    ("SELECT COUNT(*) AS n FROM people WHERE kind = 'a'", [{"kind": "a"}]),
    (
        "SELECT region, COUNT(*) AS n FROM people WHERE kind IN ('a', 'c') AND region <> 'west' GROUP BY 1",
        [{"region": region, "kind": ["a", "c"]} for region in ("north", "south")],
    ),
    (
        "SELECT p.kind, COUNT(*) FILTER (WHERE p.region = 'west') AS n FROM people AS p GROUP BY p.kind",
        [{"region": "west", "kind": kind} for kind in "abc"],
    ),
    (
        "SELECT region, COUNT(*) AS n FROM people GROUP BY ROLLUP (region)",
        [{"region": region} for region in ("north", "south", "west")] + [{}],
    ),
)


@pytest.fixture(scope="module")
def marginals() -> tuple[sf.Database, Marginals]:
    db = database()
    tables = [("region", "kind"), ("region", "age"), ("place",)]
    return db, db.marginals(tables, bins={"age": 5}, epsilon=1).release()


@pytest.mark.parametrize(("text", "cells"), MARGINAL_QUESTIONS)
def test_sums_of_cells_of_marginals_are_free(
    marginals: tuple[sf.Database, Marginals], text: str, cells: list[dict[str, Any]]
) -> None:
    """Numbers and deviations are those of `Marginals.count`, and cover what is counted."""
    db, released = marginals
    spent = db.balance.spent_units
    assert "without a charge" in repr(db.sql(text, epsilon=0.1))
    answer = db.sql(text, free=True).release()
    assert db.balance.spent_units == spent and answer.cost["epsilon"] == 0
    counts = [released.count(**one) for one in cells]
    assert answer.column("n") == pytest.approx([one.value for one in counts], abs=0.501)  # whole numbers
    [table] = answer.tables
    deviations = [
        float(one) / fitted.parts
        for groups in table.groups
        for fitted in (groups.fitted or {}).values()
        for one in fitted.deviations
    ]
    assert deviations == pytest.approx([one.deviation for one in counts], rel=1e-9)
    for one, count in zip(cells, counts, strict=True):
        listed = {name: value if isinstance(value, list) else [value] for name, value in one.items()}
        exact = sum(
            row["kind"] is not None and all(row[name] in values for name, values in listed.items())
            for row in PEOPLE.to_pylist()
        )
        assert abs(count.value - exact) < 8 * count.deviation  # false alarm below 1e-14


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(age) AS age FROM people",
        "SELECT SUM(age) AS age FROM people",
        "SELECT COUNT(age) AS n FROM people",
        "SELECT COUNT(*) AS n FROM people WHERE age < 40",
        "SELECT COUNT(*) AS n FROM people WHERE kind IS NULL",
        "SELECT COUNT(*) AS n FROM people WHERE kind = 'a' AND place = 3",  # in no table together
    ],
)
def test_what_marginals_do_not_determine(marginals: tuple[sf.Database, Marginals], text: str) -> None:
    with pytest.raises(QueryRefused, match="SF409"):
        marginals[0].sql(text, free=True).release()
    with pytest.raises(QueryRefused, match="SF409"):  # estimates are not raised to zero
        marginals[0].sql("SELECT COUNT(*) AS n FROM people", free=True, non_negative=True).release()


def test_marginals_of_some_rows_determine_questions_about_these_rows() -> None:
    db = database()
    released = db.marginals(["region", "kind"], where=sf.col("age") < 40, epsilon=1).release()
    with pytest.raises(QueryRefused, match="SF409"):
        db.sql("SELECT COUNT(*) AS n FROM people WHERE kind = 'a'", free=True).release()
    text = "SELECT COUNT(*) AS n FROM people WHERE kind = 'a' AND age < 40"
    [found] = db.sql(text, free=True).release().column("n")
    assert found == pytest.approx(released.count(kind="a").value, abs=0.501)


def test_marginals_of_units_in_several_cells_determine_nothing() -> None:
    caps = {"unit": "person", "max_groups": 2, "max_rows": 1}
    db = database(**caps)
    db.marginals(["region", "kind"], epsilon=1).release()
    for more in ({}, {"max_groups": 1}):
        with pytest.raises(QueryRefused, match="SF409"):
            db.sql("SELECT COUNT(*) AS n FROM people", free=True, **more).release()
