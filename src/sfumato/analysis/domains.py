"""Domains: what is known in public of every column of a relation.

Declared bounds and lists come in at the scans and are carried upward: through row-wise expressions
by interval arithmetic, through one unit's own aggregates by what an aggregate can reach, and
narrowed where a filter compares with a constant.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from sfumato.analysis.calendar import everything, of_kind
from sfumato.analysis.ranges import UNKNOWN, Known, either, known_of
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.domain import Between, OneOf
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.catalog.table import Field
from sfumato.core.intervals import End, Interval
from sfumato.errors import Unsupported
from sfumato.plan import tree
from sfumato.plan.conditions import conjuncts

__all__ = ["columns_of", "narrowed"]

_Columns = Mapping[str, Known]


def columns_of(relation: tree.Relation, catalog: Catalog) -> dict[str, Known]:
    """Return what is known of every column of a relation."""
    match relation:
        case tree.Scan(table=name, alias=alias, columns=columns):
            table = catalog.table(name)
            if table is None:
                return {}
            found, private = {}, table.private
            for column in columns:
                field = table.field(column.name.removeprefix(f"{alias}."))
                known = UNKNOWN if field is None else _declared(field)
                found[column.name] = known if private else replace(known, declared=True)
            return found
        case tree.Listed(columns=columns, rows=rows):
            return {
                column.name: _listed([row[place] for row in rows]) for place, column in enumerate(columns)
            }
        case tree.Filter(source=source, condition=condition):
            return narrowed(columns_of(source, catalog), condition)
        case tree.Projection(source=source, columns=projected):
            below = columns_of(source, catalog)
            return {name: known_of(expression, below) for name, expression in projected}
        case tree.Join(left=left, right=right, outer=outer, condition=condition):
            beside = columns_of(right, catalog)
            if outer:
                # a row without a match is NULL beside, which no list of values speaks of
                beside = {name: replace(one, nullable=True, declared=False) for name, one in beside.items()}
            both = {**columns_of(left, catalog), **beside}
            return both if outer or condition is None else narrowed(both, condition)
        case tree.SemiJoin(source=source) | tree.PublicChoice(source=source):
            return columns_of(source, catalog)
        case tree.Union(sources=sources):
            tables = [columns_of(source, catalog) for source in sources]
            united = {}
            for place, name in enumerate(tables[0]):
                parts = [list(table.values())[place] for table in tables]
                united[name] = replace(either(parts), declared=all(one.declared for one in parts))
            return united
        case tree.PerUnit(source=source, keys=keys, aggregates=aggregates):
            below = columns_of(source, catalog)
            return {
                **{name: known_of(expression, below) for name, expression in keys},
                **{name: _of_one_unit(aggregate, below) for name, aggregate in aggregates},
            }
    raise Unsupported(f"no domains are known for {type(relation).__name__}")


def _declared(field: Field) -> Known:
    nullable = field.nullable
    match field.domain:
        case Between(lower=lower, upper=upper) if isinstance(lower, Fraction) and isinstance(upper, Fraction):
            return Known(interval=Interval(lower, upper), nullable=nullable)
        case Between(lower=datetime.date() as lower, upper=datetime.date() as upper):
            return Known(dates=(of_kind(lower, field.kind), _until(upper, field.kind)), nullable=nullable)
        case OneOf(values=values):
            known = _one_of(values, tuple(map(type, values)))
            return replace(known, values=values, nullable=nullable, declared=True, unlisted=True)
    return Known(nullable=nullable)


def _until(upper: datetime.date, kind: Kind) -> datetime.date:
    """Return an upper bound, included: of timestamps a day is included as a whole."""
    if kind is Kind.TIMESTAMP and not isinstance(upper, datetime.datetime):
        return datetime.datetime.combine(upper, datetime.time.max)
    return of_kind(upper, kind)


def _listed(cells: list[Value]) -> Known:
    """Return what is known of a column whose values are written down."""
    values = tuple(dict.fromkeys(value for value in cells if value is not None))
    if not values:
        return Known(interval=None, values=())
    known = _one_of(values, tuple(map(type, values)))
    return replace(known, values=values, nullable=None in cells, declared=True)


@lru_cache(maxsize=256)
def _one_of(values: tuple[Value, ...], types: tuple[type, ...]) -> Known:
    """Return what is known of a value in a list; 1 and TRUE are equal, so the cache is told types, too."""
    return either([known_of(tree.Literal(value=value, kind=kind_of(value)), {}) for value in values])


def _of_one_unit(aggregate: tree.Aggregate, below: _Columns) -> Known:
    """Return what an aggregate of one unit's rows can be; how many rows those are is not bounded."""
    columns = below if aggregate.where is None else narrowed(below, aggregate.where)
    arguments = [known_of(argument, columns) for argument in aggregate.arguments]
    intervals = [one.interval for one in arguments]
    record = aggregate.function.record
    if record.counts:
        values = arguments[0].values if arguments else None
        return Known(interval=record.own_range((), None if values is None else len(values)), nullable=False)
    present = [interval for interval in intervals if interval is not None]
    if len(present) < len(intervals) or not intervals:
        return Known(interval=None, values=())
    if aggregate.bounds_per_group is not None:
        low, high = aggregate.bounds_per_group
        return Known(interval=Interval(Fraction(low), Fraction(high)))
    return Known(interval=record.own_range(present, None), dates=arguments[0].dates)


