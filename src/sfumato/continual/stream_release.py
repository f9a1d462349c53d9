"""What a stream has published: each period by itself, running totals, windows and differences.

All of it is post-processing of the outputs, which are integers in fine steps. An answer is read off a sum of
outputs, rounded to whole units; its interval is that of Gaussian noise of the deviation that this sum has
(`series.deviation`: periods share noise), and of the rounding.

A sum whose error is Gaussian of deviation s, rounded to whole units, has an error of variance s^2 + 1/12. Its
interval is that of discrete Gaussian noise of variance s^2 + 1/4, which a test compares with the exact chance
for deviations from 0.05 to 50.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.continual.periods import Moment, moment
from sfumato.continual.pricing import PricedStream
from sfumato.continual.series import deviation
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_law import shortened
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.plan.outline import labels
from sfumato.release import NoisyGroups, Release, cost_record, publish, tabulate
from sfumato.release.lineage import shown_columns
from sfumato.release.storage import decode, load

if TYPE_CHECKING:
    import pyarrow

__all__ = ["StreamRelease"]

_ROUNDING = Fraction(1, 4)  # three times the variance of rounding
_FLOATS = 1 + 1e-9  # more than what floats round in a deviation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamRelease:
    """The releases of a stream so far. Everything in it may be shown to anybody.

    Periods are named by their numbers, from 1, or by a date or moment in them.
    """

    stream: PricedStream
    outputs: Mapping[int, Mapping[str, Any]]  # by period; one that failed is not in it
    taken: int  # how many periods are over, and were published or failed
    public: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def read(
        stream: PricedStream, outputs: Mapping[int, bytes], taken: int, public: Mapping[str, Any]
    ) -> StreamRelease:
        """Return the releases that were stored."""
        read = {number: load(stored.decode()) for number, stored in outputs.items()}
        return StreamRelease(stream=stream, outputs=read, taken=taken, public=public)

    def __len__(self) -> int:
        return self.taken

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
        begin, end = self._number(first), self._number(last)
        if begin > end:
            raise InvalidArgument("a window ends after it begins", place="last")
        return self._published(range(begin, end + 1), notes=(f"{self._said(begin, end)}, added up",))

    def difference(self, first: int | Moment, second: int | Moment) -> Release:
        """Return by how much counts and sums of a second period are above those of a first one.

        The errors of two periods are correlated, and the interval is that of their difference. A mean or a
        ratio has none here: the difference of two ratios is not a ratio of differences.
        """
        one, other = self._number(first), self._number(second)
        answers = self.stream.bounding.answers
        if any(answer.function.record.linear(answer) is None for answer in answers):
            raise Unsupported(
                "differences of answers that are no counts and no sums",
                hints=("compare the intervals of period(..), or stream counts and sums",),
            )
        signs = {other: 1, one: -1} if one != other else {one: 0}
        said = f"{self.stream.periods.name(other)} less {self.stream.periods.name(one)}"
        return self._combined(signs, notes=(said,), processed=False)

    def series(self, *, totals: bool = True, level: float = 0.95) -> pyarrow.Table:
        """Return all running totals, or all periods, with their intervals, as one Arrow table."""
        import pyarrow

        tables = []
        for number in self.outputs:
            release = self.total(number) if totals else self.period(number)
            names = pyarrow.array([self.stream.periods.name(number)] * len(release), pyarrow.string())
            tables.append(release.to_arrow(level).add_column(0, self.stream.periods.every, names))
        if not tables:
            raise InvalidArgument("no period is published yet", place="series")
        return pyarrow.concat_tables(tables, promote_options="permissive")

    def _number(self, at: int | Moment) -> int:
        number = at if isinstance(at, int) else 0
        if not isinstance(at, int) and (when := moment(at, "period")) >= self.stream.periods.start:
            number = self.stream.periods.ended(when) + 1
        if not 1 <= number <= self.taken:
            raise InvalidArgument(
                "this period is not published",
                place="period",
                hints=(f"{self.taken} periods are: advance publishes those that are over",),
            )
        return number

    def _said(self, first: int, last: int) -> str:
        periods = self.stream.periods
        return f"from {periods.begin(first).isoformat()} to before {periods.end(last).isoformat()} UTC"

    def _published(self, numbers: Sequence[int], *, notes: tuple[str, ...]) -> Release:
        there = {number: 1 for number in numbers if number in self.outputs}
        if not there:
            raise InvalidArgument("this period failed, and was never published", place="period")
        if missing := len(numbers) - len(there):
            notes = (*notes, f"{missing} of {len(numbers)} periods failed, and are missing in it")
        return self._combined(there, notes=notes, processed=True)

    def _combined(self, signs: Mapping[int, int], *, notes: tuple[str, ...], processed: bool) -> Release:
        """Return the answer about a sum of periods, each with its sign."""
        if missing := [number for number in signs if number not in self.outputs]:
            message = f"the period of {self.stream.periods.name(missing[0])} failed, and was never published"
            raise InvalidArgument(message, place="period")
        stream, request = self.stream, self.stream.request
        [named] = request.queries
        weights = np.zeros(max(signs))
        for number, sign in signs.items():
            weights[number - 1] = sign
        off = Fraction(deviation(stream.factorisation, weights) * _FLOATS) ** 2
        noises = tuple(
            replace(
                noise, law=GaussianNoise(shortened(noise.law.variance * off / stream.steps**2 + _ROUNDING))
            )
            for noise in stream.cost.noises
        )
        groups = NoisyGroups(
            grouping_set=stream.bounding.query.grouping_sets[0],
            keys=decode(self.outputs[max(signs)]["keys"]),
            measures={name: self._sum(name, signs) for name in stream.laws},
            layers={},
        )
        table = tabulate(
            named.name,
            (groups,),
            stream.bounding,
            replace(stream.cost, noises=noises),
            non_negative=processed and request.options.non_negative,
            unknown=named.unknown,
        )
        release = publish(
            (replace(table, basis=None),),  # it is about some periods, and no other question is
            request.postprocessing if processed else None,
            public=self.public,
            cost=cost_record(stream.cost),
            notes=(*notes, *self._told, *request.notes, *request.query_notes),
            labels={named.name: labels(named.query)},
            reported={named.name: named.reported},
        )
        return release if processed else replace(release, columns=self._names(release.columns))

    def _names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return what the question calls columns of its noisy table."""
        [named] = self.stream.request.queries
        asked = labels(named.query) | {
            column: name for name, column in shown_columns(self.stream.request).items()
        }
        return tuple(asked.get(name, name) for name in columns)

    @property
    def _told(self) -> tuple[str, ...]:
        """What is said of every answer of a stream, from the plan alone."""
        stream = self.stream
        horizon, often = stream.periods.horizon, stream.participation.periods
        told = [f"one charge pays for all {horizon} periods of stream `{stream.name}`: the cost is theirs"]
        if stream.capped:
            told.append(f"not in the intervals: rows of people beyond their first {often} periods")
        return (*told, *dict.fromkeys(loss.limits.unknown for loss in stream.question.losses))

    def _sum(self, measure: str, signs: Mapping[int, int]) -> npt.NDArray[Any]:
        """Return noisy integers of a measure in whole units, rounded from the sum of fine steps."""
        parts = [
            sign * np.array(self.outputs[number]["measures"][measure], dtype=object)
            for number, sign in signs.items()
        ]
        whole = (2 * np.sum(parts, axis=0) + self.stream.steps) // (2 * self.stream.steps)
        fits = all(abs(value) < 2**63 for value in whole.tolist())
        return np.asarray(whole.astype(np.int64) if fits else whole)

    def __repr__(self) -> str:
        periods = self.stream.periods
        head = f"stream `{self.stream.name}`: {self.taken} of {periods.horizon} {periods.every}s published"
        if not self.outputs:
            return head
        return f"{head}; the running total is\n{self.total()!r}"
