"""Events of Gaussian noise: on the line, the integers, and vectors of integers. P and Q: as in `laplace`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import (
    Cost,
    FloatArray,
    checked_order,
    count,
    noise_width,
    positive,
    upper_float,
    whole_shift,
)
from sfumato.core.conversions import delta_of_mu
from sfumato.core.events.base import Direction, Event
from sfumato.core.events.lattice import (
    gaussian_mu,
    gaussian_reach,
    gaussian_survival,
    last_output,
    wrap_ratio,
)
from sfumato.core.normal import lower_tails
from sfumato.core.search import root_above, round_up

__all__ = ["DiscreteGaussian", "DiscreteGaussianVector", "Gaussian"]

_REACH = 13.4  # Phi(-13.4) < 1e-40


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Event):
    """Noise N(0, sigma^2) on an answer that one person moves by at most 1 (in Euclidean norm).

    >>> Gaussian(sigma=2).mu(), Gaussian(sigma=2).rho()
    (Fraction(1, 2), Fraction(1, 8))
    """

    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", noise_width(self.sigma, "sigma"))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q."""
        mu = upper_float(self.mu())
        with np.errstate(over="ignore"):
            scaled = levels / mu
        return lower_tails(mu / 2 - scaled), lower_tails(-mu / 2 - scaled)

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return the losses within 13.4 standard deviations of their mean."""
        mu = upper_float(self.mu())
        return mu * (mu / 2 - _REACH), mu * (mu / 2 + _REACH)

    def rho(self) -> Fraction:
        """Return 1/(2 sigma^2). Theorem: Bun and Steinke (2016), Proposition 1.6; attained at every order."""
        return 1 / (2 * self.sigma**2)

    def mu(self) -> Fraction:
        """Return 1/sigma. Theorem: Dong, Roth, Su (2022), Theorem 2.7; attained."""
        return 1 / self.sigma

    def renyi(self, order: float) -> float:
        """Return order/(2 sigma^2). Theorem: Mironov (2017), Proposition 7. Rounds: up."""
        return upper_float(Fraction(checked_order(order)) * self.rho())

    def delta(self, epsilon: float) -> float:
        """Return the analytic Gaussian's delta. Theorem: Balle and Wang (2018), Theorem 8. Rounds: up."""
        return delta_of_mu(self.mu(), epsilon)

    def group(self, size: int) -> Gaussian:
        """Cover `size` people: they move the answer by `size` times as much."""
        return Gaussian(sigma=self.sigma / count(size, "size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(Event):
    """Integer noise, P(x) proportional to exp(-x^2 / (2 sigma_squared)), on an integer that one person moves.

    >>> DiscreteGaussian(sigma_squared=100, sensitivity=3).rho()
    Fraction(9, 200)
    """

    sigma_squared: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_squared", noise_width(self.sigma_squared, "sigma_squared", power=2))
        object.__setattr__(self, "sensitivity", whole_shift(self.sensitivity))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, d (d - 2x) / (2 sigma_squared) at output x, for sensitivity d."""
        last = last_output(levels, self.sensitivity, self._slope)
        p = gaussian_survival(-last, self.sigma_squared)
        q = gaussian_survival(float(self.sensitivity) - last, self.sigma_squared)
        return p, q

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return the losses of outputs that are not rarer than 1e-40 altogether."""
        far = 2 * gaussian_reach(self.sigma_squared)
        slope = self._slope
        return upper_float((self.sensitivity - far) * slope), upper_float((self.sensitivity + far) * slope)

    def rho(self) -> Fraction:
        """Return d^2 / (2 sigma_squared). Theorem: Canonne, Kamath, Steinke (2020), Theorem 4; attained."""
        return self.sensitivity**2 / (2 * self.sigma_squared)

    def mu(self) -> Cost:
        """Return a mu certified threshold by threshold, about (d/sigma)(1 + 1/(24 sigma_squared)).

        Theorem: `lattice.gaussian_mu`. Rounds: up.
        """
        return gaussian_mu(self.sigma_squared, self.sensitivity)

    def renyi(self, order: float) -> float:
        """Return order * rho, less what a fractional order * sensitivity saves where sigma is small.

        Theorem: completing the square, sum P^a Q^(1-a) = e^(a(a-1) rho) Z(a d) / Z(0), where Z(c)
        sums the weights of the integers moved by c (Canonne, Kamath, Steinke 2020). Rounds: up.
        """
        a = Fraction(checked_order(order))
        bound = upper_float(a * self.rho())
        ratio = wrap_ratio(a * self.sensitivity, self.sigma_squared)
        if ratio == 1:
            return bound
        exact = bound * (1 + 2.0**-50) + (math.log(ratio) + 2.0**-45) / upper_float(a - 1)
        return min(bound, max(0.0, round_up(exact)))

    def group(self, size: int) -> DiscreteGaussian:
        """Cover `size` people: they move the integer by `size` times as much."""
        return DiscreteGaussian(
            sigma_squared=self.sigma_squared, sensitivity=self.sensitivity * count(size, "size")
        )

    @property
    def _slope(self) -> Fraction:
        return self.sensitivity / (2 * self.sigma_squared)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianVector(Event):
    """Integer noise, P(x) proportional to exp(-x^2 / (2 sigma_squared)), on each entry of an integer vector.

    One person changes the vector by a vector of integers whose squares sum to at most
    `l2_squared`, in any entries.

    Theorem: an entry moved by d has a trade-off curve above that of a Gaussian of mu = |d| m,
    where m is the mu of moving by one: every corner of the curve is h(y) - h(y - d), a sum of |d|
    steps of at most m (`lattice.gaussian_mu`). Independent entries compose to the root of the
    sum of squares (Dong, Roth, Su 2022, Corollary 3.3), at most m sqrt(l2_squared). A Gaussian
    curve that lies below bounds every other cost as well, so the loss distribution is its.

    >>> DiscreteGaussianVector(sigma_squared=100, l2_squared=5).rho()
    Fraction(1, 40)
    """

    sigma_squared: Fraction
    l2_squared: Fraction

    def __post_init__(self) -> None:
        single = DiscreteGaussian(sigma_squared=self.sigma_squared, sensitivity=1)  # validates
        object.__setattr__(self, "sigma_squared", single.sigma_squared)
        object.__setattr__(self, "l2_squared", positive(self.l2_squared, "l2_squared"))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the Gaussian loss that dominates. Rounds: up."""
        return self._gaussian.tails(levels, direction)

    def support(self, direction: Direction) -> tuple[float, float]:
        return self._gaussian.support(direction)

    def rho(self) -> Fraction:
        """Return l2_squared / (2 sigma_squared). Theorem: Canonne, Kamath, Steinke (2020), for vectors."""
        return self.l2_squared / (2 * self.sigma_squared)

    def mu(self) -> Cost:
        """Return m sqrt(l2_squared). Theorem: see the class. Rounds: up."""
        step = Fraction(DiscreteGaussian(sigma_squared=self.sigma_squared, sensitivity=1).mu())
        return root_above(step**2 * self.l2_squared)

    def renyi(self, order: float) -> float:
        """Return order * rho. Theorem: as for `rho`. Rounds: up."""
        return upper_float(Fraction(checked_order(order)) * self.rho())

    def delta(self, epsilon: float) -> float:
        """Return the delta of the Gaussian that dominates. Rounds: up."""
        return self._gaussian.delta(epsilon)

    def group(self, size: int) -> DiscreteGaussianVector:
        """Cover `size` people: norms add up at most."""
        return DiscreteGaussianVector(
            sigma_squared=self.sigma_squared, l2_squared=self.l2_squared * count(size, "size") ** 2
        )

    @property
    def _gaussian(self) -> Gaussian:
        return Gaussian(sigma=1 / Fraction(self.mu()))
