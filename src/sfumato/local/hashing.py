"""Local hashing: say a noisy hash of the answer, under a hash function of one's own.

A report is short whatever the number of answers, and as informative as any known protocol: a hash
has few values, so that the truth is told often, and everybody hashes differently, so that what one
person's function throws together another's keeps apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.response import RandomizedResponseMechanism
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Integers, Octets, slices
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, FieldKind, OddsProtocol, below

__all__ = ["LinearFamily", "LocalHashing", "smallest_factor"]

_LARGEST_MODULUS = 2**31
_USUAL_BASE = 32
_BLOCK_ROWS = 256
_PEOPLE = 1 << 16
_CACHE_BYTES = 1 << 21
_FEW = 256


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHashing(OddsProtocol):
    """A random hash function with `hashes` values, and a k-ary response about the hash of the answer.

    A phone does, with g = hashes, b the smallest prime factor of g (32 if that is less), and m the
    number of digits that size - 1 has in base b (at least one):
      1. write the answer in base b as digits x_1 .. x_m, the highest first;
      2. draw a_1 .. a_m, each uniform below g; these are the seed;
      3. h = (a_1 x_1 + ... + a_m x_m) mod g;
      4. with chance odds / (odds + g - 1) say h, else (h + 1 + d) mod g for a d uniform below g - 1.
    The report is the seed, each a_i in as many bits as g - 1 has, and the value said.

    Theorem: the seed says nothing about the answer, and given the seed, the value has weight odds or 1
    out of odds + g - 1: the largest ratio is the odds. A report supports what its function hashes to its
    value: its sender's answer with chance p = odds / (odds + g - 1), any other with chance
    q = p/g + (1 - p)/(g - 1) (g - 1)/g = 1/g exactly, for two answers collide with chance exactly 1/g
    (see LinearFamily). With g next to odds + 1 the variance is smallest (Wang, Blocki, Li and Jha 2017).

    >>> protocol = LocalHashing.from_epsilon(1, size=1000)
    >>> protocol.hashes, protocol.q, protocol.message_bits
    (4, Fraction(1, 4), 22)
    """

    size: int
    hashes: int
    odds: Fraction

    name: ClassVar[str] = "hashing"
    fields: ClassVar[dict[str, FieldKind]] = {"seed": "bits", "value": "integer"}

    def __post_init__(self) -> None:
        OddsProtocol.__post_init__(self)
        count(self.hashes, "hashes", least=2)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int, hashes: int | None = None) -> LocalHashing:
        """Hash to as many values as leave the least variance, round(e^epsilon) + 1, or to `hashes`."""
        odds = odds_of(epsilon)
        return cls(size=size, hashes=round(odds) + 1 if hashes is None else hashes, odds=odds)

    @property
    def family(self) -> LinearFamily:
        """The hash functions."""
        return LinearFamily.of(self.hashes, size=self.size)

    @property
    def p(self) -> Fraction:
        """The chance of the true hash."""
        return self.odds / (self.odds + self.hashes - 1)

    @property
    def q(self) -> Fraction:
        """The chance that another answer has the hash that was said."""
        return Fraction(1, self.hashes)

    @property
    def message_bits(self) -> int:
        """The bits of a seed and a hash."""
        return (self.family.digits + 1) * self.family.width

    def octets(self, field: str) -> int:
        """Return how many bytes a packed seed takes."""
        return self.family.seed_bytes

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""
        given, family = self._answers(answers), self.family
        seed = np.empty((len(given), family.seed_bytes), dtype=np.uint8)
        value = np.empty(len(given), dtype=np.int64)
        response = RandomizedResponseMechanism(self.p, choices=self.hashes)
        for piece in slices(len(given), _PEOPLE):
            seeds = family.draw(len(given[piece]))
            seed[piece] = family.pack(seeds)
            value[piece] = response.release(family.hash(seeds, family.digits_of(given[piece])))
        return {"seed": seed, "value": value}

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports whose seed is made of residues, and whose value is one."""
        return below(reports["value"], self.hashes) & self.family.valid(reports["seed"])

    def collect(self, reports: Columns) -> Integers:
        """Count, for every answer, the reports whose function hashes it to their value."""
        return self.supports_of(reports, np.arange(self.size))

    def supports_of(self, reports: Columns, candidates: Integers) -> Integers:
        """Count the supports of some answers only; those that differ late in their digits share most work."""
        wanted = self._answers(candidates)
        order = np.argsort(wanted, kind="stable") if (np.diff(wanted) < 0).any() else np.arange(len(wanted))
        counts = np.zeros(len(wanted), dtype=np.int64)
        if len(wanted) and len(reports["value"]):
            counts[order] = self._matches(reports, wanted[order])
        return counts

    def _matches(self, reports: Columns, wanted: Integers) -> Integers:
        """Count matches by integer comparisons: exact, and in constant memory."""
        family = self.family
        blocks = family.blocks()
        # An answer is spelled by one row of each block's table; answers with the same head stand together.
        spelled = np.array([family.spell(wanted, block) for block in blocks])
        changes = np.flatnonzero((np.diff(spelled[:-1], axis=1) != 0).any(axis=0)) + 1
        groups = [slice(*ends) for ends in pairwise([0, *changes.tolist(), len(wanted)])]

        rows = sum(family.base ** (block.stop - block.start) for block in blocks)
        step = max(_FEW, min(1 << 15, _CACHE_BYTES // (rows * family.dtype.itemsize)))
        counts = np.zeros(len(wanted), dtype=np.int64)
        for piece in slices(len(reports["value"]), step):
            seeds = family.unpack(reports["seed"][piece]).astype(family.dtype)
            # Heads are subtracted from the value, so that the last block alone remains to be compared.
            minus = (self.hashes - seeds) % family.dtype.type(self.hashes)
            tables = [family.table(minus[block]) for block in blocks[:-1]]
            ending = family.table(seeds[blocks[-1]])
            value = reports["value"][piece].astype(family.dtype)
            if len(value) < _FEW:  # vectors over answers: there are more of them
                for part in slices(len(wanted), max(1, _CACHE_BYTES // len(value))):
                    rest = np.broadcast_to(value, (part.stop - part.start, len(value))).copy()
                    for table, row in zip(tables, spelled[:-1, part], strict=True):
                        family.add(rest, table[row], np.empty_like(rest))
                    counts[part] += np.count_nonzero(rest == ending[spelled[-1, part]], axis=1)
                continue
            rest, spare, same = value.copy(), np.empty_like(value), np.empty(len(value), dtype=np.bool_)
            for group in groups:
                rest[:] = value
                for table, row in zip(tables, spelled[:-1, group.start], strict=True):
                    family.add(rest, table[row], spare)
                counts[group] += [
                    np.count_nonzero(np.equal(ending[row], rest, out=same)) for row in spelled[-1, group]
                ]
        return counts
