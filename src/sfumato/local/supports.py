"""How many reports support a string, or each continuation of a beginning: exact counts, one by one.

A report is a linear form modulo a prime: it supports the arguments at which the form takes its value. All
arguments together take one digit after the other (`absorb`): the table of coefficients still to be used
shrinks as the table of digits already chosen grows, and every cell stands for many reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from sfumato.local.arrays import Array, Integers, Octets, slices
from sfumato.local.hashing import LinearFamily

__all__ = [
    "absorb", "absorb_last", "inverses", "number_of", "supports_of_continuations", "supports_of_strings",
]  # fmt: skip

_PIECE = 1 << 14
_TOGETHER = 1 << 8  # heads whose tables are summed together


def number_of(digits: Array, base: int) -> Integers:
    """Read rows of digits as numbers.

    >>> number_of(np.array([[1, 0, 2], [0, 2, 1]]), 3).tolist()
    [11, 7]
    """
    total = np.zeros(len(digits), dtype=np.int64)
    for digit in digits.T:
        total = total * base + digit
    return total


def supports_of_continuations(
    prime: int, heads: Octets, step: int, reports: Iterable[tuple[Array, Array]]
) -> tuple[Integers, int]:
    """Return the supports of every continuation of every head by `digits` digits, and the number of reports.

    Reports come as seeds, a row per digit, and values. They are counted by the hash of a head less
    their value, and by their seed after it: what all continuations need to know of them.
    """
    known, size = heads.shape[1], 0
    tables = np.zeros((len(heads), prime ** (step + 1)), dtype=np.int32)
    for seeds, value in reports:
        size += len(value)
        for piece in slices(len(value), _PIECE):
            after = number_of(seeds[known : known + step, piece].T, prime)
            for table, total in zip(
                tables, _hashes(prime, heads, seeds[:, piece], value[piece]), strict=True
            ):
                keys = np.multiply(total % total.dtype.type(prime), prime**step, dtype=np.int64)
                keys += after
                table += np.bincount(keys, minlength=len(table)).astype(np.int32)
    supports = np.empty((len(tables), prime**step), dtype=np.int64)
    for group in slices(len(tables), _TOGETHER):
        table = tables[group].T.astype(np.int64, order="C")
        for _ in range(step - 1):
            table = absorb(table.reshape(prime, prime, -1))
        supports[group] = absorb_last(table.reshape(prime, prime, -1)).reshape(-1, prime**step)
    return supports, size


def supports_of_strings(prime: int, strings: Octets, seeds: Array, value: Array) -> Integers:
    """Return how many reports support each of some strings, given by rows of digits.

    Theorem: of the numbers below 2^b, the multiples of an odd prime, and no others, times its inverse
    modulo 2^b are at most (2^b - 1) / prime; the even ones, and no others, times 2^(b - 1) are 0.
    """
    counted = np.zeros(len(strings), dtype=np.int64)
    for piece in slices(len(value), _PIECE):
        for place, total in enumerate(_hashes(prime, strings, seeds[:, piece], value[piece])):
            kind = total.dtype.type
            most = int(np.iinfo(kind).max)
            inverse, bound = (pow(prime, -1, most + 1), most // prime) if prime > 2 else (most // 2 + 1, 0)
            counted[place] += np.count_nonzero(np.multiply(total, kind(inverse)) <= kind(bound))
    return counted


def _hashes(prime: int, heads: Octets, seeds: Array, value: Array) -> Iterator[Array]:
    """Yield, for every head, its hashes by all reports less their values, but for multiples of the prime."""
    known = heads.shape[1]
    family = LinearFamily(modulus=prime, base=prime, digits=max(1, known))
    blocks = family.blocks() if known else []
    kind = np.min_scalar_type((prime - 1) * (len(blocks) + 1))
    rows = [family.table(seeds[block]).astype(kind) for block in blocks]
    spelled = np.empty((len(heads), len(blocks)), dtype=np.int64)
    for column, block in zip(spelled.T, blocks, strict=True):
        column[:] = number_of(heads[:, block], prime)
    start = (-value.astype(np.int64) % prime).astype(kind)
    # What one head shares with the one before it has been added up already.
    partial, last = [start, *(np.empty_like(start) for _ in blocks)], [-1] * len(blocks)
    for spelling in spelled.tolist():
        same = next((i for i, (x, y) in enumerate(zip(spelling, last, strict=True)) if x != y), len(blocks))
        for i in range(same, len(blocks)):
            np.add(partial[i], rows[i][spelling[i]], out=partial[i + 1])
        last = spelling
        yield partial[-1]


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
