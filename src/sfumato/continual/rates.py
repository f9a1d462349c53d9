"""Rates: a factorisation that needs a few numbers per group, however long the stream is.

The coefficients are a sum of powers, c_0 = 1 and c_k = sum of weights[i] * rates[i]^(k - 1) (buffered linear
Toeplitz matrices: Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024), so that C u needs one number per
rate and not all of u. With rates between 0 and 1 their squares have a finite sum: a stream may go on past the
horizon that it was designed for. Up to it the sum of powers is close to the square root of A, fitted by least
squares; past it errors grow faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.continual.factorisation import BITS, square_root
from sfumato.continual.participation import Participation
from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument

__all__ = ["Buffers", "LIFETIME", "RATE_BITS", "buffers"]

LIFETIME = 1 << 20  # periods: 2,800 years of days
RATE_BITS = 30  # rates and weights are multiples of 2^-30
_LEAST_DESIGN = 16
_SPACING = 1.4  # of the logarithms of time constants: closer ones are too many to fit
_SHORTEST = 2.0  # periods after which the fastest rate has fallen to 1/e
_WIDER = 1.0 + 2.0**-30  # more than what floats round in a sum of squares of 2^20 terms


@dataclass(frozen=True)
class Buffers:
    """Rates and weights in units of 2^-30, and the number of periods for which the guarantee is given."""

    rates: tuple[int, ...]
    weights: tuple[int, ...]
    horizon: int = LIFETIME

    def __post_init__(self) -> None:
        one = 1 << RATE_BITS
        if not all(0 <= rate < one for rate in self.rates) or not all(each >= 0 for each in self.weights):
            raise InvalidArgument("rates are from 0 to below 1, and weights are not negative", place="rates")
        if len(self.rates) != len(self.weights) or sum(self.weights) > one:
            raise InvalidArgument("there is a weight for each rate, and they make 1 at most", place="weights")

    def l2_squared(self, participation: Participation) -> Fraction:
        """Return the largest squared length of C v: what a person of one unit per period can change.

        Rounds: up.
        """
        column, changed = self._column, np.zeros(self.horizon)
        for start in participation.earliest(self.horizon):
            changed[start:] += column[: self.horizon - start]
        return Fraction(float(np.dot(changed, changed)) * _WIDER)

    def inverse(self, periods: int) -> FloatArray:
        """Return the first column of C^-1, for as many periods."""
        scale = 2.0**RATE_BITS
        rates, weights = np.array(self.rates) / scale, np.array(self.weights) / scale
        found, held = np.ones(periods), np.zeros(len(rates))
        for k in range(1, periods):
            held = rates * held + found[k - 1]
            found[k] = -np.dot(weights, held)
        return found

    @property
    def _column(self) -> FloatArray:
        powers, scale = np.arange(self.horizon - 1, dtype=float), 2.0**RATE_BITS
        later = sum(
            weight / scale * (rate / scale) ** powers
            for rate, weight in zip(self.rates, self.weights, strict=True)
        )
        return np.concatenate(([1.0], np.asarray(later)))


def buffers(design: int, horizon: int = LIFETIME) -> Buffers:
    """Return buffers whose coefficients are close to those of the square root, up to a design horizon.

    Time constants are spread evenly, on a logarithmic scale, from two periods to the horizon.

    >>> round(math.sqrt(buffers(365).l2_squared(Participation())), 3)
    1.806
    """
    wanted = np.array(square_root(max(design, _LEAST_DESIGN)).coefficients[1:], dtype=float) / 2.0**BITS
    steps = np.arange(1, len(wanted) + 1, dtype=float)
    count = 1 + round(math.log((len(wanted) + 1) / _SHORTEST) / _SPACING)
    rates = np.exp(-1 / np.geomspace(_SHORTEST, len(wanted) + 1, count))
    importance = steps**0.25
    powers = rates[None, :] ** (steps[:, None] - 1)
    weights = np.linalg.lstsq(powers * importance[:, None], wanted * importance, rcond=None)[0]
    one = 1 << RATE_BITS
    return Buffers(
        tuple(math.floor(rate * one) for rate in rates.tolist()),
        tuple(max(0, math.floor(weight * one)) for weight in weights.tolist()),
        horizon,
    )
