"""Period rows: which rows count in one period of a stream, given what earlier periods have seen."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.duckdb.engine import Engine
from sfumato.backends.relations import Rendered
from sfumato.plan.tree import ColumnRef, Expression, Relation

__all__ = ["PROBE", "PeriodRows"]

PROBE = (
    "SELECT hash(1::BIGINT, 'a', 'a text of more than twelve bytes', 0.5::DOUBLE, 0.5::FLOAT, TRUE, NULL, "
    "DATE '2026-01-01', TIMESTAMP '2026-01-01 12:00:00', 1::HUGEINT, 1.25::DECIMAL(18, 2))"
)
"""Where it has another value, rows have other hashes, and cannot be compared with those that were seen."""

_HASH = "hash({})"
_HOUR = 3_600_000_000
_MICROSECONDS = {"hour": _HOUR, "day": 24 * _HOUR, "week": 7 * 24 * _HOUR}


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class PeriodRows:
    """The rows of the period itself, and late ones: those of earlier periods that no period has seen.

    A row is told from others of the same person by its `row_id`, or, where there is none, by its period and
    the hash of what it says in the columns that the question reads. A late row counts where the table holds
    it more often than it was seen. With `once`, any row counts where it was not seen, and one of those that
    are the same. Where a person counts in one period at most (`by_person`), no row is remembered: late rows
    are all rows of earlier periods, and who was `counted` before is refused with them (`Participants`).

    Theorem: which rows of a person count, and what is remembered of them, is a function of that person's own
    rows, now and in earlier periods: rows are compared within a unit, and units as the engine compares them.
    So one person more or less changes nothing for others, and of this one the caps of each period bound what
    counts, whatever the memory says.

    Late rows are looked for in `parts` of the table: files that the period before did not read as they are
    now. Who has no row there has no late row; rows of others are compared in all files.

    Theorem: for each person the same rows count as if all files were looked through.
    Assumes: a file with the same path, stamps and ends has the same rows (`Files`); each row of the question
    is made of one row of one file, and of public tables that are the same (`Backend.parts`). Hashes of rows
    need not differ; salted sums of them must, where rows do: they fail to with a chance of about 2^-128.
    Proof: say that a file is left out in period t, and holds a row of period p, t - late <= p < t. Let s be
    the first period such that s, .., t - 1 were all computed from this file as it is now. If p <= s, period s
    read the row: it did not leave out the file, and p >= t - late > s - late. If p > s, period p read the
    row, as one of its own.
    By person: the person was counted there, or had been before, and is refused in period t; or the row did
    not meet the conditions of the question, and does not meet them now.
    By row: after each period all rows that it had to look at were seen as often as the table held them, or
    more often. What was seen of rows of period p was seen in period p or later, so it is remembered in
    period t. Who has rows in files that are left out alone had all of them in the table of period t - 1, and
    they were seen as often: none counts.
    So other people's rows may decide whether a file is left out, and never what counts of a person.
    """

    relation: Relation  # in the source of the query: rows that may count, those of earlier periods included
    on_time: Expression  # whether a row is one of the period itself
    moment: ColumnRef  # when a row happened
    every: str  # how long a period is
    start: datetime.datetime  # of the first period
    row_id: ColumnRef | None
    once: bool
    late: bool  # whether there are rows of earlier periods to compare
    seen: Sequence[Any]  # Arrow tables of `__unit` and `__row`: what earlier periods have seen
    remember: bool
    by_person: bool
    counted: Any | None  # an Arrow table of `__unit`: by person, who is refused
    parts: tuple[int, ...] | None  # the files of the table that late rows may be in; None: any
    found: Any | None = None  # what this period has seen, once the engine has looked

    @contextmanager
    def counting(self, engine: Engine, below: Rendered, newer: Rendered) -> Iterator[Rendered]:
        """Yield the rows that count, given all that may, and those in `parts`; note what is remembered."""
        columns = list(below.names.values())
        named = {name: f"w{place}" for place, name in enumerate(below.names)}
        said = ", ".join(below.names[name] for name in sorted(below.names))
        row = _HASH.format(said)
        if self.row_id is not None:
            own = below.names[self.row_id.name]
            row = f"CASE WHEN {own} IS NULL THEN {row} ELSE hash({own}) END"
        else:
            period = f"({_period(below.names[self.moment.name], self.every, self.start)} & 65535)::UBIGINT"
            row = f"({row} & {(1 << 64) - (1 << 16)}::UBIGINT) | {period}"
        listed = [f"{column} AS {name}" for column, name in zip(columns, named.values(), strict=True)]
        listed += [f"{row} AS __row", f"{DUCKDB.expression(self.on_time, below.names)} AS __on_time"]
        rows, in_parts = (f"(SELECT __unit, {', '.join(listed)} FROM ({one.sql}))" for one in (below, newer))
        with ExitStack() as stack:
            seen = stack.enter_context(engine.given(_together(self.seen))) if self.seen else None
            order = ", ".join(named.values())
            if self.once:
                counted = stack.enter_context(engine.named(_first_of_each(rows, seen, order)))
            elif self.late:
                if self.by_person:
                    late = self._of_others(engine, stack, in_parts)
                elif self.parts is None or seen is None:
                    late = _new_rows(engine, stack, rows, seen, order)
                else:
                    people = f"SELECT DISTINCT __unit FROM {in_parts} WHERE NOT __on_time"
                    whose = f"__unit IN (SELECT __unit FROM {stack.enter_context(engine.named(people))})"
                    theirs, known = (
                        stack.enter_context(engine.named(f"SELECT * FROM {one} WHERE {whose}"))
                        for one in (rows, seen)
                    )
                    late = _new_rows(engine, stack, theirs, known, order)
                new = stack.enter_context(engine.named(late))
                parts = (f"{rows} WHERE __on_time", new)
                both = (f"SELECT __unit, {order}, __row FROM {part}" for part in parts)
                counted = f"({' UNION ALL '.join(both)})"
            else:
                counted = rows
            if self.remember:
                self.found = engine.table(f"SELECT __unit, __row FROM {counted}")
            yield Rendered(sql=f"SELECT __unit, {order} FROM {counted}", names=named, unit=below.unit)

    def _of_others(self, engine: Engine, stack: ExitStack, rows: str) -> str:
        """Return a SELECT of rows of earlier periods; where they are many, without those of the refused."""
        earlier = f"SELECT * FROM {rows} WHERE NOT __on_time"
        if self.counted is None or self.parts is not None:
            return earlier
        refused = stack.enter_context(engine.given(self.counted))
        return f"SELECT r.* FROM ({earlier}) AS r ANTI JOIN {refused} AS c ON r.__unit = c.__unit"


def _period(moment: str, every: str, start: datetime.datetime) -> str:
    """Return the number of the period of a moment at or after the start: another one in each period."""
    if every == "month":
        return f"(year({moment}) * 12 + month({moment}))"
    began = (start - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    return f"((epoch_us(CAST({moment} AS TIMESTAMP)) - {began}) // {_MICROSECONDS[every]})"


def _together(tables: Sequence[Any]) -> Any:
    import pyarrow

    return pyarrow.concat_tables(tables)


def _first_of_each(rows: str, seen: str | None, order: str) -> str:
    """Return a SELECT of one of all rows that are the same, of those that were not seen."""
    same = "r.__unit = s.__unit AND r.__row = s.__row"
    unseen = rows if seen is None else f"(SELECT r.* FROM {rows} AS r ANTI JOIN {seen} AS s ON {same})"
    first = f"row_number() OVER (PARTITION BY __unit, __row ORDER BY {order}) = 1"
    return f"SELECT * FROM {unseen} QUALIFY {first}"


def _new_rows(engine: Engine, stack: ExitStack, rows: str, seen: str | None, order: str) -> str:
    """Return a SELECT of rows of earlier periods that are there more often than they were seen."""
    earlier = f"(SELECT * FROM {rows} WHERE NOT __on_time)"
    if seen is None:
        return f"SELECT * FROM {earlier}"
    # Most people have no such row: first whose rows are others than were seen, by their number and two sums.
    # Nobody knows the salts, so nobody can choose rows that have the same sums as others.
    one, other = (f"sum(hash(xor(__row, {secrets.randbits(64)}::UBIGINT)))" for _ in range(2))
    sums = f"count(*) AS n, {one} AS one, {other} AS other"
    now, before = (f"SELECT __unit, {sums} FROM {rows} GROUP BY __unit" for rows in (earlier, seen))
    others = f"SELECT __unit FROM ({now}) AS a ANTI JOIN ({before}) AS b USING (__unit, n, one, other)"
    whose = f"__unit IN (SELECT __unit FROM {stack.enter_context(engine.named(others))})"
    copy = f"row_number() OVER (PARTITION BY __unit, __row ORDER BY {order}) AS __copy"
    known = f"SELECT __unit, __row, count(*) AS n FROM {seen} WHERE {whose} GROUP BY __unit, __row"
    return (
        f"SELECT r.* FROM (SELECT *, {copy} FROM {earlier} WHERE {whose}) AS r LEFT JOIN ({known}) AS s "
        "ON r.__unit = s.__unit AND r.__row = s.__row WHERE r.__copy > coalesce(s.n, 0)"
    )
