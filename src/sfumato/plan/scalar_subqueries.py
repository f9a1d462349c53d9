"""Scalar subqueries over public tables: one value that stands beside every row.

    SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM census)

The subquery becomes a public relation of one row at most, joined to the rows of FROM without a condition, and
its value a column of it. It is a function of public tables alone, so nothing is learned by it about anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from sfumato.plan import tree
from sfumato.plan.context import Context
from sfumato.plan.relations import join_rows
from sfumato.plan.scope import Scope, ScopedRows, ScopedSource
from sfumato.plan.syntax import has_aggregate, is_aggregate

__all__ = ["beside_values", "without_scalars"]

_Values = list[tuple[str, ScopedRows]]


def without_scalars(select: exp.Select, context: Context) -> tuple[exp.Select, _Values]:
    """Return a SELECT with columns in the places of public scalar subqueries, and the rows that have them."""
    if not any(_is_public(node, context) for node in _scalars(select)):
        return select, []
    changed, values = select.copy(), _Values()
    for node in list(_scalars(changed)):
        if _is_public(node, context):
            alias = f"({len(values) + 1})"  # no name that anybody writes without quotes
            values.append((alias, _value(node, context)))
            column = exp.column(
                exp.to_identifier("value", quoted=True), exp.to_identifier(alias, quoted=True)
            )
            column.meta.update(node.meta)
            node.replace(column)
    return changed, values


def beside_values(rows: ScopedRows, scope: Scope, values: _Values, context: Context) -> ScopedRows:
    """Return rows with the values of scalar subqueries beside them, which the scope then has."""
    for alias, value in values:
        join = tree.Join(
            left=rows.relation, right=value.relation, condition=None, on_unit=False, outer=True
        )  # where the subquery has no row, its value is NULL
        rows = join_rows(join, rows, value, context.question)
        scope.sources.append(ScopedSource.of(alias, value))
    return rows


def _value(node: exp.Subquery, context: Context) -> ScopedRows:
    from sfumato.plan import selects

    question = context.question
    question.only(node, "this")
    found = selects.rows(node.this, context, question.alias("value"))
    if len(found.outputs) != 1 or found.unit is not None or not _one_row(found.relation):
        hint = "an aggregate without GROUP BY, or LIMIT 1"
        question.refuse("a subquery in the place of a value has one column and one row", "SF404", node, hint)
    [output] = found.outputs
    return replace(found, outputs=(replace(output, name="value", implied=True),))


def _one_row(relation: tree.Relation) -> bool:
    """Whether a public relation has one row at most, whatever its tables hold."""
    match relation:
        case tree.PerUnit(keys=(), public=True) | tree.PublicChoice(limit=0 | 1):
            return True
        case tree.Filter(source=source) | tree.Projection(source=source):
            return _one_row(source)
    return False


def _is_public(node: exp.Subquery, context: Context) -> bool:
    return node.find(exp.Table) is not None and not context.private(node)


def _scalars(select: exp.Select) -> Iterator[exp.Subquery]:
    """Yield the subqueries that stand for a value of a row, outside of the noisy result of a SELECT."""
    groups = select.args.get("group") is not None or any(map(has_aggregate, select.expressions))
    for name in ("expressions", "where", "group", "having"):
        clause = select.args.get(name)
        for node in clause if isinstance(clause, list) else [clause] if clause is not None else []:
            if groups and name in ("expressions", "having"):
                for call in list(node.find_all(exp.Func)):
                    if is_aggregate(call):
                        yield from _within(call)
            else:
                yield from _within(node)


def _within(node: exp.Expr) -> Iterator[exp.Subquery]:
    below = [node]
    while below:
        one = below.pop()
        if isinstance(one, exp.Subquery):
            yield one
        elif not isinstance(one, (exp.Query, exp.Exists, exp.Any, exp.All)):
            listed = one.args.get("query") if isinstance(one, exp.In) else None
            below += [child for child in one.iter_expressions(reverse=True) if child is not listed]
