"""A choice: something whose epsilon can be chosen, and what each epsilon would mean. Public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.advise.risk import TOOK_PART, Risk, RiskSource, advantage_of, risk_of
from sfumato.analysis.expected_error import ExpectedError
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number
from sfumato.errors import InvalidArgument

__all__ = [
    "Choice",
    "FrontierPoint",
    "LARGEST_EPSILON",
    "Outcome",
    "WantedError",
    "YEARLY",
    "choice_of_budget",
    "few",
    "frontier",
]

LARGEST_EPSILON = Fraction(20)
"""Beyond it an attacker is right but for one time in e^20, and no advice is needed."""

WantedError = Number | Mapping[str, float]
"""The largest error that answers may have: all of them, or each by the name that advice shows."""

YEARLY = (("every week", 52), ("every day", 365))
"""How often something may be repeated, and how many releases that makes in a year."""

_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What would be released at one epsilon: what tells about people, and how far off answers are."""

    epsilon: Fraction
    source: RiskSource
    keys_delta: Fraction = Fraction(0)
    errors: tuple[ExpectedError, ...] = ()
    secret: str = TOOK_PART  # what an attacker wants to know
    times: int = 1  # how often it is released in all

    def risk(self, *, people: int = 1, times: int | None = None) -> Risk:
        """Return what any attacker can learn of it, or of another number of releases."""
        often = self.times if times is None else times
        return risk_of(
            self.source, keys_delta=self.keys_delta, people=people, times=often, secret=self.secret
        )

    @property
    def advantage(self) -> float:
        """The advantage of any attacker, computed without the rest of the risk."""
        return advantage_of(self.source, keys_delta=self.keys_delta, times=self.times)

    def only(self, names: Collection[str] | None) -> Outcome:
        """Return it with the errors of these names alone; None: with all."""
        if names is None:
            return self
        return replace(self, errors=tuple(one for one in self.errors if one.name in names))

    @property
    def said(self) -> str:
        """The errors, in one line."""
        return ", ".join(f"{one.name} {one.said}" for one in few(self.errors))


def few(errors: Sequence[ExpectedError]) -> tuple[ExpectedError, ...]:
    """Return errors to show in one line: all of them, or the largest if they are more than three.

    >>> [one.said for one in few([ExpectedError(name=f"q{n}.n", error=n, said=f"±{n}") for n in range(9)])]
    ['±8 of q8.n']
    """
    known = [one for one in errors if one.error is not None]
    if len(errors) <= 3 or not known:
        return tuple(errors)
    largest = max(known, key=lambda one: one.error or 0)
    said = f"{largest.said} of {largest.name}"
    return (ExpectedError(name="the largest error", error=largest.error, said=said),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something whose epsilon can be chosen: a question, a workload, a stream, a survey, or a whole budget.

    The cheapest epsilon for a wanted error is searched for through `at`, unless `cheapest` finds it sooner.
    `aimed` divides noise otherwise for a wanted error, where it can be divided.

    >>> choice = choice_of_budget(PrivacyBudget(epsilon=1))
    >>> round(choice.at(Fraction(1, 2)).risk().advantage, 4)
    0.2449
    """

    name: str
    epsilon: Fraction  # the one that stands now
    delta: Fraction  # of the budget
    at: Callable[[Fraction], Outcome]
    year: tuple[tuple[str, int], ...] = ()  # how often it may be repeated, and the releases of a year
    notes: tuple[str, ...] = ()  # what else is to be known of the risk
    whole: Fraction | None = None  # the epsilon of the budget that it is paid from
    cheapest: Callable[[WantedError], Fraction] | None = None
    aimed: Callable[[Mapping[str, float]], Choice] | None = None

    def spent_on(self, own: Choice) -> Choice:
        """Return the choice of a budget with the errors that something has if all of it is spent on that."""

        def at(epsilon: Fraction) -> Outcome:
            return replace(self.at(epsilon), errors=own.at(epsilon).errors)

        return replace(self, name=f"{self.name}, for {own.name}", at=at, cheapest=own.cheapest)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """One epsilon between risk and error."""

    epsilon: Fraction
    advantage: float
    errors: tuple[ExpectedError, ...]
    current: bool  # it is the epsilon that stands
    advised: bool  # it is the epsilon that is proposed


def frontier(
    choice: Choice, advised: Fraction, *, names: Collection[str] | None = None
) -> tuple[FrontierPoint, ...]:
    """Return risk against error around the epsilon that is advised, and at the one that stands.

    A quarter, half, the same, double and four times it. What is above 20 is left out, and what is refused,
    as too little for questions whose errors are fixed. With `names`, the errors are those that are meant.

    >>> points = frontier(choice_of_budget(PrivacyBudget(epsilon=1)), Fraction(1, 2))
    >>> [(float(point.epsilon), point.current, point.advised) for point in points][2:4]
    [(0.5, False, True), (1.0, True, False)]
    """
    around = {advised * factor for factor in _FACTORS}
    wanted = {one for one in around if one <= LARGEST_EPSILON} | {advised, choice.epsilon}
    points = {}
    for epsilon in sorted(wanted):
        try:
            outcome = choice.at(epsilon)
        except InvalidArgument:
            if epsilon == advised:
                raise
            continue
        points[outcome.epsilon] = FrontierPoint(
            epsilon=outcome.epsilon,
            advantage=outcome.advantage,
            errors=outcome.only(names).errors,
            current=outcome.epsilon == choice.epsilon,
            advised=outcome.epsilon == advised,
        )
    return tuple(points.values())


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
