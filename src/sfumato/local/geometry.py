"""Projective geometry response: answers and reports are points, and a report supports a hyperplane.

It is subset selection with a short message: the sets are hyperplanes of a finite geometry, which has as
many hyperplanes as points, so that a report is one point. Accuracy is the best that is known, a message
is about as long as the answer, and all counts come out of one pass over the coordinates.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.coins import bernoulli
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Integers, slices
from sfumato.local.hashing import smallest_factor
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, FieldKind, OddsProtocol, below
from sfumato.local.supports import absorb, inverses

__all__ = ["ProjectiveGeometry"]

_MOST_POINTS = 2**26
_TOLERANCE = 1.02
_PEOPLE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveGeometry(OddsProtocol):
    """Points of the space of `dimension` coordinates over the field of `prime` elements, up to a factor.

    With Q = prime and t = dimension: a point is written with its first coordinate that is not 0 being 1.
    Points with r coordinates after that 1 have numbers (Q^r - 1)/(Q - 1) + (those coordinates, read as
    a number in base Q); answer x is the point with number x. A report supports the answers orthogonal to it.

    A phone does, with v the point of the answer and j the place of its first 1:
      1. with chance p let c = 0, else c = 1;
      2. draw u_1 .. u_t, each uniform below Q;
      3. add c - (u_1 v_1 + ... + u_t v_t) to u_j, modulo Q: now u times v is c;
      4. if all of u is 0, go back to 2;
      5. divide u by its first coordinate that is not 0, and send the number of that point.

    Theorem: of K = (Q^t - 1)/(Q - 1) points, w = (Q^(t-1) - 1)/(Q - 1) are orthogonal to v. Steps 2 to 5
    give each of these equally often if c = 0, for each has Q - 1 multiples, and each of the others if
    c = 1, for each has one multiple whose product with v is 1. With p = w odds / (w odds + K - w) a point
    has weight odds or 1: the largest ratio is the odds. Two different points have l = (Q^(t-2) - 1)/(Q - 1)
    common orthogonal ones, hence q = (l odds + w - l) / (w odds + K - w). With Q next to odds + 1 the
    variance is the least known (Feldman, Nelson, Nguyen and Talwar 2022).

    >>> protocol = ProjectiveGeometry.from_epsilon(1, size=1000)
    >>> protocol.prime, protocol.dimension, protocol.points
    (3, 7, 1093)
    """

    size: int
    prime: int
    dimension: int
    odds: Fraction

    name: ClassVar[str] = "geometry"
    fields: ClassVar[dict[str, FieldKind]] = {"point": "integer"}
    largest_size: ClassVar[int] = 2**25  # the collector keeps a number per point

    def __post_init__(self) -> None:
        OddsProtocol.__post_init__(self)
        if smallest_factor(count(self.prime, "prime", least=2)) != self.prime:
            raise InvalidArgument("a field of integers needs a prime", place="prime")
        if not self.size <= _points(self.prime, count(self.dimension, "dimension", least=2)) <= _MOST_POINTS:
            raise InvalidArgument(
                f"there must be at least as many points as answers, and at most {_MOST_POINTS}",
                place="dimension",
            )

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int) -> ProjectiveGeometry:
        """Take the geometry with the fewest points among those whose variance is within 2% of the least."""
        odds = odds_of(epsilon)
        if count(size, "size") > cls.largest_size:
            return cls(size=size, prime=2, dimension=2, odds=odds)  # refused, with its reason
        geometries = [
            cls(size=size, prime=prime, dimension=dimension, odds=odds)
            for prime, dimension in _geometries(odds, size)
        ]
        least = min(geometry.variance(0, 1) for geometry in geometries)
        near = [geometry for geometry in geometries if geometry.variance(0, 1) <= _TOLERANCE * least]
        return min(near, key=lambda geometry: geometry.points)

    @property
    def points(self) -> int:
        """How many points there are."""
        return _points(self.prime, self.dimension)

    @property
    def p(self) -> Fraction:
        """The chance of a point that is orthogonal to the answer's."""
        return _points(self.prime, self.dimension - 1) * self.odds / self._weight

    @property
    def q(self) -> Fraction:
        """The chance that it is orthogonal to another answer's point."""
        both = _points(self.prime, self.dimension - 2)
        return (both * self.odds + _points(self.prime, self.dimension - 1) - both) / self._weight

    @property
    def _weight(self) -> Fraction:
        orthogonal = _points(self.prime, self.dimension - 1)
        return orthogonal * self.odds + self.points - orthogonal

    @property
    def message_bits(self) -> int:
        """The bits of a point's number."""
        return (self.points - 1).bit_length()

    # -- phones -------------------------------------------------------------------------

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""
        given = self._answers(answers)
        point = np.empty(len(given), dtype=np.int64)
        for piece in slices(len(given), _PEOPLE):
            point[piece] = self._draw(given[piece])
        return {"point": point}

    def _draw(self, given: Integers) -> Integers:
        target = bernoulli(1 - self.p, size=len(given)).astype(np.int64)
        told = np.empty(len(given), dtype=np.int64)
        pending = np.arange(len(given))
        while len(pending):
            v, everyone = self.coordinates(given[pending]), np.arange(len(pending))
            u = uniform_below(self.prime, size=v.size).reshape(v.shape)
            first = (v != 0).argmax(axis=0)
            u[first, everyone] += target[pending] - (u * v).sum(axis=0)
            u[first, everyone] %= self.prime
            found = u.any(axis=0)
            told[pending[found]] = self.numbers(u[:, found])
            pending = pending[~found]
        return told

    def coordinates(self, points: Integers) -> Integers:
        """Return the coordinates of points, given by their numbers: one row per coordinate."""
        starts = np.array([_points(self.prime, r) for r in range(self.dimension)])
        r = np.searchsorted(starts, points, side="right") - 1
        rest = points - starts[r] + np.array([self.prime**r for r in range(self.dimension)])[r]
        rows = np.empty((self.dimension, len(points)), dtype=np.int64)
        for row in range(self.dimension - 1, -1, -1):
            rest, rows[row] = np.divmod(rest, self.prime)
        return rows

    def numbers(self, vectors: Integers) -> Integers:
        """Return the numbers of the points on which vectors lie, none of them 0."""
        first = (vectors != 0).argmax(axis=0)
        leading = vectors[first, np.arange(vectors.shape[1])]
        number = np.zeros(vectors.shape[1], dtype=np.int64)
        for row in vectors * inverses(leading, self.prime) % self.prime:
            number = number * self.prime + row
        r = self.dimension - 1 - first
        starts = np.array([_points(self.prime, r) - self.prime**r for r in range(self.dimension)])
        numbers: Integers = number + starts[r]
        return numbers

    # -- the collector ------------------------------------------------------------------

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that number a point."""
        return below(reports["point"], self.points)

    def collect(self, reports: Columns) -> Integers:
        """Count reports by point."""
        return np.bincount(reports["point"], minlength=self.points).astype(np.int64, copy=False)

    def supports(self, totals: Array) -> Integers:
        """Add up the reports on every answer's hyperplane, in about points * prime * dimension additions."""
        return _orthogonal(totals, self.prime, self.dimension)[: self.size]


