"""Unit safety: every row of a private relation belongs to exactly one unit of protection.

One pass over the plan tree, for questions from SQL and from Python. `pipeline.plan` runs it on every
request; readers run it too, so that a question is refused where it is written, with a caret.

What is computed for each relation is its unit, from the tables that it scans and from nothing else:

    Scan                     the table's unit; none if the table is public
    Filter, Projection       the unit of the rows below
    Join with public rows    the unit of the private side, which must be the left one
    Join of private rows     only on the unit, and only if both have the same one
    SemiJoin                 the unit of the rows that stay; private rows are tested only within their unit
    Union                    the one unit of all sides
    PerUnit                  the unit that the rows are grouped by; none if they are public
    PublicChoice             none: its rows must be public

Theorem: in a tree that passes, the rows of unit u in every relation are a function of u's own rows in the
scanned tables, and of public tables. By induction on the tree: each node above forms a row of u from rows of
u and from public rows, and drops a row of u only by its own values, by other rows of u and by public rows.
So one unit more or less changes its own rows alone, and contributions can be bounded per unit afterwards.

A row that is a unit by itself (`Unit.column` is None) must stay a single row: such rows are not joined with
private rows, not united and not grouped. Joins that copy them are refused later, by `analysis.join_fanout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sfumato.catalog.catalog import Catalog
from sfumato.catalog.unit import Unit
from sfumato.plan import tree
from sfumato.plan.hints import refuse

__all__ = ["check_units", "unit_of"]

_ROW_UNIT = "each row of a table here is a unit by itself: name a column as its unit to join private tables"


def check_units(query: tree.Query, catalog: Catalog) -> Unit:
    """Return the one unit that all private rows of a question belong to, or refuse the question."""
    unit = unit_of(query.source, catalog, query.text)
    if unit is None:
        hint = "public tables can be read directly in the database"
        refuse(query.text, "this asks nothing of a private table", hint, code="SF404")
    return unit


def unit_of(relation: tree.Relation, catalog: Catalog, text: str) -> Unit | None:
    """Return the unit of a relation's rows, None if they are public; refusals show `text`."""
    return _Pass(text=text, catalog=catalog).unit(relation)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    text: str
    catalog: Catalog

    def unit(self, relation: tree.Relation) -> Unit | None:
        """Return the unit of a relation's rows, None if they are public."""
        match relation:
            case tree.Scan():
                return self._scan(relation)
            case tree.Listed():
                return None
            case tree.Filter(source=source) | tree.Projection(source=source):
                return self.unit(source)
            case tree.Join():
                return self._join(relation, self.unit(relation.left), self.unit(relation.right))
            case tree.SemiJoin():
                return self._semi_join(relation, self.unit(relation.source), self.unit(relation.other))
            case tree.Union(sources=sources):
                return self._union(relation, [self.unit(source) for source in sources])
            case tree.PerUnit():
                unit = self.unit(relation.source)
                if (unit is None) is not relation.public or (unit is not None and unit.column is None):
                    self._refuse("these rows name no unit to group by", relation.span)
                return unit
            case tree.PublicChoice(source=source):
                if self.unit(source) is not None:
                    self._refuse("LIMIT and DISTINCT would pick some people's rows", relation.span)
                return None
        self._refuse(f"{type(relation).__name__} is not a relation that is known to be safe", None)

    def _scan(self, scan: tree.Scan) -> Unit | None:
        table = self.catalog.table(scan.table)
        if table is None:
            self._refuse(f"no table `{scan.table}`", None)
        for column in scan.columns:
            field = table.field(column.name.removeprefix(f"{scan.alias}."))
            if field is None or (table.unit is not None and field.name == table.unit.own_column):
                self._refuse(f"`{column.name}` cannot be read", column.span)
        return table.unit

    def _join(self, join: tree.Join, left: Unit | None, right: Unit | None) -> Unit | None:
        if join.keeps_right:
            message = f"a {'FULL' if join.outer else 'RIGHT'} JOIN keeps rows that belong to no one"
            self._refuse(message, join.span, "put the private table first and use LEFT JOIN")
        if left is None and right is not None:
            if not join.outer:
                self._refuse("the private side of a join comes first", join.span)
            hint = "put the private table first, or declare the groups: column = one_of(..)"
            self._refuse("a public table that keeps its rows tells who has no match", join.span, hint)
        if left is None or right is None:
            if join.on_unit:
                self._refuse("a public table has no unit to match", join.span)
            return left
        if left.column is None or right.column is None:
            message = "a join of private tables would spread one unit over several rows"
            self._refuse(message, join.span, _ROW_UNIT)
        if left.name != right.name:
            hint = "ask about each of them by itself, in requests of their own"
            self._refuse(f"units `{left.name}` and `{right.name}` are not the same people", join.span, hint)
        if not join.on_unit:
            by_text = (
                f"match it by itself, joined to the rest by AND: a.{left.column} = b.{right.column}",
                "an inner query must select its unit to be joined on it",
            )
            hints = by_text if self.text else ("join(other, unit=True)",)
            self._refuse("two private tables can be joined only on their unit", join.span, *hints)
        return left

    def _semi_join(self, join: tree.SemiJoin, source: Unit | None, other: Unit | None) -> Unit | None:
        if other is None:
            if join.on_unit:
                self._refuse("a public table has no unit to match", join.span)
            return source
        if source is None:
            self._refuse("public rows cannot be chosen by private ones", join.span)
        if source.column is None or other.column is None:
            self._refuse("a subquery over private rows must be matched on the unit", join.span, _ROW_UNIT)
        if not join.on_unit or source.name != other.name:
            by_text = f"add to its conditions: {other.column} = outer_table.{source.column}"
            hint = by_text if self.text else "exists(other, unit=True)"
            self._refuse("a subquery over private rows must be matched on the unit", join.span, hint)
        return source

    def _union(self, union: tree.Union, units: list[Unit | None]) -> Unit | None:
        first = units[0]
        if not any(units):
            return None
        for place, unit in enumerate(units):
            span = union.spans[place] if union.spans else None
            if unit is None or first is None or unit.name != first.name:
                hint = "ask about each of them by itself, in requests of their own"
                self._refuse("UNION ALL of different units", span, hint)
            if unit.column is None:
                self._refuse("one row could come in twice", span, "name a column as the unit of these tables")
        return first

    def _refuse(self, message: str, span: tree.Span | None, *hints: str) -> NoReturn:
        refuse(self.text, message, *hints, at=span, code="SF406")
