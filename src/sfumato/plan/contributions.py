"""What a question itself says about contributions: bounds inside aggregates, and GoogleSQL's clause.

GoogleSQL's AVG is the average over units of each unit's own average, so there a SELECT with
AVG first aggregates per unit and group; COUNT and SUM are then sums of what units add.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from sfumato.aggregates.registry import Function
from sfumato.catalog.domain import OneOf
from sfumato.catalog.kind import Kind
from sfumato.plan import tree
from sfumato.plan.question import Statement
from sfumato.plan.scope import Scope, ScopedRows

__all__ = ["claimed", "with_clause"]


def claimed(aggregate: tree.Aggregate, node: exp.Expr, question: Statement) -> tree.Aggregate:
    """Return an aggregate with the bounds that were written inside its call."""
    places = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    for entry in question.bounds:
        if not any(entry.call.start < place < entry.call.end for place in places):
            continue
        entry.taken += 1
        record = aggregate.function.record
        allowed = record.adds_up if entry.per_group else record.clamps and record.arity == 1
        if aggregate.function is Function.AVG:
            allowed = entry.per_group == (question.clause is not None)
        if not allowed:
            name = aggregate.function.label.upper()
            this, other = ("group", "row") if entry.per_group else ("row", "group")
            hint = f"use contribution_bounds_per_{other}"
            if not (record.adds_up or record.clamps):
                hint = "leave them out: a unit counts once, or with max_distinct values"
            question.refuse(f"{name} has no bounds per {this} here", "SF403", entry.span, hint)
        if aggregate.bounds_per_group is not None or aggregate.bounds_per_row is not None:
            question.refuse("bounds are given twice", "SF401", entry.span)
        if entry.per_group:
            aggregate = replace(aggregate, bounds_per_group=entry.bounds)
        else:
            aggregate = replace(aggregate, bounds_per_row=entry.bounds)
    return aggregate


def with_clause(
    query: tree.Query, select: exp.Select, rows: ScopedRows, scope: Scope, question: Statement
) -> tree.Query:
    """Return a private question in the sense of GoogleSQL's clause, if that SELECT has one."""
    clause = question.clause
    if clause is None:
        return query
    if question.queries or not _is_here(select, question):
        hint = "the SELECT with the aggregates has the clause, and is the only one over private tables"
        question.refuse("the privacy clause is not on the private SELECT", "SF404", clause.span, hint)
    if clause.unit is not None:
        alias, name = clause.unit
        found = scope.find(name, alias)
        if rows.by_row or len(found) != 1 or found[0].column is not None or not found[0].whole:
            unit = rows.unit.column if rows.unit is not None and rows.unit.column is not None else "each row"
            message = f"privacy_unit_column is `{name}`, but the catalog protects `{unit}`"
            question.refuse(message, "SF406", clause.span)
    averages = any(one.function is Function.AVG for _, one in query.aggregates) and not rows.by_row
    if question.options.max_rows_total is not None and query.keys and averages:
        message = "max_rows_contributed counts rows, and AVG averages each unit's own average"
        question.refuse(message, "SF404", clause.span, "with AVG and GROUP BY use max_groups_contributed")
    if question.options.keys == "declared":
        _check_declared(query, question)
    return _averages_of_rows(query) if rows.by_row else _averages_of_averages(query, question)


def _is_here(select: exp.Select, question: Statement) -> bool:
    """Whether the clause follows this very SELECT: no other one begins before its list."""
    assert question.clause is not None
    first = question.place(select.expressions[0])
    if first is None or first.start < question.clause.end:
        return False
    between = question.text[question.clause.end : first.start].lower()
    return re.search(r"\bselect\b", between) is None


def _check_declared(query: tree.Query, question: Statement) -> None:
    assert question.clause is not None
    tables = {scan.alias: question.catalog.table(scan.table) for scan in _scans(query.source)}
    for _, key in query.keys:
        alias, _, name = key.name.partition(".") if isinstance(key, tree.ColumnRef) else ("", "", "")
        table = tables.get(alias)
        field = table.field(name) if table is not None else None
        listed = field is not None and isinstance(field.domain, OneOf)
        if table is None or (table.private and not listed):
            at = key.span or question.clause.span
            hint = "declare its values: column = one_of(..), or group by a column of a public table"
            question.refuse("PUBLIC_GROUPS needs keys that are known in advance", "SF405", at, hint)


