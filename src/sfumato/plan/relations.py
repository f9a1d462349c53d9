"""Relations: FROM, joins and WHERE over rows of people and public rows, each row of exactly one unit.

Names are resolved here: whether a condition matches the units of both sides, or reads columns. Which joins
and subqueries keep each row with one unit, `unit_safety` says of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from sqlglot import exp

from sfumato.catalog.table import Table
from sfumato.core.steps import spend
from sfumato.plan.conditions import conjunction, disjunction, kept
from sfumato.plan.context import Context
from sfumato.plan.expressions import Expressions
from sfumato.plan.question import Statement
from sfumato.plan.scope import Output, Scope, ScopedRows, ScopedSource
from sfumato.plan.syntax import conjuncts, has_aggregate
from sfumato.plan.tree import ColumnRef, Expression, Join, Relation, Scan, SemiJoin
from sfumato.plan.unit_safety import unit_of

__all__ = ["filtered", "join_rows", "joined", "table_rows"]


def table_rows(table: Table, alias: str, question: Statement) -> ScopedRows:
    """Return the rows of a table of the catalog; its unit is seen, but is no column of the tree."""
    known = question.alias(alias)
    columns, outputs = [], []
    spend(len(table.fields) // 4)
    for field in table.fields:
        if table.unit is not None and field.name == table.unit.own_column:
            outputs.append(Output(name=field.name, column=None))
            continue
        column = ColumnRef(name=f"{known}.{field.name}", kind=field.kind)
        columns.append(column)
        keys = question.catalog.keys_of(table, field.name)
        outputs.append(Output(name=field.name, column=column, keys=keys))
    if table.unit is not None and table.unit.path and table.unit.column is not None:
        outputs.append(Output(name=table.unit.column, column=None, implied=True))
    scan = Scan(table=table.name, alias=known, columns=tuple(columns))
    return ScopedRows(relation=scan, outputs=tuple(outputs), unit=table.unit, unsupported=table.unsupported)


def joined(
    sources: list[tuple[str, ScopedRows]],
    joins: list[exp.Join],
    context: Context,
    parent: Scope | None,
    where: exp.Expr | None = None,
) -> tuple[ScopedRows, Scope, list[exp.Expr]]:
    """Return the rows of FROM with its joins, the scope they make, and the conditions of WHERE they took.

    One join per further source. Of two private tables with nothing but a comma between them, WHERE must
    match the units, in a condition that stands by itself: FROM a, b WHERE a.uid = b.uid AND .. is the
    join on the unit, for a filter of both sides' rows may be applied as soon as both are there.
    """
    question = context.question
    found = conjuncts(where.this) if where is not None and where.this is not None else []
    everything = Scope(sources=[ScopedSource.of(alias, rows) for alias, rows in sources])
    taken: list[exp.Expr] = []
    alias, rows = sources[0]
    scope = Scope(sources=[ScopedSource.of(alias, rows)], parent=parent)
    for (alias, right), join in zip(sources[1:], joins, strict=True):
        if any(source.alias.lower() == alias.lower() for source in scope.sources):
            hint = "give one of them another alias"
            question.refuse(f"`{alias}` is in FROM twice", "SF402", join.this, hint)
        source = ScopedSource.of(alias, right)
        matched = False
        for part in found if _is_comma(join) else ():
            sides = _compared(part, scope, source, everything)
            if sides is not None and all(side.column is None and side.whole for side in sides):
                taken.append(part)
                matched = True
            matched = matched or (sides is not None and _same_key(*sides))
        rows = _join(rows, right, source, join, scope, context, matched)
    return rows, scope, taken


def join_rows(join: Join, left: ScopedRows, right: ScopedRows, question: Statement) -> ScopedRows:
    """Return the rows of a join; the private side of an inner one comes first in the tree."""
    if not (join.outer or join.keeps_right) and left.unit is None and right.unit is not None:
        join = replace(join, left=join.right, right=join.left)
    unit = unit_of(join, question.catalog, question.text)
    return ScopedRows(relation=join, outputs=(*left.outputs, *right.outputs), unit=unit)


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(part) for part in ("on", "using", "side", "method"))


def _compared(
    part: exp.Expr, left: Scope, right: ScopedSource, everything: Scope
) -> tuple[Output, Output] | None:
    """Return the two columns of an equality between the left and the right; None if it is another one."""
    if not isinstance(part, exp.EQ):
        return None
    sides: dict[str, Output] = {}
    for node in (part.this.unnest(), part.expression.unnest()):
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        name, alias = node.name, node.table or None
        meant = everything.find(name, alias)
        if len(meant) != 1:
            return None
        for side, scope in (("left", left), ("right", Scope(sources=[right]))):
            for output in scope.find(name, alias):
                if output.implied == meant[0].implied:
                    sides[side] = output
    return (sides["left"], sides["right"]) if len(sides) == 2 else None


def _same_key(first: Output, second: Output) -> bool:
    """Whether two columns hold a key that a path to the unit goes through, so that equal ones match units.

    The equality stays among the conditions, and the engine compares units beside it (`Join.on_unit`). So a
    join is safe whatever the keys; where every key has one unit, units that have the same key are the same.
    """
    return bool(first.keys & second.keys)


def _join(
    left: ScopedRows,
    right: ScopedRows,
    source: ScopedSource,
    join: exp.Join,
    scope: Scope,
    context: Context,
    matched: bool,
) -> ScopedRows:
    question = context.question
    question.only(join, "this", "on", "using", "side", "kind", "method")
    side, kind, method = (str(join.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    words = " ".join(word for word in (method, side, kind) if word)
    if method or side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "OUTER", "CROSS"):
        hint = "use JOIN .. ON, or WHERE [NOT] EXISTS (..)"
        question.refuse(f"{words} JOIN is not supported", "SF404", join.this, hint)
    if _lists_groups(side, left, right, question):
        side = ""
    outer, keeps_right = side in ("LEFT", "FULL"), side in ("RIGHT", "FULL")
    on_unit, condition = _condition(source, join, scope, context)
    scope.sources.append(source.far() if outer else source)
    relation = Join(
        left=left.relation,
        right=right.relation,
        condition=condition,
        on_unit=on_unit or matched,
        outer=outer,
        keeps_right=keeps_right,
        span=question.place(join.this),
    )
    return join_rows(relation, left, right, question)


def _lists_groups(side: str, left: ScopedRows, right: ScopedRows, question: Statement) -> bool:
    """Whether an outer join is GoogleSQL's way to say which groups there are: it keeps all public rows.

    A public row without a match is of no unit, so it would be dropped: what is left is the inner join. That
    its group is shown all the same is what PUBLIC_GROUPS insists on.
    """
    declared = any(clause.options.keys == "declared" for clause in question.clauses)
    kept, other = (left, right) if side == "LEFT" else (right, left)
    return declared and side in ("LEFT", "RIGHT") and kept.unit is None and other.unit is not None


def _condition(
    source: ScopedSource, join: exp.Join, scope: Scope, context: Context
) -> tuple[bool, Expression | None]:
    question = context.question
    right = Scope(sources=[source])
    both = Scope(sources=[*scope.sources, source], merged=set(scope.merged))
    on_unit = False
    parts: list[Expression] = []
    for name in join.args.get("using") or []:
        column = exp.Column(this=name.copy())
        column.meta.update(name.meta)
        pair = [Expressions(question, side).output(column) for side in (scope, right)]
        if pair[0].column is None and pair[1].column is None:
            on_unit = _whole(pair, name, context)
        elif pair[0].column is None or pair[1].column is None:
            question.refuse("the unit of protection can be matched only with a unit", "SF406", name)
        else:
            on_unit = on_unit or _same_key(*pair)
            parts.append(context.call("=", (pair[0].column, pair[1].column), name))
        scope.merged.add(name.name.lower())
    on = join.args.get("on")
    read = Expressions(question, both)
    for part in conjuncts(on) if on is not None else []:
        sides = _compared_columns(part, read)
        if sides and len({_inside(side, right, read) for side in (part.this, part.expression)}) == 2:
            if all(side.column is None for side in sides):
                on_unit = _whole(sides, part, context)
                continue
            on_unit = on_unit or _same_key(*sides)
        parts.append(read.condition(part))
    return on_unit, conjunction(parts)


def _compared_columns(part: exp.Expr, read: Expressions) -> list[Output]:
    """Return the columns of both sides of an equality; nothing, if either side is another value."""
    if not isinstance(part, exp.EQ):
        return []
    nodes = [side.unnest() for side in (part.this, part.expression)]
    if not all(isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) for node in nodes):
        return []
    return [read.output(cast(exp.Column, node)) for node in nodes]


def _whole(units: list[Output], at: exp.Expr, context: Context) -> bool:
    for unit in units:
        context.question.check_whole(unit, at, "match the unit of the side that the outer join preserves")
    return True


# -- WHERE ----------------------------------------------------------------------------------


def filtered(
    rows: ScopedRows, scope: Scope, where: exp.Expr | None, context: Context, done: Sequence[exp.Expr] = ()
) -> ScopedRows:
    """Return the rows that WHERE keeps; [NOT] EXISTS and [NOT] IN (SELECT ..) become semi-joins.

    One of them may stand beside other conditions under OR. `done` are conditions that a join took already.
    """
    if where is None:
        return rows
    plain: list[exp.Expr] = []
    semi: list[tuple[exp.Expr, list[exp.Expr]]] = []  # each with the conditions that it is an alternative to
    for part in conjuncts(where.this):
        if not any(part is one for one in done):
            either = _alternatives(part)
            tests = [one for one in either if _is_semi(_negated(one) or one)]
            if len(tests) == 1:
                semi.append((tests[0], [one for one in either if one is not tests[0]]))
            else:
                plain.append(part)
    read = Expressions(context.question, scope)
    relation = kept(rows.relation, [read.condition(part) for part in plain])
    for part, others in semi:
        unless = disjunction([read.condition(one) for one in others])
        relation = replace(_semi_join(relation, scope, part, context), unless=unless)
    return replace(rows, relation=relation)


def _alternatives(node: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition of which one must be true."""
    inner = node.unnest()
    if isinstance(inner, exp.Or):
        return [*_alternatives(inner.this), *_alternatives(inner.expression)]
    return [node]


