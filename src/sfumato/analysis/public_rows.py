"""Public rows: what public tables and the owner's lists say about the rows that a question can have.

A question's rows are rows of private tables beside rows of public ones. Of each row this much is public,
whatever the private tables hold: the public rows in it are rows of those tables; a private column that is
grouped by has a value of the owner's list, or the row is in no group; and every condition on the way is true
of it. `public_rows` gathers these facts from the tree.

Theorem: let F be the facts of a relation, and take from their `rows` every combination (one row of each) that
satisfies those `conditions` that name columns of these rows alone. Whatever the private tables hold, each row
of the relation whose keys are listed agrees with one of these combinations in all their columns.
Proof, by induction over the tree. A public relation is one of `rows` as a whole. A private scan brings the
lists of its keys, and nothing about other columns. A filter keeps rows, and of those its condition is true.
An inner join (and a semi-join with a public relation, in which a matching row exists) has a row of each side
in each of its rows, of which its condition is true. A left join has, beside its left row, a row of the right
side for which the condition is true, or NULLs. A projection and one unit's aggregates only rename columns or
compute others. A union has rows of one of its parts. Leaving a condition out leaves more combinations.

F is a function of the question, of the catalog and, once read, of public tables: no private row has a part
in it. So, whatever is concluded from it, neighbours cannot differ in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sfumato.analysis.constant_parts import ONE_ROW
from sfumato.analysis.shapes import is_private
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.domain import OneOf
from sfumato.catalog.kind import Kind
from sfumato.plan import tree
from sfumato.plan.columns import nodes, outputs, references, substituted
from sfumato.plan.conditions import conjunction, conjuncts

__all__ = ["PublicRows", "components", "joined", "public_rows"]

_MOST_NODES = 100  # of an expression that was put together


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRows:
    """Public relations whose rows are in each row of a question, and conditions that are true of all of it.

    `columns` says what the question's columns are in terms of columns of the tables: of the public ones,
    which `rows` have, and of private ones, of which nothing is known.
    """

    rows: tuple[tree.Relation, ...] = ()
    conditions: tuple[tree.Expression, ...] = ()
    columns: Mapping[str, tree.Expression] = field(default_factory=dict)

    @property
    def known(self) -> frozenset[str]:
        """The names of the columns that `rows` have."""
        return frozenset(column.name for one in self.rows for column in outputs(one))

    def also(self, condition: tree.Expression | None) -> PublicRows:
        """Return the same facts, and a condition over the question's columns."""
        parts = [(part, substituted(part, self.columns)) for part in conjuncts(condition)]
        more = [whole for part, whole in parts if _is_small(whole, sum(1 for _ in nodes(part)))]
        return replace(self, conditions=(*self.conditions, *more))

    def beside(self, other: PublicRows) -> PublicRows:
        """Return the facts of both sides of a join."""
        return PublicRows(
            rows=(*self.rows, *other.rows),
            conditions=(*self.conditions, *other.conditions),
            columns={**self.columns, **other.columns},
        )

    def with_equals(self) -> PublicRows:
        """Return the facts in which private columns that must equal something public are that.

        Both sides of an equality are of one kind, so that equal values are the same value.
        """
        known, equal, changed = self.known, dict[str, tree.Expression](), True
        while changed:
            changed = False
            for condition in self.conditions:
                match condition:
                    case tree.Call(function="=", arguments=(first, second)):
                        pairs = ((first, second), (second, first))
                    case _:
                        continue
                for column, value in pairs:
                    public = substituted(value, equal)
                    if (
                        isinstance(column, tree.ColumnRef)
                        and column.name not in known
                        and column.name not in equal
                        and column.kind is public.kind
                        and _is_small(public)
                        and known.issuperset(references(public))
                    ):
                        equal[column.name] = public
                        changed = True
        return PublicRows(
            rows=self.rows,
            conditions=tuple(substituted(condition, equal) for condition in self.conditions),
            columns={**equal, **{name: substituted(one, equal) for name, one in self.columns.items()}},
        )


