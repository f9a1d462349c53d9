"""Events of Laplace noise, on the line and on the integers.

P is the noise around the true answer, Q the same noise around an answer that one person
moved by the sensitivity. Both laws are symmetric, so both directions cost the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import (
    FloatArray,
    budget_quantity,
    checked_order,
    count,
    nearest_float,
    noise_width,
    upper_float,
    whole_shift,
)
from sfumato.core.events.base import Direction, Event
from sfumato.core.events.lattice import last_output
from sfumato.core.normal import middle_quantile, tail_quantile
from sfumato.core.search import exp_excess, round_up

__all__ = ["DiscreteLaplace", "Laplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Event):
    """Noise of density exp(-|x|/scale) / (2 scale) on an answer that one person moves by at most 1.

    >>> Laplace(scale=2).epsilon()
    Fraction(1, 2)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_width(self.scale, "scale"))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, clip(1 - 2x, -1, 1) / scale at output x."""
        top = upper_float(self.epsilon())
        inside = np.clip(levels, -top, top)
        p = 1 - np.exp((inside - top) / 2) / 2
        q = np.exp(-(inside + top) / 2) / 2
        return _between(levels, -top, top, p, q)

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
        return round_up(2 * _quantile(upper_float(self.epsilon() / 2)))

    def renyi(self, order: float) -> float:
        """Return ln(a/(2a-1) e^((a-1) epsilon) + (a-1)/(2a-1) e^(-a epsilon)) / (a-1).

        Theorem: Mironov (2017), Proposition 6. Rounds: up.
        """
        a = checked_order(order)
        above = 1 / (2 - 1 / a)
        return _two_sided_renyi(a, self.epsilon(), above, (a - 1) / a * above, 0.0)

    def delta(self, epsilon: float) -> float:
        """Return 1 - e^((epsilon - 1/scale) / 2), zero from 1/scale on.

        Theorem: the hockey-stick divergence in closed form (Balle, Barthe, Gaboardi 2018). Rounds: up.
        """
        short = budget_quantity(epsilon, "epsilon", zero=True) - self.epsilon()
        return 0.0 if short >= 0 else min(1.0, round_up(-math.expm1(nearest_float(short / 2))))

    def group(self, size: int) -> Laplace:
        """Cover `size` people: they move the answer by `size` times as much."""
        return Laplace(scale=self.scale / count(size, "size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(Event):
    """Integer noise, P(x) proportional to exp(-|x|/scale), on an integer that one person moves.

    >>> DiscreteLaplace(scale=20, sensitivity=3).epsilon()
    Fraction(3, 20)
    """

    scale: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_width(self.scale, "scale"))
        object.__setattr__(self, "sensitivity", whole_shift(self.sensitivity))

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
        return _between(levels, bottom, top, p, q)

    def epsilon(self) -> Fraction:
        """Return sensitivity/scale. Theorem: Ghosh, Roughgarden, Sundararajan (2009); attained."""
        return self.sensitivity / self.scale

    def rho(self) -> float:
        """Return epsilon - (1 - e^-epsilon) u/sinh(u) with u = 1/scale, the Kullback-Leibler divergence.

        Theorem: Harrison and Manurangsi (2025); no smaller rho holds. Rounds: up.
        """
        loss, u = upper_float(self.epsilon()), upper_float(1 / self.scale)
        # epsilon + e^-epsilon - 1, plus what the lattice adds; two terms of one sign.
        lattice = -math.expm1(-loss) * _sinh_defect(u)
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
        even = 1 - self.sensitivity % 2  # an odd d is halfway between integers: both sides are at d/2
        lower = _quantile(bend + upper_float(Fraction(self.sensitivity - even, 2) / self.scale))
        if not even:
            return round_up(2 * lower)
        return round_up(lower + _quantile(bend + upper_float(Fraction(self.sensitivity + 1, 2) / self.scale)))

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
            _two_sided_renyi(a, self.epsilon(), above, below, linear + slack), round_up(a * self.rho())
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
        p = math.exp(-nearest_float(1 / self.scale))
        outer = -math.expm1(nearest_float(level - self.epsilon()))
        inner = math.expm1(-nearest_float(last / self.scale)) * math.expm1(
            nearest_float(level - (self.sensitivity - last - 1) / self.scale)
        )
        return min(1.0, round_up((outer + p * inner) / (1 + p)))

    def group(self, size: int) -> DiscreteLaplace:
        """Cover `size` people: they move the integer by `size` times as much."""
        return DiscreteLaplace(scale=self.scale, sensitivity=self.sensitivity * count(size, "size"))


def _between(
    levels: FloatArray, bottom: float, top: float, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return all the mass below a bounded loss, none from its top on, and (p, q) between."""
    everything, inside = levels < bottom, levels < top
    return np.where(everything, 1.0, np.where(inside, p, 0.0)), np.where(
        everything, 1.0, np.where(inside, q, 0.0)
    )


def _quantile(exponent: float) -> float:
    """Return the z with P(N(0,1) > z) = e^-exponent / 2."""
    if exponent < 0.5:  # near the median a logarithm would lose the small difference
        return middle_quantile(-math.expm1(-exponent))
    return float(tail_quantile(np.array([-math.log(2) - exponent]))[0])


def _two_sided_renyi(order: float, epsilon: Fraction, above: float, below: float, linear: float) -> float:
    """Return ln(above e^((a-1) epsilon) + below e^(-a epsilon)) / (a-1), rounded up.

    `above + below` is 1 and `linear` is (a-1) above - a below, known to the caller without
    cancellation; where the result is small, only terms of one sign are then added.
    """
    loss, rest = upper_float(epsilon), order - 1
    if rest * loss < 1:
        moment = above * exp_excess(rest * loss) + below * exp_excess(-order * loss) + linear * loss
        value = math.log1p(max(0.0, float(moment))) / rest
    else:
        value = loss + math.log(above + below * math.exp(-(2 * order - 1) * loss)) / rest
    return min(loss, round_up(value))


def _sinh_defect(u: float) -> float:
    """Return 1 - u / sinh(u) without cancellation."""
    if u > 1:
        return 1 - 2 * u * math.exp(-u) / -math.expm1(-2 * u)
    excess = sum(u ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 10))  # sinh(u)/u - 1
    return excess / (1 + excess)
