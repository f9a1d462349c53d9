"""Lineage: which columns of a post-processed result are released aggregates, row by row.

An interval travels with its aggregate through projections, filters, order, limits, windows beside
it, subqueries and common table expressions over one noisy table, joins with other tables (for labels, say),
and through arithmetic that only rises or only falls: with constants, casts to numbers and dates, rounding, an
element of a list. So does the ratio of two aggregates. Everything else (joins of two noisy tables, grouping,
set operations, other arithmetic of two aggregates) has no interval: none is better than a wrong one.

Theorem: a row of a join is made of at most one row of each table that is joined, and has its values. So the
number of the noisy row, carried along, says which interval belongs to it, however often the join repeats
that row; where an outer join has no noisy row to show, the number is NULL, and there is no interval.

Where noisy numbers choose which rows are shown (`chooses`: a condition on an aggregate, the first rows by
one), those with large noise are chosen more often, and an interval for one row covers a chosen row less often
than it says. There the intervals of all n rows are made to hold at once: each misses with a chance of
(1 - level) / n, so that any misses with at most 1 - level, whichever rows are chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from sfumato.core.steps import spend
from sfumato.plan.request import Request
from sfumato.plan.tree import GROUPING_SET
from sfumato.release.answers import Origin

__all__ = ["CHARACTERS", "HIDDEN", "Trace", "chooses", "shown_columns", "trace"]

HIDDEN = "__sfumato_row"
"""The column that carries a noisy table's row number through the statement."""

CHARACTERS = 5
"""How many characters of post-processing are read in one step."""

