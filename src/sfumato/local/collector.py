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

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import count
from sfumato.core.mechanism import confidence
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array
from sfumato.local.means import MeanProtocol
from sfumato.local.prefix_tree import PrefixTree
from sfumato.local.protocol import Columns, FrequencyProtocol, Protocol
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, YesNo
from sfumato.local.reports import Batch, Reader, array_of, arrow_of
from sfumato.local.results import Result, on_simplex
from sfumato.local.seen import Seen
from sfumato.local.survey import Survey

__all__ = ["Collector", "Sieve", "collect", "influence"]

_MOVED = "shares were moved to where none is negative and all add up to one"
_OUTSIDE = "noise pushed some shares below 0 or above 1, so that none is biased; --simplex moves them back"
_REASONS = ("malformed", "another survey", "another day", "impossible", "duplicates", "too many")


class Collector:
    """The totals of one survey; of a repeated one, those of one `day`.

    Days are collected apart: reports that are kept and sent again are no further evidence, and limits that
    took them for it would be wrong.

    >>> import pyarrow
    >>> from sfumato.local.questions import YesNo
    >>> survey = Survey.plan("s", YesNo(words="Really?"), epsilon=1)
    >>> reports = {"survey": [survey.fingerprint] * 2, "id": ["0" * 32] * 2, "value": [1, 1]}
    >>> collector = Collector(survey)
    >>> collector.add(pyarrow.table(reports))
    >>> collector.counted, collector.dropped["duplicates"]
    (1, 1)
    """

    def __init__(self, survey: Survey, *, day: int | None = None) -> None:
        if not isinstance(survey, Survey):
            raise InvalidArgument("a survey is wanted here", place="survey", hints=("Survey.read(path)",))
        if not isinstance(survey.protocol, (FrequencyProtocol, MeanProtocol)):
            raise InvalidArgument(
                "the answers of this survey cannot be listed, so that reports are read more than once",
                place="survey",
                hints=("use collect, which reads them as often as it must",),
            )
        self.survey = survey
        self.counted = 0
        self.dropped = dict.fromkeys(_REASONS, 0)
        self._protocol = survey.protocol
        self._reader = Reader(survey.protocol, survey.fingerprint, _day(survey, day))
        self._sieve = Sieve(survey)
        self._totals: Array | None = None

    def add(self, *sources: Any) -> None:
        """Count the reports of files (.jsonl, .parquet, .arrow), of '-' (standard input) or of Arrow data."""
        for source in sources:
            for batch in self._reader.read(source):
                self._count(self._sieve.sift(batch, self.dropped))

    def _count(self, reports: Columns) -> None:
        number = len(next(iter(reports.values())))
        totals = self._protocol.collect(reports)
        self._totals = totals if self._totals is None else self._totals + totals
        self.counted += number

    def __repr__(self) -> str:
        dropped = sum(self.dropped.values())
        return f"<collector of {self.survey.name!r}: {self.counted:,} reports counted, {dropped:,} not>"

    @property
    def influence(self) -> float:
        """The most by which one report moves an estimate that n reports make: a share, or an average."""
        return influence(self.survey, max(1, self.counted))

    def result(self, level: float = 0.95, *, simplex: bool = False) -> Result:
        """Return the estimates, with limits that hold with probability `level` each.

        With `simplex`, shares are moved to where none is negative and all add up to one: post-processing,
        and said so. Limits stay as they are.
        """
        protocol, level = self.survey.protocol, float(confidence(level))
        totals = self._totals
        if totals is None:
            totals = protocol.collect(self._reader.empty())
        if isinstance(protocol, MeanProtocol):
            if simplex:
                raise InvalidArgument("an average is not a list of shares", place="simplex")
            mean = protocol.mean(totals, level)
            return self._result(
                "average", ("average",), mean.value, mean.low, mean.high, mean.deviation, level
            )
        assert isinstance(protocol, FrequencyProtocol)
        shares = protocol.shares(totals, self.counted, level)
        values = shares.values
        more: tuple[str, ...] = ()
        if simplex:
            if isinstance(self.survey.question, SeveralOf):
                raise InvalidArgument(
                    "who may give several answers has shares that do not add up to one", place="simplex"
                )
            if self.counted:
                values, more = on_simplex(values), (_MOVED,)
        elif ((values < 0) | (values > 1)).any():
            more = (_OUTSIDE,)
        return self._result(
            "share", _names(self.survey), values, shares.low, shares.high, shares.deviations, level, more
        )

    def _result(
        self,
        what: str,
        answers: tuple[str, ...],
        values: npt.ArrayLike,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        deviations: npt.ArrayLike,
        level: float,
        notes: tuple[str, ...] = (),
    ) -> Result:
        return Result(
            title=self.survey.question.words,
            what=what,
            answers=answers,
            values=np.atleast_1d(np.asarray(values, dtype=np.float64)),
            low=np.atleast_1d(np.asarray(low, dtype=np.float64)),
            high=np.atleast_1d(np.asarray(high, dtype=np.float64)),
            deviations=np.atleast_1d(np.asarray(deviations, dtype=np.float64)),
            level=level,
            counted=self.counted,
            dropped=dict(self.dropped),
            notes=(*self._notes(), *notes),
        )

    def _notes(self) -> tuple[str, ...]:
        survey = self.survey
        notes = [
            f"each report is {float(survey.epsilon):g}-private by itself ({survey.protocol.name})",
            "limits hold for the population of which respondents are a random sample, and so for themselves",
        ]
        if not self.counted:
            notes.append("no report was counted, so nothing is known")
        if self._reader.unread:
            notes.append(
                f"{self._reader.unread:,} files in the folders were not read: broken, or of another ending"
            )
        if self.counted:
            notes.append(f"one report moves a number by {self.influence:.3g} at most, whatever it says")
        if isinstance(survey.question, NumberIn):
            notes.append(f"answers were clamped to {survey.question.low} .. {survey.question.high}")
        if isinstance(survey.question, SeveralOf):
            notes.append(f"of each person at most {survey.question.most} answers were heard")
        return tuple(notes)


