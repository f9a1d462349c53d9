"""Clamped arguments: which values of a question are moved into bounds, and which rows hold such values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sfumato.analysis.calendar import bounded
from sfumato.analysis.domains import narrowed
from sfumato.analysis.ranges import Known, known_of
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.plan.functions import call
from sfumato.plan.outline import outline_expression
from sfumato.plan.tree import Aggregate, Expression, Literal, Query

__all__ = ["beyond", "biting", "clamped_sums", "literal", "outside"]

_End = Fraction | datetime.date


def outside(query: Query, columns: Mapping[str, Known], *, sums: bool) -> list[tuple[Expression, Expression]]:
    """Return each argument that is clamped, and the condition that a row is outside its bounds.

    With `sums`, also of those that are clamped as a sum: of one row it is the value itself.
    """
    found: dict[tuple[Expression, Expression], None] = {}
    for _, aggregate in query.aggregates:
        if not aggregate.function.record.clamps or (aggregate.bounds_per_group is not None and not sums):
            continue
        given = aggregate.bounds_per_group or aggregate.bounds_per_row
        known = columns if aggregate.where is None else narrowed(columns, aggregate.where)
        for argument in aggregate.arguments:
            ends = _ends(argument, known_of(argument, known), given)
            if ends is not None:
                condition = beyond(argument, *ends)
                if aggregate.where is not None:
                    condition = call("and", (aggregate.where, condition))
                found[argument, condition] = None
    return list(found)


def _ends(argument: Expression, known: Known, given: tuple[float, float] | None) -> tuple[_End, _End] | None:
    """Return the bounds that an argument is clamped to, None where it is not clamped."""
    if argument.kind in (Kind.DATE, Kind.TIMESTAMP) and not known.values:
        return bounded(known.dates)
    if argument.kind is None or not argument.kind.numeric:
        return None
    if given is not None:
        return Fraction(given[0]), Fraction(given[1])
    if known.values or known.interval is None or not known.interval.bounded:
        return None
    return Fraction(known.interval.low), Fraction(known.interval.high)


def biting(
    query: Query, columns: Mapping[str, Known], undeclared: Mapping[str, Known], *, sums: bool
) -> list[tuple[Expression, Expression]]:
    """Return the arguments that bounds may move; where WHERE or LEAST enforce them, they do not.

    `undeclared` is what would be known of columns if nothing were declared: bounds that are the same then
    are those of the question's own text.
    """
    enforced = dict(outside(query, undeclared, sums=sums))
    given = {
        argument
        for _, one in query.aggregates
        if one.bounds_per_row is not None or one.bounds_per_group is not None
        for argument in one.arguments
    }
    return [
        (argument, condition)
        for argument, condition in outside(query, columns, sums=sums)
        if argument in given or enforced.get(argument) != condition
    ]


def clamped_sums(query: Query) -> list[tuple[str, Aggregate, tuple[Fraction, Fraction]]]:
    """Return what is clamped as one unit's sum in a group."""
    found = []
    for _, aggregate in query.aggregates:
        if aggregate.bounds_per_group is not None:
            label = outline_expression(aggregate.arguments[0]) if aggregate.arguments else "rows"
            low, high = (Fraction(end) for end in aggregate.bounds_per_group)
            found.append((label, replace(aggregate, bounds_per_group=None), (low, high)))
    return found


def beyond(value: Expression, low: _End, high: _End) -> Expression:
    """Return whether a value lies outside bounds; NULL, which is outside nothing, is not."""
    return call("or", (call("<", (value, _bound(low))), call(">", (value, _bound(high)))))


def _bound(end: _End) -> Literal:
    if isinstance(end, datetime.date):
        return literal(end)
    small = end.denominator == 1 and abs(end) < 2**62
    return literal(int(end) if small else float(end))


def literal(value: Value) -> Literal:
    return Literal(value=value, kind=kind_of(value))
