"""Events on a secret random sample of the people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, budget_quantity, checked_order, probability, upper_float
from sfumato.core.events.base import Direction, Event, check_event
from sfumato.core.events.claims import group_of_claim
from sfumato.core.search import lower_float, round_up
from sfumato.errors import InvalidArgument

__all__ = ["PoissonSubsampled"]

_LEAST, _LEAST_REST = Fraction(1, 10**100), Fraction(1, 10**15)  # where floats keep their digits
_LARGEST_SUM = 1024  # beyond this order a binomial sum over the event's divergences is slow


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSubsampled(Event):
    """An event on a secret random sample that each person enters with probability `rate`.

    Theorem: if (P, Q) dominates the event, with the person and without, then ((1-r) Q + r P, Q)
    dominates the sampled one when the person is removed, and the exchanged pair when they are
    added (Zhu, Dong, Wang 2022, Theorem 11).
    Assumes: add/remove adjacency; people are sampled independently and the sample stays secret.

    >>> from sfumato.core import Composition, events
    >>> step = PoissonSubsampled(event=events.Gaussian(sigma=1), rate=0.01)
    >>> round(Composition([(step, 1000)]).epsilon(1e-5), 2)
    1.83
    """

    event: Event
    rate: Fraction

    def __post_init__(self) -> None:
        check_event(self.event, "event")
        object.__setattr__(self, "rate", probability(self.rate, "rate"))
        if self.rate == 0:
            hint = "a sample of nobody needs no event"
            raise InvalidArgument("rate must be above zero", place="rate", hints=(hint,))
        if self.rate != 1 and not _LEAST <= self.rate <= 1 - _LEAST_REST:
            raise InvalidArgument(
                "rate must lie between 1e-100 and 1 - 1e-15, or be 1",
                place="rate",
                hints=("a sample this close to everyone is everyone: use rate=1",),
            )

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss ln(1 - r + r e^L), and of minus it where the person is added.

        Both are monotone in L, so {loss > level} is an upper tail of L, or, added, of -L: the
        loss of the event in its own ADD direction. Every mass is a sum of such tails.
        """
        if self.rate == 1:
            return self.event.tails(levels, direction)
        rate, rest = float(self.rate), float(1 - self.rate)
        if direction is Direction.REMOVE:
            p, q = self.event.tails(self._inner(levels), direction)
            everything = levels < math.log(rest)  # the loss is never below ln(1 - r)
            return np.where(everything, 1.0, rest * q + rate * p), np.where(everything, 1.0, q)
        p, q = self.event.tails(-self._inner(-levels), direction)
        possible = levels < -math.log(rest)  # the loss is never above -ln(1 - r)
        return np.where(possible, p, 0.0), np.where(possible, rest * p + rate * q, 0.0)

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return the image of the event's own range; the infinite loss that it hides becomes finite.

        An output that only Q gives (removal), or only P (added), has the loss ln(1 - r) or its negative.
        """
        low, high = self.event.support(direction)
        if self.rate == 1:
            return low, high
        rate = float(self.rate)
        if direction is Direction.REMOVE:
            _, possible = self.event.tails(np.array([-math.inf]), direction)
            return _mixed(low if possible[0] == 1 else -math.inf, rate), round_up(_mixed(high, rate))
        certain, _ = self.event.tails(np.array([math.inf]), direction)
        return -_mixed(-low, rate), round_up(-_mixed(-math.inf if certain[0] else -high, rate))

    @property
    def symmetric(self) -> bool:
        """Whether nothing is sampled away and the event is symmetric."""
        return self.rate == 1 and self.event.symmetric

    def epsilon(self) -> Cost:
        """Return ln(1 + r (e^epsilon - 1)).

        Theorem: Balle, Barthe, Gaboardi (2018), Theorem 8; attained on removal. Rounds: up.
        """
        loss = self.event.epsilon()
        if self.rate == 1 or math.isinf(loss):
            return loss
        return min(loss, round_up(_mixed(upper_float(loss), upper_float(self.rate))))

    def rho(self) -> Cost:
        """Return the smaller of the event's own rho and what the pure epsilon implies.

        Theorem: divergence is quasi-convex, so sampling never adds to it. Rounds: up.
        """
        return min(self.event.rho(), Event.rho(self))

    def mu(self) -> Cost:
        """Return the smaller of the event's own mu and what the pure epsilon implies.

        Theorem: sampling never lowers a trade-off curve (Dong, Roth, Su 2022, Section 4). Rounds: up.
        """
        return min(self.event.mu(), Event.mu(self))

    def renyi(self, order: float) -> float:
        """Return ln(sum of C(a,k) (1-r)^(a-k) r^k e^((k-1) D_k)) / (a-1) for a whole order a.

        Theorem: the binomial formula on removal; for symmetric pairs that direction is the worse
        one (Mironov, Talwar, Zhang 2019, Theorems 4 and 5). Between whole orders (a-1) D_a lies below
        its chord, for it is a cumulant and hence convex. A bounded loss may go by its distribution;
        an unbounded one must not (its moments may come from far beyond what floats see of it). And
        sampling never adds to a divergence, which is quasi-convex. Rounds: up.
        """
        a = checked_order(order)
        if self.rate == 1:
            return self.event.renyi(a)
        bounds = [self.event.renyi(a), Event.renyi(self, a)]
        if self.event.symmetric and a <= _LARGEST_SUM:
            below, above = math.floor(a), math.ceil(a)
            lower = (below - 1) * self._binomial_renyi(below) if below > 1 else 0.0
            upper = (above - 1) * self._binomial_renyi(above)
            chord = upper if below == above else (above - a) * lower + (a - below) * upper
            bounds.append(round_up(chord / (a - 1)))
        return min(bounds)

    def delta(self, epsilon: float) -> float:
        """Return r delta(t) with t = ln(1 + (e^epsilon - 1)/r), for symmetric events.

        Theorem: on removal P' - e^epsilon Q' = r (P - e^t Q) (Balle, Barthe, Gaboardi 2018, Theorem 2).
        Added it is c (P - e^s Q), c = 1 - (1-r) e^epsilon <= r and e^s = r e^epsilon / c; (1+x)(1-(1-r)x)
        <= 1 + rx for x = (e^epsilon - 1)/r says that s >= t, so removal is the worse direction.
        Others go by the loss distribution. Rounds: up.
        """
        level = budget_quantity(epsilon, "epsilon", zero=True)
        if self.rate == 1:
            return self.event.delta(epsilon)
        if not self.event.symmetric:
            return Event.delta(self, epsilon)
        inner = float(self._inner(np.array([lower_float(level)]))[0]) * (1 - 2.0**-50)
        return min(1.0, round_up(float(self.rate) * self.event.delta(inner)))

    def group(self, size: int) -> Event:
        """Cover `size` people by what is claimed of one. Theorem: `group_of_claim`."""
        return group_of_claim(self, size)

    def _inner(self, levels: FloatArray) -> FloatArray:
        """Return the t with 1 - r + r e^t = e^level, -inf where there is none."""
        rate, rest = float(self.rate), float(1 - self.rate)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if rest < 0.5:  # e^level - rest, where rest is exact and 1 - rate would not be
                small = np.log(np.maximum(np.exp(np.minimum(levels, 1.0)) - rest, 0.0) / rate)
                near = np.abs(levels) < 0.5
                small[near] = np.log1p(np.expm1(levels[near]) / rate)
            else:
                small = np.log1p(np.maximum(np.expm1(np.minimum(levels, 1.0)) / rate, -1.0))
            large = levels - math.log(rate) + np.log1p(-rest * np.exp(-np.maximum(levels, 1.0)))
        inner: FloatArray = np.where(levels < 1, small, large)
        return inner

    def _binomial_renyi(self, order: int) -> float:
        k = np.arange(2, order + 1, dtype=np.float64)
        growth = (k - 1) * np.array([self.event.renyi(float(j)) for j in k])
        if growth[-1] in (0.0, math.inf):  # it rises with k
            return float(growth[-1])
        rate = float(self.rate)
        chosen = np.array([math.lgamma(j + 1) + math.lgamma(order - j + 1) for j in k])
        logs = math.lgamma(order + 1) - chosen
        logs = logs + (order - k) * math.log1p(-rate) + k * math.log(rate)
        # The weights sum to 1 and k = 0, 1 add nothing: ln(1 + sum of weight * (e^growth - 1)).
        with np.errstate(divide="ignore"):
            logs = logs + growth + np.log(-np.expm1(-growth))
        top = float(logs.max())
        total = top + math.log(float(np.exp(logs - top).sum()))
        moment = math.log1p(math.exp(total)) if total < 30 else total + math.log1p(math.exp(-total))
        return round_up(moment / (order - 1))


def _mixed(loss: float, rate: float) -> float:
    """Return ln(1 - rate + rate e^loss)."""
    if loss < 600:  # where nothing overflows: relatively accurate at any rate
        return math.log1p(rate * math.expm1(loss))
    return loss + math.log(rate + (1 - rate) * math.exp(-loss))
