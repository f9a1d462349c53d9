"""Families of hash functions whose collisions are exactly as rare as they should be.

A hash function here is a sum. The answer is written in digits, the seed holds one residue per digit,
and the hash is the sum of digit times residue, modulo any number at all. Nothing about it is
heuristic: over a random seed, two different answers collide with a chance that is known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arguments import count
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Integers, Octets, slices

__all__ = ["LinearFamily", "smallest_factor"]

_LARGEST_MODULUS = 2**31
_USUAL_BASE = 32
_BLOCK_ROWS = 256


def smallest_factor(number: int) -> int:
    """Return the smallest prime factor of a number above 1."""
    return next((d for d in range(2, math.isqrt(number) + 1) if number % d == 0), number)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFamily:
    """h(x) = a_1 x_1 + ... + a_m x_m modulo `modulus`, for the m digits x_i and the seed's residues a_i.

    Theorem: write x in a base that is at most the smallest prime factor of the modulus, and draw every
    a_i uniformly. Then two different x and y collide with chance exactly 1/modulus. For some digit
    differs, by a number that is not 0 and smaller than every prime factor of the modulus, hence has an
    inverse modulo it; whatever the other residues are, that digit's residue makes h(x) - h(y) uniform.
    (Carter and Wegman 1979 for a prime modulus; this is all that is needed of it, for any modulus.)

    Residues travel as bits: each takes as many as modulus - 1 has, one after the other, the first digit's
    first and its highest bit first; the last byte is filled up with zeros.
    """

    modulus: int
    base: int
    digits: int

    def __post_init__(self) -> None:
        count(self.digits, "digits")
        if count(self.modulus, "modulus", least=2) > _LARGEST_MODULUS:
            raise InvalidArgument("the modulus must be at most 2^31", place="modulus")
        if not 2 <= count(self.base, "base") <= smallest_factor(self.modulus):
            raise InvalidArgument(
                "the base must be at most the smallest prime factor of the modulus", place="base"
            )
        if self.base > _BLOCK_ROWS:
            raise InvalidArgument(f"the base must be at most {_BLOCK_ROWS}", place="base")

    @classmethod
    def of(cls, modulus: int, *, size: int) -> LinearFamily:
        """Take the largest base that the modulus allows, up to 32, and the digits that tell answers apart."""
        base = min(smallest_factor(count(modulus, "modulus", least=2)), _USUAL_BASE)
        digits, told_apart = 1, base
        while told_apart < size:
            digits, told_apart = digits + 1, told_apart * base
        return cls(modulus=modulus, base=base, digits=digits)

    @property
    def width(self) -> int:
        """The bits of one residue."""
        return (self.modulus - 1).bit_length()

    @property
    def seed_bytes(self) -> int:
        """The bytes of a packed seed."""
        return (self.digits * self.width + 7) // 8

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of residues: the sum of two of them fits."""
        return np.dtype(np.min_scalar_type(2 * self.modulus - 1))

    # -- seeds --------------------------------------------------------------------------

    def draw(self, n: int) -> Array:
        """Return n random seeds: one row per digit, one column per person."""
        drawn = uniform_below(self.modulus, size=self.digits * n)
        return drawn.astype(self.dtype).reshape(self.digits, n)

    def pack(self, seeds: Array) -> Octets:
        """Return seeds as they travel: one row of bytes per person."""
        packed = np.zeros((self.seed_bytes, seeds.shape[1]), dtype=np.uint8)
        for row, first, last, shift in self._spans():
            shifted = seeds[row].astype(np.uint64) << np.uint64(shift)
            for place in range(last, first - 1, -1):
                packed[place] |= (shifted & np.uint64(255)).astype(np.uint8)
                shifted >>= np.uint64(8)
        return np.ascontiguousarray(packed.T)

    def unpack(self, packed: Octets) -> Array:
        """Return the seeds that bytes hold, whether or not they are residues."""
        columns = np.ascontiguousarray(packed.T)
        wide = np.dtype(np.uint16 if self.width <= 8 else np.uint64)  # a residue spans two bytes, or five
        held = np.min_scalar_type(max(2 * self.modulus, 1 << self.width) - 1)
        seeds = np.empty((self.digits, len(packed)), dtype=held)
        for row, first, last, shift in self._spans():
            spanned = columns[first].astype(wide)
            for place in range(first + 1, last + 1):
                spanned = spanned << wide.type(8) | columns[place]
            seeds[row] = spanned >> wide.type(shift) & wide.type((1 << self.width) - 1)
        return seeds

    def valid(self, packed: Array) -> Flags:
        """Flag the rows of bytes that hold residues, and zeros where they are filled up."""
        if packed.ndim != 2 or packed.shape[1] != self.seed_bytes or packed.dtype != np.uint8:
            return np.zeros(len(packed), dtype=np.bool_)
        spare = 8 * self.seed_bytes - self.digits * self.width
        flags: Flags = packed[:, -1] & np.uint8((1 << spare) - 1) == 0
        if self.modulus < 1 << self.width:
            for piece in slices(len(packed), 1 << 14):
                flags[piece] &= (self.unpack(packed[piece]) < self.modulus).all(axis=0)
        return flags

    def _spans(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield, for every residue, its number, the first and last byte it touches, and the bits after it."""
        for row in range(self.digits):
            start, end = row * self.width, (row + 1) * self.width
            yield row, start // 8, (end - 1) // 8, -end % 8

    # -- hashes -------------------------------------------------------------------------

    def digits_of(self, values: Integers) -> Octets:
        """Write values in digits: one row per digit, the highest first."""
        rows = np.empty((self.digits, len(values)), dtype=np.uint8)
        rest, base = values, self.base
        for row in range(self.digits - 1, -1, -1):
            higher = rest // base
            rows[row] = rest - higher * base
            rest = higher
        return rows

    def spell(self, values: Integers, block: slice) -> Integers:
        """Return, for each value, what a run of its digits spells: its row in the table of these digits."""
        after, own = self.base ** (self.digits - block.stop), self.base ** (block.stop - block.start)
        spelled: Integers = values // after % own
        return spelled

    def hash(self, seeds: Array, digits: Octets) -> Integers:
        """Return each person's hash of their own value, given by its digits."""
        total = np.zeros(seeds.shape[1], dtype=np.int64)
        for residues, digit in zip(seeds, digits, strict=True):
            total += residues.astype(np.int64) * digit  # below 2^39 each, and digits are few
        return total % self.modulus

    def add(self, total: Array, more: Array, spare: Array) -> None:
        """Add residues to residues in place; `spare` is as large as the total."""
        np.add(total, more, out=total)
        np.subtract(total, total.dtype.type(self.modulus), out=spare)  # wraps around if it was below
        np.minimum(total, spare, out=total)

    def table(self, seeds: Array) -> Array:
        """Return the hashes of everything that the digits of these seeds can spell, in order: a row each."""
        people = seeds.shape[1]
        rows = np.zeros((1, people), dtype=self.dtype)
        for residues in seeds:
            multiples = np.zeros((self.base, people), dtype=self.dtype)
            for d in range(1, self.base):
                np.add(multiples[d - 1], residues, out=multiples[d])
                np.minimum(multiples[d], multiples[d] - self.dtype.type(self.modulus), out=multiples[d])
            longer = rows[:, None, :] + multiples[None, :, :]
            np.minimum(longer, longer - self.dtype.type(self.modulus), out=longer)
            rows = longer.reshape(-1, people)
        return rows

    def blocks(self) -> list[slice]:
        """Cut the digits into runs of nearly equal length; no run spells more than 256 things."""
        longest = max(1, int(math.log(_BLOCK_ROWS, self.base) + 1e-9))
        runs = -(-self.digits // longest)
        ends = [self.digits * (run + 1) // runs for run in range(runs)]
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
