"""Expressions in themselves: on every engine the plan of one grows by as much at each level.

An engine may copy what a statement says once: DuckDB copies the arguments of its macros. Plans that double at
each level are made after the charge, and a question of one line would never end. So each expression of
`forms` is put in the place of its own column, some times and twice as often, and the engine says how it would
compute that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, cast

import duckdb
import pytest

from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.spark.backend import DEEPEST, SparkBackend, _depth
from sfumato.catalog import Catalog
from sfumato.errors import QueryRefused, Unsupported
from sfumato.plan import tree
from sfumato.plan.sql import parse
from sfumato.plan.tree import Cast, ColumnRef, Expression
from tests.conformance.engines import DuckDB, Engine, PostgreSQL, Spark
from tests.conformance.forms import EXPRESSIONS
from tests.engine.worlds import CATALOG, crowd
from tests.soaked import rest_soaked

MOST = 4  # times as long, of twice as deep; from 6 to 12 levels what doubles is 64 times as long
PARTS = 12
_Place = tuple[int | str, ...]


def _places(node: Any, place: _Place = ()) -> Iterator[_Place]:
    """Yield where columns stand in an expression."""
    if isinstance(node, ColumnRef):
        yield place
    elif isinstance(node, tuple):
        for number, one in enumerate(node):
            yield from _places(one, (*place, number))
    elif isinstance(node, Expression):
        for field in dataclasses.fields(node):
            yield from _places(getattr(node, field.name), (*place, field.name))


def _at(node: Any, place: _Place) -> Any:
    for step in place:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def _put(node: Any, place: _Place, new: Expression) -> Any:
    """Return an expression with another one at a place."""
    if not place:
        return new
    first, *rest = place
    if isinstance(first, int):
        return tuple(
            _put(one, tuple(rest), new) if number == first else one for number, one in enumerate(node)
        )
    return dataclasses.replace(node, **{first: _put(getattr(node, first), tuple(rest), new)})


def nested(node: Expression, place: _Place, depth: int) -> Expression:
    """Return an expression that stands `depth` times in itself, as a value of the column that it replaces."""
    kind, found = _at(node, place).kind, _at(node, place)
    for _ in range(depth):
        found = _put(node, place, found if found.kind is kind else Cast(operand=found, kind=kind))
    return found


@cache
def cases() -> dict[str, tuple[Expression, _Place]]:
    """Return an expression of each form over the same kinds, and its first or its last column."""
    found: dict[Any, tuple[str, Expression, _Place]] = {}
    for text in EXPRESSIONS:
        with suppress(QueryRefused):
            [query] = parse(f"SELECT {text} AS k, COUNT(*) FROM visits AS v GROUP BY k", CATALOG).queries
            [(_, node)] = query.query.keys
            places = list(_places(node))
            for place in {*places[:1], *places[-1:]}:
                found.setdefault((_shape(node), place), (f"{text} at {place}", node, place))
    return {name: (node, place) for name, node, place in found.values()}


def _shape(node: Any) -> Any:
    return type(node), getattr(node, "function", None), node.kind, tuple(map(_shape, tree.parts(node)))


class Plans:
    """Says how long the plan of an expression over the columns of `visits` is."""

    def __init__(self, engine: Engine) -> None:
        self._dialect = engine.dialect
        [self._table] = [one for one in engine.known(CATALOG).tables if one.name == "visits"]
        self._names = {f"v.{one.name}": self._dialect.quoted(one.name) for one in self._table.fields}
        columns = ", ".join(
            f"{self._dialect.quoted(one.name)} {self._dialect.sql_type(one.kind)}"
            for one in self._table.fields
        )
        match engine:
            case PostgreSQL():
                self._execute = engine._connection.execute
                self._execute(f"DROP TABLE IF EXISTS nested; CREATE TEMP TABLE nested ({columns})")
                self._explain = "EXPLAIN (VERBOSE, COSTS OFF)"
            case Spark():
                rows = {"visits": crowd(1, people=5, rows=8).tables["visits"]}
                [frame] = engine._frames(Catalog((self._table,)), rows).values()
                frame.createOrReplaceTempView("nested")
                self._execute = lambda sql: engine._session.sql(sql).collect()
                self._explain = "EXPLAIN EXTENDED"
            case _:
                connection = duckdb.connect()
                connection.execute("PRAGMA explain_output = 'all'")
                connection.execute(f"CREATE TABLE nested ({columns})")
                self._execute = lambda sql: connection.execute(sql).fetchall()
                self._explain = "EXPLAIN (FORMAT json)"

    def size(self, node: Expression) -> int:
        """Return the length of a plan, but for how far its lines are indented."""
        sql = self._dialect.expression(node, self._names)
        rows = self._execute(f"{self._explain} SELECT {sql} FROM nested")
        return sum(len("".join(text.split())) for row in rows for text in row)

    def growth(self, name: str, depth: int) -> float:
        """Return how much longer the plan of an expression twice as deep is; 0 if that is refused."""
        node, place = cases()[name]
        try:
            shallow, deep = (self.size(nested(node, place, times * depth)) for times in (1, 2))
        except Unsupported:
            return 0.0
        return deep / shallow

    def grown(self, names: Iterable[str], depth: int) -> list[tuple[float, str]]:
        """Return the expressions whose plan grows by more at each level."""
        return [(growth, name) for name in names if (growth := self.growth(name, depth)) > MOST]


def of_each_function() -> list[str]:
    """Return the first expression with each set of functions: a plan of Spark takes a while."""
    first: dict[Any, str] = {}
    for name, (node, _) in cases().items():
        first.setdefault(_functions(node), name)
    return list(first.values())


def _functions(node: Any) -> Any:
    return type(node), getattr(node, "function", None), frozenset(map(_functions, tree.parts(node)))


@pytest.mark.parametrize("part", rest_soaked(range(PARTS), 6))
def test_plans_of_duckdb_grow_as_their_expressions_do(part: int) -> None:
    assert len(cases()) > 1000
    assert Plans(DuckDB()).grown(list(cases())[part::PARTS], 6) == []


@pytest.mark.parametrize("part", rest_soaked(range(PARTS), 4))
def test_plans_of_postgresql_do(postgresql: PostgreSQL, part: int) -> None:
    assert Plans(postgresql).grown(list(cases())[part::PARTS], 6) == []


@pytest.mark.soak
def test_plans_of_spark_do(on_spark: Spark) -> None:
    some = of_each_function()
    assert len(some) > 60
    assert Plans(on_spark).grown(some, 3) == []


@pytest.mark.soak
@pytest.mark.parametrize(
    "form", ["({})", "coalesce({}, 1)", "nanvl({} % 2D, 1D)", "CASE WHEN {} > 1 THEN 1 END"]
)
def test_spark_reads_what_is_nested_as_deep_as_it_may_be(on_spark: Spark, form: str) -> None:
    text = "1"
    while _depth(text) < DEEPEST:
        text = form.format(text)
    assert on_spark._session.sql(f"SELECT {text} AS x").columns == ["x"]


def test_what_is_nested_deeper_is_refused() -> None:
    backend = SparkBackend(cast(Any, None), CATALOG)
    backend.check_statement(f"SELECT {'(' * DEEPEST}1{')' * DEEPEST}, '{'(' * 999}', `{'(' * 999}`")
    for before, after in (("(", ")"), ("[", "]"), ("CASE WHEN ", " END")):
        with pytest.raises(Unsupported, match="nested so deep"):
            backend.check_statement(f"SELECT {before * (DEEPEST + 1)}x{after * (DEEPEST + 1)}")


def test_a_value_that_is_copied_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the engine's NULLIF around a quotient."""

    def divided(write: Any, arguments: Any, kind: Any) -> str:
        return f"nullif({' / '.join(write(one, kind) for one in arguments)}, 0)"

    monkeypatch.setitem(DUCKDB.functions, "/", divided)  # type: ignore[arg-type]
    [quotient] = [one for one in cases() if one.startswith("v.amount / v.price at ('arguments', 0)")]
    assert Plans(DuckDB()).growth(quotient, 6) > 40
