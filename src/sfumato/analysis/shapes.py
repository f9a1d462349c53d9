"""Shapes: what can be said of a relation's rows and units from the tree alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sfumato.catalog.catalog import Catalog
from sfumato.plan import tree

__all__ = [
    "Cap",
    "column_leaves",
    "declared_cap",
    "is_aggregate",
    "is_private",
    "may_copy_rows",
    "one_row_per_unit",
    "scans",
]


Cap = Literal["max_groups", "max_rows", "max_rows_total"]
"""The names of contribution caps (`catalog.table.CAPS`)."""


def scans(relation: tree.Relation) -> Iterator[tree.Scan]:
    """Yield every scan below a relation, also those that only decide which rows stay."""
    return (one for one in tree.relations(relation) if isinstance(one, tree.Scan))


def is_private(relation: tree.Relation, catalog: Catalog) -> bool:
    """Return whether a relation reads a private table, or one that is not declared."""
    tables = [catalog.table(scan.table) for scan in scans(relation)]
    return any(table is None or table.private for table in tables)


def one_row_per_unit(relation: tree.Relation) -> bool:
    """Return whether each unit has one row at most: its rows have been aggregated to one.

    A join on the unit pairs rows of one unit only, so of two such sides it makes one row at most.
    """
    match relation:
        case tree.PerUnit(keys=keys):
            return not keys
        case tree.Filter(source=source) | tree.Projection(source=source) | tree.SemiJoin(source=source):
            return one_row_per_unit(source)
        case tree.Join(left=left, right=right, on_unit=True):
            return one_row_per_unit(left) and one_row_per_unit(right)
        case _:
            return False


def declared_cap(relation: tree.Relation, catalog: Catalog, name: Cap) -> int | None:
    """Return the cap that follows from the tables whose rows a relation has; None: none is declared.

    Theorem: privacy does not rest on which cap this is, for the engine holds every unit to the cap of the
    bounded query (`backends.bounding`). The cap says how much of a unit is left out, and how much
    noise hides the rest, so it must follow the rows that a unit can have here:
    a filter, a projection or a semi-join (also a negated one) keeps some rows of its source and repeats none,
    so what the other side of a semi-join holds does not matter; a join on the unit with a side that has one
    row per unit meets each row of the other side once at most. Where both sides of a join on the unit, or
    several parts of a union, have several rows of a unit, the largest of their caps is used.
    """
    match relation:
        case tree.Scan(table=table_name):
            table = catalog.table(table_name)
            return None if table is None else getattr(table, name)
        case tree.Listed() | tree.PublicChoice():
            return None
        case tree.PerUnit(keys=()):
            return 1
        case tree.Join(left=left, right=right, on_unit=on_unit):
            if on_unit and one_row_per_unit(left):
                return declared_cap(right, catalog, name)
            if not on_unit or one_row_per_unit(right):
                return declared_cap(left, catalog, name)
            sides: tuple[tree.Relation, ...] = (left, right)
        case tree.Union(sources=several):
            sides = several
        case _:
            return declared_cap(relation.source, catalog, name)
    return max((cap for one in sides if (cap := declared_cap(one, catalog, name))), default=None)


def may_copy_rows(relation: tree.Relation) -> bool:
    """Return whether one row of a scan may have become several, whatever public tables hold.

    Private rows are to the left of a join with public ones; how many of those a row meets, `growth` knows.
    """
    match relation:
        case tree.Scan():
            return False
        case (
            tree.Filter(source=source)
            | tree.Projection(source=source)
            | tree.SemiJoin(source=source, on_unit=False)
        ):
            return may_copy_rows(source)
        case tree.Join(left=left, on_unit=False):
            return may_copy_rows(left)
        case _:
            return True


def column_leaves(expression: tree.Expression) -> Iterator[tree.ColumnRef]:
    """Yield the columns that the value of an expression is computed from, without those that only decide."""
    parts: tuple[tree.Expression, ...] = ()
    match expression:
        case tree.ColumnRef():
            yield expression
        case tree.Call(arguments=arguments):
            parts = arguments
        case tree.Case(branches=branches, otherwise=otherwise):
            parts = (*(value for _, value in branches), otherwise)
        case tree.Cast(operand=operand):
            parts = (operand,)
    for part in parts:
        yield from column_leaves(part)


def is_aggregate(relation: tree.Relation, name: str) -> bool:
    """Return whether a column is an aggregate of one unit's rows."""
    match relation:
        case tree.PerUnit(aggregates=aggregates):
            return any(name == one for one, _ in aggregates)
        case tree.Filter(source=source) | tree.SemiJoin(source=source):
            return is_aggregate(source, name)
        case tree.Projection(source=source, columns=columns):
            return any(
                name == one and any(is_aggregate(source, column.name) for column in column_leaves(expression))
                for one, expression in columns
            )
        case tree.Join(left=left, right=right):
            return is_aggregate(left, name) or is_aggregate(right, name)
        case _:
            return False
