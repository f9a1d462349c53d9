"""Relations in SQL: rows keep their unit, and a unit's own aggregates do not depend on their order."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from sfumato.aggregates.registry import Function
from sfumato.backends import open_tables
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.relations import Relations
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.errors import Unsupported
from sfumato.plan.functions import call
from sfumato.plan.tree import (
    Aggregate,
    ColumnRef,
    Expression,
    Join,
    Literal,
    PerUnit,
    Projection,
    Relation,
    Scan,
    SemiJoin,
    Union,
)

VISITS = pa.table(
    {
        "who": pa.array([1, 1, 2, None, 3], pa.int64()),
        "place": pa.array(["x", "y", "x", "x", None]),
        "cost": pa.array([1.5, math.nan, 2.0, 9.0, None]),
    }
)
PEOPLE = pa.table({"id": pa.array(["1", "2", "4", None]), "age": pa.array([30, 40, 50, 60])})
PLACES = pa.table({"place": pa.array(["x", "x", "z"]), "town": pa.array(["A", "B", "C"])})
LOGS = pa.table({"line": pa.array([1, 2, 2])})
CATALOG = Catalog(
    (
        Table(
            name="visits",
            fields=(Field("who", Kind.INTEGER), Field("place", Kind.TEXT), Field("cost", Kind.REAL)),
            unit=Unit(name="person", column="who"),
        ),
        Table(
            name="people",
            fields=(Field("id", Kind.TEXT), Field("age", Kind.INTEGER)),
            unit=Unit(name="person", column="id"),
        ),
        Table(name="places", fields=(Field("place", Kind.TEXT), Field("town", Kind.TEXT)), unit=None),
        Table(name="logs", fields=(Field("line", Kind.INTEGER),), unit=Unit(name="row", column=None)),
    )
)
PLACE = ColumnRef(name="v.place", kind=Kind.TEXT)
COST = ColumnRef(name="v.cost", kind=Kind.REAL)
AGE = ColumnRef(name="p.age", kind=Kind.INTEGER)
NAME = ColumnRef(name="c.place", kind=Kind.TEXT)
TOWN = ColumnRef(name="c.town", kind=Kind.TEXT)
LINE = ColumnRef(name="l.line", kind=Kind.INTEGER)
V = Scan(table="visits", alias="v", columns=(PLACE, COST))
P = Scan(table="people", alias="p", columns=(AGE,))
C = Scan(table="places", alias="c", columns=(NAME, TOWN))
L = Scan(table="logs", alias="l", columns=(LINE,))
SAME_PLACE = call("=", (PLACE, NAME))


def rows(relation: Relation, tables: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    given = tables or {"visits": VISITS, "people": PEOPLE, "places": PLACES, "logs": LOGS}
    source = open_tables(given)
    rendered = Relations(catalog=CATALOG, dialect=DUCKDB).render(relation)
    cursor = source.cursor()
    columns = [*(["__unit"] if rendered.unit else []), *rendered.names.values()]
    found = cursor.execute(f"SELECT {', '.join(columns)} FROM ({rendered.sql})").fetchall()
    source.close()
    return sorted(found, key=repr)


def test_rows_without_a_unit_are_dropped_and_nan_is_null() -> None:
    assert rows(V) == [(1, "x", 1.5), (1, "y", None), (2, "x", 2.0), (3, None, None)]


def test_units_of_different_types_meet() -> None:
    joined = Join(left=V, right=P, condition=None, on_unit=True, outer=False)
    assert rows(joined) == [(1, "x", 1.5, 30), (1, "y", None, 30), (2, "x", 2.0, 40)]
    outer = Join(
        left=V,
        right=P,
        condition=call(">=", (AGE, Literal(value=40, kind=Kind.INTEGER))),
        on_unit=True,
        outer=True,
    )
    assert rows(outer) == [
        (1, "x", 1.5, None),
        (1, "y", None, None),
        (2, "x", 2.0, 40),
        (3, None, None, None),
    ]


def test_public_rows_lie_beside_private_ones() -> None:
    joined = Join(left=V, right=C, condition=SAME_PLACE, on_unit=False, outer=False)
    assert rows(joined) == [
        (1, "x", 1.5, "x", "A"), (1, "x", 1.5, "x", "B"), (2, "x", 2.0, "x", "A"), (2, "x", 2.0, "x", "B")
    ]  # fmt: skip


def test_tests_against_other_rows() -> None:
    assert rows(SemiJoin(source=V, other=P, condition=None, on_unit=True)) == rows(V)[:3]
    none = SemiJoin(source=V, other=P, condition=None, on_unit=True, negated=True)
    assert rows(none) == rows(V)[3:]  # and nobody's rows are nobody's here too
    assert rows(SemiJoin(source=V, other=C, condition=SAME_PLACE, on_unit=False)) == [
        (1, "x", 1.5),
        (2, "x", 2.0),
    ]


def test_unions_keep_units() -> None:
    only = Projection(source=P, columns=(("age", AGE),))
    cast = Projection(source=V, columns=(("n", Literal(value=7, kind=Kind.INTEGER)),))
    assert rows(Union(sources=(only, cast))) == [
        ("1", 30),
        ("1", 7),
        ("1", 7),
        ("2", 40),
        ("2", 7),
        ("3", 7),
        ("4", 50),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        Join(left=V, right=P, condition=None, on_unit=False, outer=False),
        Join(left=C, right=V, condition=None, on_unit=False, outer=True),
        Join(left=C, right=L, condition=None, on_unit=False, outer=False),
        Join(left=L, right=V, condition=None, on_unit=False, outer=False),
        Join(left=L, right=L, condition=None, on_unit=False, outer=False),
        SemiJoin(source=C, other=V, condition=SAME_PLACE, on_unit=False),
        SemiJoin(source=V, other=L, condition=None, on_unit=False),
        Union(sources=(V, C)),
        Union(sources=(V, P)),
        PerUnit(source=L, keys=(), aggregates=()),
        PerUnit(source=C, keys=(), aggregates=()),
        Scan(table="nowhere", alias="n", columns=()),
        Scan(table="visits", alias="v", columns=(ColumnRef(name="v.cost", kind=Kind.TEXT),)),
    ],
)
def test_what_would_mix_units_is_refused(wrong: Relation) -> None:
    with pytest.raises(Unsupported):
        Relations(catalog=CATALOG, dialect=DUCKDB).render(wrong)


def of(function: Function, *arguments: Expression, **named: Any) -> Aggregate:
    return Aggregate(function=function, arguments=arguments, **named)


def test_aggregates_of_one_unit_do_not_depend_on_order() -> None:
    generator = random.Random(1)
    costs = [generator.uniform(-1e9, 1e9) * 10 ** generator.randint(-12, 12) for _ in range(300)] + [
        1e308,
        1e308,
    ]
    aggregates = {
        "rows": of(Function.COUNT_ROWS),
        "costs": of(Function.COUNT, COST),
        "kinds": of(Function.COUNT_DISTINCT, PLACE),
        "units": of(Function.COUNT_UNITS),
        "least": of(Function.MIN, COST),
        "most": of(Function.MAX, PLACE),
        "sum": of(Function.SUM, COST, where=call("<", (COST, Literal(value=1e20, kind=Kind.REAL)))),
        "mean": of(Function.AVG, COST, where=call("<", (COST, Literal(value=1e20, kind=Kind.REAL)))),
        "overflow": of(Function.SUM, COST),
        "variance": of(Function.VAR_SAMP, COST),
        "correlation": of(Function.CORR, COST, COST),
        "slope": of(Function.REGR_SLOPE, COST, COST),
        "intercept": of(Function.REGR_INTERCEPT, COST, COST),
        "explained": of(Function.REGR_R2, COST, COST),
        "median": of(Function.QUANTILE, COST, quantiles=(0.5,)),
    }
    node = PerUnit(source=V, keys=(), aggregates=tuple(aggregates.items()))
    answers = set()
    for threads in (1, 2, 2):
        generator.shuffle(costs)
        table = pa.table({"who": [5] * len(costs), "place": ["x"] * len(costs), "cost": costs})
        source = open_tables({"visits": table}, threads=threads)
        rendered = Relations(catalog=CATALOG, dialect=DUCKDB).render(node)
        answers.add(tuple(source.cursor().execute(rendered.sql).fetchall()))
    ((answer,),) = answers
    assert answer[1:5] == (302, 302, 1, 1)
    assert answer[9] is None


def test_inner_keys_and_nested_units() -> None:
    inner = PerUnit(source=V, keys=(("k", PLACE),), aggregates=(("n", of(Function.COUNT_ROWS)),))
    n = ColumnRef(name="n", kind=Kind.INTEGER)
    outer = PerUnit(
        source=inner, keys=(), aggregates=(("m", of(Function.SUM, n)), ("a", of(Function.AVG, n)))
    )
    assert rows(inner) == [(1, "x", 1), (1, "y", 1), (2, "x", 1), (3, None, 1)]
    assert rows(outer) == [(1, 2, 1.0), (2, 1, 1.0), (3, 1, 1.0)]
