"""What a stream has published: each period by itself, running totals, windows, differences and trends.

All of it is post-processing of the outputs, which are integers in fine steps. An answer is read off a sum of
outputs, rounded to whole units; its interval is that of Gaussian noise of the deviation that this sum has
(`series.deviation`: periods share noise), and of the rounding.

Theorem. Let an error be normal of deviation s > 0, and be rounded to whole units. It is beyond a whole number
h with no larger chance than discrete Gaussian noise Y of parameter v = s^2 + 1/4 is, for every h >= 0.

Proof. Write q_k for the chance that the rounded error is k, p_k for that of Y = k, and L(k) for log(p_k /
q_k), for real k >= 0. Both are symmetric and sum to 1, so it is enough that p - q changes its sign once on k
>= 0, from minus to plus. q_k is proportional to exp(-k^2 / 2s^2) times the integral of exp(-k y / s^2 - y^2 /
2s^2) over |y| <= 1/2. So L'(k) = k (1/s^2 - 1/v) - m(k) / s^2, where m(k) is the mean of a normal variable of
mean k and deviation s, given that it is within 1/2 of zero: m(0) = 0, m(k) <= 1/2, and m'(k) is the variance
of that variable over s^2, at most 1 / (pi^2 s^2) (Payne and Weinberger 1960: its density is log-concave, on
an interval of length 1). L'(k) >= 0 is the same as m(k) <= k / (1 + 4 s^2).
  If s^2 >= 0.171, then m(k) <= k / (pi^2 s^2) <= k / (1 + 4 s^2): L rises for all k >= 0.
  If s^2 <= 0.25, then m(k) <= 1/2 <= k / (1 + 4 s^2) for k >= 1: L rises from k = 1 on, and p_0 < q_0. For
  p_0 falls where v grows, and q_0 where s does: if s <= 0.3, p_0 < 0.787 (its value at v = 1/4) and q_0 >
  0.9; else v >= 0.34, p_0 < 0.6826 and q_0 > 0.6826 (its value at s = 1/2 is 0.68269).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.continual.appearing_keys import WithEarlier
from sfumato.continual.periods import Moment, moment
from sfumato.continual.pricing import PricedStream
from sfumato.continual.series import deviation, period_deviations, total_deviations
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.pages import Page, Presentable
from sfumato.plan.options import DEFAULT_OPTIONS
from sfumato.plan.outline import labels
from sfumato.release import NoisyGroups, Release, publish, tabulate
from sfumato.release.answers import NoisyTable
from sfumato.release.storage import decode

if TYPE_CHECKING:
    import pyarrow

    from sfumato.plots import Picture

__all__ = ["Span", "StreamRelease"]

Span = int | Moment | tuple[int | Moment, int | Moment]
"""A period, or the first and the last period of a window."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StreamRelease(Presentable):
    """The releases of a stream so far. Everything in it may be shown to anybody.

    Periods are named by their numbers, from 1, or by a date or moment in them.
    """

    stream: PricedStream
    outputs: Mapping[int, Mapping[str, Any]]  # by period; one that was skipped is not in it
    taken: int  # how many periods are over, and were published or skipped
    public: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def read(
        stream: PricedStream,
        outputs: Mapping[int, Mapping[str, Any]],
        taken: int,
        public: Mapping[str, Any],
    ) -> StreamRelease:
        """Return the releases that were stored."""
        shown = outputs if stream.rule is None else WithEarlier(outputs)
        return StreamRelease(stream=stream, outputs=shown, taken=taken, public=public)

    def __len__(self) -> int:
        return self.taken

    @property
    def skipped(self) -> tuple[str, ...]:
        """The periods that were skipped, by their names: their computation failed, and is not tried again."""
        numbers = range(1, self.taken + 1)
        return tuple(self.stream.periods.name(number) for number in numbers if number not in self.outputs)

    def period(self, at: int | Moment) -> Release:
        """Return the answer about one period."""
        number = self._number(at)
        return self._published([number], notes=(f"{self._said(number, number)} alone",))

    def total(self, at: int | Moment | None = None) -> Release:
        """Return the running total up to a period, that included; None: the newest one."""
        number = self.taken if at is None else self._number(at)
        return self.window(1, number)

    def window(self, first: int | Moment, last: int | Moment) -> Release:
        """Return the answer about all periods from one to another, both included."""
        begin, end = self._ends((first, last))
        return self._published(range(begin, end + 1), notes=(f"{self._said(begin, end)}, added up",))

    def difference(self, first: Span, second: Span) -> Release:
        """Return by how much counts and sums of a second period, or window, are above those of a first one.

        A window is a pair: `difference((1, 7), (8, 14))` compares two weeks. The errors of periods are
        correlated, and the interval is that of this difference. A mean or a ratio has none here: the
        difference of two ratios is not a ratio of differences.
        """
        (one, until), (other, end) = self._ends(first), self._ends(second)
        weights = dict.fromkeys(range(one, until + 1), -1)
        for number in range(other, end + 1):
            weights[number] = weights.get(number, 0) + 1
        said = f"{self._said(other, end)}, less {self._said(one, until)}"
        return self._compared(weights, notes=(said,))

    def trend(self, first: int | Moment | None = None, last: int | Moment | None = None) -> Release:
        """Return by how much counts and sums rise from period to period: the slope of a straight line.

        The line is that of least squares through the exact numbers of all published periods from one to
        another, all of them unless given. It is a statistic of the data, whatever shape they have; the
        interval is that of the noise in it, which periods share.
        """
        begin = 1 if first is None else self._number(first)
        end = self.taken if last is None else self._number(last)
        numbers = [number for number in range(begin, end + 1) if number in self.outputs]
        if len(numbers) < 2:
            raise InvalidArgument("a trend needs two published periods at least", place="trend")
        many, total = len(numbers), sum(numbers)
        below = many * sum(number * number for number in numbers) - total**2
        common = math.gcd(below, *(many * number - total for number in numbers))
        weights = {number: (many * number - total) // common for number in numbers}
        said = f"the slope per {self.stream.periods.every}, {self._said(begin, end)}"
        notes = (said, *self._missing(end - begin + 1 - many, end - begin + 1))
        per = f"_per_{self.stream.periods.every}"
        return self._compared(weights, notes=notes, over=below // common, named=per)

    def series(self, *, totals: bool = True, level: float = 0.95) -> pyarrow.Table:
        """Return all running totals, or all periods, with their intervals, as one Arrow table."""
        import pyarrow

        tables = []
        for number, release in self.each(totals=totals):
            names = pyarrow.array([self.stream.periods.name(number)] * len(release), pyarrow.string())
            tables.append(release.to_arrow(level).add_column(0, self.stream.periods.every, names))
        if not tables:
            raise InvalidArgument("no period is published yet", place="series")
        return pyarrow.concat_tables(tables, promote_options="permissive")

    def each(
        self, *, totals: bool = True, among: Collection[int] | None = None
    ) -> Iterator[tuple[int, Release]]:
        """Yield every running total, or every period, that is published, with its number; or `among` some."""
        missing = set(range(1, self.taken + 1)) - set(self.outputs)
        factorisation, notes = self.stream.factorisation, ("one of a series",)
        deviations = (
            total_deviations(factorisation, self.taken, missing)
            if totals
            else period_deviations(factorisation, self.taken)
        )
        sums: dict[str, Any] = dict.fromkeys(self.stream.laws, 0)
        for number in sorted(self.outputs):
            own = {name: self._steps(name, number) for name in sums}
            sums = {name: sums[name] + steps for name, steps in own.items()} if totals else own
            if among is None or number in among:
                yield number, self._answered(sums, deviations[number - 1], number, notes=notes)

    def plot(
        self,
        y: str | None = None,
        *,
        totals: bool = True,
        groups: Sequence[Any] | None = None,
        level: float = 0.95,
    ) -> Picture:
        """Return a picture of one column over time, with a band for its intervals; a notebook shows it.

        Running totals, or each period by itself. `y` is by default the first column with intervals. Of many
        groups those are drawn whose newest numbers are largest, or the `groups` that are named by their keys.
        Periods that were not published are gaps.
        """
        from sfumato.continual.stream_picture import drawn_columns, pictures

        columns = [y] if y is not None else drawn_columns(self)[:1]
        return pictures(self, columns, totals=totals, groups=groups, level=level)[0]

    def document(self, *, level: float = 0.95) -> Page:
        """Return a report: the newest totals, pictures of all columns over time; `.html()` is its file."""
        from sfumato.continual.stream_page import stream_page

        return stream_page(self, level=level)

    def _number(self, at: int | Moment) -> int:
        number, periods = at if isinstance(at, int) else 0, self.stream.periods
        if not isinstance(at, int) and (when := moment(at, "period")) >= periods.start:
            number = periods.ended(when) + 1
        if not 1 <= number <= self.taken:
            raise InvalidArgument(
                "this period is not published",
                place="period",
                hints=(
                    f"{periods.said(self.taken)} are, from {periods.name(1)} on",
                    "advance publishes those that are over",
                ),
            )
        return number

    def _ends(self, span: Span) -> tuple[int, int]:
        """Return the first and the last period of a span."""
        first, last = span if isinstance(span, tuple) else (span, span)
        begin, end = self._number(first), self._number(last)
        if begin > end:
            raise InvalidArgument("a window ends after it begins", place="last")
        return begin, end

    def _said(self, first: int, last: int) -> str:
        periods = self.stream.periods
        return f"from {periods.begin(first).isoformat()} to before {periods.end(last).isoformat()} UTC"

    @staticmethod
    def _missing(missing: int, many: int) -> tuple[str, ...]:
        return (f"{missing} of {many} periods were skipped, and are missing in it",) if missing else ()

    def _published(self, numbers: Sequence[int], *, notes: tuple[str, ...]) -> Release:
        there = dict.fromkeys((number for number in numbers if number in self.outputs), 1)
        if not there:
            raise InvalidArgument("this period was skipped: its computation failed", place="period")
        notes = (*notes, *self._missing(len(numbers) - len(there), len(numbers)))
        return self._answered(*self._sums(there), max(there), notes=notes)

    def _compared(
        self, weights: Mapping[int, int], *, notes: tuple[str, ...], over: int = 1, named: str = ""
    ) -> Release:
        """Return a weighted sum of periods, divided by a whole number, of an answer that is linear in them.

        `named` is put behind the names of aggregates.
        """
        if any(answer.function.record.linear(answer) is None for answer in self.stream.bounding.answers):
            raise Unsupported(
                "differences and trends of answers that are no counts and no sums",
                hints=("compare the intervals of period(..), or stream counts and sums",),
            )
        if missing := [number for number in weights if number not in self.outputs]:
            message = (
                f"the period of {self.stream.periods.name(missing[0])} was skipped: its computation failed"
            )
            raise InvalidArgument(message, place="period")
        divide = partial(self._divided, over=over, named=named)
        return self._answered(*self._sums(weights), max(weights), notes=notes, divide=divide)

    def _sums(self, weights: Mapping[int, int]) -> tuple[dict[str, Any], float]:
        """Return weighted sums of periods in fine steps, and their deviation, where z has deviation 1."""
        row = np.zeros(max(weights))
        for number, weight in weights.items():
            row[number - 1] = weight
        sums = {
            name: sum(weight * self._steps(name, number) for number, weight in weights.items())
            for name in self.stream.laws
        }
        return sums, deviation(self.stream.factorisation, row)

    def _steps(self, measure: str, number: int) -> npt.NDArray[Any]:
        """Return the noisy integers of a measure in a period, in the finest steps: those of the newest."""
        coarser = self.stream.steps(measure, self.taken) // self.stream.steps(measure, number)
        return np.array(self.outputs[number]["measures"][measure], dtype=object) * coarser

    def _answered(
        self,
        sums: Mapping[str, Any],
        off: float,
        last: int,
        *,
        notes: tuple[str, ...],
        divide: Callable[[NoisyTable], str] | None = None,
    ) -> Release:
        """Return the answer that sums of fine steps make, as it was asked, or as `divide` says in SQL.

        `off` is the deviation of the sums, where z has deviation 1; `last` is the last period in them.
        """
        stream, request = self.stream, self.stream.request
        [named] = request.queries
        groups = NoisyGroups(
            grouping_set=stream.bounding.query.grouping_sets[0],
            keys=decode(self.outputs[last]["keys"]),
            measures={name: self._whole(name, steps) for name, steps in sums.items()},
            layers={},
        )
        table = tabulate(
            named.name,
            (groups,),
            stream.bounding,
            stream.cost_of_sum(off),
            options=request.options if divide is None else DEFAULT_OPTIONS,
            unknown=named.unknown,
        )
        return publish(
            (
                replace(table, basis=None, selected=stream.shown_if),
            ),  # no other question is about some periods
            request.postprocessing if divide is None else divide(table),
            public=self.public,
            cost=stream.cost_record(),
            notes=(*notes, *self._past_design(last), *self._told, *request.notes, *request.query_notes),
            labels={named.name: labels(named.query)},
            reported={named.name: named.reported if divide is None else ()},
        )

    def _divided(self, table: NoisyTable, *, over: int, named: str) -> str:
        """Return the SQL that divides aggregates of a noisy table, under the names that were asked for."""
        number, keys, names = repr(float(over)), len(table.keys), self.stream.names
        below = "" if over == 1 else f" / {number}{'' if 'e' in number else 'e0'}"  # a float, not a decimal
        parts = [
            f"{_quoted(column)} AS {_quoted(names.get(column, column))}"
            if place < keys
            else f"{_quoted(column)}{below} AS {_quoted(names.get(column, column) + named)}"
            for place, column in enumerate(table.columns)
        ]
        return f"SELECT {', '.join(parts)} FROM {_quoted(table.name)}"

    def _past_design(self, last: int) -> tuple[str, ...]:
        """What is said of an answer about periods past those that a stream without an end is designed for."""
        design = self.stream.periods.design
        if design is None or last <= design:
            return ()
        return (f"past the {design} periods that the stream is designed for: totals err more and more",)

    @property
    def _told(self) -> tuple[str, ...]:
        """What is said of every answer of a stream, from the plan alone."""
        stream = self.stream
        many, often = stream.periods.horizon, stream.participation.periods
        paid = f"all {many} periods" if stream.periods.design is None else "all periods, without an end,"
        told = [f"one charge pays for {paid} of stream `{stream.name}`: the cost is theirs"]
        late, every = stream.rows.late, stream.periods.every
        after = f"more than {late} {every}s after their own" if late else f"after their {every} was published"
        told.append(f"not in the intervals: rows that came {after}")
        if stream.capped:
            first = every if often == 1 else f"{often} {every}s"
            told.append(f"not in the intervals: rows of people beyond their first {first}")
        return (*told, *dict.fromkeys(loss.limits.unknown for loss in stream.question.losses))

    def _whole(self, measure: str, steps: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return integers in whole units, rounded from fine steps."""
        unit = self.stream.steps(measure, self.taken)
        whole = (2 * steps + unit) // (2 * unit)
        fits = all(abs(value) < 2**63 for value in whole.tolist())
        return np.asarray(whole.astype(np.int64) if fits else whole)


def _quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
