"""Public keys: what a public table lists is known to all, so groups by its columns are all shown.

Which columns those are follows from the question alone. Their values are read by whoever holds the tables;
reading a public table touches no private data and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sfumato.analysis.shapes import column_leaves
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.domain import OneOf
from sfumato.catalog.kind import Value
from sfumato.plan.tree import Filter, Join, PerUnit, Projection, Query, Relation, Scan, SemiJoin, Union

__all__ = ["MOST_VALUES", "PublicValues", "with_public_keys"]

PublicValues = Callable[[str, str], tuple[Value, ...] | None]
"""Gives the different values of a public table's column, without NULL; None where there are too many."""

MOST_VALUES = 100_000
"""Values of a public column that become keys; where there are more, groups are selected privately."""

_MOST_GROUPS = 1_000_000


def with_public_keys(catalog: Catalog, queries: Iterable[Query], values_of: PublicValues) -> Catalog:
    """Return the catalog in which public columns that are grouped by have their values declared.

    `values_of` gives the different values of a table's column, without NULL; None: there are too many.
    """
    wanted = dict.fromkeys(
        origin
        for query in queries
        for _, key in query.keys
        for leaf in column_leaves(key)
        for origin in _origins(query.source, leaf.name, catalog)
    )
    if not wanted:
        return catalog
    found = {origin: values for origin in wanted if (values := values_of(*origin))}
    if math.prod(len(values) for values in found.values()) > _MOST_GROUPS:
        return catalog  # every pair of them as a group would be too many
    tables = []
    for table in catalog.tables:
        fields = tuple(
            replace(field, domain=OneOf(found[table.name, field.name]))
            if (table.name, field.name) in found
            else field
            for field in table.fields
        )
        tables.append(replace(table, fields=fields))
    return Catalog(tuple(tables))


def _origins(relation: Relation, name: str, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the public columns without a declared domain that a column of a relation comes from."""
    match relation:
        case Scan(table=table_name, alias=alias, columns=columns):
            table = catalog.table(table_name)
            if table is not None and not table.private and any(column.name == name for column in columns):
                field = table.field(name.removeprefix(f"{alias}."))
                if field is not None and field.domain is None:
                    yield table.name, field.name
        case Filter(source=source) | SemiJoin(source=source):
            yield from _origins(source, name, catalog)
        case Projection(source=source, columns=projected) | PerUnit(source=source, keys=projected):
            for one, expression in projected:
                if one == name:
                    for leaf in column_leaves(expression):
                        yield from _origins(source, leaf.name, catalog)
        case Join(left=left, right=right):
            yield from _origins(left, name, catalog)
            yield from _origins(right, name, catalog)
        case Union(sources=sources):
            for source in sources:
                yield from _origins(source, name, catalog)
