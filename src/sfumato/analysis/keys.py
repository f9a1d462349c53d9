"""Key selection: how many units a group must seem to have before its key may be shown.

A group that only one unit is in must appear with a chance of at most delta, or its mere appearance
would tell of that unit. Groups are shown whose noisy number of units reaches a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from sfumato.core.noise_law import NoiseLaw
from sfumato.core.search import least_whole, lower_float, round_up

__all__ = ["appearance", "divided_appearance", "divided_threshold", "threshold"]


def appearance(law: NoiseLaw, threshold: int, groups: int, *, gathered: bool) -> float:
    """Return the chance that one unit makes some key appear that would not exist without it. Rounds: up.

    The unit is in at most `groups` groups, with a weight of one in each: 1 - (1 - P(1 + noise >=
    threshold))^groups. With `gathered`, up to that many of its groups may have become one: then
    it is c_1, c_2, .. in its groups, which add up to `groups` at most.

    Theorem: P(c + noise >= t) is convex in whole c up to t, for its steps are the noise's masses
    at t - c, which rise toward zero; a sum of convex functions over c_i >= 1 of a given sum is largest
    where all but one of them are 1. Assumes: groups < threshold if gathered.
    """
    if not gathered or groups == 1:
        return _any(law.tail(threshold - 1), groups)
    single = law.tail(threshold - 1)
    worst = 0.0
    for alone in range(groups):  # this many of its groups stay by themselves
        worst = max(worst, alone * single + law.tail(threshold - (groups - alone)))
    return min(1.0, round_up(worst))


def threshold(law: NoiseLaw, groups: int, delta: Fraction, *, gathered: bool) -> int:
    """Return the smallest threshold at which `appearance` is at most delta."""
    least = groups + 1 if gathered else 2
    return _smallest(lambda value: appearance(law, value, groups, gathered=gathered), least, delta)


def divided_appearance(law: NoiseLaw, threshold: int, weights: Sequence[int]) -> float:
    """Return the chance that one unit, which divides its weight, makes some novel key appear. Rounds: up.

    A unit that is in d groups weighs weights[d - 1] in each: the largest, over d, of
    1 - (1 - P(weights[d - 1] + noise >= threshold))^d. Beyond 64 groups several d are taken together:
    as many groups as the last of them, each of the weight of the first. Assumes: weights fall, and are
    below the threshold.
    """
    return max(_any(law.tail(threshold - weight), groups) for weight, groups in _together(weights))


def divided_threshold(law: NoiseLaw, weights: Sequence[int], delta: Fraction) -> int:
    """Return the smallest threshold above all weights at which `divided_appearance` is at most delta.

    Each number of groups has its own smallest threshold, for its chance falls; the largest of these is it.
    """
    level, allowed = weights[0] + 1, lower_float(delta)
    *some, last = _together(weights)
    for weight, groups in (last, *some):  # most groups or one need most, as a rule: the rest is one look each

        def quiet(value: int, weight: int = weight, groups: int = groups) -> bool:
            return _any(law.tail(value - weight), groups) <= allowed

        if not quiet(level):
            level = least_whole(quiet, level)
    return level


def _together(weights: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the weight of a unit, and in how many groups; beyond 64 several numbers of groups are one."""
    first = 1
    while first <= len(weights):
        last = min(len(weights), first if first <= 64 else first + first // 32)
        yield weights[first - 1], last
        first = last + 1


def _any(single: float, groups: int) -> float:
    """Return 1 - (1 - single)^groups. Rounds: up."""
    together = -math.expm1(groups * math.log1p(-single)) if single < 1 else 1.0
    return min(1.0, round_up(together))


def _smallest(chance: Callable[[int], float], least: int, delta: Fraction) -> int:
    """Return the smallest threshold from `least` up at which a chance, which falls, is at most delta."""
    allowed = lower_float(delta)
    return least_whole(lambda value: chance(value) <= allowed, least)
