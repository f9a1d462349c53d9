"""Post-processing binds: every `outer` runs over empty noisy tables, with the columns that were asked for."""

from __future__ import annotations

import duckdb
import pytest

from sfumato.catalog import Kind
from sfumato.errors import QueryRefused
from sfumato.plan.request import Request
from sfumato.plan.sql import parse
from sfumato.plan.tree import GROUPING_SET
from tests.plan.example import CATALOG, accepted

TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    None: "DOUBLE[]",
}


def sandbox(request: Request) -> duckdb.DuckDBPyConnection:
    """Return an engine that holds the noisy tables of a request, empty, and the public ones."""
    engine = duckdb.connect()
    engine.execute("SET enable_external_access = false")
    for named in request.queries:
        columns = [f"{name} {TYPES[key.kind]}" for name, key in named.query.keys]
        columns += [f"{name} {TYPES[one.kind]}" for name, one in named.query.aggregates]
        columns += [f"{GROUPING_SET} BIGINT"] if len(named.query.grouping_sets) > 1 else []
        engine.execute(f'CREATE TABLE "{named.name}" ({", ".join(columns)})')
    for name in request.public:
        table = CATALOG.table(name)
        assert table is not None and not table.private
        fields = ", ".join(f"{field.name} {TYPES[field.kind]}" for field in table.fields)
        engine.execute(f'CREATE TABLE "{name}" ({fields})')
    return engine


def columns_of(text: str) -> list[str]:
    request = parse(text, CATALOG)
    assert request.postprocessing is not None
    result = sandbox(request).execute(request.postprocessing)
    return [column[0] for column in result.description or []]


@pytest.mark.parametrize("question", [pair[0] for pair in accepted()], ids=lambda text: text[:60])
def test_outer_binds(question: str) -> None:
    names = columns_of(question)
    assert names
    if "*" not in question.split("FROM")[0].replace("(*", ""):
        assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("SELECT region, COUNT(*) AS n FROM people GROUP BY region", ["region", "n"]),
        ("SELECT p.region, COUNT(*) FROM people p GROUP BY 1", ["region", "COUNT(*)"]),
        ("SELECT region AS a, job AS a, COUNT(*) AS a FROM people GROUP BY 1, 2", ["a", "a_1", "a_2"]),
        ("SELECT * FROM (SELECT region AS r, COUNT(*) AS n FROM people GROUP BY 1)", ["r", "n"]),
        ('SELECT COUNT(*) AS "x y", SUM(age) + 1 AS z FROM people', ["x y", "z"]),
        (
            "WITH a AS (SELECT COUNT(*) AS n FROM people) SELECT n, n + 1, n AS n FROM a",
            ["n", "n + 1", "n_1"],
        ),
    ],
)
def test_columns_are_named_as_asked(question: str, names: list[str]) -> None:
    assert columns_of(question) == names


def test_arithmetic_order_and_windows_mean_what_they_say() -> None:
    request = parse(
        "SELECT region, SUM(income) / COUNT(*) AS mean, RANK() OVER (ORDER BY COUNT(*) DESC) AS place "
        "FROM people GROUP BY region HAVING COUNT(*) > 10 ORDER BY mean DESC LIMIT 2",
        CATALOG,
    )
    engine = sandbox(request)
    engine.execute("INSERT INTO released VALUES ('a', 100, 50), ('b', 90, 30), ('c', 5, 5), ('d', 11, 11)")
    assert request.postprocessing is not None
    assert engine.execute(request.postprocessing).fetchall() == [("b", 3.0, 2), ("a", 2.0, 1)]


def test_names_of_keys_and_aggregates_cannot_be_confused() -> None:
    request = parse("SELECT region AS a0, COUNT(*) AS k0 FROM people GROUP BY region ORDER BY k0", CATALOG)
    engine = sandbox(request)
    engine.execute("INSERT INTO released VALUES ('x', 2), ('y', 1)")
    assert request.postprocessing is not None
    assert engine.execute(request.postprocessing).fetchall() == [("y", 1), ("x", 2)]


@pytest.mark.parametrize(
    "call",
    [
        "read_text('x')", "read_csv('x')", "getenv('x')", "query('x')", "current_setting('x')", "version()",
        "pg_sleep(1)", "sha256('x')", "printf('{}', 1)", "gen_random_uuid()", "glob('x')",
    ],
)  # fmt: skip
def test_post_processing_reaches_nothing(call: str) -> None:
    for text in (
        f"SELECT COUNT(*), {call} FROM people",
        f"SELECT n, {call} FROM (SELECT COUNT(*) AS n FROM people)",
        f"SELECT n FROM (SELECT COUNT(*) AS n FROM people) ORDER BY {call}",
        f"SELECT n FROM (SELECT COUNT(*) AS n FROM people), {call}",
        f"SELECT COUNT(*) AS n FROM people HAVING {call} = 1",
        f"SELECT SUM(COUNT(*)) OVER (ORDER BY {call}) FROM people",
        f"SELECT COUNT(*), (SELECT {call}) FROM people",
    ):
        with pytest.raises(QueryRefused) as caught:
            parse(text, CATALOG)
        assert caught.value.code == "SF403", text
