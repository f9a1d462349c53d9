"""Sums over residues: how many linear forms take each value, for all arguments at once.

Whoever sent a report chose the coefficients of a linear form modulo a prime; what is asked is how many
forms take a value at an argument. One argument at a time that is a walk over all reports. All arguments
together take one digit after the other: the table of coefficients still to be used shrinks as the table
of digits already chosen grows, and every cell stands for many reports.
"""

from __future__ import annotations

import numpy as np

from sfumato.local.arrays import Array, Integers, slices

__all__ = ["absorb", "absorb_last", "inverses"]

_CACHE_NUMBERS = 1 << 17
_FEWEST = 256


def absorb(table: Array) -> Array:
    """Use up one coefficient: out[z, rest, d] = sum over w of table[z - w d, w, rest], modulo the prime.

    The table counts forms by the value they have so far (z), by the next coefficient (w) and by all else.
    Afterwards it counts them by their value once the next digit was d; the prime is the length of its axes.
    """
    prime, _, rest = table.shape
    out = np.empty((prime, rest, prime), dtype=table.dtype)
    for piece in slices(rest, max(_FEWEST, _CACHE_NUMBERS // prime**2)):
        block = np.ascontiguousarray(table[:, :, piece])
        total = np.empty((prime, block.shape[2]), dtype=table.dtype)
        for d in range(prime):
            total[:] = block[:, 0]
            for w in range(1, prime):
                shift = w * d % prime
                total[shift:] += block[: prime - shift, w]
                total[:shift] += block[prime - shift :, w]
            out[:, piece, d] = total
    return out


def absorb_last(table: Array) -> Array:
    """Use up the last coefficient, and keep those forms only whose value is then 0: out[rest, d]."""
    prime, _, rest = table.shape
    coefficients = np.arange(prime)
    out = np.empty((rest, prime), dtype=table.dtype)
    for d in range(prime):
        out[:, d] = table[-coefficients * d % prime, coefficients].sum(axis=0)
    return out


def inverses(values: Integers, prime: int) -> Integers:
    """Return what each value, none a multiple of the prime, must be multiplied by to give 1 (Fermat).

    >>> inverses(np.array([1, 2, 3, 4]), 5).tolist()
    [1, 3, 2, 4]
    """
    result, power, exponent = np.ones_like(values), values % prime, prime - 2
    while exponent:
        if exponent & 1:
            result = result * power % prime
        power = power * power % prime
        exponent >>= 1
    return result
