"""Views of DuckDB files: a private one shows of a row what that row says, by the engine's functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.backends.duckdb import views
from sfumato.errors import InvalidArgument

PEOPLE = "CREATE TABLE private AS SELECT range AS id, 'n' || range AS name, range % 3 AS x FROM range(5)"


def file_of(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in (PEOPLE, *statements):
            connection.execute(statement)
    return path


def refusal(path: Path, view: str, *, private: bool) -> str:
    with pytest.raises(InvalidArgument) as refused:
        open_tables({view: path}, kinds={view: {}} if private else None)
    return refused.value.message


# -- functions that a file brings -------------------------------------------------------------------

MACROS = {
    "upper": ("upper(s) AS (SELECT max(name) FROM private)", "SELECT id, upper(name) AS n FROM private"),
    "plus": ('"+"(a, b) AS (SELECT max(id) FROM private)', "SELECT id, x + 1 AS n FROM private"),
    "known": (
        "safe_divide(a, b) AS (SELECT max(id) FROM private)",
        "SELECT safe_divide(id, 1) AS id FROM private",
    ),
    "table": ("every() AS TABLE SELECT * FROM private", "SELECT id FROM every()"),
    "schema": ("s.lower(t) AS (SELECT max(name) FROM private)", "SELECT id, s.lower(name) AS n FROM private"),
    "unused": ("mine(a) AS a", "SELECT id FROM private"),
}


@pytest.mark.parametrize("case", MACROS)
@pytest.mark.parametrize("private", [True, False])
def test_no_view_of_a_file_with_macros_is_opened(tmp_path: Path, case: str, private: bool) -> None:
    """A macro is found before the engine's function, or operator, of the same name."""
    macro, view = MACROS[case]
    path = file_of(
        tmp_path / "d.duckdb", "CREATE SCHEMA s", f"CREATE MACRO {macro}", f"CREATE VIEW v AS {view}"
    )
    assert "its file has macros" in refusal(path, "v", private=private)


def test_macros_of_a_file_mean_nothing_to_questions(tmp_path: Path) -> None:
    """Neither about a table of that file, nor to a view of another file."""
    macros = [f"CREATE MACRO {macro}" for macro, _ in itertools.islice(MACROS.values(), 2)]
    first = file_of(tmp_path / "first.duckdb", *macros)
    second = file_of(
        tmp_path / "second.duckdb", "CREATE VIEW v AS SELECT id, upper(name) AS n, x + 1 AS y FROM private"
    )
    with closing(open_tables({"private": first, "v": second})) as opened:
        cursor = opened.cursor()
        own = cursor.execute("SELECT upper(name), x + 1 FROM private ORDER BY id").fetchall()
        assert own == [(f"N{at}", at % 3 + 1) for at in range(5)]
        assert cursor.execute("SELECT n, y FROM v ORDER BY id").fetchall() == own
    db = sf.connect(first, name="private", unit="id", budget=sf.Budget(epsilon=1e6), max_rows=1)
    released = db.sql("SELECT COUNT(*) AS n FROM private WHERE upper(name) = 'N3'", epsilon=1e5).release()
    assert list(released.column("n")) == [1]


# -- rows of a private view ---------------------------------------------------------------------------

REFUSED = {
    "where a row lies": "SELECT id, rowid AS r FROM private",
    "with its table": "SELECT id, private.rowid AS r FROM private",
    "in capitals": 'SELECT id, "ROWID" + 0 AS r FROM private',
    "as a condition": "SELECT id FROM private WHERE rowid < 2",
    "under a name": "SELECT a FROM private AS p(a, rowid) WHERE rowid = 'n1'",
    "a sample": "SELECT id FROM private TABLESAMPLE 2 ROWS",
    "a sample of the whole": "SELECT id FROM private USING SAMPLE 2 ROWS",
    "a list": "SELECT list(x) AS l, 1 AS id FROM private",
    "of all columns": "SELECT max(COLUMNS('id')) FROM private",
    "a lambda": "SELECT id, list_transform([x], lambda y : y + 1) AS l FROM private",
    "a catalog's function": "SELECT id, system.main.upper(name) AS n FROM private",
    "a plan": "SELECT id, json_serialize_plan('SELECT 1') AS n FROM private",
    "a clock": "SELECT id, current_localtimestamp() AS n FROM private",
    "an age": "SELECT id, age(TIMESTAMP '2020-01-01') AS n FROM private",
    "a generated column": "SELECT * FROM generated",
    "grouped": "SELECT id FROM private GROUP BY ALL",
    "having": "SELECT 1 AS id FROM private HAVING true",
    "qualified": "SELECT id FROM private QUALIFY row_number() OVER () = 1",
    "a union": "SELECT id FROM private UNION ALL SELECT id FROM private",
    "below": "SELECT id FROM (SELECT id FROM private)",
    "a common table expression": "WITH private AS (SELECT 1 AS id) SELECT id FROM private",
    "no table": "SELECT 1 AS id",
}
ACCEPTED = {
    "SELECT * FROM private": 5,
    "FROM private": 5,
    "SELECT * EXCLUDE (x) REPLACE (upper(name) AS name) FROM main.private WHERE x IN (0, 1)": 4,
    "SELECT p.id, CASE WHEN x > 1 THEN 'many' END AS n, CAST(x AS DECIMAL(9, 2)) AS d FROM private AS p": 5,
    "SELECT id, coalesce(nullif(x, 1), 7) + 1 AS y FROM private WHERE NOT x = 2 AND name LIKE 'n%'": 4,
    "SELECT id, substring(name FROM 2 FOR 1) || 'a' AS n, year(DATE '2020-01-01') AS y FROM private": 5,
}


