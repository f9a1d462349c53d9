"""Rates: a factorisation that needs a few numbers per group, and whose guarantee never ends.

The coefficients are a sum of powers, c_0 = 1 and c_k = sum of weights[i] * rates[i]^(k - 1) (buffered linear
Toeplitz matrices: Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024), so that C u needs one number per
rate and not all of u. Up to the design horizon C is close to the square root of A: the largest error of a
running total is within 2 percent of it. Past the horizon errors grow faster, like the square root of time.

Theorem (sensitivity over all periods to come). Write g(d) for the product of the columns of C of two periods
that are d apart, summed over all later periods without an end. Rates are below 1, so these are finite:

    g(0) = 1 + sum over i, j of w_i w_j / (1 - r_i r_j)
    g(d) = sum over i of w_i r_i^(d - 1) + sum over i, j of w_i w_j r_i^d / (1 - r_i r_j)

For k appearances, each `apart` after the one before, |C v|^2 is k g(0) + 2 * sum over j < k of
(k - j) g(j * apart). No stream, however long, has more: the proof in `factorisation` holds for any number of
periods, and sums of terms that are not negative grow to these.
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

__all__ = ["Buffers", "LONGEST_DESIGN", "RATE_BITS", "buffers"]

RATE_BITS = 30  # rates and weights are multiples of 2^-30
_FITTED_BITS = 20  # of a weight: fewer than floats have, so that every machine finds the same
_LEAST = 16  # periods of a design horizon
LONGEST_DESIGN = 1 << 20  # periods; one person appears in no more, either
_SPACING = 1.4  # of the logarithms of time constants: closer ones are too many to fit
_SHORTEST = 2.0  # periods after which the fastest rate has fallen to 1/e
_LONGEST = 0.6  # of the design horizon, for the slowest rate
_GRAIN = 1 << 20  # of a sensitivity, so that every machine finds the same
_WIDER = 1.0 + 2.0**-30  # more than what floats round in a sum of terms that are not negative


@dataclass(frozen=True)
class Buffers:
    """Rates and weights in units of 2^-30, and the number of periods that they are designed for."""

    rates: tuple[int, ...]
    weights: tuple[int, ...]
    design: int

    def __post_init__(self) -> None:
        one = 1 << RATE_BITS
        if not all(0 <= rate < one for rate in self.rates) or not all(each >= 0 for each in self.weights):
            raise InvalidArgument("rates are from 0 to below 1, and weights are not negative", place="rates")
        if len(self.rates) != len(self.weights) or sum(self.weights) > one:
            raise InvalidArgument("there is a weight for each rate, and they make 1 at most", place="weights")

    def extra_bits(self, number: int) -> int:
        """Return by how many bits the steps of a period are finer than those of the first one.

        >>> [buffers(365).extra_bits(number) for number in (365, 366, 730, 731, 1460, 1461)]
        [0, 1, 1, 2, 2, 3]
        """
        return ((number - 1) // self.design).bit_length()

    @property
    def roundings(self) -> Fraction:
        """The sum over all periods, without an end, of 4^-extra_bits.

        2^(j - 1) * design periods have j >= 1 extra bits, and the sum of 2^(j - 1) / 4^j is 1/2.
        """
        return Fraction(3 * self.design, 2)

    def l2_squared(self, participation: Participation) -> Fraction:
        """Return the largest squared length of C v: what a person of one unit per period can change.

        Rounds: up.
        """
        if participation.periods > LONGEST_DESIGN:
            raise InvalidArgument(
                f"one person is in at most {LONGEST_DESIGN:,} periods of a stream without a horizon",
                place="participation",
            )
        one = 1 << RATE_BITS
        rates, weights = self._parts
        gaps = np.array([[float(one * one - i * j) / one**2 for j in self.rates] for i in self.rates])
        later = (weights / gaps * weights[:, None]).sum(axis=1)  # by the rate of the later appearance
        total = participation.periods * (1 + float(later.sum()))
        times = np.arange(1, participation.periods)
        distances = times * float(participation.apart)
        for rate, weight, more in zip(rates, weights, later, strict=True):
            together = weight * rate ** (distances - 1) + more * rate**distances
            total += 2 * float(np.dot(participation.periods - times, together))
        return Fraction(math.ceil(total * _WIDER * _GRAIN), _GRAIN)

    def inverse(self, periods: int) -> FloatArray:
        """Return the first column of C^-1, for as many periods."""
        rates, weights = self._parts
        found, held = np.ones(periods), np.zeros(len(rates))
        for k in range(1, periods):
            held = rates * held + found[k - 1]
            found[k] = -np.dot(weights, held)
        return found

    @property
    def _parts(self) -> tuple[FloatArray, FloatArray]:
        scale = 2.0**RATE_BITS
        return np.array(self.rates) / scale, np.array(self.weights) / scale


def buffers(design: int) -> Buffers:
    """Return buffers whose coefficients are close to those of the square root, up to a design horizon.

    Time constants are spread evenly, on a logarithmic scale, from two periods to 0.6 of the horizon, which
    leaves little of a person's part in what comes after it. Weights, none of them negative, are fitted
    by least squares.

    >>> round(math.sqrt(buffers(365).l2_squared(Participation())), 3)
    1.695
    """
    if isinstance(design, bool) or not isinstance(design, int) or not _LEAST <= design <= LONGEST_DESIGN:
        raise InvalidArgument(
            f"a design horizon is {_LEAST} to {LONGEST_DESIGN:,} periods, got {design!r}", place="design"
        )
    wanted = np.array(square_root(design // 2).coefficients[1:], dtype=float) / 2.0**BITS
    steps = np.arange(1, len(wanted) + 1, dtype=float)
    longest = _LONGEST * design
    rates = np.exp(-1 / np.geomspace(_SHORTEST, longest, 1 + round(math.log(longest / _SHORTEST) / _SPACING)))
    importance = steps**0.25
    powers = rates[None, :] ** (steps[:, None] - 1)
    weights = _not_negative(powers * importance[:, None], wanted * importance)
    fitted, rest = float(1 << _FITTED_BITS), RATE_BITS - _FITTED_BITS
    return Buffers(
        tuple(math.floor(rate * fitted) << rest for rate in rates.tolist()),
        tuple(math.floor(weight * fitted) << rest for weight in weights.tolist()),
        design,
    )


def _not_negative(columns: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return weights of columns that add up to about what is wanted; one that would be negative is 0."""
    found, used = np.zeros(columns.shape[1]), np.arange(columns.shape[1])
    while True:
        weights = np.linalg.lstsq(columns[:, used], wanted, rcond=None)[0]
        if np.all(weights >= 0):
            found[used] = weights
            return found
        used = used[weights >= 0]
