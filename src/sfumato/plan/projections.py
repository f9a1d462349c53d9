"""Rows from rows: SELECT lists, DISTINCT, GROUP BY of the unit, and UNION ALL. The unit comes unseen."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from sfumato.catalog.kind import Kind
from sfumato.plan.aggregates import Aggregates, aggregate_kind
from sfumato.plan.conditions import kept
from sfumato.plan.context import Context
from sfumato.plan.expressions import Expressions
from sfumato.plan.groups import Grouping
from sfumato.plan.postprocessing_rules import output_names
from sfumato.plan.scope import Output, Scope, ScopedRows
from sfumato.plan.syntax import has_aggregate, is_aggregate, is_query
from sfumato.plan.tree import Aggregate, ColumnRef, Expression, PerUnit, Projection, Relation
from sfumato.plan.unions import united

__all__ = ["distinct_rows", "per_unit_rows", "projected_rows", "union_rows"]

_ROW_CLAUSES = ("expressions", "from_", "joins", "where", "with_")


def projected_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, context: Context, alias: str
) -> ScopedRows:
    """Return the rows of a SELECT without aggregates."""
    _refuse_choices(select, context, *_ROW_CLAUSES)
    read = Expressions(context.question, scope)
    columns: list[tuple[str, Expression]] = []
    outputs: list[Output] = []
    for name, value in _items(select, scope, context):
        expression: Expression | None
        if isinstance(value, Output):
            expression, whole = value.column, value.whole
        else:
            unit = read.unit(value)
            expression = None if unit is not None else read(value)
            whole = unit is None or unit.whole
        if expression is None:
            outputs.append(Output(name=name, column=None, whole=whole))
            continue
        if expression.kind is None:
            hint = "CAST(NULL AS ..) says of what kind"
            context.question.refuse("a column needs a kind", "SF404", select, hint)
        column = ColumnRef(name=f"{alias}.{name}", kind=expression.kind)
        columns.append((column.name, expression))
        outputs.append(Output(name=name, column=column))
    _distinct_names(select, [output.name for output in outputs], context)
    return ScopedRows(relation=_project(rows.relation, columns), outputs=tuple(outputs), unit=rows.unit)


def distinct_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, context: Context, alias: str
) -> ScopedRows:
    """Return the distinct rows of each unit: DISTINCT over columns that include the unit."""
    question = context.question
    question.only(select.args["distinct"])
    plain = projected_rows(_without_distinct(select), rows, scope, context, question.alias(alias))
    if not any(output.column is None and output.whole for output in plain.outputs):
        hint = "list the unit too, or GROUP BY the columns to ask which values there are"
        question.refuse(
            "DISTINCT would merge the rows of several people", "SF404", select.expressions[0], hint
        )
    keys, outputs = [], []
    for output in plain.outputs:
        if output.column is None:
            outputs.append(output)
            continue
        name = f"{alias}.{output.name}"
        keys.append((name, output.column))
        outputs.append(Output(name=output.name, column=ColumnRef(name=name, kind=output.column.kind)))
    relation = PerUnit(source=plain.relation, keys=tuple(keys), aggregates=())
    return ScopedRows(relation=relation, outputs=tuple(outputs), unit=rows.unit)


def per_unit_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, groups: Grouping, context: Context, alias: str
) -> ScopedRows:
    """Return one row per unit and keys, with aggregates of the unit's own rows."""
    question = context.question
    _refuse_choices(select, context, *_ROW_CLAUSES, "group", "having")
    read = Expressions(question, scope)
    aggregates: list[Aggregate] = []
    collect = Aggregates(question, read, inner=True)
    under = question.alias(f"{alias}_units")

    def replace(node: exp.Expr) -> Expression | None:
        if is_aggregate(node):
            aggregate = collect(node)
            kind = aggregate_kind(aggregate)
            if kind is None:
                question.refuse("a list cannot be a column of an inner query", "SF404", node)
            if aggregate not in aggregates:
                aggregates.append(aggregate)
            return ColumnRef(name=f"{under}.a{aggregates.index(aggregate)}", kind=kind)
        if has_aggregate(node) or is_query(node) or not list(node.find_all(exp.Column)):
            return None
        if isinstance(node, exp.Column) and (not isinstance(node.this, exp.Identifier) or read.unit(node)):
            return None
        position = groups.position(read(node))
        if position is not None:
            return ColumnRef(name=f"{under}.k{position}", kind=_kind(groups.keys[position]))
        if isinstance(node, exp.Column):
            _not_grouped(node, context)
        return None

    write = Expressions(question, scope, replace=replace)
    columns: list[tuple[str, Expression]] = []
    outputs: list[Output] = []
    for name, value in _items(select, scope, context):
        if isinstance(value, Output):
            question.refuse("`*` cannot be grouped", "SF404", select.expressions[0])
        if isinstance(value, exp.Column) and read.unit(value) is not None:
            outputs.append(Output(name=name, column=None))
            continue
        expression = write(value)
        if expression.kind is None:
            question.refuse("a column needs a kind", "SF404", value)
        column = ColumnRef(name=f"{alias}.{name}", kind=expression.kind)
        columns.append((column.name, expression))
        outputs.append(Output(name=name, column=column))
    _distinct_names(select, [output.name for output in outputs], context)
    having = select.args.get("having")
    conditions = []
    if having is not None:
        conditions.append(write.condition(_aliases_resolved(having.this, select, scope)))
    per_unit = PerUnit(
        source=rows.relation,
        keys=tuple((f"{under}.k{position}", key) for position, key in enumerate(groups.keys)),
        aggregates=tuple((f"{under}.a{position}", one) for position, one in enumerate(aggregates)),
    )
    relation = _project(kept(per_unit, conditions), columns)
    return ScopedRows(relation=relation, outputs=tuple(outputs), unit=rows.unit)


