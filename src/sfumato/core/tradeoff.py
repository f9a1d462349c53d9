"""The trade-off curve: how well any test can tell whether a person took part.

A test that raises false alarms at rate `fpr` misses the person at rate at least f(fpr).
The curve is kept as what it is made of: a list of (epsilon, delta) guarantees, each a
straight line that the curve lies above. Between them the curve is where their maximum
is, which is at or below the true one: the adversary is never underestimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.core.arguments import (
    FloatArray,
    Number,
    budget_quantity,
    count,
    delta_quantity,
    probability,
    upper_float,
)
from sfumato.core.events.base import Event
from sfumato.core.events.gaussian import Gaussian
from sfumato.core.measures import ApproximateDP, GaussianDP, Guarantee, PureDP
from sfumato.core.search import SLACK, round_up
from sfumato.errors import InvalidArgument

__all__ = ["TradeOff"]

_POINTS = 2001
_FEWER = 15  # where each delta is a search of its own
_FAINT = 1e-12  # the smallest delta that such a search is for
_MOST_PEOPLE = 1000  # of a group


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """A lower bound on the false-negative rate at every false-positive rate, in both directions.

    Theorem: being (epsilon, delta)-DP is fnr >= max(0, 1 - delta - e^epsilon fpr,
    e^-epsilon (1 - delta - fpr)) (Wasserman and Zhou 2010; Kairouz, Oh, Viswanath 2015), and
    the curve and the profile delta(epsilon) are convex conjugates (Dong, Roth, Su 2022).
    Rounds: against the curator (delta up, fnr down).

    >>> round(TradeOff.of_approximate(epsilon=1).advantage(), 4)
    0.4621
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    def __post_init__(self) -> None:
        epsilons, deltas = self.epsilons, self.deltas
        if not epsilons or len(epsilons) != len(deltas):
            raise InvalidArgument("a trade-off curve needs as many deltas as epsilons, at least one")
        if not all(type(epsilon) is float and 0 <= epsilon < math.inf for epsilon in epsilons):
            for epsilon in epsilons:  # slow, and says what is wrong
                budget_quantity(epsilon, "epsilons", zero=True)
        if not all(type(delta) is float and 0 <= delta <= 1 for delta in deltas):
            for delta in deltas:
                probability(delta, "deltas")
        if any(later <= earlier for earlier, later in pairwise(epsilons)):
            raise InvalidArgument("epsilons must increase", place="epsilons")
        if any(later > earlier for earlier, later in pairwise(deltas)):
            raise InvalidArgument("deltas must not increase", place="deltas")

    @staticmethod
    def of_approximate(epsilon: Number, delta: Number = 0) -> TradeOff:
        """Return the curve of an (epsilon, delta) guarantee about which nothing else is known."""
        loss, failure = budget_quantity(epsilon, "epsilon", zero=True), delta_quantity(delta)
        return TradeOff(epsilons=(upper_float(loss),), deltas=(upper_float(failure),))

    @staticmethod
    def of_mu(mu: Number) -> TradeOff:
        """Return the curve of mu-Gaussian DP: N(0, 1) against N(mu, 1)."""
        return TradeOff.of_event(Gaussian(sigma=1 / budget_quantity(mu, "mu")))

    @staticmethod
    def of_guarantee(guarantee: Guarantee) -> TradeOff:
        """Return the curve of all mechanisms that have a guarantee: what it implies at every epsilon."""
        match guarantee:
            case PureDP():
                return TradeOff.of_approximate(guarantee.epsilon)
            case ApproximateDP():
                return TradeOff.of_approximate(guarantee.epsilon, guarantee.delta)
            case GaussianDP():
                return TradeOff.of_mu(guarantee.mu)
            case _:
                top = upper_float(guarantee.to_approximate(_FAINT).epsilon)
                grid = (max(top, 1e-9) * np.square(np.linspace(0.0, 1.0, _FEWER))).tolist()
                return _increasing(grid, [guarantee.delta_at(epsilon) for epsilon in grid])

    @staticmethod
    def of_event(event: Event) -> TradeOff:
        """Return the curve of the mechanism that an event records: tighter than its (epsilon, delta).

        Theorem: Neyman and Pearson: the best tests put a threshold on the loss, with
        fpr = Q(L > level) and fnr = 1 - P(L > level); the tangent there is the line of
        (level, P(L > level) - e^level Q(L > level)).
        """
        pure = upper_float(event.epsilon())
        top = max(event.support(direction)[1] for direction in event.directions)
        grid = np.linspace(0.0, max(min(top, pure), 1e-9), _POINTS)
        deltas = np.zeros(_POINTS)
        for direction in event.directions:
            with_person, without = event.tails(grid, direction)
            possible = without > 0
            exponent = grid + np.log(np.where(possible, without, 1.0))  # one exp, so nothing overflows
            other = np.where(possible, np.exp(np.minimum(exponent, 0.0)), 0.0)
            deltas = np.maximum(deltas, with_person - other + with_person * SLACK)
        epsilons, values = grid.tolist(), np.clip(deltas, 0.0, 1.0).tolist()
        if math.isfinite(pure):  # the loss is bounded: a last line with delta = 0
            epsilons, values = [*epsilons, max(pure, math.nextafter(epsilons[-1], math.inf))], [*values, 0.0]
        return _increasing(epsilons, values)

    def with_failure(self, chance: Number) -> TradeOff:
        """Return the curve if besides, with this chance at most, nothing at all is promised. Rounds: up.

        Theorem: a union bound: (epsilon, delta) becomes (epsilon, delta + chance).
        """
        added = upper_float(delta_quantity(chance, name="chance"))
        deltas = tuple(min(1.0, math.nextafter(delta + added, 2.0)) for delta in self.deltas)
        return self if added == 0 else TradeOff(epsilons=self.epsilons, deltas=deltas)

    def group(self, size: int) -> TradeOff:
        """Return the curve for `size` people together instead of one. Rounds: up.

        Theorem: the most power against a group is that against one person applied `size` times over,
        g(g(..g(fpr)..)) (Dong, Roth, Su 2022, Theorem 2.14); exact for one number with Gaussian or Laplace
        noise. g lies below straight lines of positive slope, so a chain of lines lies above the chain
        of g: which lines are taken decides how tight the result is, not whether it holds.

        >>> round(TradeOff.of_mu(0.2).group(3).advantage(), 4) == round(TradeOff.of_mu(0.6).advantage(), 4)
        True
        """
        people = count(size, "size", most=_MOST_PEOPLE)
        if people == 1:
            return self
        steep, lifts = np.array(self.epsilons), np.array(self.deltas)
        logs = np.concatenate([steep, -steep])  # of the slopes; the second half are the mirror images
        starts = np.concatenate([lifts, 1 - np.exp(-steep) * (1 - lifts)])
        with np.errstate(over="ignore"):
            slopes = np.exp(logs)  # inf, where a line is too steep for floats
        rates = np.concatenate([[0.0], np.geomspace(1e-30, 1.0, 500), np.linspace(0.0, 1.0, 300)[1:-1]])
        total, start = np.zeros(len(rates)), np.zeros(len(rates))
        for _ in range(people):
            heights = [starts + _product(slopes, rate) for rate in rates.tolist()]
            best = np.array([int(np.argmin(height)) for height in heights])
            rates = np.array([min(1.0, float(height.min())) for height in heights])
            total, start = total + logs[best], starts[best] + _product(slopes[best], start * (1 + SLACK))
        useful = (total >= 0) & (start <= 1)
        pairs: dict[float, float] = {}
        for epsilon, delta in zip(total[useful].tolist(), start[useful].tolist(), strict=True):
            above = epsilon * (1 + SLACK)
            pairs[above] = min(pairs.get(above, 1.0), delta)
        pairs = pairs or {0.0: 1.0}  # nothing is promised to so many
        return _increasing(sorted(pairs), [pairs[epsilon] for epsilon in sorted(pairs)])

    def tpr(self, fpr: float) -> float:
        """Return the most power that any test of this false-positive rate can have. Rounds: up."""
        rate = float(probability(fpr, "fpr"))
        epsilons, deltas = np.array(self.epsilons), np.array(self.deltas)
        with np.errstate(over="ignore"):
            steep = deltas + (np.exp(epsilons) * rate if rate > 0 else 0.0)
        flat = 1 - np.exp(-epsilons) * (1 - deltas - rate)
        return min(1.0, round_up(float(min(steep.min(), flat.min()))))

    def fnr(self, fpr: float) -> float:
        """Return the least rate at which such a test misses the person. Rounds: down."""
        return 1 - self.tpr(fpr)

    def advantage(self) -> float:
        """Return the most that power can exceed the false-positive rate: the total variation. Rounds: up."""
        return self.delta(0)

    def delta(self, epsilon: Number) -> float:
        """Return the delta at any epsilon: the convex conjugate of the curve. Rounds: up."""
        target = float(budget_quantity(epsilon, "epsilon", zero=True))
        # The profile is convex in e^epsilon; a chord between two known points lies above it. The
        # mirror image of (epsilon, delta) has slope e^-epsilon and intercept 1 - e^-epsilon (1 - delta).
        first, least = self.epsilons[0], self.deltas[0]
        points = [(-first, 1 - math.exp(-first) * (1 - least)), *zip(self.epsilons, self.deltas, strict=True)]
        for (left, high), (right, low) in pairwise(points):
            if left <= target < right:
                weight = math.exp(target - right) * math.expm1(left - target) / math.expm1(left - right)
                return min(high, round_up(high + (low - high) * weight))
        return self.deltas[-1]

    def posterior(self, prior: float, fpr: float = 0.0) -> float:
        """Return the most one may believe that a person took part, after a test says so. Rounds: up.

        At `fpr` 0, the worst single output. Bayes: pi tpr / (pi tpr + (1 - pi) fpr).
        """
        belief, rate = float(probability(prior, "prior")), float(probability(fpr, "fpr"))
        if belief in (0.0, 1.0):
            return belief
        if rate == 0 and self.deltas[-1] == 0:  # the limit of tpr/fpr is the largest possible loss
            largest = self.epsilons[self.deltas.index(0)]
            return min(1.0, round_up(1 / (1 + (1 - belief) / belief * math.exp(-largest))))
        power = self.tpr(rate)
        return min(1.0, round_up(belief * power / (belief * power + (1 - belief) * rate)))


def _product(slopes: FloatArray, rates: FloatArray | float) -> FloatArray:
    """Return slopes times rates, where infinitely often nothing is nothing."""
    with np.errstate(invalid="ignore", over="ignore"):
        product: FloatArray = np.where(np.asarray(rates) > 0, slopes * rates, 0.0)
    return product


def _increasing(epsilons: list[float], deltas: list[float]) -> TradeOff:
    """Build a curve; delta never rises with epsilon, so where round-off raised it the earlier one holds."""
    kept = np.minimum.accumulate(np.array(deltas)).tolist()
    return TradeOff(epsilons=tuple(epsilons), deltas=tuple(kept))
