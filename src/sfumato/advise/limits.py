"""Backwards: the largest epsilon for a stated risk, the cheapest for a stated error, or which gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from sfumato.advise.choice import LARGEST_EPSILON, Choice, Outcome, WantedError
from sfumato.advise.risk import Risk, checked_prior
from sfumato.analysis.expected_error import ExpectedError
from sfumato.analysis.forecast import smallest_epsilon
from sfumato.core.arguments import Number, positive, probability
from sfumato.errors import InvalidArgument

__all__ = [
    "EpsilonRange",
    "Limit",
    "RiskLimit",
    "cheapest_epsilon",
    "epsilon_range",
    "largest_epsilon",
    "wanted_errors",
]

_LEAST = Fraction(1, 10_000)
_NAMED = "errors have the names that the advice shows: error={'n': 20}, or --error n=20"


class Limit(Protocol):
    """What a risk must not pass: a number that an owner can answer for."""

    @property
    def said(self) -> str: ...

    def excess(self, outcome: Outcome) -> float:
        """Return how much of the limit an outcome takes: it is kept up to 1."""
        ...

    def measured(self, risk: Risk) -> str:
        """Return where a risk stands, in the limit's own number."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskLimit:
    """The most that an attacker may gain: an `advantage`, or a `posterior` belief from a `prior` one.

    >>> RiskLimit(advantage=0.1).said
    'an advantage of at most 0.1'
    """

    advantage: Number | None = None
    posterior: Number | None = None
    prior: Number | None = None

    def __post_init__(self) -> None:
        if (self.advantage is None) == (self.posterior is None):
            raise InvalidArgument(
                "a limit is on the advantage or on the posterior",
                place="limit",
                hints=("advantage=0.1", "posterior=0.2, prior=0.01"),
            )
        if self.posterior is None:
            if probability(self.advantage, "advantage") == 0:
                raise _never("an advantage of 0", "whatever tells anything has some; 0.1 is a usual limit")
            return
        if self.prior is None:
            hint = "prior=0.01: what somebody may believe beforehand"
            raise InvalidArgument("a limit on the posterior needs a prior", place="prior", hints=(hint,))
        before, after = checked_prior(self.prior), probability(self.posterior, "posterior")
        if after <= before:
            raise _never(
                f"a posterior of {float(after):g} from a prior of {float(before):g}",
                "whatever tells anything raises some belief: give a posterior above the prior",
            )

    @property
    def said(self) -> str:
        """The limit, in words."""
        if self.posterior is None:
            return f"an advantage of at most {_float(self.advantage):g}"
        return f"a belief of at most {_float(self.posterior):g} from one of {_float(self.prior):g}"

    def excess(self, outcome: Outcome) -> float:
        """Return how much of the limit an outcome takes."""
        if self.posterior is None:
            return outcome.advantage / _float(self.advantage)
        return outcome.risk().posterior(_float(self.prior)) / _float(self.posterior)

    def measured(self, risk: Risk) -> str:
        """Return where a risk stands."""
        if self.posterior is None:
            return f"the advantage is {risk.advantage:.3g}"
        prior = _float(self.prior)
        return f"a belief of {prior:g} may become {risk.posterior(prior):.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonRange:
    """Which epsilons keep to what was stated: from `least`, for the error, to `most`, for the risk."""

    least: Fraction | None
    most: Fraction | None
    said: str

    @property
    def feasible(self) -> bool:
        """Whether both can be had."""
        return self.least is None or self.most is None or self.least <= self.most


