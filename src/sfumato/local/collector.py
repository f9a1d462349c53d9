"""The collector: reports in, estimates out. It never sees an answer, and never needs to be trusted with one.

Reports are read batch by batch and forgotten; what is kept is the totals of the protocol, and eight bytes
for each report that was counted, to know it again. Every report that came in is accounted for:

    malformed       not a report at all
    another survey  made for another survey, or another version of this one
    another day     of a repeated survey: made on another day than the one that is collected
    impossible      no phone that keeps to the protocol sends it
    duplicates      a report with this number was counted already
    too many        the survey counts no more

Whatever a counted report says, it moves a share by at most `influence`: people who do not keep to the
protocol can bend the result, but only so far.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
from pyarrow import ipc

from sfumato.core.arguments import count
from sfumato.core.mechanism import confidence
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Flags
from sfumato.local.means import MeanProtocol
from sfumato.local.prefix_tree import PrefixTree
from sfumato.local.protocol import Columns, FrequencyProtocol, Shares
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, YesNo
from sfumato.local.reports import Batch, Reader, array_of, arrow_of
from sfumato.local.results import Result, on_simplex
from sfumato.local.survey import Survey

__all__ = ["Collector", "Seen", "Sieve", "collect"]

_MOVED = "shares were moved to where none is negative and all add up to one"
_OUTSIDE = "noise pushed some shares below 0 or above 1, so that none is biased; --simplex moves them back"
_REASONS = ("malformed", "another survey", "another day", "impossible", "duplicates", "too many")
_Numbers = npt.NDArray[np.uint64]


class Seen:
    """A set of 64-bit numbers that only grows, in sorted runs, each at most half as long as the next.

    Eight bytes for each number, and no more than a logarithm of them to look through.
    """

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[_Numbers] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def new(self, numbers: _Numbers) -> Flags:
        """Flag the numbers that are not in, each where it first occurs.

        >>> seen = Seen()
        >>> seen.put(np.array([3, 5], dtype=np.uint64))
        >>> seen.new(np.array([5, 7, 7], dtype=np.uint64)).tolist()
        [False, True, False]
        """
        distinct, first = np.unique(numbers, return_index=True)
        new = np.ones(len(distinct), dtype=np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, distinct), len(run) - 1)
            new &= run[places] != distinct
        flags = np.zeros(len(numbers), dtype=np.bool_)
        flags[first[new]] = True
        return flags

    def put(self, numbers: _Numbers) -> None:
        """Take in numbers that are new."""
        run = np.sort(numbers)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        if len(run):
            self._runs.append(run)


class Sieve:
    """The reports of one survey that may be counted; of a repeated one, those of one `day`."""

    def __init__(self, survey: Survey, day: int | None = None) -> None:
        if not isinstance(survey, Survey):
            raise InvalidArgument("a survey is wanted here", place="survey", hints=("Survey.read(path)",))
        self.survey = survey
        self.counted = 0
        self.dropped = dict.fromkeys(_REASONS, 0)
        self._reader = Reader(survey.protocol, survey.fingerprint, _day(survey, day))
        self._seen = Seen()

    def sift(self, sources: Iterable[Any]) -> Iterator[Columns]:
        """Yield the reports to count, batch by batch; note why others are not."""
        for source in sources:
            for batch in self._reader.read(source):
                yield self._sifted(batch)

    def _sifted(self, batch: Batch) -> Columns:
        self.dropped["malformed"] += batch.malformed
        reports, numbers = batch.fields, batch.numbers
        for reason in _REASONS[1:]:
            match reason:
                case "another survey":
                    keep = batch.ours
                case "another day":
                    keep = batch.today[batch.ours]
                case "impossible":
                    keep = self.survey.protocol.valid(reports)
                case "duplicates":
                    keep = self._seen.new(numbers)
                case _:
                    keep = np.arange(len(numbers)) < self.survey.reports - len(self._seen)
            self.dropped[reason] += len(keep) - int(np.count_nonzero(keep))
            reports, numbers = {name: column[keep] for name, column in reports.items()}, numbers[keep]
        self._seen.put(numbers)
        self.counted += len(numbers)
        return reports

    def _result(self, what: str, answers: tuple[str, ...], shares: Shares, notes: Sequence[str]) -> Result:
        survey = self.survey
        private = f"each report is {float(survey.epsilon):g}-private by itself ({survey.protocol.name})"
        return Result(
            title=survey.question.words,
            what=what,
            answers=answers,
            values=shares.values,
            low=shares.low,
            high=shares.high,
            deviations=shares.deviations,
            level=shares.level,
            counted=self.counted,
            dropped=dict(self.dropped),
            notes=(private, *notes),
        )


class Collector(Sieve):
    """The totals of one survey; of a repeated one, those of one `day`.

    Days are collected apart: reports that are kept and sent again are no further evidence, and limits that
    took them for it would be wrong.

    >>> from sfumato.local.questions import YesNo
    >>> survey = Survey.plan("s", YesNo(words="Really?"), epsilon=1)
    >>> reports = {"survey": [survey.fingerprint] * 2, "id": ["0" * 32] * 2, "value": [1, 1]}
    >>> collector = Collector(survey)
    >>> collector.add(pyarrow.table(reports))
    >>> collector.counted, collector.dropped["duplicates"]
    (1, 1)
    """

    def __init__(self, survey: Survey, *, day: int | None = None) -> None:
        super().__init__(survey, day)
        if not isinstance(survey.protocol, (FrequencyProtocol, MeanProtocol)):
            raise InvalidArgument(
                "the answers of this survey cannot be listed, so that reports are read more than once",
                place="survey",
                hints=("use collect, which reads them as often as it must",),
            )
        self._protocol = survey.protocol
        self._totals = survey.protocol.collect(self._reader.empty())

    def add(self, *sources: Any) -> None:
        """Count the reports of files (.jsonl, .parquet, .arrow), of '-' (standard input) or of Arrow data."""
        for reports in self.sift(sources):
            self._totals += self._protocol.collect(reports)

    def __repr__(self) -> str:
        dropped = sum(self.dropped.values())
        return f"<collector of {self.survey.name!r}: {self.counted:,} reports counted, {dropped:,} not>"

    @property
    def influence(self) -> float:
        """The most by which one report moves an estimate that n reports make: a share, or an average."""
        protocol, reports = self._protocol, max(1, self.counted)
        if isinstance(protocol, MeanProtocol):
            return float((protocol.high - protocol.low) * protocol.largest_report) / reports
        return 1 / (reports * float(protocol.p - protocol.q))

    def result(self, level: float = 0.95, *, simplex: bool = False) -> Result:
        """Return the estimates, with limits that hold with probability `level` each.

        With `simplex`, shares are moved to where none is negative and all add up to one: post-processing,
        and said so. Limits stay as they are.
        """
        protocol, question, notes = self._protocol, self.survey.question, self._notes()
        if isinstance(protocol, MeanProtocol):
            if simplex:
                raise InvalidArgument("an average is not a list of shares", place="simplex")
            mean = protocol.mean(self._totals, float(confidence(level)))
            found = Shares(
                values=np.array([mean.value]), low=np.array([mean.low]), high=np.array([mean.high]),
                deviations=np.array([mean.deviation]), reports=mean.reports, level=mean.level,
            )  # fmt: skip
            return self._result("average", ("average",), found, notes)
        shares = protocol.shares(self._totals, self.counted, float(confidence(level)))
        if simplex:
            if isinstance(question, SeveralOf):
                raise InvalidArgument(
                    "who may give several answers has shares that do not add up to one", place="simplex"
                )
            if self.counted:
                shares = replace(shares, values=on_simplex(shares.values))
                notes.append(_MOVED)
        elif ((shares.values < 0) | (shares.values > 1)).any():
            notes.append(_OUTSIDE)
        assert isinstance(question, (YesNo, OneAnswer))
        return self._result("share", question.answers or tuple(map(str, range(question.size))), shares, notes)

    def _notes(self) -> list[str]:
        question = self.survey.question
        notes = [
            "limits hold for the population of which respondents are a random sample, and so for themselves",
            f"one report moves a number by {self.influence:.3g} at most, whatever it says"
            if self.counted
            else "no report was counted, so nothing is known",
        ]
        if unread := self._reader.unread:
            notes.append(f"{unread:,} files in the folders were not read: broken, or of another ending")
        if isinstance(question, NumberIn):
            notes.append(f"answers were clamped to {question.low} .. {question.high}")
        if isinstance(question, SeveralOf):
            notes.append(f"of each person at most {question.most} answers were heard")
        return notes


def collect(
    survey: Survey, sources: Any, *, level: float = 0.95, simplex: bool = False, day: int | None = None
) -> Result:
    """Return what all reports in some files, folders or tables say; of a repeated survey, those of a day.

    Of texts, those that reports prove to be held; as reports are read once for each length of a
    beginning, they are kept in a temporary file meanwhile, and not in memory.

    >>> from sfumato.local import YesNo
    >>> from sfumato.local.simulation import simulated
    >>> survey = Survey.plan("exams", YesNo(words="Have you ever cheated in an exam?"), epsilon=1)
    >>> reports = simulated(survey, {"yes": 0.3, "no": 0.7}, 10_000)
    >>> result = collect(survey, reports)
    >>> result.counted, bool(abs(result.values[1] - 0.3) < 0.2)
    (10000, True)
    """
    sources = sources if isinstance(sources, (list, tuple)) else [sources]
    if isinstance(survey, Survey) and isinstance(survey.protocol, PrefixTree):
        if simplex:
            raise InvalidArgument("shares of what was found do not add up to one", place="simplex")
        return _Texts(survey, day).result(survey.protocol, sources, float(confidence(level)))
    collector = Collector(survey, day=day)
    collector.add(*sources)
    return collector.result(level, simplex=simplex)


def _day(survey: Survey, day: int | None) -> int | None:
    """Return the day to collect, None if everyone is asked once."""
    if survey.cap is None:
        if day is not None:
            raise InvalidArgument("this survey is not repeated", place="day", hints=("leave the day out",))
        return None
    if day is None:
        raise InvalidArgument(
            "a repeated survey is collected day by day",
            place="day",
            hints=("give a day: reports that are sent again on another are no further evidence",),
        )
    return count(day, "day", least=0)


class _Texts(Sieve):
    """The common texts of one survey."""

    def result(self, tree: PrefixTree, sources: Iterable[Any], level: float) -> Result:
        with tempfile.TemporaryFile() as kept:
            none = pyarrow.record_batch({name: arrow_of(one) for name, one in self._reader.empty().items()})
            with ipc.new_stream(kept, none.schema) as stream:
                for reports in self.sift(sources):
                    arrays = [arrow_of(reports[name]) for name in none.schema.names]
                    stream.write_batch(pyarrow.record_batch(arrays, none.schema))

            def read() -> Iterator[Columns]:
                kept.seek(0)
                for batch in ipc.open_stream(kept):
                    yield {name: array_of(batch.column(name)) for name in tree.fields}

            found = tree.find(read, level=level) if self.counted else None
        notes = [f"texts count up to {tree.length} bytes"]
        if found is None:
            nothing = np.zeros(0)
            shares = Shares(
                values=nothing, low=nothing, high=nothing, deviations=nothing, reports=0, level=level
            )
            return self._result("share", (), shares, notes)
        notes.append(
            f"limits hold for all of them at once; one report moves a share by {found.one_report:.3g}"
        )
        return self._result("share", found.texts, found.shares, notes)
