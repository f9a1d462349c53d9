"""What was paid for one version of the data is never answered from another."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.backends.duckdb.source import DuckDBTables
from sfumato.backends.files import Files, _stamp
from sfumato.backends.owned import read_owned
from sfumato.errors import BudgetExceeded, EngineFailure, InvalidArgument

YEARS = (1980, 1981)
COUNT = "SELECT COUNT(*) AS n FROM people WHERE born = {}"


def connect(folder: Path, source: object, **more: object) -> sf.Database:
    options = {
        "unit": "person",
        "name": "people",
        "budget": sf.Budget(epsilon=1),
        "ledger": folder / "people.ledger",
        "columns": {"born": sf.one_of(*YEARS)},
        "partition": "born",
        "max_rows": 1,
    }
    return sf.connect(source, **{**options, **more})


def written(path: Path, born: int, people: int = 50) -> Path:
    rows = {"person": list(range(people)), "born": [born] * people}
    if path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        pq.write_table(pa.table(rows), path)
    return path


def born(db: sf.Database, year: int) -> int:
    return int(db.sql(COUNT.format(year), epsilon=1).release().column("n")[0])


def test_a_csv_file_is_of_the_version_that_was_loaded(tmp_path: Path) -> None:
    """One session holds the old rows, one the new: a person is in a part of each, and pays for both."""
    old = connect(tmp_path, written(tmp_path / "people.csv", 1980))
    new = connect(tmp_path, written(tmp_path / "people.csv", 1981))
    assert old.backend.data_version() != new.backend.data_version()
    born(old, 1980)
    with pytest.raises(BudgetExceeded):
        born(new, 1981)
    again = connect(tmp_path, written(tmp_path / "people.csv", 1980))
    assert again.backend.data_version() == old.backend.data_version(), "the same bytes are the same version"


def test_a_csv_file_that_changes_while_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.backends.duckdb import source

    path, opening = written(tmp_path / "people.csv", 1980), source._open_files

    def slow(*given: Any, **options: Any) -> object:
        found = opening(*given, **options)
        written(path, 1981)
        return found

    monkeypatch.setattr(source, "_open_files", slow)
    with pytest.raises(InvalidArgument, match="changed while"):
        open_tables({"people": path})


@pytest.mark.parametrize("how", ["pandas", "arrow"])
def test_a_frame_that_is_changed_in_place_stays_as_it_was(tmp_path: Path, how: str) -> None:
    """Deviation of the noise: 1.4. Of 50 people none is seen in the other year, nor missed in the old one,
    but with a chance below 1e-9 (the count is 0 or 50, and the bound lies 25 away, three times)."""
    person, years = np.arange(50), np.full(50, 1980)
    frame: object = pd.DataFrame({"person": person, "born": years}, copy=False)
    if how == "arrow":
        frame = pa.table({"person": person, "born": years})
    db = connect(tmp_path, frame, budget=sf.Budget(epsilon=3))
    version = db.backend.data_version()
    before = born(db, 1980)
    years[:] = 1981
    assert set(np.asarray(frame["born"])) == {1981}, "the frame shares its memory"  # type: ignore[index]
    assert db.backend.data_version() == version
    assert abs(before - 50) < 25 and abs(born(db, 1980) - 50) < 25 and abs(born(db, 1981)) < 25
    changed = pa.table({"person": person, "born": years})
    assert connect(tmp_path, changed, budget=None).backend.data_version() != version


@pytest.mark.parametrize("act", ["in place", "replaced", "gone"])
def test_a_file_of_the_same_size_and_time_is_another_version(tmp_path: Path, act: str) -> None:
    path = written(tmp_path / "people.parquet", 1980)
    old, known = connect(tmp_path, path), os.stat(path)
    version = old.backend.data_version()
    born(old, 1980)
    other = written(tmp_path / "other.parquet", 1981)
    assert os.stat(other).st_size == known.st_size
    if act == "in place":
        path.write_bytes(other.read_bytes())
    elif act == "replaced":
        other.replace(path)
    else:
        path.unlink()
    if act != "gone":
        os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
        new = connect(tmp_path, path)
        assert new.backend.data_version() != version
        with pytest.raises(BudgetExceeded):
            born(new, 1981)
    spent = old.budget.spent
    with pytest.raises(InvalidArgument, match="has changed since it was opened"):
        born(old, 1981)
    assert old.budget.spent == spent, "refused before anything is charged"


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_file_that_changes_while_a_question_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """After the charge, before the answer: charged and not answered. What was loaded does not change."""
    from sfumato.backends.duckdb import backend

    path, computing = written(tmp_path / f"people.{form}", 1980), backend._groups

    def slow(*given: Any, **options: Any) -> object:
        written(path, 1981)
        return computing(*given, **options)

    db = connect(tmp_path, path)
    monkeypatch.setattr(backend, "_groups", slow)
    if form == "csv":
        born(db, 1980)
        return
    with pytest.raises(EngineFailure):
        born(db, 1980)
    assert db.budget.spent == 1 and not db.ledger.history()[-1].committed


def test_tables_that_were_opened_for_prices_are_not_asked(tmp_path: Path) -> None:
    source = open_tables({"people": written(tmp_path / "people.parquet", 1980)}, read=False)
    with pytest.raises(InvalidArgument, match="prices"):
        source.version()


def test_declared_texts_make_a_column_of_a_csv_file_text(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("person,zip,born\n1,12345,1980\n2,99999,1980\n")
    codes = {"zip": sf.one_of("01234", "12345"), "born": sf.one_of(*YEARS)}
    db = connect(tmp_path, tmp_path / "people.csv", columns=codes)
    assert [field.kind.value for field in db.catalog.tables[0].fields] == ["text", "text", "integer"]


@pytest.mark.parametrize("act", ["in place", "replaced"])
def test_a_change_in_the_middle_of_a_file_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """Its ends, its size and its time of modification are the same; the system's own record of it is not,
    however soon after the file was written, and where the clock of the system has steps of 10 ms."""

    def stat(path: Any) -> SimpleNamespace:
        known = real(path)
        found = {name: getattr(known, name) for name in dir(known) if name.startswith("st_")}
        return SimpleNamespace(**found | {"st_ctime_ns": known.st_ctime_ns // 10**7 * 10**7})

    real = os.stat
    monkeypatch.setattr("sfumato.backends.files.os", SimpleNamespace(**vars(os) | {"stat": stat}))
    path, other = tmp_path / "people.parquet", tmp_path / "other.parquet"
    for letter in (b"1", b"2") * 10:
        path.write_bytes(bytes(300_000))
        if act == "replaced":
            other.write_bytes(bytes(150_000) + letter + bytes(149_999))
        files, known = Files.at((str(path),), "people"), os.stat(path)
        if act == "in place":
            with path.open("r+b") as file:
                file.seek(150_000)
                file.write(letter)
        else:
            other.replace(path)
        os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
        assert not files.unchanged()
        changed = Files.at((str(path),), "people")
        assert changed.ends == files.ends and changed.state != files.state


@pytest.mark.parametrize("last", ["500,40", "500,unknown", "500,30.5", "500,", "x,1e999", '500,"a,b"'])
def test_no_value_of_a_csv_file_decides_what_can_be_asked(tmp_path: Path, last: str) -> None:
    """One person's row more: the same kinds, prices and refusals, whatever it says."""
    rows = "".join(f"{number},{number % 90}\n" for number in range(500))
    shown = []
    for name, text in (("a", rows), ("b", f"{rows}{last}\n")):
        (tmp_path / f"{name}.csv").write_text(f"person,age\n{text}")
        budget = sf.Budget(epsilon=10**6)
        bounded = sf.connect(
            tmp_path / f"{name}.csv",
            name="t",
            unit="person",
            columns={"age": sf.between(0, 110)},
            max_rows=1,
            budget=budget,
        )
        plain = sf.connect(tmp_path / f"{name}.csv", name="t", unit="person", max_rows=1, budget=budget)
        asked = bounded.sql("SELECT AVG(age) AS age, COUNT(age) AS n FROM t", epsilon=10**5)
        with pytest.raises(sf.errors.QueryRefused) as refusal:
            plain.sql("SELECT AVG(LEAST(GREATEST(age, 0), 110)) AS age FROM t", epsilon=1)
        cast = "SELECT AVG(LEAST(GREATEST(CAST(age AS INTEGER), 0), 110)) AS age FROM t"
        kinds = [[field.kind for field in db.catalog.tables[0].fields] for db in (bounded, plain)]
        shown.append((kinds, asked.explain(), str(refusal.value), plain.sql(cast, epsilon=1).explain()))
        assert abs(asked.release().column("age")[0] - sum(n % 90 for n in range(500)) / 500) < 0.5
    assert shown[0] == shown[1]


