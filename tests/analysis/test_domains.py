"""Domains: what is declared of columns is carried through relations."""

from __future__ import annotations

import datetime
import math

import pytest

from sfumato.aggregates.registry import Function
from sfumato.analysis.domains import columns_of, narrowed
from sfumato.analysis.ranges import Known, known_of
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.core.intervals import Interval
from sfumato.plan.tree import Call, ColumnRef, Filter, Join, PerUnit, Projection, Scan, SemiJoin, Union
from tests.analysis.questions import (
    AGE,
    AMOUNT,
    INCOME,
    REGION,
    ROWS,
    SCORE,
    aggregate,
    call,
    catalog,
    literal,
    scan,
)

CATALOG = catalog()


def interval(found: dict[str, Known], name: str) -> tuple[object, object] | None:
    known = found[name].interval
    return None if known is None else (known.low, known.high)


def test_scan() -> None:
    found = columns_of(scan(), CATALOG)
    assert interval(found, "v.age") == (0, 110)
    assert interval(found, "v.income") == (-math.inf, math.inf)
    assert found["v.region"].values == ("north", "south", "east")
    assert found["v.age"].nullable and not found["v.score"].nullable


def test_lists_of_equal_values_are_told_apart_by_their_types() -> None:
    """1 and TRUE are equal, and have one hash: what is known of the one is not known of the other."""
    for kind, values, known in (
        (Kind.INTEGER, (0, 1), (0, 1)),
        (Kind.BOOLEAN, (False, True), (-math.inf, math.inf)),
        (Kind.REAL, (0.0, 1.0), (0, 1)),
    ):
        field = Field(name="flag", kind=kind, domain=one_of(*values))
        table = Table(name="t", fields=(field,), unit=Unit(name="person", column="flag"))
        column = ColumnRef(name="t.flag", kind=kind)
        found = columns_of(Scan(table="t", alias="t", columns=(column,)), Catalog((table,)))
        assert interval(found, "t.flag") == known and found["t.flag"].values == values
        assert list(map(type, found["t.flag"].values or ())) == list(map(type, values))


def test_project_union_and_join() -> None:
    doubled = Projection(source=scan(), columns=(("x", call("*", AGE, literal(2))), ("r", REGION)))
    assert interval(columns_of(doubled, CATALOG), "x") == (0, 220)
    other = Projection(source=scan(), columns=(("y", AMOUNT), ("s", REGION)))
    both = columns_of(Union(sources=(doubled, other)), CATALOG)
    assert interval(both, "x") == (-20, 220) and both["r"].values == ("north", "south", "east")
    for outer in (False, True):
        joined = Join(left=scan(), right=scan("public", "p"), condition=None, on_unit=False, outer=outer)
        found = columns_of(joined, CATALOG)
        assert interval(found, "v.age") == interval(found, "p.age") == (0, 110)
        assert found["p.score"].nullable == outer and not found["v.score"].nullable
    kept = SemiJoin(source=scan(), other=scan("public", "p"), condition=None, on_unit=False)
    assert columns_of(kept, CATALOG).keys() == columns_of(scan(), CATALOG).keys()


@pytest.mark.parametrize(
    ("function", "arguments", "low", "high"),
    [
        (Function.COUNT_ROWS, (), 0, math.inf),
        (Function.COUNT_DISTINCT, (REGION,), 0, 3),
        (Function.COUNT_DISTINCT, (AGE,), 0, math.inf),
        (Function.SUM, (AGE,), 0, math.inf),
        (Function.SUM, (AMOUNT,), -math.inf, math.inf),
        (Function.AVG, (AMOUNT,), -20, 100),
        (Function.MAX, (AGE,), 0, 110),
        (Function.VAR_SAMP, (SCORE,), 0, 0.5),
        (Function.COVAR_POP, (SCORE, SCORE), -0.5, 0.5),
        (Function.CORR, (SCORE, AGE), -1, 1),
    ],
)
def test_aggregates_of_one_unit(
    function: Function, arguments: tuple[ColumnRef, ...], low: float, high: float
) -> None:
    per = PerUnit(
        source=scan(), keys=(("region", REGION),), aggregates=(("x", aggregate(function, *arguments)),)
    )
    found = columns_of(per, CATALOG)
    assert interval(found, "x") == (low, high)
    assert found["region"].values == ("north", "south", "east")


def test_a_capped_count_is_bounded() -> None:
    per = PerUnit(source=scan(), keys=(), aggregates=(("n", ROWS),))
    capped = call("least", ColumnRef(name="n", kind=Kind.INTEGER), literal(20))
    assert known_of(capped, columns_of(per, CATALOG)).interval == Interval(0, 20)


def test_filters_narrow() -> None:
    def kept(*conditions: Call) -> tuple[object, object] | None:
        condition = conditions[0]
        for more in conditions[1:]:
            condition = call("and", condition, more)
        return interval(columns_of(Filter(source=scan(), condition=condition), CATALOG), "v.income")

    assert kept(call("between", INCOME, literal(3), literal(9))) == (3, 9)
    assert kept(call("<", INCOME, literal(9)), call("<=", literal(1), INCOME)) == (1, 9)
    assert kept(call(">", literal(9), INCOME), call(">=", INCOME, literal(1))) == (1, 9)
    assert kept(call("or", call("<", INCOME, literal(9)), call("<", INCOME, literal(8)))) == (
        -math.inf,
        math.inf,
    )
    assert kept(call("not", call("<", INCOME, literal(9)))) == (-math.inf, math.inf)
    assert kept(call("<", INCOME, AGE)) == (-math.inf, math.inf)


def test_a_comparison_keeps_null_out() -> None:
    for condition in (
        call(">", INCOME, literal(0)),
        call("between", INCOME, literal(0), literal(1)),
        call("not", call("is_null", INCOME)),
    ):
        assert not narrowed({"v.income": Known()}, condition)["v.income"].nullable
    assert narrowed({"v.income": Known()}, call("not", call(">", INCOME, literal(0))))["v.income"].nullable


def test_a_filter_that_nothing_passes_leaves_what_was_declared() -> None:
    assert narrowed({"v.age": Known(interval=Interval(0, 110))}, call(">", AGE, literal(500)))[
        "v.age"
    ].interval == (Interval(0, 110))


def test_years_follow_from_dates() -> None:
    domain = between(datetime.date(1990, 5, 1), datetime.date(2020, 1, 1))
    table = Table(name="t", fields=(Field("born", Kind.DATE, domain),), unit=None)
    born = ColumnRef(name="t.born", kind=Kind.DATE)
    from sfumato.plan.tree import Scan

    found = columns_of(Scan(table="t", alias="t", columns=(born,)), Catalog((table,)))
    assert known_of(call("year", born, kind=Kind.INTEGER), found).interval == Interval(1990, 2020)
