"""Late rows are found in files that changed, and in no other: the same rows count as if all were read."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.backends import PeriodRows
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.duckdb.period_rows import _period
from sfumato.continual.periods import Periods
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import EngineFailure
from tests.continual.test_streams import changed, outputs
from tests.continual.visits import Visit, database, day, stream, visits_table
from tests.soaked import rest_soaked

COUNT = "SELECT COUNT(*) AS n FROM visits"
LATE = 2
Files = dict[str, list[Visit]]


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is published is exact, and the choice of groups the same in every run."""
    monkeypatch.setattr(GaussianNoise, "draw", lambda self, size=None: np.zeros(size or 1, dtype=np.int64))
    monkeypatch.setattr("secrets.randbits", lambda bits: 12345)
    yield


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Which files were read for late rows, by period: "none", their places, or None, which is all."""
    found: list[Any] = []
    run = DuckDBBackend.run

    def noted(self: DuckDBBackend, query: Any, *, rows: PeriodRows | None = None, **more: Any) -> Any:
        found.append("none" if rows is None else rows.parts)
        return run(self, query, rows=rows, **more)

    monkeypatch.setattr(DuckDBBackend, "run", noted)
    return found


def visit(person: int, at: int, place: str = "a") -> Visit:
    return (person, at, place, 5.0)


def written(folder: Path, files: Files) -> list[Path]:
    """Write files that differ from what is there, and take away others."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.stem not in files:
            path.unlink()
    paths = {name: folder / f"{name}.parquet" for name in sorted(files)}
    for name, path in paths.items():
        table = visits_table(files[name])
        if not path.exists() or not pq.read_table(path).equals(table):
            pq.write_table(table, path)
    return list(paths.values())


def published(folder: Path, days: Sequence[Files | None], sql: str = COUNT, **more: Any) -> Any:
    """Publish one day after the other, each from the files as they are then; without files a day fails."""
    there: list[Path] = []
    options = {"horizon": len(days), "late": LATE, "max_rows": 3} | more
    most = options.pop("max_rows")
    for until, files in enumerate(days, start=1):
        there = there if files is None else written(folder, files)
        db = database(there, folder.with_suffix(".ledger"), max_rows=most)
        with pytest.MonkeyPatch.context() as patched:
            if files is None:
                patched.setattr(DuckDBBackend, "run", Mock(side_effect=EngineFailure()))
            try:
                release = stream(db, sql, **options).advance(day(until))
            except EngineFailure:
                assert files is None
        db.ledger.close()
    return release


def counts(release: Any) -> list[int | None]:
    found = outputs(release)["m0"][:, 0].tolist()
    return [int(found.pop(0)) if at in release.outputs else None for at in range(1, len(release) + 1)]


def expected(days: Sequence[Files | None], *, by_person: bool = True, most: int = 3) -> list[int | None]:
    """Return what is published, given what all files hold.

    By person, all rows of the last days count of whoever was not counted; else those that were not seen.
    """
    counted: set[int] = set()
    seen: Counter[Visit] = Counter()
    found: list[int | None] = []
    for today, files in enumerate(days):
        if files is None:
            found.append(None)
            continue
        held = [row for listed in files.values() for row in listed if today - LATE <= row[1] <= today]
        rows = Counter(row for row in held if not by_person or row[0] not in counted)
        if not by_person:
            rows -= Counter({row: many for row, many in seen.items() if row[1] < today})
        counted |= {row[0] for row in rows}
        seen += rows
        people = Counter(row[0] for row in rows.elements())
        found.append(sum(min(many, most) for many in people.values()))
    return found


def test_only_files_that_changed_are_read_for_late_rows(tmp_path: Path, read: list[Any]) -> None:
    """Also one with as many rows and bytes as before, and those after a day that failed."""
    first = {"0": [visit(1, 0), visit(9, 4)]}
    second = first | {"1": [visit(2, 1), visit(1, 1)]}
    third = second | {"2": [visit(3, 2), visit(4, 0), visit(4, 1), visit(2, 2)]}
    fourth = third | {"0": [visit(5, 2), visit(9, 4)], "3": [visit(6, 3)]}
    days = [first, second, third, third, fourth, None, fourth | {"5": [visit(7, 5)]}]
    assert counts(published(tmp_path / "files", days)) == [1, 1, 3, 0, 3, None, 1] == expected(days)
    assert read == ["none", (1,), (2,), "none", (0, 3), None]


def simulated(seed: int) -> list[Files | None]:
    """Files with rows that are early, in time, late and too late; they come, change and go; a day fails."""
    random = np.random.default_rng(seed)
    files: Files = {}
    days: list[Files | None] = []

    def row(today: int) -> Visit:
        return visit(int(random.integers(40)), int(max(0, today + random.choice([1, 0, 0, 0, -1, -2, -3]))))

    for today in range(7):
        files = {name: list(rows) for name, rows in files.items()}
        if files and random.random() < 0.5:
            name = str(random.choice(sorted(files)))
            match random.integers(3):
                case 0:
                    files[name][int(random.integers(len(files[name])))] = row(today)
                case 1:
                    files[name].append(row(today))
                case 2 if len(files) > 1:
                    del files[name]
        files[f"{today}"] = [row(today) for _ in range(8)]
        days.append(None if today == 1 + seed % 5 else files)
    return days


