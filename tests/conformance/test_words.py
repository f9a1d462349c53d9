"""PostgreSQL's own forms of what it has no words for: numbers of all digits, and folds over a unit's rows."""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import Writer
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.postgres import unit_aggregates
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.catalog import Kind
from sfumato.plan.functions import call
from sfumato.plan.tree import Aggregate, Cast, ColumnRef, Expression, Literal
from tests.conformance.test_expressions import NUMBERS, TEXTS, A, B, S, _engines, _real, _text

NEAR = (2.0, -1.0, -3.0, 1023.0, 1024.0, -1074.0, -1075.0, 1e10, 1e-5, 0.3, 28.5, 0.285)
WIDTHS = ((4, 1), (15, 2), (38, 10), (38, 0), (38, 37))
EXACT = (Kind.HUGEINT, *(Kind.decimal(*one) for one in WIDTHS))
HUGE = ColumnRef(name="h", kind=Kind.HUGEINT)


def _whole(value: int) -> Literal:
    return Literal(value=value, kind=Kind.INTEGER)


def _of_numbers() -> Iterator[Expression]:
    singles = tuple(Cast(operand=one, kind=Kind.FLOAT) for one in (A, B))
    yield from (call("%", both) for both in ((A, B), singles))
    yield call("power", (A, B))
    yield from (call("power", (A, _real(one))) for one in (-0.5, 2.0, 1e300))
    for one in (A, singles[0]):
        yield from (Cast(operand=one, kind=kind) for kind in EXACT)
        yield from (
            Cast(operand=Cast(operand=one, kind=kind), kind=to)
            for kind in EXACT
            for to in (Kind.FLOAT, Kind.REAL)
        )


def test_remainders_powers_and_decimals_of_extremes(connection: Any) -> None:
    rows = list(itertools.product((*NUMBERS[::2], *NEAR), (*NUMBERS[1::2], *NEAR)))
    found = _engines(connection, rows, {"a": Kind.REAL, "b": Kind.REAL}).compare(list(_of_numbers()))
    assert not found.wrong and not found.refused


def test_decimals_beside_numbers_of_128_bits(connection: Any) -> None:
    """A whole number of 39 digits is no decimal, and times zero it is zero."""
    wide = (0, 3, -4, 10**38, 10**38 - 1, 2**127 - 1, -(2**127), 16777217, 2**64 + 1, None)
    rows = [(one, other) for one in wide for other in ("0", "2.5", "-0.1", None)]
    decimal = ColumnRef(name="d", kind=Kind.decimal(15, 2))
    asked = [call(name, both) for name in "+-*" for both in ((HUGE, decimal), (decimal, HUGE))]
    asked += [Cast(operand=HUGE, kind=kind) for kind in (Kind.FLOAT, Kind.REAL)]
    found = _engines(connection, rows, {"h": Kind.HUGEINT, "d": decimal.kind}).compare(asked)
    assert not found.wrong and not found.refused


def test_parts_of_texts(connection: Any) -> None:
    asked = [
        call("split_part", (S, _text(mark), _whole(place)))
        for mark in ("-", "", "ab", "é")
        for place in (-9, -3, -1, 0, 1, 2, 5)
    ]
    texts = [(one,) for one in (*TEXTS, "a-b-c", "-", "abab", "é日é")]
    found = _engines(connection, texts, {"s": Kind.TEXT}).compare(asked)
    assert not found.wrong and not found.refused


# -- aggregates of one unit's rows ----------------------------------------------------------

