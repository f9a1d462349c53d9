"""DISTINCT, ORDER BY and LIMIT of public rows, inside a question about private ones.

Public rows belong to nobody, so any of them may be picked. Which ones are is a function of the public table
alone: rows that ORDER BY leaves equal come in the order of all their columns.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sfumato.plan.context import Context
from sfumato.plan.expressions import Expressions
from sfumato.plan.projections import projected_rows
from sfumato.plan.scope import Scope, ScopedRows
from sfumato.plan.tree import ColumnRef, Expression, Projection, PublicChoice

__all__ = ["CHOICES", "chosen_rows"]

CHOICES = ("distinct", "order", "limit", "offset")
"""The clauses that choose among rows."""

_MOST = 2**31


def chosen_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, context: Context, alias: str
) -> ScopedRows:
    """Return the rows of a SELECT over public tables that picks some of them."""
    question = context.question
    distinct = select.args.get("distinct")
    plain = select.copy()
    for name in CHOICES:
        plain.set(name, None)
    found = projected_rows(plain, rows, scope, context, alias)
    relation = found.relation
    assert isinstance(relation, Projection)
    order: list[tuple[ColumnRef, bool, bool]] = []
    hidden: list[tuple[str, Expression]] = []
    for ordered in select.args["order"].expressions if select.args.get("order") else []:
        column = _listed(ordered.this, found, context)
        if column is None:
            if distinct is not None:
                hint = "ORDER BY takes columns of the SELECT list here"
                question.refuse("this is not a column of the different rows", "SF404", ordered, hint)
            value = Expressions(question, scope)(ordered.this)
            if value.kind is None:
                question.refuse("a column needs a kind", "SF404", ordered)
            column = ColumnRef(name=f"{alias}.__order{len(hidden)}", kind=value.kind)
            hidden.append((column.name, value))
        order.append((column, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
    choice = PublicChoice(
        source=replace(relation, columns=(*relation.columns, *hidden)),
        distinct=distinct is not None,
        order=tuple(order),
        limit=_count(select.args.get("limit"), context),
        offset=_count(select.args.get("offset"), context) or 0,
        span=question.place(select.expressions[0]),
    )
    return replace(found, relation=choice)


def _listed(node: exp.Expr, rows: ScopedRows, context: Context) -> ColumnRef | None:
    """Return the column of the SELECT list that ORDER BY names or counts, None if it does neither."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        position = int(node.this)
        if not 1 <= position <= len(rows.outputs):
            context.question.refuse(f"there is no column {position} in the SELECT list", "SF402", node)
        return rows.outputs[position - 1].column
    if isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier):
        named = [output for output in rows.outputs if output.name.lower() == node.name.lower()]
        return named[0].column if named else None
    return None


def _count(clause: exp.Expr | None, context: Context) -> int | None:
    """Return the number of LIMIT or OFFSET."""
    if clause is None:
        return None
    number = clause.args.get("expression")
    text = str(number.this) if isinstance(number, exp.Literal) and not number.is_string else ""
    if not text.isdecimal() or int(text) > _MOST:
        context.question.refuse("LIMIT and OFFSET take a whole number", "SF404", clause)
    return int(text)
