"""The exact law of a weighted sum of noises whose weights are whole multiples of one unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.noise_law import NoiseLaw

__all__ = ["chance_within", "lattice_law", "least_width"]

_REACH = 1 - 1e-13  # of each noise; what lies beyond is counted as not covered


def lattice_law(terms: Sequence[tuple[NoiseLaw, int]]) -> FloatArray:
    """Return P(|S| = d) for d = 0, 1, .. of S = the sum of weight * noise, to about 1e-12.

    >>> from fractions import Fraction
    >>> from sfumato.core.laplace import LaplaceNoise
    >>> lattice_law([(LaplaceNoise(Fraction(1)), 1), (LaplaceNoise(Fraction(1)), 2)])[:2].round(4).tolist()
    [0.2359, 0.2262]
    """
    reaches = [law.half_width(_REACH) for law, _ in terms]
    span = sum(abs(weight) * reach for (_, weight), reach in zip(terms, reaches, strict=True))
    size = 1 << (2 * span + 1).bit_length()
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for (law, weight), reach in zip(terms, reaches, strict=True):
        masses = np.array([law.mass(x) for x in range(reach + 1)])
        x = np.arange(-reach, reach + 1)
        table = np.zeros(size)
        np.add.at(table, (x * weight) % size, masses[np.abs(x)])
        product *= np.fft.rfft(table)
    law_of_sum = np.fft.irfft(product, size)
    found: FloatArray = law_of_sum[: size // 2].copy()
    found[1:] *= 2  # the law is symmetric
    return found


def chance_within(law: FloatArray, width: float, unit: float = 1.0) -> float:
    """Return P(|S| <= width), where one step of the lattice is `unit`; ends count, whatever floats do."""
    return float(law[: int(np.floor(width / unit * (1 + 1e-9) + 1e-9)) + 1].sum())


def least_width(law: FloatArray, level: float, unit: float = 1.0) -> float:
    """Return the smallest width that is enough for a level."""
    return unit * int(np.searchsorted(np.cumsum(law), level))
