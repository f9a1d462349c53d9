"""Vectors: every person holds a vector of bounded length, such as a gradient, and the mean is estimated.

A report is a unit vector that points towards the person's own with a chance that epsilon allows. With p
the chance of the cap around the vector, and F the share of the sphere that the cap covers, the density
of a report is p/F on the cap and (1 - p)/(1 - F) elsewhere: only two heights, whose ratio is the odds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count, exact, probability
from sfumato.core.coins import bernoulli
from sfumato.core.entropy import random_words
from sfumato.core.mechanism import confidence
from sfumato.core.noise import discrete_gaussian
from sfumato.core.scientific import scientific
from sfumato.core.search import minimum
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Floats, Integers, Octets, slices
from sfumato.local.odds import check_odds, odds_of
from sfumato.local.protocol import Columns, FieldKind, Protocol
from sfumato.local.rounding import bounds_of

__all__ = ["PrivUnit", "VectorMean"]


_STEPS = 2**15 - 1  # a coordinate between -1 and 1 is sent in sixteen bits
_BYTES = 2
_SIGMA = 2**50  # integers of a normal law, so fine that only their direction matters
_AT_ONCE = 2**21  # coordinates that are worked on together
_MOST = 10**6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorMean:
    """What reports say about the mean vector.

    `values` are unbiased, `deviations` those of each coordinate by itself; the mean lies within `radius`
    of the values, in Euclidean distance, with probability `level` at least.
    """

    values: Floats
    deviations: Floats
    radius: float
    reports: int
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnit(Protocol):
    """A random unit vector, in a cap around the person's direction more often than its size would have it.

    `cap` is F, the share of the sphere that the cap covers, and p = odds F / (odds F + 1 - F).
    A phone does, with the vector divided by `norm`, r its length then, at most 1:
    1. with chance (1 + r)/2 take its direction v, otherwise take -v (any direction if r is 0);
    2. with chance p decide for the cap, otherwise for the rest of the sphere;
    3. draw unit vectors y (normal coordinates, divided by their length) until <y, v> is at least
       `threshold` for the cap, below it for the rest. The phones that are simulated here draw <y, v> by
       its quantile instead and the rest of y as a normal vector across v: the same law;
    4. report each coordinate times 32767, rounded at random to a neighbour without bias, in 16 bits,
       the highest first, negatives as 65536 more.

    Theorem: the largest ratio of densities is p (1 - F) / ((1 - p) F), the odds; step 1 mixes such laws
    and step 4 looks at y alone, so that neither adds to it. y/m is unbiased, where m = E<y, v>, and its
    squared error is 1/m^2 - 1 for a unit vector (Bhowmick, Duchi, Freudiger, Kapoor and Rogers 2018). F is
    chosen to make it least, which nothing in a large family of protocols beats (Asi, Feldman, Talwar 2022).
    Step 4 adds at most d/(4 * 32767^2) to the 1 of 1/m^2: 2.4e-8 at d = 100.
    Assumes: real arithmetic for y; all other protocols here are exact, this one is not. Floats move y by less
    than 2^-47 in length (the quantile by 2^-49, the grid of the normals by 2^-50). Because step 4 rounds at
    random, the law of a report moves by at most 32767 root(d) times that in total variation, root(d) * 2^-32:
    what is sent satisfies (epsilon, delta) with delta = (1 + e^epsilon) root(d) * 2^-32, 9e-9 at
    epsilon 1 and d = 100.

    >>> protocol = PrivUnit.from_epsilon(4, size=100)
    >>> round(protocol.variance(1, 1), 1)
    42.8
    """

    size: int
    odds: Fraction
    cap: Fraction
    norm: Fraction = Fraction(1)

    name: ClassVar[str] = "privunit"
    fields: ClassVar[dict[str, FieldKind]] = {"vector": "bits"}

    def __post_init__(self) -> None:
        if count(self.size, "size", least=2) > _MOST:
            raise InvalidArgument("a vector has at most a million coordinates here", place="size")
        check_odds(self.odds, "the cap must be likelier than its size")
        if not 0 < probability(self.cap, "cap") < 1:
            raise InvalidArgument("the cap must be a part of the sphere", place="cap")
        bounds_of(-self.norm, self.norm)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int, norm: Number = 1) -> PrivUnit:
        """Take the cap with the least variance; `norm` is the declared largest length of a vector."""
        betainc = scientific("special").betainc
        if count(size, "size", least=2) > _MOST:
            raise InvalidArgument("a vector has at most a million coordinates here", place="size")
        odds, shape = odds_of(epsilon), (size - 1) / 2
        e = float(odds)

        def share(angle: float) -> float:
            return float(betainc(shape, shape, math.sin(angle / 2) ** 2))

        def log_loss(angle: float) -> float:
            return math.log1p((e - 1) * share(angle)) - 2 * shape * math.log(math.sin(angle))

        # The best threshold is about root(2 epsilon/d); a bracket of twice that costs nothing.
        widest = min(1.0, 2 * math.sqrt((2 * math.log(e) + 4) / size))
        cap = share(minimum(log_loss, max(math.acos(widest), 1e-9), math.pi / 2, 1e-10))
        scale = 2 ** (40 - math.frexp(cap)[1])
        return cls(
            size=size,
            odds=odds,
            cap=Fraction(round(cap * scale), scale),
            norm=bounds_of(-exact(norm, "norm"), norm)[1],
        )

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon of a report in real arithmetic: the ratio of the two heights of its density."""
        return self.odds

    @property
    def chance(self) -> Fraction:
        """The chance p of the cap."""
        return self.odds * self.cap / (self.odds * self.cap + 1 - self.cap)

    @property
    def threshold(self) -> float:
        """The inner product with its middle that a vector of the cap has at least."""
        betainccinv = scientific("special").betainccinv
        shape = (self.size - 1) / 2
        return 2 * float(betainccinv(shape, shape, float(self.cap))) - 1

    @property
    def bias(self) -> float:
        """m = E<y, v>: what is left of the direction, by which estimates are scaled up.

        Theorem: the integral of t over the cap's part of the density c (1 - t^2)^((d-3)/2) is
        c (1 - threshold^2)^((d-1)/2) / (d - 1), and its negative over the rest.
        """
        d, cap, e = self.size, float(self.cap), float(self.odds)
        constant = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - math.log(math.pi) / 2
        moment = math.exp(constant + (d - 1) / 2 * math.log1p(-(self.threshold**2))) / (d - 1)
        return moment * (e - 1) / (e * cap + 1 - cap)

    @property
    def message_bits(self) -> int:
        """Sixteen bits a coordinate."""
        return 8 * _BYTES * self.size

    def variance(self, length: Number, n: int) -> float:
        """Return the expected squared distance of n people's mean from the truth, if all are that long."""
        r = probability(Fraction(length) / self.norm, "length")
        return (1 / self.bias**2 - float(r) ** 2) * float(self.norm) ** 2 / count(n, "n")

    # -- what every phone does ------------------------------------------------------------

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per row; a vector that is longer than `norm` is shortened to it."""
        given = np.asarray(answers)
        if given.ndim != 2 or given.shape[1] != self.size or given.dtype.kind not in "iuf":
            raise InvalidArgument(
                f"answers must be an array of numbers with {self.size} columns", place="answers"
            )
        if not np.isfinite(given).all():
            raise InvalidArgument("answers must be finite", place="answers")
        told = np.empty((len(given), _BYTES * self.size), dtype=np.uint8)
        for rows in self._batches(len(given)):
            part = self._randomise(given[rows].astype(np.float64))
            told[rows] = part.astype(">i2").view(np.uint8).reshape(len(part), -1)
        return {"vector": told}

    def _randomise(self, vectors: Floats) -> Integers:
        n = len(vectors)
        directions = self._directions(vectors)
        inner, outer = self._inner_products(n)
        across = self._normals(n)
        across -= np.einsum("ij,ij->i", across, directions)[:, None] * directions
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        directions *= inner[:, None]
        directions += outer[:, None] * across
        exact = np.clip(directions, -1.0, 1.0) * _STEPS
        return np.floor(exact + _uniforms(exact.size).reshape(exact.shape)).astype(np.int64)

    def _directions(self, vectors: Floats) -> Floats:
        """Turn every vector into a random vector whose average is the clipped vector."""
        # Divided by the largest coordinate first: squares of floats may overflow, or vanish.
        largest = np.max(np.abs(vectors), axis=1, keepdims=True)
        empty = largest[:, 0] == 0
        unit = vectors / np.where(largest == 0, 1.0, largest)
        unit[empty, 0] = 1.0
        lengths = np.linalg.norm(unit, axis=1, keepdims=True)
        unit /= lengths
        with np.errstate(over="ignore"):
            radii = np.where(empty, 0.0, np.minimum((largest * lengths)[:, 0] / float(self.norm), 1.0))
        unit[_uniforms(len(vectors)) >= (1 + radii) / 2] *= -1
        return unit

    def _inner_products(self, n: int) -> tuple[Floats, Floats]:
        """Draw t = <y, v> and root(1 - t^2): (1 + t)/2 has a beta law, whose quantile is taken."""
        betainccinv = scientific("special").betainccinv
        cap, near = float(self.cap), bernoulli(self.chance, size=n)
        drawn = _uniforms(n)
        tail = np.where(near, cap * drawn, cap + (1 - cap) * drawn)
        shape = (self.size - 1) / 2
        beta = betainccinv(shape, shape, tail)
        return 2 * beta - 1, 2 * np.sqrt(beta * (1 - beta))

    def _normals(self, n: int) -> Floats:
        return discrete_gaussian(_SIGMA, size=n * self.size).astype(np.float64).reshape(n, self.size)

    # -- what the collector does ------------------------------------------------------------

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that a unit vector can be rounded to."""
        column = np.asarray(reports["vector"])
        flags = np.zeros(len(column), dtype=np.bool_)
        if column.shape[1:] != (_BYTES * self.size,) or column.dtype != np.uint8:
            return flags
        slack = math.sqrt(self.size) + 1  # every coordinate is off by less than one
        for rows in self._batches(len(column)):
            steps = self._steps(column[rows])
            lengths = np.sqrt((steps * steps).sum(axis=1))
            flags[rows] = (np.abs(lengths - _STEPS) <= slack) & (np.abs(steps).max(axis=1) <= _STEPS)
        return flags

    def collect(self, reports: Columns) -> Integers:
        """Return how many reports there are, then the sum of every coordinate, then of its square."""
        column = np.asarray(reports["vector"])
        totals = np.zeros(1 + 2 * self.size, dtype=np.int64)
        totals[0] = len(column)
        for rows in self._batches(len(column)):
            steps = self._steps(column[rows])
            totals[1 : 1 + self.size] += steps.sum(axis=0)
            totals[1 + self.size :] += (steps * steps).sum(axis=0)
        return totals

    def mean(self, totals: Array, level: float = 0.95) -> VectorMean:
        """Return the estimated mean vector. Without reports nothing is known.

        Theorem: the distance of the mean from the truth is the largest over all directions of a sum of
        independent terms, none larger than b = 1/m + 1; it is at most root(n)/m on average, and exceeds
        that by x with probability at most exp(-x^2 / (2 v + 3 b x)), v = n s + 2 b root(n)/m, where s is
        the largest second moment in any direction (Klein and Rio 2005); also at most
        exp(-x^2 m^2 / (2 n)) (McDiarmid 1989). The smaller radius is taken: both are public.
        It holds at every n, for a random sample's population and for a fixed group.
        """
        miss = float(1 - confidence(level))
        n, d, norm = int(totals[0]), self.size, float(self.norm)
        if n == 0:
            nothing = np.full(d, math.nan)
            return VectorMean(values=nothing, deviations=nothing, radius=norm, reports=0, level=level)
        scale = norm / (self.bias * _STEPS)
        values = totals[1 : 1 + d] / n
        spread = np.maximum(totals[1 + d :] / n - values**2, 0.0) * n / max(n - 1, 1)
        if n == 1:  # shows no spread, and is given the largest
            spread = np.full(d, _STEPS**2 * self._second_moment())
        return VectorMean(
            values=values * scale,
            deviations=np.sqrt(spread / n) * scale,
            radius=norm * self._radius(n, miss),
            reports=n,
            level=level,
        )

    def _radius(self, n: int, miss: float) -> float:
        reach = (1 + math.sqrt(self.size) / _STEPS) / self.bias
        bound, mean, slack = reach + 1, math.sqrt(n) * reach, math.log(1 / miss)
        v = n * self._second_moment() * reach**2 + 2 * bound * mean
        beyond = (3 * bound * slack + math.sqrt(9 * (bound * slack) ** 2 + 8 * v * slack)) / 2
        return (mean + min(beyond, reach * math.sqrt(2 * n * slack))) / n

    def _second_moment(self) -> float:
        """Bound the second moment of a report in any direction: along v, or evenly across it.

        Theorem: E[t^2] over the sphere is 1/d, and that over the cap alone follows by parts:
        (F + threshold * (d - 1) * moment) / d, where moment is that of `bias`. Rounding at random adds
        a quarter of a squared step at most.
        """
        d, cap, e = self.size, float(self.cap), float(self.odds)
        moment = self.bias * (e * cap + 1 - cap) / (e - 1)
        inside = (cap + self.threshold * (d - 1) * moment) / d
        along = (e * inside + (1 / d - inside)) / (e * cap + 1 - cap)
        return max(along, (1 - along) / (d - 1)) + 1 / (2 * _STEPS) ** 2

    def _batches(self, n: int) -> Iterator[slice]:
        return slices(n, max(1, _AT_ONCE // self.size))

    def _steps(self, column: Octets) -> Integers:
        return np.ascontiguousarray(column).view(">i2").astype(np.int64)


def _uniforms(n: int) -> Floats:
    """Return uniform numbers, none of them 0 or 1."""
    return ((random_words(n) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
