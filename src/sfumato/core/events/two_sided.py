"""Formulas that the two-sided exponential laws share, on the line and on the integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import FloatArray, upper_float
from sfumato.core.normal import middle_quantile, tail_quantile
from sfumato.core.search import exp_excess, round_up

__all__ = ["between", "laplace_quantile", "sinh_defect", "two_sided_renyi"]


def between(
    levels: FloatArray, bottom: float, top: float, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return all the mass below a bounded loss, none from its top on, and (p, q) between."""
    everything, inside = levels < bottom, levels < top
    return np.where(everything, 1.0, np.where(inside, p, 0.0)), np.where(
        everything, 1.0, np.where(inside, q, 0.0)
    )


def laplace_quantile(exponent: float) -> float:
    """Return the z with P(N(0,1) > z) = e^-exponent / 2."""
    if exponent < 0.5:  # near the median a logarithm would lose the small difference
        return middle_quantile(-math.expm1(-exponent))
    return float(tail_quantile(np.array([-math.log(2) - exponent]))[0])


def two_sided_renyi(order: float, epsilon: Fraction, above: float, below: float, linear: float) -> float:
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


def sinh_defect(u: float) -> float:
    """Return 1 - u / sinh(u) without cancellation."""
    if u > 1:
        return 1 - 2 * u * math.exp(-u) / -math.expm1(-2 * u)
    excess = sum(u ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 10))  # sinh(u)/u - 1
    return excess / (1 + excess)
