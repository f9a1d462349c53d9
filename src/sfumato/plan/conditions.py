"""Conditions: several as one, the parts of one, and those of filters that are conditions of joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.plan import tree
from sfumato.plan.columns import outputs, references
from sfumato.plan.functions import call
from sfumato.plan.request import Request

__all__ = ["conjunction", "conjuncts", "disjunction", "kept", "one_of", "with_join_conditions"]

_MANY = 16  # conditions joined one after the other; more are halved


def conjunction(parts: list[tree.Expression]) -> tree.Expression | None:
    """Return all conditions as one, None if there are none; many of them as a tree of little depth."""
    return _joined("and", parts) if parts else None


def disjunction(parts: list[tree.Expression]) -> tree.Expression | None:
    """Return the condition that one of several is true, None if there are none."""
    return _joined("or", parts) if parts else None


def kept(rows: tree.Relation, conditions: list[tree.Expression]) -> tree.Relation:
    """Return the rows for which all conditions are true."""
    condition = conjunction(conditions)
    return rows if condition is None else tree.Filter(source=rows, condition=condition)


def _joined(word: str, parts: list[tree.Expression]) -> tree.Expression:
    if len(parts) > _MANY:
        middle = (len(parts) + 1) // 2
        parts = [_joined(word, parts[:middle]), _joined(word, parts[middle:])]
    whole = parts[0]
    for part in parts[1:]:
        whole = call(word, (whole, part))
    return whole


def conjuncts(condition: tree.Expression | None) -> list[tree.Expression]:
    """Return the parts that must all be true for a condition to be true."""
    match condition:
        case None:
            return []
        case tree.Call(function="and", arguments=arguments):
            return [part for argument in arguments for part in conjuncts(argument)]
    return [condition]


def one_of(keys: Sequence[tree.Expression], rows: Iterable[tuple[Value, ...]]) -> tree.Expression:
    """Return the condition that several values are those of one of these rows; at least one is given."""
    first, *others = keys
    beside: dict[Value, dict[tuple[Value, ...], None]] = {}
    for value, *rest in rows:
        beside.setdefault(value, {})[tuple(rest)] = None
    together: dict[frozenset[tuple[Value, ...]], list[Value]] = {}
    for value, rests in beside.items():
        together.setdefault(frozenset(rests), []).append(value)
    parts: list[tree.Expression] = []
    for values in together.values():
        options = (tree.Literal(value=value, kind=kind_of(value)) for value in values)
        part: tree.Expression = tree.Call(function="in", arguments=(first, *options), kind=Kind.BOOLEAN)
        if others:
            part = call("and", (part, one_of(others, beside[values[0]])))
        parts.append(part)
    return _joined("or", parts)


def with_join_conditions(request: Request) -> Request:
    """Return a request whose joins have the equalities that filters above them say of both of their sides.

    FROM lineitem, part WHERE l_partkey = p_partkey is the join that JOIN part ON l_partkey = p_partkey is,
    and what a join makes of one row (`analysis.join_fanout`) must not depend on where its condition stands.

    Theorem: a row of an inner join that a filter keeps is a row of the join with the condition added, and the
    other way around; so moving a part of a filter's condition into a join below it changes no row.
    """
    queries = tuple(
        replace(named, query=replace(named.query, source=_pushed(named.query.source)))
        for named in request.queries
    )
    return replace(request, queries=queries)


def _pushed(relation: tree.Relation) -> tree.Relation:
    match relation:
        case tree.Filter(source=source, condition=condition):
            below, left = _pushed(source), list[tree.Expression]()
            for part in conjuncts(condition):
                found = _moved(below, part)
                if found is None:
                    left.append(part)
                else:
                    below = found
            return kept(below, left)
        case tree.Projection() | tree.PerUnit() | tree.PublicChoice():
            return replace(relation, source=_pushed(relation.source))
        case tree.SemiJoin():
            return replace(relation, source=_pushed(relation.source), other=_pushed(relation.other))
        case tree.Join():
            return replace(relation, left=_pushed(relation.left), right=_pushed(relation.right))
        case tree.Union(sources=sources):
            return replace(relation, sources=tuple(_pushed(source) for source in sources))
    return relation


def _moved(relation: tree.Relation, part: tree.Expression) -> tree.Relation | None:
    """Return a relation in which a join has taken a condition, None if there is none to take it."""
    if not isinstance(part, tree.Call) or part.function != "=":
        return None
    match relation:
        case tree.Filter(source=source) | tree.SemiJoin(source=source):
            found = _moved(source, part)
            return None if found is None else replace(relation, source=found)
        case tree.Join(left=left, right=right, outer=False, condition=condition):
            names = set(references(part))
            sides = [{column.name for column in outputs(side)} for side in (left, right)]
            if names <= sides[0]:
                found = _moved(left, part)
                return None if found is None else replace(relation, left=found)
            if names <= sides[1]:
                found = _moved(right, part)
                return None if found is None else replace(relation, right=found)
            if names <= sides[0] | sides[1]:
                return replace(relation, condition=conjunction([*conjuncts(condition), part]))
    return None
