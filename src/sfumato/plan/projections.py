"""Rows from rows: SELECT lists, DISTINCT, GROUP BY of the unit, and UNION ALL. The unit comes unseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.plan.aggregates import Aggregates
from sfumato.plan.conditions import kept
from sfumato.plan.context import Context
from sfumato.plan.conversions import cast
from sfumato.plan.expressions import Expressions
from sfumato.plan.functions import common_kind
from sfumato.plan.groups import Grouping
from sfumato.plan.numbers import KindError
from sfumato.plan.postprocessing_rules import output_names
from sfumato.plan.question import Statement
from sfumato.plan.scope import Columns, Output, Scope, ScopedRows
from sfumato.plan.syntax import has_aggregate, is_aggregate
from sfumato.plan.tree import Aggregate, ColumnRef, Expression, PerUnit, Projection, PublicChoice, Span, Union

__all__ = [
    "CHOICES",
    "chosen_rows",
    "distinct_rows",
    "lists_unit",
    "per_unit_rows",
    "projected_rows",
    "union_rows",
    "united",
]

CHOICES = ("distinct", "order", "limit", "offset")
"""The clauses that choose among rows."""

_MOST = 2**31  # rows of LIMIT and OFFSET
_ROW_CLAUSES = ("expressions", "from_", "joins", "where", "with_")


def projected_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, context: Context, alias: str
) -> ScopedRows:
    """Return the rows of a SELECT without aggregates."""
    _refuse_choices(select, context, *_ROW_CLAUSES)
    read = Expressions(context.question, scope)
    columns = Columns(alias)
    for name, value in _items(select, scope, context):
        expression: Expression | None
        if isinstance(value, Output):
            expression, whole, keys = value.column, value.whole, value.keys
        else:
            unit = read.unit(value)
            expression = None if unit is not None else read(value)
            whole, keys = unit is None or unit.whole, read.keys(value)
        if expression is None:
            columns.outputs.append(Output(name=name, column=None, whole=whole))
            continue
        if expression.kind is None:
            hint = "CAST(NULL AS ..) says of what kind"
            context.question.refuse("a column needs a kind", "SF404", select, hint)
        columns.add(name, expression, expression.kind, keys)
    _check_names(select, columns, context)
    return columns.over(rows.relation, rows.unit)


def distinct_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, context: Context, alias: str
) -> ScopedRows:
    """Return the distinct rows of each unit: DISTINCT over columns that include the unit."""
    question = context.question
    question.only(select.args["distinct"])
    every = select.copy()
    every.set("distinct", None)
    plain = projected_rows(every, rows, scope, context, question.alias(alias))
    if not any(output.column is None and output.whole for output in plain.outputs):
        hint = "list the unit too, or count the values there are: COUNT(DISTINCT ..)"
        at = select.expressions[0]
        question.refuse("DISTINCT would merge the rows of several people", "SF404", at, hint)
    columns = Columns(alias)
    for output in plain.outputs:
        if output.column is None:
            columns.outputs.append(output)
        else:
            columns.add(output.name, output.column, output.column.kind, output.keys)
    relation = PerUnit(source=plain.relation, keys=tuple(columns.columns), aggregates=())
    return ScopedRows(relation=relation, outputs=tuple(columns.outputs), unit=rows.unit)


def lists_unit(select: exp.Select, scope: Scope, context: Context) -> bool:
    """Return whether the unit, which every row has, is among the columns of a SELECT list."""
    read = Expressions(context.question, scope)
    units = (
        value if isinstance(value, Output) else read.unit(value)
        for _, value in _items(select, scope, context)
    )
    return any(unit is not None and unit.column is None and unit.whole for unit in units)


def chosen_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, context: Context, alias: str
) -> ScopedRows:
    """Return the rows of a SELECT over public tables that picks some of them.

    Public rows belong to nobody, so any of them may be picked. Which ones are is a function of the public
    table alone: rows that ORDER BY leaves equal come in the order of all their columns.
    """
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


def per_unit_rows(
    select: exp.Select, rows: ScopedRows, scope: Scope, groups: Grouping, context: Context, alias: str
) -> ScopedRows:
    """Return one row per unit and keys, with aggregates of the unit's own rows; of public rows, per keys."""
    question = context.question
    if rows.unit is None and len(groups.sets) > 1:
        question.refuse("public rows have one grouping inside a question", "SF404", select.args["group"])
    _refuse_choices(select, context, *_ROW_CLAUSES, "group", "having")
    read = Expressions(question, scope)
    aggregates: list[Aggregate] = []
    collect = Aggregates(question, read, inner=True)
    under = question.alias(f"{alias}_units")

    def noted(node: exp.Expr) -> Expression | None:
        if is_aggregate(node):
            aggregate = collect(node)
            kind = aggregate.kind
            if kind is None:
                question.refuse("a list cannot be a column of an inner query", "SF404", node)
            if aggregate not in aggregates:
                aggregates.append(aggregate)
            return ColumnRef(name=f"{under}.a{aggregates.index(aggregate)}", kind=kind)
        if has_aggregate(node) or isinstance(node, exp.Query) or not list(node.find_all(exp.Column)):
            return None
        if isinstance(node, exp.Column) and (not isinstance(node.this, exp.Identifier) or read.unit(node)):
            return None
        position = groups.position(read(node))
        if position is not None:
            kind = groups.keys[position].kind
            assert kind is not None
            return ColumnRef(name=f"{under}.k{position}", kind=kind)
        if isinstance(node, exp.Column):
            question.refuse(f"`{node.name}` is neither grouped by nor aggregated", "SF404", node)
        return None

    write = Expressions(question, scope, replace=noted)
    columns = Columns(alias)
    for name, value in _items(select, scope, context):
        if isinstance(value, Output):
            question.refuse("`*` cannot be grouped", "SF404", select.expressions[0])
        if isinstance(value, exp.Column) and read.unit(value) is not None:
            columns.outputs.append(Output(name=name, column=None))
            continue
        expression = write(value)
        if expression.kind is None:
            question.refuse("a column needs a kind", "SF404", value)
        columns.add(name, expression, expression.kind, read.keys(value))
    _check_names(select, columns, context)
    having = select.args.get("having")
    conditions = []
    if having is not None:
        conditions.append(write.condition(_aliases_resolved(having.this, select, scope)))
    per_unit = PerUnit(
        source=rows.relation,
        keys=tuple((f"{under}.k{position}", key) for position, key in enumerate(groups.keys)),
        aggregates=tuple((f"{under}.a{position}", one) for position, one in enumerate(aggregates)),
        public=rows.unit is None,
    )
    return columns.over(kept(per_unit, conditions), rows.unit)