def _is_semi(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def _negated(node: exp.Expr) -> exp.Expr | None:
    """Return the EXISTS of a NOT EXISTS, or the IN of a NOT IN."""
    node = node.unnest()
    inner = node.this.unnest() if isinstance(node, exp.Not) else None
    return inner if inner is not None and _is_semi(inner) else None


def _semi_join(relation: Relation, scope: Scope, node: exp.Expr, context: Context) -> SemiJoin:
    from sfumato.plan import selects

    opposite = _negated(node)
    node = opposite or node.unnest()
    question = context.question
    question.only(node, "this", "query")
    operand = node.this if isinstance(node, exp.In) else None
    query: exp.Expr = node.args["query"] if isinstance(node, exp.In) else node.this
    while isinstance(query, exp.Subquery):
        question.only(query, "this")
        query = query.this
    if not isinstance(query, exp.Select) or not _simple(query):
        if operand is None:
            question.refuse("EXISTS takes a plain SELECT", "SF404", node, "SELECT 1 FROM .. WHERE ..")
        return _semi_join_on_rows(relation, scope, operand, query, context, opposite is not None)
    if operand is not None and len(query.expressions) != 1:
        question.refuse("IN takes a query of one column", "SF404", query)
    question.only(query, "expressions", "from_", "joins", "where", "distinct")
    inner, inside, done = selects.sources(query, context, scope)
    near = Expressions(question, inside)
    wide = Expressions(question, inside, outside=True)
    outside = Expressions(question, scope)
    if operand is None and not query.is_star:
        for value in (item.unalias() for item in query.expressions):
            if near.unit(value) is None:
                near(value)
    on_unit, local, conditions = False, [], []
    where = query.args.get("where")
    for part in conjuncts(where.this) if where is not None else []:
        if any(part is one for one in done):
            continue
        if _is_semi(_negated(part) or part):
            question.refuse("EXISTS and IN (SELECT ..) cannot be nested here", "SF404", part)
        if sides := _compared_columns(part, wide):
            apart = len({_inside(side, inside, wide) for side in (part.this, part.expression)}) == 2
            if all(side.column is None for side in sides):
                if not apart:
                    question.refuse("this compares a unit with itself", "SF406", part)
                on_unit = _whole(sides, part, context)
                continue
            on_unit = on_unit or (apart and _same_key(*sides))
        if any(not _inside(column, inside, wide) for column in part.find_all(exp.Column)):
            conditions.append(wide.condition(part))
        else:
            local.append(near.condition(part))
    if operand is not None:
        item = query.expressions[0].unalias()
        inner_unit, outer_unit = wide.unit(item), outside.unit(operand)
        if inner_unit is not None and outer_unit is not None:
            on_unit = _whole([inner_unit, outer_unit], node, context)
        else:
            on_unit = on_unit or bool(outside.keys(operand) & near.keys(item))
            conditions.append(_is_in(outside(operand), near(item), node, context, opposite is not None))
    if operand is not None and opposite is not None:
        _check_not_in(inner, node, context)
    return SemiJoin(
        source=relation,
        other=kept(inner.relation, local),
        condition=conjunction(conditions),
        on_unit=on_unit,
        negated=opposite is not None,
        span=question.place(node),
    )


def _check_not_in(rows: ScopedRows, at: exp.Expr, context: Context) -> None:
    """Refuse NOT IN over private rows: one NULL of anybody would make it true of nobody."""
    if rows.unit is not None:
        hint = "write it as NOT EXISTS (SELECT 1 FROM .. WHERE ..), matched on the unit"
        context.question.refuse("NOT IN asks about all rows of everybody", "SF406", at, hint)


def _is_in(
    value: Expression, member: Expression, at: exp.Expr, context: Context, negated: bool
) -> Expression:
    """Return the condition that a value is this member; `negated`: or that NOT IN is not true because of it.

    Theorem: x NOT IN s is true if and only if no member m of s has x = m, and neither x nor any m is NULL,
    or s is empty. So it is true where no m exists for which x = m, x is NULL or m is NULL.
    """
    same: Expression = context.call("=", (value, member), at)
    for side in (value, member) if negated else ():
        same = context.call("or", (same, context.call("is_null", (side,), at)), at)
    return same


def _semi_join_on_rows(
    relation: Relation, scope: Scope, operand: exp.Expr, query: exp.Expr, context: Context, negated: bool
) -> SemiJoin:
    from sfumato.plan import selects

    question = context.question
    inner = selects.rows(query, context, question.alias("chosen"))
    if len(inner.outputs) != 1:
        question.refuse("IN takes a query of one column", "SF404", query)
    output = inner.outputs[0]
    outside = Expressions(question, scope)
    unit = outside.unit(operand)
    condition = None
    on_unit = output.column is None
    if negated:
        _check_not_in(inner, query, context)
    if output.column is not None:
        condition = _is_in(outside(operand), output.column, query, context, negated)
        on_unit = bool(outside.keys(operand) & output.keys)
    elif unit is not None:
        _whole([unit, output], query, context)
    else:
        question.refuse("the unit of protection can be matched only with a unit", "SF406", query)
    return SemiJoin(
        source=relation,
        other=inner.relation,
        condition=condition,
        on_unit=on_unit,
        negated=negated,
        span=question.place(query),
    )


def _simple(query: exp.Select) -> bool:
    """Whether a subquery only chooses rows; DISTINCT changes nothing about whether one exists."""
    plain = {"expressions", "from_", "joins", "where", "distinct"}
    distinct = query.args.get("distinct")
    return (
        query.args.get("from_") is not None
        and all(name in plain or not value for name, value in query.args.items())
        and (distinct is None or not distinct.args.get("on"))
        and not any(has_aggregate(item) for item in query.expressions)
    )


def _inside(node: exp.Expr, scope: Scope, read: Expressions) -> bool:
    """Whether a column is one of a scope's, and not one of the scopes around it that are read with it."""
    node = node.unnest()
    if not isinstance(node, exp.Column) or not scope.find(node.name, node.table or None):
        return False
    output = read.output(node)
    return any(output is one for source in scope.sources for one in source.outputs)
