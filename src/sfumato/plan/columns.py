"""Columns: which ones a relation has and an expression reads, and the same expression over others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sfumato.errors import Unsupported
from sfumato.plan import tree

__all__ = ["nodes", "outputs", "references", "substituted", "with_parts"]


def outputs(relation: tree.Relation) -> tuple[tree.ColumnRef, ...]:
    """Return the columns of a relation; an expression that is always NULL makes none."""
    match relation:
        case tree.Scan(columns=columns) | tree.Listed(columns=columns):
            return columns
        case tree.Filter(source=source) | tree.SemiJoin(source=source) | tree.PublicChoice(source=source):
            return outputs(source)
        case tree.Projection(columns=projected):
            return tuple(
                tree.ColumnRef(name=name, kind=one.kind) for name, one in projected if one.kind is not None
            )
        case tree.Join(left=left, right=right):
            return (*outputs(left), *outputs(right))
        case tree.Union(sources=(first, *_)):
            return outputs(first)
        case tree.PerUnit(keys=keys, aggregates=aggregates):
            kinds = [(name, one.kind) for name, one in (*keys, *aggregates)]
            return tuple(tree.ColumnRef(name=name, kind=kind) for name, kind in kinds if kind is not None)
    raise Unsupported(f"the columns of {type(relation).__name__}")


def references(expression: tree.Expression) -> Iterator[str]:
    """Yield the names of all columns that an expression reads, also of those that only decide."""
    return (node.name for node in nodes(expression) if isinstance(node, tree.ColumnRef))


def nodes(node: tree.Node) -> Iterator[tree.Node]:
    """Yield a node and all below it; a part that stands in several places comes several times."""
    below = [node]
    while below:
        yield (one := below.pop())
        below += reversed(tree.parts(one))


def substituted(expression: tree.Expression, columns: Mapping[str, tree.Expression]) -> tree.Expression:
    """Return an expression in which columns are replaced by what they are; others stay."""

    def other(part: tree.Expression) -> tree.Expression | None:
        return columns.get(part.name) if isinstance(part, tree.ColumnRef) else None

    return _replaced(expression, other)


def with_parts(
    expression: tree.Expression, parts: Mapping[tree.Expression, tree.Expression]
) -> tree.Expression:
    """Return an expression in which some parts, wherever they stand, are replaced by others."""
    return _replaced(expression, parts.get)


def _replaced(
    expression: tree.Expression, other: Callable[[tree.Expression], tree.Expression | None]
) -> tree.Expression:
    """Return an expression in which the topmost parts that have another one in their place are that."""
    if (found := other(expression)) is not None:
        return found
    match expression:
        case tree.ColumnRef() | tree.Literal():
            return expression
        case tree.Call(arguments=arguments):
            return replace(expression, arguments=tuple(_replaced(one, other) for one in arguments))
        case tree.Case(branches=branches, otherwise=otherwise):
            changed = tuple((_replaced(test, other), _replaced(value, other)) for test, value in branches)
            return replace(expression, branches=changed, otherwise=_replaced(otherwise, other))
        case tree.Cast(operand=operand):
            return replace(expression, operand=_replaced(operand, other))
