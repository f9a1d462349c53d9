"""Parts: which parts of a partition a question can be about, read from its tree alone.

A table may declare a partition: a column with listed values; every unit has one of them (the
engine keeps, of each unit, only the rows with its smallest value). Where a question's rows pass a
filter that fixes this column to listed values, units of other parts have no row in it.

Theorem: let S be the set found here. A unit whose value is not in S has no row in the relation, and
(since every row belongs to one unit, and rows of a unit do not depend on other units) the relation
is the same with and without it. So are the exact totals, and the law of the answer. Assumes: one
value per unit, which `backends.relations` enforces in the scan. Unknown shapes give None: all parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.catalog.catalog import Catalog
from sfumato.plan import tree

__all__ = ["parts_of"]

_Parts = frozenset[str] | None


def parts_of(relation: tree.Relation, catalog: Catalog) -> frozenset[str] | None:
    """Return the parts whose units can have rows in a relation; None: any."""
    found = _view(relation, catalog).parts
    return found or None  # where no part is left, the question is charged like any other


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The columns that are the partition's attribute of the row's own unit, and the parts that are left."""

    columns: frozenset[str] = frozenset()
    labels: dict[object, str]
    parts: _Parts = None


def _view(relation: tree.Relation, catalog: Catalog) -> _View:
    match relation:
        case tree.Scan(table=name, alias=alias, columns=columns):
            table = catalog.table(name)
            if table is None or table.partition is None:
                return _View(labels={})
            own = {f"{alias}.{table.partition}".lower(), table.partition.lower()}
            found = frozenset(column.name for column in columns if column.name.lower() in own)
            return _View(columns=found, labels=table.parts())
        case tree.Listed() | tree.PublicChoice():
            return _View(labels={})
        case tree.Filter(source=source, condition=condition):
            return _narrowed(_view(source, catalog), condition)
        case tree.Projection(source=source, columns=projected):
            below = _view(source, catalog)
            return _View(columns=_carried(below, projected), labels=below.labels, parts=below.parts)
        case tree.PerUnit(source=source, keys=keys):
            below = _view(source, catalog)
            return _View(columns=_carried(below, keys), labels=below.labels, parts=below.parts)
        case tree.SemiJoin(source=source):
            return _view(source, catalog)
        case tree.Join(left=left, right=right, condition=condition, outer=outer):
            first, second = _view(left, catalog), _view(right, catalog)
            labels = first.labels or second.labels  # one table of a unit has a partition at most
            columns_of_both = first.columns | second.columns
            if outer:
                return _View(columns=columns_of_both, labels=labels, parts=first.parts)
            both = _View(columns=columns_of_both, labels=labels, parts=_and(first.parts, second.parts))
            return both if condition is None else _narrowed(both, condition)
        case tree.Union(sources=sources):
            views = [_view(source, catalog) for source in sources]
            united: _Parts = frozenset()
            for view in views:
                united = None if united is None or view.parts is None else united | view.parts
            return _View(labels=views[0].labels, parts=united)


def _carried(below: _View, columns: tuple[tuple[str, tree.Expression], ...]) -> frozenset[str]:
    return frozenset(
        name for name, one in columns if isinstance(one, tree.ColumnRef) and one.name in below.columns
    )


def _narrowed(view: _View, condition: tree.Expression) -> _View:
    """Return what is left where a condition is true."""
    match condition:
        case tree.Call(function="and", arguments=arguments):
            for argument in arguments:
                view = _narrowed(view, argument)
            return view
        case tree.Call(function="=", arguments=(tree.ColumnRef(name=name), tree.Literal() as value)):
            named: tuple[tree.Expression, ...] = (value,)
        case tree.Call(function="=", arguments=(tree.Literal() as value, tree.ColumnRef(name=name))):
            named = (value,)
        case tree.Call(function="in", arguments=(tree.ColumnRef(name=name), *values)):
            named = tuple(values)
        case _:
            return view
    if name not in view.columns:
        return view
    labels = set()
    for one in named:
        label = _label(one, view.labels)
        if label is None:
            return view
        labels.add(label)
    return _View(columns=view.columns, labels=view.labels, parts=_and(view.parts, frozenset(labels)))


def _label(value: tree.Expression, labels: dict[object, str]) -> str | None:
    """Return the label of a listed value; a constant of another type is not looked up as if it were equal."""
    if not isinstance(value, tree.Literal):
        return None
    return next(
        (text for one, text in labels.items() if type(one) is type(value.value) and one == value.value), None
    )


def _and(first: _Parts, second: _Parts) -> _Parts:
    if first is None or second is None:
        return second if first is None else first
    return first & second
