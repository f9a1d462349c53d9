"""The same question again: what a person who reports for years gives away, and how to bound it.

With fresh coins every day the epsilons of all days add up. Two rules bound the sum, each with a cap on how
often a phone ever draws a report from an answer:

    Memoised    a report is kept for every value, and used again when the value comes back
    Renewed     a new report is drawn by the calendar, whatever happened meanwhile

Over both, a protocol of two stages (`stages`) may hide that a kept report was used again. The `client` keeps
the reports; here is what they cost. Both rules assume that every day asks the same question of the same
version. If a report kept for one question were sent for another, a second report that differs would prove
that the answers differ. The client refuses that.

What leaks is said here rather than later: under `Memoised` *when* a person's value changed can be seen, with
certainty if kept reports are sent as they are, and whether it changed back. Its guarantee compares histories
in which the same days have the same value as each other, and no others. Under `Renewed` any two histories
are protected, and reports are as old as the calendar makes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.arguments import count
from sfumato.core.exponential import log_above
from sfumato.local.protocol import FrequencyProtocol
from sfumato.local.shuffling import shown_above
from sfumato.local.stages import TwoStage

__all__ = ["LongitudinalPlan", "Memoised", "Renewed", "Rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    protocol: FrequencyProtocol
    cap: int
    """How many reports a phone ever draws from its answers."""

    def __post_init__(self) -> None:
        count(self.cap, "cap")

    def plan(self, days: int, changes: int = 0) -> LongitudinalPlan:
        """Return what `days` days cost a person whose answer changed `changes` times."""
        return LongitudinalPlan(rule=self, days=days, changes=changes)


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

    >>> from sfumato.local import KaryResponse
    >>> kept = Memoised(protocol=KaryResponse.coin_toss(), cap=2)
    >>> round(kept.plan(days=365, changes=0).epsilon, 3)  # one report, sent every day
    1.099
    """


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

    >>> from sfumato.local import KaryResponse
    >>> weekly = Renewed(protocol=KaryResponse.coin_toss(), cap=4, every=7)
    >>> round(weekly.plan(days=365).epsilon, 3)  # four reports, whatever happens
    4.394
    """

    every: int = 1

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        count(self.every, "every")


Rule = Memoised | Renewed
"""Either way of keeping reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalPlan:
    """What `days` days of a survey cost a person whose answer changed `changes` times.

    >>> from sfumato.local import KaryResponse
    >>> plan = Memoised(protocol=KaryResponse.coin_toss(), cap=3).plan(days=365, changes=4)
    >>> plan.draws, plan.ratio, plan.worst_epsilon
    (3, Fraction(27, 1), inf)
    >>> print(Renewed(protocol=KaryResponse.coin_toss(), cap=3, every=30).plan(days=365))
    365 days cost epsilon 3.296: 3 reports are drawn, by the calendar. It holds for any two histories.
    """

    rule: _Rule
    days: int
    changes: int = 0

    def __post_init__(self) -> None:
        count(self.days, "days")
        count(self.changes, "changes", least=0)

    @property
    def draws(self) -> int:
        """How many reports are drawn from answers, at most."""
        rule = self.rule
        periods = -(-self.days // rule.every) if isinstance(rule, Renewed) else self.changes + 1
        return min(rule.cap, periods, self.days)

    @property
    def ratio(self) -> Fraction:
        """The e^epsilon between histories of one pattern (`Memoised`); by the calendar, any histories."""
        return self.rule.protocol.lifetime_ratio**self.draws

    @property
    def epsilon(self) -> float:
        """The epsilon between histories of one pattern. Rounds: up."""
        return log_above(self.ratio)

    @property
    def worst_ratio(self) -> Fraction | None:
        """The e^epsilon between any two histories at all; None where there is no bound.

        Theorem: given all that is or would be kept, a day's report has a ratio of at most instant.
        With one draw, or on one day, only one value is ever looked at.
        """
        protocol, permanent = self.rule.protocol, self.rule.protocol.lifetime_ratio
        if isinstance(self.rule, Renewed):
            return self.ratio
        if min(self.rule.cap, self.days) == 1 or permanent == 1:
            return permanent
        return protocol.instant_ratio**self.days if isinstance(protocol, TwoStage) else None

    @property
    def worst_epsilon(self) -> float:
        """The epsilon between any two histories at all. Rounds: up."""
        return math.inf if self.worst_ratio is None else log_above(self.worst_ratio)

    def __str__(self) -> str:
        drawn = "1 report is drawn" if self.draws == 1 else f"{self.draws} reports are drawn"
        if isinstance(self.rule, Renewed):
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
