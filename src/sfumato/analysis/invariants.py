"""Invariants: which totals that the policy declares public meet a question, and what they are.

They meet a consistent question that counts all rows of their table (no condition, and nothing but public
tables beside it), in a grouping set by just their columns. They are read from a public table, so that what is
computed with them stays post-processing; the totals themselves are as little protected as before. Intervals
take them for true of what is counted: where caps leave rows out, answers are pulled up to the totals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import BoundedQuery
from sfumato.analysis.public_keys import MOST_GROUPS, PublicTables
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.invariants import Invariant
from sfumato.catalog.kind import Value
from sfumato.plan.hints import refuse
from sfumato.plan.tree import Aggregate, ColumnRef, Expression, Join, Query, Relation, Scan

__all__ = ["NOT_PROTECTED", "Totals", "column_of", "counted_whole", "declared_totals"]

NOT_PROTECTED = "NOT PROTECTED, public by the owner's policy"
"""What stands before the words for totals that are shown exactly."""

Totals = Mapping[int, Mapping[tuple[Value, ...], int]]
"""Known totals of groups, by the place of their grouping set."""


def declared_totals(
    query: Query, bounded: BoundedQuery, catalog: Catalog, tables: PublicTables | None
) -> tuple[Totals, tuple[str, ...]]:
    """Return the known totals of a question's groups, and what they are in words."""
    table = _whole_table(query.source)
    found: dict[int, dict[tuple[Value, ...], int]] = {}
    said = []
    columns = [column_of(key) for _, key in bounded.keys]
    for one in catalog.policy.invariants:
        if table is None or one.table.lower() != table.lower():
            continue
        wanted = {name.lower() for name in one.by}
        for place, chosen in enumerate(bounded.grouping_sets):
            if {columns[at].lower() for at in chosen} == wanted and len(chosen) == len(wanted):
                names = [columns[at] for at in chosen]
                known = _read(one, names, catalog, tables, query.text)
                groups = {tuple(key[at] for at in chosen) for key in bounded.declared or ()}
                if known.keys() != groups:
                    _refuse(
                        query.text,
                        f"`{one.totals}` does not tell the totals of just the groups that this question has",
                        "let it have one row for each group, and no other",
                    )
                if found.setdefault(place, known) != known:
                    _refuse(query.text, f"invariants contradict each other: `{one.totals}` and another one")
                said.append(one.said)
    _check_sums(found, bounded, query.text)
    return found, tuple(dict.fromkeys(said))


def counted_whole(aggregate: Aggregate) -> bool:
    """Return whether an aggregate counts all rows: COUNT(*), or the cells of a histogram together."""
    plain = aggregate.where is None and aggregate.bounds_per_group is None
    return plain and aggregate.function in (Function.COUNT_ROWS, Function.HISTOGRAM)


def column_of(key: Expression) -> str:
    """Return the column that a key is, without its table; nothing for an expression."""
    return key.name.partition(".")[2] if isinstance(key, ColumnRef) else ""


def _whole_table(relation: Relation) -> str | None:
    """Return the table of which all rows are there, beside public ones if any."""
    match relation:
        case Scan():
            return relation.table
        case Join(on_unit=False, keeps_right=False):
            return _whole_table(relation.left)
        case _:
            return None


def _read(
    one: Invariant, names: Sequence[str], catalog: Catalog, tables: PublicTables | None, text: str
) -> dict[tuple[Value, ...], int]:
    public = catalog.table(one.totals)
    if public is None or tables is None:
        _refuse(text, f"`{one.totals}` cannot be read here")
    fields = [public.field(name) for name in (*names, one.count)]
    columns = tuple(
        ColumnRef(name=f"{public.name}.{field.name}", kind=field.kind)
        for field in fields
        if field is not None
    )
    scan = Scan(table=public.name, alias=public.name, columns=columns)
    rows = tables.public_keys(scan, columns, MOST_GROUPS) or ()
    known = {row[:-1]: row[-1] for row in rows}
    if len(known) < len(rows):
        _refuse(text, f"`{one.totals}` tells two totals of one group")
    whole = {key: total for key, total in known.items() if isinstance(total, int) and total >= 0}
    if len(whole) < len(known):
        _refuse(text, f"`{one.totals}` tells a total below zero")
    return whole


def _check_sums(found: Totals, bounded: BoundedQuery, text: str) -> None:
    """Refuse totals that do not add up to each other."""
    sets = bounded.grouping_sets
    for above, coarse in found.items():
        for below, fine in found.items():
            if not set(sets[above]) < set(sets[below]):
                continue
            places = [sets[below].index(at) for at in sets[above]]
            sums = dict.fromkeys(coarse, 0)
            for key, total in fine.items():
                sums[tuple(key[place] for place in places)] += total
            if sums != coarse:
                _refuse(
                    text,
                    "invariants contradict each other: totals of a finer level do not add up to those above",
                    "correct the public tables, or declare one of them only",
                )


def _refuse(text: str, message: str, *hints: str) -> NoReturn:
    refuse(text, message, *hints, code="SF404")
