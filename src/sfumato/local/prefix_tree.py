"""Heavy hitters: the strings that many people hold, when nobody can list what strings there are.

Each person reports, by local hashing, a beginning of their string; how long a beginning, chance decides.
The collector grows beginnings from the left, and keeps those that enough reports support, until they are
whole strings; and tests these by the reports of people who had no part in that. Strings are written in
digits modulo a prime, the one that also hashes, and long beginnings are shortened to words of a few
digits: then one Fourier transform counts the supports of all words there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.response import RandomizedResponseMechanism
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Integers, Octets, slices
from sfumato.local.hashing import LinearFamily, smallest_factor
from sfumato.local.hitters import Growth, Hitters
from sfumato.local.odds import check_odds, odds_of
from sfumato.local.protocol import Columns, FieldKind, Protocol
from sfumato.local.words import WordLevels, digits_of_octets, octets_of

__all__ = ["PrefixTree"]

_LARGEST_PRIME = 127
_LONGEST = 64
_PEOPLE = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixTree(Protocol):
    """A local-hashing report about a beginning of the string, whose length is drawn without regard to it.

    Strings are `length` bytes long; text is UTF-8, cut to that length or filled up with zero bytes. With
    g = hashes, a prime, the bytes are read as one number and written in base g with m digits, the highest
    first: as many as 256^length - 1 has. `lengths` and `words` follow from `length` and g: see `WordLevels`.

    A phone does:
      1. write the string in base g as digits x_1 .. x_m;
      2. draw a level uniform below the number of lengths; r = its length, w = the digits of its word;
      3. if w = r, let y_1 .. y_w be x_1 .. x_r; else with b the next shorter length, the last r - b of them
         are x_(b+1) .. x_r, and the others checks of x_1 .. x_b: see `Word`;
      4. draw a_1 .. a_w, each uniform below g, and let a_(w+1) .. a_m be 0; these are the seed;
         h = (a_1 y_1 + ... + a_w y_w) mod g;
      5. with chance odds / (odds + g - 1) say h, else (h + 1 + d) mod g for a d uniform below g - 1.
    The report is the level, the seed, each a_i in as many bits as g - 1 has, and the value said.

    Theorem: level and seed say nothing about the string, and given both, the value has weight odds or 1:
    the largest ratio is the odds. A report supports the words that its function hashes to its value: that of
    its sender with chance p, any other with chance q = 1/g (see LinearFamily). At the levels that test
    whole strings a word is the string, and so different strings have different words.

    >>> tree = PrefixTree.from_epsilon(2, octets=6)
    >>> tree.hashes, tree.lengths
    (7, (6, 6, 9, 9, 12, 12, 15, 15, 18, 18, 18, 18, 18, 18, 18, 18))
    >>> tree.words
    (6, 6, 9, 9, 9, 9, 9, 9, 9, 9, 9, 18, 18, 18, 18, 18)
    """

    length: int
    hashes: int
    odds: Fraction

    name: ClassVar[str] = "prefixes"
    fields: ClassVar[dict[str, FieldKind]] = {"level": "integer", "seed": "bits", "value": "integer"}

    def __post_init__(self) -> None:
        if count(self.length, "length") > _LONGEST:
            raise InvalidArgument(
                f"strings can have at most {_LONGEST} bytes",
                place="length",
                hints=("every byte takes people away from the others; cut what identifies nothing",),
            )
        prime = smallest_factor(count(self.hashes, "hashes", least=2)) == self.hashes
        if not prime or self.hashes > _LARGEST_PRIME:
            raise InvalidArgument(f"hashes must be a prime of at most {_LARGEST_PRIME}", place="hashes")
        check_odds(self.odds)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, octets: int) -> PrefixTree:
        """Take strings of `length` bytes, and the prime number of hashes that leaves the least variance."""
        odds = odds_of(epsilon)
        primes = [g for g in range(2, _LARGEST_PRIME + 1) if smallest_factor(g) == g]
        best = min(primes, key=lambda g: (odds + g - 1) ** 2 / (g - 1))
        return cls(length=octets, hashes=best, odds=odds)

    @property
    def family(self) -> LinearFamily:
        """The hash functions of whole strings."""
        digits, told_apart = 1, self.hashes
        while told_apart < 256**self.length:
            digits, told_apart = digits + 1, told_apart * self.hashes
        return LinearFamily(modulus=self.hashes, base=self.hashes, digits=digits)

    @property
    def levels(self) -> WordLevels:
        """How long the beginnings are, and how many levels have each length."""
        return WordLevels.of(self.hashes, digits=self.family.digits)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of the beginning that each level asks for, in digits."""
        return tuple(self.levels.lengths[place] for place in self.levels.slots)

    @property
    def words(self) -> tuple[int, ...]:
        """How many digits the word has that reports of each level are about."""
        words = self.levels.words
        return tuple(words[place].digits for place in self.levels.slots)

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon: that of one local-hashing report."""
        return self.odds

    @property
    def p(self) -> Fraction:
        """The chance that a report supports the word it was made from."""
        return self.odds / (self.odds + self.hashes - 1)

    @property
    def q(self) -> Fraction:
        """The chance that it supports any other word of that level."""
        return Fraction(1, self.hashes)

    @property
    def message_bits(self) -> int:
        """The bits of a level, a seed and a hash."""
        family = self.family
        return (len(self.lengths) - 1).bit_length() + (family.digits + 1) * family.width

    def octets(self, field: str) -> int:
        """Return how many bytes a packed seed takes."""
        return self.family.seed_bytes

    def parameters(self) -> dict[str, Any]:
        """Return the length of strings, the number of hashes and the odds; and what follows, for a phone."""
        told = {"length": self.length, "hashes": self.hashes, "odds": str(self.odds)}
        return {**told, "lengths": list(self.lengths), "words": list(self.words)}

    def encode(self, texts: Iterable[str | bytes]) -> Octets:
        """Write texts as rows of bytes: UTF-8, cut to length and filled up with zeros."""
        return octets_of(texts, self.length)

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per string; strings are rows of bytes, as `encode` writes them."""
        given = np.asarray(answers)
        if given.ndim != 2 or given.dtype != np.uint8 or given.shape[1] != self.length:
            raise InvalidArgument(
                f"answers must be rows of {self.length} bytes",
                place="answers",
                hints=("encode(texts) makes them",),
            )
        family, spoken = self.family, np.array(self.words)
        level = uniform_below(len(spoken), size=len(given))
        seed = np.empty((len(given), family.seed_bytes), dtype=np.uint8)
        value = np.empty(len(given), dtype=np.int64)
        response = RandomizedResponseMechanism(self.p, choices=self.hashes)
        slots = np.array(self.levels.slots)
        for piece in slices(len(given), _PEOPLE):
            seeds = family.draw(len(given[piece]))
            seeds[np.arange(family.digits)[:, None] >= spoken[level[piece]]] = 0
            seed[piece] = family.pack(seeds)
            digits = digits_of_octets(given[piece], self.hashes, family.digits)
            for place, word in enumerate(self.levels.words):
                mine = np.flatnonzero(slots[level[piece]] == place)
                digits[: word.digits, mine] = word.of(digits[:, mine])
            value[piece] = response.release(family.hash(seeds, digits))
        return {"level": level, "seed": seed, "value": value}

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports with a known level, a seed that ends where it must, and a value."""
        family, spoken = self.family, np.array(self.words)
        level, value = reports["level"], reports["value"]
        flags = (level >= 0) & (level < len(spoken)) & (value >= 0) & (value < self.hashes)
        flags &= family.valid(reports["seed"])
        for piece in slices(len(flags), _PEOPLE):
            kept = np.flatnonzero(flags[piece]) + piece.start
            beyond = np.arange(family.digits)[:, None] >= spoken[level[kept]]
            flags[kept] = ~((family.unpack(reports["seed"][kept]) != 0) & beyond).any(axis=0)
        return flags

    def collect(self, reports: Columns) -> Integers:
        """Count reports by level. What they say of strings is not a total of any fixed size: see `find`."""
        return np.bincount(reports["level"], minlength=len(self.lengths)).astype(np.int64)

    def find(
        self, read: Callable[[], Iterable[Columns]], *, candidates: int = 1 << 21, level: float = 0.95
    ) -> Hitters:
        """Return the strings that reports prove to be held, the most frequent first.

        `read` is called once per length, and gives all reports in batches of any size; what is in memory
        does not grow with their number. Reports that no phone could have sent are left out. At most
        `candidates` beginnings of a length are kept, and sixteen per report if these are fewer; one in
        sixteen is tested. More find rarer strings and take longer.
        """
        largest = digits_of_octets(
            np.full((1, self.length), 255, dtype=np.uint8), self.hashes, self.family.digits
        )
        grown = Growth(
            family=self.family, levels=self.levels, largest=largest[:, 0], p=self.p, q=self.q,
            candidates=count(candidates, "candidates", least=16),
        )  # fmt: skip
        while not grown.complete:
            grown = grown.longer(self._kept(batch) for batch in read())
        return grown.hitters(self.length, level=level)

    def _kept(self, batch: Columns) -> Columns:
        flags = self.valid(batch)
        return batch if flags.all() else {name: batch[name][flags] for name in self.fields}