# -- filters --------------------------------------------------------------------------------


def narrowed(columns: _Columns, condition: tree.Expression) -> dict[str, Known]:
    """Return what is known of columns in those rows for which a condition is true."""
    known = dict(columns)
    for part in conjuncts(condition):
        match part:
            case tree.Call(function="between", arguments=(tree.ColumnRef() as column, low, high)):
                _narrow(known, column, low, high)
            case tree.Call(function="<" | "<=" | ">" | ">=" as word, arguments=(first, second)):
                less, more = (first, second) if word[0] == "<" else (second, first)
                if isinstance(less, tree.ColumnRef) and isinstance(more, tree.Literal):
                    _narrow(known, less, None, more)
                elif isinstance(less, tree.Literal) and isinstance(more, tree.ColumnRef):
                    _narrow(known, more, less, None)
            case tree.Call(
                function="not",
                arguments=(tree.Call(function="is_null", arguments=(tree.ColumnRef() as column,)),),
            ):
                known[column.name] = replace(known.get(column.name, UNKNOWN), nullable=False)
    return known


_Bound = tree.Expression | None


def _narrow(known: dict[str, Known], column: tree.ColumnRef, low: _Bound, high: _Bound) -> None:
    """A comparison with a constant is true of values alone, never of NULL."""
    name, before = column.name, known.get(column.name, UNKNOWN)
    if column.kind in (Kind.DATE, Kind.TIMESTAMP):
        known[name] = _narrowed_dates(before, column.kind, low, high)
        return
    bottom, top = _number(low, -math.inf), _number(high, math.inf)
    if before.interval is None or (bottom, top) == (-math.inf, math.inf):
        return
    clipped = before.interval.clipped(low=bottom, high=top)
    if clipped is not None:  # where nothing is left no row is either, and what was declared still holds
        known[name] = replace(before, interval=clipped, nullable=False)


def _narrowed_dates(known: Known, kind: Kind, low: _Bound, high: _Bound) -> Known:
    """Of a day that is compared with a moment, the day of that moment is the bound."""
    before = known.dates or everything(kind)
    bottom, top = before
    if isinstance(low, tree.Literal) and isinstance(low.value, datetime.date):
        bottom = max(bottom, of_kind(low.value, kind))
    if isinstance(high, tree.Literal) and isinstance(high.value, datetime.date):
        top = min(top, of_kind(high.value, kind))
    if known.interval is None or (bottom, top) == before or bottom > top:
        return known
    return replace(known, dates=(bottom, top), nullable=False)


def _number(expression: _Bound, otherwise: float) -> End:
    if not isinstance(expression, tree.Literal) or isinstance(expression.value, (bool, str)):
        return otherwise
    if isinstance(expression.value, (int, float, Decimal)) and math.isfinite(expression.value):
        return Fraction(expression.value)
    return otherwise
