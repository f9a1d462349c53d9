"""What PostgreSQL refuses is what its page says, neither more nor less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import Writer
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.postgres import PostgresBackend
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.errors import Unsupported
from sfumato.plan.functions import FUNCTIONS, call
from sfumato.plan.numbers import KindError
from sfumato.plan.sql import parse
from sfumato.plan.tree import Aggregate, Cast, ColumnRef, Expression, Literal
from tests.engine.questions import Asked
from tests.engine.replay import planned
from tests.engine.worlds import CATALOG as WORLD

PAGE = Path(__file__).parents[2] / "docs" / "postgres.md"
KINDS = {
    "i": Kind.INTEGER, "h": Kind.HUGEINT, "d": Kind.decimal(15, 2), "f": Kind.FLOAT, "x": Kind.REAL,
    "s": Kind.TEXT, "b": Kind.BOOLEAN, "day": Kind.DATE, "ts": Kind.TIMESTAMP,
}  # fmt: skip
COLUMNS = {kind: ColumnRef(name=f"t.{name}", kind=kind) for name, kind in KINDS.items()}
NAMES = {column.name: column.name[2:] for column in COLUMNS.values()}
CATALOG = Catalog(
    (
        Table(
            name="t",
            unit=Unit(name="person", column="i"),
            fields=tuple(Field(name=name, kind=kind) for name, kind in KINDS.items()),
        ),
    )
)
OF_CONSTANTS = {  # functions some of whose arguments are constants
    "date_add": ("day", 1, COLUMNS[Kind.DATE]),
    "date_trunc": ("month", COLUMNS[Kind.DATE]),
    "date_diff": ("day", COLUMNS[Kind.DATE], COLUMNS[Kind.TIMESTAMP]),
    "lpad": (COLUMNS[Kind.TEXT], 5, "x"),
    "rpad": (COLUMNS[Kind.TEXT], 5, "x"),
    "split_part": (COLUMNS[Kind.TEXT], "-", 2),
    "regexp_matches": (COLUMNS[Kind.TEXT], "a+", "i"),
    "regexp_full_match": (COLUMNS[Kind.TEXT], "a+"),
    "regexp_extract": (COLUMNS[Kind.TEXT], "(a)b", 1),
    "regexp_replace": (COLUMNS[Kind.TEXT], "a+", "-", "g"),
    "strftime": (COLUMNS[Kind.DATE], "%Y-%m-%d"),
    "strptime": (COLUMNS[Kind.TEXT], "%Y-%m-%d"),
    "replace": (COLUMNS[Kind.TEXT], "a", "b"),
    "in": (COLUMNS[Kind.INTEGER], 1, 2),
    "like": (COLUMNS[Kind.TEXT], "a%"),
    "ilike": (COLUMNS[Kind.TEXT], "a%"),
}


def listed() -> list[str]:
    """Return the examples of the page's table."""
    _, _, below = PAGE.read_text().partition("### What is refused")
    return [cell.replace("\\|", "|") for cell in re.findall(r"^\| `(.*?)` \|", below, re.MULTILINE)]


def refused(node: Expression) -> bool:
    try:
        POSTGRES.expression(node, NAMES)
    except Unsupported:
        return True
    return False


def test_what_the_page_lists_is_refused_here_alone() -> None:
    examples = listed()
    assert len(examples) == 9
    for text in examples:
        if text.startswith(("SAMPLE_AND_AGGREGATE", "'a\\0b'")):
            continue  # tested by themselves
        (named,) = parse(f"SELECT COUNT({text}) FROM t", CATALOG).queries
        [(_, aggregate)] = named.query.aggregates
        DUCKDB.expression(aggregate.arguments[0], NAMES)
        assert refused(aggregate.arguments[0]), text
    with pytest.raises(Unsupported, match="NUL"):
        POSTGRES.constant("a\0b")


def test_statistics_of_blocks_are_refused() -> None:
    class Opened:
        stored = staticmethod(str)

    text = "SELECT SAMPLE_AND_AGGREGATE(AVG(v.qty), -2, 6, blocks => 3) FROM visits AS v"
    query = planned(Asked(text, {"max_groups": 2, "max_rows": 3})).query
    with pytest.raises(Unsupported, match="blocks"):
        PostgresBackend(Opened(), WORLD)._statements(query, 0)  # type: ignore[arg-type]


def _calls() -> Iterator[tuple[str, Expression]]:
    """Yield calls of every function with arguments of every kind that the plan allows."""
    for name, signature in FUNCTIONS.items():
        if name in OF_CONSTANTS:
            given = (
                Literal(value=one, kind=Kind.TEXT if isinstance(one, str) else Kind.INTEGER)
                if isinstance(one, str | int)
                else one
                for one in OF_CONSTANTS[name]
            )
            yield name, call(name, tuple(given))
            continue
        for first in COLUMNS.values():
            for second in COLUMNS.values():
                arguments = (first, second, second)[: signature.least]
                try:
                    yield name, call(name, arguments)
                except KindError:
                    continue


def test_every_other_function_is_written() -> None:
    made = list(_calls())
    assert {name for name, _ in made} == set(FUNCTIONS)
    assert {name for name, node in made if refused(node)} == {"log2", "strptime"}


def test_every_other_conversion_is_written() -> None:
    pairs = {
        (column.kind.value, kind.value)
        for column in COLUMNS.values()
        for kind in KINDS.values()
        if column.kind is not None and refused(Cast(operand=column, kind=kind))
    }
    assert pairs == {("text", "decimal(15,2)")}


def test_every_aggregate_of_a_units_rows_is_written() -> None:
    """Those that DuckDB has."""
    written: set[Function] = set()
    theirs: set[Function] = set()
    for function in Function:
        number = 0 if function in (Function.COUNT_ROWS, Function.COUNT_UNITS) else 1
        number = 2 if function.name.startswith(("COVAR", "CORR", "REGR")) else number
        one = Aggregate(
            function=function,
            arguments=(COLUMNS[Kind.REAL],) * number,
            quantiles=(0.5,) if function is Function.QUANTILE else (),
        )
        for dialect, found in ((DUCKDB, theirs), (POSTGRES, written)):
            try:
                dialect.unit_aggregate(one, Writer(dialect, NAMES))
            except Unsupported:
                continue
            found.add(function)
    assert written == theirs and len(theirs) > 15
