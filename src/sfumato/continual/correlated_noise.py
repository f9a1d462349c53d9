"""Correlated noise: integers u, one per number and period, of which z = C u, rounded, is independent noise.

In each period fresh noise z_t is drawn, and u_t = z_t - round(the part of C u that earlier periods make). The
noise never depends on the data: w_t = x_t + u_t is published, and u is what the state of a stream holds.

Theorem. Let two neighbouring streams x and x' change C x by a vector of length at most S, and be different in
at most m of the numbers. Then publishing w costs at most what independent discrete Gaussian noise z costs on
integers that change by a vector of length S + sqrt(n m) * (1 + slack), chosen adaptively, over n periods.

Proof. Given what was published up to t, w_t = x_t + z_t - r_t, where r_t is a function of u_1 .. u_(t-1),
that is of w - x: an integer, known under each of the two streams. So w_t is discrete Gaussian noise around an
integer, and the two centres differ by s_t = (x_t - r_t) - (x'_t - r'_t). Without rounding this would be the
change of C x at t; each of r_t and r'_t is rounded by at most 1/2, and `slack` bounds what earlier roundings
of buffers leave. Numbers that are the same in both streams have the same u, and no difference. So the length
of s is at most S + sqrt(n m) (1 + slack), whatever was published, and the cost of Gaussian noise with shifts
that are chosen adaptively is that of the largest length which they can have (`core.rules`).

To make the second term small, x is counted in fine steps: `steps_for` says how fine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.continual.factorisation import BITS, Factorisation
from sfumato.continual.rates import RATE_BITS, Buffers
from sfumato.errors import InvalidArgument, Unsupported

__all__ = ["CorrelatedNoise", "slack", "steps_for"]

_LIMB = 24  # bits: limbs times coefficients, summed over 2^15 periods, fit in 64 bits
_LONGEST = 1 << 15
_FINER = 16  # bits that buffers have behind the point
_CLOSE = 2.0**-20  # how much longer than S the shifts may be, as a part of one unit

_Integers = npt.NDArray[Any]


class CorrelatedNoise:
    """The noise of a stream so far, for any number of numbers; new ones begin when they appear.

    >>> from sfumato.continual.factorisation import square_root
    >>> noise = CorrelatedNoise(square_root(4))
    >>> [noise.next([z]).tolist() for z in (8, 0, 0, 0)]
    [[8], [-4], [-1], [-1]]
    """

    def __init__(self, factorisation: Factorisation | Buffers) -> None:
        if isinstance(factorisation, Factorisation) and factorisation.horizon > _LONGEST:
            raise InvalidArgument(
                f"a stream that remembers all its noise has at most {_LONGEST:,} periods",
                place="horizon",
                hints=("use buffers, whose state does not grow",),
            )
        self.factorisation = factorisation
        self.periods = 0
        self._held = (
            _History(factorisation) if isinstance(factorisation, Factorisation) else _Held(factorisation)
        )

    def resume(self, earlier: Sequence[_Integers]) -> None:
        """Go on after earlier periods, whose noise is given; all have as many numbers.

        >>> from sfumato.continual.factorisation import square_root
        >>> noise = CorrelatedNoise(square_root(4))
        >>> noise.resume([np.array([8]), np.array([-4])])
        >>> noise.next([0]).tolist()
        [-1]
        """
        if self.periods or len(earlier) > self.factorisation.horizon:
            raise InvalidArgument("only a stream that has not begun is resumed", place="earlier")
        self._held.add_all([np.asarray(one, dtype=object) for one in earlier])
        self.periods = len(earlier)

    def next(self, fresh: Any) -> _Integers:
        """Return the noise of the next period, given fresh independent noise, one for each number."""
        if self.periods >= self.factorisation.horizon:
            raise InvalidArgument("the horizon of this stream is used up", place="horizon")
        drawn = np.asarray(fresh, dtype=object)
        noise = drawn - self._held.carried(len(drawn))
        self._held.add(noise)
        self.periods += 1
        return noise


class _History:
    """All noise of earlier periods, in limbs of 24 bits: for C with any coefficients."""

    def __init__(self, factorisation: Factorisation) -> None:
        self._column = np.array(factorisation.coefficients, dtype=np.int64)
        self._limbs = np.zeros((3, 0, 0), dtype=np.int64)  # limb, period, number

    def carried(self, numbers: int) -> _Integers:
        _, periods, known = self._limbs.shape
        if numbers > known:
            self._limbs = np.pad(self._limbs, ((0, 0), (0, 0), (0, numbers - known)))
        later = self._column[periods:0:-1]  # the oldest first
        low, middle, high = (np.einsum("p,pn->n", later, limb).astype(object) for limb in self._limbs)
        total = low + (middle << _LIMB) + (high << 2 * _LIMB)
        return np.asarray((total + (1 << BITS - 1)) >> BITS, dtype=object)

    def add(self, noise: _Integers) -> None:
        self.add_all([noise])

    def add_all(self, noises: Sequence[_Integers]) -> None:
        if noises:
            numbers = max(self._limbs.shape[2], len(noises[0]))
            before = np.pad(self._limbs, ((0, 0), (0, 0), (0, numbers - self._limbs.shape[2])))
            self._limbs = np.concatenate(
                (before, np.stack([self._in_limbs(one) for one in noises], axis=1)), axis=1
            )

    @staticmethod
    def _in_limbs(noise: _Integers) -> npt.NDArray[np.int64]:
        if noise.size and max(map(abs, noise.tolist())) >> 3 * _LIMB - 1:
            raise Unsupported("noise of more than 71 bits")
        rest = (noise >> 2 * _LIMB).astype(np.int64)
        limbs = [(noise >> shift * _LIMB & (1 << _LIMB) - 1).astype(np.int64) for shift in (0, 1)]
        return np.stack([*limbs, rest])


class _Held:
    """One number per rate: each falls by its rate from period to period, and gets the new noise on top."""

    def __init__(self, given: Buffers) -> None:
        self._rates, self._weights = given.rates, given.weights
        self._sums = np.zeros((len(given.rates), 0), dtype=object)  # in steps of 2^-16

    def carried(self, numbers: int) -> _Integers:
        new = np.zeros((len(self._rates), numbers - self._sums.shape[1]), dtype=object)
        self._sums = np.concatenate((self._sums, new), axis=1)
        total = sum(weight * held for weight, held in zip(self._weights, self._sums, strict=True))
        return np.asarray((total + (1 << RATE_BITS + _FINER - 1)) >> RATE_BITS + _FINER, dtype=object)

    def add_all(self, noises: Sequence[_Integers]) -> None:
        for noise in noises:
            self.carried(len(noise))  # numbers that are new begin at zero
            self.add(noise)

    def add(self, noise: _Integers) -> None:
        fine = noise << _FINER
        half = 1 << RATE_BITS - 1
        self._sums = np.stack(
            [
                ((rate * held + half) >> RATE_BITS) + fine
                for rate, held in zip(self._rates, self._sums, strict=True)
            ]
        )


def slack(factorisation: Factorisation | Buffers) -> float:
    """Return how much more than 1 the shift of one number may be off in one period, in steps.

    Proof. Both streams round each buffer by at most half of 2^-16 per period; what a rounding leaves falls by
    the rate, so that a buffer is off by at most 2^-16 / (1 - rate), and its weight times that is carried.
    """
    if isinstance(factorisation, Factorisation):
        return 0.0
    one = 1 << RATE_BITS
    pairs = zip(factorisation.rates, factorisation.weights, strict=True)
    return 1.01 * math.fsum(weight / (one - rate) for rate, weight in pairs) / (1 << _FINER)


def steps_for(factorisation: Factorisation | Buffers, numbers: int) -> int:
    """Return how many steps make one unit, a power of two: rounding then adds less than 2^-20 of a unit.

    `numbers` is how many numbers one person may change.
    """
    length = math.sqrt(factorisation.horizon * numbers) * (1 + slack(factorisation))
    return 1 << max(0, math.ceil(math.log2(length / _CLOSE)))
