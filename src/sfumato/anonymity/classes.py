"""Classes: the rows that nobody can tell apart by their quasi-identifiers, and what they hold.

Rows are counted once, into a table of distinct combinations; everything else works on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.anonymity.columns import Coded, Integers, Scale

__all__ = ["Classes", "Tally", "Units", "group"]

_SPACE = 2**62


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How often each value of a sensitive column occurs in each class: entries in order of class and value.

    `ordered` says that the values are numbers or moments, so that some are closer than others; `size`
    is how many values there are in the whole column.
    """

    name: str
    ordered: bool
    size: int
    of_class: Integers
    of_value: Integers
    counts: Integers

    @property
    def totals(self) -> Integers:
        """How often each value occurs in all classes together."""
        return np.bincount(self.of_value, weights=self.counts, minlength=self.size).astype(np.int64)

    def kept(self, keep: np.ndarray) -> Tally:
        """Return the entries of some classes, which are numbered anew."""
        chosen = keep[self.of_class]
        number = np.cumsum(keep) - 1
        return Tally(
            name=self.name,
            ordered=self.ordered,
            size=self.size,
            of_class=number[self.of_class[chosen]],
            of_value=self.of_value[chosen],
            counts=self.counts[chosen],
        )


@dataclass(frozen=True, kw_only=True)
class Classes:
    """Classes of rows: their sizes, and what they hold of each sensitive column."""

    sizes: Integers
    tallies: tuple[Tally, ...] = ()

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def rows(self) -> int:
        """How many rows all classes have together."""
        return int(self.sizes.sum())

    def kept(self, keep: np.ndarray) -> Classes:
        """Return some of the classes."""
        return Classes(sizes=self.sizes[keep], tallies=tuple(each.kept(keep) for each in self.tallies))

    @classmethod
    def of(
        cls, number: Integers, many: int, units: Units, sensitive: Sequence[Coded], chosen: Any = slice(None)
    ) -> Classes:
        """Count units, or those that are chosen; `number` holds the class of each unit."""
        weights, examples = units.weights[chosen], units.examples[chosen]
        tallies = []
        for column in sensitive:
            codes = column.codes[examples]
            pair, pairs, first = group((number, codes), (many, column.size))
            tallies.append(
                Tally(
                    name=column.name,
                    ordered=column.scale is not Scale.CATEGORY,
                    size=column.size,
                    of_class=number[first],
                    of_value=codes[first],
                    counts=_summed(pair, weights, pairs),
                )
            )
        return cls(sizes=_summed(number, weights, many), tallies=tuple(tallies))


@dataclass(frozen=True, kw_only=True)
class Units:
    """Distinct combinations of codes: a row that has each, and how many rows have it."""

    examples: Integers
    weights: Integers

    def __len__(self) -> int:
        return len(self.examples)

    @classmethod
    def rows(cls, many: int) -> Units:
        """Return every row as a unit of its own."""
        return cls(examples=np.arange(many), weights=np.ones(many, dtype=np.int64))

    def joined(self, number: Integers, many: int, first: Integers) -> Units:
        """Return the units that arise when those of one number become one."""
        return Units(examples=self.examples[first], weights=_summed(number, self.weights, many))


def group(codes: Sequence[Integers], sizes: Sequence[int]) -> tuple[Integers, int, Integers]:
    """Number the distinct combinations of codes in their order; `sizes` bound the codes of each column.

    Return the number of each entry, how many there are, and an entry of each.

    >>> number, many, example = group([np.array([1, 0, 1]), np.array([0, 2, 0])], [2, 3])
    >>> number.tolist(), many, example.tolist()
    ([1, 0, 1], 2, [1, 0])
    """
    entries = len(codes[0])
    key, space = np.zeros(entries, dtype=np.int64), 1
    for column, size in zip(codes, sizes, strict=True):
        if space * max(size, 1) >= _SPACE:
            key, space = _ranked(key, space)
        key = key * size + column
        space *= max(size, 1)
    number, many = _ranked(key, space)
    example = np.empty(many, dtype=np.int64)
    example[number[::-1]] = np.arange(entries - 1, -1, -1)  # the first of each is written last
    return number, many, example


def _ranked(key: Integers, space: int) -> tuple[Integers, int]:
    """Replace keys by their ranks; by a table of all keys where that is small, else by sorting."""
    if space <= 4 * len(key) + 1024:
        seen = np.zeros(space, dtype=bool)
        seen[key] = True
        rank = np.cumsum(seen) - 1
        return rank[key], int(rank[-1]) + 1
    distinct, number = np.unique(key, return_inverse=True)
    return number, len(distinct)


def _summed(number: Integers, weights: Integers, many: int) -> Integers:
    return np.bincount(number, weights=weights, minlength=many).astype(np.int64)  # exact up to 2^53
