"""Measures: the bounded sums from which each aggregate is answered, shared where they are equal.

What one unit can change, and why. Let a unit have n rows in a group, n >= 1, and let m be
`max_rows`. It is kept in at most `max_groups` groups; in each of them

    MOMENT    s is the sum over its counting rows, at most n of them, of a product of factors. Each factor
              is on its grid, so |s| <= n * R with R the product of the grids' sensitivities; it
              contributes trunc(s * min(n, m) / n), so at most R * min(n, m) <= R * m.
    clamped   at most the larger absolute value of the clamp, whatever s is.
    UNITS     0 or 1.
    DISTINCT  at most d values are kept of it, and the number of distinct values of a union grows
              by at most the number of values that are added.
    CELLS     c_i of its rows are in cell i; it adds trunc(w c_i min(n, m) / n) to each, so
              at most w * min(n, m) <= w * m over all cells together, for the c_i add up to n at most.

With a cap T over all groups (`max_total`), let W be the sum of min(n, m) over the groups that the unit is
kept in. Where W > T, every moment and every cell of the unit is multiplied by T / W < 1 before it is
truncated: no bound above grows, and over all groups together a moment moves by at most the sum of
R min(n, m) T / W = R T, cells by w T. W is a sum over the unit's own rows, so that nobody else's
contribution changes. Each group moves by at most R m, so the squares add up to at most R m * R T.

Theorem: these bounds hold for any rows whatever, NULL, NaN and infinite values included: a `Grid`
clamps after rounding, and truncation toward zero never makes a contribution larger.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.analysis.bounded import Factor, Measure, MeasureKind
from sfumato.analysis.value_grids import (
    PARTS,
    Cells,
    centred_grid,
    ones,
)
from sfumato.catalog.kind import Kind
from sfumato.plan.tree import Call, Expression, Literal, Span

__all__ = ["Argument", "Measures", "with_values"]

_ONE = Literal(value=1, kind=Kind.INTEGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of an aggregate, as a number between bounds."""

    expression: Expression
    low: Fraction
    high: Fraction
    multiplied: bool = False  # some aggregate of the query needs its square
    kind: Kind | None = None  # of dates and timestamps, which `expression` counts
    epoch: datetime.date | None = None  # from this one on

    @property
    def whole(self) -> bool:
        """Whether it only takes whole numbers."""
        return self.expression.kind is not None and self.expression.kind.whole

    def or_zero(self) -> Argument:
        """Return the argument with 0 in place of NULL: to a sum it is the same."""
        zero = Literal(value=0, kind=Kind.INTEGER)
        kind = self.expression.kind or Kind.INTEGER
        return replace(
            self, expression=Call(function="coalesce", arguments=(self.expression, zero), kind=kind)
        )


@dataclass(slots=True, kw_only=True)
class Measures:
    """The measures of a query, as they are asked for; equal ones are one.

    `rows` gives max_rows, or refuses: it is only asked for where an answer depends on it.
    """

    one_row: bool  # each unit has one row at most, so that its weight is one
    rows: Callable[[Span | None], int]
    grouped: bool
    units_are_rows: Callable[[], bool]  # one unit counts as one row, and nothing is added up over groups
    divided: bool = False  # a cap over all groups gives a row less than its whole weight
    found: dict[Measure, str] = field(default_factory=dict)

    def _add(self, kind: MeasureKind, **fields: object) -> str:
        measure = Measure(name="", kind=kind, **fields)  # type: ignore[arg-type]
        return self.found.setdefault(measure, f"m{len(self.found)}")

    def all(self) -> tuple[Measure, ...]:
        """Return every measure that was asked for, under its name."""
        return tuple(replace(measure, name=name) for measure, name in self.found.items())

    # -- single measures --------------------------------------------------------------------

    def moment(self, factors: tuple[Factor, ...], where: Expression | None, span: Span | None) -> str:
        """Return the sum of a product of factors."""
        sensitivity = self.rows(span)
        for factor in factors:
            sensitivity *= factor.grid.sensitivity
        return self._add(
            MeasureKind.MOMENT, factors=factors, condition=where, sensitivity=max(1, sensitivity)
        )

    def clamped(self, factors: tuple[Factor, ...], where: Expression | None, clamp: tuple[int, int]) -> str:
        """Return a sum in which one unit's part of a group is clamped."""
        sensitivity = max(1, abs(clamp[0]), abs(clamp[1]))
        return self._add(
            MeasureKind.MOMENT, factors=factors, condition=where, clamp=clamp, sensitivity=sensitivity
        )

    def units(self, where: Expression | None) -> str:
        """Return the number of units."""
        if self.one_row:
            return self._add(MeasureKind.MOMENT, condition=where, sensitivity=1)
        return self._add(MeasureKind.UNITS, condition=where, sensitivity=1)

    def distinct(self, value: Expression, where: Expression | None, most: int) -> str:
        """Return the number of distinct values."""
        return self._add(MeasureKind.DISTINCT, value=value, condition=where, sensitivity=most)

    def cells(self, argument: Expression, cells: Cells, where: Expression | None, span: Span | None) -> str:
        """Return a histogram."""
        factor = Factor(expression=argument, centre=cells.centre, grid=cells.grid)
        return self._add(
            MeasureKind.CELLS,
            factors=(factor,),
            condition=where,
            edges=cells.edges,
            weight=self.parts,
            sensitivity=self.rows(span) * self.parts,
        )

    @property
    def parts(self) -> int:
        """Into how many parts a row is divided."""
        return 1 if self.one_row else PARTS

    def count(
        self, present: tuple[Expression, ...], where: Expression | None, span: Span | None
    ) -> tuple[str, Fraction]:
        """Return the number of rows in which some expressions have a value, and the weight of its unit."""
        condition, factors = where, []
        for expression in present:
            if expression.kind is not None and expression.kind.numeric:
                factors.append(Factor(expression=expression, centre=0.0, grid=ones()))
            else:
                condition = with_values(condition, (expression,))
        if condition is None and not factors and not self.divided:
            name = self.units(None) if self.units_are_rows() else self.moment((), None, span)
            return name, Fraction(1)
        if self.one_row:
            return self.moment(tuple(factors), condition, span), Fraction(1)
        if factors:
            factors[0] = replace(factors[0], grid=ones(PARTS))
        else:
            factors = [Factor(expression=_ONE, centre=0.0, grid=ones(PARTS))]
        return self.moment(tuple(factors), condition, span), Fraction(1, PARTS)

    def factor(self, argument: Argument, *, centred: bool) -> Factor:
        """Return an argument on its grid."""
        grid, centre = centred_grid(
            argument.low,
            argument.high,
            whole=argument.whole,
            parts=self.parts,
            centred=centred,
            multiplied=argument.multiplied,
        )
        return Factor(expression=argument.expression, centre=centre, grid=grid)


def with_values(condition: Expression | None, present: Iterable[Expression]) -> Expression | None:
    """Return the condition that holds, and that some expressions have a value."""
    for expression in present:
        missing = Call(function="is_null", arguments=(expression,), kind=Kind.BOOLEAN)
        known = Call(function="not", arguments=(missing,), kind=Kind.BOOLEAN)
        both = () if condition is None else (condition,)
        condition = Call(function="and", arguments=(*both, known), kind=Kind.BOOLEAN) if both else known
    return condition
