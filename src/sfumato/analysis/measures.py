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

Theorem: these bounds hold for any rows whatever, NULL, NaN and infinite values included: a `Grid`
clamps after rounding, and truncation toward zero never makes a contribution larger.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import Factor, Measure, MeasureKind
from sfumato.analysis.intervals import Interval
from sfumato.analysis.value_grids import (
    PARTS,
    Cells,
    cells_of,
    centred_grid,
    clamped_grid,
    ones,
    ranked_cells,
)
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.plan.tree import Aggregate, Call, Case, Expression, Literal, Span

__all__ = ["Argument", "MAX_QUANTILE", "MIN_QUANTILE", "MULTIPLIED", "Measures", "RATIOS"]

MIN_QUANTILE = 0.005
MAX_QUANTILE = 0.995
"""MIN and MAX are answered by these quantiles: an exact extreme is one person's value."""

_BINS = 20  # of a HISTOGRAM without a declared list

_VARIANCES = {Function.VAR_POP, Function.VAR_SAMP, Function.STDDEV_POP, Function.STDDEV_SAMP}
_PAIRS = {Function.COVAR_POP, Function.COVAR_SAMP, Function.CORR}
MULTIPLIED = _VARIANCES | _PAIRS
"""Aggregates that need products of values."""
RATIOS = MULTIPLIED | {Function.AVG}
"""Aggregates that are divided by a count."""

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
        """Return a sum of which one unit's part in a group is clamped."""
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
                condition = _both(condition, _has_value(expression))
        if condition is None and not factors:
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

    # -- answers ----------------------------------------------------------------------------

    def counted(self, name: str, aggregate: Aggregate, present: tuple[Expression, ...]) -> Answer:
        """Answer COUNT(*) and COUNT(x); `present` is empty if x always has a value."""
        if aggregate.bounds_per_group is not None:
            low, high = (Fraction(end) for end in aggregate.bounds_per_group)
            clamp = clamped_grid(low, high, whole=True)[1]
            condition = aggregate.where
            for expression in present:
                condition = _both(condition, _has_value(expression))
            measure, weight = self.clamped((), condition, clamp), Fraction(1)
        else:
            measure, weight = self.count(present, aggregate.where, aggregate.span)
        return Answer(
            name=name,
            function=aggregate.function,
            measures=(measure,),
            kind=Kind.INTEGER,
            integer=True,
            weight=weight,
            lower=0.0,
        )

    def summed(
        self, name: str, aggregate: Aggregate, argument: Argument, present: tuple[Expression, ...] | None
    ) -> Answer:
        """Answer SUM; `present` is given if the number of rows is counted anyway.

        Then the sum is taken around the middle of the bounds and the rest is put back from the
        count: with bounds 0 and w the noise has half the variance, for twice w/2 squared is w^2 / 2.
        """
        centred = present is not None
        factor = self.factor(argument, centred=centred)
        measures: tuple[str, ...] = (self.moment((factor,), aggregate.where, aggregate.span),)
        weight = Fraction(1)
        if present is not None and factor.centre != 0:
            count, weight = self.count(present, aggregate.where, aggregate.span)
            measures = (count, *measures)
        return Answer(
            name=name,
            function=Function.SUM,
            measures=measures,
            kind=Kind.INTEGER if argument.whole else Kind.REAL,
            integer=argument.whole,
            weight=weight,
            scale=factor.grid.step,
            centre=factor.centre,
        )

    def sum_of_groups(
        self,
        name: str,
        aggregate: Aggregate,
        expression: Expression,
        rows: Interval,
        bounds: tuple[float, float],
    ) -> Answer:
        """Answer SUM where one unit's sum in a group is clamped; `rows` is where single values lie."""
        whole = expression.kind is not None and expression.kind.whole
        low, high = (Fraction(end) for end in bounds)
        grid, clamp = clamped_grid(low, high, whole=whole, rows=rows)
        factor = Factor(expression=expression, centre=0.0, grid=grid)
        return Answer(
            name=name,
            function=Function.SUM,
            measures=(self.clamped((factor,), aggregate.where, clamp),),
            kind=Kind.INTEGER if whole else Kind.REAL,
            integer=whole,
            scale=grid.step,
        )

    def ratio(
        self,
        name: str,
        aggregate: Aggregate,
        arguments: tuple[Argument, ...],
        present: tuple[Expression, ...],
    ) -> Answer:
        """Answer AVG, VAR, STDDEV, COVAR and CORR from one set of centred moments."""
        where, span, function = aggregate.where, aggregate.span, aggregate.function
        count, weight = self.count(present, where, span)
        factors = tuple(self.factor(argument, centred=True) for argument in arguments)
        measures = [count]
        both = factors if len(factors) > 1 else ()

        def moment(*places: int) -> str:
            chosen = [factors[place] for place in places]
            # a row counts only if both arguments have a value, also in a moment of one of them
            others = [one for one in both if one not in chosen and one.expression in present]
            chosen += [replace(one, centre=0.0, grid=ones()) for one in others]
            return self.moment(tuple(chosen), where, span)

        measures += [moment(place) for place in range(len(factors))]
        if function in _VARIANCES:
            measures.append(moment(0, 0))
        elif function is Function.CORR:
            measures += [moment(0, 0), moment(1, 1), moment(0, 1)]
        elif function in _PAIRS:
            measures.append(moment(0, 1))
        lower, upper = _limits(function, arguments)
        return Answer(
            name=name,
            function=function,
            measures=tuple(measures),
            weight=weight,
            scale=factors[0].grid.step,
            centre=factors[0].centre,
            second_scale=factors[-1].grid.step if both else Fraction(1),
            second_centre=factors[-1].centre if both else 0.0,
            half_widths=tuple(float(factor.grid.sensitivity * factor.grid.step) for factor in factors),
            lower=lower,
            upper=upper,
        )

    def ranked(self, name: str, aggregate: Aggregate, argument: Argument) -> Answer:
        """Answer quantiles, MIN and MAX from one histogram, however many are asked for."""
        cells = ranked_cells(argument.low, argument.high, whole=argument.whole, grouped=self.grouped)
        fixed = {Function.MIN: (MIN_QUANTILE,), Function.MAX: (MAX_QUANTILE,)}
        return Answer(
            name=name,
            function=aggregate.function,
            measures=(self.cells(argument.expression, cells, aggregate.where, aggregate.span),),
            kind=argument.kind or (Kind.INTEGER if argument.whole else Kind.REAL),
            integer=argument.whole and cells.points,
            weight=Fraction(1, self.parts),
            quantiles=fixed.get(aggregate.function, aggregate.quantiles),
            several=aggregate.several,
            edges=cells.edges,
            points=cells.points,
            epoch=argument.epoch,
            lower=float(argument.low),
            upper=float(argument.high),
        )

    def histogram(self, name: str, aggregate: Aggregate, argument: Argument) -> Answer:
        """Answer HISTOGRAM over equal cells between bounds, one per value where they are few."""
        cells = cells_of(argument.low, argument.high, whole=argument.whole, most=_BINS)
        labels: tuple[Value, ...] = tuple(int(edge) for edge in cells.edges[:-1]) if cells.points else ()
        if argument.epoch is not None:
            labels = tuple(argument.epoch + datetime.timedelta(days=place) for place in range(len(labels)))
        answer = self._histogram(name, aggregate, argument.expression, cells, labels)
        return replace(answer, epoch=argument.epoch)

    def histogram_of_values(
        self, name: str, aggregate: Aggregate, values: tuple[Value, ...], *, computed: bool = False
    ) -> Answer:
        """Answer HISTOGRAM over a list; values that are not on a declared list are not counted.

        Of `computed` values there are no others; where they are 0, 1, 2, .. they number their cells.
        """
        argument = aggregate.arguments[0]
        if computed and argument.kind is Kind.INTEGER and values == tuple(range(len(values))):
            cells = cells_of(Fraction(0), Fraction(len(values) - 1), whole=True, most=len(values))
            return self._histogram(name, aggregate, argument, cells, values)
        branches = tuple(
            (
                Call(
                    function="=",
                    arguments=(argument, Literal(value=value, kind=kind_of(value))),
                    kind=Kind.BOOLEAN,
                ),
                Literal(value=place, kind=Kind.INTEGER),
            )
            for place, value in enumerate(values)
        )
        place = Case(branches=branches, otherwise=Literal(value=None, kind=None), kind=Kind.INTEGER)
        cells = cells_of(Fraction(0), Fraction(len(values) - 1), whole=True, most=len(values))
        return self._histogram(name, aggregate, place, cells, values)

    def _histogram(
        self, name: str, aggregate: Aggregate, argument: Expression, cells: Cells, labels: tuple[Value, ...]
    ) -> Answer:
        return Answer(
            name=name,
            function=Function.HISTOGRAM,
            measures=(self.cells(argument, cells, aggregate.where, aggregate.span),),
            kind=Kind.INTEGER,
            integer=True,
            weight=Fraction(1, self.parts),
            edges=cells.edges,
            points=cells.points,
            labels=labels,
            lower=0.0,
        )


def _limits(function: Function, arguments: tuple[Argument, ...]) -> tuple[float | None, float | None]:
    """Return what an exact ratio cannot be beyond; a sample's variance is up to width^2 / 2."""
    width = float(arguments[0].high - arguments[0].low)
    match function:
        case Function.AVG:
            return float(arguments[0].low), float(arguments[0].high)
        case Function.VAR_POP:
            return 0.0, width**2 / 4
        case Function.VAR_SAMP:
            return 0.0, width**2 / 2
        case Function.STDDEV_POP:
            return 0.0, width / 2
        case Function.STDDEV_SAMP:
            return 0.0, width * 0.5**0.5
        case Function.CORR:
            return -1.0, 1.0
        case _:
            product = width * float(arguments[-1].high - arguments[-1].low)
            part = product / (4 if function is Function.COVAR_POP else 2)
            return -part, part


def _has_value(expression: Expression) -> Expression:
    missing = Call(function="is_null", arguments=(expression,), kind=Kind.BOOLEAN)
    return Call(function="not", arguments=(missing,), kind=Kind.BOOLEAN)


def _both(first: Expression | None, second: Expression) -> Expression:
    if first is None:
        return second
    return Call(function="and", arguments=(first, second), kind=Kind.BOOLEAN)
