"""Deniability: what to tell a respondent, in one sentence whose numbers are exact.

A report can always have come from any other answer. How far it may sway somebody who sees it is said by one
ratio, the odds of the protocol (e^epsilon), and nothing else: not by what they knew before, nor by what they
compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.arguments import Number, budget_quantity, count, exact, upper_float
from sfumato.core.exponential import log_above
from sfumato.errors import InvalidArgument
from sfumato.local.protocol import FrequencyProtocol, Protocol
from sfumato.local.questions import YesNo
from sfumato.local.response import KaryResponse
from sfumato.local.survey import Survey

__all__ = ["Deniability", "told"]

_HALF = Fraction(1, 2)
_CERTAIN = 200  # of epsilon: beyond it every belief is certainty to more digits than anybody would read


@dataclass(frozen=True, slots=True, kw_only=True)
class Deniability:
    """What one person's reports can tell about their answer.

    `prior` is what an observer believed before: the chance that the answer is some particular one.
    `times` is how many reports are made afresh of one person, each with the protocol's odds. `answer` is what
    the sentence calls the answer that was reported.

    With `kept`, reports are kept by value and sent again: the sentence is then about one value, and says that
    a change can be seen, for of lives that change at other times there is no bound (`longitudinal.Memoised`).

    >>> from sfumato.local import KaryResponse
    >>> survey = Deniability(protocol=KaryResponse.coin_toss(), prior=Fraction(1, 10))
    >>> survey.most()  # from one in ten
    Fraction(1, 4)
    """

    protocol: Protocol
    prior: Fraction
    times: int = 1
    answer: str = "an answer"
    kept: bool = False

    def __post_init__(self) -> None:
        if not 0 < exact(self.prior, "prior") < 1:
            raise InvalidArgument(
                "a belief that can change lies above 0 and below 1",
                place="prior",
                hints=("0.5 is that of somebody who knows nothing about a yes or no",),
            )
        count(self.times, "times")

    # -- whatever is reported ----------------------------------------------------------------

    @property
    def odds(self) -> Fraction:
        """The exact e^epsilon of one report; of two stages, of one that is kept, however often it is used."""
        return self.protocol.lifetime_ratio

    @property
    def epsilon(self) -> float:
        """What all reports together give away. Rounds: up."""
        return upper_float(Fraction(log_above(self.odds)) * self.times)

    def most(self) -> Fraction:
        """Return the largest chance that an observer can come to give an answer.

        Theorem: by Bayes, if an answer is at most `odds` times as likely a cause of a report as any
        other turns a chance of a into at most odds a / (odds a + 1 - a); and so again for every
        report that is made afresh. Rounds: up, and only beyond epsilon 200, to 1.

        >>> told(KaryResponse.coin_toss()).most()
        Fraction(3, 4)
        """
        before, gained = self.prior, self._gained
        return Fraction(1) if gained is None else gained * before / (gained * before + 1 - before)

    def least(self) -> Fraction:
        """Return the smallest such chance. Rounds: down, and only beyond epsilon 200, to 0."""
        before, gained = self.prior, self._gained
        return Fraction(0) if gained is None else before / (before + gained * (1 - before))

    # -- of a report that says yes ----------------------------------------------------------

    def doubt(self, share: Number | None = None) -> Fraction | None:
        """Return the chance that an answer which one report supports is not its sender's own.

        It depends on how many give that answer: at a `share` of nobody it is 1, of everybody 0, and in
        between it falls. Unless given, `prior` is taken.

        >>> coin = told(KaryResponse.coin_toss())
        >>> coin.doubt(), coin.doubt(Fraction(1, 10))  # if one in ten would truly say yes
        (Fraction(1, 4), Fraction(3, 4))
        """
        if not isinstance(self.protocol, FrequencyProtocol):
            return None
        f = self.prior if share is None else _chance(share)
        own, others = self.protocol.p * f, self.protocol.q * (1 - f)
        return others / (own + others)

    # -- in words -----------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """What to tell, in one sentence. Rounds: against the collector, to a tenth of a percent."""
        before = _percent(self.prior, up=None)
        beliefs = f"from {before} to at most {_percent(self.most(), up=True)}"
        beliefs += f", or down to at least {_percent(self.least(), up=False)}"
        times = "" if self.times == 1 else f" over all of your {self.times:,} reports together"
        whatever = (
            f"whatever is reported, the odds that anybody gives your answer can change by no more than a "
            f"factor of {self._factor}{times}: {beliefs}"
        )
        if self.kept:
            whatever += ", for as long as it stays the same; that it changed, and when, can be seen"
        doubt = self.doubt()
        if not isinstance(self.protocol, KaryResponse) or doubt is None or self.protocol.size < 2:
            return f"{whatever[0].upper()}{whatever[1:]}."
        return (  # what only k-ary response can say: its reports are answers
            f"If {self.answer} is reported, the chance that it is not your own is "
            f"{_percent(doubt, up=False)} where {before} of all people would give it, and {whatever}."
        )

    def __str__(self) -> str:
        return self.sentence

    @property
    def _factor(self) -> str:
        gained = self._gained
        if gained is None or gained >= 10**6:
            power = math.ceil(self.epsilon / math.log(10))
            return f"1{'0' * power}" if power <= 9 else f"10^{power}"
        return f"{math.ceil(gained * 100) / 100:,.2f}".rstrip("0").rstrip(".")

    @property
    def _gained(self) -> Fraction | None:
        """The odds of all reports together; None where they are beyond all measure."""
        return None if self.epsilon > _CERTAIN else self.odds**self.times


def told(source: Protocol | Survey, prior: Number = _HALF, *, times: int | None = None) -> Deniability:
    """Return what to tell those who are asked: of a protocol, or of a survey with its cap on reports.

    >>> print(told(KaryResponse.coin_toss()))
    If "yes" is reported, the chance that it is not your own is 25% where 50% of all people would give it, ...
    """
    if isinstance(source, Survey):
        protocol, cap, yes = source.protocol, source.cap, isinstance(source.question, YesNo)
    elif isinstance(source, Protocol):
        protocol, cap, yes = source, None, isinstance(source, KaryResponse) and source.size == 2
    else:
        raise InvalidArgument("a protocol or a survey is wanted here", place="source")
    kept = isinstance(source, Survey) and cap is not None and cap > 1 and source.every is None
    return Deniability(
        protocol=protocol,
        prior=_chance(prior),
        times=(1 if kept else cap or 1) if times is None else times,
        kept=kept,
        answer='"yes"' if yes else "an answer",
    )


def _chance(value: Number) -> Fraction:
    """Read a chance as a person wrote it: 0.1 is one tenth."""
    chance = budget_quantity(value, "prior", zero=True)
    if not 0 <= chance <= 1:
        raise InvalidArgument("a chance lies between 0 and 1", place="prior", hints=("such as 0.5",))
    return chance


def _percent(chance: Fraction, *, up: bool | None) -> str:
    """Write a chance in percent, to a tenth; rounded up, down, or to the nearest."""
    tenths = chance * 1000
    whole = round(tenths) if up is None else math.ceil(tenths) if up else math.floor(tenths)
    text = f"{whole // 10}.{whole % 10}".removesuffix(".0")
    return f"{text}%"