CASES = [(seed, told) for seed in range(24) for told in ("by person", "by row", "by row, one hash")]


@pytest.mark.parametrize("case", rest_soaked(CASES, every=25, of_soak=3), ids=str)
def test_the_same_counts_as_if_all_files_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[int, str]
) -> None:
    """Also where all rows of a person have one hash."""
    seed, told = case
    days, by_person = simulated(seed), told == "by person"
    if told.endswith("one hash"):
        monkeypatch.setattr("sfumato.backends.duckdb.period_rows._HASH", "0::UBIGINT")
    more = {} if by_person else {"participation": sf.Participation(periods=len(days))}
    assert counts(published(tmp_path / "files", days, **more)) == expected(days, by_person=by_person)


@pytest.mark.parametrize("every", ["hour", "day", "week", "month"])
def test_rows_of_different_periods_differ(every: str) -> None:
    """The engine numbers periods as `Periods` does, from the first moment to the last."""
    periods = Periods(every=every, start=datetime.datetime(1969, 11, 1), horizon=500)
    tick, found = datetime.timedelta(microseconds=1), []
    for number in range(1, 501):
        first, last = periods.begin(number), periods.end(number) - tick
        texts = [f"TIMESTAMP '{first}'", f"TIMESTAMP '{last}'"]
        texts += [] if every == "hour" else [f"DATE '{first.date()}'", f"DATE '{last.date()}'"]
        found.append([_period(text, every, periods.start) for text in texts])
    listed = ", ".join(f"[{', '.join(texts)}]" for texts in found)
    numbers = duckdb.execute(f"SELECT unnest([{listed}])").fetchall()
    assert all(len(set(one)) == 1 for (one,) in numbers)
    assert [one[0] - numbers[0][0][0] for (one,) in numbers] == list(range(500))


def test_files_are_read_again_if_a_public_table_changes(tmp_path: Path, read: list[Any]) -> None:
    """A row that had no match has one now; whoever was counted is not counted again."""
    files = written(tmp_path / "files", {"0": [visit(1, 0, "a"), visit(2, 0, "b")], "1": [visit(3, 1, "a")]})
    found = []
    for until, places in ((1, ["a"]), (2, ["a", "b"])):
        db = database(files, tmp_path / "ledger", public={"places": pa.table({"known": places})})
        sql = "SELECT COUNT(*) AS n FROM visits JOIN places ON place = known"
        found = counts(stream(db, sql, horizon=2).advance(day(until)))
        db.ledger.close()
    assert found == [1, 2] and read == ["none", None]


def test_rows_that_count_together_are_remembered(tmp_path: Path) -> None:
    """Where a person's rows decide together what counts, those that were seen are left out, as ever."""
    own = "SELECT person, COUNT(*) AS many FROM visits GROUP BY person"
    sql = f"SELECT COUNT(*) AS n FROM ({own}) WHERE many > 1"
    first = {"0": [visit(1, 0), visit(2, 0), visit(2, 0)]}
    days: list[Files | None] = [first, first | {"1": [visit(1, 1)]}]
    release = published(tmp_path / "files", days, sql)
    assert not release.stream.late_by_person and counts(release) == [1, 0]
    often = {"participation": sf.Participation(periods=2)}
    for more in ({"duplicates": "once"}, often, {"late": 0}):
        assert not stream(database([]), COUNT, **more).priced().late_by_person
    for more, by_file in (({"duplicates": "once"}, False), (often, True), ({**often, "row_id": "at"}, False)):
        assert stream(database([]), COUNT, **more).priced().late_by_file is by_file


@pytest.mark.parametrize(
    "case", rest_soaked([(True, 1), (False, 1), (True, 5), (False, 5)], every=3), ids=str
)
def test_one_person_changes_no_more_than_was_claimed(tmp_path: Path, case: tuple[bool, int]) -> None:
    """One who has rows every day, also late ones: in files of each day, or so that old files change."""
    rewrites, periods = case
    cap = sf.Participation(periods=periods)

    def files(until: int, greedy: bool) -> Files:
        found: Files = {str(at): [] for at in range(until)}
        for person in range(30):
            arrives = person % 5 + person % 3
            if arrives < until:
                found[str(arrives)].append(visit(person, person % 5, "abc"[person % 3]))
        if greedy:
            for at in range(until):
                own = [visit(999, max(0, at - back), place) for back in range(3) for place in "abc"]
                found[str(at)] += own * (1 + rewrites * until)
        return found

    sql = "SELECT place, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY place"
    runs = [
        published(
            tmp_path / str(greedy), [files(until, greedy) for until in range(1, 6)], sql, participation=cap
        )
        for greedy in (True, False)
    ]
    assert 0.05 < max(changed(*runs).values()) <= 1
    difference = outputs(runs[0])["m0"] - outputs(runs[1])["m0"]
    assert np.flatnonzero(difference.any(axis=1)).tolist() == list(cap.earliest(5))
    assert (difference >= 0).all(), "nobody else counts less"