RANKS = (0.0, 0.3, 0.5, 0.9, 1.0)
OF_ONE = (Function.VAR_POP, Function.VAR_SAMP, Function.STDDEV_POP, Function.STDDEV_SAMP)
OF_TWO = (
    Function.COVAR_POP, Function.COVAR_SAMP, Function.CORR, Function.REGR_SLOPE, Function.REGR_INTERCEPT,
    Function.REGR_R2,
)  # fmt: skip
ORDERED = (
    *(Aggregate(function=Function.QUANTILE, arguments=(A,), quantiles=(rank,)) for rank in RANKS),
    *(Aggregate(function=one, arguments=(A,)) for one in OF_ONE),
    *(Aggregate(function=one, arguments=(A, B)) for one in OF_TWO),
    Aggregate(function=Function.VAR_POP, arguments=(A,), where=call("<", (B, _real(1.0)))),
)


def _units(number: int) -> Iterator[tuple[int, float | None, float | None]]:
    """Yield rows of units: usual values, extreme ones, few different ones."""
    chance = random.Random(7)
    far = (1.7e308, -1.7e308, 1e308, -1e292, 3.0, -1e-300, 5e-324, 2.0**970, 1e140, 1e141)
    for unit in range(number):
        values = (far, NUMBERS, (0.1, 0.3), (), (1.0, 2.0, 3.0, -1.0), ())[unit % 6]
        for _ in range(chance.choice((1, 2, 3, 9, 20))):
            one, other = (chance.choice(values) if values else chance.gauss(100, 5) for _ in range(2))
            yield unit, one, other


def _differences(connection: Any, units: int) -> list[tuple[str, Any, Any]]:
    engines = _engines(connection, list(_units(units)), {"u": Kind.INTEGER, "a": Kind.REAL, "b": Kind.REAL})
    found = []
    for run, dialect in ((engines._duckdb, DUCKDB), (connection, POSTGRES)):
        write = Writer(dialect, engines.names)
        listed = ", ".join(
            dialect.canonical(dialect.unit_aggregate(one, write), Kind.REAL) for one in ORDERED
        )
        given = engines._rows(dialect).removesuffix(" ORDER BY place")
        found.append(run.execute(f'SELECT {listed} FROM {given} GROUP BY "u" ORDER BY "u"').fetchall())
    return [
        (one.function.label, ours[place], theirs[place])
        for ours, theirs in zip(*found, strict=True)
        for place, one in enumerate(ORDERED)
        if ours[place] != theirs[place]
    ]


@pytest.mark.parametrize("units", [90, pytest.param(3000, marks=pytest.mark.soak)])
def test_what_is_computed_in_the_order_of_values_has_one_value(connection: Any, units: int) -> None:
    """Quantiles, deviations and lines of one unit's rows, bit by bit."""
    assert _differences(connection, units) == []


def test_a_sum_that_is_rounded_twice_is_seen(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(first: str, second: str, third: str) -> str:
        return unit_aggregates.product(first, second).join(("(", f" + {third})"))

    monkeypatch.setattr(unit_aggregates, "fused", plain)
    wrong = {label for label, *_ in _differences(connection, 60)}
    assert {"quantile", "covar_pop"} <= wrong


# -- formats --------------------------------------------------------------------------------

FORMATS = (
    *(f"%{letter}" for letter in "aAbBcdfGgHhIjmMnpSTuUVwWxXyY%"),
    *(f"%-{letter}" for letter in "dmHIMSjy"),
    "it's %Y\"-\\%%é%-d",
)


def test_moments_are_written_alike(connection: Any) -> None:
    """The first and last days of years, whose weeks belong to others, and every part of a format."""
    days = [datetime.datetime(year, 1, 1) for year in (1, 4, 99, 1582, 1969, 2000, *range(2018, 2026), 9999)]
    apart = (datetime.timedelta(days=364), datetime.timedelta(days=59, seconds=45296, microseconds=789_001))
    moments = [(day + more,) for day in days for more in (datetime.timedelta(0), *apart)]
    moment = ColumnRef(name="t", kind=Kind.TIMESTAMP)
    asked = [call("strftime", (moment, _text(one))) for one in FORMATS]
    found = _engines(connection, [*moments, (None,)], {"t": Kind.TIMESTAMP}).compare(asked)
    assert not found.wrong and not found.refused
