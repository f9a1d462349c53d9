"""The sandbox computes over noisy tables and reaches nothing else."""

from __future__ import annotations

import datetime
import functools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from sfumato.core.entropy import process_id
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.release import sandbox
from sfumato.release.sandbox import PlainTable, check, query

SHEET = PlainTable(
    columns=("k", "n", "q"),
    types=("VARCHAR", "BIGINT", "DOUBLE[]"),
    values=(["a", "é\x00", None], [5, -1, None], [[1.0, 2.5], [], None]),
)


def test_values_come_back_as_they_went_in() -> None:
    found = query({"released": SHEET}, "SELECT * FROM released")
    assert (found.columns, found.types, found.values) == (SHEET.columns, SHEET.types, SHEET.values)


def test_arithmetic_order_and_windows_work() -> None:
    sql = "SELECT k, n * 1.5 AS m, rank() OVER (ORDER BY n) AS r FROM released WHERE n IS NOT NULL ORDER BY n"
    found = query({"released": SHEET}, sql)
    assert found.values == (["é\x00", "a"], [-1.5, 7.5], [1, 2]) and found.types[1] == "DOUBLE"


def test_huge_whole_numbers_stay_whole() -> None:
    sheet = PlainTable(columns=("n",), types=("HUGEINT",), values=([2**80, None, -(2**100)],))
    found = query({"released": sheet}, "SELECT n + 1 AS n FROM released")
    assert found.values == ([2**80 + 1, None, -(2**100) + 1],) and found.types == ("HUGEINT",)


def test_types_without_a_place_become_texts() -> None:
    columns = "DATE '2020-01-02' AS d, INTERVAL 1 DAY AS i, {'a': 1} AS s, n::DECIMAL(9, 2) AS x"
    sql = f"SELECT {columns} FROM released LIMIT 1"
    found = query({"released": SHEET}, sql)
    assert found.types == ("DATE", "VARCHAR", "VARCHAR", "DOUBLE")
    assert found.values[0] == [datetime.date(2020, 1, 2)] and found.values[3] == [5.0]


def test_public_tables_can_be_joined() -> None:
    cities = pa.table({"k": ["a", "b"], "name": ["Aachen", "Bonn"]})
    sql = "SELECT name, n FROM released JOIN cities USING (k)"
    assert query({"released": SHEET}, sql, public={"cities": cities}).values == (["Aachen"], [5])


REACHING = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM glob('{file}')",
    "SELECT * FROM '{file}'",
    'SELECT * FROM "{file}"',
    "COPY released TO '{file}.copy'",
    "COPY released FROM '{file}'",
    "EXPORT DATABASE '{file}.export'",
    "ATTACH '{file}.db'",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "PRAGMA enable_external_access",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "CREATE TABLE t AS SELECT 1",
    "DROP TABLE released",
    "SELECT getenv('HOME')",
    "SELECT current_setting('home_directory')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('released')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM pragma_version()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM local_frame",
    "SELECT pg_sleep(1)",
    "SELECT 1; SELECT 2",
    "",
]


@pytest.mark.parametrize("sql", REACHING)
def test_nothing_outside_is_reached(sql: str, tmp_path: Path) -> None:
    local_frame = pa.table({"x": [1]})  # Python variables are outside too
    assert len(local_frame)
    file = tmp_path / "people.csv"
    file.write_text("name\nbob\n")
    with pytest.raises(SfumatoError) as error:
        query({"released": SHEET}, sql.format(file=file))
    assert "bob" not in str(error.value)
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "sql", [sql for sql in REACHING if "{file}" in sql or "INSTALL" in sql or "SET " in sql]
)
def test_the_engine_itself_refuses_too(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the check of names switched off, the locks of the engine alone still hold."""
    monkeypatch.setattr(sandbox, "_allowed", lambda sql, names: None)
    file = tmp_path / "people.csv"
    file.write_text("name\nbob\n")
    with pytest.raises(QueryRefused):
        query({"released": SHEET}, sql.format(file=file))
    assert sorted(tmp_path.iterdir()) == [file]


def test_without_locks_the_file_would_be_read(tmp_path: Path) -> None:
    """The test above can fail: an engine without locks does read it."""
    file = tmp_path / "people.csv"
    file.write_text("name\nbob\n")
    assert duckdb.connect(":memory:").execute(f"SELECT * FROM read_csv('{file}')").fetchall() == [("bob",)]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT", "SF401"),
        ("SELECT nothing FROM released", "SF402"),
        ("SELECT n FROM nowhere", "SF402"),
        ("SELECT no_such_function(n) FROM released", "SF402"),
        ("SELECT ntile(-1) OVER () FROM released", "SF404"),
        ("DELETE FROM released", "SF407"),
    ],
)
def test_errors_are_typed(sql: str, code: str) -> None:
    with pytest.raises(QueryRefused) as error:
        query({"released": SHEET}, sql)
    assert error.value.code == code


def test_post_processing_is_stopped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_SECONDS", 0.2)
    with pytest.raises(QueryRefused, match="took over"):
        query({"released": SHEET}, "SELECT count(*) FROM range(1000000000) a, range(1000000) b")


def test_divisions_in_divisions_are_planned_once() -> None:
    """NULLIF copies its argument: eight copies for each division in it kept the engine busy for a minute."""
    plain = PlainTable(columns=("n", "z"), types=("BIGINT", "BIGINT"), values=([2], [0]))
    divided = " / ".join(["n"] * 30)
    rooted = functools.reduce(lambda inner, _: f"sqrt({inner})", range(12), "n")
    sql = f"SELECT {divided} AS d, {rooted} AS r, 1 / (n / z) AS none, coalesce(n / z, 7) AS m FROM released"
    found = query({"released": plain}, sql)
    assert found.values == ([2.0**-28], [2 ** (2.0**-12)], [None], [7.0])


def test_a_flood_of_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_MOST_ROWS", 10)
    assert len(query({"released": SHEET}, "SELECT * FROM range(10)").values[0]) == 10
    with pytest.raises(QueryRefused, match="rows"):
        query({"released": SHEET}, "SELECT * FROM range(11)")


def test_a_statement_can_be_tried_before_anything_is_spent() -> None:
    public = {"cities": pa.table({"k": ["a"], "name": ["Aachen"]})}
    check({"released": SHEET}, "SELECT k::INT, name FROM released JOIN cities USING (k)", public=public)
    with pytest.raises(QueryRefused):
        check({"released": SHEET}, "SELECT nothing FROM released")


def test_statements_at_the_same_time_see_their_own_tables_only() -> None:
    def most(number: int) -> int:
        plain = PlainTable(columns=("n",), types=("BIGINT",), values=([number, number - 1],))
        [[found]] = query({"released": plain}, "SELECT max(n) AS n FROM released").values
        return int(found)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(most, range(64))) == list(range(64))
    with pytest.raises(duckdb.CatalogException):  # nothing of them is left
        sandbox._engine(process_id()).cursor().execute("SELECT * FROM released")
