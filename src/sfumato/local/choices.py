"""The choice of a survey's epsilon: what reports tell about answers, and how far off shares and means are."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.advise.choice import Choice, Outcome
from sfumato.analysis.expected_error import ExpectedError
from sfumato.core.arguments import count
from sfumato.core.exponential import log_above
from sfumato.core.measures import PureDP
from sfumato.local.chooser import choose, share_tested
from sfumato.local.comparison import NORMAL
from sfumato.local.means import MeanProtocol
from sfumato.local.prefix_tree import PrefixTree
from sfumato.local.protocol import FrequencyProtocol, Protocol
from sfumato.local.stages import TwoStage, TwoStageResponse, TwoStageUnary
from sfumato.local.survey import Survey

__all__ = ["choice_of_survey"]

_YEAR = 365
_KEPT = (
    "when an answer changed is not hidden: another report is sent from then on. The risk is of telling"
    " which values were given, not when"
)
_STAGES = "epsilon is that of a report that is kept; what is sent on one day alone tells less"


def choice_of_survey(survey: Survey, *, people: int) -> Choice:
    """Return the choice of the epsilon of one report; `people` is how many answer, from public knowledge.

    At the survey's own epsilon the error is that of its own protocol, elsewhere of the best one there is; of
    two stages, of the same ones. Their epsilon is that of a report that is kept, and a day's report has a
    fixed share of it. The risk of a survey that asks again is that of all that a person draws in a year.
    Theorem: between any two answers, a report is a post-processing of randomised response with the same
    epsilon (Kairouz, Oh, Viswanath 2015), so the curve of pure epsilon holds for every protocol. All that a
    person sends is a function of the draws that `longitudinal` counts, each of them such a report.
    """
    answering, draws = count(people, "people"), survey.draws(_YEAR)
    two_stages = isinstance(survey.protocol, TwoStage)
    standing = Fraction(log_above(survey.protocol.lifetime_ratio)) if two_stages else survey.epsilon

    def at(epsilon: Fraction) -> Outcome:
        match survey.protocol:
            case protocol if epsilon == standing:
                pass
            case TwoStageResponse() | TwoStageUnary() as own:
                first = epsilon * Fraction(own.epsilon) / standing
                protocol = type(own).from_epsilon(epsilon, first=first, size=own.size)
            case _:
                protocol = choose(survey.question, epsilon=epsilon, people=answering).protocol
        error = NORMAL * math.sqrt(_worst_variance(protocol) / answering)
        expected = ExpectedError(
            name="the mean, at worst" if isinstance(protocol, MeanProtocol) else "a share, at worst",
            error=error,
            said=f"±{error:.3g} (95%) if {answering:,} people answer",
        )
        return Outcome(
            epsilon=epsilon,
            source=PureDP(epsilon=epsilon),
            times=draws,
            errors=(expected,),
            secret="which of two answers they gave",
        )

    return Choice(
        name=f"the survey `{survey.name}`{_again(survey, draws)}",
        epsilon=standing,
        delta=Fraction(0),
        at=at,
        year=_year(survey, draws),
        notes=(*([_KEPT] if draws > 1 and survey.every is None else ()), *([_STAGES] if two_stages else ())),
    )


def _again(survey: Survey, draws: int) -> str:
    """Say how a survey asks again."""
    if survey.cap is None:
        return ""
    if survey.every is None:
        return f", asked every day for a year, with a report kept for each value, {draws} at most"
    return f", asked every day for a year, with a fresh report every {survey.every} days, {draws} in all"


def _year(survey: Survey, draws: int) -> tuple[tuple[str, int], ...]:
    """Return other ways to ask for a year, and the reports that they draw of a person."""
    if survey.cap is None:
        return (
            ("asked every week, with fresh coins,", 52),
            ("asked every day, with fresh coins,", _YEAR),
            ("asked every day, with a report that is kept and sent again,", 1),
        )
    if survey.every is None and draws > 1:
        return (("asked every day, of an answer that never changes,", 1),)
    return ()


def _worst_variance(protocol: Protocol) -> float:
    """Return the variance of one person's estimate, noise and sampling together, whatever people answer.

    Theorem: a report of a person drawn at random supports an answer of share f with chance r = q + f (p - q),
    and the estimate divides by p - q: r is as close to 1/2 as it can be at worst. A number's report y, on
    [-1, 1], has E[y^2] = A + B E[x^2], which is most of its variance if the mean is 0; E[x^2] is at most 1.
    """
    if isinstance(protocol, MeanProtocol):
        a, b = protocol.moments
        return float((a + max(b, Fraction(0))) * ((protocol.high - protocol.low) / 2) ** 2)
    assert isinstance(protocol, FrequencyProtocol | PrefixTree)
    closest = min(max(protocol.q, Fraction(1, 2)), protocol.p)
    variance = float(closest * (1 - closest) / (protocol.p - protocol.q) ** 2)
    return variance / share_tested(protocol) if isinstance(protocol, PrefixTree) else variance
