"""A sum of many independent losses: its cumulants, and the saddle points that show where to look.

Nothing here carries a guarantee but `infinite`; `inversion` bounds what it says about the places found here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.atoms import Atoms
from sfumato.core.search import smallest

__all__ = ["LossSum"]

_ULP = 2.0**-53
_DOUBLINGS = 40  # of a tilt, when looking for the right one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossSum:
    """Independent losses: each law of `parts` as often as its count says, and one Gaussian loss.

    The Gaussian loss is N(`variance`/2, `variance`) under P: that of a mechanism with mu^2 = variance.
    """

    parts: Sequence[tuple[Atoms, int]]
    variance: float

    def cumulant(self, theta: float) -> tuple[float, float, float]:
        """Return K(theta) and its first two derivatives."""
        total = self.variance * np.array([theta * (1.0 + theta) / 2.0, theta + 0.5, 1.0])
        for law, count in self.parts:
            value, weights = law.tilted(theta)
            mean = float(weights @ law.losses)
            total += count * np.array([value, mean, float(weights @ np.square(law.losses - mean))])
        return float(total[0]), float(total[1]), float(total[2])

    def saddle(self, theta: float) -> tuple[float, float]:
        """Return the v whose saddle point is theta, and about ln delta(v)."""
        value, mean, variance = self.cumulant(theta)
        place = mean - 1.0 / theta - 1.0 / (1.0 + theta)
        bend = variance + 1.0 / theta**2 + 1.0 / (1.0 + theta) ** 2
        height = value - theta * place - math.log(theta) - math.log1p(theta)
        return place, height - math.log(2.0 * math.pi * bend) / 2.0

    def tilt_at_delta(self, delta: float) -> float:
        """Return the theta whose v has about this delta; that of v = 0 where v would be negative."""
        level = math.log(delta)

        def holds(theta: float) -> bool:
            place, height = self.saddle(theta)
            return place >= 0.0 and height <= level

        return self._least_tilt(holds)

    def tilt_at_epsilon(self, epsilon: float) -> float:
        """Return the theta whose v is `epsilon`."""
        return self._least_tilt(lambda theta: self.saddle(theta)[0] >= epsilon)

    @property
    def infinite(self) -> float:
        """The chance that any loss is infinite, rounded up."""
        never = math.fsum(count * math.log1p(-law.infinite) for law, count in self.parts)
        return abs(math.expm1(never)) * (1.0 + 8.0 * _ULP)

    def _least_tilt(self, holds: Callable[[float], bool]) -> float:
        """Return about the least theta at which a condition holds, around the scale of the losses' sum."""
        start = 1.0 / math.sqrt(self.cumulant(0.0)[2])
        powers = (start * 2.0**power for power in range(_DOUBLINGS))
        high = next((theta for theta in powers if holds(theta)), start * 2.0**_DOUBLINGS)
        return smallest(holds, min(high, start) / 2.0 ** (_DOUBLINGS if high == start else 1), high, 1e-9)
