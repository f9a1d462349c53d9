"""The choice of a survey's epsilon: what a report tells about an answer, and how far off shares are."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.advise.choice import Choice, ExpectedError, Outcome
from sfumato.core.measures import PureDP
from sfumato.errors import Unsupported
from sfumato.local.chooser import choose
from sfumato.local.survey import Survey

__all__ = ["choice_of_survey"]

_WIDE = 1.96  # deviations to each side of a 95% interval


def choice_of_survey(survey: Survey, *, people: int) -> Choice:
    """Return the choice of a survey's epsilon, with the protocol of least error at each.

    Theorem: between any two answers, a report is a post-processing of randomised response with the same
    epsilon (Kairouz, Oh, Viswanath 2015), so the curve of pure epsilon holds for every protocol.
    """
    if survey.cap is not None:
        raise Unsupported(
            "this is about surveys that ask everybody once",
            hints=("`sfumato.local.told` says what all reports of a person tell",),
        )

    def at(epsilon: Fraction) -> Outcome:
        found = choose(survey.question, epsilon=epsilon, people=people)
        chosen = next(one for one in found.candidates if one.protocol is found.protocol)
        error = _WIDE * math.sqrt(chosen.variance / people)
        said = ExpectedError(
            name="a rare answer's share, or the mean", error=error, said=f"±{error:.3g} (95%)"
        )
        return Outcome(
            epsilon=epsilon,
            source=PureDP(epsilon=epsilon),
            errors=(said,),
            secret="which of two answers they gave",
        )

    return Choice(name=f"the survey `{survey.name}`", epsilon=survey.epsilon, delta=Fraction(0), at=at)
