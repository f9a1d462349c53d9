"""Which epsilon? Advice from the mechanism that runs and from public facts: it reads no data, spends nothing.

    risk_of                 what any attacker can learn: of a person, a family, once or for a year
    advise                  risk, error, frontier and delta of a choice; limits, harm and errors backwards
    ProjectComparison       several projects side by side, and which is stricter
    publish_whole_records   why delta is far below 1/n, as a mechanism that one can run
    DEPLOYMENTS, LITERATURE what others declared, and what papers took

`db.advise()`, `question.advise()` and `sfumato advise` are the usual ways to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.advise.advice import Advice, advise
    from sfumato.advise.choice import Choice, choice_of_budget
    from sfumato.advise.comparison import ComparedProject, ProjectComparison
    from sfumato.advise.deltas import about_delta, publish_whole_records, usual_delta
    from sfumato.advise.limits import RiskLimit, largest_epsilon
    from sfumato.advise.money import Harm
    from sfumato.advise.precedents import (
        DEPLOYMENTS,
        LITERATURE,
        LITERATURE_SOURCE,
        RULES_OF_THUMB,
        Deployment,
    )
    from sfumato.advise.risk import Risk, RiskSource, risk_of

__all__ = [
    "Advice",
    "Choice",
    "ComparedProject",
    "DEPLOYMENTS",
    "Deployment",
    "Harm",
    "LITERATURE",
    "LITERATURE_SOURCE",
    "ProjectComparison",
    "RULES_OF_THUMB",
    "Risk",
    "RiskLimit",
    "RiskSource",
    "about_delta",
    "advise",
    "choice_of_budget",
    "largest_epsilon",
    "publish_whole_records",
    "risk_of",
    "usual_delta",
]

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "advice": ["Advice", "advise"],
        "choice": ["Choice", "choice_of_budget"],
        "comparison": ["ComparedProject", "ProjectComparison"],
        "deltas": ["about_delta", "publish_whole_records", "usual_delta"],
        "limits": ["RiskLimit", "largest_epsilon"],
        "money": ["Harm"],
        "precedents": ["DEPLOYMENTS", "Deployment", "LITERATURE", "LITERATURE_SOURCE", "RULES_OF_THUMB"],
        "risk": ["Risk", "RiskSource", "risk_of"],
    },
)
