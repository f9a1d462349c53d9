"""The basis of a noisy table: over which rows, groups and caps it was measured, as hashes.

A later question is compared with it, to see whether the table determines its answer (`release.determined`).
A filter's condition counts by its parts, so that a question with further conditions on the keys alone is
seen to be about some of the same cells. Hashes are of the plan, as the request's hash in a receipt is: they
know nothing of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sfumato.analysis.bounded import BoundedQuery, Bounding, Measure
from sfumato.catalog.canonical import fingerprint
from sfumato.plan.conditions import conjuncts
from sfumato.plan.tree import ColumnRef, Expression, Filter, Relation

__all__ = ["Basis", "basis_of", "hash_of", "measure_hash", "rows_and_conditions", "rows_hash", "shows_all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a noisy table was measured from: rows that satisfy conditions, grouped by keys, under caps."""

    rows: str
    conditions: tuple[str, ...]
    keys: tuple[str, ...]
    names: tuple[str, ...]  # of the columns that keys are; what is computed is "a computed key"
    caps: tuple[int | None, ...]  # max_groups, max_rows, max_total
    measures: Mapping[str, tuple[str, tuple[str, ...]]]  # by name: what it is, and its own conditions


def basis_of(bounding: Bounding) -> Basis | None:
    """Return the basis of a question's table; None where some groups may be left out of it.

    A group that private selection left out, or that has too few units, is not known to be empty.
    """
    query = bounding.query
    if not shows_all(bounding):
        return None
    _, conditions = rows_and_conditions(query.source)
    return Basis(
        rows=rows_hash(query),
        conditions=tuple(sorted({hash_of(one) for one in conditions})),
        keys=tuple(hash_of(key) for _, key in query.keys),
        names=tuple(
            key.name.partition(".")[2] if isinstance(key, ColumnRef) else "a computed key"
            for _, key in query.keys
        ),
        caps=(query.max_groups, query.max_rows, query.max_total),
        measures={
            one.name: (measure_hash(one), tuple(sorted({hash_of(part) for part in conjuncts(one.condition)})))
            for one in query.measures
        },
    )


def shows_all(bounding: Bounding) -> bool:
    """Return whether every group of a question is shown, whatever the data, each with noise of its own.

    Groups that were selected may be missing, and answers that were made to add up are correlated.
    """
    chosen = bounding.select_keys or bounding.others or bounding.min_units is not None
    return not chosen and bounding.query.declared is not None and bounding.consistency is None


def rows_and_conditions(source: Relation) -> tuple[Relation, list[Expression]]:
    """Return the rows of a question before its own filters, and the parts of the conditions of these."""
    conditions: list[Expression] = []
    while isinstance(source, Filter):
        conditions += conjuncts(source.condition)
        source = source.source
    return source, conditions


def rows_hash(query: BoundedQuery) -> str:
    """Return the hash of the rows of a question before its own filters."""
    rows, _ = rows_and_conditions(query.source)
    return fingerprint(rows=rows, row_unit=query.row_unit)


def hash_of(expression: Expression) -> str:
    """Return the hash of an expression, wherever in the text it stands."""
    return fingerprint(expression=expression)


def measure_hash(measure: Measure) -> str:
    """Return the hash of what a measure adds up, whatever its name and its condition."""
    return fingerprint(measure=replace(measure, name="", condition=None))
