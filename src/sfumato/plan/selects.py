"""Queries, sorted by what they are about: rows of people, public rows, or released tables.

    rows       over private or public tables, row by row or per unit: a relation of the tree
    released   a private block (groups and aggregates over people), or post-processing of one

A query becomes rows or is released; which of the two, its FROM and its aggregates say.
"""

from __future__ import annotations

from typing import NoReturn, cast

from sqlglot import exp

from sfumato.plan import projections
from sfumato.plan.blocks import private_block
from sfumato.plan.context import Context, Cte, Released, Source
from sfumato.plan.groups import grouping
from sfumato.plan.listed_rows import LISTS, listed_rows
from sfumato.plan.postprocessing import post_processing, post_processing_union
from sfumato.plan.question import Statement
from sfumato.plan.relations import filtered, joined, table_rows
from sfumato.plan.scalar_subqueries import beside_values, without_scalars
from sfumato.plan.scope import Scope, ScopedRows
from sfumato.plan.syntax import has_aggregate

__all__ = ["from_nodes", "plan", "read_source", "refuse_table", "rows", "sources"]

_SELECT = (
    "with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order",
    "limit", "offset", "distinct",
)  # fmt: skip


def plan(query: exp.Expr, context: Context, alias: str) -> ScopedRows | Released:
    """Return what a query is: rows whose columns are named under the alias, or released tables."""
    question = context.question
    if isinstance(query, exp.Subquery):
        question.only(query, "this", "with_")
        if query.args.get("with_") is not None:
            question.refuse("put WITH inside the parentheses", "SF404", query)
        return plan(query.this, context, alias)
    if not isinstance(query, (exp.Select, exp.SetOperation)):
        question.refuse("only SELECT can stand here", "SF404", query)
    inner = _with_ctes(query, context)
    if isinstance(query, exp.SetOperation):
        result = _set_operation(query, inner, alias)
    else:
        question.only(query, *_SELECT)
        if not query.expressions:
            question.refuse("SELECT lists nothing", "SF401", query)
        result = _select(query, inner, alias)
    return _close_ctes(query, inner, result)


def rows(query: exp.Expr, context: Context, alias: str) -> ScopedRows:
    """Return a query that must be rows."""
    if isinstance(query, exp.SetOperation) and not context.private(query) and not query.args.get("with_"):
        return projections.union_rows(query, [], _sides(query), context, alias)
    result = plan(query, context, alias)
    if isinstance(result, Released):
        hint = "aggregate the private rows first, and join the results"
        context.question.refuse("a noisy result cannot be mixed with private rows", "SF406", query, hint)
    return result


def _select(select: exp.Select, context: Context, alias: str) -> ScopedRows | Released:
    question = context.question
    found = [read_source(node, context) for node in from_nodes(select, context)]
    over_people = any(isinstance(source, tuple) and source[1].unit is not None for source in found)
    if any(isinstance(source, Released) for source in found):
        if over_people:
            hint = "aggregate the private rows first, and join the results"
            at = select.args["from_"]
            question.refuse("a noisy result cannot be joined with private rows", "SF406", at, hint)
        return post_processing(select, context, found=found)
    if not over_people and (not found or question.free or context.private(select)):
        return post_processing(select, context, found=found)
    outermost = select.parent is None
    select, values = without_scalars(select, context)
    everything, scope, done = sources(select, context, None, found)
    everything = beside_values(everything, scope, values, context)
    kept = filtered(everything, scope, select.args.get("where"), context, done)
    later = [select.args.get(name) for name in ("having", "qualify", "order")]
    clauses = [*select.expressions, *(clause for clause in later if clause is not None)]
    if select.args.get("group") is None and not any(has_aggregate(clause) for clause in clauses):
        if kept.unit is None and any(select.args.get(name) for name in projections.CHOICES):
            return projections.chosen_rows(select, kept, scope, context, alias)
        distinct = select.args.get("distinct")
        if distinct is None:
            return projections.projected_rows(select, kept, scope, context, alias)
        if not outermost or projections.lists_unit(select, scope, context):
            return projections.distinct_rows(select, kept, scope, context, alias)
        question.only(distinct)
        select.set("distinct", None)  # which different rows there are, is which groups there are
        select.set("group", exp.Group(all=True))
    groups = grouping(select, scope, context)
    if groups.unit or kept.unit is None:
        return projections.per_unit_rows(select, kept, scope, groups, context, alias)
    return private_block(select, kept, scope, groups, context)


# -- FROM -----------------------------------------------------------------------------------


def from_nodes(select: exp.Select, context: Context) -> list[exp.Expr]:
    """Return the entries of FROM, the joined ones after the first."""
    source = select.args.get("from_")
    if source is None:
        if select.args.get("joins"):
            context.question.refuse("there is no FROM", "SF401", select)
        return []
    context.question.only(source, "this")
    return [source.this, *(join.this for join in select.args.get("joins") or [])]


def read_source(node: exp.Expr, context: Context) -> Source:
    """Return an entry of FROM: an alias and rows of people, a released query, or None if it is public."""
    question = context.question
    if isinstance(node, exp.Table):
        _check_table(node, context)
        cte = context.ctes.get(node.name.lower())
        if cte is None:
            table = question.catalog.table(node.name)
            if table is None or not table.private:
                return None
            name = node.alias or table.name
            return name, table_rows(table, name, question)
        cte.used = True
        if cte.released is not None:
            return cte.released
        if not cte.private:
            return None
        result = plan(cte.query, cte.context, question.alias(node.alias or node.name))
        if isinstance(result, Released):
            cte.released = result
            return result
        return node.alias or node.name, result
    if isinstance(node, exp.Subquery):
        question.only(node, "this", "alias")
        _check_alias(node, question)
        if not context.private(node):
            return None
        name = node.alias or "subquery"
        result = plan(node.this, context, question.alias(name))
        return result if isinstance(result, Released) else (name, result)
    if isinstance(node, LISTS):
        return None
    question.refuse("only tables, subqueries and lists of constants can stand in FROM", "SF404", node)


