"""Spark's words for statements, in which no number overflows and no retried task answers otherwise.

A priority is `xxhash64` of the salt, the unit and the keys, the engine's own and the same on every machine:
nothing is numbered or drawn by a task. The salt is a text: Spark compiles a statement once for all texts, and
once for each number.

Where few groups are declared they are chosen by a mask (`group_masks`), otherwise by their priorities, of
those that a mask leaves.

Where nothing but sums over rows is asked of such groups, and the cap on rows is not small, one entry of a
group holds the rows of many units, and no unit: of those that have no more rows in all declared groups than
the cap allows in one. They have no more in any group, so each of their rows has the weight one, and what they
add to a group is the sum of their rows there. All other entries are of one unit.

Numbers: a table has fewer than 2^40 rows. What is a sum of so many rows, or of what so many units add, is a
BIGINT where that fits in 64 bits, which is decided by public bounds alone; otherwise it is a DECIMAL(38,0),
and bounds for which 38 digits might be too few are refused. A share is made of a quotient and a remainder.
With total = q bottom + r, both of the sign of total, trunc(total top / bottom) is q top plus
trunc(r top / bottom), where |q| is at most the largest integer of a row, and |r| is below `bottom`.
With a cap on all rows of a unit, of which it has fewer than 2^31, `top` is below 2^31 times the cap, and
`bottom` below 2^62: a cap with which r top would need more than 38 digits is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.analysis.bounded import Measure, MeasureKind
from sfumato.backends.dialect import Dialect
from sfumato.backends.integers import RowInteger
from sfumato.backends.spark.dialect import SPARK
from sfumato.backends.spark.group_masks import PLACES, among_first_places, in_masked_groups
from sfumato.backends.statements import Statements
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported

__all__ = ["SparkStatements"]

_ROWS = 2**40
_WORD = 2**63
_OWN_ROWS = 2**31  # of one unit
_DIGITS = 10**38
_FEW = 1000  # keys in the text of a statement


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStatements(Statements):
    """Writes the statements of a query for Spark."""

    dialect: ClassVar[Dialect] = SPARK
    engine: ClassVar[str] = "Spark"
    fills: ClassVar[bool] = False  # a join for that would send totals to other tasks once more

    def _priority(self, *more: str) -> str:
        listed = ", ".join([f"'{self.salt}'", "__unit", *self.values.keys, *more])
        return f"xxhash64({listed})"

    # -- forms: rows go to their unit's task once, and are sorted there once, by group

    def _order(self) -> list[str]:
        return list(self.values.keys)

    @property
    def _by_mask(self) -> bool:
        """Whether a unit's groups are chosen by a mask of their places."""
        most, declared = self.values.query.max_groups, self.values.query.declared
        few = declared is not None and most is not None and most < len(declared) <= PLACES
        return few and not self._by_row and self.plainly_declared

    @property
    def _only_totals(self) -> bool:
        """Whether totals are all that is asked: then groups are known by numbers until rows are entries."""
        return self._by_mask and all(map(self._adds, self.values.query.measures))

    @property
    def _together(self) -> bool:
        """Whether units with few rows are added up together, in one entry of each group.

        Entries go to other tasks then. Of a unit that is not among those there are at most `max_groups`, and
        it has more rows than `max_rows`: where that is four times as many, little is sent.
        """
        query = self.values.query
        if not self._only_totals or query.max_total is not None or query.max_rows is None:
            return False
        moments = all(one.kind is MeasureKind.MOMENT and one.clamp is None for one in query.measures)
        return moments and 4 * (query.max_groups or 1) <= query.max_rows

    @property
    def _entry(self) -> list[str]:
        if self._only_totals:
            return ["__unit", "code"]
        # A row has the priority of its group: rows that are sorted by it are not sorted again, nor hashed.
        chooses = bool(self.values.keys) and self.values.query.max_groups is not None
        ranked = chooses and not self._by_row and not self._by_mask
        return [*([] if self._by_row else ["__unit"]), *["priority"] * ranked, *self.values.keys]

    @property
    def _group(self) -> str:
        """What tells groups apart, in the order of the sort."""
        if self._by_mask:
            return "__unit, code"
        return ", ".join(["__unit", *(["priority"] if self.values.keys else []), *self.values.keys])

    def _prioritised(self) -> str:
        """Return rows with the priority of their group, of groups that may count.

        Priorities are computed where the rows of a unit have come together: less is sent.
        """
        if not self.values.keys:
            return "SELECT * FROM matched"
        together = "SELECT /*+ REPARTITION(__unit) */ * FROM matched"
        rows = f"SELECT *, {self._priority()} AS priority FROM ({together}) AS m"
        most = self.values.query.max_groups
        return rows if most is None or most >= PLACES else among_first_places(rows, most)

    def _matched(self) -> list[str]:
        """Return the texts of `matched`; a few keys that are plainly declared are looked up, not joined."""
        texts = Statements._matched(self)
        declared = self.values.query.declared or ()
        if self._by_mask:
            return [*texts[:-1], f"coded AS ({self._coded()})", f"matched AS ({self._by_code()})"]
        if len(self.values.kinds) != 1 or not self.plainly_declared or len(declared) > _FEW:
            return texts
        listed = ", ".join(self.dialect.constant(key, self.values.kinds[0]) for (key,) in declared)
        return [*texts[:-1], f"matched AS (SELECT * FROM given WHERE k0 IN ({listed}))"]

    def _coded(self) -> str:
        """Return declared keys with a number each."""
        rows = [(*row, code) for code, row in enumerate(dict.fromkeys(self.values.query.declared or ()))]
        kinds = [*self.values.kinds, Kind.INTEGER]
        written = ", ".join(f"({', '.join(map(self.dialect.constant, row, kinds))})" for row in rows)
        return f"SELECT * FROM (VALUES {written}) AS v({', '.join([*self.values.keys, 'code'])})"

    def _by_code(self) -> str:
        """Return rows of declared keys, which are known by their numbers from here on."""
        same = " AND ".join(f"g.{key} = d.{key}" for key in self.values.keys)
        listed = f"g.* EXCEPT ({', '.join(self.values.keys)}), CAST(d.code AS INT) AS code"
        known = f"SELECT /*+ BROADCAST(d) */ {listed} FROM given AS g JOIN coded AS d ON {same}"
        # Places are computed where the rows of a unit have come together, as priorities are.
        return f"SELECT /*+ REPARTITION(__unit) */ * FROM ({known}) AS m"

    def _in_masked_groups(self, most: int) -> str:
        """Return the rows of the groups of each unit that count."""
        rows = in_masked_groups("matched", self.salt, most)
        if not self._only_totals:
            return self._with_keys(rows)
        if not self._together:
            return rows
        owner = f"CASE WHEN unit_rows > {self.values.query.max_rows} THEN __unit END AS __unit"
        return f"SELECT * EXCEPT (__unit, unit_rows), {owner} FROM ({rows}) AS k"

    def _with_keys(self, rows: str) -> str:
        """Return rows of numbered groups with the keys of these."""
        listed = ", ".join(["k.*", *(f"d.{key}" for key in self.values.keys)])
        return f"SELECT /*+ BROADCAST(d) */ {listed} FROM ({rows}) AS k JOIN coded AS d ON k.code = d.code"

    def _first_groups(self, rows: str) -> str:
        return self._with_keys(rows) if self._only_totals else rows  # groups were chosen before

    def _weights(self) -> str:
        if not self._together:
            return Statements._weights(self)
        most = self.values.query.max_rows
        top, bottom = (
            f"CASE WHEN __unit IS NULL THEN 1 ELSE {own} END" for own in (f"least(n, {most})", "n")
        )
        return f"SELECT *, {top} AS top, {bottom} AS bottom FROM {self._kept_name}"

    def _chosen_rows(self) -> str:
        most = self.values.query.max_groups
        if self._by_mask and most is not None:
            return self._in_masked_groups(most)
        return "SELECT * FROM matched" if self._by_row else self._in_first_groups(self._prioritised())

    def _in_first_groups(self, rows: str) -> str:
        most = self.values.query.max_groups
        if most is None or not self.values.keys:
            return rows
        order = ", ".join(["priority", *self.values.keys])
        place = f"dense_rank() OVER (PARTITION BY __unit ORDER BY {order})"
        return f"SELECT * FROM (SELECT *, {place} AS place FROM ({rows}) AS g) AS p WHERE place <= {most}"

    def cells(self, measure: Measure, chosen: tuple[int, ...]) -> str:
        """Return the statement of a histogram; rows of units that are not above the cap count together."""
        query, integer = self.values.query, self.values.integers[measure.name]
        assert integer is not None
        if self._by_row or query.max_total is not None:
            return Statements.cells(self, measure, chosen)
        keys, _ = self._grouped(chosen)
        own = f"SELECT *, {integer.sql} AS cell, count(*) OVER (PARTITION BY {self._group}) AS n FROM rows"
        most = query.max_rows
        above = "FALSE" if most is None else f"n > {most}"
        top = 1 if most is None else most
        entry = ", ".join(["owner", *self.values.keys, "cell", "bottom"])
        owned = (
            f"SELECT *, CASE WHEN {above} THEN __unit END AS owner, CASE WHEN {above} THEN n ELSE {top} END"
        )
        counted = (
            f"SELECT {entry}, {top} AS top, count(*) AS c FROM ({owned} AS bottom FROM ({own}) AS o) AS e"
            f" WHERE cell > 0 GROUP BY {entry}"
        )
        total = f"{self._number('c', measure)} * {measure.weight}"
        share = self._unit_sum(self._weighed(total, measure), measure)
        listed = ", ".join([*keys, "cell - 1"])
        return (
            f"WITH {', '.join(self._rows())} SELECT {listed}, {share} FROM ({counted}) AS c GROUP BY {listed}"
        )

    def distinct(self, measure: Measure, chosen: tuple[int, ...]) -> str:
        """Return the statement of distinct values; one sort ranks a unit's groups and the values of each.

        Where groups are chosen by a mask, values are ranked in those alone that count.
        """
        if self._by_row:
            return Statements.distinct(self, measure, chosen)
        keys, by = self._grouped(chosen)
        masked = self._by_mask
        rows = "rows" if masked else f"({self._prioritised()})"
        valued = f"SELECT *, {self.values.distinct[measure.name]} AS value FROM {rows} AS m"
        order = f"value IS NULL, {self._priority('value')}, value"  # NULL is no value, and comes last
        number = f"dense_rank() OVER (PARTITION BY {self._group} ORDER BY {order})"
        ranked = f"SELECT *, {number} AS number FROM ({valued}) AS v"
        ranked = ranked if masked else self._in_first_groups(ranked)
        what = self._different(measure)
        there = f"number <= {measure.max_values} AND value IS NOT NULL"
        beginning = ", ".join(self._rows() if masked else self._matched())
        return f"WITH {beginning} SELECT {', '.join([*keys, what])} FROM ({ranked}) AS r WHERE {there}{by}"

    # -- numbers

    def _row_sum(self, integer: RowInteger) -> str:
        narrow = max(-integer.low, integer.high) * _ROWS < _WORD
        return f"sum({integer.sql if narrow else self._wide(integer.sql)})"

    def _wide(self, sql: str) -> str:
        return f"CAST({sql} AS DECIMAL(38,0))"

    def _number(self, sql: str, measure: Measure) -> str:
        return f"CAST({sql} AS BIGINT)" if self._narrow(measure) else self._wide(sql)

    def _share(self, total: str, measure: Measure) -> str:
        total = self._number(total, measure)
        whole, rest = f"({total} div bottom)", f"(({total} % bottom) * top div bottom)"
        return f"({self._number(whole, measure)} * top + {rest})"

    def _unit_sum(self, sql: str, measure: Measure) -> str:
        return f"sum({self._number(sql, measure)})"

    def _narrow(self, measure: Measure) -> bool:
        """Return whether all that is computed for a measure fits in 64 bits.

        With a weight a unit adds no more to a group than its rows there do, so that all units add no more
        than all rows; a clamped sum is up to the sensitivity, of each unit and group.
        """
        query, integer = self.values.query, self.values.integers[measure.name]
        most = measure.weight if measure.kind is MeasureKind.CELLS else 1
        if integer is not None and measure.kind is MeasureKind.MOMENT:
            most = max(-integer.low, integer.high) * abs(integer.scale)
        if measure.clamp is not None:
            most = max(most, measure.sensitivity)
        if max(most * _ROWS, (query.max_total or 0) * _OWN_ROWS**3) >= _DIGITS:
            raise Unsupported("a sum whose bounds need more than 38 digits in Spark")
        return query.max_total is None and max(most, query.max_rows or 1) * _ROWS < _WORD
