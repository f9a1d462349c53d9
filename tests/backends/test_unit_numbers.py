"""Numbers of units: each row is its own unit's, whatever the table comes from and its columns are named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato.backends.duckdb import DuckDBBackend, by_unit, unit_numbers
from sfumato.backends.duckdb.engine import Engine

# People have many rows, or three, or five: one more than count. Some rows belong to nobody.
ROWS = """
    SELECT CASE WHEN i % 17 = 4 THEN NULL WHEN i < 200 THEN 'few ' || i // 3
                WHEN i < 400 THEN 'five ' || i // 5
                ELSE 'many ' || i * i % 41 END AS who, i % 7 AS g, i % 50 AS x, i // 2 AS {column}
    FROM range(600) AS t(i)
"""
QUESTIONS = (
    "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g",
    "SELECT MEDIAN(x) AS m FROM t WHERE x > 5",
    "SELECT g, COUNT(DISTINCT x) AS d, COUNT(DISTINCT who) AS w FROM t WHERE g < 5 GROUP BY ROLLUP (g)",
    "SELECT g, SAMPLE_AND_AGGREGATE(KURTOSIS(x), -2, 20, blocks => 5) AS k FROM t GROUP BY g",
)


def write_parquet(folder: Path, column: str) -> Any:
    duckdb.sql(ROWS.format(column=column)).write_parquet(str(folder / "t.parquet"))
    return folder / "t.parquet"


def write_several(folder: Path, column: str) -> Any:
    paths = [str(folder / f"t{number}.parquet") for number in range(3)]
    for number, path in enumerate(paths):
        part = f"SELECT * FROM ({ROWS.format(column=column)}) WHERE {column} % 3 = {number} AND x <> {number}"
        duckdb.sql(part).write_parquet(path)
    return paths


def write_table(folder: Path, column: str) -> Any:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS {ROWS.format(column=column)}")
        connection.execute("DELETE FROM t WHERE x < 3")  # then numbers of rows have gaps
    return folder / "t.duckdb"


def write_view(folder: Path, column: str) -> Any:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE rows AS {ROWS.format(column=column)}")
        connection.execute("CREATE VIEW t AS SELECT * FROM rows WHERE x > 4")
    return folder / "t.duckdb"


def write_csv(folder: Path, column: str) -> Any:
    duckdb.sql(ROWS.format(column=column)).write_csv(str(folder / "t.csv"))
    return folder / "t.csv"


def as_object(folder: Path, column: str) -> Any:
    return duckdb.sql(ROWS.format(column=column)).to_arrow_table()


TABLES = [
    *((write, "other", True) for write in (write_parquet, write_several, write_table)),
    *((write, "other", True) for write in (write_view, write_csv, as_object)),
    (write_parquet, "File_Row_Number", False),
    (write_several, "file_index", False),
    (write_table, "ROWID", False),
    (write_view, "rowid", False),
    (write_csv, "rowid", False),
    (as_object, "__ROW", False),
    (write_parquet, "__row", False),
]


def opened(origin: Any, column: str) -> sf.Database:
    return sf.connect(
        {"t": origin},
        unit="who",
        columns={"t.x": sf.between(0, 50), "t.g": sf.between(0, 9), f"t.{column}": sf.between(0, 9)},
        budget=sf.Budget(epsilon=100, delta=1e-6),
        max_groups=3,
        max_rows=4,
    )


def totals(db: sf.Database) -> list[Any]:
    """Return the exact integers of all questions, with a salt of our own."""
    assert isinstance(db.backend, DuckDBBackend)
    found = []
    for text in QUESTIONS:
        (bounding,) = db.sql(text, epsilon=1, max_distinct=2).priced().boundings
        for groups in db.backend.run(bounding.query, _salt=7).reveal():
            measures = {name: np.asarray(values).tolist() for name, values in groups.measures.items()}
            found.append((list(groups.keys), measures))
    return found


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Tell of each table that was numbered whether it has numbers."""
    made, honestly = [], unit_numbers.number_units

    def noted(engine: Engine, units: str) -> Any:
        found = honestly(engine, units)
        made.append(found is not None)
        return found

    monkeypatch.setattr("sfumato.backends.duckdb.backend.number_units", noted)
    yield made


@pytest.mark.parametrize(("write", "column", "numbered"), TABLES)
def test_numbers_change_no_total(
    write: Any, column: str, numbered: bool, tmp_path: Path, kept: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column with a name that the engine has for numbers of rows is a column, and is not taken for them."""
    origin = write(tmp_path, column)
    found = totals(opened(origin, column))
    assert kept == [True] * numbered
    monkeypatch.setattr(DuckDBBackend, "_numbers", lambda *_: None)
    assert totals(opened(origin, column)) == found


def test_numbers_that_two_rows_share_are_not_used(
    tmp_path: Path, kept: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = write_parquet(tmp_path, "other")
    expected = totals(opened(origin, "other"))
    monkeypatch.setattr(
        "sfumato.backends.duckdb.engine_files._parquet_row", lambda *_: "file_row_number // 2"
    )
    assert totals(opened(origin, "other")) == expected and kept == [True, False]


def test_more_rows_than_are_numbered_are_read_again(
    tmp_path: Path, kept: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = write_table(tmp_path, "other")
    expected = totals(opened(origin, "other"))
    monkeypatch.setattr(unit_numbers, "MOST_ROWS", 500)
    assert totals(opened(origin, "other")) == expected and kept == [True, False]


def test_units_are_numbered_also_where_they_are_worked_on_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = write_several(tmp_path, "other")
    expected = totals(opened(origin, "other"))
    monkeypatch.setattr(by_unit, "ROWS_AT_ONCE", 50)
    assert totals(opened(origin, "other")) == expected


def test_a_file_that_changes_while_units_are_numbered_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers made of two versions would belong to neither."""
    origin = write_parquet(tmp_path, "other")
    db, honestly = opened(origin, "other"), unit_numbers.number_units

    def disturbed(engine: Engine, units: str) -> Any:
        found = honestly(engine, units)
        before = origin.read_bytes()
        duckdb.sql("SELECT 1 AS nothing").write_parquet(str(origin))
        assert before != origin.read_bytes()
        return found

    monkeypatch.setattr("sfumato.backends.duckdb.backend.number_units", disturbed)
    (bounding,) = db.sql(QUESTIONS[0], epsilon=1).priced().boundings
    assert isinstance(db.backend, DuckDBBackend)
    with pytest.raises(sf.errors.EngineFailure):
        db.backend.run(bounding.query)
    assert db.backend._source._made == {}
