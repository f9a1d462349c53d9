"""Join conditions: equalities of WHERE between two sides of an inner join count as those of ON.

FROM lineitem, part WHERE l_partkey = p_partkey is the join that JOIN part ON l_partkey = p_partkey is, and
what a join makes of one row (`analysis.join_fanout`) must not depend on where its condition was written.

Theorem: a row of an inner join that a filter keeps is a row of the join with the condition added, and the
other way around; so moving a part of a filter's condition into a join below it changes no row.
"""

from __future__ import annotations

from dataclasses import replace

from sfumato.plan import tree
from sfumato.plan.columns import outputs, references
from sfumato.plan.conditions import conjunction, conjuncts, kept
from sfumato.plan.request import Request

__all__ = ["with_join_conditions"]


def with_join_conditions(request: Request) -> Request:
    """Return a request whose joins have the equalities that filters above them say of both of their sides."""
    queries = tuple(
        replace(named, query=replace(named.query, source=_joined(named.query.source)))
        for named in request.queries
    )
    return replace(request, queries=queries)


def _joined(relation: tree.Relation) -> tree.Relation:
    match relation:
        case tree.Filter(source=source, condition=condition):
            below, left = _joined(source), list[tree.Expression]()
            for part in conjuncts(condition):
                found = _moved(below, part)
                if found is None:
                    left.append(part)
                else:
                    below = found
            return kept(below, left)
        case tree.Projection() | tree.PerUnit() | tree.PublicChoice():
            return replace(relation, source=_joined(relation.source))
        case tree.SemiJoin():
            return replace(relation, source=_joined(relation.source), other=_joined(relation.other))
        case tree.Join():
            return replace(relation, left=_joined(relation.left), right=_joined(relation.right))
        case tree.Union(sources=sources):
            return replace(relation, sources=tuple(_joined(source) for source in sources))
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
