"""Choosing a declared group by its count or sum, for less than the numbers of all groups: see `cell_choice`.

`plan/group_choice` says which questions ask for nothing but a group. They are answered by a choice where all
groups are declared: one that nobody knows of cannot be chosen. Otherwise noisy numbers of all groups are paid
for, and the largest of them is found after that.
"""

from __future__ import annotations

from collections import Counter

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.public_keys import PublicTables, listed_groups
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Value
from sfumato.errors import Unsupported
from sfumato.plan.group_choice import chosen_group
from sfumato.plan.request import Request
from sfumato.plan.tree import GroupChoice

__all__ = ["chosen_answers", "with_group_choice"]

_SCORES = (
    Function.COUNT_ROWS, Function.COUNT, Function.COUNT_DISTINCT, Function.COUNT_UNITS, Function.SUM,
    Function.SUM_DISTINCT,
)  # fmt: skip


def with_group_choice(request: Request, catalog: Catalog, tables: PublicTables | None) -> Request:
    """Return the request that chooses groups, if that answers it; else the request itself."""
    found = chosen_group(request)
    if found is None:
        return request
    [named] = found.queries
    [(_, score)] = named.query.aggregates
    options = named.options or request.options
    shows_all = not options.others and not options.consistent and options.min_units is None
    if not shows_all or named.reported or named.unknown or score.function not in _SCORES:
        return request
    return request if listed_groups(named.query, catalog, options, tables) is None else found


def chosen_answers(
    scores: tuple[Answer, ...], choice: GroupChoice, declared: tuple[tuple[Value, ...], ...] | None
) -> tuple[Answer, ...]:
    """Return the answer of a question that chooses groups by its only number, of one measure."""
    if len(scores) != 1 or len(scores[0].measures) != 1 or declared is None:
        raise Unsupported("a choice of groups that are not declared, or by several numbers")
    [score] = scores
    parts = Counter(tuple(key[place] for place in choice.per) for key in declared)
    return (
        Answer(
            name=score.name,
            function=Function.ARG_MAX if choice.largest else Function.ARG_MIN,
            measures=score.measures,
            kind=score.kind,
            integer=score.integer,
            weight=(score.function.record.linear(score) or {})[score.measures[0]],
            candidates=max(parts.values()),
        ),
    )
