"""Factorisations: how the noise of one period is used again in later ones, so that sums stay accurate.

A stream has an exact number x_t per period, and publishes w = x + u. The noise u is not independent from
period to period: with a lower triangular matrix C, whose entries c_(s - t) depend on the distance alone,

    z = C u (rounded to integers)    is independent discrete Gaussian noise,

so a running total, the sum of w up to t, carries A C^-1 z, where A adds up. C makes z out of u, and hides
x as well as noise of deviation sigma hides C x.

Theorem (sensitivity). Let c_0 >= c_1 >= .. >= 0, and let one person change x by a vector of Euclidean length
at most D in each of the periods that `Participation` allows. Then C x changes by at most D * |C v|, where v
is 1 in the earliest allowed periods and 0 elsewhere.

Proof. Write P for the periods in which the person is. The change is the sum over t in P of C e_t d_t, with
vectors d_t over groups. Its square is the sum over s, t in P of <C e_s, C e_t> <d_s, d_t>, at most D^2 times
the sum of <C e_s, C e_t>, because entries of C are not negative. For s <= t, <C e_s, C e_t> is the sum over
k < n - t of c_(k + t - s) c_k: it can only fall where t grows, and where t - s does. The i-th period of P is
at least (i - 1) * apart, and the distance of its i-th and j-th at least |i - j| * apart. The earliest allowed
periods have equality in all of these, so no other choice has a larger sum.

The square root of A (Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and Upadhyay 2023) has
c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k). Both factors of A are then the same matrix, and a running total at t
has variance sigma^2 S_t, where S_t is the sum of c_k^2 over k < t. Its coefficients are rounded to 2^-24
here; the theorem is about the rounded ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import ge

import numpy as np

from sfumato.continual.participation import Participation
from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument

__all__ = ["BITS", "Factorisation", "square_root"]

BITS = 24  # coefficients are multiples of 2^-24
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Factorisation:
    """The first column of C: coefficients in units of 2^-24, the first of them 1, none larger than before.

    >>> Factorisation((1 << 24, 0, 0)).inverse(3).tolist()  # independent noise in each period
    [1.0, -0.0, -0.0]
    """

    coefficients: tuple[int, ...]

    def __post_init__(self) -> None:
        first, falling = self.coefficients[:1], all(map(ge, self.coefficients, self.coefficients[1:]))
        if first != (1 << BITS,) or not falling or self.coefficients[-1] < 0:
            raise InvalidArgument(
                "coefficients begin with 1, never rise, and are never negative", place="coefficients"
            )

    @property
    def horizon(self) -> int:
        """The number of periods."""
        return len(self.coefficients)

    def extra_bits(self, number: int) -> int:
        """Return 0: the steps of all periods are the same."""
        return 0

    @property
    def roundings(self) -> Fraction:
        """The number of periods, each of which is rounded."""
        return Fraction(self.horizon)

    def l2_squared(self, participation: Participation) -> Fraction:
        """Return the largest squared length of C v: what a person of one unit per period can change, exactly.

        >>> float(square_root(365).l2_squared(Participation()))  # doctest: +ELLIPSIS
        2.94405...
        """
        column = np.array(self.coefficients, dtype=object)
        changed = np.zeros(self.horizon, dtype=object)
        for start in participation.earliest(self.horizon):
            changed[start:] += column[: self.horizon - start]
        return Fraction(int((changed * changed).sum()), 1 << 2 * BITS)

    def inverse(self, periods: int) -> FloatArray:
        """Return the first column of C^-1: what the noise of one period does to itself and to later ones."""
        column, found = self._column, np.ones(periods)
        for k in range(1, periods):
            found[k] = -np.dot(column[1 : k + 1], found[k - 1 :: -1][:k])
        return found

    @property
    def _column(self) -> FloatArray:
        return np.array(self.coefficients, dtype=float) / (1 << BITS)


def square_root(horizon: int) -> Factorisation:
    """Return the square root of the matrix that adds up, over a known horizon.

    >>> [Fraction(c, 1 << 24) for c in square_root(4).coefficients]
    [Fraction(1, 1), Fraction(1, 2), Fraction(3, 8), Fraction(5, 16)]
    """
    if isinstance(horizon, bool) or not isinstance(horizon, int) or not 1 <= horizon <= _LONGEST:
        raise InvalidArgument(f"a horizon is 1 to {_LONGEST:,} periods, got {horizon!r}", place="horizon")
    steps = np.arange(1, horizon, dtype=float)
    ratios = np.concatenate(([1.0], np.cumprod((2 * steps - 1) / (2 * steps))))
    return Factorisation(tuple(np.floor(ratios * (1 << BITS) + 0.5).astype(np.int64).tolist()))
