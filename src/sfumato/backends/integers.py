"""Integers of rows: a factor's value on its grid, in SQL that agrees with `core.Grid` for every double.

Steps that are powers of two divide exactly. Rounding halves upward is (floor(2y) + 1) / 2 rounded
down, and 2y is exact, while y + 1/2 is not: 0.49999999999999994 + 0.5 is 1. The value is clamped
to the grid's bounds before it is rounded, which is the same and keeps infinities away. Other steps
occur for cells of a histogram, which are few: an inexact quotient is corrected by one comparison
with the smallest double that belongs to each cell. NULL stays NULL everywhere: it means absent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.analysis.bounded import Factor, Measure, MeasureKind
from sfumato.backends.dialect import Dialect, Writer
from sfumato.catalog.kind import Kind
from sfumato.core.grid import Grid
from sfumato.errors import Unsupported

__all__ = ["RowInteger", "Stage", "row_integer"]

_EXACT = 2**52  # up to here a double holds every half
_MOST_CELLS = 2**16
_MOST_EXPONENT = 1000
_FURTHEST = 2**61  # of a product: its distance from the lowest value still fits into 64 bits
_LARGEST = 2**62  # of a grid


@dataclass(frozen=True, slots=True, kw_only=True)
class RowInteger:
    """What one row gives a measure: a BIGINT between `low` and `high`, or NULL for 0, times `scale`.

    `double` is the same number as a DOUBLE, where it is rounded from one: that is added up in less time.
    """

    sql: str
    low: int
    high: int
    scale: int = 1
    double: str | None = None


class Stage:
    """Columns that are computed once per row, below the integers that are made of them."""

    def __init__(self, write: Writer) -> None:
        self.write = write
        self.columns: dict[str, str] = {}  # SQL -> the name of its column

    def __call__(self, sql: str) -> str:
        """Return the column that holds a piece of SQL."""
        return self.columns.setdefault(sql, f"x{len(self.columns)}")

    def steps(self, factor: Factor) -> str:
        """Return the number of steps of a factor, a BIGINT, NULL where it is absent."""
        grid, kind, constant = factor.grid, factor.expression.kind, self.write.dialect.constant
        if grid.toward_zero:
            raise Unsupported("rounding toward zero in an engine")
        if _is_whole(factor):
            middle = int(factor.centre)
            column = self(self.write(factor.expression))
            low, high = constant(grid.low + middle), constant(grid.high + middle)
            clamped = self.write.dialect.clamped(column, low, high)
            clamped = clamped if kind is Kind.INTEGER else f"CAST({clamped} AS BIGINT)"
            return f"({clamped} - {constant(middle)})" if middle else clamped
        if (double := self.double_steps(factor)) is not None:
            return f"CAST({double} AS BIGINT)"
        value, exponent = self(self._centred(factor)), _exponent(grid.step)
        if exponent is None:
            return _by_comparison(self.write.dialect, value, grid)
        return _far(self.write.dialect, value, grid, exponent)

    def double_steps(self, factor: Factor) -> str | None:
        """Return the number of steps as a DOUBLE where it is rounded from one; None where it is not."""
        grid, exponent = factor.grid, _exponent(factor.grid.step)
        if _is_whole(factor) or exponent is None or max(-grid.low, grid.high) > _EXACT:
            return None
        dialect = self.write.dialect
        twice = self(dialect.scaled(self._centred(factor), 1 - exponent))
        return _rounded(dialect, twice, grid.low, grid.high)

    def _centred(self, factor: Factor) -> str:
        value = self.write(factor.expression, Kind.REAL)
        return f"({value} - {self.write.dialect.constant(float(factor.centre))})" if factor.centre else value


def row_integer(measure: Measure, stage: Stage) -> RowInteger | None:
    """Return the integer of a row for a MOMENT, UNITS or CELLS measure; None if every row gives one.

    The index of a cell is given plus one.
    """
    tests = [] if measure.condition is None else [stage(stage.write(measure.condition, Kind.BOOLEAN))]
    steps: list[str] = []
    doubles: list[str | None] = []
    low, high, scale = 1, 1, 1
    for factor in measure.factors:
        grid = factor.grid
        if measure.kind is not MeasureKind.CELLS and grid.low == grid.high:
            scale *= grid.low  # it only tells whether the value is there
            tests.append(f"{stage(stage.write(factor.expression, Kind.REAL))} IS NOT NULL")
            continue
        steps.append(stage.steps(factor))
        doubles.append(stage.double_steps(factor))
        ends = [low * grid.low, low * grid.high, high * grid.low, high * grid.high]
        low, high = min(ends), max(ends)
    if not tests and not steps:
        return None
    product = " * ".join(steps) or "1::BIGINT"
    if measure.kind is MeasureKind.CELLS:
        if len(steps) != 1 or low < 0 or high > len(measure.edges) - 2:
            raise Unsupported("a histogram whose cells are not those of its grid")
        product, low, high = f"{product} + 1", 0, high + 1
    if max(-low, high) * abs(scale) > _FURTHEST:
        raise Unsupported("products of more than 2^61 steps")
    double = doubles[0] if len(doubles) == 1 else None
    return RowInteger(
        sql=_where(tests, product),
        low=min(low, 0),
        high=max(high, 0),
        scale=scale,
        double=None if double is None else _where(tests, double),
    )


def _where(tests: list[str], value: str) -> str:
    return f"CASE WHEN {' AND '.join(tests)} THEN {value} END" if tests else f"({value})"


def _is_whole(factor: Factor) -> bool:
    """Return whether a factor's value is whole, and its steps are too."""
    grid, centre, kind = factor.grid, float(factor.centre), factor.expression.kind
    near = max(-grid.low, grid.high) + abs(centre) <= _EXACT
    return kind is not None and kind.whole and grid.step == 1 and centre.is_integer() and near


