"""Classes: the rows that nobody can tell apart by their quasi-identifiers, and what they hold.

Rows are counted once, into a table of distinct combinations; everything else works on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.anonymity.columns import Coded, Floats, Integers, Scale

__all__ = ["Classes", "Tally", "Units", "group"]

_SPACE = 2**62


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How often each value of a sensitive column occurs in each class: entries in order of class and value.

    `ordered` says that the values are numbers or moments, so that some are closer than others; `size`
    is how many values there are in the whole column; `sizes` are those of the classes.

    What a class gives away is worked out for every class at once, from the values that occur; q is the share
    of a value in a class, and p its share in the table. NULL counts as a value; among numbers it is the one
    after the largest.
    """

    name: str
    ordered: bool
    size: int
    sizes: Integers
    of_class: Integers
    of_value: Integers
    counts: Integers

    @property
    def shares(self) -> Floats:
        """The share of each entry in its class."""
        return np.asarray(self.counts / self.sizes[self.of_class])

    @property
    def totals(self) -> Integers:
        """How often each value occurs in all classes together."""
        return np.bincount(self.of_value, weights=self.counts, minlength=self.size).astype(np.int64)

    def kept(self, keep: np.ndarray) -> Tally:
        """Return the entries of some classes, which are numbered anew."""
        chosen = keep[self.of_class]
        number = np.cumsum(keep) - 1
        return replace(
            self,
            sizes=self.sizes[keep],
            of_class=number[self.of_class[chosen]],
            of_value=self.of_value[chosen],
            counts=self.counts[chosen],
        )

    def distinct(self) -> Integers:
        """Return how many values each class has: distinct l-diversity (Machanavajjhala et al. 2006)."""
        return np.bincount(self.of_class, minlength=len(self.sizes))

    def entropy(self) -> Floats:
        """Return the entropy of each class in nats, -sum q ln q.

        A table is entropy l-diverse if that is at least ln l in every class (Machanavajjhala et al.
        2006), so its l is e to the least of them: a number between 1 and the distinct l.
        """
        share = self.shares
        return np.maximum(self._sum(-share * np.log(share)), 0.0)

    def top_share(self) -> Floats:
        """Return the share of the commonest value in each class: the alpha of (alpha, k)-anonymity.

        It is how often whoever knows the class guesses right (Wong et al. 2006).
        """
        return self._most(self.shares)

    def likeness(self) -> Floats:
        """Return by what part of itself the share of a value grows at most in each class, max (q - p) / p.

        Theorem: that is the beta of basic beta-likeness (Cao and Karras 2012).
        """
        return self._most(self._ratio() - 1)

    def disclosure(self) -> Floats:
        """Return the largest |ln (q / p)| in each class over values that occur in it.

        Theorem: that is the delta of delta-disclosure (Brickell and Shmatikov 2008), which asks for all
        values of the table to occur; where some do not, no delta would do, and they are left aside here.
        """
        return self._most(np.abs(np.log(self._ratio())))

    def closeness(self, totals: Integers | None = None) -> Floats:
        """Return how far each class lies from the table: the earth mover's distance of t-closeness.

        `totals` are the counts of the values in the table; without them the classes are all of it.

        Theorem (Li, Li and Venkatasubramanian 2007): between categories, all equally far apart, it is
        sum |q - p| / 2. Between m values in order, neighbours 1/(m - 1) apart, it is the sum over values of
        the absolute difference of the cumulative shares, divided by m - 1.
        """
        totals = self.totals if totals is None else totals
        return self._ordered(totals) if self.ordered else self._equal(totals)

    def _sum(self, entries: Floats) -> Floats:
        return np.asarray(np.bincount(self.of_class, weights=entries, minlength=len(self.sizes)), float)

    def _most(self, entries: Floats) -> Floats:
        found = np.zeros(len(self.sizes))
        np.maximum.at(found, self.of_class, entries)
        return found

    def _ratio(self) -> Floats:
        totals = self.totals
        return np.asarray(self.shares / (totals / max(totals.sum(), 1))[self.of_value])

    def _equal(self, totals: Integers) -> Floats:
        # Shares add up to 1 on both sides, so half the absolute differences are the positive ones.
        gain = self.shares - (totals / max(totals.sum(), 1))[self.of_value]
        return self._sum(np.maximum(gain, 0))

    def _ordered(self, totals: Integers) -> Floats:
        present = totals > 0
        many = int(present.sum())
        if many < 2:
            return np.zeros(len(self.sizes))
        value = (np.cumsum(present) - 1)[self.of_value]
        table = np.cumsum(totals[present]) / totals.sum()  # cumulative shares
        below = np.concatenate([[0.0], np.cumsum(table)])  # and the sums of those of smaller values
        first = np.concatenate([[True], self.of_class[1:] != self.of_class[:-1]])
        last = np.concatenate([first[1:], [True]])
        total = np.cumsum(self.counts)
        before = (total - self.counts)[first][np.cumsum(first) - 1]
        inside = (total - before) / self.sizes[self.of_class]
        # From one value of a class to its next the class stands still, at `inside`, while the table climbs.
        here, after = value, np.where(last, many, np.append(value[1:], many))
        cross = np.clip(np.searchsorted(table, inside, side="right"), here, after)
        under = inside * (cross - here) - (below[cross] - below[here])
        over = (below[after] - below[cross]) - inside * (after - cross)
        moved = np.abs(under) + np.abs(over) + np.where(first, below[here], 0.0)
        return self._sum(moved) / (many - 1)


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
        sizes = _summed(number, weights, many)
        tallies = []
        for column in sensitive:
            codes = column.codes[examples]
            pair, pairs, first = group((number, codes), (many, column.size))
            tallies.append(
                Tally(
                    name=column.name,
                    ordered=column.scale is not Scale.CATEGORY,
                    size=column.size,
                    sizes=sizes,
                    of_class=number[first],
                    of_value=codes[first],
                    counts=_summed(pair, weights, pairs),
                )
            )
        return cls(sizes=sizes, tallies=tuple(tallies))


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
