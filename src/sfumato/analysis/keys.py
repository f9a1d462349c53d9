"""Key selection: how many units a group must seem to have before its key may be shown.

A group that only one unit is in must appear with a chance of at most delta, or its mere appearance
would tell of that unit. Groups are shown whose noisy number of units reaches a threshold.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import upper_float
from sfumato.core.events.lattice import gaussian_survival
from sfumato.core.search import round_up

__all__ = ["appearance", "reaches", "threshold"]


def reaches(kind: str, parameter: Fraction, gap: int) -> float:
    """Return P(noise >= gap) for a gap of at least 1, from the exact law. Rounds: up.

    Theorem: for discrete Laplace noise of scale s it is e^(-gap/s) / (1 + e^(-1/s)).

    >>> round(reaches("laplace", Fraction(2), 10), 6)
    0.004194
    """
    if kind == "laplace":
        rate = 1 / parameter
        # the exponent is exact until it becomes a float: one relative rounding of at most 2^-53 of 745
        exponent = float(min(gap * rate, Fraction(800)))
        return min(1.0, round_up(math.exp(-exponent) / (1 + math.exp(-upper_float(rate)))))
    tail = float(gaussian_survival(np.array([float(gap)]), parameter)[0])
    return min(1.0, round_up(tail))


def appearance(kind: str, parameter: Fraction, threshold: int, groups: int, *, gathered: bool) -> float:
    """Return the chance that one unit makes some key appear that would not exist without it. Rounds: up.

    The unit is in at most `groups` groups, with a weight of one in each: 1 - (1 - P(1 + noise >=
    threshold))^groups. With `gathered`, up to that many of its groups may have become one: then
    it is c_1, c_2, .. in its groups, which add up to `groups` at most.

    Theorem: P(c + noise >= t) is convex in whole c up to t, for its steps are the noise's masses
    at t - c, which rise toward zero; a sum of convex functions over c_i >= 1 of a given sum is largest
    where all but one of them are 1. Assumes: groups < threshold if gathered.
    """
    if not gathered or groups == 1:
        single = reaches(kind, parameter, threshold - 1)
        together = -math.expm1(groups * math.log1p(-single)) if single < 1 else 1.0
        return min(1.0, round_up(together))
    single = reaches(kind, parameter, threshold - 1)
    worst = 0.0
    for alone in range(groups):  # so many of its groups stay by themselves
        worst = max(worst, alone * single + reaches(kind, parameter, threshold - (groups - alone)))
    return min(1.0, round_up(worst))


def threshold(kind: str, parameter: Fraction, groups: int, delta: Fraction, *, gathered: bool) -> int:
    """Return the smallest threshold at which `appearance` is at most delta."""
    allowed = -upper_float(-delta)
    least = groups + 1 if gathered else 2

    def private(value: int) -> bool:
        return appearance(kind, parameter, value, groups, gathered=gathered) <= allowed

    low, high = least - 1, least
    while not private(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if private(middle) else (middle, high)
    return high