def _exponent(step: Fraction) -> int | None:
    """Return e for a step of 2^e, None for other steps."""
    if (step.numerator * step.denominator).bit_count() != 1:
        return None
    exponent = step.numerator.bit_length() - step.denominator.bit_length()
    if abs(exponent) > _MOST_EXPONENT:
        raise Unsupported("a grid whose step is beyond 2^1000")
    return exponent


def _rounded(dialect: Dialect, twice: str, low: int, high: int) -> str:
    """Return the nearest whole number to half of a DOUBLE, halves upward, as a DOUBLE."""
    clamped = dialect.clamped(twice, dialect.constant(float(2 * low)), dialect.constant(float(2 * high)))
    return dialect.half_rounded(clamped)


def _far(dialect: Dialect, value: str, grid: Grid, exponent: int) -> str:
    """Round to a step of 2^e where bounds may not be doubles: beyond 2^52 steps a double is whole."""
    steps, constant = dialect.scaled(value, -exponent), dialect.constant
    far = f"CAST({dialect.clamped(steps, constant(-float(_LARGEST)), constant(float(_LARGEST)))} AS BIGINT)"
    near = f"abs({steps}) < {constant(float(_EXACT))}"
    rounded = _rounded(dialect, dialect.scaled(value, 1 - exponent), -_EXACT, _EXACT)
    either = f"CASE WHEN {near} THEN CAST({rounded} AS BIGINT) ELSE {far} END"
    return dialect.clamped(f"({either})", constant(grid.low), constant(grid.high))


def _by_comparison(dialect: Dialect, value: str, grid: Grid) -> str:
    """Round to any step, where the grid has few points: point i begins at a known double."""
    if grid.width >= _MOST_CELLS:
        raise Unsupported("a grid whose step is not a power of two, with many points")
    inner = range(grid.low + 1, grid.high + 1)
    begins = [_double_at_least((Fraction(i) - Fraction(1, 2)) * grid.step) for i in inner]
    return dialect.nearest_point(value, grid, begins)


def _double_at_least(bound: Fraction) -> float:
    nearest = float(bound)
    return nearest if Fraction(nearest) >= bound else math.nextafter(nearest, math.inf)
