"""Money: what people are owed for the harm that taking part may do them, against what there is to pay."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.advise.choice import Outcome
from sfumato.advise.risk import Risk
from sfumato.core.arguments import Number, count, exact, probability
from sfumato.errors import InvalidArgument

__all__ = ["Harm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """A harm that befalls each of `people` with a `chance` anyhow, costs them `cost`, and the `funds` to pay.

    Theorem: an event of chance p without a person's data has at most the chance g(p) with it, where g is
    the most power at the rate p of false positives. So people are owed (g(p) - p) cost each. For pure
    epsilon that is (e^epsilon - 1) E with the expected harm E = p cost, as Hsu et al. (2014) have it.

    >>> from sfumato.advise.risk import risk_of
    >>> from sfumato.core.measures import PureDP
    >>> harm = Harm(people=1000, chance=0.001, cost=5000, funds=4000)
    >>> round(harm.owed(risk_of(PureDP(epsilon=0.5))))  # 1000 (e^0.5 - 1) 5
    3244
    """

    people: int
    chance: Number
    cost: Number
    funds: Number

    def __post_init__(self) -> None:
        count(self.people, "people")
        if probability(self.chance, "chance") in (0, 1):
            raise InvalidArgument(
                "a harm that never happens, or always does, is not made likelier by an answer",
                place="chance",
                hints=("give how likely it is anyhow, without this person's data: 0.001",),
            )
        for name in ("cost", "funds"):
            if exact(getattr(self, name), name) < 0:
                hint = "what a person loses, and what there is to pay, in one currency"
                raise InvalidArgument(f"{name} must not be negative", place=name, hints=(hint,))

    def owed(self, risk: Risk) -> float:
        """Return what all people together are owed at most."""
        before = float(probability(self.chance, "chance"))
        return self.people * float(exact(self.cost, "cost")) * max(0.0, risk.found(before) - before)

    @property
    def said(self) -> str:
        """The limit, in words."""
        return f"compensation of at most {float(exact(self.funds, 'funds')):,.6g} for {self.people:,} people"

    def excess(self, outcome: Outcome) -> float:
        """Return how much of the funds is owed."""
        funds = float(exact(self.funds, "funds"))
        return self.owed(outcome.risk()) / funds if funds else math.inf

    def measured(self, risk: Risk) -> str:
        """Return what is owed."""
        return f"people are owed {self.owed(risk):,.4g}"
