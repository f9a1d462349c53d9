"""Rows that a question writes down: VALUES and UNNEST of constants, which are public as the question is."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from sfumato.catalog.kind import Kind, Value
from sfumato.plan.expressions import Expressions
from sfumato.plan.functions import common_kind
from sfumato.plan.numbers import KindError
from sfumato.plan.question import Statement
from sfumato.plan.scope import Output, Scope, ScopedRows
from sfumato.plan.tree import ColumnRef, Listed, Literal

__all__ = ["LISTS", "listed_rows"]

LISTS = (exp.Values, exp.Unnest)
"""The entries of FROM that are lists."""

_MOST_ROWS = 1_000


def listed_rows(node: exp.Expr, alias: str, question: Statement) -> ScopedRows:
    """Return the rows of VALUES or UNNEST, its columns named under the alias."""
    rows = _cells(node, question)
    width = len(rows[0]) if rows else 0
    if not width or any(len(row) != width for row in rows):
        question.refuse("a list has one row or more, all with as many values", "SF401", node)
    if len(rows) > _MOST_ROWS:
        hint = "a long list of values is better kept in a public table, and joined"
        question.refuse(f"a list has at most {_MOST_ROWS:,} rows", "SF401", node, hint)
    kinds = [_kind([row[place] for row in rows], node, question) for place in range(width)]
    names = _names(node, width, question)
    columns = tuple(
        ColumnRef(name=f"{alias}.{name}", kind=kind) for name, kind in zip(names, kinds, strict=True)
    )
    values = (tuple(_of_kind(one.value, kind) for one, kind in zip(row, kinds, strict=True)) for row in rows)
    outputs = (Output(name=name, column=column) for name, column in zip(names, columns, strict=True))
    return ScopedRows(relation=Listed(columns=columns, rows=tuple(values)), outputs=tuple(outputs), unit=None)


def _cells(node: exp.Expr, question: Statement) -> list[list[Literal]]:
    question.only(node, "expressions", "alias")
    read = Expressions(question, Scope())
    if isinstance(node, exp.Unnest):
        lists = node.expressions
        if len(lists) != 1 or not isinstance(lists[0], exp.Array):
            question.refuse("UNNEST takes one list of constants", "SF404", node, "UNNEST([1, 2, 3]) AS t(x)")
        rows = [[item] for item in lists[0].expressions]
    else:
        rows = [list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    found = []
    for row in rows:
        cells = [read(cell) for cell in row]
        if not all(isinstance(cell, Literal) for cell in cells):
            hint = "FROM (VALUES ('north', 1), ('south', 2)) AS v(region, factor)"
            question.refuse("a list in FROM holds constants", "SF404", node, hint)
        found.append([cell for cell in cells if isinstance(cell, Literal)])
    return found


def _kind(cells: list[Literal], node: exp.Expr, question: Statement) -> Kind:
    try:
        kind = common_kind(tuple(cell.kind for cell in cells))
    except KindError as error:
        question.refuse(str(error), "SF403", node)
    if kind is None:
        question.refuse("a column needs a kind", "SF404", node, "CAST(NULL AS ..) says of what kind")
    return kind


def _of_kind(value: Value, kind: Kind) -> Value:
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return float(value) if kind.binary else Decimal(value) if kind.digits else value
    return value


def _names(node: exp.Expr, width: int, question: Statement) -> list[str]:
    alias = node.args.get("alias")
    given = [one.name for one in alias.args.get("columns") or []] if alias is not None else []
    usual = ["unnest"] if isinstance(node, exp.Unnest) else [f"col{place}" for place in range(width)]
    names = [*given, *usual[len(given) :]]
    if len(names) != width or len({name.lower() for name in names}) != width:
        question.refuse(f"this list has {width} column(s), each with a name of its own", "SF402", node)
    return names