def collect(
    survey: Survey, sources: Any, *, level: float = 0.95, simplex: bool = False, day: int | None = None
) -> Result:
    """Return what all reports in some files, folders or tables say; of a repeated survey, those of a day.

    Of texts, those that reports prove to be held; as reports are read once for each length of a
    beginning, they are kept in a temporary file meanwhile, and not in memory.
    """
    sources = sources if isinstance(sources, (list, tuple)) else [sources]
    if isinstance(survey, Survey) and isinstance(survey.protocol, PrefixTree):
        if simplex:
            raise InvalidArgument("shares of what was found do not add up to one", place="simplex")
        return _common(survey, survey.protocol, sources, float(confidence(level)), _day(survey, day))
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


def _common(
    survey: Survey, tree: PrefixTree, sources: Iterable[Any], level: float, day: int | None
) -> Result:
    import tempfile

    import pyarrow
    from pyarrow import ipc

    reader, sieve = Reader(tree, survey.fingerprint, day), Sieve(survey)
    dropped = dict.fromkeys(_REASONS, 0)
    counted = 0
    with tempfile.TemporaryFile() as kept:
        schema = pyarrow.schema({name: _kind(tree, name) for name in tree.fields})
        with ipc.new_stream(kept, schema) as stream:
            for source in sources:
                for batch in reader.read(source):
                    reports = sieve.sift(batch, dropped)
                    counted += len(reports["level"])
                    stream.write_batch(
                        pyarrow.record_batch([arrow_of(reports[name]) for name in tree.fields], schema)
                    )

        def read() -> Iterator[Columns]:
            kept.seek(0)
            for batch in ipc.open_stream(kept):
                yield {name: array_of(batch.column(name)) for name in tree.fields}

        found = tree.find(read, level=level) if counted else None
    notes = [
        f"each report is {float(survey.epsilon):g}-private by itself ({tree.name})",
        f"texts count up to {tree.length} bytes",
    ]
    if found is not None:
        notes.append(
            f"limits hold for all of them at once; one report moves a share by {found.one_report:.3g}"
        )
    nothing = np.zeros(0)
    return Result(
        title=survey.question.words,
        what="share",
        answers=() if found is None else found.texts,
        values=nothing if found is None else found.shares.values,
        low=nothing if found is None else found.shares.low,
        high=nothing if found is None else found.shares.high,
        deviations=nothing if found is None else found.shares.deviations,
        level=level,
        counted=counted,
        dropped=dropped,
        notes=tuple(notes),
    )


def _kind(protocol: Protocol, name: str) -> Any:
    import pyarrow

    integer = protocol.fields[name] == "integer"
    return pyarrow.int64() if integer else pyarrow.binary(protocol.octets(name))


class Sieve:
    """What of a batch may be counted."""

    def __init__(self, survey: Survey) -> None:
        self._protocol = survey.protocol
        self._most = survey.reports
        self._seen = Seen()

    def sift(self, batch: Batch, dropped: dict[str, int]) -> Columns:
        """Return the reports to count; note why others are not."""
        dropped["malformed"] += batch.malformed
        reports, numbers = batch.fields, batch.numbers
        for reason in _REASONS[1:]:
            match reason:
                case "another survey":
                    keep = batch.ours
                case "another day":
                    keep = batch.today[batch.ours]
                case "impossible":
                    keep = self._protocol.valid(reports)
                case "duplicates":
                    keep = self._seen.new(numbers)
                case _:
                    keep = np.arange(len(numbers)) < self._most - len(self._seen)
            dropped[reason] += len(keep) - int(np.count_nonzero(keep))
            reports, numbers = {name: column[keep] for name, column in reports.items()}, numbers[keep]
        self._seen.put(numbers)
        return reports


def influence(survey: Survey, reports: int) -> float:
    """Return the most by which one of so many reports moves an estimate."""
    protocol = survey.protocol
    if isinstance(protocol, FrequencyProtocol):
        return 1 / (reports * float(protocol.p - protocol.q))
    assert isinstance(protocol, MeanProtocol)
    return float((protocol.high - protocol.low) * protocol.largest_report) / reports


def _names(survey: Survey) -> tuple[str, ...]:
    question = survey.question
    assert isinstance(question, (YesNo, OneAnswer))
    return question.answers or tuple(map(str, range(question.size)))
