"""A function of a function of a function: on every engine the text of it grows by as much at each level."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from sfumato.backends.dialect import LONGEST_TERM, Dialect
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.backends.spark.dialect import SPARK
from sfumato.catalog import Kind
from sfumato.errors import Unsupported
from sfumato.plan.functions import call
from sfumato.plan.tree import Cast, ColumnRef, Expression, Literal

DEPTHS = (1, 6, 12, 30)  # the last as deep as questions may be
WIDE = Kind.decimal(38, 0)


def _of(name: str, *constants: int | str | Decimal) -> Callable[[Expression], Expression]:
    kinds = {int: Kind.INTEGER, str: Kind.TEXT, Decimal: Kind.decimal(2, 1)}
    given = tuple(Literal(value=one, kind=kinds[type(one)]) for one in constants)
    return lambda inner: call(name, (inner, *given))


def _later(inner: Expression) -> Expression:
    return call(
        "date_add", (Literal(value="day", kind=Kind.TEXT), Literal(value=1, kind=Kind.INTEGER), inner)
    )


def _by_way_of(kind: Kind) -> Callable[[Expression], Expression]:
    return lambda inner: Cast(operand=Cast(operand=inner, kind=kind), kind=inner.kind or kind)


STEPS: dict[str, tuple[Kind, Callable[[Expression], Expression]]] = {
    "nullif": (Kind.INTEGER, _of("nullif", 3)),
    "nullif of other kinds": (Kind.INTEGER, _of("nullif", Decimal("2.5"))),
    "to digits": (Kind.REAL, _of("round", 2)),
    "to tens": (Kind.REAL, _of("round", -2)),
    "cut": (Kind.REAL, _of("trunc", 1)),
    "floor": (Kind.REAL, _of("floor")),
    "exact": (WIDE, _of("round", -3)),
    "exact cut": (WIDE, _of("trunc", -3)),
    "whole quotient": (Kind.INTEGER, _of("//", 3)),
    "negative": (WIDE, _of("neg")),
    "size": (WIDE, _of("abs")),
    "real and back": (WIDE, _by_way_of(Kind.REAL)),
    "whole and back": (Kind.REAL, _by_way_of(Kind.INTEGER)),
    "decimal and back": (Kind.REAL, _by_way_of(Kind.decimal(38, 10))),
    "text and back": (Kind.INTEGER, _by_way_of(Kind.TEXT)),
    "text and a moment": (Kind.TIMESTAMP, _by_way_of(Kind.TEXT)),
    "lower": (Kind.TEXT, _of("lower")),
    "substr": (Kind.TEXT, _of("substr", 2, 3)),
    "right": (Kind.TEXT, _of("right", 2)),
    "split": (Kind.TEXT, _of("split_part", "", -2)),
    "later": (Kind.TIMESTAMP, _later),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SPARK], ids=["duckdb", "postgresql", "spark"])
def test_texts_do_not_double_at_each_level(dialect: Dialect, step: str) -> None:
    """Or the expression is refused, before it is too long."""
    kind, made = STEPS[step]
    sizes: list[int] = []
    for depth in DEPTHS:
        node: Expression = ColumnRef(name="x", kind=kind)
        for _ in range(depth):
            node = made(node)
        try:
            sizes.append(len(dialect.expression(node, {"x": "x"})))
        except Unsupported:
            break
        assert sizes[-1] < 8 * LONGEST_TERM + 2 * depth * sizes[0]
