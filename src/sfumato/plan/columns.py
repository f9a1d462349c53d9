"""Columns: which ones a relation has and an expression reads, and the same expression over others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sfumato.errors import Unsupported
from sfumato.plan import tree

__all__ = ["nodes", "outputs", "references", "substituted"]


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
    yield node
    for part in tree.parts(node):
        yield from nodes(part)


def substituted(expression: tree.Expression, columns: Mapping[str, tree.Expression]) -> tree.Expression:
    """Return an expression in which columns are replaced by what they are; others stay."""
    match expression:
        case tree.ColumnRef(name=name):
            return columns.get(name, expression)
        case tree.Literal():
            return expression
        case tree.Call(arguments=arguments):
            return replace(expression, arguments=tuple(substituted(one, columns) for one in arguments))
        case tree.Case(branches=branches, otherwise=otherwise):
            changed = tuple(
                (substituted(condition, columns), substituted(value, columns))
                for condition, value in branches
            )
            return replace(expression, branches=changed, otherwise=substituted(otherwise, columns))
        case tree.Cast(operand=operand):
            return replace(expression, operand=substituted(operand, columns))
