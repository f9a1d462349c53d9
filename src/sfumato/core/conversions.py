"""Conversions between privacy measures, each rounded to the safe side.

    pure epsilon ──> zCDP rho ──> Renyi (order, value) ──> (epsilon, delta)
         └────────> Gaussian mu ────────────────────────────────┘

`delta_of_*` and `epsilon_of_*` read a guarantee as (epsilon, delta) and round up;
`largest_*` go the other way, to the most that fits within (epsilon, delta), and round
down. Those that involve Renyi divergence are in `renyi`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

from sfumato.core.arguments import (
    Cost,
    FloatArray,
    Number,
    budget_quantity,
    checked_order,
    delta_quantity,
    upper_float,
)
from sfumato.core.normal import middle_quantile, scaled_tail, tail_quantile, upper_tail
from sfumato.core.search import SLACK, largest, lower_float, round_up, smallest
from sfumato.errors import InvalidArgument

__all__ = [
    "delta_of_mu",
    "delta_of_pure",
    "epsilon_of_mu",
    "epsilon_of_pure",
    "largest_mu",
    "largest_pure",
    "mu_of_pure",
    "positive_delta",
    "renyi_of_pure",
    "rho_of_pure",
]

_CANCELS = 100.0  # beyond this mu, what floats round of epsilon / mu - mu / 2 is felt in delta
_LARGEST = 1e200  # a loss beyond this has no use, and its square no float
_ROOT_HALF_PI = math.sqrt(math.pi / 2)


def rho_of_pure(epsilon: Cost) -> Cost:
    """Return the zCDP rho that epsilon-DP implies: epsilon * tanh(epsilon / 2).

    Theorem: every epsilon-DP pair is a post-processing of randomized response (Kairouz, Oh,
    Viswanath 2015), whose order-a Renyi divergence is ln(cosh((a-1/2)e) / cosh(e/2)) / (a-1);
    ln cosh(sqrt(s) e) is concave in s = (a-1/2)^2, so its tangent at s = 1/4 (order 1) bounds
    it: rho = e tanh(e/2), attained as the order falls to 1. Sharpens the e^2/2 of Bun and
    Steinke (2016).
    Rounds: up, by a relative 2^-36; exactly e^2/2 for e <= 1e-6. No epsilon (inf) gives inf.

    >>> round(rho_of_pure(1.0), 6)
    0.462117
    """
    _check_cost(epsilon, "epsilon")
    if epsilon <= 1e-6:
        return Fraction(epsilon) ** 2 / 2
    value = upper_float(epsilon)
    return min(round_up(value * math.tanh(value / 2)), value)


def mu_of_pure(epsilon: Cost) -> Cost:
    """Return the Gaussian mu that epsilon-DP implies: 2 * quantile(e^epsilon / (1 + e^epsilon)).

    Theorem: the trade-off curve of epsilon-DP is the chord polygon through (0, 1), its kink on
    the diagonal at 1/(1 + e^epsilon), and (1, 0); a Gaussian curve through the same three
    points is convex, hence below it (Dong, Roth, Su 2022).
    Rounds: up, by a relative 2^-36. No epsilon (inf) gives inf.

    >>> round(mu_of_pure(1.0), 6)
    1.232035
    """
    _check_cost(epsilon, "epsilon")
    value = upper_float(epsilon)
    if value == 0 or value > _LARGEST:
        return Fraction(0) if value == 0 else math.inf
    if value < 1:  # the quantile near 1/2 keeps its relative accuracy
        return round_up(2 * middle_quantile(math.tanh(value / 2)))
    return round_up(2 * float(tail_quantile(np.array([-(value + math.log1p(math.exp(-value)))]))[0]))


def renyi_of_pure(order: float, epsilon: Cost) -> float:
    """Return the Renyi divergence of an order above 1 that epsilon-DP implies.

    Theorem: that of randomized response, ln(cosh((a-1/2)e) / cosh(e/2)) / (a-1), which every
    epsilon-DP pair is a post-processing of (Kairouz, Oh, Viswanath 2015). Rounds: up.

    >>> round(renyi_of_pure(2, 1), 3)
    0.735
    """
    _check_cost(epsilon, "epsilon")
    order, e = checked_order(order), upper_float(epsilon)
    if math.isinf(e):
        return e
    if order * e < 100:  # the difference of the two cosh, without subtraction
        ratio = 2 * math.sinh(order * e / 2) * math.sinh((order - 1) * e / 2) / math.cosh(e / 2)
        return min(round_up(math.log1p(ratio) / (order - 1)), e)
    correction = math.log1p(math.exp(-(2 * order - 1) * e)) - math.log1p(math.exp(-e))
    return min(round_up(e + correction / (order - 1)), e)


def delta_of_pure(pure: Number, epsilon: Number) -> float:
    """Return the delta of a pure guarantee at a smaller epsilon.

    Theorem: (e^pure - e^epsilon) / (1 + e^pure), attained by randomized response
    (Kairouz, Oh, Viswanath 2015). Rounds: up.

    >>> round(delta_of_pure(1, 0.5), 4), delta_of_pure(1, 1)
    (0.2876, 0.0)
    """
    total, target = budget_quantity(pure, "pure", zero=True), budget_quantity(epsilon, "epsilon", zero=True)
    if total <= target:
        return 0.0
    excess = -math.expm1(-upper_float(total - target))
    return min(1.0, round_up(excess / (1 + math.exp(-upper_float(total)))))


def epsilon_of_pure(pure: Number, delta: Number) -> float:
    """Return the smaller epsilon that a pure guarantee has at a positive delta.

    Theorem: as `delta_of_pure`. Rounds: up.

    >>> round(epsilon_of_pure(1, 0.1), 3)
    0.853
    """
    total, failure = upper_float(budget_quantity(pure, "pure", zero=True)), Fraction(positive_delta(delta))
    # e^epsilon = e^pure - delta (1 + e^pure); exact but for one exponential, as little may be left of it
    kept = upper_float(1 - failure - failure * Fraction(math.exp(-total)))
    if kept <= 0 or total + math.log(kept) <= 0:
        return 0.0
    return min(total, round_up(total + math.log(kept)) + total * SLACK)


def largest_pure(epsilon: Number, delta: Number) -> Fraction:
    """Return the largest pure epsilon that is (epsilon, delta)-private: exact at delta = 0.

    Theorem: as `delta_of_pure`: ln((e^epsilon + delta) / (1 - delta)). Rounds: down.

    >>> largest_pure(1, 0), round(float(largest_pure(1, 0.01)), 3)
    (Fraction(1, 1), 1.014)
    """
    target = budget_quantity(epsilon, "epsilon", zero=True)
    if delta_quantity(delta) == 0:
        return target
    failure = positive_delta(delta)
    gain = math.log1p(failure * math.exp(-upper_float(target))) - math.log1p(-failure)
    return target + Fraction(gain * (1 - SLACK))


def delta_of_mu(mu: Number, epsilon: Number) -> float:
    """Return the delta at `epsilon` of mu-Gaussian DP.

    Theorem: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018;
    Dong, Roth, Su 2022). Rounds: up, by a relative 2^-36 down to 1e-300, then to some float above.

    >>> round(delta_of_mu(1, 1), 4)
    0.1269
    """
    distance = upper_float(budget_quantity(mu, "mu", zero=True))
    target = lower_float(budget_quantity(epsilon, "epsilon", zero=True))
    if math.isinf(distance):
        return 1.0
    return _delta_of_mu(distance, target) if distance else 0.0


def _delta_of_mu(mu: float, epsilon: float) -> float:
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu > _CANCELS:
        near = float(Fraction(epsilon) / Fraction(mu) - Fraction(mu) / 2)
    if near > 1e150:
        return math.ulp(0.0)
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    if mu < 0.5:
        # The Mills ratio R obeys R' = x R - 1: integrate instead of subtracting near-equal values.
        nodes, weights = _quadrature()
        mass = density * mu * float(weights @ _mills_slope(near + mu * nodes))
    elif near > 0:
        mills = _ROOT_HALF_PI * scaled_tail(np.array([near, far]) / math.sqrt(2))
        mass = density * float(mills[0] - mills[1])
    else:  # e^epsilon * density(far) = density(near), so nothing overflows
        mills = _ROOT_HALF_PI * scaled_tail(np.array([far]) / math.sqrt(2))
        mass = upper_tail(near) - density * float(mills[0])
    return min(1.0, round_up(mass))


def _mills_slope(x: FloatArray) -> FloatArray:
    """Return 1 - x R(x) for the Mills ratio R, to 1e-12 relative for x > -1."""
    direct = 1 - x * _ROOT_HALF_PI * scaled_tail(np.minimum(x, 30.0) / math.sqrt(2))
    inverse = 1 / np.maximum(x, 30.0) ** 2
    series = np.zeros_like(x)
    for coefficient in (10395, 945, 105, 15, 3, 1):
        series = inverse * (coefficient - series)
    slope: FloatArray = np.where(x < 30, direct, series)
    return slope


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(12)
    return (nodes + 1) / 2, weights / 2


def epsilon_of_mu(mu: Number, delta: Number) -> float:
    """Return the epsilon at `delta` of mu-Gaussian DP.

    Theorem: as `delta_of_mu`, which falls with epsilon. Rounds: up.

    >>> round(epsilon_of_mu(1, 1e-6), 3)
    4.887
    """
    distance, failure = upper_float(budget_quantity(mu, "mu", zero=True)), positive_delta(delta)
    if distance == 0:
        return 0.0
    high = max(distance, distance * distance)
    while high < math.inf and _delta_of_mu(distance, high) > failure:
        high *= 2
    if high == math.inf:
        return high
    return smallest(lambda epsilon: _delta_of_mu(distance, epsilon) <= failure, 0.0, high)


def largest_mu(epsilon: Number, delta: Number) -> float:
    """Return the largest mu that is (epsilon, delta)-private: the analytic Gaussian calibration.

    Theorem: as `delta_of_mu`, which grows with mu. Rounds: down.

    >>> round(largest_mu(1, 1e-5), 4)
    0.2681
    """
    return _largest_mu(lower_float(budget_quantity(epsilon, "epsilon", zero=True)), positive_delta(delta))


@lru_cache(maxsize=256)  # a budget is read again for each question
def _largest_mu(target: float, failure: float) -> float:
    high = 1.0
    while _delta_of_mu(high, target) <= failure:
        high *= 2
    low = high / 2
    while _delta_of_mu(low, target) > failure:
        low /= 2
    return largest(lambda mu: _delta_of_mu(mu, target) <= failure, low, high)


def positive_delta(delta: Any) -> float:
    """Read a delta of a conversion that has none at zero, rounded down.

    >>> positive_delta(1e-6)
    1e-06
    """
    rational = delta_quantity(delta)
    if rational == 0:
        hint = "only pure epsilon composes at delta = 0"
        raise InvalidArgument("delta must be above zero here", place="delta", hints=(hint,))
    return max(lower_float(rational), math.ulp(0.0))


def _check_cost(value: Cost, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not value >= 0:
        raise InvalidArgument(f"{name} must be a number of at least zero", place=name)
