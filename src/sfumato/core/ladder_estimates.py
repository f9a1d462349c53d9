"""What noisy levels of a ladder say: the total, at which level adding up stopped, and what was left out.

Post-processing alone: all of it is a function of the noisy levels and of public numbers. Levels are added up
from the lowest. A level whose noisy total stands out of its noise is added whole, with all below it; one that
hardly does by a part, and one that does not is left out. The more levels in between had nothing, the more it
has to stand out: else noise alone would go on to a high level, whose noise is large. How much that is was
chosen on tails that the benchmark does not report.

`at_least` and `at_most` are one-sided limits of what was left out. An interval around the total itself would
not cover: where adding up stops depends on the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.gaussian_sums import GaussianSum
from sfumato.core.ladder import CapLadder, GaussianLadder
from sfumato.core.mechanism import confidence

__all__ = ["LadderEstimate", "estimate"]

_TAIL = 0.7263  # half the product of 1 / (1 - 4^-i), i = 1, 2, ..; rounded up


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderEstimate:
    """A total of a ladder without groups, in rows."""

    ladder: CapLadder
    levels: FloatArray
    """The noisy total of each published level, the lowest first."""
    weights: FloatArray
    """The part of each level that is in the total."""
    stop: int
    """The highest level that is whole: people with more than about 2^stop rows count less."""

    @property
    def total(self) -> float:
        """The estimate."""
        return float(self.weights @ self.levels)

    def at_least(self, level: Any = 0.95) -> float:
        """Return a number that what was left out is at least, with a probability of `level`.

        Theorem: where nobody adds less than zero, the sum of the levels up to J is at most the whole,
        whatever anybody has; so with the chance alpha / n for each of n sums, the largest of their lower
        limits holds.
        """
        sums: FloatArray = np.cumsum(self.levels)
        first = -self.ladder.lowest  # below level 0 a sum holds parts of people alone
        each = float(1 - confidence(level)) / (len(sums) - first)
        limits = [sums[place] - self._reach(place + 1, each) for place in range(first, len(sums))]
        return float(max(0.0, max(limits) - self.total))

    def at_most(self, level: Any = 0.95) -> float:
        """Return a number that what was left out is at most, if nobody has more than 2^top rows."""
        whole = float(self.levels.sum())
        return max(0.0, whole + self._reach(len(self.levels), float(1 - confidence(level))) - self.total)

    def _reach(self, number: int, chance: float) -> float:
        """Return how far the noise of the lowest levels together is above zero with at most a chance.

        Theorem (Laplace): of independent noises of scales b, b / 2, b / 4, .. the sum exceeds t with a chance
        of at most kappa e^(-t / b), kappa half the product of 1 / (1 - 4^-i): partial fractions of the
        characteristic function, of whose terms those that follow the first alternate and fall. Each
        discrete noise is at most 1/2 farther from zero than the continuous one (`noise_sums`).
        """
        steps = self.ladder.steps
        if isinstance(self.ladder, GaussianLadder):
            laws = [self.ladder.noise(self.ladder.lowest + place) for place in range(number)]
            noise = GaussianSum.of([(law, np.ones(1)) for law in laws])
            return noise.half_width(1 - 2 * Fraction(chance)) / steps
        scale = float(self.ladder.noise(number - 1).parameter)
        return (scale * math.log(max(1.0, _TAIL / chance)) + number / 2) / steps


def estimate(ladder: CapLadder, noisy: Any) -> LadderEstimate:
    """Return what noisy levels of one group say."""
    levels = np.array([int(one) / ladder.steps for one in np.asarray(noisy).reshape(-1)])
    euclidean = isinstance(ladder, GaussianLadder)
    weights, stop = np.ones(len(levels)), 0
    signs = levels / np.array(ladder.deviations())
    for place, level in enumerate(range(ladder.lowest, ladder.top + 1)):
        if level <= 0:
            continue
        empty, sign = max(level - stop - 1, 0), signs[place]
        if euclidean:  # the part that a normal mean so far from zero deserves (James and Stein 1961)
            whole = math.sqrt(14.0 + 4 * empty)
            weights[place] = max(0.0, 1 - (1 + 4 * empty) / sign**2) if sign > 0 else 0.0
        else:
            whole = 5.0 + 2.5 * empty
            weights[place] = min(1.0, max(0.0, (sign - 1 - 2.5 * empty) / 4))
        if sign >= whole:
            stop = level
    weights[: stop - ladder.lowest + 1] = 1.0
    return LadderEstimate(ladder=ladder, levels=levels, weights=weights, stop=stop)