@pytest.fixture
def engine() -> Iterator[Any]:
    """A connection to a file (in memory) of two tables."""
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS f; USE f")
        connection.execute(PEOPLE)
        connection.execute("CREATE TABLE generated (id INTEGER, r DOUBLE AS (random()))")
        yield connection


def opens(engine: Any, text: str) -> bool:
    """Whether a private view of this text passes the check."""
    engine.execute(f"CREATE OR REPLACE VIEW v AS {text}")
    try:
        views.check_view(engine, "f", "main", "v", private=True)
    except InvalidArgument:
        return False
    return True


@pytest.mark.parametrize("case", REFUSED)
def test_what_one_row_does_not_say_is_refused(engine: Any, case: str) -> None:
    assert not opens(engine, REFUSED[case])


def test_a_view_of_one_rows_values_is_opened(engine: Any) -> None:
    for text, rows in ACCEPTED.items():
        assert opens(engine, text), text
        assert len(engine.execute("SELECT * FROM v").fetchall()) == rows


def test_no_listed_function_reads_other_rows(engine: Any) -> None:
    """What each says of a person is the same whoever else is in the table; no other function is listed."""
    kinds = "list(DISTINCT function_type), list(DISTINCT stability)"
    for name, of_type, stability in engine.execute(
        f"SELECT lower(function_name) AS name, {kinds} FROM duckdb_functions() GROUP BY ALL"
    ).fetchall():
        if name in views._FUNCTIONS:
            assert set(of_type) <= {"scalar", "macro", "table"} and set(stability) <= {"CONSISTENT", None}, (
                name
            )
    calls: list[str] = []
    for name in sorted(views._FUNCTIONS):
        called = name if name.isidentifier() and name != "if" else f'"{name}"'
        for arguments in (
            "x",
            "name",
            "name, name",
            "x, 1",
            "x > 1, 1, 2",
            "'day', DATE '2020-01-01' + x::INTEGER",
        ):
            with suppress(duckdb.Error):
                engine.execute(f"SELECT {called}({arguments}) FROM private")
                calls.append(f"CAST({called}({arguments}) AS VARCHAR) AS y{len(calls)}")
    assert len(calls) > 100 and opens(engine, f"SELECT id, {', '.join(calls)} FROM private")
    shown = engine.execute("SELECT * FROM v ORDER BY id").fetchall()
    engine.execute("DELETE FROM private WHERE id IN (0, 4)")
    assert engine.execute("SELECT * FROM v ORDER BY id").fetchall() == shown[1:4]


# -- the version of a view ----------------------------------------------------------------------------


@pytest.mark.parametrize("changing", [True, False])
def test_a_public_view_is_of_the_version_that_was_copied(tmp_path: Path, changing: bool) -> None:
    """A sample is another at each opening of the same file. That two are alike has a chance below 1e-9."""
    sample = ", random() AS r" if changing else ""
    path = file_of(tmp_path / "d.duckdb", f"CREATE VIEW v AS SELECT id, name{sample} FROM private")
    versions = []
    for _ in range(2):
        with closing(open_tables({"v": path})) as opened:
            versions.append(opened.version())
            assert opened.version() == versions[-1]
    assert (versions[0] != versions[1]) == changing
