"""PostgreSQL's words for statements: sums are `numeric`, which does not overflow; hashes are its own.

Rows are sorted once, by unit, priority and keys, in parts by several workers. All else reads that order:

    rows       here, the rows of groups that count: dense_rank() numbers the groups of a unit
    cells      a unit that has its full weight in a group (top = bottom) adds as much per row: the rows of
               all such units are counted together, those of others unit by unit
    distinct   a unit with no more rows in a group than it may have values has none too many: values are
               hashed for the others alone

What is kept is the same. All rows of a unit and group have one priority, and the number of a group does not
depend on how many rows it has. Of n rows, the ranks of their values are at most n, in any order. Values of
rows are computed above the sort, where they count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.analysis.bounded import Measure
from sfumato.backends.dialect import Dialect
from sfumato.backends.integers import RowInteger
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.backends.statements import Statements
from sfumato.catalog.kind import Kind

__all__ = ["PostgresStatements"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresStatements(Statements):
    """Writes the statements of a query for PostgreSQL."""

    dialect: ClassVar[Dialect] = POSTGRES
    engine: ClassVar[str] = "PostgreSQL"

    def _priority(self, *more: str) -> str:
        """Return `hashtextextended` of all; each text says how long it is."""
        salt = f"'{self.salt}'::bigint"
        unit = f"hashint8extended(__unit, {salt})"
        if self.values.unit is Kind.TEXT:
            unit = f"hashtextextended(__unit, {salt})"
        if not more and self.values.kinds in ((Kind.INTEGER,), (Kind.TEXT,)):
            key = "hashint8extended" if self.values.kinds == (Kind.INTEGER,) else "hashtextextended"
            return f"coalesce({key}(k0, {unit}), {unit})"
        texts = [f"CAST({one} AS text)" for one in (*self.values.keys, *more)]
        told = " || ".join(f"coalesce(char_length({one}) || ':' || {one}, '-')" for one in texts) or "''"
        return f'hashtextextended(({told}) COLLATE "C", {unit})'

    def _row_sum(self, integer: RowInteger) -> str:
        return f"sum({integer.sql})"

    def _wide(self, sql: str) -> str:
        return f"CAST({sql} AS numeric)"

    def _number(self, sql: str, measure: Measure) -> str:
        return self._wide(sql)

    def _share(self, total: str, measure: Measure) -> str:
        return f"div({self._wide(total)} * top, bottom)"

    def _unit_sum(self, sql: str, measure: Measure) -> str:
        return f"sum({sql})"

    def _once(self, rows: str) -> str:
        # OFFSET 0, which forbids workers below it: they would group rows of units that they share.
        return rows if self._chooses else f"(SELECT * FROM {rows} OFFSET 0) AS r"

    @property
    def _chooses(self) -> bool:
        """Whether a unit may be in more groups than count."""
        return not self._by_row and self.values.query.max_groups is not None

    @property
    def _entry(self) -> list[str]:
        # A row has the priority of its group: rows that are sorted by it are not sorted again.
        return [*([] if self._by_row else ["__unit"]), *["priority"] * self._chooses, *self.values.keys]

    def _matched(self) -> list[str]:
        given = f"SELECT g.* FROM ({self.values.rows}) AS g"
        if self.values.query.declared is None or not self.values.kinds:
            return [f"matched AS ({given})"]
        return [f"declared AS ({self._declared()})", f"matched AS ({given}{self._among_declared()})"]

    def _chosen_rows(self) -> str:
        if not self._chooses:
            return Statements._chosen_rows(self)
        order = ", ".join([self._priority(), *self._order()])
        place = f"dense_rank() OVER (PARTITION BY __unit ORDER BY {order}) AS place"
        # The priority is first: columns behind a text take longer to find.
        ranked = f"SELECT {self._priority()} AS priority, m.*, {place} FROM matched AS m"
        return f"SELECT * FROM ({ranked}) AS m WHERE place <= {self.values.query.max_groups}"

    def _among_declared(self) -> str:
        """Return what leaves rows `g` of declared keys alone; a CTE that is read twice forbids workers."""
        kinds, declared = self.values.kinds, self.values.query.declared or ()
        if len(kinds) > 1 or not declared:
            same = " AND ".join(f"g.{key} = d.{key}" for key in self.values.keys)
            return f" JOIN ({self._declared()}) AS d ON {same}"
        listed = (POSTGRES.canonical(POSTGRES.constant(value, kinds[0]), kinds[0]) for (value,) in declared)
        return f" WHERE k0 IN ({', '.join(listed)})"

    def _first_groups(self, rows: str) -> str:
        return rows  # there are no others

    def _cell_counts(self, integer: RowInteger) -> str:
        query = self.values.query
        if self._by_row or query.max_total is not None:
            return Statements._cell_counts(self, integer)
        counted, heavy = f"count(*) OVER (PARTITION BY {', '.join(self._entry)})", f"n > {query.max_rows}"
        if query.max_rows is None:
            counted, heavy = "1", "FALSE"
        columns = {
            **{key: key for key in self.values.keys},
            "cell": integer.sql,
            "heavy": f"CASE WHEN {heavy} THEN __unit END",
            "top": f"CASE WHEN {heavy} THEN {query.max_rows or 1} ELSE 1 END",
            "bottom": f"CASE WHEN {heavy} THEN n ELSE 1 END",
        }
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        names = ", ".join(columns)
        rows = f"SELECT {listed} FROM (SELECT *, {counted} AS n FROM rows) AS r"
        return f"SELECT {names}, count(*) AS c FROM ({rows}) AS r GROUP BY {names}"

    def _numbered_values(self, measure: Measure) -> str:
        if self._by_row:
            return Statements._numbered_values(self, measure)
        entry, value = ", ".join(self._entry), self.values.distinct[measure.name]
        # A group counts where its values are all NULL, too: it was chosen before.
        rows = f"SELECT *, {value} AS value FROM rows"
        counted = (
            f"SELECT *, count(*) OVER (PARTITION BY {entry}) AS n FROM ({rows}) AS r WHERE value IS NOT NULL"
        )
        order = f"CASE WHEN n > {measure.max_values} THEN {self._priority('value')} END, value"
        number = f"dense_rank() OVER (PARTITION BY {entry} ORDER BY {order})"
        return f"SELECT *, {number} AS number FROM ({counted}) AS v"
