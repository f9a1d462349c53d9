"""Local hashing: say a noisy hash of the answer, under a hash function of one's own.

A report is short whatever the number of answers, and as informative as any known protocol: a hash
has few values, so that the truth is told often, and everybody hashes differently, so that what one
person's function throws together another's keeps apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.response import RandomizedResponseMechanism
from sfumato.local.arrays import Array, Flags, Integers, slices
from sfumato.local.families import LinearFamily
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, FieldKind, OddsProtocol, below

__all__ = ["LocalHashing"]

_PEOPLE = 1 << 16
_CACHE_BYTES = 1 << 21
_FEW = 256


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
