"""Grids in SQL agree with the core's for every double."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.analysis.bounded import Factor, Measure, MeasureKind
from sfumato.backends import DUCKDB
from sfumato.backends.dialect import Writer
from sfumato.backends.integers import Stage, row_integer
from sfumato.catalog import Kind
from sfumato.core.grid import Grid
from sfumato.errors import Unsupported
from sfumato.plan.tree import ColumnRef

X = ColumnRef(name="x", kind=Kind.REAL)
I = ColumnRef(name="i", kind=Kind.INTEGER)  # noqa: E741
WRITER = Writer(DUCKDB, {"x": "x", "i": "i"})
CONNECTION = duckdb.connect()


def steps(values: list[float | None], factor: Factor) -> list[int | None]:
    stage = Stage(WRITER)
    sql = stage.steps(factor)
    staged = ", ".join(f"{text} AS {name}" for text, name in stage.columns.items())
    listed = ", ".join("?" for _ in values)
    name, of_type = ("i", "BIGINT") if factor.expression is I else ("x", "DOUBLE")
    source = f"SELECT unnest([{listed}]::{of_type}[]) AS {name}"
    text = f"SELECT {sql} FROM (SELECT {staged} FROM ({source}))"
    return [row[0] for row in CONNECTION.execute(text, values).fetchall()]


def hazards(step: Fraction, index: int) -> list[float]:
    """Doubles around the place where one grid point ends and the next begins."""
    edge = (Fraction(index) - Fraction(1, 2)) * step
    near = float(edge)
    below, above = math.nextafter(near, -math.inf), math.nextafter(near, math.inf)
    return [below, near, above, -below, -near, -above, float(index * step), near + float(step) / 2]


FINITE = st.floats(allow_nan=False)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(-60, 60),
    st.integers(-(2**40), 2**40),
    st.integers(0, 2**40),
    st.lists(FINITE, max_size=5),
    st.integers(-(2**41), 2**41),
)
@example(
    exponent=0, low=-10, width=20, values=[0.49999999999999994, -0.5, 0.5, -0.49999999999999994], index=1
)
def test_powers_of_two(exponent: int, low: int, width: int, values: list[float], index: int) -> None:
    step = Fraction(2) ** exponent
    grid = Grid(step=step, lower=low * step, upper=(low + width) * step)
    given = [
        *values,
        *hazards(step, index),
        *hazards(step, low),
        *hazards(step, low + width),
        math.inf,
        -math.inf,
        0.0,
        -0.0,
    ]
    expected = [grid.to_integer(value) for value in given]
    assert steps(given, Factor(expression=X, centre=0.0, grid=grid)) == expected


@settings(max_examples=100, deadline=None)
@given(
    st.integers(-(2**62), 2**62),
    st.integers(-(2**62), 2**62),
    st.integers(-10, 10),
    st.lists(FINITE, max_size=5),
)
def test_bounds_that_no_double_holds(one: int, other: int, exponent: int, values: list[float]) -> None:
    step = Fraction(2) ** exponent
    grid = Grid(step=step, lower=min(one, other) * step, upper=max(one, other) * step)
    given = [
        *values,
        *hazards(step, one),
        *hazards(step, 2**52),
        *hazards(step, 2**53),
        math.inf,
        -math.inf,
        1e300,
    ]
    assert steps(given, Factor(expression=X, centre=0.0, grid=grid)) == [grid.to_integer(v) for v in given]


@settings(max_examples=100, deadline=None)
@given(
    st.fractions(Fraction(1, 1000), 1000),
    st.integers(-50, 50),
    st.integers(0, 60),
    st.lists(FINITE, max_size=5),
    st.floats(-100, 100),
)
def test_cells_of_any_width(step: Fraction, low: int, width: int, values: list[float], centre: float) -> None:
    grid = Grid(step=step, lower=low * step, upper=(low + width) * step)
    given = [*values, math.inf, -math.inf]
    for index in range(low, low + width + 1, 7):
        given += [value + centre for value in hazards(step, index)]
    expected = [grid.to_integer(value - centre) for value in given]
    assert steps(given, Factor(expression=X, centre=centre, grid=grid)) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
    st.integers(-(2**40), 2**40),
    st.integers(-1000, 1000),
    st.integers(0, 10),
)
def test_integer_columns(values: list[int], centre: int, low: int, width: int) -> None:
    grid = Grid(step=1, lower=low, upper=low + width)
    given = [*values, 0, -(2**63), 2**63 - 1, *(centre + low + i for i in range(-2, width + 3))]
    expected = [grid.to_integer(float(value) - centre) for value in given]
    assert steps(given, Factor(expression=I, centre=float(centre), grid=grid)) == expected


def test_missing_is_absent() -> None:
    for grid in (
        Grid(step=1, lower=3, upper=9),
        Grid(step=3, lower=3, upper=9),
        Grid(step=1, lower=0, upper=2**60),
    ):
        assert steps([None], Factor(expression=X, centre=0.0, grid=grid)) == [None]
    assert steps([None], Factor(expression=I, centre=0.0, grid=Grid(step=1, lower=3, upper=9))) == [None]


def test_what_cannot_be_exact_is_refused() -> None:
    def measure(*grids: Grid) -> Measure:
        factors = tuple(Factor(expression=X, centre=0.0, grid=grid) for grid in grids)
        return Measure(name="m", kind=MeasureKind.MOMENT, factors=factors, sensitivity=1)

    with pytest.raises(Unsupported):
        row_integer(measure(Grid(step=Fraction(1, 3), lower=0, upper=10**9)), Stage(WRITER))
    with pytest.raises(Unsupported):
        row_integer(
            measure(Grid(step=1, lower=0, upper=2**40), Grid(step=1, lower=0, upper=2**40)), Stage(WRITER)
        )
    with pytest.raises(Unsupported):
        row_integer(measure(Grid(step=1, lower=-1, upper=1, toward_zero=True)), Stage(WRITER))
