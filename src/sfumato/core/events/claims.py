"""Events of mechanisms that are known only by a guarantee.

A guarantee stands for the worst mechanism that it allows. For pure and approximate
privacy that is a single pair of laws: randomized response, with or without a failure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np

from sfumato.core.arguments import (
    Cost,
    FloatArray,
    budget_quantity,
    checked_order,
    count,
    delta_quantity,
    loss_quantity,
    upper_float,
)
from sfumato.core.conversions import delta_of_pure, mu_of_pure, renyi_of_pure
from sfumato.core.events.base import Direction, Event
from sfumato.core.events.gaussian import Gaussian
from sfumato.core.renyi import delta_of_rho
from sfumato.core.search import geometric_sum, round_up
from sfumato.errors import Unsupported

__all__ = ["Approximate", "BoundedRange", "Pure", "ZeroConcentrated", "group_of_claim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(Event):
    """Some mechanism that is known to be epsilon-private, with epsilon = `loss`.

    Theorem: every such mechanism is a post-processing of randomized response between two
    answers with the same epsilon (Kairouz, Oh, Viswanath 2015), so that pair dominates it.

    >>> Pure(loss=0.1).group(3)
    Pure(loss=Fraction(3, 10))
    """

    loss: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", loss_quantity(self.loss))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, which is epsilon or -epsilon."""
        return _response_tails(levels, self.loss, 0.0)

    def epsilon(self) -> Fraction:
        return self.loss

    def renyi(self, order: float) -> float:
        """Return that of randomized response. Theorem: Mironov (2017), Proposition 5. Rounds: up."""
        return renyi_of_pure(checked_order(order), self.loss)

    def delta(self, epsilon: float) -> float:
        """Return (e^loss - e^epsilon) / (1 + e^loss), zero from `loss` on. Rounds: up.

        Theorem: attained by randomized response (Kairouz, Oh, Viswanath 2015).
        """
        return delta_of_pure(self.loss, epsilon)

    def group(self, size: int) -> Pure:
        """Cover `size` people. Theorem: epsilon adds along a chain of neighbours (Dwork et al. 2006)."""
        return Pure(loss=self.loss * count(size, "size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximate(Event):
    """Some mechanism that is known to be (epsilon, delta)-private: `loss` and `failure`.

    Theorem: every such mechanism is a post-processing of one that with probability delta
    tells the truth, and otherwise answers by randomized response (Kairouz, Oh, Viswanath 2015).

    >>> round(Approximate(loss=1, failure=1e-6).delta(1), 9)
    1e-06
    """

    loss: Fraction
    failure: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", loss_quantity(self.loss, zero=True))
        object.__setattr__(self, "failure", delta_quantity(self.failure, name="failure"))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, which is epsilon, -epsilon, or infinite."""
        return _response_tails(levels, self.loss, upper_float(self.failure))

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return both finite values of the loss."""
        top = upper_float(self.loss)
        return -top, top

    def epsilon(self) -> Cost:
        """Return inf, unless there is no failure."""
        return math.inf if self.failure else self.loss

    def renyi(self, order: float) -> float:
        """Return inf, unless there is no failure: an infinite loss makes every moment infinite."""
        return renyi_of_pure(checked_order(order), self.epsilon())

    def delta(self, epsilon: float) -> float:
        """Return failure + (1 - failure) times the delta of the pure part. Rounds: up."""
        pure = Fraction(delta_of_pure(self.loss, epsilon))
        return upper_float(self.failure + (1 - self.failure) * pure)

    def group(self, size: int) -> Approximate:
        """Cover `size` people: (k epsilon, delta (1 + e^epsilon + ... + e^((k-1) epsilon))).

        Theorem: the triangle inequality of hockey sticks along a chain of neighbours (Vadhan 2017,
        Lemma 2.2, with its sum kept). Rounds: up.
        """
        people = count(size, "size")
        grown = geometric_sum(upper_float(self.loss), people)
        if math.isinf(grown) or self.failure * Fraction(grown) >= 1:
            raise Unsupported(
                f"this claim says nothing about a group of {people}: its delta would reach 1",
                hints=("delta grows like e^(k epsilon) with the size k of the group",),
            )
        return Approximate(loss=self.loss * people, failure=self.failure * Fraction(grown))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRange(Event):
    """For each pair of neighbours, all losses lie within some interval of length `loss`.

    Theorem: let L lie in [t - e, t] with E_Q[exp(L)] = 1. Given t, E_Q[max(0, exp(L) - s)] is
    largest when L takes its two extreme values (Jensen), with P-probability
    (1 - exp(t-e)) / (1 - exp(-e)) of the upper one and exp(-t) times that under Q. Over all t
    these points of the power curve are concave in Q; so one pair has exactly this curve, and
    dominates: its loss at t is 2t - e (Dong, Durfee and Rogers 2020; Zhu, Dong and Wang 2022).

    >>> BoundedRange(loss=1).epsilon(), BoundedRange(loss=1).rho()
    (Fraction(1, 1), Fraction(1, 8))
    """

    loss: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", loss_quantity(self.loss))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss 2t - e, for the e of the class."""
        bound = upper_float(self.loss)
        inside = np.clip(levels, -bound, bound)
        with_person = np.expm1((inside - bound) / 2) / np.expm1(-bound)
        # At or below -bound both are one: the formulas meet it.
        return with_person, with_person * np.exp(-(inside + bound) / 2)

    def epsilon(self) -> Cost:
        """Return the range: a loss of either sign occurs, for both laws have mass one."""
        return self.loss

    def rho(self) -> Cost:
        """Return loss^2 / 8, or what pure epsilon gives where that is less (loss > 8).

        Theorem: K(a) = ln E_Q[exp(aL)] vanishes at 0 and 1, and K'' is the variance of L under
        a tilted law, at most loss^2 / 4. So K(a) <= a(a-1) loss^2 / 8, for K minus that parabola
        is concave with zeros at 0 and 1 (Cesar and Rogers 2021).
        """
        return min(self.loss**2 / 8, Event.rho(self))

    def mu(self) -> Cost:
        """Return the Gaussian mu: 2 * quantile(1 / (1 + exp(-loss / 2))), half that of pure epsilon or less.

        Theorem: at each point of the power curve of the class P / (1 - P) = e^loss * Q / (1 - Q): a shift
        by `loss` in log-odds w. In normal quantiles z(w) that is the integral of z' over a window of
        length `loss`; z'(w) = m(z) = Phi(z) (1 - Phi(z)) / phi(z) is even and falls in |z|, so no window
        has more than the one around zero, which is the mu stated (and attained).
        m falls for z > 0: m' = z m - (2 Phi - 1) and m'' = -2 phi + m + z m'. Where m' = 0,
        m'' = (2 Phi - 1) / z - 2 phi > 0, for 2 Phi - 1 is the integral of 2 phi from 0 to z: only minima.
        But m''(0) < 0 and m falls to 0 in the end, so after a minimum there would have to be a
        maximum: there is neither. Rounds: up.
        """
        return mu_of_pure(self.loss / 2)

    def renyi(self, order: float) -> float:
        """Return order * loss^2 / 8, or the loss where that is less. Theorem: as `rho`. Rounds: up."""
        a = Fraction(checked_order(order))
        return upper_float(min(a * self.loss**2 / 8, self.loss))

    def delta(self, epsilon: float) -> float:
        """Return (1 - exp((epsilon - loss) / 2))^2 / (1 - exp(-loss)), zero from `loss` on.

        Theorem: the best t (Dong, Durfee and Rogers 2020). Rounds: up.
        """
        short = self.loss - budget_quantity(epsilon, "epsilon", zero=True)
        if short <= 0:
            return 0.0
        excess = math.expm1(-upper_float(short) / 2) ** 2
        return min(1.0, round_up(excess / -math.expm1(-upper_float(self.loss))))

    def group(self, size: int) -> BoundedRange:
        """Cover `size` people: losses along a chain of neighbours add, and so do their ranges."""
        return BoundedRange(loss=self.loss * count(size, "size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConcentrated(Event):
    """Some mechanism that is known to be rho-zCDP, with rho = `charge`.

    No single pair of laws dominates all of these, so there is no loss distribution.

    >>> ZeroConcentrated(charge=0.125).rho()
    Fraction(1, 8)
    """

    charge: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "charge", budget_quantity(self.charge, "charge"))

    def tails(self, levels: FloatArray, direction: Direction) -> NoReturn:
        """Refuse: a zCDP claim bounds moments of the loss, not its distribution."""
        raise Unsupported(
            "a zCDP claim has no loss distribution",
            hints=(
                "account for it by `rho` or `renyi`",
                "record the mechanism that was run, such as Gaussian or DiscreteGaussian",
            ),
        )

    def support(self, direction: Direction) -> NoReturn:
        """Refuse, as `tails`."""
        self.tails(np.zeros(0), direction)

    def rho(self) -> Fraction:
        return self.charge

    def renyi(self, order: float) -> float:
        """Return order * rho. Theorem: the definition (Bun and Steinke 2016). Rounds: up."""
        return upper_float(Fraction(checked_order(order)) * self.charge)

    def delta(self, epsilon: float) -> float:
        """Return the delta that the claim implies. Theorem: `renyi.delta_of_rho`. Rounds: up."""
        return delta_of_rho(self.charge, epsilon)

    def group(self, size: int) -> ZeroConcentrated:
        """Cover `size` people: size^2 rho. Theorem: Bun and Steinke (2016), Proposition 1.9."""
        return ZeroConcentrated(charge=self.charge * count(size, "size") ** 2)


def group_of_claim(event: Event, size: int) -> Event:
    """Cover `size` people by what is known of one: its pure epsilon, else its mu, else its rho.

    Theorem: epsilon and mu grow in proportion to the size (Dwork et al. 2006; Dong, Roth, Su
    2022, Theorem 2.14), rho with its square (Bun and Steinke 2016, Proposition 1.9).
    """
    people = count(size, "size")
    if people == 1 or event.epsilon() == 0:
        return event
    if math.isfinite(event.epsilon()):
        return Pure(loss=Fraction(event.epsilon()) * people)
    if math.isfinite(event.mu()):
        return Gaussian(sigma=1 / (Fraction(event.mu()) * people))
    if math.isfinite(event.rho()):
        return ZeroConcentrated(charge=Fraction(event.rho()) * people**2)
    return Event.group(event, size)


def _response_tails(levels: FloatArray, loss: Fraction, failure: float) -> tuple[FloatArray, FloatArray]:
    """Return the tails of (failure: infinite loss; otherwise randomized response)."""
    top = upper_float(loss)
    kept, truth = 1 - failure, 1 / (1 + math.exp(-top))
    lie = truth * math.exp(-top)
    low, inside = levels < -top, levels < top
    p = np.where(low, 1.0, np.where(inside, failure + kept * truth, failure))
    q = np.where(low, kept, np.where(inside, kept * lie, 0.0))
    return p, q
