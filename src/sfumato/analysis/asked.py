"""An aggregate that was asked, and the measures that its record asks for: see `aggregates/measure_request`.

Here expressions, conditions, bounds and caps are known. Arguments without bounds are refused, with what to
declare.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.measure_request import GridFactor
from sfumato.aggregates.registry import Function
from sfumato.aggregates.sample_and_aggregate import BlockDesign
from sfumato.analysis.bounded import BlockValues, Factor
from sfumato.analysis.calendar import bounded as dates_between
from sfumato.analysis.calendar import counted
from sfumato.analysis.domains import narrowed
from sfumato.analysis.measures import Argument, Measures, with_values
from sfumato.analysis.ranges import Known, known_of
from sfumato.analysis.shapes import column_leaves, is_aggregate, scans
from sfumato.analysis.value_grids import Cells, cells_of, centred_grid, clamped_grid, ones, ranked_cells
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.core.intervals import Interval
from sfumato.plan.hints import refuse
from sfumato.plan.limits import FURTHEST, NEAREST
from sfumato.plan.tree import Aggregate, Call, Case, Cast, Expression, Literal, Query, Span

__all__ = ["AskedAggregate"]

_BINS = 20  # of a HISTOGRAM without a declared list
_MOST_SINGLE = 4096  # values of a MODE without one
_TIMELY = (Kind.DATE, Kind.TIMESTAMP)
_NUMBERS = (int, float, Decimal)


@dataclass(slots=True, kw_only=True)
class AskedAggregate:
    """One aggregate of a question; `zero_for_null`: its argument is 0 where it has no value."""

    name: str
    aggregate: Aggregate
    query: Query
    catalog: Catalog
    columns: Mapping[str, Known]
    measures: Measures
    multiplied: frozenset[Expression]  # arguments of aggregates that multiply values
    max_distinct: int | None
    zero_for_null: bool = False
    quantiles: tuple[float, ...] = field(init=False)
    several: bool = field(init=False)
    bounds_per_group: tuple[float, float] | None = field(init=False)
    known: Mapping[str, Known] = field(init=False)
    _arguments: dict[int, Argument] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        asked = self.aggregate
        self.quantiles, self.several = asked.quantiles, asked.several
        self.bounds_per_group = asked.bounds_per_group
        self.known = self._known(asked.where)

    @property
    def function(self) -> Function:
        """Which aggregate it is."""
        return self.aggregate.function

    def answer(self) -> Answer:
        """Return how the aggregate is answered; its measures are asked for."""
        if self.bounds_per_group is not None and not self.function.record.adds_up:
            hint = "give bounds per row instead: contribution_bounds_per_row => (0, 100)"
            self._refuse(f"{self.function.label} has no bounds per group", hint)
        return self.function.record.measured(self)

    # -- arguments --------------------------------------------------------------------------

    def argument(self, place: int = 0) -> Argument:
        """Return an argument with its bounds, or refuse the question; dates count from a bound on."""
        if place not in self._arguments:
            given = self.aggregate.arguments[place]
            timely = given.kind in _TIMELY and self.function.record.takes(given.kind, inner=False)
            found = self._counted_date(given) if timely else self._number(given)
            if self.zero_for_null:
                value, zero = found.expression, Literal(value=0, kind=Kind.INTEGER)
                either = Call(function="coalesce", arguments=(value, zero), kind=value.kind or Kind.INTEGER)
                found = replace(found, expression=either)
            self._arguments[place] = found
        return self._arguments[place]

    def factor(self, place: int = 0, *, centred: bool = True) -> Factor:
        """Return an argument on its grid."""
        return self.measures.factor(self.argument(place), centred=centred)

    @property
    def _present(self) -> tuple[Expression, ...]:
        """The arguments that may be NULL."""
        return () if self.zero_for_null else self._nullable(self.aggregate)

    def _nullable(self, aggregate: Aggregate) -> tuple[Expression, ...]:
        return tuple(one for one in aggregate.arguments if known_of(one, self.known).nullable)

    def _known(self, where: Expression | None) -> Mapping[str, Known]:
        return self.columns if where is None else narrowed(dict(self.columns), where)

    # -- measures ---------------------------------------------------------------------------

    def rows(self) -> tuple[str, Fraction]:
        """Return the number of rows in which all arguments have a value, and what its integer is worth."""
        return self.measures.count(self._present, self.aggregate.where, self.aggregate.span)

    def moment(self, *places: int, centred: bool = True) -> str:
        """Return the sum over those rows of a product of factors."""
        chosen = [self.factor(place, centred=centred) for place in places]
        for place in range(self.function.record.arity):
            other = self.factor(place, centred=centred)
            # a row counts only if all arguments have a value, also in a moment of one of them
            if other not in chosen and other.expression in self._present:
                chosen.append(replace(other, centre=0.0, grid=ones()))
        return self.measures.moment(tuple(chosen), self.aggregate.where, self.aggregate.span)

    def units(self) -> str:
        """Return the number of units."""
        return self.measures.units(self.aggregate.where)

    def distinct(self) -> str:
        """Return the number of different values."""
        (value,) = self.aggregate.arguments
        if value.kind is None:
            hint = "COUNT(DISTINCT x) counts the values of a column"
            self._refuse("COUNT(DISTINCT NULL) is 0", hint, code="SF403")
        return self.measures.distinct(value, self.aggregate.where, self._most_values(value))

    def distinct_sum(self) -> tuple[str, Fraction, bool]:
        """Return the sum of the different values, its step, and whether values are whole.

        Values that are not whole must be listed, each on a step of its own: others might share one.
        """
        argument = self.argument()
        factor = self.measures.factor(replace(argument, multiplied=False), centred=False, parts=1)
        values = known_of(argument.expression, self.known).values or ()
        steps = {round(Fraction(value) / factor.grid.step) for value in values if isinstance(value, _NUMBERS)}
        if not argument.whole and (not values or len(steps) < len(values)):
            self._refuse(
                "SUM(DISTINCT ..) needs whole numbers, or a list of values: others may be equal or almost so",
                "take whole numbers: SUM(DISTINCT CAST(x * 100 AS BIGINT)) / 100",
                "or declare the values: one_of(0.5, 1, 2)",
            )
        most = self._most_values(argument.expression)
        measure = self.measures.distinct_sum(factor, self.aggregate.where, most)
        return measure, factor.grid.step, argument.whole

    def _most_values(self, value: Expression) -> int:
        """Return how many different values one unit brings to a group: max_distinct, else max_rows."""
        if self.measures.one_row:
            return 1
        if self.max_distinct is None:
            hint = "give max_distinct with the question, for example max_distinct=3"
            self._refuse("it is not known how many different values one unit may bring to a group", hint)
        values = known_of(value, self.known).values
        return min(self.max_distinct, len(values)) if values else self.max_distinct

    def clamped_rows(self) -> str:
        """Return the number of rows; one unit's part of a group is clamped to `bounds_per_group`."""
        condition = with_values(self.aggregate.where, self._present)
        return self.measures.clamped((), condition, clamped_grid(*self._group_bounds, whole=True)[1])

    def clamped_sum(self) -> tuple[str, Fraction, bool]:
        """Return the sum of which that holds, its step, and whether values are whole."""
        expression = self._numeric(self.aggregate.arguments[0])
        whole = expression.kind is not None and expression.kind.whole
        self._check_scale(*self._group_bounds)
        rows = known_of(expression, self.known).interval or Interval(0, 0)
        grid, clamp = clamped_grid(*self._group_bounds, whole=whole, rows=rows)
        factor = Factor(expression=expression, centre=0.0, grid=grid)
        return self.measures.clamped((factor,), self.aggregate.where, clamp), grid.step, whole

    @property
    def _group_bounds(self) -> tuple[Fraction, Fraction]:
        assert self.bounds_per_group is not None
        low, high = self.bounds_per_group
        return Fraction(low), Fraction(high)

    def block_values(self) -> tuple[str, GridFactor, BlockDesign]:
        """Return the sum of a statistic over blocks of people, the grid of its values, and the blocks."""
        blocks = self.aggregate.blocks
        assert blocks is not None
        self._check_scale(blocks.lower, blocks.upper)
        grid, centre = centred_grid(
            blocks.lower, blocks.upper, whole=False, parts=1, centred=True, multiplied=False
        )
        if grid.missing or not grid.width:  # an empty block is 0, also in a group that is not there at all
            hint = "count from a number nearby: SAMPLE_AND_AGGREGATE(AVG(x - 1e20), 0, 1)"
            self._refuse("the ends of this range are too close to each other for their size", hint)
        values = BlockValues(
            statistic=blocks.statistic,
            arguments=self.aggregate.arguments,
            number=blocks.number,
            centre=centre,
            grid=grid,
        )
        measure = self.measures.blocks(values, self.aggregate.where)
        return measure, GridFactor(centre=centre, grid=grid), blocks

    def beside_count(self) -> AskedAggregate | None:
        """Return the aggregate over rows that the question counts anyway, None if it does not count them."""
        if self._counted_anyway(self._present):
            return self
        if self.argument().low <= 0 <= self.argument().high and self._counted_anyway(()):
            return replace(self, zero_for_null=True)  # to a sum it is the same
        return None

    def _counted_anyway(self, present: tuple[Expression, ...]) -> bool:
        """Return whether some aggregate counts just those rows in which these expressions have a value."""
        return any(
            one.function.record.counts_rows
            and one.bounds_per_group is None
            and one.where == self.aggregate.where
            and self._nullable(one) == present
            for _, one in self.query.aggregates
        )

    # -- histograms -------------------------------------------------------------------------

    def ranked_cells(self) -> Answer:
        """Return a histogram fine enough to read ranks off."""
        argument = self.argument()
        cells = ranked_cells(argument.low, argument.high, whole=argument.whole, grouped=self.measures.grouped)
        return self._cells(argument.expression, cells)

    def listed_cells(self, *, single: bool = False) -> Answer:
        """Return a histogram over the argument's listed values, or over equal cells between its bounds.

        `single`: each cell is one value, or the question is refused.
        """
        (value,) = self.aggregate.arguments
        listed = known_of(value, self.known)
        values = listed.values
        if value.kind is Kind.BOOLEAN and not values:
            values = (False, True)
        if values:
            return self._value_cells(value, values, computed=bool(listed.values) and not listed.unlisted)
        if value.kind is not None and not value.kind.numeric and value.kind not in _TIMELY:
            self._refuse(
                f"{self._called} of a {value.kind.value} needs a list of its values",
                "declare them: one_of('north', 'south', ..)",
                "or GROUP BY it: groups that nobody declared are then found privately",
                at=value.span,
            )
        argument = self.argument()
        most = _MOST_SINGLE if single else _BINS
        cells = cells_of(argument.low, argument.high, whole=argument.whole, most=most)
        if single and not cells.points:
            self._refuse(
                f"{self._called} chooses among at most {_MOST_SINGLE:,} values",
                "declare them: one_of('north', 'south', ..), or closer bounds of whole numbers",
                f"or take larger steps: {self._called}(CAST(x / 10 AS BIGINT))",
                at=value.span,
            )
        labels: tuple[Value, ...] = tuple(int(edge) for edge in cells.edges[:-1]) if cells.points else ()
        if argument.epoch is not None:
            labels = tuple(argument.epoch + datetime.timedelta(days=place) for place in range(len(labels)))
        return self._cells(argument.expression, cells, labels=labels, epoch=argument.epoch, kind=value.kind)

    def _value_cells(self, value: Expression, values: tuple[Value, ...], *, computed: bool) -> Answer:
        """Return a cell for each value of a list; values that are not on a declared list are not counted.

        Of `computed` values there are no others; where they are 0, 1, 2, .. they number their cells.
        """
        cells = cells_of(Fraction(0), Fraction(len(values) - 1), whole=True, most=len(values))
        if computed and value.kind is Kind.INTEGER and values == tuple(range(len(values))):
            return self._cells(value, cells, labels=values, kind=value.kind)
        branches = []
        for number, listed in enumerate(values):
            constant = Literal(value=listed, kind=kind_of(listed))
            equal = Call(function="=", arguments=(value, constant), kind=Kind.BOOLEAN)
            branches.append((equal, Literal(value=number, kind=Kind.INTEGER)))
        nothing = Literal(value=None, kind=None)
        place = Case(branches=tuple(branches), otherwise=nothing, kind=Kind.INTEGER)
        return self._cells(place, cells, labels=values, kind=value.kind)

    def _cells(self, expression: Expression, cells: Cells, **fields: Any) -> Answer:
        return Answer(
            name=self.name,
            function=self.function,
            measures=(self.measures.cells(expression, cells, self.aggregate.where, self.aggregate.span),),
            edges=cells.edges,
            points=cells.points,
            weight=Fraction(1, self.measures.parts),
            **fields,
        )

    # -- bounds of arguments ----------------------------------------------------------------

    def _number(self, given: Expression) -> Argument:
        expression = self._numeric(given)
        interval = known_of(expression, self.known).interval or Interval(0, 0)
        if self.aggregate.bounds_per_row is not None:
            low, high = self.aggregate.bounds_per_row
            interval = Interval(Fraction(low), Fraction(high))
        if not isinstance(interval.low, Fraction) or not isinstance(interval.high, Fraction):
            self._refuse_unbounded(expression)
        self._check_scale(interval.low, interval.high)
        return Argument(
            expression=expression,
            low=interval.low,
            high=interval.high,
            whole=expression.kind is not None and expression.kind.whole,
            multiplied=given in self.multiplied,
        )

    def _check_scale(self, low: Fraction, high: Fraction) -> None:
        """Refuse bounds whose squares, or those of their noise, would be beyond all numbers."""
        furthest = max(abs(low), abs(high))
        if furthest > FURTHEST or 0 < furthest < NEAREST:
            hint = "count in another unit: SUM(x / 1e90) instead of SUM(x)"
            self._refuse(f"{self._called} needs bounds between 1e-60 and 1e60, or zero", hint)

    def _numeric(self, expression: Expression) -> Expression:
        if expression.kind is Kind.BOOLEAN:
            return Cast(operand=expression, kind=Kind.INTEGER, span=expression.span)
        if expression.kind is not None and not expression.kind.numeric:
            self._refuse(
                f"{self.function.label} needs numbers, not a {expression.kind.value}",
                "take a number from it, such as YEAR(..) or LENGTH(..)",
                at=expression.span,
                code="SF403",
            )
        return expression

    def _counted_date(self, value: Expression) -> Argument:
        """Return a date as a number from its bound on."""
        if self.aggregate.bounds_per_row is not None:
            assert value.kind is not None
            hint = "bound it in WHERE, or declare its bounds"
            self._refuse(f"bounds per row are numbers, and this is a {value.kind.value}", hint, at=value.span)
        dates = dates_between(known_of(value, self.known).dates)
        if dates is None:
            self._refuse_undated(value)
        number, high, epoch = counted(value, dates)
        whole = value.kind is Kind.DATE
        return Argument(
            expression=number, low=Fraction(0), high=high, whole=whole, kind=value.kind, epoch=epoch
        )

    # -- refusals ---------------------------------------------------------------------------

    @property
    def _called(self) -> str:
        return self.function.label.upper()

    def _refuse_undated(self, value: Expression) -> NoReturn:
        loose = [
            column.name.rsplit(".", 1)[-1]
            for column in column_leaves(value)
            if column.kind in _TIMELY and dates_between(known_of(column, self.known).dates) is None
        ]
        column, needed = "..", "bounds, and none follow for this expression"
        way = "give them: LEAST(GREATEST(.., DATE '2020-01-01'), DATE '2024-12-31')"
        if loose:
            column, needed = loose[0], f"bounds on `{loose[0]}`"
            way = f"declare them: {column} = between(date(2020, 1, 1), date(2024, 12, 31))"
        time = f"or ask about a time: WHERE {column} BETWEEN DATE '2020-01-01' AND DATE '2024-12-31'"
        self._refuse(f"{self._called} needs {needed}", way, time, at=value.span)

    def _refuse_unbounded(self, expression: Expression) -> NoReturn:
        """Refuse an argument without bounds; what to do depends on where its first loose column is from."""
        loose = [
            column.name
            for column in column_leaves(expression)
            if column.kind.numeric and not (known_of(column, self.known).interval or Interval(0, 0)).bounded
        ]
        name, at, hints = self._called, expression.span, list[str]()
        column = loose[0].rsplit(".", 1)[-1] if loose else ""
        needed = f"bounds on `{column}`"
        clamp = f"LEAST(GREATEST({column or '..'}, 0), 1000)"
        if not loose:
            needed = "bounds, and none follow for this expression"
            hints = [f"give them: {clamp}, or contribution_bounds_per_row => (0, 1000)"]
        elif any(one is self.aggregate and column == own for own, one in self.query.aggregates):
            # GoogleSQL's clause made the column, and the question has no name for it
            needed, at = "bounds on what one unit adds to a group", self.aggregate.span
            hints = [f"give them: {name}(x, contribution_bounds_per_group => (0, 20))"]
        elif is_aggregate(self.query.source, loose[0]):
            needed += ", which counts or adds up rows without end"
            hints = [f"cap it: LEAST({column}, 20)", "or give bounds: contribution_bounds_per_row => (0, 20)"]
        elif (public := self._public_scan(loose[0])) is not None:
            needed += f" of the public table `{public}`"
            read = "being public, they can be read off the table"
            hints = [
                f"declare them: columns={{'{public}.{column}': between(0, 1000)}}; {read}",
                f"or later: db.declare({column}=between(0, 1000), table='{public}')",
                f"or give them here: {clamp}",
            ]
        else:
            privately = f"db.bounds('{column}', epsilon=0.1), or `sfumato bounds`, finds them privately"
            hints = [
                f"declare them: {column} = between(0, 1000)",
                f"or give them here: {clamp}",
                f"do not read them off the data; {privately}",
            ]
        self._refuse(f"{name} needs {needed}", *hints, at=at)

    def _public_scan(self, column: str) -> str | None:
        """Return the public table that a column is from, None if it is from another."""
        for scan in scans(self.query.source):
            table = self.catalog.table(scan.table)
            if table is not None and not table.private and any(one.name == column for one in scan.columns):
                return table.name
        return None

    def _refuse(self, message: str, *hints: str, at: Span | None = None, code: str = "SF405") -> NoReturn:
        refuse(self.query.text, message, *hints, at=at or self.aggregate.span, code=code)
