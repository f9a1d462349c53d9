"""Columns: which ones a relation has and an expression reads, and the same expression over others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sfumato.errors import Unsupported
from sfumato.plan.aggregates import aggregate_kind
from sfumato.plan.tree import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    Filter,
    Join,
    Listed,
    Literal,
    PerUnit,
    Projection,
    PublicChoice,
    Relation,
    Scan,
    SemiJoin,
    Union,
)

__all__ = ["nodes", "outputs", "references", "substituted"]


def outputs(relation: Relation) -> tuple[ColumnRef, ...]:
    """Return the columns of a relation; an expression that is always NULL makes none."""
    match relation:
        case Scan(columns=columns) | Listed(columns=columns):
            return columns
        case Filter(source=source) | SemiJoin(source=source) | PublicChoice(source=source):
            return outputs(source)
        case Projection(columns=projected):
            return tuple(
                ColumnRef(name=name, kind=one.kind) for name, one in projected if one.kind is not None
            )
        case Join(left=left, right=right):
            return (*outputs(left), *outputs(right))
        case Union(sources=(first, *_)):
            return outputs(first)
        case PerUnit(keys=keys, aggregates=aggregates):
            kinds = [*((name, key.kind) for name, key in keys)]
            kinds += [(name, aggregate_kind(one)) for name, one in aggregates]
            return tuple(ColumnRef(name=name, kind=kind) for name, kind in kinds if kind is not None)
    raise Unsupported(f"the columns of {type(relation).__name__}")


def references(expression: Expression) -> Iterator[str]:
    """Yield the names of all columns that an expression reads, also of those that only decide."""
    return (node.name for node in nodes(expression) if isinstance(node, ColumnRef))


def nodes(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all its parts; a part that stands in several places comes several times."""
    yield expression
    match expression:
        case Call(arguments=arguments):
            for argument in arguments:
                yield from nodes(argument)
        case Case(branches=branches, otherwise=otherwise):
            for condition, value in branches:
                yield from nodes(condition)
                yield from nodes(value)
            yield from nodes(otherwise)
        case Cast(operand=operand):
            yield from nodes(operand)


def substituted(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Return an expression in which columns are replaced by what they are; others stay."""
    match expression:
        case ColumnRef(name=name):
            return columns.get(name, expression)
        case Literal():
            return expression
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(substituted(one, columns) for one in arguments))
        case Case(branches=branches, otherwise=otherwise):
            changed = tuple(
                (substituted(condition, columns), substituted(value, columns))
                for condition, value in branches
            )
            return replace(expression, branches=changed, otherwise=substituted(otherwise, columns))
        case Cast(operand=operand):
            return replace(expression, operand=substituted(operand, columns))
