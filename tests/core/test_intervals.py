"""Intervals hold every value: by hand, and for random expressions on random values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.analysis.ranges import Known, known_of
from sfumato.catalog import Kind
from sfumato.core.intervals import EVERYTHING, Interval, hull
from sfumato.plan.functions import DATE_PARTS, FUNCTIONS
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal
from tests.analysis.questions import call, literal
from tests.analysis.reference import evaluate

X = ColumnRef(name="x", kind=Kind.REAL)  # between -3 and 5/2
N = ColumnRef(name="n", kind=Kind.INTEGER)  # between 0 and 7
M = ColumnRef(name="m", kind=Kind.INTEGER)  # between -4 and -1, never NULL
FREE = ColumnRef(name="free", kind=Kind.REAL)
WORD = ColumnRef(name="word", kind=Kind.TEXT)
FEW = ColumnRef(name="few", kind=Kind.TEXT)  # one of a and abcde
COLUMNS = {
    "x": Known(interval=Interval(-3, Fraction(5, 2))),
    "n": Known(interval=Interval(0, 7)),
    "m": Known(interval=Interval(-4, -1), nullable=False),
    "few": Known(values=("a", "abcde")),
}


def of(expression: Expression) -> tuple[object, object]:
    interval = known_of(expression, COLUMNS).interval
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (call("+", X, N), -3, 9.5),
        (call("-", X, N), -10, 2.5),
        (call("*", X, N), -21, 17.5),
        (call("*", X, X), 0, 9),
        (call("/", X, M), -2.5, 3),
        (call("/", literal(6), N), Fraction(6, 7), 6),  # 0 gives NULL; whole divisors are at least 1
        (call("/", literal(6), X), -math.inf, math.inf),
        (call("%", N, literal(5)), 0, 5),
        (call("%", X, literal(2)), -2, 2),
        (call("neg", X), -2.5, 3),
        (call("abs", X), 0, 3),
        (call("floor", X), -3, 3),
        (call("round", call("/", N, literal(3)), literal(1)), 0, Fraction(12, 5)),
        (call("power", X, literal(2)), 0, 9),
        (call("power", X, literal(3)), -27, Fraction(125, 8)),
        (call("power", N, literal(-1)), Fraction(1, 7), math.inf),
        (call("least", FREE, literal(20)), -math.inf, 20),
        (call("least", N, literal(20)), 0, 20),  # NULL is skipped, and leaves 20
        (call("least", call("greatest", FREE, literal(0)), literal(20)), 0, 20),
        (call("coalesce", N, literal(-1)), -1, 7),
        (call("nullif", N, literal(3)), 0, 7),
        (Cast(operand=call("=", N, N, kind=Kind.BOOLEAN), kind=Kind.INTEGER), 0, 1),
        (Cast(operand=X, kind=Kind.INTEGER), -3, 3),
        (call("length", ColumnRef(name="word", kind=Kind.TEXT), kind=Kind.INTEGER), 0, math.inf),
        (call("month", ColumnRef(name="day", kind=Kind.DATE), kind=Kind.INTEGER), 1, 12),
        (call("length", call("left", WORD, literal(3), kind=Kind.TEXT), kind=Kind.INTEGER), 0, 3),
        (call("length", call("right", WORD, literal(-3), kind=Kind.TEXT), kind=Kind.INTEGER), 0, math.inf),
        (call("length", call("trim", FEW, kind=Kind.TEXT), kind=Kind.INTEGER), 0, 5),
        (
            call("length", call("substr", FEW, literal(2), literal(4), kind=Kind.TEXT), kind=Kind.INTEGER),
            0,
            4,
        ),
        (call("//", N, literal(2), kind=Kind.INTEGER), 0, 4),
        (FREE, -math.inf, math.inf),
    ],
)
def test_interval_by_hand(expression: Expression, low: float, high: float) -> None:
    assert of(expression) == (low, high)


def test_case_is_the_hull_of_its_branches_and_null_is_no_value() -> None:
    bob = call(
        "=", ColumnRef(name="name", kind=Kind.TEXT), Literal(value="bob", kind=Kind.TEXT), kind=Kind.BOOLEAN
    )
    nothing = Literal(value=None, kind=None)
    huge = Case(branches=((bob, call("*", literal(1e9), X)),), otherwise=nothing, kind=Kind.REAL)
    assert of(huge) == (-3e9, 2.5e9)  # what a clamp of the column alone would have let through
    assert known_of(nothing, COLUMNS).interval is None
    assert known_of(call("+", X, nothing), COLUMNS).interval is None


def test_irrational_ends_are_rounded_outward() -> None:
    low, high = of(call("sqrt", call("+", N, literal(2))))
    assert low**2 < 2 and high**2 >= 9  # type: ignore[operator]
    low, high = of(call("exp", N))
    assert low <= 1 and high >= math.exp(7)  # type: ignore[operator]
    low, high = of(call("ln", N))
    assert low == -math.inf and high >= math.log(7)  # type: ignore[operator]


def test_huge_powers_become_infinite_in_no_time() -> None:
    assert of(call("power", call("power", N, literal(9999)), literal(9999))) == (0, math.inf)
    tiny = call("power", call("/", M, literal(100)), literal(9999))
    low, high = of(tiny)
    assert low < 0 and high <= 0  # type: ignore[operator]


def test_every_numeric_function_has_a_rule_or_is_unbounded() -> None:
    """A function that is added to the allow-list without a rule is unbounded, never narrow."""
    for name in FUNCTIONS:
        made = Call(function=name, arguments=(FREE, FREE, FREE)[: FUNCTIONS[name].least], kind=Kind.REAL)
        interval = known_of(made, {}).interval
        assert interval is None or not interval.bounded or name in {"sign", *DATE_PARTS} - {"year"}
    assert known_of(Call(function="new", arguments=(X,), kind=Kind.REAL), COLUMNS).interval == EVERYTHING


# -- random expressions ---------------------------------------------------------------------

UNARY = ("neg", "abs", "floor", "ceil", "round", "sqrt", "ln", "exp")
BINARY = ("+", "-", "*", "/", "%", "least", "greatest", "coalesce", "nullif")


def grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda f, a: call(f, a), st.sampled_from(UNARY), inner),
        st.builds(lambda f, a, b: call(f, a, b), st.sampled_from(BINARY), inner, inner),
        st.builds(lambda a, p: call("power", a, literal(p)), inner, st.integers(-2, 3)),
        st.builds(lambda a, b: call("power", call("abs", a), b), inner, inner),
        st.builds(lambda a: Cast(operand=a, kind=Kind.INTEGER), inner),
        st.builds(
            lambda a, b, c: Case(
                branches=((call("<", a, b, kind=Kind.BOOLEAN), b),), otherwise=c, kind=Kind.REAL
            ),
            inner,
            inner,
            inner,
        ),
    )


EXPRESSIONS = st.recursive(
    st.one_of(
        st.sampled_from([X, N, M]),
        st.integers(-4, 9).map(literal),
        st.sampled_from([0.5, -1.25, 3.0]).map(literal),
        st.just(Literal(value=None, kind=None)),
    ),
    grown,
    max_leaves=8,
)
VALUES = st.fixed_dictionaries(
    {
        "x": st.none() | st.fractions(-3, Fraction(5, 2), max_denominator=64),
        "n": st.none() | st.integers(0, 7),
        "m": st.integers(-4, -1),
    }
)


@given(EXPRESSIONS, st.lists(VALUES, min_size=5, max_size=12))
def test_values_stay_inside(expression: Expression, rows: list[dict[str, object]]) -> None:
    interval = known_of(expression, COLUMNS).interval
    nullable = known_of(expression, COLUMNS).nullable
    for row in rows:
        value = evaluate(expression, row)
        if value is None:
            assert nullable
            continue
        assert interval is not None
        slack = Fraction(1, 10**9) * (1 + abs(Fraction(value)))  # the reference's own floats
        assert interval.low - slack <= value <= interval.high + slack


@given(st.lists(st.fractions(-5, 5), min_size=4, max_size=4), st.fractions(0, 1), st.fractions(0, 1))
def test_arithmetic_encloses(ends: list[Fraction], s: Fraction, t: Fraction) -> None:
    a, b = Interval(*sorted(ends[:2])), Interval(*sorted(ends[2:]))
    assert isinstance(a.low, Fraction) and isinstance(a.high, Fraction)
    assert isinstance(b.low, Fraction) and isinstance(b.high, Fraction)
    x, y = a.low + s * (a.high - a.low), b.low + t * (b.high - b.low)
    assert x + y in a + b and x - y in a - b and x * y in a * b and abs(x) in abs(a)
    if y:
        assert x / y in a.divided_by(b, whole=False)
    united = hull([a, None, b])
    assert united is not None and x in united and y in united