_X = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A statement with one more, last column: the row of `table` that each row of the result is of."""

    sql: str
    table: str
    origins: tuple[Origin | None, ...]
    names: tuple[str, ...]
    plain: bool  # nothing is done but to choose, order and rename columns


def trace(sql: str, tables: Mapping[str, tuple[str, ...]]) -> Trace | None:
    """Return how a statement's columns descend from one noisy table, None where they do not plainly."""
    spend(len(sql) // CHARACTERS)
    return _trace(sql, tuple(tables.items()))


@lru_cache(maxsize=64)
def _trace(sql: str, tables: tuple[tuple[str, tuple[str, ...]], ...]) -> Trace | None:
    statement = sqlglot.parse_one(sql, read="duckdb")
    if not isinstance(statement, exp.Select) or HIDDEN in sql:
        return None
    known = {name.lower(): (name, columns) for name, columns in tables}
    found = _select(statement, known, {})
    if found is None:
        return None
    table, outputs = found
    others = [
        part for part, value in statement.args.items() if value and part not in ("expressions", "from_")
    ]
    base = statement.args["from_"].this
    origins = tuple(
        None
        if expression is None
        else Origin(column=column[0], over=(*column, None)[1], expression=expression.sql("duckdb"))
        for _, column, expression in outputs
    )
    return Trace(
        sql=statement.sql("duckdb"),
        table=table,
        origins=origins,
        names=tuple(name for name, _, _ in outputs),
        plain=not others
        and isinstance(base, exp.Table)
        and all(origin is not None and origin == Origin(column=origin.column) for origin in origins),
    )


def shown_columns(request: Request) -> dict[str, str]:
    """Return, for each column that shows a noisy one as it is, which one that is."""
    if request.postprocessing is None or len(request.queries) != 1:
        return {}
    [named] = request.queries
    columns = (*(name for name, _ in (*named.query.keys, *named.query.aggregates)), GROUPING_SET)
    found = trace(request.postprocessing, {named.name: columns})
    if found is None:
        return {}
    pairs = zip(found.names, found.origins, strict=True)
    return {
        name: origin.column
        for name, origin in pairs
        if origin is not None and origin == Origin(column=origin.column)
    }


def chooses(sql: str, aggregates: Collection[str]) -> bool:
    """Return whether noisy numbers may decide which rows a statement shows.

    Names alone tell: whatever is called like an aggregate, or computed from what is, counts as one.

    >>> chooses("SELECT * FROM t WHERE n > 5", ["n"]), chooses("SELECT * FROM t WHERE k > 5", ["n"])
    (True, False)
    """
    return _chooses(sql, frozenset(map(str.lower, aggregates)))


@lru_cache(maxsize=64)
def _chooses(sql: str, noisy: frozenset[str]) -> bool:
    statement = sqlglot.parse_one(sql, read="duckdb")

    def named(node: Any) -> bool:
        return any(one.name.lower() in noisy for one in node.find_all(exp.Identifier))

    while found := {one.alias.lower() for one in statement.find_all(exp.Alias) if named(one.this)} - noisy:
        noisy |= found
    clauses = list(statement.find_all(exp.Where, exp.Qualify, exp.Having))
    for join in statement.find_all(exp.Join):
        clauses += [part for part in (join.args.get("on"), *join.args.get("using", ())) if part is not None]
    if statement.find(exp.Limit, exp.Offset, exp.Fetch, exp.Distinct) is not None:
        clauses += statement.find_all(exp.Order)
        if any(not isinstance(one.this, exp.Column) for one in statement.find_all(exp.Ordered)):
            return True  # by the number of a column, say
    return any(map(named, clauses))


# An output: its name; the noisy table's column, or two of which it is a ratio; an expression over x, or None.
_Output = tuple[str, tuple[str, ...], Any]
_Found = tuple[str, list[_Output]]


def _select(select: Any, tables: Mapping[str, Any], scope: Mapping[str, Any]) -> _Found | None:
    """Trace one SELECT, and add the hidden column to it in place."""
    refused = ("group", "distinct", "laterals", "pivots", "having", "into", "sample", "kind")
    if not isinstance(select, exp.Select) or any(map(select.args.get, refused)):
        return None
    scope = dict(scope)
    with_ = select.args.get("with_")
    if with_ is not None:
        if with_.args.get("recursive"):
            return None
        for cte in with_.expressions:
            if cte.args["alias"].args.get("columns"):
                return None
            scope[cte.alias.lower()] = _select(cte.this, tables, scope)
    source = _only_source(select, tables, scope)
    if source is None:
        return None
    table, alias, columns, row = source
    joined = bool(select.args.get("joins"))
    outputs: list[_Output] = []
    projections: list[Any] = []
    for projection in select.expressions:
        if projection.is_star:
            plain = isinstance(projection, (exp.Star, exp.Column))
            star = projection if isinstance(projection, exp.Star) else projection.this
            if not plain or any(star.args.values()):
                return None
            if joined and (isinstance(projection, exp.Star) or not _named(projection, alias)):
                return None  # whose columns these are is not known here
            for name, column, expression in columns:
                outputs.append((name, column, expression))
                projections.append(exp.column(exp.to_identifier(name, quoted=True), table=alias))
            continue
        outputs.append((projection.alias_or_name, *_origin(projection.unalias(), alias, columns)))
        projections.append(projection)
    hidden = exp.alias_(exp.column(row, table=alias), exp.to_identifier(HIDDEN, quoted=True))
    select.set("expressions", [*projections, hidden])
    return table, outputs


def _only_source(select: Any, tables: Mapping[str, Any], scope: Mapping[str, Any]) -> Any:
    """Return the one source of a SELECT that is a noisy table, whatever else is joined with it."""
    from_, joins = select.args.get("from_"), select.args.get("joins") or []
    if from_ is None or any(join.args.get("method") or join.kind in ("SEMI", "ANTI") for join in joins):
        return None
    sources = [from_.this, *(join.this for join in joins)]
    if joins and not all(isinstance(source, (exp.Table, exp.Subquery)) for source in sources):
        return None
    found = [one for source in sources if (one := _source(source, tables, scope)) is not None]
    return found[0] if len(found) == 1 else None


def _source(source: Any, tables: Mapping[str, Any], scope: Mapping[str, Any]) -> Any:
    """Return (noisy table, its alias here, its columns, its row number) of what a SELECT reads from."""
    alias = source.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None
    name = alias.this.copy() if alias is not None and alias.this is not None else None
    match source:
        case exp.Subquery():
            if any(map(source.args.get, ("joins", "pivots", "with_", "sample"))):
                return None
            found = _select(source.this, tables, {**scope})
        case exp.Table() if not source.args.get("db") and not source.args.get("joins"):
            if any(map(source.args.get, ("pivots", "sample", "laterals"))):
                return None
            key = source.name.lower()
            name = name or exp.to_identifier(source.name, quoted=True)
            if key not in scope and key in tables and isinstance(source.this, exp.Identifier):
                table, columns = tables[key]
                x = exp.column(exp.to_identifier(_X, quoted=True))
                return table, name, [(column, (column,), x) for column in columns], "rowid"
            found = scope.get(key)
        case _:
            return None
    return None if found is None else (found[0], name, found[1], exp.to_identifier(HIDDEN, quoted=True))


def _origin(expression: Any, alias: Any, columns: list[_Output]) -> tuple[tuple[str, ...], Any]:
    """Return the columns and the monotone expression over x that a projection is, or ((), None)."""
    found = [_resolved(column, alias, columns) for column in expression.find_all(exp.Column)]
    if not found or None in found or len(found) > 2:
        return (), None
    copy = expression.copy()
    if len(found) == 2:
        return _ratio(copy, alias, columns)
    _, names, inner = found[0]  # type: ignore[misc]
    if not _monotone(copy):
        return (), None
    if isinstance(copy, exp.Column):
        return names, inner.copy()
    next(copy.find_all(exp.Column)).replace(exp.paren(inner.copy()))
    return names, copy


def _ratio(expression: Any, alias: Any, columns: list[_Output]) -> tuple[tuple[str, ...], Any]:
    """Return the two columns of (a * column) / (b * other), with what is done to it as an expression over x.

    Both sides are proportional to their columns, so it is the same with x for the one and 1 for the other.
    """
    for division in expression.find_all(exp.Div):
        sides = [_proportional(division.this), _proportional(division.expression)]
        if None in sides:
            continue
        outputs = [_resolved(side, alias, columns) for side in sides]
        if any(output is None or output[2].sql() != f'"{_X}"' for output in outputs):
            return (), None
        sides[0].replace(exp.column(exp.to_identifier(_X, quoted=True)))
        last = sides[1].parent if isinstance(sides[1].parent, exp.Nullif) else sides[1]
        last.replace(exp.Literal.number(1))
        names = tuple(output[1][0] for output in outputs if output is not None)
        single = all(output is not None and len(output[1]) == 1 for output in outputs)
        return (names, expression) if single and _monotone(expression) else ((), None)
    return (), None


def _resolved(column: Any, alias: Any, columns: list[_Output]) -> _Output | None:
    """Return the output of the relation below that a column names, if it is known where that comes from."""
    if column.table and not _named(column, alias):
        return None
    matches = [output for output in columns if output[0].lower() == column.name.lower()]
    return matches[0] if len(matches) == 1 and matches[0][2] is not None else None


def _named(column: Any, alias: Any) -> bool:
    """Return whether a column is written as one of the relation of an alias."""
    return alias is not None and column.table.lower() == alias.name.lower()


def _proportional(expression: Any) -> Any:
    """Return the column that an expression is a constant multiple of, None if it is not one."""
    match expression:
        case exp.Column():
            return expression
        case exp.Paren():
            return _proportional(expression.this)
        case exp.Cast():
            return _proportional(expression.this) if expression.to.this == exp.DataType.Type.DOUBLE else None
        case exp.Nullif():
            zero = expression.expression
            plain = isinstance(zero, exp.Literal) and not zero.is_string and float(zero.this) == 0
            return expression.this if plain and isinstance(expression.this, exp.Column) else None
        case exp.Mul():
            left, right = expression.this, expression.expression
            if _constant(right):
                return _proportional(left)
            return _proportional(right) if _constant(left) else None
        case _:
            return None


def _monotone(expression: Any) -> bool:
    """Return whether an expression of one column rises, or falls, throughout."""
    match expression:
        case exp.Column():
            return not expression.is_star
        case exp.Paren() | exp.Neg() | exp.Ceil() | exp.Floor():
            return _monotone(expression.this)
        case exp.Cast():  # and TRY_CAST
            numeric = (*exp.DataType.NUMERIC_TYPES, exp.DataType.Type.DECIMAL)
            timely = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP)
            return expression.to.this in (*numeric, *timely) and _monotone(expression.this)
        case exp.Round():
            decimals = expression.args.get("decimals")
            return (decimals is None or _constant(decimals)) and _monotone(expression.this)
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = expression.this, expression.expression
            return (_constant(right) and _monotone(left)) or (_constant(left) and _monotone(right))
        case exp.Div():
            return _constant(expression.expression) and _monotone(expression.this)
        case exp.Bracket():
            index = expression.expressions
            return len(index) == 1 and isinstance(index[0], exp.Literal) and _monotone(expression.this)
        case _:
            return False


def _constant(expression: Any) -> bool:
    parts = (exp.Literal, exp.Neg, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div)
    return all(isinstance(node, parts) and not node.is_string for node in expression.walk())
