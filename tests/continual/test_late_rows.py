"""Late rows, duplicates and rows of periods that failed: which count, when, and for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.continual.stream_release import StreamRelease
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import EngineFailure, InvalidArgument
from tests.continual.test_streams import changed, outputs
from tests.continual.visits import Visit, database, day, stream
from tests.soaked import rest_soaked

COUNT = "SELECT COUNT(*) AS n FROM visits"
SUM = "SELECT COUNT(*) AS n, SUM(cost) AS cost FROM visits"


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is published is exact, and the choice of groups the same in every run."""
    monkeypatch.setattr(GaussianNoise, "draw", lambda self, size=None: np.zeros(size or 1, dtype=np.int64))
    monkeypatch.setattr("secrets.randbits", lambda bits: 12345)
    yield


def visit(person: Any, at: int, cost: float = 5.0, place: str = "a") -> Visit:
    return (person, at, place, cost)


def published(
    ledger: Path, tables: Sequence[Sequence[Visit]], sql: str = COUNT, **more: Any
) -> StreamRelease:
    """Publish one day after the other, each from the table as it is then; a table that is empty fails."""
    often = sf.Participation(periods=len(tables))
    names = isinstance(tables[0][0][0], str)
    for until, rows in enumerate(tables, start=1):
        db = database(rows, ledger, names=names)
        with pytest.MonkeyPatch.context() as patched:
            if not rows:
                patched.setattr(type(db.backend), "run", Mock(side_effect=EngineFailure()))
            asked = stream(db, sql, **({"horizon": len(tables), "participation": often} | more))
            try:
                release = asked.advance(day(until))
            except EngineFailure:
                assert not rows
        db.ledger.close()
    return release


def counts(*given: Any, **more: Any) -> list[int | None]:
    release = published(*given, **more)
    found = outputs(release)["m0"][:, 0].tolist()
    return [int(found.pop(0)) if at in release.outputs else None for at in range(1, len(release) + 1)]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [1, 2, 1, 1]),
        ({"late": 1}, [1, 2, 0, 1]),
        ({"late": 0}, [1, 1, 0, 1]),
        ({"duplicates": "once"}, [1, 2, 0, 1]),
    ],
    ids=str,
)
def test_late_rows_count_in_the_next_period_and_once(
    tmp_path: Path, more: dict[str, Any], expected: list[int]
) -> None:
    """In the second day a row has come late, in the third one is there again."""
    one, late, last = visit("p1", 0), visit("p2", 0), visit("p3", 3)
    two = [one, late, visit("p3", 1)]
    assert counts(tmp_path / "ledger", [[one], two, [one, *two], [one, *two, last]], **more) == expected


def test_answers_say_which_rows_are_left_out() -> None:
    for late, said in ((7, "more than 7 days after their own"), (0, "after their day was published")):
        told = stream(database([]), COUNT, late=late).advance(day(1))
        assert any(said in note for note in told.total().notes)


def test_a_row_is_what_the_question_reads_of_it(tmp_path: Path) -> None:
    """A value that was corrected is another row, unless a column says which row it is."""
    tables = [[visit(1, 0, 5.0)] * 2, [visit(1, 0, 7.0)] * 2]
    assert counts(tmp_path / "count", tables) == [2, 0]
    assert counts(tmp_path / "sum", tables, SUM) == [2, 2]
    assert counts(tmp_path / "id", tables, SUM, row_id="place") == [2, 0]
    assert counts(tmp_path / "once", tables, SUM, row_id="place", duplicates="once") == [1, 0]
    for wrong in ("person", "nothing"):
        with pytest.raises(InvalidArgument, match="row_id"):
            stream(database([]), row_id=wrong).start()


def test_duplicates_count_once(tmp_path: Path) -> None:
    twice, other = [visit(1, 0)] * 2, [visit(2, 0)]
    moved = [*twice, *other, visit(1, 1, place="a"), visit(2, 1, place="b")]
    assert counts(tmp_path / "a", [[*twice, *other], moved], duplicates="once") == [2, 2]
    assert counts(tmp_path / "b", [[*twice, *other], moved], duplicates="once", row_id="place") == [2, 1]
    assert counts(tmp_path / "c", [[*twice, *other], moved], duplicates="once", row_id="place", late=0) == [
        2,
        2,
    ]
    with pytest.raises(InvalidArgument, match="count once"):
        stream(database([]), duplicates="twice")
    for late, said in ((-1, "0 or more"), (10**9, "at most 10,000 periods")):
        with pytest.raises(InvalidArgument, match=said):
            stream(database([]), late=late)


def test_rows_of_a_period_that_failed_are_late(tmp_path: Path) -> None:
    rows = [visit(person, person % 4) for person in range(12)]
    tables = [[row for row in rows if row[1] < until] for until in range(1, 5)]
    tables[1] = []
    assert counts(tmp_path / "a", tables) == [3, None, 6, 3]
    assert counts(tmp_path / "b", tables, late=0) == [3, None, 3, 3]


