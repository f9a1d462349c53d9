"""Relations in SQL: every private row carries its unit in the column `__unit`, never NULL.

Columns get identifiers of our own, so that no name anyone chose can meet the unit or another
name that differs in case only. The unit is an integer where the declared column holds integers
and a text otherwise; where each row is a unit by itself there is no such column, and
relations that could copy a row are refused, but for joins with public tables that have one row for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sfumato.backends.dialect import Dialect, Writer
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Table
from sfumato.catalog.unit import KeyLink
from sfumato.errors import Unsupported
from sfumato.plan import tree

__all__ = ["PART", "ROW", "Relations", "Rendered", "numbered_table"]

ROW = "__row"
"""The column of a numbered table that holds the number of each row."""

PART = "__part"
"""The column of a numbered table that holds the number of the file that each row is in."""


def numbered_table(name: str) -> str:
    """Return the name of the table that has the rows of another one, and their numbers."""
    return f"__rows of {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A SELECT, the identifiers of its columns, and the kind of the unit it carries.

    `unit` is None for public rows, and for rows that are units by themselves (`by_row`).
    """

    sql: str
    names: dict[str, str]
    unit: Kind | None
    by_row: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """Writes relations over the tables of a catalog; one for each query."""

    catalog: Catalog
    dialect: Dialect
    stored: Callable[[str], str] = identifier  # what the engine calls a table
    given: Callable[[tree.Listed], str] | None = None  # gives the engine a list, and returns its name there
    row_numbers: bool = False  # where units have names, `__unit` is the number of the row instead
    stand_in: tuple[tree.Relation, Rendered] | None = None  # what is read instead of a relation
    parts: tuple[int, ...] | None = None  # the files of a table that are read; None: all of them
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def render(self, relation: tree.Relation) -> Rendered:
        """Return the SQL of a relation."""
        if self.stand_in is not None and relation is self.stand_in[0]:
            return self.stand_in[1]
        match relation:
            case tree.Scan():
                return self._scan(relation)
            case tree.Listed():
                return self._listed(relation)
            case tree.Filter(source=source, condition=condition):
                below = self.render(source)
                test = self.dialect.expression(condition, below.names, Kind.BOOLEAN)
                return replace(below, sql=f"SELECT * FROM {self.dialect.rows(below.sql)} WHERE {test}")
            case tree.Projection(source=source, columns=columns):
                below = self.render(source)
                names, write = {name: self._name() for name, _ in columns}, Writer(self.dialect, below.names)
                listed = [f"{write(one)} AS {names[name]}" for name, one in columns]
                return replace(below, sql=self._select(below, listed), names=names)
            case tree.Join():
                return self._join(relation)
            case tree.SemiJoin():
                return self._semi_join(relation)
            case tree.Union(sources=sources):
                return self._union(sources)
            case tree.PerUnit():
                return self._per_unit(relation)
            case tree.PublicChoice():
                return self._public_choice(relation)
        raise Unsupported(f"the relation {type(relation).__name__}")

    def _name(self) -> str:
        return f"c{next(self._numbers)}"

    def _scan(self, scan: tree.Scan) -> Rendered:
        table = self.catalog.table(scan.table)
        if table is None:
            raise Unsupported("a table that is not in the catalog")
        names = {column.name: self._name() for column in scan.columns}
        listed = []
        for column in scan.columns:
            found = table.field(column.name.removeprefix(f"{scan.alias}.")) or table.field(column.name)
            if found is None or found.kind is not column.kind:
                raise Unsupported("a column that is not in the catalog")
            value = self.dialect.normalised(self.dialect.quoted(found.name), found.kind)
            listed.append(f"{value} AS {names[column.name]}")
        rows = self.stored(table.name)
        if self.parts is not None:
            if table.partition is not None or (table.unit is not None and table.unit.path):
                raise Unsupported("some files of a table whose rows depend on others")
            there = f"{PART} IN ({', '.join(map(str, self.parts))})"
            rows = f"(SELECT * FROM {self.dialect.quoted(numbered_table(table.name))} WHERE {there})"
        if table.unit is not None and table.unit.path:
            return self._scan_by_key(table, table.unit.path[0], listed, names)
        if table.unit is None or table.unit.column is None:
            by_row = table.unit is not None
            return Rendered(
                sql=f"SELECT {_listed(listed)} FROM {rows}", names=names, unit=None, by_row=by_row
            )
        of_type, named, there = self._unit_of(table, table.unit.column)
        if self.row_numbers and of_type is Kind.TEXT:
            if table.partition is not None:
                raise Unsupported("numbers of rows where a unit's other rows matter")
            rows = self.dialect.quoted(numbered_table(table.name))
            sql = f"SELECT {', '.join([f'{ROW} AS __unit', *listed])} FROM {rows}"
            return Rendered(sql=sql, names=names, unit=of_type)
        listed = [f"{named} AS __unit", *listed]
        if table.partition is not None:
            listed += self._part_of(table, named)
        sql = f"SELECT {', '.join(listed)} FROM {rows} WHERE {there}"
        if table.partition is not None:
            kept = "__part IS NULL OR __part = __smallest"
            listed = ["__unit", *names.values()]
            sql = f"SELECT {', '.join(listed)} FROM {self.dialect.rows(sql)} WHERE {kept}"
        return Rendered(sql=sql, names=names, unit=of_type)

    def units_by_row(self, name: str) -> str:
        """Return a SELECT of `__row` and `__unit`, which is NULL where a row belongs to nobody."""
        table = self.catalog.table(name)
        if table is None or table.unit is None or table.unit.column is None:
            raise Unsupported("units of a table that names none")
        _, named, there = self._unit_of(table, table.unit.column)
        rows = self.dialect.quoted(numbered_table(name))
        return f"SELECT {ROW}, CASE WHEN {there} THEN {named} END AS __unit FROM {rows}"

    def _scan_by_key(self, table: Table, link: KeyLink, listed: list[str], names: dict[str, str]) -> Rendered:
        """Return the rows of a table, each once for every unit that has its key where the path leads.

        Whose a row is depends on that unit's own keys: see `catalog.unit`. NULL equals no key.
        """
        beyond, own = self.catalog.table(link.table), table.field(link.column)
        key = None if beyond is None else beyond.field(link.key)
        if key is None or own is None or key.kind is not own.kind:
            raise Unsupported("a path to the unit that is not in the catalog")
        column = tree.ColumnRef(name=f"{link.table}.{link.key}", kind=key.kind)
        owners = self._scan(tree.Scan(table=link.table, alias=link.table, columns=(column,)))
        if owners.unit is None:
            raise Unsupported("a path to the unit that ends at rows without one")
        own_rows = self.dialect.rows(owners.sql)
        keys = f"SELECT DISTINCT __unit, {owners.names[column.name]} AS __key FROM {own_rows}"
        value = self.dialect.normalised(self.dialect.quoted(own.name), own.kind)
        rows = f"SELECT {', '.join([f'{value} AS __key', *listed])}"
        both = f"({rows} FROM {self.stored(table.name)}) AS r JOIN ({keys}) AS o ON r.__key = o.__key"
        sql = f"SELECT {', '.join(['o.__unit', *names.values()])} FROM {both}"
        return Rendered(sql=sql, names=names, unit=owners.unit)

    def _listed(self, listed: tree.Listed) -> Rendered:
        names = {column.name: self._name() for column in listed.columns}
        rows = self.given(listed) if self.given is not None else self._written(listed)
        columns = [
            f"{self.dialect.normalised(f'k{place}', column.kind)} AS {names[column.name]}"
            for place, column in enumerate(listed.columns)
        ]
        return Rendered(sql=f"SELECT {_listed(columns)} FROM {rows}", names=names, unit=None)

    def _join(self, join: tree.Join) -> Rendered:
        left, right = self.render(join.left), self.render(join.right)
        public = right.unit is None and not right.by_row
        if (
            right.by_row
            or (left.by_row and not public)
            or (join.on_unit != (left.unit is not None and right.unit is not None))
        ):
            raise Unsupported("a join of rows that belong to different units")
        if join.outer and left.unit is None and right.unit is not None:
            raise Unsupported("a join that keeps rows of no unit")
        names, test = self._matched(left, right, join)
        who = "l" if left.unit else "r"
        listed = [f"{who}.__unit"] if left.unit or right.unit else []
        listed += [*left.names.values(), *right.names.values()]
        kind = "LEFT JOIN" if join.outer else "JOIN"
        both = f"({left.sql}) AS l {kind} ({right.sql}) AS r ON {test}"
        sql = f"SELECT {_listed(listed)} FROM {both}"
        return Rendered(sql=sql, names=names, unit=left.unit or right.unit, by_row=left.by_row)

    def _semi_join(self, join: tree.SemiJoin) -> Rendered:
        source, other = self.render(join.source), self.render(join.other)
        if other.by_row or join.on_unit != (source.unit is not None and other.unit is not None):
            raise Unsupported("a test against rows that belong to different units")
        if source.unit is None and other.unit is not None:
            raise Unsupported("a test of public rows against private ones")
        _, test = self._matched(source, other, join)
        inner = f"SELECT 1 FROM ({other.sql}) AS r WHERE {test}"
        exists = "NOT EXISTS" if join.negated else "EXISTS"
        unless = ""
        if join.unless is not None:
            unless = f"{self.dialect.expression(join.unless, source.names, Kind.BOOLEAN)} OR "
        return replace(source, sql=f"SELECT * FROM ({source.sql}) AS l WHERE {unless}{exists} ({inner})")

    def _union(self, sources: tuple[tree.Relation, ...]) -> Rendered:
        parts = [self.render(source) for source in sources]
        first = parts[0]
        if any(
            part.by_row is not first.by_row or (part.unit is None) != (first.unit is None) for part in parts
        ):
            raise Unsupported("a union of rows that belong to different units")
        if any(len(part.names) != len(first.names) for part in parts):
            raise Unsupported("a union of different columns")
        unit = first.unit if len({part.unit for part in parts}) == 1 else Kind.TEXT
        selects = []
        for part in parts:
            who = [f"CAST(__unit AS {self.dialect.sql_type(unit)}) AS __unit"] if unit else []
            rows = self.dialect.rows(part.sql)
            selects.append(f"SELECT {_listed([*who, *part.names.values()])} FROM {rows}")
        return replace(first, sql=" UNION ALL ".join(selects), unit=unit)

    def _public_choice(self, choice: tree.PublicChoice) -> Rendered:
        below = self.render(choice.source)
        if below.unit is not None or below.by_row:
            raise Unsupported("a choice among rows that belong to units")
        sql = f"SELECT {'DISTINCT ' if choice.distinct else ''}* FROM {self.dialect.rows(below.sql)}"
        if choice.limit is not None or choice.offset:
            order = [
                f"{below.names[column.name]} {'DESC' if down else 'ASC'} NULLS {'FIRST' if nulls else 'LAST'}"
                for column, down, nulls in choice.order
            ]
            order += [f"{name} ASC NULLS LAST" for name in below.names.values()]
            limit = "" if choice.limit is None else f" LIMIT {choice.limit}"
            rows, ordered = self.dialect.rows(sql), ", ".join(order)
            sql = f"SELECT * FROM {rows} ORDER BY {ordered}{limit} OFFSET {choice.offset}"
        return replace(below, sql=sql)

    def _per_unit(self, node: tree.PerUnit) -> Rendered:
        below = self.render(node.source)
        if below.by_row or (below.unit is None) is not node.public:
            raise Unsupported("aggregates per unit of rows without a unit")
        keys = {name: self._name() for name, _ in node.keys}
        values = {name: self._name() for name, _ in node.aggregates}
        write = Writer(self.dialect, below.names)
        listed = [f"{write(one)} AS {keys[name]}" for name, one in node.keys]
        listed += [
            f"{self.dialect.unit_aggregate(one, write)} AS {values[name]}" for name, one in node.aggregates
        ]
        own = ["__unit"] if below.unit else []
        grouped = ", ".join([*own, *(str(place + 1 + len(own)) for place in range(len(node.keys)))])
        by = f" GROUP BY {grouped}" if grouped else ""
        return replace(below, sql=f"{self._select(below, listed)}{by}", names={**keys, **values})

    def _unit_of(self, table: Table, column: str) -> tuple[Kind, str, str]:
        """Return the kind of the unit that a column names, its value, and the test that there is one."""
        unit = table.field(column)
        assert unit is not None
        who = self.dialect.quoted(unit.name)
        if unit.kind is Kind.INTEGER:
            return Kind.INTEGER, f"CAST({who} AS {self.dialect.sql_type(Kind.INTEGER)})", f"{who} IS NOT NULL"
        named, there = self.dialect.plain_text(who), f"{who} IS NOT NULL"
        if unit.kind is Kind.TEXT:  # cut, two long names could be one, and one person be two
            named = self.dialect.normalised(who, unit.kind)
            there = f"{named} IS NOT NULL"
        if unit.kind.binary:  # there is one zero, and nobody is two people; NaN is nobody
            named = f"CASE WHEN {who} = 0 THEN '0' ELSE {named} END"
            there = f"{self.dialect.normalised(who, unit.kind)} IS NOT NULL"
        if unit.kind in (Kind.DATE, Kind.TIMESTAMP):  # a far one is nobody: the engine stops at its text
            named = f"CAST({self.dialect.normalised(who, unit.kind)} AS {self.dialect.sql_type(Kind.TEXT)})"
            there = f"{self.dialect.normalised(who, unit.kind)} IS NOT NULL"
        return Kind.TEXT, named, there

    def _part_of(self, table: Table, unit: str) -> list[str]:
        """Return a row's part, and its unit's: the smallest of all that its rows in the table have.

        That depends on the unit's own rows before any filter, and on nothing else.
        """
        field = table.field(table.partition or "")
        assert field is not None
        value = self.dialect.normalised(self.dialect.quoted(field.name), field.kind)
        return [f"{value} AS __part", f"min({value}) OVER (PARTITION BY {unit}) AS __smallest"]

    def _matched(
        self, left: Rendered, right: Rendered, join: tree.Join | tree.SemiJoin
    ) -> tuple[dict[str, str], str]:
        """Return the columns of two relations, and the test that two of their rows, l and r, match."""
        if left.names.keys() & right.names.keys():
            raise Unsupported("two relations with a column of one name")
        names = {**left.names, **right.names}
        condition = join.condition
        test = "TRUE" if condition is None else self.dialect.expression(condition, names, Kind.BOOLEAN)
        if not join.on_unit:
            return names, test
        units = ("l.__unit", "r.__unit")
        if left.unit != right.unit:
            text = self.dialect.sql_type(Kind.TEXT)
            units = (f"CAST(l.__unit AS {text})", f"CAST(r.__unit AS {text})")
        return names, f"{units[0]} = {units[1]} AND {test}"

    def _select(self, below: Rendered, listed: list[str]) -> str:
        listed = ["__unit", *listed] if below.unit else listed
        return f"SELECT {_listed(listed)} FROM {self.dialect.rows(below.sql)}"

    def _written(self, listed: tree.Listed) -> str:
        """Return a list as VALUES; rows without columns have one that nobody reads."""
        if not listed.columns:
            return f"(VALUES {', '.join('(NULL)' for _ in listed.rows)}) AS __listed(nothing)"
        kinds = [column.kind for column in listed.columns]
        rows = (f"({', '.join(map(self.dialect.constant, row, kinds))})" for row in listed.rows)
        keys = ", ".join(f"k{place}" for place in range(len(kinds)))
        return f"(VALUES {', '.join(rows)}) AS __listed({keys})"


def _listed(columns: list[str]) -> str:
    return ", ".join(columns) or "NULL AS nothing"
