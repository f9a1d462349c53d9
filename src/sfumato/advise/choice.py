"""A choice: something whose epsilon can be chosen, and what each epsilon would mean. Public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.advise.risk import TOOK_PART, Risk, RiskSource, advantage_of, risk_of
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number

__all__ = [
    "Choice",
    "ExpectedError",
    "FrontierPoint",
    "LARGEST_EPSILON",
    "Outcome",
    "choice_of_budget",
    "frontier",
]

LARGEST_EPSILON = Fraction(20)
"""Beyond it an attacker is right but for one time in e^20, and no advice is needed."""

_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """How far off a column will be: a 95% half-width, or None where that depends on the data."""

    name: str
    error: float | None
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What would be released at one epsilon: what tells about people, and how far off answers are."""

    epsilon: Fraction
    source: RiskSource
    keys_delta: Fraction = Fraction(0)
    errors: tuple[ExpectedError, ...] = ()
    secret: str = TOOK_PART  # what an attacker wants to know

    def risk(self, *, people: int = 1, times: int = 1) -> Risk:
        """Return what any attacker can learn of it."""
        return risk_of(
            self.source, keys_delta=self.keys_delta, people=people, times=times, secret=self.secret
        )

    @property
    def advantage(self) -> float:
        """The advantage of any attacker, computed without the rest of the risk."""
        return advantage_of(self.source, keys_delta=self.keys_delta)

    @property
    def said(self) -> str:
        """The errors, in one line."""
        return ", ".join(f"{one.name} {one.said}" for one in self.errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something whose epsilon can be chosen: a question, a workload, a stream, or a whole budget.

    >>> choice = choice_of_budget(PrivacyBudget(epsilon=1))
    >>> round(choice.at(Fraction(1, 2)).risk().advantage, 4)
    0.2449
    """

    name: str
    epsilon: Fraction  # the one that stands now
    delta: Fraction  # of the budget
    at: Callable[[Fraction], Outcome]
    repeats: bool = False  # whether it may be released again and again
    cheapest: Callable[[Number | Mapping[str, float]], Fraction] | None = None  # for a wanted error


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """One epsilon between risk and error."""

    epsilon: Fraction
    advantage: float
    errors: tuple[ExpectedError, ...]
    current: bool


def frontier(choice: Choice) -> tuple[FrontierPoint, ...]:
    """Return risk against error at a quarter, half, the same, double and four times the epsilon that stands.

    What is above 20 is left out.

    >>> [point.current for point in frontier(choice_of_budget(PrivacyBudget(epsilon=1)))]
    [False, False, True, False, False]
    """
    points = []
    for factor in _FACTORS:
        if factor > 1 and choice.epsilon * factor > LARGEST_EPSILON:
            break
        outcome = choice.at(choice.epsilon * factor)
        points.append(
            FrontierPoint(
                epsilon=outcome.epsilon,
                advantage=outcome.advantage,
                errors=outcome.errors,
                current=factor == 1,
            )
        )
    return tuple(points)


def choice_of_budget(budget: PrivacyBudget) -> Choice:
    """Return the choice of a budget's epsilon, its delta and its rule as they are.

    >>> choice_of_budget(PrivacyBudget(epsilon=3)).epsilon
    Fraction(3, 1)
    """

    def at(epsilon: Fraction) -> Outcome:
        spent = PrivacyBudget(
            epsilon=epsilon, delta=budget.delta, keys_delta=budget.keys_delta, rule=budget.rule
        )
        return Outcome(epsilon=epsilon, source=spent)

    return Choice(name="the whole budget", epsilon=budget.epsilon, delta=budget.delta, at=at)
