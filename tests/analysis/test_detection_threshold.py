"""The detection threshold is the least count that noise alone reaches rarely enough, by its exact law."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sfumato.analysis.detection_threshold import detection_threshold
from sfumato.analysis.pricing import Noise
from sfumato.core.events import DiscreteLaplace
from sfumato.core.noise_law import noise_law


def noise(kind: str, parameter: int) -> Noise:
    event = DiscreteLaplace(scale=1, sensitivity=1)
    return Noise(measure="m", grouping_set=0, law=noise_law(kind, Fraction(parameter)), event=event)


@pytest.mark.parametrize("chance", [0.3, 0.0125, 1e-4, 1e-9])
@pytest.mark.parametrize("weight", [Fraction(1), Fraction(1, 1024)])
def test_laplace(chance: float, weight: Fraction) -> None:
    """P(noise >= k) = e^(-k/s) / (1 + e^(-1/s)), and a count of t is reached from (t - 1/2) / weight."""
    scale = int(10 / weight)
    found = detection_threshold(noise("laplace", scale), weight, chance)

    def tail(count: int) -> float:
        gap = max(1, math.ceil((count - Fraction(1, 2)) / weight))
        return math.exp(-gap / scale) / (1 + math.exp(-1 / scale))

    assert tail(found) <= chance
    assert found == 1 or tail(found - 1) > chance


@pytest.mark.parametrize("chance", [0.0125, 1e-4, 1e-9])
def test_gaussian(chance: float) -> None:
    """A wide discrete Gaussian is close to the continuous one."""
    found = detection_threshold(noise("gaussian", 40**2 * 1024**2), Fraction(1, 1024), chance)
    tail = [math.erfc((count - 0.5) / 40 / math.sqrt(2)) / 2 for count in (found - 1, found)]
    assert tail[1] <= chance * 1.001 and tail[0] > chance * 0.999