def largest_epsilon(choice: Choice, limit: Limit) -> Fraction:
    """Return about the largest epsilon that keeps to a limit: with the smallest noise. Rounds: down.

    The result keeps to it; it is searched for up to 20, as if risk grew with epsilon.

    >>> from sfumato.advise.choice import choice_of_budget
    >>> from sfumato.core.accountant import PrivacyBudget
    >>> float(largest_epsilon(choice_of_budget(PrivacyBudget(epsilon=1)), RiskLimit(advantage=0.1)))
    0.2
    """
    kept: dict[Fraction, float] = {}  # how much of the limit each epsilon takes
    passed: dict[Fraction, float] = {}
    epsilon = _digits(min(choice.epsilon, LARGEST_EPSILON))
    while True:
        taken = max(limit.excess(choice.at(epsilon)), 1e-9)
        (kept if taken <= 1 else passed)[epsilon] = taken
        if not kept:
            if epsilon <= _LEAST:
                raise _never(
                    limit.said,
                    f"even at epsilon {float(epsilon):g} {limit.measured(choice.at(epsilon).risk())}",
                    "finding groups has a chance of its own to fail: declare them, or lower its delta",
                )
            epsilon = max(_LEAST, _digits(epsilon / Fraction(min(2 * taken, 1e3))))
        elif not passed:
            if epsilon == LARGEST_EPSILON:
                return epsilon
            epsilon = min(LARGEST_EPSILON, _digits(epsilon * Fraction(min(2 / taken, 1e3))))
        else:
            low, high = max(kept), min(passed)
            if high <= low + _unit(low):
                return low
            epsilon = _between(low, kept[low], high, passed[high], straight=len(kept) + len(passed) < 8)


def cheapest_epsilon(choice: Choice, error: WantedError) -> Fraction:
    """Return about the smallest epsilon at which all errors, or those that are named, are no larger.

    Rounds: up, to three digits. It is searched for up to 20, as if errors fell where epsilon grows; errors
    are those of the real prices, so that the one found keeps to what is wanted.
    """
    if choice.cheapest is not None:
        return choice.cheapest(error)
    limits = wanted_errors(choice, error)

    def excess(epsilon: Fraction) -> float:
        try:
            errors = choice.at(epsilon).errors
        except InvalidArgument:  # less than what parts of it cost that are fixed
            if epsilon == LARGEST_EPSILON:
                raise
            return math.inf
        return max(_taken(one, limits[one.name]) for one in errors if one.name in limits)

    if excess(LARGEST_EPSILON) > 1:
        errors = [one for one in choice.at(LARGEST_EPSILON).errors if one.name in limits]
        worst = max(errors, key=lambda one: _taken(one, limits[one.name]))
        raise InvalidArgument(
            f"no epsilon up to {_shown(LARGEST_EPSILON)} makes the error this small",
            place="error",
            hints=(
                f"at {_shown(LARGEST_EPSILON)}, {worst.name} still has {worst.said}",
                "allow a larger error, ask more people, or name the errors that you mean",
                _NAMED,
            ),
        )
    return smallest_epsilon(excess, min(choice.epsilon, LARGEST_EPSILON), high=LARGEST_EPSILON)


def wanted_errors(choice: Choice, error: WantedError) -> dict[str, float]:
    """Return the error that is wanted, by the names that advice shows.

    A name that stands before a dot or a comma is of all errors that begin with it: a question of a workload,
    a column of a stream.
    """
    names = [one.name for one in choice.at(LARGEST_EPSILON).errors]
    if not names:
        raise InvalidArgument(
            f"{choice.name} has no error of its own",
            place="error",
            hints=('name what is asked: question.advise(error=10), sfumato advise "SELECT .." --error 10',),
        )
    if not isinstance(error, Mapping):
        return dict.fromkeys(names, float(positive(error, "error")))
    found: dict[str, float] = {}
    for given, limit in error.items():
        meant = [name for name in names if name == given or name.startswith((f"{given}.", f"{given}, "))]
        if not meant:
            shown = ", ".join(f"`{name}`" for name in names[:10])
            raise InvalidArgument(
                f"no error is called `{given}`", place="error", hints=(f"there are {shown}",)
            )
        found |= dict.fromkeys(meant, float(positive(limit, "error")))
    if not found:
        raise InvalidArgument("no error is named", place="error", hints=(_NAMED,))
    return found


