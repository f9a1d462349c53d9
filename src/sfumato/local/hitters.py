"""Growing beginnings into strings: the collector's side of heavy hitters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.core.mechanism import confidence
from sfumato.core.proportion import clopper_pearson
from sfumato.core.scientific import scientific
from sfumato.local.arrays import Array, Floats, Integers, Octets, slices
from sfumato.local.hashing import LinearFamily
from sfumato.local.protocol import Columns, Shares
from sfumato.local.supports import number_of, supports_of_continuations, supports_of_strings
from sfumato.local.words import Spectrum, Word, WordLevels, octets_of_digits, text_of

__all__ = ["Growth", "Hitters"]

_Singles = npt.NDArray[np.float32]
_BUFFER = 1 << 17  # reports that are counted together
_ROWS = 1 << 12  # beginnings whose continuations are looked at together
_SURELY = 1 << 8  # more of a sample than are wanted, for fear of too few
_PAIRS = 1 << 27  # pairs of a beginning and a report that are looked at one by one: fewer than a second's
_CELLS = 1 << 26  # of their tables
_PER_REPORT, _FEWEST = 16, 4096  # beginnings that are kept per report, and in any case
_FINALISTS, _FEWEST_FINALISTS = 16, 64  # one candidate in 16 is tested, at least 64
_STILL, _GIVEN_UP = 8, -1  # after the first test one in 8 is tested further; the count of the rest
_BELOW = 0.9  # of the chance that limits may fail: the lower ones decide what is found
_CERTAIN = 30.0  # more evidence than this is no more
_TOLD = 2.0  # deviations above the largest noise among all strings, of what is looked for
_ANOTHER = 0.02  # how many more continuations of a held beginning are thought to be held


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hitters:
    """Strings that were found, the most frequent first, and what share of people holds each.

    Theorem: with probability at least `shares.level` the limits of all `tested` whole strings hold at once,
    hence those of the ones found, however they were chosen among them. Only strings whose lower limit is
    above 0 are reported: one that nobody holds is with probability at most 0.9 (1 - level). For which strings
    are tested, and the chance of an error that each of them takes, was decided by other people's reports;
    those that test them are independent coins (Clopper and Pearson 1934), and the chances add up to
    1 - level at most (Bonferroni). To give up a string before all reports are counted reports fewer.
    """

    strings: tuple[bytes, ...]
    shares: Shares
    tested: int
    reports: int
    """How many reports there were of all lengths; `shares.reports` were those that test whole strings."""
    one_report: float
    """How far one report, whatever it says, can have lifted the share of a string.

    Theorem: one that supports a string, among those that test, adds 1 to its count; without it the
    estimate would be (c - 1 - q (n - 1)) / ((n - 1)(p - q)), less by at most 1 / (n (p - q)).
    """
    least: float
    """About the share above which a tested string is found with a chance of 95%, even the least promising."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The strings as text."""
        return tuple(text_of(string) for string in self.strings)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growth:
    """Beginnings of one length, and what the reports of this and all shorter lengths said of them."""

    family: LinearFamily
    levels: WordLevels
    p: Fraction
    q: Fraction
    candidates: int
    largest: Octets
    """The digits of the largest string: what would be larger is none."""
    done: int = 0
    beginnings: Octets = field(default_factory=lambda: np.zeros((1, 0), dtype=np.uint8))
    """The digits, a row per beginning, in order."""
    counts: Integers | None = None
    """The supports of whole strings, negative of those that were given up."""
    scores: Floats = field(default_factory=lambda: np.zeros(1))
    """How likely each is to be held, as the search sees it: a logarithm."""
    sizes: tuple[int, ...] = ()
    """How many reports there were of each length."""

    @property
    def complete(self) -> bool:
        """Whether beginnings are whole strings."""
        return self.done == len(self.levels.lengths)

    @property
    def word(self) -> Word:
        """What reports of the next length are about."""
        return self.levels.words[self.done]

    def longer(self, batches: Iterable[Columns]) -> Growth:
        """Count continuations of the next length, and keep the best; or test whole strings."""
        if not self.word.kept:
            return self._tested(batches)
        if len(self.levels.lengths) == 1:  # all strings there are
            supports, size = supports_of_continuations(
                self.family.modulus, self.beginnings, self.word.kept, self._reports(batches)
            )
            ending = np.arange(self._possible())
            return self._of(np.zeros_like(ending), ending, np.zeros(len(ending)), size, supports[0, ending])
        deviations, rows, size = self._deviations(batches)
        held, shares = self._scored(deviations, rows)
        parent, ending, scores = _best(held, rows, shares, self._room(size), self._possible())
        return self._of(parent, ending, scores, size, None)

    def _of(
        self, parent: Integers, ending: Integers, scores: Array, size: int, counts: Integers | None
    ) -> Growth:
        prime = self.family.modulus
        digits = [ending // prime**place % prime for place in range(self.word.kept - 1, -1, -1)]
        beginnings = np.column_stack([self.beginnings[parent], *(row.astype(np.uint8) for row in digits)])
        return replace(
            self, done=self.done + 1, sizes=(*self.sizes, size), beginnings=beginnings, counts=counts,
            scores=scores.astype(np.float64),
        )  # fmt: skip

    # -- counting -----------------------------------------------------------------------

    def _deviations(self, batches: Iterable[Columns]) -> tuple[_Singles, Integers, int]:
        """Return by how many deviations the supports of words are above noise: rows of continuations.

        And which row is that of each beginning, and the number of reports. Where reports and beginnings
        are few, only the beginnings' own rows are counted.
        """
        word, prime = self.word, self.family.modulus
        heads, reports = word.heads(self.beginnings.T).T, self._reports(batches)
        pairs, cells = len(heads) * self._expected(), len(heads) * prime ** (word.kept + 1)
        if pairs <= _PAIRS and cells <= _CELLS:
            supports, size = supports_of_continuations(prime, heads, word.kept, reports)
            return self._above(supports, size).astype(np.float32), np.arange(len(heads)), size
        spectrum = Spectrum(prime, word.digits)
        for seeds, value in reports:
            spectrum.add(seeds, value)
        z = spectrum.deviations().reshape(-1, prime**word.kept)
        return z, number_of(heads, prime), spectrum.reports

    def _tested(self, batches: Iterable[Columns]) -> Growth:
        """Count the supports of whole strings; after the first of two parts, give up on most."""
        supports, size = np.zeros(len(self.beginnings), dtype=np.int64), 0
        alive = np.arange(len(supports)) if self.counts is None else np.flatnonzero(self.counts >= 0)
        for seeds, value in self._reports(batches):
            size += len(value)
            supports[alive] += supports_of_strings(self.family.modulus, self.beginnings[alive], seeds, value)
        if self.counts is None:
            supports[self._hopeless(supports, size)] = _GIVEN_UP
        else:
            supports += self.counts
        parent = np.arange(len(supports))
        return self._of(parent, np.zeros_like(parent), self.scores, size, supports)

    def _hopeless(self, supports: Integers, size: int) -> Integers:
        """Return which strings to give up on, after the first part of the reports that test."""
        evidence = _evidence(self._above(supports, size), self._shift(self.levels.weights[self.done]))
        fewer = len(supports) - max(_FEWEST, len(supports) // _STILL)
        return np.argpartition(self.scores + evidence, fewer)[:fewer] if fewer > 0 else np.arange(0)

    def _reports(self, batches: Iterable[Columns]) -> Iterator[tuple[Array, Array]]:
        """Yield seeds and values of the reports of the next length, many at a time."""
        asked = np.array(self.levels.slots) == self.done
        waiting: list[tuple[Octets, Array]] = []
        for batch in batches:
            for piece in slices(len(batch["level"]), _BUFFER):
                mine = asked[batch["level"][piece]]
                waiting.append((batch["seed"][piece][mine], batch["value"][piece][mine]))
                if sum(len(value) for _, value in waiting) >= _BUFFER:
                    yield self._unpacked(waiting)
                    waiting = []
        if waiting:
            yield self._unpacked(waiting)

    def _unpacked(self, waiting: list[tuple[Octets, Array]]) -> tuple[Array, Array]:
        seeds = self.family.unpack(np.concatenate([seed for seed, _ in waiting]))
        value = np.concatenate([value for _, value in waiting])
        return seeds.astype(self.family.dtype), value.astype(self.family.dtype)

    def _expected(self) -> float:
        """Return about how many reports of the next length there are, judging by those of all before."""
        weights = self.levels.weights
        return sum(self.sizes) * weights[self.done] / max(1, sum(weights[: self.done]))

    def _above(self, supports: Integers, size: int) -> Floats:
        """Return by how many deviations supports are above noise."""
        q = float(self.q)
        return np.asarray((supports - size * q) / math.sqrt(max(size, 1) * q * (1 - q)))

    # -- choosing -----------------------------------------------------------------------

    def _scored(self, deviations: _Singles, rows: Integers) -> tuple[_Singles, _Singles]:
        """Return how likely each beginning is to be held, and continuations of it if so, as logarithms.

        If a string is held, by so many that it stands out among all strings, its supports are `shift`
        deviations above noise: a count z deviations above is evidence of shift z - shift^2 / 2 for it, or
        z^2 / 2 where z is larger still, up to certainty. Of the shortest beginnings any number may be held,
        each by its own evidence against odds of one in as many as there are. A longer one is held if one of
        its continuations is: their evidence, on average, is its own, and they share it by theirs. So the
        many that merely continue a held one do not inherit what speaks for it. Besides, a further
        continuation may be held, by its own evidence against longer odds.
        A guide for the search alone: what is reported is decided by an exact test.
        """
        special = scientific("special")
        expit, log_expit = special.expit, special.log_expit
        shift = self._shift(self.levels.weights[self.done])
        average = np.empty(len(deviations), dtype=np.float32)
        log_many = np.float32(math.log(deviations.shape[1] if self.done else self._possible()))
        for piece in slices(len(deviations), _ROWS):
            z = deviations[piece]
            evidence = _evidence(z, shift)
            if not self.done:
                deviations[piece] = log_expit(evidence - log_many)
                continue
            weight = np.exp(evidence)
            together = weight.sum(axis=1, keepdims=True)
            weight /= together
            weight += (1 - weight) * expit(evidence - log_many + np.float32(math.log(_ANOTHER)))
            deviations[piece] = np.log(weight, out=weight)
            average[piece] = np.log(together[:, 0]) - log_many
        if not self.done:  # any number of these may be held
            return np.zeros(1, dtype=np.float32), deviations
        if self.word.digits < self.word.length:  # it may be another that is held, and has the same checks
            others = max(1.0, float(np.exp(self.scores).sum())) / self.family.modulus**self.word.checks
            average -= np.log1p(np.float32(others) * np.exp(average))
        odds = self.scores - np.log(-np.expm1(np.minimum(self.scores, -1e-12)))
        return log_expit(odds + average[rows]).astype(np.float32), deviations

    def _shift(self, weight: int) -> float:
        """Return by how many deviations a held string stands out from noise at this many levels."""
        ndtri = scientific("special").ndtri
        told = _TOLD - float(ndtri(0.05 / float(self.family.modulus) ** self.family.digits))
        return told * math.sqrt(weight / sum(self.levels.weights))

    def _possible(self) -> int:
        """Return how many continuations, of all beginnings in order, begin a string."""
        word, prime, known = self.word, self.family.modulus, self.beginnings.shape[1]
        continuations: int = prime**word.kept
        if (self.beginnings[-1] < self.largest[:known]).any():
            return len(self.beginnings) * continuations
        rest = self.largest[None, known : word.length]
        return (len(self.beginnings) - 1) * continuations + int(number_of(rest, prime)[0]) + 1

    def _room(self, size: int) -> int:
        """Return how many beginnings of the next length may be kept."""
        most = min(self.candidates, max(_FEWEST, _PER_REPORT * size))
        if self.done == len(self.levels.lengths) - self.levels.tests - 1:
            return min(self.candidates, max(_FEWEST_FINALISTS, most // _FINALISTS))
        return most

    # -- deciding -----------------------------------------------------------------------

    def hitters(self, octets: int, *, level: float) -> Hitters:
        """Test whole strings, and return those that are held."""
        special = scientific("special")
        betainc, ndtri = special.betainc, special.ndtri
        assert self.counts is not None  # of whole strings
        counts, n, tested = self.counts, sum(self.sizes[-self.levels.tests :]), len(self.counts)
        q, gap = float(self.q), float(self.p - self.q)
        chance = self._chances(float(1 - confidence(level)))
        likely = np.flatnonzero(counts > n * q)
        tail = betainc(counts[likely], n - counts[likely] + 1, q)  # of as many supports, if nobody holds it
        some = likely[tail <= _BELOW * chance[likely]]
        chosen = some[np.argsort(-counts[some], kind="stable")]
        limits = [
            (clopper_pearson(c, n, _BELOW * miss)[0][0], clopper_pearson(c, n, (1 - _BELOW) * miss)[1][0])
            for c, miss in zip(counts[chosen], chance[chosen], strict=True)
        ]
        low, high = np.array(limits).reshape(-1, 2).T
        shares = Shares.of(counts[chosen], n, low, high, p=self.p, q=self.q, level=level)
        return Hitters(
            strings=tuple(
                octets_of_digits(row, self.family.modulus, octets)
                for row in self.beginnings[chosen].tolist()
            ),
            shares=shares, tested=tested, reports=sum(self.sizes),
            one_report=1 / (n * gap) if n else math.inf,
            least=(1.645 - float(ndtri(_BELOW * chance.min()))) * math.sqrt(q * (1 - q) / n) / gap
            if n else math.inf,
        )  # fmt: skip

    def _chances(self, total: float) -> Floats:
        """Return the chance of an error that each string may take, all together at most the total.

        Of all ways to share it out, the one by which the most strings of the least share that is looked for
        can be expected to be found: there the next bit of chance helps all alike. If the search thinks a
        string is held with chance e^score, and if so its supports are `shift` deviations above noise, that
        makes the deviations it must show a constant less score / shift. What the search thinks
        is the word of other people than those asked about whole strings.
        """
        ndtr = scientific("special").ndtr
        lower = self.scores / self._shift(sum(self.levels.weights[-self.levels.tests :]))
        low, high = -60.0 + lower.min(), 60.0 + lower.max()
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if ndtr(lower - middle).sum() > total else (low, middle)
        return np.asarray(ndtr(lower - high))


def _best(
    held: _Singles, rows: Integers, shares: _Singles, room: int, possible: int
) -> tuple[Integers, Integers, _Singles]:
    """Return the beginnings and continuations, in order, with about the `room` best sums, and the sums.

    Of the sums, one per beginning and continuation, only the first `possible` in order count. If there are
    very many, what is good enough is told by a part of them.
    """
    continuations = shares.shape[1]
    least = np.float32(-np.inf)
    if possible > room:
        stride = max(1, len(rows) // _ROWS)
        sample = (held[::stride, None] + shares[rows[::stride]]).ravel()
        if stride == 1:
            sample = sample[:possible]
        wanted = math.ceil(len(sample) * room / possible)
        if stride > 1:
            wanted = min(len(sample), wanted + max(_SURELY, wanted // 10))
        least = np.partition(sample, len(sample) - wanted)[len(sample) - wanted]
    highest = shares.max(axis=1)
    promising = np.flatnonzero(held + highest[rows] >= least)
    places, sums = [], []
    for piece in slices(len(promising), _ROWS):
        some = promising[piece]
        block = shares[rows[some]]
        block += held[some, None]
        good = np.flatnonzero(block >= least)
        row, ending = np.divmod(good, continuations)
        places.append(some[row] * continuations + ending)
        sums.append(block.ravel()[good])
    place, total = np.concatenate(places), np.concatenate(sums)
    place, total = place[place < possible], total[place < possible]
    if len(place) > room:
        best = np.sort(np.argpartition(total, len(total) - room)[len(total) - room :])
        place, total = place[best], total[best]
    parent, ending = np.divmod(place, continuations)
    return parent, ending, total


def _evidence(z: Array, shift: float) -> Array:
    """Return what a count of z deviations above noise says for a mean of `shift` or more, as a logarithm."""
    return np.minimum(np.where(z > shift, z * z / 2, shift * z - shift * shift / 2), _CERTAIN)
