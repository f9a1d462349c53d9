"""Alarms: how large a noisy count must be before it is more than noise."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.analysis.keys import tail_probability
from sfumato.analysis.pricing import Noise

__all__ = ["detection_threshold"]


def detection_threshold(noise: Noise, weight: Fraction, chance: float) -> int:
    """Return the least whole count that noise alone reaches with at most this chance.

    The noisy integer is in parts of `weight` and is rounded to the nearest whole count, so that a count of
    t is reached from (t - 1/2) / weight on. Theorem: from the noise's exact law (`tail_probability`, which
    rounds up). It decides what is told, not what is paid.
    """

    def quiet(count: int) -> bool:
        gap = max(1, math.ceil((count - Fraction(1, 2)) / weight))
        return tail_probability(noise.kind, noise.parameter, gap) <= chance

    low, high = 0, 1
    while not quiet(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if quiet(middle) else (middle, high)
    return high