def test_late_rows_are_an_appearance(tmp_path: Path) -> None:
    early, later = visit(1, 0), visit(1, 2)
    both = {"participation": sf.Participation(periods=1)}
    assert counts(tmp_path / "a", [[early], [early, early], [early, early, later]], **both) == [1, 0, 0]
    there = visit(2, 2)
    assert counts(tmp_path / "b", [[there], [there, early], [there, early, later]], **both) == [0, 1, 1]


def test_late_rows_of_people_who_are_named_in_another_table(tmp_path: Path) -> None:
    """Who they are is found through a key; conditions and joins of the question hold for late rows, too."""
    orders = pa.table({"order": [1, 2, 3], "customer": ["x", "y", "x"]})
    lines = [(1, 0, 5.0), (2, 0, 5.0), (2, 0, 5.0), (3, 0, 1.0), (3, 1, 7.0)]
    sql = "SELECT COUNT(*) AS n FROM lines JOIN kinds ON cost = price"
    for until, there in ((1, lines[:1]), (2, lines)):
        numbers, days, costs = zip(*there, strict=True)
        table = pa.table({"order": numbers, "day": [day(at) for at in days], "cost": costs})
        db = sf.connect(
            {"orders": orders, "lines": table},
            unit={"orders": "customer", "lines": "order -> orders.order -> customer"},
            public={"kinds": pa.table({"price": [5.0, 7.0]})},
            max_rows=3,
            budget=sf.Budget(epsilon=9, delta=1e-6),
            ledger=tmp_path / "ledger",
        )
        cap = sf.Participation(periods=2)
        release = stream(db, sql, horizon=2, participation=cap).advance(day(until))
        db.ledger.close()
    assert outputs(release)["m0"][:, 0].tolist() == [1, 3]


def test_rows_that_were_seen_through_another_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that hashes otherwise cannot tell: nothing is counted twice, and late rows are left out."""
    first, late = visit(1, 0), visit(2, 0)
    tables = [[first], [first, late, visit(3, 1)], [first, late, visit(3, 1), visit(4, 1), visit(5, 2)]]
    options = {"horizon": 3, "participation": sf.Participation(periods=3)}
    counts(tmp_path / "a", tables[:1], **options)
    monkeypatch.setattr("sfumato.backends.duckdb.period_rows.PROBE", "SELECT 1")
    monkeypatch.setattr("sfumato.backends.duckdb.backend.PROBE", "SELECT 1")
    release = None
    for until in (2, 3):
        release = stream(database(tables[until - 1], tmp_path / "a"), COUNT, **options).advance(day(until))
    assert release is not None
    assert outputs(release)["m0"][:, 0].tolist() == [1, 1, 2]


def test_a_state_forgets_what_is_too_old(tmp_path: Path) -> None:
    import sqlite3

    tables = [[visit(person, person) for person in range(until)] for until in range(1, 6)]
    published(tmp_path / "a", tables, late=2, participation=sf.Participation(periods=5, apart=3))
    [state] = (tmp_path / "a-streams").iterdir()
    with sqlite3.connect(state) as connection:
        kept = connection.execute("SELECT kind, period FROM remembered ORDER BY 1, 2").fetchall()
    connection.close()
    assert kept == [("parts", 5), ("people", 4), ("people", 5), ("rows", 4), ("rows", 5)]


# -- what one person changes ------------------------------------------------------------------------

HORIZON = 5
CASES = [
    (periods, apart, duplicates)
    for duplicates in ("count", "once")
    for periods, apart in ((2, 2), (1, 1), (2, 3), (HORIZON, 1))
]


@pytest.mark.parametrize("case", rest_soaked(CASES, every=4), ids=str)
def test_one_person_changes_no_more_than_was_claimed(tmp_path: Path, case: tuple[int, int, str]) -> None:
    """Whoever has rows every day, early, late and again, also such as others have; or no row at all."""
    periods, apart, duplicates = case

    def table(until: int, greedy: bool) -> list[Visit]:
        found = []
        for person in range(30):
            own = visit(person, person % HORIZON, 5.0, "abc"[person % 3])
            delay = person % 3  # days until the row is there; after two days it is there once more
            found += [own] * ((until > own[1] + delay) + (until > own[1] + 2))
        if greedy:
            own = [
                visit(999, at, cost, place) for at in range(until) for place in "abc" for cost in (5.0, 10.0)
            ]
            found = own * (until + 3) + found
        return found

    cap = sf.Participation(periods=periods, apart=apart)
    sql = "SELECT place, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY place"
    options = {"participation": cap, "duplicates": duplicates, "late": 2}
    runs = [
        published(tmp_path / str(greedy), [table(at, greedy) for at in range(1, HORIZON + 1)], sql, **options)
        for greedy in (True, False)
    ]
    parts = changed(*runs)
    assert 0.05 < max(parts.values()) <= 1, parts
    moved = (outputs(runs[0])["m0"] - outputs(runs[1])["m0"]).any(axis=1)
    assert np.flatnonzero(moved).tolist() == list(cap.earliest(HORIZON))
    assert (outputs(runs[0])["m0"] >= outputs(runs[1])["m0"]).all(), "nobody else counts less"
