"""The event of mechanisms whose privacy loss has a bounded range, such as the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import (
    Cost,
    FloatArray,
    budget_quantity,
    checked_order,
    count,
    loss_quantity,
    upper_float,
)
from sfumato.core.conversions import mu_of_pure
from sfumato.core.events.base import Direction, Event
from sfumato.core.search import round_up

__all__ = ["BoundedRange"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRange(Event):
    """For each pair of neighbours, all losses lie within some interval of length `loss`.

    Theorem: let L lie in [t - e, t] with E_Q[exp(L)] = 1. Given t, E_Q[max(0, exp(L) - s)] is
    largest when L takes its two extreme values (Jensen), with P-probability
    (1 - exp(t-e)) / (1 - exp(-e)) of the upper one and exp(-t) times that under Q. Over all t
    these points of the power curve are concave in Q; so one pair has exactly this curve, and
    dominates: its loss at t is 2t - e (Dong, Durfee and Rogers 2020; Zhu, Dong and Wang 2022).
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

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return the range of the loss: it never leaves [-epsilon, epsilon]."""
        top = upper_float(self.loss)
        return -top, top

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
