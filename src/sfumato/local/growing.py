"""Growing beginnings into strings: the collector's side of heavy hitters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import count
from sfumato.core.mechanism import confidence
from sfumato.core.proportion import clopper_pearson
from sfumato.local.families import LinearFamily, slices
from sfumato.local.protocol import Columns, Shares
from sfumato.local.residues import absorb, absorb_last
from sfumato.local.strings import octets_of_digits, text_of

__all__ = ["Growth", "Hitters", "Levels"]

_Digits = npt.NDArray[np.uint8]
_Counts = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_CELLS = 1 << 12  # of one beginning's table: its continuations share these
_ENDINGS = 8  # continuations by the last step, if the prime is not larger
_NUMBERS = 1 << 25  # of all tables together: 128 MiB
_BUFFER = 1 << 17  # reports that are counted together
_PIECE = 1 << 14
_TOGETHER = 1 << 8  # beginnings whose tables are summed together
_FINALISTS, _FEWEST = 96, 64  # one in so many candidates is continued to its last digits, but no fewer
_BELOW = 0.9  # of the chance that limits may fail: the lower ones decide what is found
_CERTAIN = 20.0  # more evidence than this is no more: two that are held may begin alike
_TOLD = 5.0  # deviations by which a string must stand out among whole strings, to be told from noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """How long beginnings are, in rising order, and how many of the equally likely levels have each length.

    With g the prime and m the digits of a whole string: the step s is the largest with g^(s+1) <= 4096,
    the ending e the largest with g^e <= 8, and neither is below 1. If m <= 2s there is one level, of m
    digits. Else lengths are 2s, 3s, .. while below m - e, then m - e, then m.

    Steps are as long as small tables allow. The ending is short: the fewer the continuations, the fewer
    of them look good by chance, and nothing comes after it that could tell. For the same reason the most
    levels ask for whole strings: six for every fourteen others, rounded, where others are four for the
    first length, two for each between and four for the last but one. Of three dozen plans that were
    simulated, for a million people, 48 bits and epsilon 2, this one found the most strings of one percent.
    """

    lengths: tuple[int, ...]
    weights: tuple[int, ...]

    @classmethod
    def of(cls, prime: int, *, digits: int) -> Levels:
        """Return the levels for strings of so many digits."""
        step, ending = max(1, _power(prime, _CELLS) - 1), max(1, _power(prime, _ENDINGS))
        if digits <= 2 * step:
            return cls(lengths=(digits,), weights=(1,))
        before_last = digits - ending
        lengths = [*range(min(2 * step, before_last), before_last, step), before_last]
        weights = [4, *[2] * (len(lengths) - 2), *[4] * (len(lengths) > 1)]
        return cls(lengths=(*lengths, digits), weights=(*weights, round(sum(weights) * 6 / 14)))

    @property
    def slots(self) -> tuple[int, ...]:
        """The length that each level asks for."""
        return tuple(n for n, weight in zip(self.lengths, self.weights, strict=True) for _ in range(weight))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hitters:
    """Strings that were found, the most frequent first, and what share of people holds each.

    Theorem: with probability at least `shares.level` the limits of all `tested` whole strings hold at once,
    hence those of the ones found, however they were chosen among them. Only strings whose lower limit is
    above 0 are reported: one that nobody holds is with probability at most 0.9 (1 - level). For the
    strings to be tested were chosen by reports of shorter beginnings, other people's; those of
    whole strings are independent coins (Clopper and Pearson 1934, and Bonferroni over the tested).
    """

    strings: tuple[bytes, ...]
    shares: Shares
    tested: int
    reports: int
    """How many reports there were of all lengths; `shares.reports` were of whole strings."""
    one_report: float
    """How far one more report, whatever it says, can lift the share of a string."""
    least: float
    """About the share above which a tested string is found with a chance of 95%."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The strings as text."""
        return tuple(text_of(string) for string in self.strings)

    def forged(self, reports: int) -> float:
        """Return how far so many forged reports among those that were sent can have lifted a share.

        Theorem: one that supports a string adds 1 to its count, all of whole strings; without it the
        estimate would be (c - 1 - q (n - 1)) / ((n - 1)(p - q)), less by at most 1 / (n (p - q)).
        """
        return count(reports, "reports", least=0) * self.one_report


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growth:
    """Beginnings of one length, and what the reports of this and all shorter lengths said of them."""

    family: LinearFamily
    levels: Levels
    p: Fraction
    q: Fraction
    candidates: int
    largest: _Digits
    """The digits of the largest string: what would be larger is none."""
    done: int
    beginnings: _Digits
    """The digits, a row per beginning, in order."""
    counts: _Counts
    """The supports, a row per beginning, a column per length."""
    scores: _Floats
    """How likely each is to be held, up to a factor, as a logarithm."""
    sizes: tuple[int, ...]
    """How many reports there were of each length."""

    @classmethod
    def start(
        cls,
        family: LinearFamily,
        levels: Levels,
        *,
        largest: _Digits,
        p: Fraction,
        q: Fraction,
        candidates: int,
    ) -> Growth:
        """Start from nothing."""
        return cls(
            family=family, levels=levels, p=p, q=q, candidates=candidates, largest=largest, done=0, sizes=(),
            beginnings=np.zeros((1, 0), dtype=np.uint8), counts=np.zeros((1, 0), dtype=np.int64),
            scores=np.zeros(1),
        )  # fmt: skip

    @property
    def complete(self) -> bool:
        """Whether beginnings are whole strings."""
        return self.done == len(self.levels.lengths)

    def longer(self, batches: Iterable[Columns]) -> Growth:
        """Count all continuations of the next length, and keep the best."""
        supports, size = self._continued(batches)
        continuations = supports.shape[1]
        scores = self._scored(supports, size)
        parent, ending = np.divmod(self._best(scores), continuations)
        step = self.levels.lengths[self.done] - self.beginnings.shape[1]
        prime = self.family.modulus
        digits = [ending // prime**place % prime for place in range(step - 1, -1, -1)]
        return Growth(
            family=self.family, levels=self.levels, p=self.p, q=self.q, candidates=self.candidates,
            largest=self.largest, done=self.done + 1, sizes=(*self.sizes, size),
            beginnings=np.column_stack([self.beginnings[parent], *digits]).astype(np.uint8),
            counts=np.column_stack([self.counts[parent], supports[parent, ending]]),
            scores=scores[parent, ending],
        )  # fmt: skip

    # -- counting -----------------------------------------------------------------------

    def _continued(self, batches: Iterable[Columns]) -> tuple[_Counts, int]:
        """Return the supports of every continuation of every beginning, and the number of reports."""
        prime, known = self.family.modulus, self.beginnings.shape[1]
        step = self.levels.lengths[self.done] - known
        tables = np.zeros((len(self.beginnings), prime ** (step + 1)), dtype=np.int32)
        size = 0
        for seeds, value in self._buffered(batches):
            size += len(value)
            for piece in slices(len(value), _PIECE):
                self._tally(tables, seeds[:, piece], value[piece])
        supports = np.empty((len(tables), prime**step), dtype=np.int64)
        for group in slices(len(tables), _TOGETHER):
            table = tables[group].T.astype(np.int64, order="C")
            for _ in range(step - 1):
                table = absorb(table.reshape(prime, prime, -1))
            supports[group] = absorb_last(table.reshape(prime, prime, -1)).reshape(-1, prime**step)
        return supports, size

    def _buffered(self, batches: Iterable[Columns]) -> Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield seeds and values of the reports of the next length, many at a time."""
        length = self.levels.lengths[self.done]
        asked = np.array(self.levels.slots) == length
        waiting: list[tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]] = []
        for batch in batches:
            for piece in slices(len(batch["level"]), _BUFFER):
                mine = asked[batch["level"][piece]]
                waiting.append((batch["seed"][piece][mine], batch["value"][piece][mine]))
                if sum(len(value) for _, value in waiting) >= _BUFFER:
                    yield self._unpacked(waiting)
                    waiting = []
        if waiting:
            yield self._unpacked(waiting)

    def _unpacked(
        self, waiting: list[tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        seeds = self.family.unpack(np.concatenate([seed for seed, _ in waiting]))
        value = np.concatenate([value for _, value in waiting])
        return seeds.astype(self.family.dtype), value.astype(self.family.dtype)

    def _tally(self, tables: npt.NDArray[np.int32], seeds: npt.NDArray[Any], value: npt.NDArray[Any]) -> None:
        """Count reports by the hash of a beginning less their value, and by their seed after it."""
        family, prime, known = self.family, self.family.modulus, self.beginnings.shape[1]
        step = self.levels.lengths[self.done] - known
        after = np.zeros(len(value), dtype=np.int64)
        for residues in seeds[known : known + step]:
            after = after * prime + residues
        cells = tables.shape[1]
        start = (prime - value) % value.dtype.type(prime)
        if not known:
            tables[0] += np.bincount(start.astype(np.int64) * prime**step + after, minlength=cells).astype(
                np.int32
            )
            return
        head = LinearFamily(modulus=prime, base=prime, digits=known)
        blocks = head.blocks()
        rows = [head.table(seeds[block]) for block in blocks]
        spelled = np.column_stack([_number(self.beginnings[:, block], prime) for block in blocks])
        # Beginnings stand in order: what one shares with the one before it has been added up already.
        partial = [start, *(np.empty_like(start) for _ in blocks)]
        spare, keys, last = np.empty_like(start), np.empty_like(after), [-1] * len(blocks)
        for number, spelling in enumerate(spelled.tolist()):
            same = next(
                (i for i, (x, y) in enumerate(zip(spelling, last, strict=True)) if x != y), len(blocks)
            )
            for i in range(same, len(blocks)):
                partial[i + 1][:] = partial[i]
                family.add(partial[i + 1], rows[i][spelling[i]], spare)
            last = spelling
            np.multiply(partial[-1], prime**step, out=keys, casting="unsafe", dtype=np.int64)
            keys += after
            tables[number] += np.bincount(keys, minlength=cells).astype(np.int32)

    # -- choosing -----------------------------------------------------------------------

    def _scored(self, supports: _Counts, size: int) -> _Floats:
        """Return how likely each continuation is to be held, as a logarithm.

        If a string of the least share that can be told is held, its supports are `shift` deviations above
        noise: a count z deviations above is evidence of shift z - shift^2 / 2 for it, or z^2 / 2 where z is
        larger still, up to certainty. Of the shortest beginnings any number may be held, each by its own
        evidence against odds of one in as many as there are. A longer one is held if one of its
        continuations is: their evidence, on average, is its own, and they share it by theirs. So the many
        that merely continue a held one do not inherit what speaks for it.
        A guide for the search alone: what is reported is decided by an exact test.
        """
        from scipy.special import log_expit, logsumexp

        q, continuations = float(self.q), math.log(supports.shape[1])
        z = (supports - size * q) / math.sqrt(max(size, 1) * q * (1 - q))
        shift = _TOLD * math.sqrt(self.levels.weights[self.done] / self.levels.weights[-1])
        evidence = np.minimum(np.where(z > shift, z**2 / 2, shift * z - shift**2 / 2), _CERTAIN)
        if not self.done:  # any number of these may be held
            return np.asarray(log_expit(evidence - continuations))
        odds = self.scores - np.log(-np.expm1(np.minimum(self.scores, -1e-12)))
        together = logsumexp(evidence, axis=1)
        held = log_expit(odds + together - continuations)
        return np.asarray((held - together)[:, None] + evidence)

    def _best(self, scores: _Floats) -> _Counts:
        """Return which continuations to keep, in order."""
        possible = self._possible(scores.shape[1])
        if self.done == len(self.levels.lengths) - 1:
            return np.arange(possible)
        most = min(self._room(), possible)
        return np.sort(np.argpartition(scores.ravel()[:possible], possible - most)[possible - most :])

    def _possible(self, continuations: int) -> int:
        """Return how many continuations, of all beginnings in order, begin a string."""
        known = self.beginnings.shape[1]
        if (self.beginnings[-1] < self.largest[:known]).any():
            return len(self.beginnings) * continuations
        rest = self.largest[None, known : self.levels.lengths[self.done]]
        return (len(self.beginnings) - 1) * continuations + int(_number(rest, self.family.modulus)[0]) + 1

    def _room(self) -> int:
        """Return how many beginnings of the next length may be kept."""
        lengths = self.levels.lengths
        step = lengths[self.done + 1] - lengths[self.done]
        finalists = min(self.candidates, max(_FEWEST, self.candidates // _FINALISTS))
        most = finalists if self.done == len(lengths) - 2 else self.candidates
        return max(1, min(most, _NUMBERS // int(self.family.modulus ** (step + 1))))

    # -- deciding -----------------------------------------------------------------------

    def hitters(self, octets: int, *, level: float) -> Hitters:
        """Test whole strings, and return those that are held."""
        from scipy.special import ndtri

        counts, n, tested = self.counts[:, -1], self.sizes[-1], len(self.counts)
        p, q, gap = float(self.p), float(self.q), float(self.p - self.q)
        chance = float(1 - confidence(level)) / max(1, tested)
        miss, likely = _BELOW * chance, np.flatnonzero(counts > n * q)
        low, high = np.zeros(0), np.zeros(0)
        if n:
            low, high = (
                clopper_pearson(counts[likely], n, miss)[0],
                clopper_pearson(counts[likely], n, chance - miss)[1],
            )
        held = np.flatnonzero(low > q)
        chosen = held[np.argsort(-counts[likely[held]], kind="stable")]
        values = (counts[likely[chosen]] / max(n, 1) - q) / gap
        f = np.clip(values, 0.0, 1.0)
        shares = Shares(
            values=values, low=np.clip((low[chosen] - q) / gap, 0.0, 1.0),
            high=np.clip((high[chosen] - q) / gap, 0.0, 1.0),
            deviations=np.sqrt((f * p * (1 - p) + (1 - f) * q * (1 - q)) / max(n, 1)) / gap,
            reports=n, level=level,
        )  # fmt: skip
        return Hitters(
            strings=tuple(
                octets_of_digits(row, self.family.modulus, octets)
                for row in self.beginnings[likely[chosen]].tolist()
            ),
            shares=shares, tested=tested, reports=sum(self.sizes),
            one_report=1 / (n * gap) if n else math.inf,
            least=(float(-ndtri(miss)) + 1.645) * math.sqrt(q * (1 - q) / n) / gap if n else math.inf,
        )  # fmt: skip


def _power(base: int, bound: int) -> int:
    """Return the largest power of the base, as an exponent, that is at most the bound."""
    exponent = 0
    while base ** (exponent + 1) <= bound:
        exponent += 1
    return exponent


def _number(digits: _Digits, base: int) -> _Counts:
    """Read rows of digits as numbers."""
    total = np.zeros(len(digits), dtype=np.int64)
    for digit in digits.T:
        total = total * base + digit
    return total
