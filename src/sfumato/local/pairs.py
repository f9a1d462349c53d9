"""Pairs: every person holds a few keys, each with a number; how many hold a key, and what is its mean?

For example the films that someone has rated. A report names one key and one sign, whoever holds however
many. Drawing one of m places hides the others, so that the answer drawn may be told with odds m times as
good as epsilon alone would allow: PCKV-GRR of Gu, Li, Cheng, Xiong and Cao (2020), on fewer dummies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import Number, count
from sfumato.core.mechanism import confidence
from sfumato.core.proportion import clopper_pearson
from sfumato.core.scientific import scientific
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument
from sfumato.local.answers import uniform_each
from sfumato.local.arrays import Array, Floats, Integers
from sfumato.local.odds import check_odds, odds_of
from sfumato.local.protocol import DerivedProtocol, Shares
from sfumato.local.response import KaryResponse
from sfumato.local.rounding import bounds_of, round_at_random

__all__ = ["Holdings", "KeyMeans", "PairResponse"]


_MOST = 2**40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Holdings:
    """Who holds which key with which number: one entry per pair, in any order; who holds none has no entry.

    >>> Holdings(people=3, owners=[0, 0, 2], keys=[7, 2, 7], values=[0.5, -1.0, 1.0]).counts.tolist()
    [2, 0, 1]
    """

    people: int
    owners: npt.ArrayLike
    keys: npt.ArrayLike
    values: npt.ArrayLike

    def __post_init__(self) -> None:
        count(self.people, "people", least=0)
        for name, kinds in (("owners", "iu"), ("keys", "iu"), ("values", "iuf")):
            column = np.asarray(getattr(self, name))
            if column.size == 0:
                column = column.astype(np.int64)
            if column.ndim != 1 or column.dtype.kind not in kinds:
                raise InvalidArgument(f"{name} must be a column of numbers", place=name)
            object.__setattr__(self, name, column)
        owners, keys = np.asarray(self.owners), np.asarray(self.keys)
        if not len(owners) == len(keys) == len(np.asarray(self.values)):
            raise InvalidArgument("owners, keys and values must be equally long", place="owners")
        if len(owners) and not (owners.min() >= 0 and owners.max() < self.people):
            raise InvalidArgument("owners must be integers from 0 to people - 1", place="owners")
        order = np.lexsort((keys, owners))
        for name in ("owners", "keys", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name))[order])
        owners, keys = owners[order], keys[order]
        if ((owners[1:] == owners[:-1]) & (keys[1:] == keys[:-1])).any():
            # Twice the same key would be drawn twice as often as epsilon allows for.
            raise InvalidArgument(
                "a person holds a key once", place="keys", hints=("average a person's numbers of one key",)
            )

    @classmethod
    def of_table(cls, table: Array) -> Holdings:
        """Read a table with one row per person and one column per key; NaN where a key is not held."""
        grid = np.asarray(table)
        if grid.ndim != 2 or grid.dtype.kind != "f":
            raise InvalidArgument("answers must be a table of floats, NaN for no number", place="answers")
        owners, keys = np.nonzero(~np.isnan(grid))
        return cls(people=len(grid), owners=owners, keys=keys, values=grid[owners, keys])

    @property
    def counts(self) -> Integers:
        """How many keys every person holds."""
        return np.bincount(np.asarray(self.owners, dtype=np.int64), minlength=self.people)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyMeans:
    """What reports say about every key: the share of people who hold it, and the mean of their numbers.

    Shares are unbiased. A mean is a ratio of unbiased estimates: right in the long run, but not unbiased;
    it is kept in the declared range, and is NaN where the share seems to be zero or less.
    """

    shares: Shares
    values: Floats
    low: Floats
    high: Floats
    deviations: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResponse(DerivedProtocol):
    """One drawn pair, as (key, sign), told among all such by k-ary response.

    `size` keys; a person holds at most `most` = m of them, no key twice. Items are 2 * key + sign, then
    m dummies.
    A phone does: 1. with c pairs, draw u below max(c, m); 2. if u < c, take pair number u and round its
    number to 0 (low) or 1 (high) as `round_at_random` says, with one cell: the item is 2 * key + that;
    otherwise the item is 2 * size + a draw below m; 3. report the item by `KaryResponse` over
    2 * size + m items, with odds 1 + m (odds - 1).

    Theorem: whoever it is, an item is drawn with chance at most 1/m: pairs are at most that likely in
    step 1, keys differ, and the dummies share a chance of at most 1. With T = 1 + m (odds - 1), a report
    of an item drawn with chance w has probability (1 + (T - 1) w) / (T + 2 size + m - 1), which lies
    between 1 and 1 + (T - 1)/m = odds of that total. Holding one key with the number at an end
    attains the odds against holding nothing: the largest ratio is exactly the odds.
    Assumes: nobody holds more than m keys; who does still has this epsilon, but counts for less.

    >>> protocol = PairResponse.from_epsilon(1, size=50, most=4)
    >>> protocol.single.size, protocol.message_bits
    (104, 7)
    """

    size: int
    most: int
    odds: Fraction
    low: Fraction = Fraction(-1)
    high: Fraction = Fraction(1)

    name: ClassVar[str] = "pairs"

    def __post_init__(self) -> None:
        bounds_of(self.low, self.high)
        if max(count(self.size, "size"), count(self.most, "most")) > _MOST:
            raise InvalidArgument("there are at most 2^40 keys", place="size")
        check_odds(self.odds)

    @classmethod
    def from_epsilon(
        cls, epsilon: Number, *, size: int, most: int, low: Number = -1, high: Number = 1
    ) -> PairResponse:
        """Tell the pair truly as often as epsilon allows; numbers lie between `low` and `high`."""
        first, last = bounds_of(low, high)
        return cls(size=size, most=most, odds=odds_of(epsilon), low=first, high=last)

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon."""
        return self.odds

    @property
    def single(self) -> KaryResponse:
        """How the drawn item is told."""
        return KaryResponse(size=2 * self.size + self.most, odds=1 + self.most * (self.odds - 1))

    @property
    def p(self) -> Fraction:
        """The chance that a report names a key that its sender holds, with either sign."""
        return self.q + (self.single.p - self.single.q) / self.most

    @property
    def q(self) -> Fraction:
        """The chance that it names any key that is not held."""
        return 2 * self.single.q

    def randomise(self, answers: Array | Holdings) -> dict[str, Array]:
        """Return one report per person, from holdings or from a table (`Holdings.of_table`)."""
        held = answers if isinstance(answers, Holdings) else Holdings.of_table(answers)
        keys = np.asarray(held.keys)
        if len(keys) and not (keys.min() >= 0 and keys.max() < self.size):
            raise InvalidArgument(f"keys must be integers from 0 to {self.size - 1}", place="keys")
        items = 2 * self.size + uniform_below(self.most, size=held.people)
        counts = held.counts
        places = uniform_each(np.maximum(counts, self.most))
        drawn = places < counts
        pairs = (np.cumsum(counts) - counts + places)[drawn]
        signs = round_at_random(np.asarray(held.values)[pairs], self.low, self.high, 1)
        items[drawn] = 2 * keys[pairs].astype(np.int64) + signs
        return self.single.randomise(items)

    # -- from reports to the population -------------------------------------------------

    def supports(self, totals: Array) -> Integers:
        """A report supports the key it names, with either sign."""
        counts: Integers = np.asarray(totals)[: 2 * self.size].reshape(self.size, 2).sum(axis=1)
        return counts

    def means(self, totals: Array, level: float = 0.95) -> KeyMeans:
        """Return the share of people who hold each key and the mean of their numbers, with limits.

        Theorem (shares): a report names a key with chance p if its sender holds it and q otherwise, as
        in every frequency protocol: unbiased, and covered by Clopper and Pearson (1934) at every size.
        Theorem (means): of c reports that name a key, those with a high sign are coins of a bias t, and
        the mean on [-1, 1] is (2 t - 1)(1 + q / (f (p - q))). Limits of t and of f, each of which miss
        with half the chance, therefore make limits of the mean, at every size, for a random sample.
        """
        miss = float(1 - confidence(level))
        n = int(np.sum(totals))
        signs = np.asarray(totals)[: 2 * self.size].reshape(self.size, 2)
        counts, shares = self.supports(totals), self.shares(totals, n, level)
        half = float(self.high - self.low) / 2
        middle = float(self.low) + half
        if n == 0:
            nothing, ends = np.full(self.size, math.nan), np.ones(self.size)
            return KeyMeans(
                shares=shares, values=nothing, deviations=nothing,
                low=middle - half * ends, high=middle + half * ends,
            )  # fmt: skip
        gap = float(self.p - self.q)
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.where(shares.values > 0, shares.values, math.nan)
            ratio = np.clip((signs[:, 1] - signs[:, 0]) / (n * gap * known), -1.0, 1.0)
            # The delta method: (difference - ratio * share) / share, where each report counts +-1 or 0.
            moved = counts / n - 2 * ratio * (signs[:, 1] - signs[:, 0]) / n + ratio**2 * counts / n
            offset = ratio * float(self.q)
            deviations = np.sqrt(np.maximum(moved - offset**2, 0.0) / n) / (gap * known)
        low, high = self._limits(signs, counts, n, miss / 4)
        return KeyMeans(
            shares=shares,
            values=middle + half * ratio,
            low=middle + half * low,
            high=middle + half * high,
            deviations=half * deviations,
        )

    def _limits(self, signs: Integers, counts: Integers, n: int, tail: float) -> tuple[Floats, Floats]:
        """Return limits of the means on [-1, 1]: the sign's bias at its limit, the share at its worse one."""
        q, gap = float(self.q), float(self.p - self.q)
        least, most = (np.clip((limit - q) / gap, 0.0, 1.0) for limit in clopper_pearson(counts, n, tail))
        with np.errstate(divide="ignore"):
            little, much = (1 + q / (gap * share) for share in (most, least))
        sides = []
        for side in (1, 0):
            lean = 2 * _lower_limits(signs[:, side], counts, tail) - 1
            # A small share magnifies the lean: the lower limit wants that only if it leans down.
            factor = np.where(lean > 0, little, much)
            with np.errstate(invalid="ignore"):
                limit = np.where(lean == 0, 0.0, lean * factor)
            sides.append(np.clip(limit, -1.0, 1.0))
        return sides[0], -sides[1]


def _lower_limits(hits: Integers, trials: Integers, miss: float) -> Floats:
    """Return the lower limits of Clopper and Pearson for each number of hits and of trials."""
    betaincinv = scientific("special").betaincinv
    low, some = np.zeros(len(hits)), hits > 0
    low[some] = betaincinv(hits[some], trials[some] - hits[some] + 1, miss)
    return low
