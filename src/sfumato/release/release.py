"""The release: what leaves, as one frozen value: numbers, intervals, cost, receipt."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sfumato.aggregates.answer import Answer
from sfumato.catalog.domain import Between
from sfumato.core.mechanism import confidence
from sfumato.errors import InvalidArgument, QueryRefused
from sfumato.release.answers import (
    NoisyTable,
    Origin,
    helpful_factor,
    informative,
    rows_flagged,
    says_nothing,
)
from sfumato.release.frames import frame_library
from sfumato.release.plain_tables import widened
from sfumato.release.published import Published
from sfumato.release.sandbox import PlainTable, query

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from sfumato.pages import Page
    from sfumato.plots import Picture

__all__ = ["Interval", "Release"]

Interval = tuple[Any, Any]
"""The ends of an interval; lists of ends, where a value is a list."""

_SAME = Origin(column="").expression


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release(Published):
    """The published answer to a request. Everything in it may be shown to anybody.

    `origins` and `lines` say of which noisy table, column and row each cell is, where it is one; that is what
    intervals of any level come from. A row that is of no row of a noisy table (a label without an answer) has
    None for its line. Where a histogram is shown as one row per bin, `items` says which bin each row is.
    Where noisy numbers chose the rows that are shown, `among` says of how many.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3))
    >>> release = db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).release()
    >>> release.columns, abs(release.column("n")[0] - 900) < 100
    (('n',), True)
    """

    kind: ClassVar[str] = "format"

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    origins: tuple[Origin | None, ...]
    lines: tuple[int | None, ...] | None
    source: str | None
    tables: tuple[NoisyTable, ...]
    items: tuple[int, ...] | None = None
    among: int | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def column(self, name: str) -> list[Any]:
        """Return the values of one column."""
        return [row[self.columns.index(name)] for row in self.rows]

    def one(self) -> dict[str, Any]:
        """Return the only row, by the names of its columns: `db.sql(.., **caps.one())`."""
        if len(self.rows) != 1:
            raise InvalidArgument(f"this release has {len(self.rows)} rows, not one", place="one")
        return dict(zip(self.columns, self.rows[0], strict=True))

    def between(self) -> Between:
        """Return the bounds that `bounds` found, as a declaration: `db.declare(income=found.between())`."""
        if not {"low", "high"} <= set(self.columns):
            raise InvalidArgument("this release tells no bounds: it has no `low` and `high`", place="between")
        found = self.one()
        if found["low"] is None or found["high"] is None:
            raise InvalidArgument(
                "no bounds could be told from noise",
                place="between",
                hints=("ask with more epsilon, or declare what you know beforehand",),
            )
        return Between(found["low"], found["high"])

    def intervals(self, level: float = 0.95) -> dict[str, list[Interval | None]]:
        """Return, for each column that is a released aggregate, the (low, high) of each row.

        Each covers the bounded statistic with probability `level`, each by itself. Where noisy numbers chose
        which rows are shown, intervals are wider, so that any row that is chosen is covered as often.
        """
        return {name: pairs for name, pairs, _ in self._followed(level)}

    def no_information(self, level: float = 0.95) -> dict[str, list[Any]]:
        """Return, for each column with intervals, the rows in which they cover all that a value could be."""
        return {name: flags for name, _, flags in self._followed(level)}

    def _followed(
        self, level: float, only: Collection[str] | None = None
    ) -> Iterator[tuple[str, list[Interval | None], list[Any]]]:
        """Yield the columns that are released aggregates: intervals, and whether they say nothing."""
        confidence(level)
        table, answers = self._source()
        if table is None or self.lines is None:
            return
        level = self._level_of_each(level)
        for name, origin in zip(self.columns, self.origins, strict=True):
            if origin is None or not {origin.column, origin.over} <= {*answers, None}:
                continue
            if only is not None and name not in only:
                continue
            if answers[origin.column].function.record.chooses:
                continue
            if origin.over is None:
                whole = table.aggregate(answers[origin.column], level)
                flags = says_nothing(table, answers[origin.column], whole)
            else:
                ratio = table.ratio(answers[origin.column], answers[origin.over], level)
                if ratio is None:
                    continue
                whole = ratio
                flags = [math.isinf(a) and math.isinf(b) for a, b in zip(whole.low, whole.high, strict=True)]
            low, high, nothing = (self._rows_of(column, origin) for column in (whole.low, whole.high, flags))
            if origin.expression != _SAME:
                low, high = _through(origin.expression, low), _through(origin.expression, high)
                pairs = zip(low, self.column(name), strict=True)
                low = [None if value is None else end for end, value in pairs]
            yield name, [_ordered(a, b) for a, b in zip(low, high, strict=True)], nothing

    def _level_of_each(self, level: float) -> float:
        """Return the level of the interval of one row (`lineage` says why)."""
        return 1 - (1 - level) / (self.among or 1)

    def _rows_of(self, column: list[Any], origin: Origin) -> list[Any]:
        """Return, for each row, what a column of the noisy table has in its line."""
        found = [None if line is None else column[line] for line in self.lines or ()]
        if not origin.item:
            return found
        pairs = zip(found, self.items or (), strict=True)
        return [None if several is None else several[item] for several, item in pairs]

    def _source(self) -> tuple[NoisyTable | None, dict[str, Answer]]:
        """Return the noisy table that rows are of, and how its aggregates are answered."""
        table = next((table for table in self.tables if table.name == self.source), None)
        return table, {} if table is None else {answer.name: answer for answer in table.answers}

    def remarks(self, level: float = 0.95) -> tuple[str, ...]:
        """Return the notes, and which columns say nothing in some rows, with an epsilon that would help."""
        table, answers = self._source()
        found = []
        for name, flags in self.no_information(level).items():
            origin = self.origins[self.columns.index(name)]
            rows = rows_flagged(flags)
            if not rows or origin is None or table is None or self.lines is None:
                continue
            note = f"no information at this budget: `{name}`, in {len(rows)} of {len(self.rows)} rows"
            lines = [line for row in rows if (line := self.lines[row]) is not None]
            each = self._level_of_each(level)
            help_ = None if origin.over else helpful_factor(table, answers[origin.column], lines, each)
            if help_ is not None and "epsilon" in self.cost:
                factor, helped = help_
                where = "" if helped == len(rows) else f" in {helped} of them"
                note += f"; about epsilon {factor * float(self.cost['epsilon']):.2g} would help{where}"
            found.append(note)
        return (*self.notes, *found)

    def noise(self) -> dict[str, str]:
        """Return, for each column that is a released aggregate, the noise behind it in words."""
        table, answers = self._source()
        found = {}
        for name, origin in zip(self.columns, self.origins, strict=True):
            if table and origin and {origin.column, origin.over} <= {*answers, None}:
                parts = [answers[part] for part in (origin.column, origin.over) if part is not None]
                places = range(len(table.groups))
                words = [_words(table, answer, place) for answer in parts for place in places]
                found[name] = "; ".join(dict.fromkeys(words))
        return found

    # -- other forms --------------------------------------------------------------------

    def plot(
        self,
        y: str | None = None,
        *,
        x: str | None = None,
        by: str | None = None,
        kind: Literal["bars", "line"] | None = None,
        level: float = 0.95,
    ) -> Picture:
        """Return a picture of one column, each number with its interval; a notebook shows it.

        `y` is by default the first column with intervals, `x` the first one without, and `by` what is left:
        one series for each of its values. Numbers and dates along x make a line, all else makes bars; a
        histogram has one bar per bin. What an interval leaves open is not drawn.

        Drawing needs `sfumato[plots]`: `sfumato.plots.save(release.plot(), "n.svg")` writes a file, and
        `sfumato.plots.chart(release.plot())` is an Altair chart, to be changed further.
        """
        from sfumato.release.picture import picture

        return picture(self, y, x=x, by=by, kind=kind, level=level)

    def plot_levels(self, column: str | None = None, *, level: float = 0.95) -> Picture:
        """Return a picture of how far off each level of a consistent answer may be; a notebook shows it.

        Beside it stands the error that each level would have by its own measurement alone.
        """
        from sfumato.release.level_errors import level_picture

        return level_picture(self, column, level=level)

    def to_arrow(self, level: float | None = None) -> pyarrow.Table:
        """Return an Arrow table; with a level, intervals are in columns `name_low` and `name_high`."""
        return self.with_intervals(level).arrow()

    def with_intervals(self, level: float | None, only: Collection[str] | None = None) -> PlainTable:
        """Return plain columns; with a level, the ends of intervals beside their aggregates, or `only` some.

        A value whose interval covers all that it could be is then left empty: it says nothing.
        """
        columns, types = list(self.columns), list(self.types)
        values: list[list[Any]] = [[row[i] for row in self.rows] for i in range(len(columns))]
        for name, ends, flags in self._followed(level, only) if level is not None else ():
            place = columns.index(name)
            values[place] = list(map(informative, values[place], flags))
            for end in (1, 0):
                side = [None if pair is None else pair[end] for pair in ends]
                columns.insert(place + 1, f"{name}_{('low', 'high')[end]}")
                types.insert(place + 1, _end_type(types[place], side))
                values.insert(place + 1, side)
        return PlainTable(columns=tuple(columns), types=tuple(types), values=tuple(values))

    def to_pandas(self, level: float | None = None) -> pandas.DataFrame:
        """Return a pandas frame; whole numbers stay whole beside missing ones."""
        import pyarrow as pa

        pd = frame_library("pandas")
        plain = self.with_intervals(level)
        table = plain.arrow()
        kept = {pa.int64(): pd.Int64Dtype()} if any(c.null_count for c in table.itercolumns()) else {}
        frame = table.to_pandas(types_mapper=kept.get)
        for name, kind in zip(plain.columns, plain.types, strict=True):
            if kind == "HUGEINT":  # Arrow has decimals for whole numbers beyond 64 bits
                frame[name] = [None if value is None else int(value) for value in frame[name]]
        return frame

    def to_polars(self, level: float | None = None) -> polars.DataFrame:
        """Return a polars frame."""
        library = frame_library("polars")
        plain = self.with_intervals(level)
        table = plain.arrow()
        columns: list[Any] = []
        for name, kind, values in zip(plain.columns, plain.types, plain.values, strict=True):
            whole = kind == "HUGEINT"  # Arrow has decimals for whole numbers beyond 64 bits
            given = values if whole else table.column(len(columns))
            columns.append(library.Series(name, given, dtype=library.Int128 if whole else None))
        frame: polars.DataFrame = library.DataFrame(columns)
        return frame

    def document(self, *, level: float = 0.95) -> Page:
        """Return the answer as a page: all rows with intervals of a level, and pictures of them."""
        from sfumato.release.display import page

        return page(self, level)


def _through(expression: str, ends: list[Any]) -> list[Any]:
    """Put ends of intervals through the expression that their column went through; None if it fails there."""
    plain = PlainTable(columns=("x",), types=(widened(_kind_of(ends), ends),), values=(ends,))
    try:
        text = f"SELECT {expression} AS y FROM ends ORDER BY rowid"
        return query({"ends": plain}, text, finite=False).values[0]
    except QueryRefused:  # an end may fail where no value did
        return [None] * len(ends)


def _kind_of(ends: list[Any]) -> str:
    """Return the SQL type of values."""
    lists = any(isinstance(end, list) for end in ends)
    leaves = [leaf for end in ends for leaf in (end if isinstance(end, list) else [end])]
    single = "DOUBLE" if any(isinstance(leaf, float) for leaf in leaves) else "BIGINT"
    if any(isinstance(leaf, datetime.date) for leaf in leaves):
        single = "TIMESTAMP" if any(isinstance(leaf, datetime.datetime) for leaf in leaves) else "DATE"
    return f"{single}[]" if lists else single


def _end_type(kind: str, ends: list[Any]) -> str:
    """Return a type for ends of intervals of a column: an infinite end makes whole numbers real."""
    found = _kind_of(ends)
    return widened(found if found.startswith("DOUBLE") else kind.replace("HUGEINT", "BIGINT"), ends)


def _ordered(a: Any, b: Any) -> Interval | None:
    if a is None or b is None:
        return None
    if isinstance(a, list):
        pairs = [_ordered(x, y) or (None, None) for x, y in zip(a, b, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return (a, b) if a <= b else (b, a)


def _words(table: NoisyTable, answer: Answer, place: int) -> str:
    """Say what noise is behind an aggregate: its deviation in the units of a count or a sum."""
    noises = [table.noise(measure, place) for measure in answer.measures]
    noise, number = noises[0], len(noises)
    if answer.function.record.chooses and noise.row_rate is not None:
        rate = float(noise.row_rate / answer.weight)
        return f"chosen with a chance that falls by e^-{rate:.3g} for each row less"
    kinds = " and ".join(sorted({each.law.name.title() for each in noises}))
    fitted = table.groups[place].fitted
    if fitted is not None:
        worths = answer.function.record.linear(answer) or dict.fromkeys(answer.measures, answer.weight)
        parts = [
            float(worths[name]) * fitted[name].deviations.max() / fitted[name].parts
            for name in answer.measures
        ]
        return f"least squares of discrete {kinds}, deviation {math.hypot(*parts):.4g}"
    if number > 1:
        return f"discrete {kinds} on {number} sums"
    worth = answer.function.record.linear(answer) or {}
    unit = worth.get(noise.measure, answer.weight)
    words = f"discrete {kinds}, deviation {noise.deviation * float(unit):.4g}"
    return words if noise.levels == 1 else f"{words}, on {noise.levels} layers of {noise.branching}"
