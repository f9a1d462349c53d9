"""The basis of a noisy table: over which rows, groups and caps it was measured, as hashes.

A later question is compared with it, to see whether the table determines its answer (`release.determined`).
A filter's condition counts by its parts, so that a question with further conditions on the keys alone is
seen to be about some of the same cells. Hashes are of the plan, as the request's hash in a receipt is: they
know nothing of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, get_args

from sfumato.analysis.bounded import BlockValues, BoundedQuery, Bounding, Factor, Measure
from sfumato.analysis.shapes import scans
from sfumato.catalog.canonical import fingerprint
from sfumato.plan.conditions import conjuncts
from sfumato.plan.tree import ColumnRef, Expression, Filter, Listed, Node, Relation, Scan

__all__ = ["Basis", "PlanHashes", "basis_of", "shows_all"]

_T = TypeVar("_T")
_WALKED = (*get_args(Node), BlockValues, Factor, Measure)  # what may hold a column
_HOLDERS = (tuple, *_WALKED)


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
    if not shows_all(bounding):
        return None
    query, hashes = bounding.query, PlanHashes.of(bounding.query)
    return Basis(
        rows=hashes.rows,
        conditions=tuple(sorted({hashes.hash(one) for one in hashes.conditions})),
        keys=tuple(hashes.hash(key) for _, key in query.keys),
        names=tuple(
            key.name.partition(".")[2] if isinstance(key, ColumnRef) else "a computed key"
            for _, key in query.keys
        ),
        caps=(query.max_groups, query.max_rows, query.max_total),
        measures={
            one.name: (
                hashes.measure(one),
                tuple(sorted({hashes.hash(part) for part in conjuncts(one.condition)})),
            )
            for one in query.measures
        },
    )


def shows_all(bounding: Bounding) -> bool:
    """Return whether every group of a question is shown, whatever the data, each with noise of its own.

    Groups that were selected or chosen may be missing, and answers that were made to add up are correlated.
    """
    chosen = bounding.select_keys or bounding.others or bounding.min_units is not None
    chosen = chosen or bounding.query.choice is not None
    return not chosen and bounding.query.declared is not None and bounding.consistency is None


@dataclass(frozen=True, slots=True)
class PlanHashes:
    """The hashes of what a question says, whatever it calls its tables and wherever in the text it stands.

    `rows` are those before the question's own filters, of which `conditions` are the parts.
    """

    rows: str
    conditions: tuple[Expression, ...]
    aliases: Mapping[str, str]

    @staticmethod
    def of(query: BoundedQuery) -> PlanHashes:
        """Return the hashes of a question."""
        source: Relation = query.source
        aliases = {scan.alias: f"#{place}" for place, scan in enumerate(scans(source))}
        conditions: list[Expression] = []
        while isinstance(source, Filter):
            conditions += conjuncts(source.condition)
            source = source.source
        rows = fingerprint(rows=_renamed(source, aliases), row_unit=query.row_unit)
        return PlanHashes(rows, tuple(conditions), aliases)

    def hash(self, expression: Expression) -> str:
        """Return the hash of an expression over the question's rows."""
        return fingerprint(expression=_renamed(expression, self.aliases))

    def measure(self, measure: Measure) -> str:
        """Return the hash of what a measure adds up, whatever its name and its condition."""
        return fingerprint(measure=_renamed(replace(measure, name="", condition=None), self.aliases))


def _renamed(node: _T, aliases: Mapping[str, str]) -> _T:
    """Return a node in which tables go by other aliases; no two relations of a question share one."""
    found: Any = node
    match found:
        case ColumnRef(name=name):
            alias, _, column = name.partition(".")
            found = replace(found, name=f"{aliases.get(alias, alias)}.{column}")
        case Scan(alias=alias, columns=columns):
            found = replace(found, alias=aliases[alias], columns=_renamed(columns, aliases))
        case Listed(columns=columns):
            found = replace(found, columns=_renamed(columns, aliases))
        case tuple():
            found = tuple([_renamed(one, aliases) if isinstance(one, _HOLDERS) else one for one in found])
        case _ if isinstance(found, _WALKED):
            named = [(one.name, getattr(found, one.name)) for one in fields(found)]
            holders = {
                name: _renamed(one, aliases) for name, one in named if one and isinstance(one, _HOLDERS)
            }
            found = replace(found, **holders) if holders else found
    return found  # type: ignore[no-any-return]
