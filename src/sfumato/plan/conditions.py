"""Conditions: one that is true where all of several are, and the parts of such a one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.plan.functions import call
from sfumato.plan.tree import Call, Expression, Filter, Literal, Relation

__all__ = ["conjunction", "conjuncts", "kept", "one_of"]

_MANY = 16  # conditions joined one after the other; more are halved


def conjunction(parts: list[Expression]) -> Expression | None:
    """Return all conditions as one, None if there are none; many of them as a tree of little depth."""
    return _joined("and", parts) if parts else None


def kept(rows: Relation, conditions: list[Expression]) -> Relation:
    """Return the rows for which all conditions are true."""
    condition = conjunction(conditions)
    return rows if condition is None else Filter(source=rows, condition=condition)


def _joined(word: str, parts: list[Expression]) -> Expression:
    if len(parts) > _MANY:
        middle = (len(parts) + 1) // 2
        parts = [_joined(word, parts[:middle]), _joined(word, parts[middle:])]
    whole = parts[0]
    for part in parts[1:]:
        whole = call(word, (whole, part))
    return whole


def conjuncts(condition: Expression | None) -> list[Expression]:
    """Return the parts that must all be true for a condition to be true."""
    match condition:
        case None:
            return []
        case Call(function="and", arguments=arguments):
            return [part for argument in arguments for part in conjuncts(argument)]
    return [condition]


def one_of(keys: Sequence[Expression], rows: Iterable[tuple[Value, ...]]) -> Expression:
    """Return the condition that several values are those of one of these rows; at least one is given."""
    first, *others = keys
    beside: dict[Value, dict[tuple[Value, ...], None]] = {}
    for value, *rest in rows:
        beside.setdefault(value, {})[tuple(rest)] = None
    together: dict[frozenset[tuple[Value, ...]], list[Value]] = {}
    for value, rests in beside.items():
        together.setdefault(frozenset(rests), []).append(value)
    parts: list[Expression] = []
    for values in together.values():
        options = (Literal(value=value, kind=kind_of(value)) for value in values)
        part: Expression = Call(function="in", arguments=(first, *options), kind=Kind.BOOLEAN)
        if others:
            part = call("and", (part, one_of(others, beside[values[0]])))
        parts.append(part)
    return _joined("or", parts)