def union_rows(
    query: exp.SetOperation,
    done: list[tuple[exp.Expr, ScopedRows]],
    rest: list[exp.Expr],
    context: Context,
    alias: str,
) -> ScopedRows:
    """Return UNION ALL of rows of the same people."""
    question = context.question
    _check_union(query, context)
    branches = list(done)
    for side in rest:
        branches.append((side, context.rows(side, question.alias(alias))))

    def refuse(place: int, message: str, code: str, hint: str) -> NoReturn:
        question.refuse(message, code, branches[place][0], hint)

    spans = [question.place(side) for side, _ in branches]
    return united([branch for _, branch in branches], alias, refuse, spans)


def _project(source: Relation, columns: list[tuple[str, Expression]]) -> Relation:
    """Return the named columns of a relation; with none, its units alone count and it stays as it is."""
    return Projection(source=source, columns=tuple(columns)) if columns else source


# -- parts ----------------------------------------------------------------------------------


def _check_union(query: exp.Expr, context: Context) -> None:
    question = context.question
    if not isinstance(query, exp.SetOperation) or (query.args.get("with_") and query.parent is not None):
        return
    if not isinstance(query, exp.Union) or query.args.get("distinct"):
        name = "UNION without ALL" if isinstance(query, exp.Union) else type(query).__name__.upper()
        reason, hint = (
            "compares the rows of different people",
            "UNION ALL of rows of the same people is allowed",
        )
        if not context.private(query):
            reason, hint = "of public rows is not supported here", "SELECT DISTINCT * FROM (.. UNION ALL ..)"
        question.refuse(f"{name} {reason}", "SF404", query.expression, hint)
    question.only(query, "this", "expression", "distinct", "with_")
    _check_union(query.this, context)
    _check_union(query.expression, context)


def _items(select: exp.Select, scope: Scope, context: Context) -> list[tuple[str, exp.Expr | Output]]:
    """Return the SELECT list with `*` written out."""
    items: list[tuple[str, exp.Expr | Output]] = []
    for item, name in zip(select.expressions, output_names(select.expressions), strict=True):
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            context.question.only(star)
            alias = item.table if isinstance(item, exp.Column) else None
            found = scope.all(alias or None)
            if not found:
                context.question.refuse(f"no table `{alias}` here", "SF402", item)
            items.extend((output.name, output) for output in found)
        else:
            items.append((name, item.unalias()))
    return items


def _aliases_resolved(node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """Return a condition of HAVING with names of the SELECT list replaced by what they name."""
    aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}

    def change(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and not scope.find(part.name):
            meant = aliases.get(part.name.lower())
            if meant is not None:
                return exp.Paren(this=meant.copy())
        return part

    return node.transform(change)


def _refuse_choices(select: exp.Select, context: Context, *handled: str) -> None:
    question = context.question
    reasons = {
        "limit": "LIMIT picks some people's rows",
        "offset": "OFFSET picks some people's rows",
        "order": "private rows have no order to show",
        "qualify": "QUALIFY is a window over private rows",
        "windows": "a window over private rows would mix people",
        "having": "HAVING without groups",
    }
    for name, reason in reasons.items():
        if select.args.get(name) and name not in handled:
            hint = "do it to the noisy result: aggregate first"
            question.refuse(reason, "SF404", _first(select.args[name]), hint)
    question.only(select, *handled)


def _first(value: exp.Expr | list[exp.Expr]) -> exp.Expr:
    return value[0] if isinstance(value, list) else value


def _without_distinct(select: exp.Select) -> exp.Select:
    plain = select.copy()
    plain.set("distinct", None)
    return plain


def _distinct_names(select: exp.Select, names: list[str], context: Context) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            hint = "give one of them another name with AS"
            context.question.refuse(f"two columns are named `{name}`", "SF404", select, hint)
        seen.add(name.lower())


def _not_grouped(node: exp.Column, context: Context) -> None:
    context.question.refuse(f"`{node.name}` is neither grouped by nor aggregated", "SF404", node)


def _kind(expression: Expression) -> Kind:
    assert expression.kind is not None
    return expression.kind
