"""A time window: the rows of a question's private table whose date or moment lies in a half-open interval."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.plan import tree
from sfumato.plan.conditions import kept
from sfumato.plan.functions import call

__all__ = ["TimeColumn", "time_column"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeColumn:
    """The column of the only private table of a relation that says when a row happened."""

    scan: tree.Scan
    column: tree.ColumnRef
    row_id: tree.ColumnRef | None = None  # tells one person's rows apart

    def between(
        self, relation: tree.Relation, begin: datetime.datetime, end: datetime.datetime
    ) -> tree.Relation:
        """Return a relation over the rows of the private table from one moment to before another.

        Rows without a moment are in no window. Windows that do not overlap have no row in common.
        """
        wanted = (self.column,) if self.row_id is None else (self.column, self.row_id)
        columns = tuple(dict.fromkeys((*self.scan.columns, *wanted)))
        conditions = [self.from_on(begin), call("<", (self.column, self._literal(end)))]
        return _replaced(relation, self.scan, kept(replace(self.scan, columns=columns), conditions))

    def from_on(self, begin: datetime.datetime) -> tree.Expression:
        """Return the condition that a row happened at a moment or later."""
        return call(">=", (self.column, self._literal(begin)))

    def rows(self, relation: tree.Relation) -> tree.Relation:
        """Return the rows of the private table below a relation, after all conditions on them alone."""
        return next(one for one in tree.relations(relation) if self._filters(one))

    def _filters(self, relation: tree.Relation) -> bool:
        while isinstance(relation, tree.Filter):
            relation = relation.source
        return isinstance(relation, tree.Scan) and relation.alias == self.scan.alias

    def _literal(self, at: datetime.datetime) -> tree.Literal:
        return tree.Literal(value=at.date() if self.column.kind is Kind.DATE else at, kind=self.column.kind)


def time_column(
    relation: tree.Relation, name: str, catalog: Catalog, row_id: str | None = None
) -> TimeColumn:
    """Return columns of the only private table that a relation reads; refuse several such tables."""
    found = [one for one in tree.relations(relation) if isinstance(one, tree.Scan)]
    tables = [(scan, catalog.table(scan.table)) for scan in found]
    private = [(scan, table) for scan, table in tables if table is None or table.private]
    if len(private) != 1 or private[0][1] is None:
        raise Unsupported(
            "periods of a question that reads private tables more than once",
            place="by",
            hints=("ask about one private table; public tables may be joined to it",),
        )
    scan, table = private[0]
    assert table is not None
    field = table.field(name) if isinstance(name, str) else None
    if field is None or field.kind not in (Kind.DATE, Kind.TIMESTAMP):
        fitting = [one.name for one in table.fields if one.kind in (Kind.DATE, Kind.TIMESTAMP)]
        hints = [
            f"it has {', '.join(fitting)}" if fitting else f"`{table.name}` has no date and no timestamp"
        ]
        if field is not None and field.kind is Kind.TEXT:
            bounds = f"{field.name} = {{ between = [2000-01-01, 2099-12-31] }}"
            hints.append(f"`{field.name}` is text; in a CSV file, bounds make it a date: {bounds}")
        raise InvalidArgument(
            "a stream is cut into periods by a date or a timestamp", place="by", hints=tuple(hints)
        )
    column = tree.ColumnRef(name=f"{scan.alias}.{field.name}", kind=field.kind)
    own = None if row_id is None else table.field(row_id)
    if row_id is not None and (own is None or (table.unit is not None and own.name == table.unit.own_column)):
        raise InvalidArgument(
            f"row_id is a column of `{table.name}` that tells one person's rows apart",
            place="row_id",
            hints=(f"it has {', '.join(one.name for one in table.fields)}",),
        )
    told = None if own is None else tree.ColumnRef(name=f"{scan.alias}.{own.name}", kind=own.kind)
    return TimeColumn(scan=scan, column=column, row_id=told)


def _replaced(relation: tree.Relation, scan: tree.Scan, by: tree.Relation) -> tree.Relation:
    match relation:
        case tree.Scan():
            return by if relation == scan else relation
        case tree.Filter() | tree.Projection() | tree.PerUnit() | tree.PublicChoice():
            return replace(relation, source=_replaced(relation.source, scan, by))
        case tree.SemiJoin(source=source, other=other):
            return replace(relation, source=_replaced(source, scan, by), other=_replaced(other, scan, by))
        case tree.Join(left=left, right=right):
            return replace(relation, left=_replaced(left, scan, by), right=_replaced(right, scan, by))
        case tree.Union(sources=sources):
            return replace(relation, sources=tuple(_replaced(one, scan, by) for one in sources))
        case tree.Listed():
            return relation
    raise Unsupported(f"periods of the relation {type(relation).__name__}")
