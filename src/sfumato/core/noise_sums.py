"""Sums of several noises, which ratios and ranks need: how far off they may be. Parameters, never data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.mechanism import confidence
from sfumato.core.noise_law import NoiseLaw

__all__ = ["miss", "tail", "widest_quantile"]


def miss(level: Any) -> float:
    """Return the chance that an interval of this level may fail to cover."""
    return float(1 - confidence(level))


def widest_quantile(chance: float, laws: Sequence[NoiseLaw]) -> float:
    """Return a multiple of the deviation that a sum of these noises exceeds with at most `chance`.

    The sum lies between the normal law (the wider middle) and its noise of the heaviest tail.
    """
    return max(kind.standard_quantile(chance) for kind in _kinds(laws))


def tail(
    laws: Sequence[NoiseLaw], weights: Sequence[FloatArray], distance: FloatArray, extra: FloatArray
) -> FloatArray:
    """Return P(|sum of weights[j] * noise j| >= distance), from above, for each group.

    `extra` is further variance, of terms that are not linear in the noise.

    Theorem: |discrete Laplace| is stochastically at most |continuous Laplace| + 1/2, for their
    tails at m and m - 1/2 are in the ratio 1 / cosh(1 / (2 scale)); so the distance less half the
    weights is compared with the continuous law. Sums without a closed form: see `widest_quantile`.
    """
    sizes = [np.abs(weight) for weight in weights]
    slack = np.maximum(0.0, distance - sum(sizes) / 2)
    if len({type(law) for law in laws}) == 1 and not extra.any():
        known = laws[0].sum_tail(laws, sizes, slack)
        if known is not None:
            return known
    variance = extra + sum((size * law.deviation) ** 2 for law, size in zip(laws, sizes, strict=True))
    deviation = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(deviation > 0, slack / deviation, np.where(slack > 0, np.inf, 0.0))
    widest: FloatArray = np.maximum.reduce([kind.standard_tail(z) for kind in _kinds(laws)])
    return widest


def _kinds(laws: Sequence[NoiseLaw]) -> set[type[NoiseLaw]]:
    """Return the kinds of noise in a sum, and the normal law, which sums of many come near to."""
    return {GaussianNoise, *(type(law) for law in laws)}