def _taken(one: ExpectedError, limit: float) -> float:
    """Return how much of its limit an error takes; refuse errors that are not known, or not of this kind."""
    if one.error is None:
        raise InvalidArgument(
            f"the error of `{one.name}` is not known beforehand: {one.said}",
            place="error",
            hints=("give the size of a group, if that is what it takes: size=.. or --size", _NAMED),
        )
    if one.share and limit >= 1:
        hint = "0.02 of a median: between the 48th and the 52nd percentile"
        message = f"the error of `{one.name}` is a share of ranks, and so below 1"
        raise InvalidArgument(message, place="error", hints=(hint, _NAMED))
    return one.error / limit


def epsilon_range(
    choice: Choice, *, limits: tuple[Limit, ...] = (), error: WantedError | None = None
) -> EpsilonRange:
    """Return which epsilons keep to limits on risk and to a wanted error, or why none does.

    >>> from sfumato.advise.choice import choice_of_budget
    >>> from sfumato.core.accountant import PrivacyBudget
    >>> found = epsilon_range(choice_of_budget(PrivacyBudget(epsilon=1)), limits=(RiskLimit(advantage=0.1),))
    >>> found.said
    'an advantage of at most 0.1 allows epsilon 0.2'
    """
    allowed = [(largest_epsilon(choice, limit), limit) for limit in limits]
    least = None if error is None else cheapest_epsilon(choice, error)
    meant = None if error is None else wanted_errors(choice, error)
    needed = (
        "" if least is None else f"the wanted error needs epsilon {_shown(least)}{_beyond(choice, least)}"
    )
    if not allowed:
        if least is None:
            raise InvalidArgument("neither a limit nor an error was stated", place="limits")
        return EpsilonRange(least=least, most=None, said=f"{needed}{_errors(choice.at(least).only(meant))}")
    most, limit = min(allowed, key=lambda one: one[0])
    within = f"{limit.said} allows epsilon {_shown(most)}"
    if least is None:
        return EpsilonRange(least=None, most=most, said=f"{within}{_errors(choice.at(most))}")
    if least <= most:
        said = f"both can be had: {needed}, and {within}"
        return EpsilonRange(least=least, most=most, said=said)
    dear = limit.measured(choice.at(least).risk())
    return EpsilonRange(
        least=least,
        most=most,
        said=(
            f"both cannot be had: {needed}, where {dear};"
            f" {within}{_errors(choice.at(most).only(meant))}. Either the error gives, or the limit does"
        ),
    )


def _beyond(choice: Choice, epsilon: Fraction) -> str:
    if choice.whole is None or epsilon <= choice.whole:
        return ""
    return f", above the {_shown(choice.whole)} of the whole budget"


def _errors(outcome: Outcome) -> str:
    return f", with the errors {outcome.said}" if outcome.errors else ""


def _shown(epsilon: Fraction) -> str:
    return f"{float(epsilon):.4g}"


def _float(value: Number | None) -> float:
    return float(probability(value, "limit"))


def _between(low: Fraction, kept: float, high: Fraction, passed: float, *, straight: bool) -> Fraction:
    """Return an epsilon between two: where a line through their logarithms meets the limit, or half way."""
    share = math.log(kept) / (math.log(kept) - math.log(passed)) if straight else 0.5
    guess = _digits(low * Fraction(math.exp(share * math.log(high / low))))
    return min(max(guess, low + _unit(low)), high - _unit(low))


def _unit(value: Fraction) -> Fraction:
    """Return one step of the third digit."""
    return Fraction(10) ** (math.floor(math.log10(value)) - 2)


def _digits(value: Fraction) -> Fraction:
    """Round down to three digits."""
    return math.floor(value / _unit(value)) * _unit(value)


def _never(what: str, *hints: str) -> InvalidArgument:
    return InvalidArgument(f"no epsilon meets {what}", place="limit", hints=hints)
