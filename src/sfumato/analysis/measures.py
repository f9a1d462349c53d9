"""Measures: the bounded sums from which each aggregate is answered, shared where they are equal.

What one unit can change, and why. Let a unit have n rows in a group, n >= 1, and let m be
`max_rows`. It is kept in at most `max_groups` groups; in each of them

    MOMENT    s is the sum over its counting rows, at most n of them, of a product of factors. Each factor
              is on its grid, so |s| <= n * R with R the product of the grids' sensitivities; it
              contributes trunc(s * min(n, m) / n), so at most R * min(n, m) <= R * m.
    clamped   at most the larger absolute value of the clamp, whatever s is.
    UNITS     0 or 1.
    DISTINCT  at most d values are kept of it. The distinct values of a union grow by some of these: their
              number by at most d; their sum by a sum of at most d different integers of the grid, so in
              absolute value by no more than the d largest positive ones, or the d lowest negative ones.
    CELLS     c_i of its rows are in cell i; it adds trunc(w c_i min(n, m) / n) to each, so
              at most w * min(n, m) <= w * m over all cells together, for the c_i add up to n at most.
    BLOCKS    the sum over blocks of v_b, a point of a grid that is w steps wide and holds 0. The unit is in
              one block, which its name and the salt choose. Every other block holds the same rows with
              and without the unit, for what is kept of others is a function of their own rows; its v_b is a
              function of that multiset of rows, bit by bit (`bounding/block_values`), so that it is the
              same. Of the unit's own block nothing is assumed: v_b was a point of the grid and is another,
              0 if it was empty or is. So the sum moves by at most w, as one value that is replaced does.
              In a coarser grouping set all its groups that fall together share that one block: w again.

With a cap T over all groups (`max_total`), let W be the sum of min(n, m) over the groups that the unit is
kept in. Where W > T, every moment and every cell of the unit is multiplied by T / W < 1 before it is
truncated: no bound above grows, and over all groups together a moment moves by at most the sum of
R min(n, m) T / W = R T, cells by w T. W is a sum over the unit's own rows, so that nobody else's
contribution changes. Each group moves by at most R m, so the squares add up to at most R m * R T.

Theorem: these bounds hold for any rows whatever, NULL, NaN and infinite values included: a `Grid`
clamps after rounding, and truncation toward zero never makes a contribution larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sfumato.aggregates.measure_request import BoundedArgument
from sfumato.analysis.bounded import BlockValues, Factor, Measure, MeasureKind
from sfumato.analysis.value_grids import PARTS, Cells, centred_grid, ones
from sfumato.catalog.kind import Kind
from sfumato.plan.conditions import conjunction
from sfumato.plan.functions import call
from sfumato.plan.tree import Expression, Literal, Span

__all__ = ["Argument", "Measures", "with_values"]

_ONE = Literal(value=1, kind=Kind.INTEGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument(BoundedArgument):
    """An argument of an aggregate, and the expression that gives it."""

    expression: Expression
    multiplied: bool = False  # some aggregate of the query needs its square


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

    def _add(self, kind: MeasureKind, sensitivity: int, **fields: Any) -> str:
        measure = Measure(name="", kind=kind, sensitivity=sensitivity, **fields)
        return self.found.setdefault(measure, f"m{len(self.found)}")

    def all(self) -> tuple[Measure, ...]:
        """Return every measure that was asked for, under its name."""
        return tuple(replace(measure, name=name) for measure, name in self.found.items())

    # -- single measures --------------------------------------------------------------------

    def moment(self, factors: tuple[Factor, ...], where: Expression | None, span: Span | None) -> str:
        """Return the sum of a product of factors."""
        sensitivity = self.rows(span) * math.prod(factor.grid.sensitivity for factor in factors)
        return self._add(MeasureKind.MOMENT, max(1, sensitivity), factors=factors, condition=where)

    def clamped(self, factors: tuple[Factor, ...], where: Expression | None, clamp: tuple[int, int]) -> str:
        """Return a sum in which one unit's part of a group is clamped."""
        sensitivity = max(1, abs(clamp[0]), abs(clamp[1]))
        return self._add(MeasureKind.MOMENT, sensitivity, factors=factors, condition=where, clamp=clamp)

    def units(self, where: Expression | None) -> str:
        """Return the number of units."""
        return self._add(MeasureKind.MOMENT if self.one_row else MeasureKind.UNITS, 1, condition=where)

    def distinct(self, value: Expression, where: Expression | None, most: int) -> str:
        """Return the number of distinct values."""
        return self._add(MeasureKind.DISTINCT, most, max_values=most, value=value, condition=where)

    def distinct_sum(self, factor: Factor, where: Expression | None, most: int) -> str:
        """Return the sum of the distinct integers of a factor."""
        low, high = factor.grid.low, factor.grid.high
        sensitivity = max(1, _largest_sum(low, high, most), _largest_sum(-high, -low, most))
        fields = {"factors": (factor,), "condition": where, "max_values": most}
        return self._add(MeasureKind.DISTINCT, sensitivity, **fields)

    def cells(self, argument: Expression, cells: Cells, where: Expression | None, span: Span | None) -> str:
        """Return a histogram."""
        factors = (Factor(expression=argument, centre=cells.centre, grid=cells.grid),)
        weight, sensitivity = self.parts, self.rows(span) * self.parts
        fields = {"factors": factors, "edges": cells.edges, "weight": weight, "condition": where}
        return self._add(MeasureKind.CELLS, sensitivity, **fields)

    def blocks(self, values: BlockValues, where: Expression | None) -> str:
        """Return the sum of a statistic over blocks of units."""
        return self._add(MeasureKind.BLOCKS, max(1, values.grid.width), blocks=values, condition=where)

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
        plain = condition is None and not factors and not self.divided
        if plain and self.units_are_rows():
            return self.units(None), Fraction(1)
        if plain or self.one_row:
            return self.moment(tuple(factors), condition, span), Fraction(1)
        first, *others = factors or [Factor(expression=_ONE, centre=0.0, grid=ones())]
        parts = (replace(first, grid=ones(PARTS)), *others)
        return self.moment(parts, condition, span), Fraction(1, PARTS)

    def factor(self, argument: Argument, *, centred: bool, parts: int | None = None) -> Factor:
        """Return an argument on its grid; `parts` are those of a row, unless it is counted whole."""
        grid, centre = centred_grid(
            argument.low,
            argument.high,
            whole=argument.whole,
            parts=parts or self.parts,
            centred=centred,
            multiplied=argument.multiplied,
        )
        return Factor(expression=argument.expression, centre=centre, grid=grid)


def _largest_sum(low: int, high: int, most: int) -> int:
    """Return the largest sum of at most `most` different integers between two ends.

    >>> _largest_sum(-5, 10, 3), _largest_sum(9, 10, 3), _largest_sum(-5, -1, 3)
    (27, 19, 0)
    """
    number = max(0, min(most, high - max(low, 1) + 1))
    return number * high - number * (number - 1) // 2


def with_values(condition: Expression | None, present: Iterable[Expression]) -> Expression | None:
    """Return the condition that holds, and that some expressions have a value."""
    known = [call("not", (call("is_null", (expression,)),)) for expression in present]
    return conjunction([*known] if condition is None else [condition, *known])
