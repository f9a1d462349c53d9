"""Risk: what an attacker who knows everything else can learn about one person, or one family.

Every number is read off the trade-off curve of the mechanism that runs, or of all that run together.
Where only a guarantee is known, it is the curve of that guarantee, and `basis` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, count, delta_quantity, probability, upper_float
from sfumato.core.conversions import delta_of_mu
from sfumato.core.events import (
    Approximate,
    DiscreteGaussian,
    DiscreteGaussianVector,
    Event,
    Gaussian,
    Pure,
    Repeated,
    ZeroConcentrated,
)
from sfumato.core.individual import IndividualPrivacy
from sfumato.core.measures import (
    ApproximateDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiCurve,
    RenyiDP,
    ZeroConcentratedDP,
)
from sfumato.core.rules import UNITS, RenyiRule
from sfumato.core.tradeoff import TradeOff
from sfumato.errors import InvalidArgument, Unsupported

TOOK_PART = "whether they took part"
"""What an attacker wants to know, if a person is in the data or not."""

_GAUSSIAN = (Gaussian, DiscreteGaussian, DiscreteGaussianVector)

__all__ = ["FALSE_ALARMS", "Risk", "RiskSource", "TOOK_PART", "advantage_of", "checked_prior", "risk_of"]

RiskSource = Event | PrivacyBudget | Guarantee
"""What has a trade-off curve: what was run, what a budget allows in all, or what was promised."""

FALSE_ALARMS = 0.001
"""The false-positive rate at which beliefs are stated, if losses are unbounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What any attacker can learn, whatever else that attacker knows: bounds that no test passes.

    >>> risk = risk_of(PureDP(epsilon=1))
    >>> round(risk.advantage, 4), round(risk.posterior(0.01), 4)
    (0.4621, 0.0267)
    """

    curve: TradeOff
    basis: str  # what the curve is of
    people: int = 1  # who are told from their absence together: a family
    times: int = 1  # how often it is released
    secret: str = TOOK_PART  # what the attacker wants to know

    @property
    def advantage(self) -> float:
        """The most that true positives can exceed false ones, over all tests: the total variation."""
        return self.curve.advantage()

    def found(self, false_alarms: Number = FALSE_ALARMS) -> float:
        """Return the most true positives that any test with this rate of false positives has."""
        return self.curve.tpr(float(probability(false_alarms, "false_alarms")))

    @property
    def false_alarms(self) -> float:
        """The rate of false alarms at which a belief is stated: 0, so over all tests, if losses are bounded.

        With unbounded losses, such as those of Gaussian noise, some output that almost never occurs proves
        that a person took part: tests that accuse fewer than 1 in 1,000 are left out.
        """
        bounded = self.curve.deltas[-1] == 0  # the power curve leaves 0 with a finite slope
        return 0.0 if bounded else FALSE_ALARMS

    def posterior(self, prior: Number, *, false_alarms: Number | None = None) -> float:
        """Return the most that an attacker may believe after an alarm, who believed `prior` before.

        The worst case over all tests with this rate of false alarms or more, that of `Risk.false_alarms`
        unless one is given. For pure epsilon it is e^epsilon pi / (e^epsilon pi + 1 - pi).
        Theorem: Bayes; tpr/fpr falls as fpr rises, for the power curve is concave and never negative; its
        limit at 0 is e^L, with L the largest loss.

        >>> round(risk_of(PureDP(epsilon=8)).posterior(0.01), 4)
        0.9679
        """
        belief = checked_prior(prior)
        rate = probability(self.false_alarms if false_alarms is None else false_alarms, "false_alarms")
        if rate == 0 and self.false_alarms:
            raise InvalidArgument(
                "with unbounded losses, beliefs are stated at a rate of false alarms above zero",
                place="false_alarms",
                hints=("0.001 leaves out tests that accuse fewer than 1 in 1,000",),
            )
        return self.curve.posterior(float(belief), float(rate))

    def guessed(self, values: int) -> float:
        """Return the most often that a secret with `values` equally likely values is guessed right.

        Theorem: with Q the law of the output without the person, and g the most power at a rate of false
        positives, the chance is the mean over values v of P_v(guess is v) <= g(Q(guess is v)), and at most
        g(1/values): g is concave, and Q guesses something (as Hayes, Mahloujifar, Balle 2023).
        """
        return self.curve.tpr(1 / count(values, "values", least=2))

    def points(self, number: int = 101) -> tuple[tuple[float, float], ...]:
        """Return the power curve as data: (false-positive rate, most true positives)."""
        steps = count(number, "number", least=2) - 1
        return tuple((step / steps, self.curve.tpr(step / steps)) for step in range(number))

    @property
    def right(self) -> int:
        """How many of 100 people are guessed right at most, where tossing a coin guesses 50 right."""
        return min(100, math.ceil(50 * (1 + self.advantage) - 1e-9))

    @property
    def sentence(self) -> str:
        """What it means, for a reader who has not heard of epsilon."""
        who = "people" if self.people == 1 else f"families of {self.people}"
        after = f", after {self.times} releases like this," if self.times > 1 else ""
        return (
            f"Of 100 {who} whose neighbour knows everything else and guesses{after} {self.secret},"
            f" at most {self.right} are guessed right. Tossing a coin guesses 50 right."
        )


def checked_prior(prior: Number | None) -> Fraction:
    """Read what somebody believes beforehand; refuse certainty."""
    belief = probability(prior, "prior")
    if belief in (0, 1):
        raise InvalidArgument(
            "a prior of 0 or 1 is certainty: no answer changes it",
            place="prior",
            hints=("give what somebody may believe beforehand, such as 0.01",),
        )
    return belief


def risk_of(
    source: RiskSource,
    *,
    keys_delta: Number = 0,
    people: int = 1,
    times: int = 1,
    secret: str = TOOK_PART,
) -> Risk:
    """Return the risk of an event, of a budget that is spent in full, or of a guarantee.

    `keys_delta` is what finding groups adds to delta. `people` are one family; `times` says how often all
    of it is released, with fresh noise, as fixed beforehand. `secret` is what the sentence says is guessed.

    >>> noise = Gaussian(sigma=10)
    >>> round(risk_of(noise).advantage, 4), round(risk_of(noise, people=4).advantage, 4)
    (0.0399, 0.1585)
    """
    family, often = count(people, "people"), count(times, "times")
    keys = _keys(source, keys_delta) * often
    if keys >= 1:
        raise InvalidArgument(
            f"after {often} releases the delta for finding groups reaches 1: nothing is promised",
            place="keys_delta",
            hints=("declare the groups, or give a smaller delta",),
        )
    known, basis = _known(source)
    known = _repeated(known, often)
    if isinstance(known, RenyiDP):
        curve = TradeOff.of_guarantee(known).with_failure(keys).group(family)
    else:
        curve = _curve(known, keys, family)
    return Risk(curve=curve, basis=basis, people=family, times=often, secret=secret)


def _repeated(known: Event | RenyiDP, times: int) -> Event | RenyiDP:
    if times == 1:
        return known
    if isinstance(known, RenyiDP):
        return RenyiDP(order=known.order, epsilon=known.epsilon * times)
    return Repeated(event=known, times=times)


def advantage_of(source: RiskSource, *, keys_delta: Number = 0, times: int = 1) -> float:
    """Return the advantage alone, without its curve: delta at epsilon 0. Much sooner, and as sound."""
    known = _repeated(_known(source)[0], times)
    keys = upper_float(_keys(source, keys_delta) * times)
    if isinstance(known, RenyiDP):
        return min(1.0, known.delta_at(0) + keys)
    try:
        return min(1.0, (delta_of_mu(known.mu(), 0) if _gaussian(known) else known.delta(0.0)) + keys)
    except Unsupported:
        return min(1.0, RenyiCurve(sources=(known,)).delta_at(0) + keys)


def _keys(source: RiskSource, keys_delta: Number) -> Fraction:
    """Return what finding groups adds to delta."""
    keys = delta_quantity(keys_delta, name="keys_delta")
    return keys + source.keys_delta if isinstance(source, PrivacyBudget) else keys


def _curve(event: Event, keys: Fraction, people: int) -> TradeOff:
    """Return the curve for a family: that of the mechanism that it moves further, or of persons in a chain.

    Both hold where nothing is found out by keys; that with the smaller advantage is taken.
    """
    chained = _of_event(event).with_failure(keys).group(people)
    if people == 1 or keys:
        return chained
    try:
        moved = _of_event(event.group(people))
    except Unsupported:
        return chained
    return min(moved, chained, key=TradeOff.advantage)


def _of_event(event: Event) -> TradeOff:
    """Return the curve of an event; without a loss distribution, what its Renyi curve implies.

    A batch of Gaussian noise has that of its mu: exact, but for a relative 1/(24 sigma^2) of integer noise.
    """
    if _gaussian(event):
        return TradeOff.of_mu(event.mu())
    try:
        return TradeOff.of_event(event)
    except Unsupported:
        return TradeOff.of_guarantee(RenyiCurve(sources=(event,)))


def _gaussian(event: Event) -> bool:
    """Whether it is a batch of nothing but Gaussian noise."""
    parts = event.parts()
    return parts != ((event, 1),) and all(isinstance(part, _GAUSSIAN) for part, _ in parts)


def _known(source: RiskSource | IndividualPrivacy) -> tuple[Event | RenyiDP, str]:
    """Return what stands for a source, and what the curve will be of."""
    match source:
        case Event():
            return source, "the noise of the mechanisms that run"
        case PrivacyBudget(rule=RenyiRule() as rule):
            spent = RenyiDP(order=rule.order, epsilon=Fraction(source.limit, UNITS))
            return spent, f"a budget that is spent in full, by the {rule.name} rule"
        case PrivacyBudget():
            basis = f"a budget that is spent in full, by the {source.rule.name} rule"
            return source.rule.claim(Fraction(source.limit, UNITS)), basis
        case PureDP():
            return Pure(loss=source.epsilon), "pure epsilon alone: any mechanism that keeps it"
        case GaussianDP():
            return Gaussian(sigma=1 / source.mu), "Gaussian mu alone: any mechanism that keeps it"
        case ZeroConcentratedDP():
            return ZeroConcentrated(charge=source.rho), "zCDP rho alone: any mechanism that keeps it"
        case RenyiDP():
            return source, "Renyi divergence of one order alone: any mechanism that keeps it"
        case ApproximateDP():
            basis = "(epsilon, delta) alone: what is really run may tell far less"
            return Approximate(loss=source.epsilon, failure=source.delta), basis
        case IndividualPrivacy():
            raise Unsupported(
                "individual differential privacy has no risk that holds for everybody",
                hints=(
                    "it protects only neighbours of the data at hand, and its noise tells about the data",
                ),
            )
        case _:
            raise InvalidArgument(
                f"there is no risk of a {type(source).__name__}",
                place="source",
                hints=("an event, a budget such as sf.Budget(epsilon=1, delta=1e-6), or a guarantee",),
            )
