"""Growth: how many rows a question may make of one private row, limited by what is public.

A question that runs out of memory or time tells something, and nothing pays for it. Whoever could make
a million rows of one person's row could choose whose row that takes. So, before anything is charged:

- private tables are joined with each other on the unit at most twice in one question. A side with one
  row per unit multiplies nothing, and is not counted;
- joins with public tables, and unions, make at most a thousand rows of one row. A join with an equality
  between a public column and the other side makes as many as the most frequent value has rows there;
  any other join as many as the table has;
- where each row is a unit by itself, they make one row of one row: a second would count as another unit.

Both depend on the question and on public tables alone. What they do not limit is what people's own rows
make of each other: of n rows of one unit, two joins make up to n^3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sfumato.analysis.bounded import BoundedQuery
from sfumato.analysis.shapes import is_private, one_row_per_unit, scans
from sfumato.catalog.catalog import Catalog
from sfumato.errors import Unsupported
from sfumato.plan import tree
from sfumato.plan.columns import outputs, references
from sfumato.plan.conditions import conjuncts
from sfumato.plan.hints import refuse

__all__ = ["CopiesOf", "MOST_COPIES", "MOST_UNIT_JOINS", "public_row_count", "refuse_copies", "unit_joins"]

MOST_UNIT_JOINS = 2
"""Joins of private rows with private rows in one question."""

MOST_COPIES = 1_000
"""Rows that public tables and unions may make of one private row."""

CopiesOf = Callable[[str, tuple[str, ...]], int]
"""What gives the largest number of rows of a public table that agree in some columns, a value in each."""


def unit_joins(relation: tree.Relation) -> int:
    """Return how many joins may multiply a unit's rows with its rows, wherever they are."""
    return sum(
        isinstance(one, tree.Join)
        and one.on_unit
        and not one_row_per_unit(one.left)
        and not one_row_per_unit(one.right)
        for one in tree.relations(relation)
    )


def public_row_count(relation: tree.Relation, catalog: Catalog, copies_of: CopiesOf) -> int:
    """Return how many rows a public relation has at most."""
    return _Growth(text="", most=1, catalog=catalog, copies_of=copies_of).rows(relation)


def refuse_copies(
    queries: Iterable[tree.Query | BoundedQuery], catalog: Catalog, copies_of: CopiesOf
) -> None:
    """Refuse questions that make too many rows of a private one."""
    for query in queries:
        tables = [catalog.table(scan.table) for scan in scans(query.source)]
        units = [table.unit for table in tables if table is not None and table.unit is not None]
        most = 1 if any(unit.column is None for unit in units) else MOST_COPIES
        text = query.text if isinstance(query, tree.Query) else ""
        _Growth(text=text, most=most, catalog=catalog, copies_of=copies_of).rows(query.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    text: str
    most: int
    catalog: Catalog
    copies_of: CopiesOf

    def rows(self, relation: tree.Relation) -> int:
        """Return how many rows there are at most: of one private row, or, in public relations, in all."""
        match relation:
            case tree.Scan(table=name):
                return 1 if self._private(relation) else self.copies_of(name, ())
            case tree.Listed(rows=rows):
                return len(rows)
            case tree.Filter(source=source) | tree.Projection(source=source):
                return self.rows(source)
            case tree.PublicChoice(source=source, limit=limit):
                found = self.rows(source)
                return found if limit is None else min(found, limit)
            case tree.PerUnit(source=source, keys=keys):
                grown = self.rows(source)
                return grown if keys else 1
            case tree.SemiJoin(source=source, other=other):
                if self._private(other):
                    self.rows(other)
                return self.rows(source)
            case tree.Union(sources=sources):
                return self._few(relation, sum(self.rows(source) for source in sources))
            case tree.Join():
                return self._few(relation, self._joined(relation))
        raise Unsupported(f"the relation {type(relation).__name__}")

    def _joined(self, join: tree.Join) -> int:
        left, right = join.left, join.right
        if self._private(left) and self._private(right):
            return self.rows(left) * self.rows(right)
        if self._private(right):
            left, right = right, left
        return self.rows(left) * max(1, self._matches(right, join.condition))

    def _matches(self, public: tree.Relation, condition: tree.Expression | None) -> int:
        """Return how many rows of a public relation one row may meet."""
        names = {name for test in conjuncts(condition) for name in _equal_columns(test, public)}
        if isinstance(public, tree.Listed) and names:
            here = [place for place, column in enumerate(public.columns) if column.name in names]
            agreeing = Counter(tuple(row[place] for place in here) for row in public.rows)
            return max(agreeing.values(), default=0)
        if _one_for(public, names):
            return 1
        origins = {origin for name in names if (origin := _origin(public, name)) is not None}
        if not origins:
            return self.rows(public)
        [table] = {scan.table for scan, _ in origins}  # a relation with origins has a single scan
        return self.copies_of(table, tuple(sorted(column for _, column in origins)))

    def _private(self, relation: tree.Relation) -> bool:
        return is_private(relation, self.catalog)

    def _few(self, relation: tree.Relation, rows: int) -> int:
        if not self._private(relation) or rows <= self.most:
            return rows
        if self.most == 1:
            refuse(
                self.text,
                "this may make several rows of one, and each row is a unit by itself",
                "join a public table by columns whose values are different in each of its rows",
                "or name the column that says whom a row is about as the unit",
                code="SF406",
            )
        refuse(
            self.text,
            f"this may make more than {MOST_COPIES:,} rows of one person's row",
            "join a public table by a column whose values are different in each of its rows",
            "or join a smaller one",
            code="SF404",
        )


def _equal_columns(test: tree.Expression, public: tree.Relation) -> Iterator[str]:
    """Yield the column of a public relation that must equal something of the other side.

    Both are compared as what holds both. Exact numbers that become binary ones may no longer differ.
    """
    own = {column.name for column in outputs(public)}
    match test:
        case tree.Call(function="=", arguments=(first, second)):
            for here, there in ((first, second), (second, first)):
                if (
                    isinstance(here, tree.ColumnRef)
                    and here.name in own
                    and not (here.kind.exact and there.kind is not None and there.kind.binary)
                    and own.isdisjoint(references(there))
                ):
                    yield here.name


def _one_for(relation: tree.Relation, names: set[str]) -> bool:
    """Return whether a public relation has one row at most for each combination of values of some columns.

    It has, if it was grouped by these columns, and all that was done since kept rows as they are or left out.
    """
    match relation:
        case tree.PerUnit(keys=keys, public=True):
            exact = all(key.kind is not None and not key.kind.binary for _, key in keys)  # there is one zero
            return exact and names >= {name for name, _ in keys}
        case tree.Filter(source=source) | tree.SemiJoin(source=source) | tree.PublicChoice(source=source):
            return _one_for(source, names)
        case tree.Projection(source=source, columns=projected):
            below = {one.name for name, one in projected if name in names and isinstance(one, tree.ColumnRef)}
            return _one_for(source, below)
    return False


def _origin(relation: tree.Relation, name: str) -> tuple[tree.Scan, str] | None:
    """Return the scan and the column that a column is, where only whole rows were taken out since."""
    match relation:
        case tree.Scan(alias=alias, columns=columns) if any(column.name == name for column in columns):
            return relation, name.removeprefix(f"{alias}.")
        case tree.Filter(source=source) | tree.SemiJoin(source=source) | tree.PublicChoice(source=source):
            return _origin(source, name)
        case tree.Projection(source=source, columns=projected):
            for one, expression in projected:
                if one == name and isinstance(expression, tree.ColumnRef):
                    return _origin(source, expression.name)
    return None
