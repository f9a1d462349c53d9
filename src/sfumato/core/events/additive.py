"""Events of additive noise: Laplace and Gaussian, on the line and on the integers.

P is the noise around the true answer, Q the same noise around an answer that one person
moved by the sensitivity. Both laws are symmetric, so both directions cost the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.core.arguments import (
    Cost,
    FloatArray,
    budget_quantity,
    checked_order,
    count,
    positive,
    upper_float,
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
from sfumato.core.events.two_sided import between, laplace_quantile, sinh_defect, two_sided_renyi
from sfumato.core.search import exp_excess, round_up
from sfumato.errors import InvalidArgument

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace"]

_REACH = 13.4  # Phi(-13.4) < 1e-40
_WIDEST = 10**100


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Event):
    """Noise of density exp(-|x|/scale) / (2 scale) on an answer that one person moves by at most 1.

    >>> Laplace(scale=2).epsilon()
    Fraction(1, 2)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _width(self.scale, "scale"))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, clip(1 - 2x, -1, 1) / scale at output x."""
        top = upper_float(self.epsilon())
        inside = np.clip(levels, -top, top)
        p = 1 - np.exp((inside - top) / 2) / 2
        q = np.exp(-(inside + top) / 2) / 2
        return between(levels, -top, top, p, q)

    def epsilon(self) -> Fraction:
        """Return 1/scale. Theorem: Dwork, McSherry, Nissim, Smith (2006); attained."""
        return 1 / self.scale

    def rho(self) -> float:
        """Return epsilon + e^-epsilon - 1, the Kullback-Leibler divergence.

        Theorem: Harrison and Manurangsi (2025); no smaller rho holds. Rounds: up.
        """
        return round_up(float(exp_excess(-upper_float(self.epsilon()))))

    def mu(self) -> float:
        """Return the smallest mu: 2 quantile(1 - e^(-epsilon/2) / 2), where the curves meet on the diagonal.

        Theorem: with F the Laplace law of scale 1 and h = quantile(F), mu must be at least
        h(x) - h(x - epsilon) for every x (Dong, Roth, Su 2022). The derivative of h is the Mills
        ratio at |h|, which falls as |x| grows; so the difference is largest at x = epsilon/2.
        Rounds: up.
        """
        return round_up(2 * laplace_quantile(upper_float(self.epsilon() / 2)))

    def renyi(self, order: float) -> float:
        """Return ln(a/(2a-1) e^((a-1) epsilon) + (a-1)/(2a-1) e^(-a epsilon)) / (a-1).

        Theorem: Mironov (2017), Proposition 6. Rounds: up.
        """
        a = checked_order(order)
        above = 1 / (2 - 1 / a)
        return two_sided_renyi(a, self.epsilon(), above, (a - 1) / a * above, 0.0)

    def delta(self, epsilon: float) -> float:
        """Return 1 - e^((epsilon - 1/scale) / 2), zero from 1/scale on.

        Theorem: the hockey-stick divergence in closed form (Balle, Barthe, Gaboardi 2018). Rounds: up.
        """
        short = budget_quantity(epsilon, "epsilon", zero=True) - self.epsilon()
        return 0.0 if short >= 0 else min(1.0, round_up(-math.expm1(_nearest(short / 2))))

    def group(self, size: int) -> Laplace:
        """Cover `size` people: they move the answer by `size` times as much."""
        return Laplace(scale=self.scale / count(size, "size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Event):
    """Noise N(0, sigma^2) on an answer that one person moves by at most 1 (in Euclidean norm).

    >>> Gaussian(sigma=2).mu(), Gaussian(sigma=2).rho()
    (Fraction(1, 2), Fraction(1, 8))
    """

    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _width(self.sigma, "sigma"))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q."""
        from scipy.special import ndtr

        mu = upper_float(self.mu())
        with np.errstate(over="ignore"):
            scaled = levels / mu
        return ndtr(mu / 2 - scaled), ndtr(-mu / 2 - scaled)

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
class DiscreteLaplace(Event):
    """Integer noise, P(x) proportional to exp(-|x|/scale), on an integer that one person moves.

    >>> DiscreteLaplace(scale=20, sensitivity=3).epsilon()
    Fraction(3, 20)
    """

    scale: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _width(self.scale, "scale"))
        object.__setattr__(self, "sensitivity", _shift(self.sensitivity))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, clip(d - 2x, -d, d) / scale at output x, for sensitivity d."""
        exact, width, shift = self.epsilon(), float(self.scale), float(self.sensitivity)
        top = upper_float(exact)
        bottom = -top if exact == top else math.nextafter(-top, 1.0)
        inside = np.where((levels >= bottom) & (levels < top), levels, bottom)
        last = np.clip(last_output(inside, self.sensitivity, 1 / self.scale), 0.0, shift - 1)
        norm = 1 + math.exp(-1 / width)
        p = 1 - np.exp(-(last + 1) / width) / norm
        q = np.exp((last - shift) / width) / norm
        return between(levels, bottom, top, p, q)

    def epsilon(self) -> Fraction:
        """Return sensitivity/scale. Theorem: Ghosh, Roughgarden, Sundararajan (2009); attained."""
        return self.sensitivity / self.scale

    def rho(self) -> float:
        """Return epsilon - (1 - e^-epsilon) u/sinh(u) with u = 1/scale, the Kullback-Leibler divergence.

        Theorem: Harrison and Manurangsi (2025); no smaller rho holds. Rounds: up.
        """
        loss, u = upper_float(self.epsilon()), upper_float(1 / self.scale)
        # epsilon + e^-epsilon - 1, plus what the lattice adds; two terms of one sign.
        lattice = -math.expm1(-loss) * sinh_defect(u)
        return min(round_up(float(exp_excess(-loss)) + lattice), loss)

    def mu(self) -> float:
        """Return the smallest mu, which the two threshold tests nearest the diagonal decide.

        Theorem: mu must be at least h(y) - h(y - d) for half-integers y, h = quantile(P(X < y))
        (Dong, Roth, Su 2022). For y > 0, 1 - P(X < y) = sech(1/(2 scale)) e^(-y/scale) / 2, so h
        is odd, and concave there as for `Laplace`: the largest difference is at y next to d/2.
        Rounds: up.
        """
        u = upper_float(1 / (2 * self.scale))
        bend = math.log1p(2 * math.sinh(u / 2) ** 2) if u < 1 else u + math.log1p(math.expm1(-2 * u) / 2)
        even = 1 - self.sensitivity % 2
        nearest = (Fraction(self.sensitivity + side * even, 2) for side in (-1, 1))
        return round_up(sum(laplace_quantile(bend + upper_float(y / self.scale)) for y in nearest))

    def renyi(self, order: float) -> float:
        """Return the Renyi divergence, a geometric sum. Rounds: up.

        Theorem: outputs below 0, between, and beyond the sensitivity sum to A e^((a-1) epsilon)
        + B e^(-a epsilon), A + B = 1, the lattice form of Mironov (2017), Proposition 6; never
        above a * rho (Harrison and Manurangsi 2025).
        """
        a = checked_order(order)
        u = upper_float(1 / self.scale)
        p, falls = math.exp(-u), -math.expm1(-(2 * a - 1) * u)  # 1 - q, q = e^(-(2a-1)u)
        between = -math.expm1(-u) / falls
        above = (1 + between * (1 - falls)) / (1 + p)
        below = -p * math.expm1(-2 * (a - 1) * u) / falls / (1 + p)
        linear = (a - 1) * above - a * below
        slack = 2.0**-48 * ((a - 1) * above + a * below)  # for `linear` is a small difference
        return min(
            two_sided_renyi(a, self.epsilon(), above, below, linear + slack),
            round_up(a * self.rho()),
        )

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence as a sum of two terms that are never negative. Rounds: up.

        Theorem: with m the last output of a loss above epsilon and p = e^(-1/scale), it is
        (1 - e^(epsilon - d/scale) + p (1 - p^m)(1 - e^(epsilon - (d-m-1)/scale))) / (1 + p).
        """
        level = budget_quantity(epsilon, "epsilon", zero=True)
        if level >= self.epsilon():
            return 0.0
        last = math.ceil((self.sensitivity - level * self.scale) / 2) - 1
        p = math.exp(-_nearest(1 / self.scale))
        outer = -math.expm1(_nearest(level - self.epsilon()))
        inner = math.expm1(-_nearest(last / self.scale)) * math.expm1(
            _nearest(level - (self.sensitivity - last - 1) / self.scale)
        )
        return min(1.0, round_up((outer + p * inner) / (1 + p)))

    def group(self, size: int) -> DiscreteLaplace:
        """Cover `size` people: they move the integer by `size` times as much."""
        return DiscreteLaplace(scale=self.scale, sensitivity=self.sensitivity * count(size, "size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(Event):
    """Integer noise, P(x) proportional to exp(-x^2 / (2 sigma_squared)), on an integer that one person moves.

    >>> DiscreteGaussian(sigma_squared=100, sensitivity=3).rho()
    Fraction(9, 200)
    """

    sigma_squared: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_squared", _width(self.sigma_squared, "sigma_squared", power=2))
        object.__setattr__(self, "sensitivity", _shift(self.sensitivity))

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


# -- reading arguments --------------------------------------------------------------------


def _width(value: Any, name: str, *, power: int = 1) -> Fraction:
    """Read a noise scale; one that floats cannot work with is refused rather than guessed at."""
    width = positive(value, name)
    if not Fraction(1, _WIDEST**power) <= width <= _WIDEST**power:
        raise InvalidArgument(
            f"{name} must lie between 1e-{100 * power} and 1e{100 * power}",
            place=name,
            hints=("noise this narrow hides nobody, and noise this wide leaves no answer",),
        )
    return width


def _shift(value: Any) -> int:
    return count(value, "sensitivity", most=_WIDEST)


def _nearest(value: Fraction) -> float:
    """Return the nearest float; -inf or inf where there is none."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
