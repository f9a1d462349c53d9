"""Renyi divergence and zCDP as (epsilon, delta), and back: the tightest known conversions.

A result found by search stays sound however well the search did: every order of a curve,
and every point of a bisection that passed its test, is a valid answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sfumato.core.arguments import Number, budget_quantity, checked_order, upper_float
from sfumato.core.conversions import positive_delta
from sfumato.core.search import SLACK, lower_float, minimum, round_up, smallest
from sfumato.errors import InvalidArgument

__all__ = [
    "Curve",
    "delta_of_curve",
    "delta_of_renyi",
    "delta_of_rho",
    "epsilon_of_curve",
    "epsilon_of_renyi",
    "epsilon_of_rho",
    "largest_renyi",
    "largest_rho",
]

Curve = Callable[[float], float]
"""An upper bound on the Renyi divergence of each order above 1; inf where there is none."""


def largest_renyi(order: Number, epsilon: Number, delta: Number) -> float:
    """Return the largest divergence of `order` that is (epsilon, delta)-private.

    Theorem: the smallest divergence between two coins with p - e^epsilon q >= delta: testing
    for a loss above epsilon maps any pair to such coins and keeps delta, and divergence cannot
    grow under a map (Asoodeh, Liao, Calmon, Kosut, Sankar 2021, the joint range); so no
    conversion from one order is tighter. Rounds: down, by a relative 2^-36 or more.

    >>> round(largest_renyi(8, 1, 1e-6), 4)
    0.0031
    """
    return _largest(checked_order(order), _epsilon(epsilon), positive_delta(delta))


def delta_of_renyi(order: Number, value: Number, epsilon: Number) -> float:
    """Return the delta at `epsilon` that a Renyi divergence of one order implies.

    Theorem: the inverse of `largest_renyi`; at most the closed form
    e^((a-1)(value-epsilon)) (1-1/a)^a / (a-1) of Canonne, Kamath, Steinke (2020). Rounds: up.

    >>> round(delta_of_renyi(8, 0.5, 1.5), 6)
    4.3e-05
    """
    return _delta(checked_order(order), _value(value, "value"), _epsilon(epsilon))


def epsilon_of_renyi(order: Number, value: Number, delta: Number) -> float:
    """Return the epsilon at `delta` that a Renyi divergence of one order implies.

    Theorem: as `delta_of_renyi`. Rounds: up.

    >>> round(epsilon_of_renyi(8, 0.5, 1e-6), 3)
    2.039
    """
    return _epsilon_at(checked_order(order), _value(value, "value"), positive_delta(delta))


def _largest(order: float, epsilon: float, delta: float) -> float:
    most = math.log1p(-delta) - math.log(delta)  # where p = 1
    # For tiny p the best spread is ln(order - 1); the other face of the coin only raises it.
    low = min(math.log(order - 1), most) - 1

    def divergence(spread: float) -> float:
        return _coin_divergence(order, epsilon, delta, spread)

    best = min(divergence(minimum(divergence, low, most)), divergence(most))
    return max(0.0, best * (1 - SLACK))


def _coin_divergence(order: float, epsilon: float, delta: float, spread: float) -> float:
    """Bound from below the divergence of the coins p = delta (1 + e^spread), q = (p - delta) e^-epsilon."""
    ratio = epsilon + math.log1p(math.exp(-spread))  # ln(p / q)
    p = math.exp(min(0.0, math.log(delta) + max(spread, 0.0) + math.log1p(math.exp(-abs(spread)))))
    q = p * math.exp(-ratio)
    exponent = (order - 1) * ratio
    if exponent > 600:  # the first face is all that counts
        return ratio + math.log(p) / (order - 1)
    # sum p^a q^(1-a) - 1, face by face, so that nothing is lost when the coins are close
    heads = p * math.expm1(exponent)
    above = q * math.expm1(epsilon) if epsilon < 700 else p * math.exp(epsilon - ratio) - q  # no overflow
    gap = min(1.0, (delta + above) / (1 - q)) if p < 1 else 1.0  # (p - q) / (1 - q)
    tails = (1 - p) * math.expm1((order - 1) * math.log1p(-gap)) if gap < 1 else p - 1
    rounding = 2.0**-46 * (heads - tails) * (1 + exponent)
    return math.log1p(max(0.0, heads + tails - rounding)) / (order - 1)


def _delta(order: float, value: float, epsilon: float, resolution: float = 2.0**-48) -> float:
    if math.isinf(value):
        return math.inf
    closed = min(1.0, round_up(math.exp(min(0.0, _closed_log_delta(order, value, epsilon)))))
    if value == 0 or closed < 1e-250:
        return 0.0 if value == 0 else closed
    top = math.log(closed)
    if not _largest(order, epsilon, math.exp(min(top, -1e-15))) >= value:
        return closed
    exponent = smallest(lambda t: _largest(order, epsilon, math.exp(t)) >= value, top - 50, top, resolution)
    return min(closed, round_up(math.exp(exponent)))


def _epsilon_at(order: float, value: float, delta: float, resolution: float = 2.0**-48) -> float:
    if math.isinf(value):
        return math.inf
    closed = round_up(max(0.0, _closed_epsilon(order, value, delta)))
    return smallest(lambda epsilon: _largest(order, epsilon, delta) >= value, 0.0, closed, resolution)


def _closed_log_delta(order: float, value: float, epsilon: float) -> float:
    """Return ln delta of Canonne, Kamath, Steinke (2020), Proposition 12."""
    a = order - 1
    return a * (value - epsilon) - math.log(a) - order * math.log1p(1 / a)


def _closed_epsilon(order: float, value: float, delta: float) -> float:
    a = order - 1
    return value - (math.log(delta) + math.log(a) + order * math.log1p(1 / a)) / a


def delta_of_curve(curve: Curve, epsilon: Number) -> float:
    """Return the delta at `epsilon` that a whole Renyi curve implies: the least over all orders.

    Theorem: `delta_of_renyi` at each order; the closed form's logarithm is convex in the order
    (so is (order-1) * divergence), hence golden-section search finds its minimum, and from
    there that of the joint range. Rounds: up.

    >>> from sfumato.core import events
    >>> round(delta_of_curve(events.Gaussian(sigma=2).renyi, 2), 6)
    3.9e-05
    """
    target, bound = _epsilon(epsilon), _checked(curve)
    closed = _best(lambda a: _closed_log_delta(a, bound(a), target))
    order = _polish(closed, lambda a: _delta(a, bound(a), target, 2.0**-20))
    return min(_delta(a, bound(a), target) for a in (closed, order))


def epsilon_of_curve(curve: Curve, delta: Number) -> float:
    """Return the epsilon at `delta` that a whole Renyi curve implies: the least over all orders.

    Theorem: as `delta_of_curve`; sublevel sets in the order are intervals. Rounds: up.

    >>> from sfumato.core import events
    >>> round(epsilon_of_curve(events.Gaussian(sigma=2).renyi, 1e-6), 3)
    2.419
    """
    failure, bound = positive_delta(delta), _checked(curve)
    closed = _best(lambda a: _closed_epsilon(a, bound(a), failure))
    order = _polish(closed, lambda a: _epsilon_at(a, bound(a), failure, 2.0**-20))
    return min(_epsilon_at(a, bound(a), failure) for a in (closed, order))


def delta_of_rho(rho: Number, epsilon: Number) -> float:
    """Return the delta at `epsilon` of rho-zCDP.

    Theorem: the curve order*rho (Bun and Steinke 2016) through `delta_of_curve`. Rounds: up.

    >>> round(delta_of_rho(0.125, 2), 6)
    3.9e-05
    """
    charge = _value(rho, "rho")
    return delta_of_curve(lambda order: order * charge, epsilon) if charge else 0.0


def epsilon_of_rho(rho: Number, delta: Number) -> float:
    """Return the epsilon at `delta` of rho-zCDP.

    Theorem: the curve order*rho (Bun and Steinke 2016) through `epsilon_of_curve`. Rounds: up.

    >>> round(epsilon_of_rho(0.125, 1e-6), 3)
    2.419
    """
    charge = _value(rho, "rho")
    return epsilon_of_curve(lambda order: order * charge, delta) if charge else 0.0


def largest_rho(epsilon: Number, delta: Number) -> float:
    """Return the largest rho that is (epsilon, delta)-private.

    Theorem: `largest_renyi` at the order that serves best, divided by it. Rounds: down.

    >>> round(largest_rho(1, 1e-6), 5)
    0.02436
    """
    target, failure = _epsilon(epsilon), positive_delta(delta)
    order = _best(lambda a: -_largest(a, target, failure) / a)
    return lower_float(Fraction(_largest(order, target, failure)) / Fraction(order))


def _best(cost: Callable[[float], float]) -> float:
    """Return the order of the least cost; unimodal, and finite near order 1 if anywhere."""
    return 1 + math.exp(minimum(lambda t: cost(1 + math.exp(t)), -14.0, 60.0, tolerance=1e-6))


def _polish(order: float, cost: Callable[[float], float]) -> float:
    """Return the order of the least cost near a good one."""
    if math.isinf(cost(order)):
        raise InvalidArgument("the Renyi curve is infinite at every order", place="curve")
    middle = math.log(order - 1)
    return 1 + math.exp(minimum(lambda t: cost(1 + math.exp(t)), middle - 2, middle + 2, tolerance=1e-3))


def _checked(curve: Curve) -> Curve:
    def bound(order: float) -> float:
        value = curve(order)
        if not value >= 0:
            raise InvalidArgument(f"the Renyi curve is {value} at order {order}", place="curve")
        return upper_float(value)

    return bound


def _epsilon(epsilon: Any) -> float:
    return lower_float(budget_quantity(epsilon, "epsilon", zero=True))


def _value(value: Any, name: str) -> float:
    return upper_float(budget_quantity(value, name, zero=True))