def test_a_file_that_changes_while_its_owner_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an owner measures is of one version, too."""
    path, opening = written(tmp_path / "people.parquet", 1980), DuckDBTables.cursor

    def slow(tables: DuckDBTables) -> Any:
        written(path, 1981)
        return opening(tables)

    assert read_owned(path).column("born").to_pylist() == [1980] * 50
    monkeypatch.setattr(DuckDBTables, "cursor", slow)
    with pytest.raises(InvalidArgument, match="has changed since it was opened"):
        read_owned(path)


# -- what a DuckDB file has beside it ---------------------------------------------------------------

MOVED = "UPDATE people SET born = 1981 WHERE person < 30"


def in_engine(path: Path, statement: str, *, killed: bool = False) -> Path:
    """Let another process write a DuckDB file; a `killed` one leaves what it committed beside the file."""
    end = "os._exit(0)" if killed else "connection.close()"
    code = f"import duckdb, os; connection = duckdb.connect({str(path)!r}); connection.execute({statement!r})"
    subprocess.run([sys.executable, "-c", f"{code}; {end}"], check=True)
    return path


def engine_file(path: Path, born: int = 1980) -> Path:
    return in_engine(path, f"CREATE TABLE people AS SELECT range AS person, {born} AS born FROM range(50)")


def test_a_duckdb_file_with_commits_beside_it_is_refused(tmp_path: Path) -> None:
    """The engine reads them, and the file says nothing of them: it would be one version with other rows."""
    path = engine_file(tmp_path / "people.duckdb")
    known = Files.at((str(path),), "people")
    in_engine(path, MOVED, killed=True)
    assert known.stamps == (_stamp(str(path)),), "the file itself is as it was"
    (tmp_path / "linked").mkdir()
    (linked := tmp_path / "linked" / "other.duckdb").symlink_to(path)
    for source, read in itertools.product((path, linked), (True, False)):
        with pytest.raises(InvalidArgument, match="committed and not yet in the file") as refused:
            open_tables({"people": source}, read=read)
        assert "close it" in str(refused.value)
    in_engine(path, "CHECKPOINT")
    for source in (path, linked):
        with closing(open_tables({"people": source})) as opened:
            rows = opened.cursor().execute("SELECT born, count(*) FROM people GROUP BY ALL").fetchall()
        assert sorted(rows) == [(1980, 20), (1981, 30)], "opened and closed, the file has them"


@pytest.mark.parametrize("name", ["peo?ple.duckdb", "?.duckdb", "a?b?c.db"])
def test_commits_are_seen_under_the_name_that_the_engine_gives_them(tmp_path: Path, name: str) -> None:
    """It writes `.wal` before the first question mark of a path, wherever that is."""
    path = engine_file(tmp_path / name)
    with closing(open_tables({"people": path})) as opened:
        in_engine(path, MOVED, killed=True)
        with pytest.raises(InvalidArgument, match="has changed since it was opened"):
            opened.check()
    assert not (tmp_path / f"{name}.wal").exists()
    with pytest.raises(InvalidArgument, match="committed and not yet in the file"):
        open_tables({"people": path})


def test_commits_that_appear_beside_a_duckdb_file_are_refused_before_the_charge(tmp_path: Path) -> None:
    path = engine_file(tmp_path / "people.duckdb")
    old = connect(tmp_path, path)
    version = old.backend.data_version()
    (tmp_path / "people.duckdb.wal").write_bytes(b"what a writer does not wait for")
    with pytest.raises(InvalidArgument, match="has changed since it was opened"):
        born(old, 1980)
    assert old.budget.spent == 0, "refused before anything is charged"
    (tmp_path / "people.duckdb.wal").unlink()
    assert old.backend.data_version() == version
    in_engine(path, MOVED, killed=True)
    with pytest.raises(InvalidArgument, match="has changed since it was opened"):
        born(old, 1981)
    in_engine(path, "CHECKPOINT")
    assert connect(tmp_path, path).backend.data_version() != version


@pytest.mark.parametrize("name", ["people.duckdb.wal", "people.duckdb.wal.checkpoint"])
def test_commits_that_appear_while_a_question_reads_a_duckdb_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from sfumato.backends.duckdb import backend

    db, computing = connect(tmp_path, engine_file(tmp_path / "people.duckdb")), backend._groups

    def slow(*given: Any, **options: Any) -> object:
        (tmp_path / name).write_bytes(b"1")
        return computing(*given, **options)

    monkeypatch.setattr(backend, "_groups", slow)
    with pytest.raises(EngineFailure):
        born(db, 1980)
    assert db.budget.spent == 1 and not db.ledger.history()[-1].committed