def _points(prime: int, dimension: int) -> int:
    """Return how many points a geometry has: (Q^t - 1)/(Q - 1)."""
    return (int(prime**dimension) - 1) // (prime - 1)


def _geometries(odds: Fraction, size: int) -> Iterator[tuple[int, int]]:
    """Yield primes and dimensions with enough points: the least prime of each, and those near the odds."""
    for dimension in range(2, size.bit_length() + 2):
        least = bisect_left(range(size), size, lo=min(2, size), key=partial(_points, dimension=dimension))
        prime = _prime_from(max(2, least))
        if _points(prime, dimension) <= _MOST_POINTS:
            yield prime, dimension
        if prime == 2:
            break
    prime = _prime_from(max(2, int(odds + 1) // 2))
    while prime <= min(2 * (odds + 1), _MOST_POINTS**0.5):
        dimension = 2
        while _points(prime, dimension) < size:
            dimension += 1
        if _points(prime, dimension) <= _MOST_POINTS:
            yield prime, dimension
        prime = _prime_from(prime + 1)


def _prime_from(number: int) -> int:
    """Return the smallest prime that is at least `number`, which is above 1."""
    while smallest_factor(number) != number:
        number += 1
    return number


def _orthogonal(counts: Integers, prime: int, dimension: int) -> Integers:
    """Return, for every point, the counts of all points orthogonal to it.

    A point is (1, u) for any vector u, or (0, u) for a point u of one dimension less. With A(x, z) the
    counts of the vectors u whose product with the point x is z, and B(x) the counts of the points u
    orthogonal to it, (0, x) is orthogonal to A(x, 0) + B(x), and (1, s x) for a factor s that is not 0 to
    A(x, -1/s) + B(x), while (1, 0) is orthogonal to all points (0, u).
    """
    if dimension == 1:
        return np.zeros(1, dtype=np.int64)
    smaller = _points(prime, dimension - 1)
    lower = _orthogonal(counts[:smaller], prime, dimension - 1)
    products = _products(counts[smaller:], prime, dimension - 1)
    products += lower
    out = np.empty(len(counts), dtype=np.int64)
    out[:smaller] = products[0]
    out[smaller] = counts[:smaller].sum()
    inverse = inverses(np.arange(1, prime), prime)
    for s in range(1, prime):
        over = int(inverse[s - 1])
        row = products[-over % prime]
        scaled = np.zeros(1, dtype=np.int64)  # where each run of r coordinates goes when divided by s
        for r in range(dimension - 1):
            start = smaller + s * prime**r
            out[start : start + prime**r] = row[_points(prime, r) + scaled]
            if r < dimension - 2:
                step = np.arange(prime) * over % prime * prime**r
                scaled = (step[:, None] + scaled).ravel()
    return out


def _products(counts: Integers, prime: int, dimension: int) -> Integers:
    """Return, by product and point, the counts of the vectors whose product with the point is that."""
    if dimension == 1:
        return counts.reshape(prime, 1).copy()
    smaller = _points(prime, dimension - 1)
    out = np.empty((prime, smaller + prime ** (dimension - 1)), dtype=np.int64)
    # Points (0, x): the first coordinate does not matter. Points (1, x): it is what the product starts from.
    out[:, :smaller] = _products(counts.reshape(prime, -1).sum(axis=0), prime, dimension - 1)
    table = counts.reshape(prime, -1)
    for _ in range(dimension - 1):
        table = absorb(table.reshape(prime, prime, -1)).reshape(prime, -1)
    out[:, smaller:] = table
    return out