def public_rows(relation: tree.Relation, catalog: Catalog, keys: Iterable[str]) -> PublicRows:
    """Return what is public about the rows of a relation that is grouped by these of its columns."""
    wanted = frozenset(keys)
    if not is_private(relation, catalog):
        return PublicRows(rows=(relation,), columns={one.name: one for one in outputs(relation)})
    match relation:
        case tree.Scan(columns=columns):
            lists = _lists(relation, catalog, wanted)
            return PublicRows(rows=lists, columns={column.name: column for column in columns})
        case tree.Filter(source=source, condition=condition):
            return public_rows(source, catalog, wanted).also(condition)
        case tree.Projection(source=source, columns=projected) | tree.PerUnit(source=source, keys=projected):
            plain = {
                one.name for name, one in projected if name in wanted and isinstance(one, tree.ColumnRef)
            }
            below = public_rows(source, catalog, plain)
            whole = {name: substituted(one, below.columns) for name, one in projected}
            return replace(below, columns={name: one for name, one in whole.items() if _is_small(one)})
        case tree.Join(left=left, right=right, outer=False, condition=condition):
            sides = public_rows(left, catalog, wanted).beside(public_rows(right, catalog, wanted))
            return sides.also(condition)
        case tree.Join(left=left, right=right, condition=condition):
            first = public_rows(left, catalog, wanted)
            if is_private(right, catalog):
                return first
            return _beside_or_null(first, right, condition)
        case tree.SemiJoin(
            source=source, other=other, on_unit=False, negated=False, unless=None, condition=condition
        ):
            first = public_rows(source, catalog, wanted)
            both = first.beside(public_rows(other, catalog, ())).also(condition)
            return replace(both, columns=first.columns)
        case tree.SemiJoin(source=source):
            return public_rows(source, catalog, wanted)
        case tree.Union(sources=sources):
            return _united([public_rows(source, catalog, wanted) for source in sources], wanted)
    return PublicRows()  # of what is not known here nothing is concluded


def joined(rows: Iterable[tree.Relation], conditions: Iterable[tree.Expression]) -> tree.Relation:
    """Return the combinations of public rows that satisfy conditions; each is used as soon as it can be."""
    left, *others = rows
    open_conditions = list(conditions)

    def usable(columns: set[str]) -> list[tree.Expression]:
        found = [one for one in open_conditions if columns.issuperset(references(one))]
        open_conditions[:] = [one for one in open_conditions if not columns.issuperset(references(one))]
        return found

    columns = {column.name for column in outputs(left)}
    if (condition := conjunction(usable(columns))) is not None:
        left = tree.Filter(source=left, condition=condition)
    while others:
        near = next((one for one in others if _equal(open_conditions, columns, one)), others[0])
        others.remove(near)
        columns |= {column.name for column in outputs(near)}
        condition = conjunction(usable(columns))
        left = tree.Join(left=left, right=near, condition=condition, on_unit=False, outer=False)
    return left


def components(
    rows: Iterable[tree.Relation], conditions: Iterable[tree.Expression], wanted: Sequence[frozenset[str]]
) -> list[tree.Relation]:
    """Return the combinations of public rows that columns are in, as independent relations.

    Relations that a condition connects are joined, and so are those that columns of one of `wanted` are in.
    What is connected with none of these is left out: it could only say that there is no row at all.
    """
    parts = [_Part([one], [], {column.name for column in outputs(one)}) for one in rows]
    known = {name for part in parts for name in part.columns}
    names: list[tuple[set[str], list[tree.Expression]]] = [(set(one), []) for one in wanted]
    names += [(read, [one]) for one in conditions if (read := set(references(one))) and read <= known]
    for read, tests in names:
        met = [part for part in parts if part.columns & read]
        parts = [part for part in parts if not part.columns & read]
        parts.append(
            _Part(
                [one for part in met for one in part.rows],
                [*(one for part in met for one in part.tests), *tests],
                {name for part in met for name in part.columns},
            )
        )
    needed = {name for one in wanted for name in one}
    return [joined(part.rows, part.tests) for part in parts if part.columns & needed]


class _Part(NamedTuple):
    rows: list[tree.Relation]
    tests: list[tree.Expression]
    columns: set[str]


