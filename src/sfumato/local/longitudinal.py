"""The same question again: what a person who reports for years gives away, and how to bound it.

With fresh coins every day the epsilons of all days add up. Two rules bound the sum, each with a cap on how
often a phone ever draws a report from an answer:

    Memoised    a report is kept for every value, and used again when the value comes back
    Renewed     a new report is drawn by the calendar, whatever happened meanwhile

Over both, a protocol of two stages (`stages`) may hide that a kept report was used again.

What leaks is said here rather than later: under `Memoised` *when* a person's value changed can be seen, with
certainty if kept reports are sent as they are, and whether it changed back. Its guarantee compares histories
in which the same days have the same value as each other, and no others. Under `Renewed` any two histories
are protected, and reports are as old as the calendar makes them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.local.bits import bytes_for
from sfumato.local.odds import epsilon_of
from sfumato.local.protocol import FrequencyProtocol
from sfumato.local.shuffling import shown_above
from sfumato.local.stages import TwoStage

__all__ = ["LongitudinalPlan", "Memoised", "Memory", "Renewed", "Report", "Rule"]

Report = Mapping[str, int | str]
"""One report as it is sent: integers, and bits as lowercase hexadecimal digits."""
_Columns = dict[str, npt.NDArray[Any]]
_Answer = TypeVar("_Answer", int, npt.NDArray[np.int64])


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a phone keeps: its reports by key (a value, or a period), and which of them it used last.

    Whoever reads it learns as much as from all reports that will ever be sent of it: it stays on the phone.

    >>> memory = Memory().with_report(3, {"value": 1})
    >>> memory.to_dict()
    {'kept': {'3': {'value': 1}}, 'last': 3}
    >>> Memory.from_dict(memory.to_dict()) == memory
    True
    """

    kept: tuple[tuple[int, Report], ...] = ()
    last: int | None = None

    def report(self, key: int) -> Report | None:
        """Return what was kept under a key."""
        return next((report for known, report in self.kept if known == key), None)

    def with_report(self, key: int, report: Report) -> Memory:
        """Return the memory that holds one more, which is then the last one used."""
        return Memory(kept=(*self.kept, (key, dict(report))), last=key)

    def used(self, key: int) -> Memory:
        """Return the memory in which a kept report was used last."""
        return Memory(kept=self.kept, last=key)

    def to_dict(self) -> dict[str, Any]:
        """Return what a phone stores, JSON-ready."""
        return {"kept": {str(key): dict(report) for key, report in self.kept}, "last": self.last}

    @classmethod
    def from_dict(cls, stored: Any) -> Memory:
        """Read what was stored; anything else is refused, for a lost memory means a second draw."""
        try:
            pairs = tuple((int(key), dict(report)) for key, report in stored["kept"].items())
            last = stored["last"]
            sound = last in dict(pairs) if pairs else last is None
            sound &= all(type(item) in (int, str) for _, report in pairs for item in report.values())
        except (AttributeError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise InvalidArgument(
                "this is not a memory that was stored here",
                place="memory",
                hints=("starting afresh draws again, and costs epsilon again",),
            )
        return cls(kept=pairs, last=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule(ABC):
    protocol: FrequencyProtocol
    cap: int
    """How many reports a phone ever draws from its answers."""

    def __post_init__(self) -> None:
        count(self.cap, "cap")

    @abstractmethod
    def key(self, answer: _Answer, day: int) -> _Answer | int:
        """Return under what a report is kept: of one answer, or of an array of them."""

    @abstractmethod
    def plan(self, days: int, changes: int = 0) -> LongitudinalPlan:
        """Return what `days` days cost a person whose answer changed `changes` times."""

    def step(self, memory: Memory, answer: int, day: int = 0) -> tuple[Memory, Report]:
        """Return one phone's memory after a day, and the report it sends."""
        key = int(self.key(int(self._answers(np.array([answer]))[0]), count(day, "day", least=0)))
        if (kept := memory.report(key)) is not None:
            memory = memory.used(key)
        elif len(memory.kept) < self.cap or memory.last is None:
            kept = self._one(self._keep(np.array([answer])))
            memory = memory.with_report(key, kept)
        else:
            kept = memory.report(memory.last)
        if kept is None:
            raise InvalidArgument("the last report is missing from the memory", place="memory")
        return memory, self._one(self._send(self._columns(kept)))

    def reports(self, histories: npt.NDArray[Any]) -> list[_Columns]:
        """Return each day's reports of many simulated people: a row of `histories` is a person."""
        given = np.asarray(histories)
        if given.ndim != 2:
            raise InvalidArgument(
                "histories must have a row per person and a column per day", place="histories"
            )
        people, days = given.shape
        given = self._answers(given.ravel()).reshape(people, days)
        slots = min(self.cap, days)
        keys = np.full((people, slots), -1, dtype=np.int64)
        drawn, last = np.zeros(people, dtype=np.int64), np.zeros(people, dtype=np.int64)
        kept: _Columns = {}
        everyone, sent = np.arange(people), []
        for day in range(days):
            today = np.broadcast_to(self.key(given[:, day], day), people)
            match = keys == today[:, None]
            known = match.any(axis=1)
            fresh = np.flatnonzero(~known & (drawn < slots))
            last[known] = match[known].argmax(axis=1)
            last[fresh] = drawn[fresh]
            drawn[fresh] += 1
            keys[fresh, last[fresh]] = today[fresh]
            for name, column in self._keep(given[fresh, day]).items():
                if name not in kept:
                    kept[name] = np.zeros((people, slots, *column.shape[1:]), dtype=column.dtype)
                kept[name][fresh, last[fresh]] = column
            sent.append(self._send({name: column[everyone, last] for name, column in kept.items()}))
        return sent

    def _answers(self, answers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return self.protocol._answers(answers)  # before anything is kept under them

    def _keep(self, answers: npt.NDArray[Any]) -> _Columns:
        return (
            self.protocol.keep(answers)
            if isinstance(self.protocol, TwoStage)
            else self.protocol.randomise(answers)
        )

    def _send(self, kept: _Columns) -> _Columns:
        return self.protocol.send(kept) if isinstance(self.protocol, TwoStage) else kept

    def _one(self, columns: _Columns) -> Report:
        return {
            name: columns[name][0].tobytes().hex() if kind == "bits" else int(columns[name][0])
            for name, kind in self.protocol.fields.items()
        }

    def _columns(self, report: Report) -> _Columns:
        """Read one report back as columns of one row."""
        columns: _Columns = {}
        for name, kind in self.protocol.fields.items():
            item = report[name]
            if kind == "bits":
                columns[name] = np.frombuffer(bytes.fromhex(str(item)), dtype=np.uint8).reshape(1, -1)
                if columns[name].shape[1] != bytes_for(self.protocol.size):
                    raise InvalidArgument("a kept report has another size than this survey's", place="memory")
            else:
                columns[name] = np.array([int(item)], dtype=np.int64)
        return columns

    def _ratios(self) -> tuple[Fraction, Fraction | None]:
        if isinstance(self.protocol, TwoStage):
            return self.protocol.lifetime_ratio, self.protocol.instant_ratio
        return self.protocol.max_ratio, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memoised(_Rule):
    """A report for every value, drawn when the value is first held and used again ever after.

    A phone does, every day:
    1. if it keeps a report of today's value, takes that;
    2. else, if it keeps fewer than `cap` reports, randomises the value and keeps the result under it;
    3. else takes the report that it used last, as if nothing had changed;
    4. sends what it took: as it is, or with fresh coins over it (`TwoStage.send`).

    Step 3 could be silence instead; but silence would tell on which day a further value was first held,
    and leave a sample of people who seldom change. A repeated report tells neither, is one of those paid
    for, and makes estimates lag for people beyond their cap.

    Theorem: what is sent is a function of at most `cap` independent draws, of the pattern of changes (on
    which days the value was the same) and of coins that depend on nothing else. So for two histories with
    the same pattern no ratio of probabilities is above max_ratio^(values held, at most cap); without a
    second stage that is attained. For an answer that never changes it is one epsilon, for ever.
    Assumes: the pattern is not what needs protection. Between histories of different patterns there is
    no bound: two different reports prove a change. With a second stage each day on which another kept
    report is used costs instant_ratio at most, which is not little.
    """

    def key(self, answer: _Answer, day: int) -> _Answer:
        """The value."""
        return answer

    def plan(self, days: int, changes: int = 0) -> LongitudinalPlan:
        """Return what `days` days cost a person whose answer changed `changes` times."""
        permanent, instant = self._ratios()
        return LongitudinalPlan(
            rule="value", permanent=permanent, instant=instant, days=days, changes=changes, cap=self.cap
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed(_Rule):
    """A new report every `every` days, `cap` times at most, whatever happens to the value in between.

    A phone does, every day:
    1. takes the number of today's period, which is the day's number // `every`;
    2. if it keeps a report of that period, takes that;
    3. else, if it keeps fewer than `cap` reports, randomises today's value and keeps that under the period;
    4. else takes the report that it used last;
    5. sends what it took: as it is, or with fresh coins over it (`TwoStage.send`).

    Theorem: each kept report depends on the value of one day, which the calendar and not the value chose;
    at most `cap` are drawn, so that for *any* two histories no ratio of probabilities is above
    max_ratio^cap, and this is attained. When a value changed cannot be told any better than its values.
    Assumes: whether a phone takes part on a day does not depend on its value.
    """

    every: int = 1

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        count(self.every, "every")

    def key(self, answer: _Answer, day: int) -> int:
        """The number of the period."""
        return day // self.every

    def plan(self, days: int, changes: int = 0) -> LongitudinalPlan:
        """Return what `days` days cost; changes do not matter."""
        permanent, instant = self._ratios()
        return LongitudinalPlan(
            rule="calendar", permanent=permanent, instant=instant, days=days, changes=changes, cap=self.cap,
            every=self.every,
        )  # fmt: skip


Rule = Memoised | Renewed
"""Either way of keeping reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalPlan:
    """What `days` days of a survey cost a person whose answer changed `changes` times.

    >>> plan = LongitudinalPlan(rule="value", permanent=Fraction(3), days=365, changes=4, cap=3)
    >>> plan.draws, plan.ratio, plan.worst_epsilon
    (3, Fraction(27, 1), inf)
    >>> print(LongitudinalPlan(rule="calendar", permanent=Fraction(3), days=365, cap=3, every=30))
    365 days cost epsilon 3.296: 3 reports are drawn, by the calendar. It holds for any two histories.
    """

    rule: Literal["value", "calendar"]
    permanent: Fraction
    """The exact e^epsilon of one kept report."""
    days: int
    cap: int
    changes: int = 0
    every: int = 1
    instant: Fraction | None = None
    """The largest ratio of a fresh report under two kept ones; None if kept ones are sent as they are."""

    def __post_init__(self) -> None:
        for name in ("days", "cap", "every"):
            count(getattr(self, name), name)
        count(self.changes, "changes", least=0)
        if self.rule not in ("value", "calendar"):
            raise InvalidArgument("the rule must be value or calendar", place="rule")
        if self.permanent < 1 or (self.instant is not None and self.instant < 1):
            raise InvalidArgument("a ratio of probabilities is at least 1", place="permanent")

    @property
    def draws(self) -> int:
        """How many reports are drawn from answers, at most."""
        periods = self.changes + 1 if self.rule == "value" else -(-self.days // self.every)
        return min(self.cap, periods, self.days)

    @property
    def ratio(self) -> Fraction:
        """The e^epsilon between histories of one pattern (`Memoised`); by the calendar, any histories."""
        return self.permanent**self.draws

    @property
    def epsilon(self) -> float:
        """The epsilon between histories of one pattern. Rounds: up."""
        return epsilon_of(self.ratio)

    @property
    def worst_ratio(self) -> Fraction | None:
        """The e^epsilon between any two histories at all; None where there is no bound.

        Theorem: given all that is or would be kept, a day's report has a ratio of at most instant.
        With one draw, or on one day, only one value is ever looked at.
        """
        if self.rule == "calendar" or min(self.cap, self.days) == 1 or self.permanent == 1:
            return self.ratio if self.rule == "calendar" else self.permanent
        return None if self.instant is None else self.instant**self.days

    @property
    def worst_epsilon(self) -> float:
        """The epsilon between any two histories at all. Rounds: up."""
        return math.inf if self.worst_ratio is None else epsilon_of(self.worst_ratio)

    def __str__(self) -> str:
        drawn = "1 report is drawn" if self.draws == 1 else f"{self.draws} reports are drawn"
        if self.rule == "calendar":
            return (
                f"{self.days} days cost epsilon {shown_above(self.epsilon)}: {drawn}, by the calendar. "
                "It holds for any two histories."
            )
        changes = "1 change" if self.changes == 1 else f"{self.changes} changes"
        any_ = (
            "there is no bound" if self.worst_ratio is None else f"epsilon {shown_above(self.worst_epsilon)}"
        )
        return (
            f"{self.days} days with {changes} cost epsilon {shown_above(self.epsilon)}: {drawn}. "
            f"It holds for histories that differ in nothing but which value is which; for any two: {any_}."
        )