def sources(
    select: exp.Select, context: Context, parent: Scope | None, found: list[Source] | None = None
) -> tuple[ScopedRows, Scope, list[exp.Expr]]:
    """Return the rows of FROM with its joins, the scope of expressions, and what WHERE gave to joins."""
    nodes = from_nodes(select, context)
    if found is None:
        found = [read_source(node, context) for node in nodes]
    entries: list[tuple[str, ScopedRows]] = []
    for node, source in zip(nodes, found, strict=True):
        if isinstance(source, Released):
            context.question.refuse("a noisy result cannot choose private rows", "SF406", node)
        entries.append(source if source is not None else _public_rows(node, context))
    return joined(entries, select.args.get("joins") or [], context, parent, select.args.get("where"))


def _public_rows(node: exp.Expr, context: Context) -> tuple[str, ScopedRows]:
    question = context.question
    name = node.alias or (node.name if isinstance(node, exp.Table) else "subquery")
    if isinstance(node, LISTS):
        return name, listed_rows(node, question.alias(name), question)
    if isinstance(node, exp.Table):
        cte = context.ctes.get(node.name.lower())
        table = question.catalog.table(node.name)
        if cte is None and table is not None:
            name = node.alias or table.name
            return name, table_rows(table, name, question)
        assert cte is not None
        return name, rows(cte.query, cte.context, question.alias(name))
    return name, rows(node.this, context, question.alias(name))


def _check_table(node: exp.Table, context: Context) -> None:
    question = context.question
    known = node.name.lower() in context.ctes or question.catalog.table(node.name) is not None
    if not known or not isinstance(node.this, exp.Identifier) or node.args.get("db") is not None:
        refuse_table(node, question)
    question.only(node, "this", "alias")
    _check_alias(node, question)


def refuse_table(node: exp.Table, question: Statement) -> NoReturn:
    """Refuse what is not a table of the catalog."""
    known = ", ".join(sorted(table.name for table in question.catalog.tables))
    hint = f"known tables: {known}" if known else "the catalog is empty"
    if not isinstance(node.this, exp.Identifier):
        question.refuse("table functions are refused: they reach beyond the catalog", "SF403", node, hint)
    if node.args.get("db") is not None:
        question.refuse(f"no table `{node.sql(dialect='duckdb')}`", "SF402", node, hint)
    question.refuse(f"no table `{node.name}`", "SF402", node, hint)


def _check_alias(node: exp.Expr, question: Statement) -> None:
    if isinstance(alias := node.args.get("alias"), exp.TableAlias):
        question.only(alias, "this")


# -- WITH -----------------------------------------------------------------------------------


def _with_ctes(query: exp.Query, context: Context) -> Context:
    question = context.question
    clause = query.args.get("with_")
    if clause is None:
        return context
    if clause.args.get("recursive"):
        hint = "write the steps one after the other, or do it in Python to the noisy result"
        question.refuse("WITH RECURSIVE is refused", "SF404", clause, hint)
    question.only(clause, "expressions")
    ctes = dict(context.ctes)
    for cte in clause.expressions:
        question.only(cte, "this", "alias")
        _check_alias(cte, question)
        name = cte.alias.lower()
        if name in {other.alias.lower() for other in clause.expressions if other is not cte}:
            question.refuse(f"`{cte.alias}` is defined twice", "SF402", cte.args["alias"])
        if question.catalog.table(name) is not None:
            message = f"`{cte.alias}` already names a table"
            question.refuse(message, "SF402", cte.args["alias"], "call it something else")
        question.reserve(name)
        inside = Context(question, dict(ctes))
        ctes[name] = Cte(query=cast(exp.Query, cte.this), context=inside, private=inside.private(cte.this))
    return Context(question, ctes)


def _close_ctes(query: exp.Query, context: Context, result: ScopedRows | Released) -> ScopedRows | Released:
    """Refuse queries of WITH that nothing used; keep those that post-processing reads."""
    clause = query.args.get("with_")
    if clause is None:
        return result
    kept = []
    for cte in clause.expressions:
        entry = context.ctes[cte.alias.lower()]
        if not entry.used:
            question = context.question
            hint = "leave it out: what is not read would be paid for all the same"
            question.refuse(f"`{cte.alias}` is never used", "SF404", cte.args["alias"], hint)
        if entry.released is not None:
            name = exp.to_identifier(cte.alias, quoted=True)
            kept.append(exp.CTE(this=entry.released.query, alias=exp.TableAlias(this=name)))
    if kept and isinstance(result, Released):
        result.query.set("with_", exp.With(expressions=kept))
    return result


# -- set operations -------------------------------------------------------------------------


def _set_operation(query: exp.SetOperation, context: Context, alias: str) -> ScopedRows | Released:
    sides = [*_sides(query.this), *_sides(query.expression)]
    private = [context.private(side) for side in sides]
    if not any(private) or not all(private):
        return post_processing_union(query, context)
    first = plan(sides[0], context, context.question.alias(alias))
    if isinstance(first, Released):
        return post_processing_union(query, context, {id(sides[0]): first})
    return projections.union_rows(query, [(sides[0], first)], sides[1:], context, alias)


def _sides(query: exp.Expr) -> list[exp.Expr]:
    if isinstance(query, exp.SetOperation) and query.args.get("with_") is None:
        return [*_sides(query.this), *_sides(query.expression)]
    return [query]