def _averages_of_rows(query: tree.Query) -> tree.Query:
    """Return the question where each row is a unit: a unit's own average is its only value."""
    aggregates = tuple(
        (name, replace(one, bounds_per_row=one.bounds_per_group, bounds_per_group=None))
        if one.function is Function.AVG
        else (name, one)
        for name, one in query.aggregates
    )
    return replace(query, aggregates=aggregates)


def _averages_of_averages(query: tree.Query, question: Statement) -> tree.Query:
    if all(aggregate.function is not Function.AVG for _, aggregate in query.aggregates):
        return query
    if len(query.grouping_sets) > 1:
        at = next(one.span for _, one in query.aggregates if one.function is Function.AVG)
        question.refuse("under this clause AVG takes a single grouping", "SF404", at)
    under = question.alias("units")
    keys = tuple((f"{under}.{name}", key) for name, key in query.keys)
    inner, outer = [], []
    for name, aggregate in query.aggregates:
        if aggregate.function is Function.COUNT_UNITS and aggregate.where is None:
            outer.append((name, aggregate))
            continue
        if not (aggregate.function is Function.AVG or aggregate.function.record.adds_up):
            message = f"{aggregate.function.label.upper()} cannot stand beside AVG under this clause"
            hint = "here AVG averages each unit's own average; ask for the other in its own question"
            question.refuse(message, "SF404", aggregate.span, hint)
        own = replace(aggregate, bounds_per_group=None, bounds_per_row=None)
        inner.append((f"{under}.{name}", own))
        column = tree.ColumnRef(name=f"{under}.{name}", kind=_kind(own))
        outer.append((name, _over_units(aggregate, column, query, question)))
    question.options = replace(question.options, max_rows=1)
    return replace(
        query,
        source=tree.PerUnit(source=query.source, keys=keys, aggregates=tuple(inner)),
        keys=tuple(
            (name, tree.ColumnRef(name=f"{under}.{name}", kind=_kind(key), span=key.span))
            for name, key in query.keys
        ),
        aggregates=tuple(outer),
    )


def _over_units(
    aggregate: tree.Aggregate, column: tree.ColumnRef, query: tree.Query, question: Statement
) -> tree.Aggregate:
    average = aggregate.function is Function.AVG
    bounds = aggregate.bounds_per_group
    if bounds is None and aggregate.function in (Function.COUNT, Function.COUNT_ROWS):
        tables = [question.catalog.table(scan.table) for scan in _scans(query.source)]
        private = [table for table in tables if table is not None and table.private]
        caps = [table.max_rows for table in private if table.max_rows is not None]
        if len(caps) != 1:
            hint = "COUNT(*, contribution_bounds_per_group => (0, 10))"
            question.refuse("COUNT beside AVG needs bounds", "SF405", aggregate.span, hint)
        bounds = (0.0, float(caps[0]))
    if aggregate.bounds_per_row is not None:
        question.refuse("SUM beside AVG takes bounds per group", "SF404", aggregate.span)
    return tree.Aggregate(
        function=Function.AVG if average else Function.SUM,
        arguments=(column,),
        bounds_per_row=bounds if average else None,
        bounds_per_group=None if average else bounds,
        span=aggregate.span,
    )


def _scans(relation: tree.Relation) -> list[tree.Scan]:
    """Return the scans whose rows a relation has, without those that only decide which rows stay."""
    if isinstance(relation, tree.SemiJoin):
        return _scans(relation.source)
    below = [_scans(part) for part in tree.parts(relation) if isinstance(part, tree.Relation)]
    return [relation] if isinstance(relation, tree.Scan) else [scan for scans in below for scan in scans]


def _kind(value: tree.Expression | tree.Aggregate) -> Kind:
    assert value.kind is not None
    return value.kind
