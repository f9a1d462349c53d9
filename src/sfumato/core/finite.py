"""Finite mechanisms: a stochastic matrix, whose privacy is computed exactly.

A mechanism with finitely many inputs and outputs is a map into the probability simplex:
row i holds the output probabilities of input i. With exact rational entries its epsilon is
the logarithm of an exact ratio, and its delta at any epsilon an exact sum.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import Number, budget_quantity, count, exact, positive, upper_float
from sfumato.core.events import Event, FinitePair
from sfumato.core.exponential import exp_below, log_above
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument

__all__ = ["FiniteMechanism"]

_LARGEST_LEVEL = Fraction(5000)  # beyond it a delta is bounded by the delta there

_Row = tuple[Fraction, ...]
_Pair = tuple[int, int]
_Point = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True, init=False)
class FiniteMechanism:
    """A stochastic matrix: `matrix[i][o]` is the probability of output o given input i.

    Any two inputs are neighbours, unless `neighbours` lists the pairs that are (each pair
    counts in both orders).

    >>> coin_toss = FiniteMechanism([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    >>> coin_toss.max_ratio  # so epsilon is exactly ln 3
    Fraction(3, 1)
    >>> coin_toss.delta_at_ratio(2)  # delta at epsilon = ln 2
    Fraction(1, 4)
    """

    matrix: tuple[_Row, ...]
    neighbours: tuple[_Pair, ...]

    def __init__(
        self, matrix: Iterable[Iterable[Number]], *, neighbours: Iterable[_Pair] | None = None
    ) -> None:
        rows = _rows(matrix, "matrix")
        object.__setattr__(self, "matrix", rows)
        object.__setattr__(self, "neighbours", _pairs(neighbours, len(rows)))

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return len(self.matrix)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return len(self.matrix[0])

    @overload
    def release(self, value: int) -> int: ...
    @overload
    def release(self, value: npt.NDArray[Any] | Sequence[int]) -> npt.NDArray[np.int64]: ...

    def release(self, value: int | npt.NDArray[Any] | Sequence[int]) -> int | npt.NDArray[np.int64]:
        """Draw an output for one input, or one for each input of an array.

        Theorem: a uniform integer below the row's common denominator falls into output o's
        share of it with exactly probability `matrix[value][o]`.
        """
        if isinstance(value, (np.ndarray, list, tuple)):
            given = np.asarray(value)
            if given.dtype.kind not in "iu" or ((given < 0) | (given >= self.inputs)).any():
                raise _outside("value", self.inputs)
            drawn = np.empty(given.shape, dtype=np.int64)
            for row in np.unique(given):
                chosen = given == row
                shares, total = self._shares(int(row))
                kind = np.int64 if total < 2**63 else object  # never a float in between
                tickets = uniform_below(total, size=int(chosen.sum())).astype(kind)
                drawn[chosen] = np.searchsorted(np.array(shares, dtype=kind), tickets, side="right")
            return drawn
        shares, total = self._shares(_inside(value, "value", self.inputs))
        return bisect_right(shares, uniform_below(total))

    def pmf(self, output: int, value: int) -> Fraction:
        """Return the exact probability of `output` given `value`."""
        return self.matrix[_inside(value, "value", self.inputs)][_inside(output, "output", self.outputs)]

    def privacy_loss(self, output: int, x: int, y: int) -> float:
        """Return ln(pmf(output, x) / pmf(output, y)), infinite where one of them is zero."""
        with_x, with_y = self.pmf(output, x), self.pmf(output, y)
        if with_x == with_y == 0:
            raise InvalidArgument(
                "this output cannot occur under either input",
                place="output",
                hints=("its loss is undefined",),
            )
        if with_x == 0 or with_y == 0:
            return math.inf if with_x else -math.inf
        return log_above(with_x / with_y) if with_x >= with_y else -log_above(with_y / with_x)

    @property
    def max_ratio(self) -> Fraction | None:
        """The largest ratio of an output's probabilities under two neighbours; None if unbounded."""
        largest = Fraction(1)
        for p, q in self._extremes():
            if p and not q:
                return None
            if p > largest * q:
                largest = p / q
        return largest

    @property
    def epsilon(self) -> float:
        """The smallest pure epsilon: the logarithm of `max_ratio`. Rounds: up, to the next float."""
        ratio = self.max_ratio
        return math.inf if ratio is None else log_above(ratio)

    def delta(self, epsilon: Number) -> float:
        """Return the smallest delta at which this mechanism is (epsilon, delta)-private.

        Theorem: delta = max over neighbours of sum over outputs of max(0, P - e^epsilon Q).
        Rounds: up, to the next float; e^epsilon enters by a rational bound from below.
        """
        level = min(budget_quantity(epsilon, "epsilon", zero=True), _LARGEST_LEVEL)
        return upper_float(self.delta_at_ratio(exp_below(level)))

    def delta_at_ratio(self, ratio: Number) -> Fraction:
        """Return the exact delta at epsilon = ln(ratio)."""
        bound = positive(ratio, "ratio")
        if bound < 1:
            raise InvalidArgument("ratio must be at least 1", place="ratio", hints=("it is e^epsilon",))
        worst = Fraction(0)
        for with_person, without in self._ordered():
            excess = (p - bound * q for p, q in zip(with_person, without, strict=True))
            worst = max(worst, sum((part for part in excess if part > 0), Fraction(0)))
        return worst

    @property
    def event(self) -> Event:
        """The one pair of laws that dominates every pair of neighbours, exactly.

        Theorem: delta as a function of e^epsilon is the convex conjugate of the pair's
        power curve, the upper hull of the points (Q(S), P(S)); a maximum over pairs is the
        hull of all their points (Blackwell 1953), and what has that curve dominates under
        adaptive composition (Zhu, Dong and Wang 2022). Each edge of the hull is
        one output: its width is the probability without the person, its height with.
        Both orders of every pair enter, so the two directions cost the same.
        """
        hull = _hull(point for pair in set(self._ordered()) for point in _power_curve(*pair))
        edges = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(hull)]
        return FinitePair(with_person=tuple(p for _, p in edges), without=tuple(q for q, _ in edges))

    def compose(self, other: FiniteMechanism) -> FiniteMechanism:
        """Return the mechanism that publishes both outputs for one input.

        Output o of this and p of the other become output o * other.outputs + p.
        """
        if not isinstance(other, FiniteMechanism):
            raise InvalidArgument("compose needs another FiniteMechanism", place="other")
        if other.inputs != self.inputs or other.neighbours != self.neighbours:
            raise InvalidArgument("both mechanisms must have the same inputs and neighbours", place="other")
        product = [
            [p * q for p in mine for q in theirs]
            for mine, theirs in zip(self.matrix, other.matrix, strict=True)
        ]
        return FiniteMechanism(product, neighbours=self.neighbours)

    def then(self, channel: Iterable[Iterable[Number]]) -> FiniteMechanism:
        """Return this mechanism followed by a public stochastic matrix: post-processing.

        Theorem: no epsilon and no delta grows (data-processing inequality).
        """
        rows = _rows(channel, "channel")
        if len(rows) != self.outputs:
            raise InvalidArgument(f"channel must have {self.outputs} rows, one per output", place="channel")
        columns = list(zip(*rows, strict=True))
        processed = [
            [sum((p * q for p, q in zip(row, column, strict=True)), Fraction(0)) for column in columns]
            for row in self.matrix
        ]
        return FiniteMechanism(processed, neighbours=self.neighbours)

    def _ordered(self) -> Iterator[tuple[_Row, _Row]]:
        for i, j in self.neighbours:
            if self.matrix[i] != self.matrix[j]:
                yield self.matrix[i], self.matrix[j]
                yield self.matrix[j], self.matrix[i]

    def _extremes(self) -> Iterator[_Point]:
        """Yield pairs of an output's probabilities, among them the one of the largest ratio."""
        if len(self.neighbours) == math.comb(self.inputs, 2):
            yield from ((max(column), min(column)) for column in zip(*self.matrix, strict=True))
        else:
            yield from (pair for rows in self._ordered() for pair in zip(*rows, strict=True))

    def _shares(self, row: int) -> tuple[list[int], int]:
        total = math.lcm(*(p.denominator for p in self.matrix[row]))
        return list(accumulate(int(p * total) for p in self.matrix[row])), total


def _power_curve(with_person: _Row, without: _Row) -> Iterator[_Point]:
    """Yield (Q(S), P(S)) for the sets S of outputs whose ratio P/Q is highest."""
    outputs = [(p, q) for p, q in zip(with_person, without, strict=True) if p or q]
    outputs.sort(key=lambda pq: pq[0] / (pq[0] + pq[1]), reverse=True)  # ordered like P/Q, never infinite
    power = level = Fraction(0)
    for p, q in outputs:
        power, level = power + p, level + q
        yield level, power


def _hull(points: Iterable[_Point]) -> list[_Point]:
    """Return the upper hull of points in the unit square, from (0, 0) to (1, 1)."""
    corner = (Fraction(1), Fraction(1))
    hull = [(Fraction(0), Fraction(0))]
    for x, y in sorted({*points, corner}):
        if (x, y) == hull[0]:
            continue
        while len(hull) > 1:
            (a, at_a), (b, at_b) = hull[-2:]
            if (b - a) * (y - at_a) < (at_b - at_a) * (x - a):  # the last point lies above the chord
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _rows(matrix: Iterable[Iterable[Number]], name: str) -> tuple[_Row, ...]:
    try:
        rows = tuple(tuple(exact(entry, name) for entry in row) for row in matrix)
    except TypeError:
        raise InvalidArgument(f"{name} must be rows of numbers", place=name) from None
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidArgument(f"{name} must have rows of one length, and at least one entry", place=name)
    if any(entry < 0 for row in rows for entry in row):
        raise InvalidArgument(f"{name} must not have negative entries", place=name)
    if any(sum(row) != 1 for row in rows):
        hint = "write probabilities as Fractions: the float 0.1 is not one tenth"
        raise InvalidArgument(f"every row of {name} must sum to exactly one", place=name, hints=(hint,))
    return rows


def _pairs(neighbours: Iterable[_Pair] | None, inputs: int) -> tuple[_Pair, ...]:
    if neighbours is None:
        return tuple(combinations(range(inputs), 2))
    pairs = set()
    for pair in neighbours:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidArgument("neighbours must be pairs of inputs", place="neighbours")
        low, high = sorted(count(i, "neighbours", least=0) for i in pair)
        if high >= inputs:
            raise _outside("neighbours", inputs)
        pairs.add((low, high))
    return tuple(sorted(pairs))


def _inside(value: Any, name: str, size: int) -> int:
    """Read an input or an output; the refusal does not repeat it, for it may be private."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or not 0 <= value < size:
        raise _outside(name, size)
    return int(value)


def _outside(name: str, size: int) -> InvalidArgument:
    return InvalidArgument(f"{name} must be whole numbers from 0 to {size - 1}", place=name)