def union_rows(
    query: exp.SetOperation,
    done: list[tuple[exp.Expr, ScopedRows]],
    rest: list[exp.Expr],
    context: Context,
    alias: str,
) -> ScopedRows:
    """Return UNION ALL of rows of the same people."""
    from sfumato.plan import selects

    question = context.question
    _check_union(query, context)
    branches = [*done, *((side, selects.rows(side, context, question.alias(alias))) for side in rest)]
    spans = [question.place(side) for side, _ in branches]
    return united([branch for _, branch in branches], alias, question, spans)


def united(
    branches: Sequence[ScopedRows], alias: str, question: Statement, spans: Sequence[Span | None]
) -> ScopedRows:
    """Return UNION ALL of rows of the same people; columns go by their places, and have the first's names."""
    first = branches[0]
    for branch, span in zip(branches, spans, strict=True):
        shape = [output.column is None for output in branch.outputs]
        if shape != [output.column is None for output in first.outputs]:
            hint = "rows of one unit, with the same columns in the same order, the unit in the same place"
            question.refuse("the sides of UNION ALL differ in their columns", "SF404", span, hint)
    outputs: list[Output] = []
    for position, output in enumerate(first.outputs):
        if output.column is None:
            whole = all(branch.outputs[position].whole for branch in branches)
            outputs.append(replace(output, whole=whole))
            continue
        here = [branch.outputs[position].column for branch in branches]
        try:
            kind = common_kind(tuple(column.kind for column in here if column is not None))
        except KindError:
            kind = None
        if kind is None:
            hint = "convert it: CAST(.. AS VARCHAR), or .cast('text')"
            question.refuse(f"`{output.name}` differs in kind", "SF404", spans[-1], hint)
        outputs.append(Output(name=output.name, column=ColumnRef(name=f"{alias}.{output.name}", kind=kind)))
    projects = []
    for branch in branches:
        columns = tuple(
            (output.column.name, cast(own.column, output.column.kind))
            for output, own in zip(outputs, branch.outputs, strict=True)
            if output.column is not None and own.column is not None
        )
        projects.append(Projection(source=branch.relation, columns=columns))
    union = Union(sources=tuple(projects), spans=tuple(spans))
    return ScopedRows(relation=union, outputs=tuple(outputs), unit=first.unit)


# -- parts ----------------------------------------------------------------------------------


def _check_union(query: exp.Expr, context: Context) -> None:
    question = context.question
    if not isinstance(query, exp.SetOperation) or (query.args.get("with_") and query.parent is not None):
        return
    if not isinstance(query, exp.Union) or query.args.get("distinct"):
        name = "UNION without ALL" if isinstance(query, exp.Union) else type(query).__name__.upper()
        reason = "compares the rows of different people"
        hint = "UNION ALL of rows of the same people is allowed"
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
            clause = select.args[name]
            question.refuse(reason, "SF404", clause[0] if isinstance(clause, list) else clause, hint)
    question.only(select, *handled)


def _check_names(select: exp.Select, columns: Columns, context: Context) -> None:
    seen: set[str] = set()
    for name in (output.name for output in columns.outputs):
        if name.lower() in seen:
            hint = "give one of them another name with AS"
            context.question.refuse(f"two columns are named `{name}`", "SF404", select, hint)
        seen.add(name.lower())


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
