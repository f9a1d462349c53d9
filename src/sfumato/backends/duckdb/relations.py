"""Relations in DuckDB's SQL: every private row carries its unit in the column `__unit`, never NULL.

Columns get identifiers of our own, so that no name anyone chose can meet the unit or another
name that differs in case only. The unit is a BIGINT where the declared column holds integers
and a VARCHAR otherwise; where each row is a unit by itself there is no such column, and
relations that could copy a row are refused, but for joins with public tables that have one row for it.

Aggregates of one unit's own rows depend on those rows alone, not on their order: real values
are added up in sorted order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

from sfumato.aggregates.registry import Function
from sfumato.backends.expressions import expression
from sfumato.backends.sql_values import constant, finite, normalised, plain_text, sql_type
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.catalog.table import Table
from sfumato.catalog.unit import KeyLink
from sfumato.errors import Unsupported
from sfumato.plan import tree

__all__ = ["PART", "ROW", "Relations", "Rendered", "numbered_table"]

ROW = "__row"
"""The column of a numbered table that holds the number of each row."""

PART = "__part"
"""The column of a numbered table that holds the number of the file that each row is in."""

_LARGEST = "1e140"  # squares of more could overflow; what lies beyond is cut to it


def numbered_table(name: str) -> str:
    """Return the name of the table that has the rows of another one, and their numbers."""
    return f"__rows of {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A SELECT, the identifiers of its columns, and the SQL type of the unit it carries.

    `unit` is None for public rows, and for rows that are units by themselves (`by_row`).
    """

    sql: str
    names: dict[str, str]
    unit: str | None
    by_row: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """Writes relations over the tables of a catalog; one for each query."""

    catalog: Catalog
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
                test = expression(condition, below.names)
                return replace(below, sql=f"SELECT * FROM ({below.sql}) WHERE {test}")
            case tree.Projection(source=source, columns=columns):
                below = self.render(source)
                names = {name: self._name() for name, _ in columns}
                listed = [f"{expression(one, below.names)} AS {names[name]}" for name, one in columns]
                return replace(below, sql=_select(below, listed), names=names)
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
            listed.append(f"{normalised(identifier(found.name), found.kind)} AS {names[column.name]}")
        rows = identifier(table.name)
        if self.parts is not None:
            if table.partition is not None or (table.unit is not None and table.unit.path):
                raise Unsupported("some files of a table whose rows depend on others")
            there = f"{PART} IN ({', '.join(map(str, self.parts))})"
            rows = f"(SELECT * FROM {identifier(numbered_table(table.name))} WHERE {there})"
        if table.unit is not None and table.unit.path:
            return self._scan_by_key(table, table.unit.path[0], listed, names)
        if table.unit is None or table.unit.column is None:
            by_row = table.unit is not None
            return Rendered(
                sql=f"SELECT {_listed(listed)} FROM {rows}", names=names, unit=None, by_row=by_row
            )
        of_type, named, there = _unit_of(table, table.unit.column)
        if self.row_numbers and of_type == "VARCHAR":
            if table.partition is not None:
                raise Unsupported("numbers of rows where a unit's other rows matter")
            rows = identifier(numbered_table(table.name))
            sql = f"SELECT {', '.join([f'{ROW} AS __unit', *listed])} FROM {rows}"
            return Rendered(sql=sql, names=names, unit=of_type)
        listed = [f"{named} AS __unit", *listed]
        if table.partition is not None:
            listed += _part_of(table, named)
        sql = f"SELECT {', '.join(listed)} FROM {rows} WHERE {there}"
        if table.partition is not None:
            kept = "__part IS NULL OR __part = __smallest"
            sql = f"SELECT {', '.join(['__unit', *names.values()])} FROM ({sql}) WHERE {kept}"
        return Rendered(sql=sql, names=names, unit=of_type)

    def units_by_row(self, name: str) -> str:
        """Return a SELECT of `__row` and `__unit`, which is NULL where a row belongs to nobody."""
        table = self.catalog.table(name)
        if table is None or table.unit is None or table.unit.column is None:
            raise Unsupported("units of a table that names none")
        _, named, there = _unit_of(table, table.unit.column)
        rows = identifier(numbered_table(name))
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
        keys = f"SELECT DISTINCT __unit, {owners.names[column.name]} AS __key FROM ({owners.sql})"
        rows = f"SELECT {', '.join([f'{normalised(identifier(own.name), own.kind)} AS __key', *listed])}"
        both = f"({rows} FROM {identifier(table.name)}) AS r JOIN ({keys}) AS o ON r.__key = o.__key"
        sql = f"SELECT {', '.join(['o.__unit', *names.values()])} FROM {both}"
        return Rendered(sql=sql, names=names, unit=owners.unit)

    def _listed(self, listed: tree.Listed) -> Rendered:
        names = {column.name: self._name() for column in listed.columns}
        rows = self.given(listed) if self.given is not None else _written(listed)
        columns = [
            f"{normalised(f'k{place}', column.kind)} AS {names[column.name]}"
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
        names, test = _matched(left, right, join)
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
        _, test = _matched(source, other, join)
        inner = f"SELECT 1 FROM ({other.sql}) AS r WHERE {test}"
        exists = "NOT EXISTS" if join.negated else "EXISTS"
        unless = "" if join.unless is None else f"{expression(join.unless, source.names)} OR "
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
        unit = first.unit if len({part.unit for part in parts}) == 1 else "VARCHAR"
        selects = []
        for part in parts:
            who = [f"CAST(__unit AS {unit}) AS __unit"] if unit else []
            selects.append(f"SELECT {_listed([*who, *part.names.values()])} FROM ({part.sql})")
        return replace(first, sql=" UNION ALL ".join(selects), unit=unit)

    def _public_choice(self, choice: tree.PublicChoice) -> Rendered:
        below = self.render(choice.source)
        if below.unit is not None or below.by_row:
            raise Unsupported("a choice among rows that belong to units")
        sql = f"SELECT {'DISTINCT ' if choice.distinct else ''}* FROM ({below.sql})"
        if choice.limit is not None or choice.offset:
            order = [
                f"{below.names[column.name]} {'DESC' if down else 'ASC'} NULLS {'FIRST' if nulls else 'LAST'}"
                for column, down, nulls in choice.order
            ]
            order += [f"{name} ASC NULLS LAST" for name in below.names.values()]
            limit = "" if choice.limit is None else f" LIMIT {choice.limit}"
            sql = f"SELECT * FROM ({sql}) ORDER BY {', '.join(order)}{limit} OFFSET {choice.offset}"
        return replace(below, sql=sql)

    def _per_unit(self, node: tree.PerUnit) -> Rendered:
        below = self.render(node.source)
        if below.by_row or (below.unit is None) is not node.public:
            raise Unsupported("aggregates per unit of rows without a unit")
        keys = {name: self._name() for name, _ in node.keys}
        values = {name: self._name() for name, _ in node.aggregates}
        listed = [f"{expression(one, below.names)} AS {keys[name]}" for name, one in node.keys]
        listed += [f"{_aggregate(one, below.names)} AS {values[name]}" for name, one in node.aggregates]
        own = ["__unit"] if below.unit else []
        grouped = ", ".join([*own, *(str(place + 1 + len(own)) for place in range(len(node.keys)))])
        by = f" GROUP BY {grouped}" if grouped else ""
        return replace(below, sql=f"{_select(below, listed)}{by}", names={**keys, **values})


def _unit_of(table: Table, column: str) -> tuple[str, str, str]:
    """Return the type of the unit that a column names, its value, and the test that there is one."""
    unit = table.field(column)
    assert unit is not None
    who = identifier(unit.name)
    if unit.kind is Kind.INTEGER:
        return "BIGINT", f"CAST({who} AS BIGINT)", f"{who} IS NOT NULL"
    named, there = plain_text(who), f"{who} IS NOT NULL"
    if unit.kind.binary:  # there is one zero, and nobody is two people; NaN is nobody
        named = f"CASE WHEN {who} = 0 THEN '0' ELSE {named} END"
        there = f"{normalised(who, unit.kind)} IS NOT NULL"
    if unit.kind in (Kind.DATE, Kind.TIMESTAMP):  # a far one is nobody: the engine stops at its text
        named = f"CAST({normalised(who, unit.kind)} AS VARCHAR)"
        there = f"{normalised(who, unit.kind)} IS NOT NULL"
    return "VARCHAR", named, there


def _part_of(table: Table, unit: str) -> list[str]:
    """Return a row's part, and its unit's: the smallest of all that its rows in the table have.

    That depends on the unit's own rows before any filter, and on nothing else.
    """
    field = table.field(table.partition or "")
    assert field is not None
    value = normalised(identifier(field.name), field.kind)
    return [f"{value} AS __part", f"min({value}) OVER (PARTITION BY {unit}) AS __smallest"]


def _matched(left: Rendered, right: Rendered, join: tree.Join | tree.SemiJoin) -> tuple[dict[str, str], str]:
    """Return the columns of two relations, and the test that two of their rows, l and r, belong together."""
    if left.names.keys() & right.names.keys():
        raise Unsupported("two relations with a column of one name")
    names = {**left.names, **right.names}
    test = "TRUE" if join.condition is None else expression(join.condition, names)
    if not join.on_unit:
        return names, test
    units = ("l.__unit", "r.__unit")
    if left.unit != right.unit:
        units = ("CAST(l.__unit AS VARCHAR)", "CAST(r.__unit AS VARCHAR)")
    return names, f"{units[0]} = {units[1]} AND {test}"


def _listed(columns: list[str]) -> str:
    return ", ".join(columns) or "NULL AS nothing"


def _select(below: Rendered, listed: list[str]) -> str:
    return f"SELECT {_listed([*(['__unit'] if below.unit else []), *listed])} FROM ({below.sql})"


# -- one unit's own aggregates --------------------------------------------------------------


def _aggregate(aggregate: tree.Aggregate, names: dict[str, str]) -> str:
    where = "" if aggregate.where is None else f" FILTER (WHERE {expression(aggregate.where, names)})"
    function, arguments = aggregate.function, aggregate.arguments
    match function:
        case Function.COUNT_ROWS:
            return f"count(*){where}"
        case Function.COUNT:
            return f"count({expression(arguments[0], names)}){where}"
        case Function.COUNT_DISTINCT:
            return f"count(DISTINCT {expression(arguments[0], names)}){where}"
        case Function.COUNT_UNITS:
            return f"CASE WHEN (count(*){where}) > 0 THEN 1 ELSE 0 END::BIGINT"
        case Function.MIN | Function.MAX:
            return f"{function.label}({expression(arguments[0], names)}){where}"
        case Function.SUM if arguments[0].kind is Kind.INTEGER:
            return f"TRY_CAST(sum({expression(arguments[0], names)}){where} AS BIGINT)"
        case Function.SUM if arguments[0].kind is not None and arguments[0].kind.exact:
            return _exact_sum(expression(arguments[0], names), arguments[0].kind, where)
        case Function.SUM:
            value = expression(arguments[0], names, Kind.REAL)
            return finite(f"sum({value} ORDER BY {value}){where}")
        case Function.SUM_DISTINCT if arguments[0].kind is Kind.INTEGER:
            return f"TRY_CAST(sum(DISTINCT {expression(arguments[0], names)}){where} AS BIGINT)"
        case Function.AVG if arguments[0].kind is not None and arguments[0].kind.exact:
            value, kind = expression(arguments[0], names), arguments[0].kind
            total = f"sum({value}){where}" if kind is Kind.INTEGER else _exact_sum(value, kind, where)
            return f"CAST({total} AS DOUBLE) / nullif(count({value}){where}, 0)"
        case Function.AVG:
            value = expression(arguments[0], names, Kind.REAL)
            return finite(f"sum({value} ORDER BY {value}){where} / nullif(count({value}){where}, 0)")
        case Function.QUANTILE if len(aggregate.quantiles) == 1 and not aggregate.several:
            value = expression(arguments[0], names, Kind.REAL)
            return finite(f"quantile_cont({value}, {aggregate.quantiles[0]!r}){where}")
        case _ if function.record.standard:
            values = [_cut(expression(argument, names, Kind.REAL)) for argument in arguments]
            ordered = ", ".join(values)
            return finite(f"{function.label}({ordered} ORDER BY {ordered}){where}")
    raise Unsupported(f"{function.label} of one unit's rows")


def _written(listed: tree.Listed) -> str:
    """Return a list as VALUES."""
    kinds = [column.kind for column in listed.columns]
    rows = (
        f"({', '.join(constant(value, kind) for value, kind in zip(row, kinds, strict=True))})"
        for row in listed.rows
    )
    return f"(VALUES {', '.join(rows)}) AS __listed({', '.join(f'k{place}' for place in range(len(kinds)))})"


_HALF = 10**19  # quotients and remainders by it add up within 128 bits, over 2^63 rows
_WORD_DIGITS = 18  # decimals of no more digits add up within 128 bits, over 2^63 rows


def _exact_sum(value: str, kind: Kind, where: str) -> str:
    """Add up whole numbers of 128 bits, or decimals: NULL where the sum does not fit.

    The engine's own sum of 128-bit numbers fails at the first overflow on its way, which depends on the
    order of rows. So a wide decimal is taken for the whole number that its digits are, and numbers are
    summed in halves.
    """
    total = sql_type(Kind.decimal(MOST_DIGITS, kind.scale))
    if 0 < kind.digits <= _WORD_DIGITS:
        return f"CAST(sum({value}){where} AS {total})"
    whole = value if not kind.digits else f"CAST(replace(CAST({value} AS VARCHAR), '.', '') AS HUGEINT)"
    half = f"{_HALF}::HUGEINT"
    upper, lower = (f"sum({whole} {name} {half}){where}" for name in ("//", "%"))
    joined = f"s.u * {half} + s.l"
    if kind.digits:
        unit = constant(Decimal((0, (1,), -kind.scale)))
        joined = f"CAST({joined} AS DECIMAL({MOST_DIGITS},0)) * {unit}"
    # TRY takes no aggregates; inside the function of a list it sees their values
    return f"list_transform([{{'u': {upper}, 'l': {lower}}}], lambda s: TRY({joined}))[1]"


def _cut(value: str) -> str:
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, -{_LARGEST}), {_LARGEST}) END"
