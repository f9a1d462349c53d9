"""Packed bits: a row per report, eight answers a byte, the first answer in the highest bit.

A million reports over a thousand answers are a billion bits. They are tossed 64 at a time and counted
by the word; the laws are exact all the same.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import Number, count, probability
from sfumato.core.entropy import random_words
from sfumato.core.uniform import uniform_below
from sfumato.local.arrays import Array, Flags, Integers, Octets, slices

__all__ = ["bytes_for", "coin_bits", "count_bits", "ones", "put_bits", "uniform_subsets", "well_formed"]

_Words = npt.NDArray[np.uint64]

_CHUNK = 1 << 13  # words that are tossed together: three such arrays stay in a core's own cache
_DENSE = 6  # digits after which few words have an undecided lane, so that it pays to leave the others
_STRIP = 1 << 11  # bytes of a row that are counted together
_CACHE = 1 << 18  # bytes of all rows that are counted together
_BLOCK = 1 << 22  # bytes of subsets that are drawn together
_FEW = 16  # rows that are sooner counted one by one
_SPARE = 2  # deviations by which subsets start below their size: few get too many, and few are added
_START = 1 << 16  # subsets start from coins of a short binary chance, which take few random words

# Bits are added in lanes of 2, then 4, then 8: three rows fill a lane of two, five of those a lane of
# four, seventeen of those a byte. Each step: the lane's width before it, its mask, how many rows add up.
_LANES = ((1, 0x5555555555555555, 3), (2, 0x3333333333333333, 5), (4, 0x0F0F0F0F0F0F0F0F, 17))
_ROWS = 3 * 5 * 17


def bytes_for(size: int) -> int:
    """Return the bytes of a row of `size` bits."""
    return (size + 7) // 8


def coin_bits(chance: Number, rows: int, size: int) -> Octets:
    """Toss rows of coins; each is 1 with exactly the stated probability; padding is 0.

    Theorem: U < chance is decided by the first binary digit in which they differ. In each of 64 lanes a
    random bit says whether U has the same digit: with equal chances the lane stays open or is decided,
    for heads where the digit of the chance is 1. Half of the open lanes are decided by every digit, and
    where the expansion of the chance ends, U is not below it.

    >>> coin_bits(1, rows=1, size=12)
    array([[255, 240]], dtype=uint8)
    """
    bias = probability(chance, "chance")
    width = bytes_for(count(size, "size"))
    octets = count(rows, "rows", least=0) * width
    words = np.zeros((octets + 7) // 8, dtype=np.uint64)
    if bias == 1:
        words[:] = np.uint64(2**64 - 1)
    else:
        for chunk in slices(len(words), _CHUNK):
            _toss(bias, words[chunk])
    packed = words.view(np.uint8)[:octets].reshape(rows, width)
    packed[:, -1] &= np.uint8(_last_mask(size))
    return packed


def _toss(bias: Fraction, heads: _Words) -> None:
    """Set each bit of `heads`, which is zero, with a chance of exactly `bias`, which is below 1."""
    still = np.full(len(heads), 2**64 - 1, dtype=np.uint64)  # the open lanes
    where: Integers | None = None  # the words they are in, once others are done
    rest, digits = bias.numerator, 0
    while rest:
        rest, digits = 2 * rest, digits + 1
        drawn = random_words(len(still))
        drawn &= still
        if rest >= bias.denominator:
            rest -= bias.denominator
            if where is None:
                heads |= drawn
            else:
                heads[where] |= drawn
            still ^= drawn
        else:
            still = drawn
        if digits >= _DENSE:
            keep = np.flatnonzero(still)
            if not len(keep):
                return
            still = still[keep]
            where = keep if where is None else where[keep]


def uniform_subsets(taken: Octets, size: int, wanted: Integers) -> Octets:
    """Return for each row a set of `wanted` answers that are not taken, each such set equally likely.

    Theorem: tosses of one coin for every answer leave each set of the same number equally likely, also
    among rows that did not get too many; so does adding an answer that is drawn from those left.
    At least a third of all answers should remain free, or the last ones are long in coming.
    """
    chosen = np.empty_like(taken)
    for rows in slices(len(taken), max(1, _BLOCK // taken.shape[1])):
        chosen[rows] = _block_of_subsets(taken[rows], size, wanted[rows])
    return chosen


def _block_of_subsets(taken: Octets, size: int, wanted: Integers) -> Octets:
    drawn = _thin_subsets(taken, size, wanted)
    full = taken | drawn
    missing = wanted - ones(drawn)
    pending = np.flatnonzero(missing)
    while len(pending):
        places = uniform_below(size, size=len(pending))
        octet, bit = places >> 3, _bit(places)
        before = full[pending, octet]
        full[pending, octet] = before | bit
        missing[pending] -= (before & bit) == 0
        pending = pending[missing[pending] > 0]
    return full ^ taken


def _thin_subsets(taken: Octets, size: int, wanted: Integers) -> Octets:
    """Return sets to start from, with as many members as coins can give without giving many rows too many."""
    least = int(wanted.min())
    chance = Fraction(max(0, int((least - _SPARE * math.sqrt(least) - 1) / size * _START)), _START)
    if chance == 0:
        return np.zeros_like(taken)
    free = ~taken
    drawn = coin_bits(chance, len(taken), size) & free
    again = np.flatnonzero(ones(drawn) > wanted)
    while len(again):
        drawn[again] = coin_bits(chance, len(again), size) & free[again]
        again = again[ones(drawn[again]) > wanted[again]]
    return drawn


def put_bits(packed: Octets, rows: Array, places: Integers, values: Flags) -> None:
    """Write bits, each given by its row and place; many may lie in one byte."""
    octet, bit = places >> 3, _bit(places)
    np.bitwise_and.at(packed, (rows, octet), ~bit)
    np.bitwise_or.at(packed, (rows[values], octet[values]), bit[values])


def ones(packed: Octets) -> Integers:
    """Return how many bits of each row are set."""
    rows, width = packed.shape
    found = np.empty(rows, dtype=np.int64)
    for some in slices(rows, max(1, _CACHE // max(1, width))):
        part = packed[some]
        wide = part.view(np.uint64) if width % 8 == 0 and part.flags.c_contiguous else part
        found[some] = np.bitwise_count(wide).sum(axis=1, dtype=np.int64)
    return found


def well_formed(packed: Array, size: int) -> Flags:
    """Flag the rows that have the right number of bytes and nothing in the padding."""
    column = np.asarray(packed)
    if column.ndim != 2 or column.dtype != np.uint8 or column.shape[1] != bytes_for(size):
        return np.zeros(len(column) if column.ndim else 0, dtype=np.bool_)
    flags: Flags = (column[:, -1] & np.uint8(0xFF ^ _last_mask(size))) == 0
    return flags


def count_bits(packed: Octets, size: int) -> Integers:
    """Return how many rows have each bit set, with the same memory for any number of rows.

    >>> count_bits(np.array([[0b10100000], [0b10000000]], dtype=np.uint8), 3)
    array([2, 0, 1])
    """
    width = packed.shape[1]
    totals = np.zeros((width, 8), dtype=np.int64)
    for columns in slices(width, _STRIP):
        strip = packed[:, columns]
        for rows in slices(len(strip), _ROWS * max(1, _CACHE // (_ROWS * strip.shape[1]))):
            totals[columns] += _count_block(strip[rows])
    return totals.reshape(-1)[:size]


def _count_block(block: Octets) -> Integers:
    """Count the bits of a few thousand bytes: a row per byte of a report, a column per bit."""
    rows, width = block.shape
    if rows < _FEW:
        few: Integers = np.unpackbits(block, axis=1).sum(axis=0, dtype=np.int64)
        return few.reshape(width, 8)
    if rows % _ROWS or width % 8 or not block.flags.c_contiguous:
        framed = np.zeros((rows + -rows % _ROWS, width + -width % 8), dtype=np.uint8)
        framed[:rows, :width] = block
        block = framed
    lanes: list[tuple[int, _Words]] = [(0, block.view(np.uint64))]
    for step, mask, ways in _LANES:
        lanes = [(at + shift, _add(words, shift, mask, ways)) for at, words in lanes for shift in (0, step)]
    counts = np.empty((block.shape[1], 8), dtype=np.int64)
    for at, words in lanes:  # `at` counts from the lowest bit of a byte, answers from the highest
        counts[:, 7 - at] = words.view(np.uint8).sum(axis=0, dtype=np.int64)
    return counts[:width]


def _add(words: _Words, shift: int, mask: int, ways: int) -> _Words:
    """Add `ways` groups of rows, lane by lane; no lane can overflow."""
    lanes = words >> np.uint64(shift) if shift else words
    parts = (lanes & np.uint64(mask)).reshape(ways, -1, words.shape[1])
    total: _Words = np.add.reduce(parts, axis=0)
    return total


def _bit(places: Integers) -> Octets:
    """Return the bit of each place within its byte."""
    return (128 >> (places & 7)).astype(np.uint8)


def _last_mask(size: int) -> int:
    """Return which bits of a row's last byte stand for answers."""
    return 0xFF << (-size % 8) & 0xFF
