"""Clones: the pair of distributions that says what shuffled reports give away, bounded from both sides.

One person's report hides among those of others who *could have sent the same*. Let a and b be the laws
of a person's report under two answers, whose ratio never exceeds the odds r. Then

    Q0 = (r a - b) / (r - 1)   and   Q1 = (r b - a) / (r - 1)

are laws too; the person's report is drawn from Q0 with chance r/(r+1), else from Q1, or the other way
round; and everybody else's report is, with some chance (the cover), drawn from Q0 or Q1 by a fair coin:
a clone. Who is a clone and what the others send does not depend on the person. So all that can be
learnt about the person is in how many draws came from Q0 and how many from Q1.

Theorem (Feldman, McMillan and Talwar 2021): with C ~ Bin(others, cover), A ~ Bin(C, 1/2) and
D ~ Bernoulli(r/(r+1)), the shuffled reports of two neighbours are one post-processing of
(A + D, C - A + 1 - D) and of (A + 1 - D, C - A + D).
The cover is any number such that every law of a report is at least cover (a + b)/2. For any randomiser
1/r will do: a law is at least a/r and at least b/r. For k-ary response 2/(r+1) will: where a + b is
(r+1)/(r+k-1) every law is at least 1/(r+k-1), elsewhere it is at least a = b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Floats

__all__ = ["Clones"]


_UNIT = 2.0**-53  # the relative error of one rounding
_NATS = 160.0  # numbers of clones rarer than e^-160 on either side are lumped together
_BUCKETS = 4096
_MOST = 2**50  # more people cannot make it worse, and up to here all counts and halves are exact floats
_DEPTHS = (15, 63, 255, 1023)
_SETTLED = 1e-9
_FAR = 1 + 2.0**-24  # what lies before and after is tiny, and bounded less carefully


@dataclass(frozen=True, slots=True, kw_only=True)
class Clones:
    """The pair for `others` other people; each is a clone with probability `cover`.

    Theorem: with N = C + 1 draws, K of them from Q0, the positive part of P - e^epsilon Q is
    that of (2/N) m (1 + e^epsilon) (K - x) under a fair Bin(N, 1/2), where m = (r-1)/(r+1) and
    x = (N/2)(1 + tanh(epsilon/2)/m). Its sum over K >= t, t the least integer not below x, is
    (t/2) Pr[K = t] - (x - N/2) Pr[K >= t] (De Moivre); the tail is (t/2) Pr[K = t] times a continued
    fraction of positive terms, whose convergents lie below and above it in turn (DiDonato and
    Morris 1992). Given N it falls as N grows, for further fair coins are post-processing: where N is
    lumped, the ends of a lump bound all of it.
    Assumes: numpy's exp, expm1, log, log1p and tanh err by less than four units in the last place.
    Rounds: both outward, by a margin that follows every rounding.
    """

    odds: Fraction
    cover: Fraction
    others: int

    def __post_init__(self) -> None:
        count(self.others, "others", least=0)
        if self.odds <= 1 or not 0 < self.cover < 1:
            raise InvalidArgument("odds must be above 1, and the cover between 0 and 1", place="odds")

    @classmethod
    def of_any(cls, odds: Fraction, others: int) -> Clones:
        """Among reports of any randomiser whose probabilities have no ratio above the odds."""
        return cls(odds=odds, cover=1 / odds, others=others)

    @classmethod
    def of_response(cls, odds: Fraction, others: int) -> Clones:
        """Among k-ary responses of these odds, whatever k is."""
        return cls(odds=odds, cover=2 / (odds + 1), others=others)

    def at_least(self, epsilon: float) -> float:
        """Return a lower bound of the pair's delta at this epsilon."""
        crowd, gap, depth = self._prepared(epsilon)
        total = math.fsum(crowd.low * _excess(crowd.last + 1, epsilon, gap, depth, up=False))
        return max(0.0, total * (1 - 8 * _UNIT))

    def at_most(self, epsilon: float) -> float:
        """Return an upper bound of the pair's delta at this epsilon."""
        crowd, gap, depth = self._prepared(epsilon)
        total = math.fsum(crowd.high * _excess(crowd.first + 1, epsilon, gap, depth, up=True))
        if crowd.before:
            total += crowd.before * float(_excess(np.ones(1), epsilon, gap, 1, up=True)[0])
        return min(1.0, total * (1 + 8 * _UNIT))

    def typical(self, epsilon: float) -> float:
        """Return the delta for the mean number of clones: no bound, but where to look for one."""
        n = np.array([float(1 + int(min(self.others, _MOST) * self.cover))])
        return float(_excess(n, epsilon, self._gap, _DEPTHS[1], up=True)[0])

    @property
    def _gap(self) -> float:
        return float((self.odds - 1) / (self.odds + 1))

    def _prepared(self, epsilon: float) -> tuple[_Crowd, float, int]:
        """Return the crowd, the gap m, and how deep a fraction has to go: tried on a few lumps."""
        if epsilon < 0:
            raise InvalidArgument("epsilon must not be negative", place="epsilon")
        crowd, gap = _crowd(min(self.others, _MOST), self.cover), self._gap
        few = slice(None, None, max(1, len(crowd.first) // 16))
        n, weights = crowd.first[few] + 1, crowd.high[few]
        before = math.inf
        for depth, deeper in pairwise(_DEPTHS):
            found = math.fsum(weights * _excess(n, epsilon, gap, deeper, up=True))
            if math.isinf(before):
                before = math.fsum(weights * _excess(n, epsilon, gap, depth, up=True))
            if before - found <= _SETTLED * found:
                return crowd, gap, depth
            before = found
        return crowd, gap, _DEPTHS[-1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Crowd:
    """The number of clones in lumps first .. last, with bounds of their chances, and of fewer than any."""

    first: Floats
    last: Floats
    low: Floats
    high: Floats
    before: float


@lru_cache(maxsize=8)
def _crowd(others: int, cover: Fraction) -> _Crowd:
    """Lump the law Bin(others, cover), whose far ends Chernoff's bound finds.

    Theorem: the ratio of successive chances falls, so that within a lump they are at most those of a
    geometric series with the ratio of its first step, and at least those with the ratio of its last;
    what lies before and after all lumps is bounded by a geometric series too.
    """
    rare = float(others * min(cover, 1 - cover))
    down = math.sqrt(2 * _NATS * rare) + 1
    up = _NATS / 3 + math.sqrt(_NATS**2 / 9 + 2 * _NATS * rare) + 1
    if cover > Fraction(1, 2):
        down, up = up, down
    centre = int(others * cover)
    start, stop = max(0, centre - math.ceil(down)), min(others, centre + math.ceil(up))
    width = -(-(stop - start + 1) // _BUCKETS)
    first = np.arange(start, stop + 1, width, dtype=np.float64)
    last = np.minimum(first + (width - 1), float(stop))
    means = float(others * cover), float(others * (1 - cover))
    tilt = float(cover / (1 - cover))

    def step(c: Floats) -> Floats:  # how much likelier one clone more is
        return np.maximum((others - c) * tilt / (c + 1), 2.0**-1000)

    log, margin = _log_chance(first, float(others), means)
    lengths = last - first + 1
    low = np.exp(log - margin) * _series(step(np.maximum(last - 1, first)), lengths)
    high = np.exp(log + margin) * _series(step(first), lengths)
    slack = lengths * (16 * _UNIT) + 64 * _UNIT
    low, high = low * (1 - slack), high * (1 + slack)
    before = 0.0
    if start:
        edge = np.array([start - 1.0])
        log, margin = _log_chance(edge, float(others), means)
        before = float(np.exp(log + margin)[0] / (1 - 1 / step(edge)[0])) * _FAR
    if stop < others:  # more clones than all these hide no less than the last lump
        edge = np.array([stop + 1.0])
        log, margin = _log_chance(edge, float(others), means)
        high[-1] += float(np.exp(log + margin)[0] / (1 - step(edge)[0])) * _FAR
    return _Crowd(first=first, last=last, low=low, high=high, before=before)


def _series(ratio: Floats, lengths: Floats) -> Floats:
    """Return 1 + ratio + ... of the given lengths."""
    log = np.log(ratio)
    flat = log == 0
    log[flat] = 1.0
    return np.where(flat, lengths, np.expm1(lengths * log) / np.expm1(log))


def _excess(n: Floats, epsilon: float, gap: float, depth: int, *, up: bool) -> Floats:
    """Bound the delta of n draws, n - 1 of them by fair coins: from above (`up`) or from below."""
    out, odd = (1.0, depth) if up else (-1.0, depth + 1)  # odd convergents lie below
    ratio = math.tanh(epsilon / 2) / gap * (1 - out * 16 * _UNIT)
    half = n / 2
    # A float on the safe side of x; what is subtracted next is within a factor of two, so exact.
    x = np.maximum(np.nextafter(half + half * ratio, -out * math.inf), half)
    found = np.zeros(len(n))
    some = np.flatnonzero(x < n)
    if not len(some) or ratio >= 1:
        return found
    n, x = n[some], x[some]
    t = np.ceil(x)
    log, margin = _log_chance(t, n, (n / 2, n / 2))
    mills = _fraction(t, n - t + 1, odd) * (1 - out * 16 * (depth + 2) * _UNIT)
    rest = np.maximum(1 - (x - n / 2) * mills, 0.0)
    scale = gap * (1 + math.exp(epsilon)) * (1 + out * 64 * _UNIT)
    found[some] = t / n * scale * np.exp(log + out * margin) * rest
    return found


def _fraction(a: Floats, b: Floats, depth: int) -> Floats:
    """Return a convergent of I_1/2(a, b) B(a, b) 2^(a+b): below the value at odd depths, else above.

    Theorem: for integers a >= b all terms are positive, and the fraction ends after b of them.
    """

    def beta(k: int) -> Floats:
        first = k * (b - k) / (2 * np.maximum(a + (2 * k - 1), 1.0))
        both: Floats = k + first + (a + k) * ((a - b) / 2 + (1 + 1.5 * k)) / (a + (2 * k + 1))
        return both

    depth = min(depth, int(b.max()))
    value: Floats = np.where(depth < b, beta(depth), 1.0)
    for k in range(depth, 0, -1):
        alpha = (a + (k - 1)) * (a + b + (k - 1)) * (k * (b - k)) / (2 * (a + (2 * k - 1))) ** 2
        value = np.where(k - 1 < b, beta(k - 1) + np.where(k < b, alpha / value, 0.0), 1.0)
    return 1 / value


def _log_chance(x: Floats, n: Floats | float, means: tuple[Floats | float, ...]) -> tuple[Floats, Floats]:
    """Return ln Pr[X = x] for a binomial X of n trials, and a bound of the error.

    `means` are those of successes and failures. Theorem: Stirling's formula with its remainder; what is
    left of the exponents are two deviances, each computed without large numbers that cancel (Loader 2000).
    """
    y = n - x
    log, margin = np.zeros(len(x)), np.full(len(x), 2.0**-42)
    for part, mean in zip((x, y), means, strict=True):
        away = part - mean
        relative = away / np.maximum(mean, 2.0**-1000)  # a mean of zero has no part of it
        grown = part * np.log1p(np.where(part > 0, relative, 0.0))
        log -= np.where(part > 0, grown - away, mean)
        margin += (16 * _UNIT) * (np.abs(grown) + np.abs(away) + np.where(part > 0, 0.0, mean))
    inner = (x > 0) & (y > 0)
    x, y, n = np.where(inner, x, 1.0), np.where(inner, y, 1.0), np.where(inner, n, 2.0)
    stirling = _remainder(n) - _remainder(x) - _remainder(y) + np.log(n / (2 * math.pi * x) / y) / 2
    return log + np.where(inner, stirling, 0.0), margin


def _remainder(n: Floats) -> Floats:
    """Return what Stirling's formula for ln n! leaves out, to 2^-45: a table, then its enveloping series."""
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n * n)) / (n * n)) / (n * n)) / n
    return np.where(n < len(_SMALL), _SMALL[np.minimum(n, len(_SMALL) - 1.0).astype(np.int64)], series)


_SMALL = np.array(
    [0.0] + [math.lgamma(n + 1) - math.log(2 * math.pi * n) / 2 - n * math.log(n) + n for n in range(1, 16)]
)
