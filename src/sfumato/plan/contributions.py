"""What a question itself says about contributions: bounds inside aggregates, and GoogleSQL's clause.

GoogleSQL's AVG is the average over units of each unit's own average, so there a SELECT with
AVG first aggregates per unit and group; COUNT and SUM are then sums of what units add.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.aggregates.registry import Function
from sfumato.catalog.kind import Kind
from sfumato.plan import tree
from sfumato.plan.options import Options
from sfumato.plan.question import Clause, NamedArgument, Statement
from sfumato.plan.request import NamedQuery
from sfumato.plan.scope import Scope, ScopedRows

__all__ = ["claimed", "clause_of", "with_clause"]

_NO_CLAUSE = (
    "a SELECT over private tables has no privacy clause of its own: it costs as much as the first clause"
)


def clause_of(select: exp.Select, question: Statement) -> Clause | None:
    """Return the clause that follows this very SELECT: no other one begins before its list."""
    first = question.place(select.expressions[0])
    for clause in question.clauses:
        if first is not None and clause.end <= first.start:
            between = question.text[clause.end : first.start].lower()
            if re.search(r"\bselect\b", between) is None:
                clause.taken = True
                return clause
    return None


def claimed(
    aggregate: tree.Aggregate, node: exp.Expr, clause: Clause | None, question: Statement
) -> tuple[tree.Aggregate, str | None]:
    """Return an aggregate with the bounds and epsilon that were written inside its call, and its report."""
    places = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    report: str | None = None
    seen: set[str] = set()
    for entry in question.arguments:
        if not any(entry.call.start < place < entry.call.end for place in places):
            continue
        entry.taken += 1
        kind = "bounds" if entry.name.startswith("contribution") else entry.name
        if kind in seen:
            what = "bounds are" if kind == "bounds" else f"{kind} is"
            question.refuse(f"{what} given twice", "SF401", entry.span)
        seen.add(kind)
        if kind == "report_format":
            report = entry.value
        elif kind == "epsilon":
            aggregate = replace(aggregate, share=_share(entry.value, entry.span, clause, question))
        else:
            aggregate = _bounded(aggregate, entry, clause, question)
    return aggregate, report


def _bounded(
    aggregate: tree.Aggregate, entry: NamedArgument, clause: Clause | None, question: Statement
) -> tree.Aggregate:
    per_group = entry.name == "contribution_bounds_per_group"
    record = aggregate.function.record
    allowed = record.adds_up if per_group else record.clamps and record.arity == 1
    if aggregate.function is Function.AVG:
        allowed = per_group == (clause is not None)
    if not allowed:
        name = aggregate.function.label.upper()
        this, other = ("group", "row") if per_group else ("row", "group")
        hint = f"use contribution_bounds_per_{other}"
        if not (record.adds_up or record.clamps):
            hint = "leave them out: a unit counts once, or with max_distinct values"
        question.refuse(f"{name} has no bounds per {this} here", "SF403", entry.span, hint)
    if per_group:
        return replace(aggregate, bounds_per_group=entry.value)
    return replace(aggregate, bounds_per_row=entry.value)


def with_clause(
    asked: NamedQuery, clause: Clause | None, rows: ScopedRows, scope: Scope, question: Statement
) -> NamedQuery:
    """Return a private question in the sense of the clause of its SELECT.

    A SELECT without one, in a statement that has clauses, may cost what the first of them says, and a
    note says so.
    """
    if clause is None:
        if not question.clauses:
            return asked
        first = question.clauses[0].options
        options = Options(epsilon=first.epsilon, delta=first.delta, max_groups=first.max_groups)
        note = "" if first.epsilon is None else _NO_CLAUSE
        return replace(asked, options=options, fills_in=True, note=note)
    query, options = asked.query, clause.options
    if clause.unit is not None:
        alias, name = clause.unit
        found = scope.find(name, alias)
        if rows.by_row or len(found) != 1 or found[0].column is not None or not found[0].whole:
            unit = rows.unit.column if rows.unit is not None and rows.unit.column is not None else "each row"
            message = f"privacy_unit_column is `{name}`, but the catalog protects `{unit}`"
            question.refuse(message, "SF406", clause.span)
    averages = any(one.function is Function.AVG for _, one in query.aggregates) and not rows.by_row
    if options.max_rows_total is not None and query.keys and averages:
        message = "max_rows_contributed counts rows, and AVG averages each unit's own average"
        question.refuse(message, "SF404", clause.span, "with AVG and GROUP BY use max_groups_contributed")
    if rows.by_row:
        query = _averages_of_rows(query)
    elif averages:
        query, options = _averages_of_averages(query, question), replace(options, max_rows=1)
    if clause.keys_epsilon is not None:
        query = replace(query, keys_share=_share(clause.keys_epsilon, clause.span, clause, question))
    given = [one.share for _, one in query.aggregates]
    total = sum(share for share in (*given, query.keys_share) if share is not None)
    hint = "the epsilon of the clause is for all of them together, and for selecting groups"
    if total > 1:
        message = "single epsilons add up to more than that of the clause"
        question.refuse(message, "SF404", clause.span, hint)
    if total == 1 and None in given:
        message = "single epsilons leave nothing of the clause's for the other aggregates"
        question.refuse(message, "SF404", clause.span, hint)
    return replace(asked, query=query, options=options, fills_in=True)


def _share(epsilon: Fraction, at: tree.Span, clause: Clause | None, question: Statement) -> Fraction:
    whole = None if clause is None else clause.options.epsilon
    if whole is None:
        hint = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2, ..) COUNT(*, epsilon => 1), .."
        question.refuse("a single epsilon is a part of the clause's, which has none", "SF404", at, hint)
    return epsilon / whole


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
    average, bounds = aggregate.function is Function.AVG, aggregate.bounds_per_group
    if bounds is None and aggregate.function in (Function.COUNT, Function.COUNT_ROWS):
        tables = [question.catalog.table(scan.table) for scan in _scans(query.source)]
        caps = [table.max_rows for table in tables if table is not None and table.private and table.max_rows]
        bounds = (0.0, float(caps[0])) if len(caps) == 1 else None
    if aggregate.bounds_per_row is not None:
        question.refuse("SUM beside AVG takes bounds per group", "SF404", aggregate.span)
    return tree.Aggregate(
        function=Function.AVG if average else Function.SUM,
        arguments=(column,),
        bounds_per_row=bounds if average else None,
        bounds_per_group=None if average else bounds,
        share=aggregate.share,
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