def _equal(conditions: list[tree.Expression], columns: set[str], other: tree.Relation) -> bool:
    """Whether some equality connects a relation with columns that are there already."""
    own = {column.name for column in outputs(other)}
    return any(
        isinstance(one, tree.Call)
        and one.function == "="
        and (names := set(references(one))) <= columns | own
        and names & columns
        and names & own
        for one in conditions
    )


def _is_small(expression: tree.Expression, more: int = 0) -> bool:
    """Whether an expression over columns of tables is short enough to be worked on.

    Columns that are computed of computed ones double with each step. What became too large is not known: then
    fewer conditions narrow the groups, and no more.
    """
    most = _MOST_NODES + more
    return sum(1 for _ in itertools.islice(nodes(expression), most + 1)) <= most


def _lists(scan: tree.Scan, catalog: Catalog, keys: frozenset[str]) -> tuple[tree.Listed, ...]:
    """Return the owner's lists of those columns of a private table that are keys.

    A list of keys counts where two or more of its columns are keys: for the combinations of these.
    """
    table = catalog.table(scan.table)
    columns = {one.name.removeprefix(f"{scan.alias}."): one for one in scan.columns if one.name in keys}
    found = []
    for one in () if table is None else table.keys:
        places = [place for place, name in enumerate(one.columns) if name in columns]
        if len(places) > 1:
            rows = dict.fromkeys(tuple(row[place] for place in places) for row in one.rows)
            here = tuple(columns.pop(one.columns[place]) for place in places)
            found.append(tree.Listed(columns=here, rows=tuple(rows)))
    for name, column in columns.items():
        field = None if table is None else table.field(name)
        if field is not None and isinstance(field.domain, OneOf):
            found.append(
                tree.Listed(columns=(column,), rows=tuple((value,) for value in field.domain.values))
            )
    return tuple(found)


def _beside_or_null(left: PublicRows, right: tree.Relation, condition: tree.Expression | None) -> PublicRows:
    """Return the facts of a left join with a public relation: a row of it that matches, or NULLs."""
    columns = outputs(right)
    matched = tree.ColumnRef(name=f"{columns[0].name}?", kind=Kind.BOOLEAN)
    there = tree.Projection(
        source=right,
        columns=(
            *((column.name, column) for column in columns),
            (matched.name, tree.Literal(value=True, kind=Kind.BOOLEAN)),
        ),
    )
    absent = tree.Projection(
        source=tree.Listed(columns=(), rows=((),)),
        columns=(
            *(
                (one.name, tree.Cast(operand=tree.Literal(value=None, kind=None), kind=one.kind))
                for one in columns
            ),
            (matched.name, tree.Literal(value=False, kind=Kind.BOOLEAN)),
        ),
    )
    both = left.beside(
        PublicRows(
            rows=(tree.Union(sources=(there, absent)),), columns={column.name: column for column in columns}
        )
    )
    unmatched = tree.Call(function="not", arguments=(matched,), kind=Kind.BOOLEAN)
    tests = tuple(
        tree.Call(function="or", arguments=(unmatched, substituted(part, both.columns)), kind=Kind.BOOLEAN)
        for part in conjuncts(condition)
    )
    return replace(both, conditions=(*both.conditions, *tests))


def _united(parts: list[PublicRows], keys: frozenset[str]) -> PublicRows:
    """Return the facts of a union: of the keys that all its parts know, the rows of each part."""
    known = [part.with_equals() for part in parts]
    names = [
        name
        for name in sorted(keys)
        if all(name in one.columns and one.known.issuperset(references(one.columns[name])) for one in known)
    ]
    kinds = {name: known[0].columns[name].kind for name in names}
    if not names or any(kind is None for kind in kinds.values()):
        return PublicRows()
    sources = []
    for one in known:
        read = [frozenset(references(one.columns[name])) for name in names]
        source = joined(components(one.rows, one.conditions, read) or [ONE_ROW], ())  # or all are constants
        columns = tuple((name, one.columns[name]) for name in names)
        sources.append(tree.Projection(source=source, columns=columns))
    listed = {name: tree.ColumnRef(name=name, kind=kind) for name, kind in kinds.items() if kind is not None}
    return PublicRows(rows=(tree.Union(sources=tuple(sources)),), columns=listed)
