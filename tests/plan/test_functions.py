"""The allow-list: what it holds, what it refuses, and of which kind values are."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from sfumato.catalog import Kind, kind_of
from sfumato.plan.conversions import cast
from sfumato.plan.functions import FUNCTIONS, NAMES, call, case
from sfumato.plan.hints import did_you_mean
from sfumato.plan.numbers import KindError
from sfumato.plan.tree import Cast, ColumnRef, Expression, Literal

X, R = ColumnRef(name="t.x", kind=Kind.INTEGER), ColumnRef(name="t.r", kind=Kind.REAL)
S, B = ColumnRef(name="t.s", kind=Kind.TEXT), ColumnRef(name="t.b", kind=Kind.BOOLEAN)
D, T = ColumnRef(name="t.d", kind=Kind.DATE), ColumnRef(name="t.t", kind=Kind.TIMESTAMP)


def lit(value: Any) -> Literal:
    return Literal(value=value, kind=kind_of(value))


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("+", (X, X), Kind.INTEGER),
        ("+", (X, R), Kind.REAL),
        ("/", (X, X), Kind.REAL),
        ("%", (X, X), Kind.INTEGER),
        ("neg", (X,), Kind.INTEGER),
        ("round", (R, lit(2)), Kind.REAL),
        ("floor", (R,), Kind.REAL),
        ("sqrt", (X,), Kind.REAL),
        ("power", (X, X), Kind.REAL),
        ("least", (X, R), Kind.REAL),
        ("=", (X, R), Kind.BOOLEAN),
        ("<", (D, T), Kind.BOOLEAN),
        ("in", (S, lit("a"), lit(None)), Kind.BOOLEAN),
        ("coalesce", (lit(None), X), Kind.INTEGER),
        ("nullif", (X, R), Kind.INTEGER),
        ("length", (S,), Kind.INTEGER),
        ("substr", (S, lit(1)), Kind.TEXT),
        ("contains", (S, lit("a")), Kind.BOOLEAN),
        ("year", (D,), Kind.INTEGER),
        ("date_trunc", (lit("month"), D), Kind.DATE),
        ("date_trunc", (lit("hour"), T), Kind.TIMESTAMP),
    ],
)
def test_kinds(name: str, arguments: tuple[Expression, ...], kind: Kind) -> None:
    assert call(name, arguments).kind is kind


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("+", (X, S)),
        ("+", (X,)),
        ("and", (R, B)),
        ("not", (S,)),
        ("=", (X, S)),
        ("=", (B, S)),
        ("=", (X, lit("3.5"))),
        ("=", (X, lit("three"))),
        ("regexp_matches", (S, S)),
        ("strftime", (D, lit("%Q"))),
        ("strftime", (D, lit(None))),
        ("lpad", (S, lit(3), lit(""))),
        ("date_add", (lit("decade"), lit(1), D)),
        ("date_add", (lit("year"), lit(10**9), D)),
        ("in", (S, S)),
        ("in", (S,)),
        ("like", (S, S)),
        ("round", (R, X)),
        ("least", (X, S)),
        ("coalesce", (lit(None),)),
        ("length", (X,)),
        ("year", (S,)),
        ("date_trunc", (lit("hour"), D)),
        ("date_trunc", (S, D)),
        ("concat", (X, S)),
        (">", (D, lit("soon"))),
        (">", (T, lit("2024-01-01T00:00:00+01:00"))),
    ],
)
def test_misfits(name: str, arguments: tuple[Expression, ...]) -> None:
    with pytest.raises(KindError):
        call(name, arguments)


def test_text_beside_dates_is_a_date() -> None:
    assert call("=", (D, lit("2024-02-01"))).arguments[1] == lit(datetime.date(2024, 2, 1))
    assert call("between", (T, lit("2024-02-01"), lit("2024-02-02 10:00"))).arguments[2] == lit(
        datetime.datetime(2024, 2, 2, 10)
    )
    assert cast(lit("2024-02-01"), Kind.DATE) == lit(datetime.date(2024, 2, 1))


def test_conversions_that_engines_add_unasked() -> None:
    assert call("=", (X, lit("30"))).arguments[1] == lit(30)
    assert call("in", (X, lit("30"), lit("-1"))).arguments[1:] == (lit(30), lit(-1))
    assert call("=", (B, lit(1))).arguments[0] == Cast(operand=B, kind=Kind.INTEGER)
    assert call("=", (X, lit(True))).arguments[1] == lit(1)
    assert call("=", (B, lit("true"))).arguments[1] == lit(True)
    assert call("not", (X,)).arguments == (Cast(operand=X, kind=Kind.BOOLEAN),)
    assert case(((X, X),), X).branches[0][0] == Cast(operand=X, kind=Kind.BOOLEAN)


def test_casts_to_the_same_kind_vanish() -> None:
    assert cast(X, Kind.INTEGER) == X
    assert cast(X, Kind.TEXT) == Cast(operand=X, kind=Kind.TEXT)


def test_case_needs_truths_and_one_kind() -> None:
    assert case(((B, X),), R).kind is Kind.REAL
    for branches, otherwise in [(((R, X),), X), (((B, X),), S), (((B, lit(None)),), lit(None))]:
        with pytest.raises(KindError):
            case(branches, otherwise)


def test_nothing_volatile_or_far_reaching_is_listed() -> None:
    forbidden = ("rand", "now", "current", "uuid", "nextval", "read", "env", "query", "glob", "sleep", "hash")
    assert not [name for name in FUNCTIONS if any(part in name for part in forbidden)]
    assert did_you_mean("lenght", NAMES)[0].startswith("did you mean `length`")
