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

from dataclasses import dataclass, replace

from sfumato.catalog.catalog import Catalog
from sfumato.plan import tree
from sfumato.plan.conditions import conjuncts

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
        case tree.Projection(source=source, columns=named) | tree.PerUnit(source=source, keys=named):
            below = _view(source, catalog)
            carried = [name for name, one in named if _is_of(one, below.columns)]
            return replace(below, columns=frozenset(carried))
        case tree.SemiJoin(source=source):
            return _view(source, catalog)
        case tree.Join(left=left, right=right, condition=condition, outer=outer):
            first, second = _view(left, catalog), _view(right, catalog)
            labels = first.labels or second.labels  # one table of a unit has a partition at most
            parts = first.parts if outer else _and(first.parts, second.parts)
            both = _View(columns=first.columns | second.columns, labels=labels, parts=parts)
            return both if outer else _narrowed(both, condition)
        case tree.Union(sources=sources):
            views = [_view(source, catalog) for source in sources]
            known = [view.parts for view in views if view.parts is not None]
            united = frozenset[str]().union(*known) if len(known) == len(views) else None
            return _View(labels=views[0].labels, parts=united)


def _is_of(expression: tree.Expression, columns: frozenset[str]) -> bool:
    return isinstance(expression, tree.ColumnRef) and expression.name in columns


def _narrowed(view: _View, condition: tree.Expression | None) -> _View:
    """Return what is left where a condition is true."""
    for part in conjuncts(condition):
        match part:
            case tree.Call(function="=" | "in", arguments=(column, *values)) if _is_of(column, view.columns):
                pass
            case tree.Call(function="=", arguments=(value, column)) if _is_of(column, view.columns):
                values = [value]
            case _:
                continue
        labels = [_label(value, view.labels) for value in values]
        named = frozenset(label for label in labels if label is not None)
        if None not in labels:
            view = replace(view, parts=_and(view.parts, named))
    return view


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
