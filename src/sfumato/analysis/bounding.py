"""Bounding: a question becomes integers of which it is known how far one unit can move them.

Groups are chosen once per query. A unit is kept in at most `max_groups` groups, and counts in each
with the weight of at most `max_rows` rows; both come from the question's options, else from its
tables, else the question is refused. Neither is needed where a unit has one row at most: where the
row itself is the unit, and after one unit's rows have been aggregated to one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NoReturn

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import BoundedQuery, Bounding, MeasureKind
from sfumato.analysis.calendar import bounded as dates_between
from sfumato.analysis.calendar import counted
from sfumato.analysis.domains import columns_of, narrowed
from sfumato.analysis.intervals import Interval
from sfumato.analysis.join_fanout import MOST_UNIT_JOINS, unit_joins
from sfumato.analysis.measures import MULTIPLIED, RATIOS, Argument, Measures
from sfumato.analysis.public_keys import PublicTables, listed_groups
from sfumato.analysis.ranges import Known, known_of
from sfumato.analysis.remainder_group import check_others, declared_others
from sfumato.analysis.selection import MOST_WEIGHTS, units_measure
from sfumato.analysis.shapes import (
    column_leaves,
    declared_cap,
    is_aggregate,
    may_copy_rows,
    one_row_per_unit,
    scans,
)
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Table
from sfumato.errors import QueryRefused
from sfumato.plan.hints import hints_for
from sfumato.plan.limits import FURTHEST, NEAREST
from sfumato.plan.request import Options
from sfumato.plan.tree import Aggregate, Cast, Expression, Query, Span

__all__ = ["bound"]

_MOST_CELLS = 2**27  # of all declared groups together: a table of a gigabyte, whatever the data


def bound(
    query: Query, catalog: Catalog, options: Options | None = None, tables: PublicTables | None = None
) -> Bounding:
    """Return what the engine computes for a question, and how its answer follows from that.

    `tables` reads public tables, for the groups that they list.
    """
    return _Bounder(query, catalog, Options() if options is None else options, tables).bounding()


@dataclass(slots=True)
class _Bounder:
    query: Query
    catalog: Catalog
    options: Options
    tables: PublicTables | None

    def bounding(self) -> Bounding:
        query, options = self.query, self.options
        row_unit = self._row_unit()
        one_row = row_unit or one_row_per_unit(query.source)
        sets = query.grouping_sets or (tuple(range(len(query.keys))),)
        columns = columns_of(query.source, self.catalog)
        declared = listed_groups(query, self.catalog, options, self.tables)
        max_groups = None
        if query.keys and not one_row:
            max_groups = self._cap("max_groups", query.keys[0][1].span)
            if declared is not None:
                max_groups = min(max_groups, len(declared))
        summed = len(sets) > 1 or (options.others and declared is None)  # a unit's groups meet, as rows do
        measures = Measures(
            one_row=one_row,
            rows=lambda span: 1 if one_row else self._cap("max_rows", span),
            grouped=bool(query.keys),
            units_are_rows=lambda: not one_row and not summed and self._found("max_rows") == 1,
        )
        answers = tuple(self._answer(name, one, columns, measures) for name, one in query.aggregates)
        if options.min_units is not None and (declared is not None or () in sets):
            measures.units(None)  # decides which groups, or whether the total, are shown
        bounded = BoundedQuery(
            source=query.source,
            row_unit=row_unit,
            keys=query.keys,
            grouping_sets=sets,
            declared=declared,
            max_groups=max_groups,
            max_rows=1 if one_row else self._found("max_rows"),
            measures=measures.all(),
        )
        self._few_cells(bounded)
        if unit_joins(query.source) > MOST_UNIT_JOINS:
            self._refuse(
                f"private tables are joined with each other at most {MOST_UNIT_JOINS} times in one question",
                "SF404",
                None,
                "aggregate one side to one row per unit first: that join does not count",
                "or ask several questions",
            )
        if declared is None and 1 < (max_groups or 1) <= MOST_WEIGHTS and (options.min_units or 1) == 1:
            bounded = replace(bounded, members=units_measure(bounded) is None)
        if options.others:
            check_others(bounded, query.text)
            if declared is not None:
                bounded = declared_others(bounded)
                if max_groups is not None:
                    bounded = replace(bounded, max_groups=min(self._cap("max_groups", None), max_groups + 1))
            elif max_groups is not None and any(one.kind is MeasureKind.UNITS for one in bounded.measures):
                bounded = replace(bounded, members=True)
        return Bounding(
            query=bounded,
            answers=answers,
            select_keys=declared is None,
            others=options.others and declared is None,
            min_units=options.min_units,
            intervals=options.intervals,
            text=query.text,
            keys_span=query.keys[0][1].span if query.keys else None,
        )

    # -- units and caps ---------------------------------------------------------------------

    def _row_unit(self) -> bool:
        tables = self._private_tables()
        names = {table.unit.name for table in tables if table.unit is not None}
        if not tables:
            self._refuse("this question is about no private table", "SF407", None)
        if len(names) > 1:
            self._refuse(
                f"these tables protect different units: {', '.join(sorted(names))}",
                "SF406",
                None,
                "ask about them one at a time",
            )
        kinds = {
            table.name: field.kind
            for table in tables
            if table.unit is not None and table.unit.column and (field := table.field(table.unit.column))
        }
        found = set(kinds.values())
        if len(kinds) > 1 and (len(found) > 1 or found & _WRITTEN):
            self._refuse(
                f"the tables {', '.join(sorted(kinds))} may each write names of units in a way of its own",
                "SF406",
                None,
                "1, 1.0 and '1.00' would be three people: let all of them be whole numbers, or all texts",
            )
        by_row = {table.unit is not None and table.unit.column is None for table in tables}
        if by_row == {False}:
            return False
        read = [self._is_private(scan.table) for scan in scans(self.query.source)]  # the leftmost is first
        if len(by_row) > 1 or sum(read) > 1 or not read[0] or may_copy_rows(self.query.source):
            self._refuse(
                f"a join or union may repeat rows of `{tables[0].name}`, whose rows are the units",
                "SF406",
                None,
                f"name the column that says whom a row of `{tables[0].name}` is about as its unit",
            )
        return True

    def _private_tables(self) -> list[Table]:
        names = dict.fromkeys(scan.table for scan in scans(self.query.source))
        tables = [self.catalog.table(name) for name in names]
        return [table for table in tables if table is not None and table.private]

    def _is_private(self, name: str) -> bool:
        table = self.catalog.table(name)
        return table is not None and table.private

    def _found(self, name: Literal["max_groups", "max_rows"]) -> int | None:
        given: int | None = getattr(self.options, name)
        return given if given is not None else declared_cap(self.query.source, self.catalog, name)

    def _cap(self, name: Literal["max_groups", "max_rows"], span: Span | None) -> int:
        found = self._found(name)
        if found is not None:
            return found
        table = self._private_tables()[0].name
        what = "groups one unit may be in" if name == "max_groups" else "rows one unit may have in a group"
        self._refuse(
            f"it is not known how many {what}",
            "SF405",
            span,
            f"give {name} with the question, for example {name}=3; the rest of a unit is left out",
            f"or declare {name} for the table `{table}`; db.caps, or `sfumato caps`, finds one privately",
        )

    # -- keys -------------------------------------------------------------------------------

    def _few_cells(self, query: BoundedQuery) -> None:
        """Refuse histograms of so many declared groups that memory might not hold them: a public number."""
        cells = sum(len(measure.edges) - 1 for measure in query.measures if measure.edges)
        if query.keys and query.declared is not None and cells * len(query.declared) > _MOST_CELLS:
            self._refuse(
                f"quantiles and histograms of {len(query.declared):,} declared groups are too many numbers",
                "SF405",
                query.keys[0][1].span,
                "group by fewer keys, or ask for counts, sums and averages",
                "or have groups selected privately: keys='selected'",
            )

    # -- aggregates -------------------------------------------------------------------------

    def _answer(
        self, name: str, aggregate: Aggregate, columns: dict[str, Known], measures: Measures
    ) -> Answer:
        known = columns if aggregate.where is None else narrowed(columns, aggregate.where)
        function = aggregate.function
        if aggregate.bounds_per_group is not None and function not in _CLAMPED:
            self._refuse(
                f"{function.label} has no bounds per group",
                "SF405",
                aggregate.span,
                "give bounds per row instead: contribution_bounds_per_row => (0, 100)",
            )
        present = tuple(one for one in aggregate.arguments if known_of(one, known).nullable)
        match function:
            case Function.COUNT_ROWS | Function.COUNT:
                return measures.counted(name, aggregate, present)
            case Function.COUNT_UNITS:
                measure = measures.units(aggregate.where)
                return _whole(name, aggregate, measure)
            case Function.COUNT_DISTINCT:
                value = aggregate.arguments[0]
                if value.kind is None:
                    hint = "COUNT(DISTINCT x) counts the values of a column"
                    self._refuse("COUNT(DISTINCT NULL) is 0", "SF403", aggregate.span, hint)
                return _whole(
                    name,
                    aggregate,
                    measures.distinct(value, aggregate.where, self._distinct(aggregate, known, measures)),
                )
            case Function.SUM if aggregate.bounds_per_group is not None:
                expression = self._numeric(aggregate, aggregate.arguments[0])
                rows = known_of(expression, known).interval or Interval(0, 0)
                low, high = aggregate.bounds_per_group
                self._check_scale(Fraction(low), Fraction(high), aggregate)
                return measures.sum_of_groups(name, aggregate, expression, rows, aggregate.bounds_per_group)
            case Function.SUM:
                (argument,) = self._arguments(aggregate, known)
                if self._counted_anyway(aggregate.where, present, columns):
                    return measures.summed(name, aggregate, argument, present)
                if argument.low <= 0 <= argument.high and self._counted_anyway(aggregate.where, (), columns):
                    return measures.summed(name, aggregate, argument.or_zero(), ())
                return measures.summed(name, aggregate, argument, None)
            case Function.QUANTILE | Function.MIN | Function.MAX:
                return measures.ranked(name, aggregate, self._ordered(aggregate, known))
            case Function.HISTOGRAM:
                (value,) = aggregate.arguments
                listed = known_of(value, known)
                values = listed.values
                if value.kind is Kind.BOOLEAN and not values:
                    values = (False, True)
                if values:
                    computed = bool(listed.values) and not listed.unlisted
                    return measures.histogram_of_values(name, aggregate, values, computed=computed)
                if value.kind is not None and not value.kind.numeric and value.kind not in _TIMELY:
                    self._refuse(
                        f"HISTOGRAM of a {value.kind.value} needs a list of its values",
                        "SF405",
                        value.span or aggregate.span,
                        "declare them: one_of('north', 'south', ..)",
                        "or GROUP BY it: groups that nobody declared are then found privately",
                    )
                return measures.histogram(name, aggregate, self._ordered(aggregate, known))
        if function in RATIOS:
            return measures.ratio(name, aggregate, self._arguments(aggregate, known), present)
        self._refuse(f"{function.label} cannot be answered", "SF403", aggregate.span)

    def _counted_anyway(
        self, where: Expression | None, present: tuple[Expression, ...], columns: dict[str, Known]
    ) -> bool:
        """Return whether some aggregate counts just those rows in which these expressions have a value."""
        counting = {Function.COUNT_ROWS, Function.COUNT} | RATIOS
        for _, one in self.query.aggregates:
            if one.function not in counting or one.bounds_per_group is not None or one.where != where:
                continue
            known = columns if where is None else narrowed(columns, where)
            if tuple(part for part in one.arguments if known_of(part, known).nullable) == present:
                return True
        return False

    def _distinct(self, aggregate: Aggregate, known: dict[str, Known], measures: Measures) -> int:
        """Return how many values one unit may bring: max_distinct, else max_rows."""
        if measures.one_row:
            return 1
        found = self.options.max_distinct or self._found("max_rows")
        if found is None:
            self._refuse(
                "it is not known how many different values one unit may bring to a group",
                "SF405",
                aggregate.span,
                "give max_distinct with the question, for example max_distinct=3",
            )
        values = known_of(aggregate.arguments[0], known).values
        return found if not values else min(found, len(values))

    def _arguments(self, aggregate: Aggregate, known: dict[str, Known]) -> tuple[Argument, ...]:
        count = 2 if aggregate.function in (Function.COVAR_POP, Function.COVAR_SAMP, Function.CORR) else 1
        return tuple(self._argument(aggregate, one, known) for one in aggregate.arguments[:count])

    def _ordered(self, aggregate: Aggregate, known: dict[str, Known]) -> Argument:
        """Return the argument of an aggregate of values in order: numbers, dates or timestamps."""
        (value,) = aggregate.arguments
        if value.kind not in _TIMELY:
            return self._argument(aggregate, value, known)
        if aggregate.bounds_per_row is not None:
            self._refuse(
                f"bounds per row are numbers, and this is a {value.kind.value}",
                "SF405",
                value.span or aggregate.span,
                "bound it in WHERE, or declare its bounds",
            )
        dates = dates_between(known_of(value, known).dates)
        if dates is None:
            self._refuse_undated(aggregate, value, known)
        found = counted(value, dates)
        return Argument(
            expression=found.expression, low=Fraction(0), high=found.high, kind=value.kind, epoch=found.epoch
        )

    def _refuse_undated(self, aggregate: Aggregate, value: Expression, known: dict[str, Known]) -> NoReturn:
        loose = [
            column.name.rsplit(".", 1)[-1]
            for column in column_leaves(value)
            if column.kind in _TIMELY and dates_between(known_of(column, known).dates) is None
        ]
        name, column = aggregate.function.label.upper(), loose[0] if loose else ".."
        self._refuse(
            f"{name} needs bounds on `{column}`"
            if loose
            else f"{name} needs bounds, and none follow for this expression",
            "SF405",
            value.span or aggregate.span,
            f"declare them: {column} = between(date(2020, 1, 1), date(2024, 12, 31))"
            if loose
            else "give them: LEAST(GREATEST(.., DATE '2020-01-01'), DATE '2024-12-31')",
            f"or ask about a time: WHERE {column} BETWEEN DATE '2020-01-01' AND DATE '2024-12-31'",
        )

    def _numeric(self, aggregate: Aggregate, expression: Expression) -> Expression:
        if expression.kind is Kind.BOOLEAN:
            return Cast(operand=expression, kind=Kind.INTEGER, span=expression.span)
        if expression.kind is not None and not expression.kind.numeric:
            self._refuse(
                f"{aggregate.function.label} needs numbers, not a {expression.kind.value}",
                "SF403",
                expression.span,
                "take a number from it, such as YEAR(..) or LENGTH(..)",
            )
        return expression

    def _argument(self, aggregate: Aggregate, given: Expression, known: dict[str, Known]) -> Argument:
        expression = self._numeric(aggregate, given)
        interval = known_of(expression, known).interval or Interval(0, 0)
        if aggregate.bounds_per_row is not None:
            low, high = aggregate.bounds_per_row
            interval = Interval(Fraction(low), Fraction(high))
        multiplied = any(
            given in other.arguments and other.function in MULTIPLIED for _, other in self.query.aggregates
        )
        if isinstance(interval.low, Fraction) and isinstance(interval.high, Fraction):
            self._check_scale(interval.low, interval.high, aggregate)
            return Argument(
                expression=expression, low=interval.low, high=interval.high, multiplied=multiplied
            )
        self._refuse_unbounded(aggregate, expression, known)

    def _check_scale(self, low: Fraction, high: Fraction, aggregate: Aggregate) -> None:
        """Refuse bounds whose squares, or those of their noise, would be beyond all numbers."""
        furthest = max(abs(low), abs(high))
        if furthest > FURTHEST or 0 < furthest < NEAREST:
            self._refuse(
                f"{aggregate.function.label.upper()} needs bounds between 1e-60 and 1e60, or zero",
                "SF405",
                aggregate.span,
                "count in another unit: SUM(x / 1e90) instead of SUM(x)",
            )

    def _refuse_unbounded(
        self, aggregate: Aggregate, expression: Expression, known: dict[str, Known]
    ) -> NoReturn:
        loose = [
            column.name
            for column in column_leaves(expression)
            if column.kind.numeric and not (known_of(column, known).interval or Interval(0, 0)).bounded
        ]
        name = aggregate.function.label.upper()
        if not loose:
            self._refuse(
                f"{name} needs bounds, and none follow for this expression",
                "SF405",
                expression.span,
                "give them: LEAST(GREATEST(.., 0), 1000), or contribution_bounds_per_row => (0, 1000)",
            )
        column = loose[0].rsplit(".", 1)[-1]
        if any(one is aggregate and column == own for own, one in self.query.aggregates):
            self._refuse(  # GoogleSQL's clause made the column, and the question has no name for it
                f"{name} needs bounds on what one unit adds to a group",
                "SF405",
                aggregate.span,
                f"give them: {name}(x, contribution_bounds_per_group => (0, 20))",
            )
        if is_aggregate(self.query.source, loose[0]):
            self._refuse(
                f"{name} needs bounds on `{column}`, which counts or adds up rows without end",
                "SF405",
                expression.span,
                f"cap it: LEAST({column}, 20)",
                "or give bounds: contribution_bounds_per_row => (0, 20)",
            )
        public = self._public_scan(loose[0])
        if public is not None:
            self._refuse(
                f"{name} needs bounds on `{column}` of the public table `{public}`",
                "SF405",
                expression.span,
                f"declare them: columns={{'{public}.{column}': between(0, 1000)}}; being public, they can be"
                " read off the table",
                f"or later: db.declare({column}=between(0, 1000), table='{public}')",
                f"or give them here: LEAST(GREATEST({column}, 0), 1000)",
            )
        self._refuse(
            f"{name} needs bounds on `{column}`",
            "SF405",
            expression.span,
            f"declare them: {column} = between(0, 1000)",
            f"or give them here: LEAST(GREATEST({column}, 0), 1000)",
            f"do not read them off the data; db.bounds('{column}', epsilon=0.1), or `sfumato bounds`, "
            "finds them privately",
        )

    def _public_scan(self, column: str) -> str | None:
        """Return the public table that a column is from, None if it is from another."""
        for scan in scans(self.query.source):
            table = self.catalog.table(scan.table)
            if table is not None and not table.private and any(one.name == column for one in scan.columns):
                return table.name
        return None

    def _refuse(self, message: str, code: str, span: Span | None, *hints: str) -> NoReturn:
        raise QueryRefused(
            message,
            code=code,
            text=self.query.text,
            start=None if span is None else span.start,
            end=None if span is None else span.end,
            hints=hints_for(code, hints),
        )


_WRITTEN = {Kind.FLOAT, Kind.REAL, Kind.TIMESTAMP}  # types of these kinds write equal values differently
_TIMELY = (Kind.DATE, Kind.TIMESTAMP)
_CLAMPED = {Function.COUNT_ROWS, Function.COUNT, Function.SUM}


def _whole(name: str, aggregate: Aggregate, measure: str) -> Answer:
    return Answer(
        name=name,
        function=aggregate.function,
        measures=(measure,),
        kind=Kind.INTEGER,
        integer=True,
        lower=0.0,
    )
