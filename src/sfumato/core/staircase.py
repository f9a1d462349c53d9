"""Exact integer noise at array speed: a staircase above the law, and exact rejection.

The laws of this package, P(x) proportional to g(x) = exp(-phi(x)), are log-concave and
fall away from zero. Cut the integers into blocks of 2^shift neighbours. A `Staircase`
gives each block an integer weight W >= M * max(g over the block), and one weight to
everything beyond the last block; the weights sum to exactly 2^64, so that one random
word picks a block through an integer alias table, with no rounding at all. Random bits
pick x inside the block, and x is kept with probability M * g(x) / W.

Theorem: x is proposed with probability W / (2^64 * 2^shift) and kept with probability
M * g(x) / W, so what is kept has law proportional to g(x), exactly (von Neumann 1951).
W is an upper bound computed in floats and rounded up; how tight it is changes speed only.

Whether to keep x is decided on 32 random bits: first against the block's least keeping
probability, then in float64 with a rigorous margin, and for the element that the margin
cannot settle in exact rational arithmetic with further bits (`exponential.falls_below`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.core.coins import bernoulli, float_margin
from sfumato.core.entropy import random_bits, random_words
from sfumato.core.exponential import falls_below

__all__ = ["GAUSSIAN", "GEOMETRIC", "LAPLACE", "Staircase", "StaircaseLaw", "staircase"]

_IntArray = npt.NDArray[np.int64]

_UNIFORM_BITS = 32
_ROUND_UP = 1 + 2.0**-36  # far more than the float error of a weight
_LEAST_BLOCKS = 4
_CHUNK = 1 << 15  # keeps every intermediate array of a round in the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class StaircaseLaw:
    """A log-concave law on the integers: P(x) proportional to exp(-phi(|x| / scale))."""

    name: str
    signed: bool
    covered_scales: float  # blocks cover |x| up to this many scales
    power: int  # phi(z) = z^power / power

    def phi(self, z: FloatArray) -> FloatArray:
        """Return the exponent at |x| = z * scale, in floats."""
        return z if self.power == 1 else z * z / 2

    def exponent(self, x: int, scale_power: Fraction) -> Fraction:
        """Return the exponent at x exactly, from scale^power."""
        return Fraction(abs(x) ** self.power) / (self.power * scale_power)


GEOMETRIC = StaircaseLaw(name="geometric", signed=False, covered_scales=15.0, power=1)
LAPLACE = StaircaseLaw(name="Laplace", signed=True, covered_scales=15.0, power=1)
GAUSSIAN = StaircaseLaw(name="Gaussian", signed=True, covered_scales=7.8, power=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase:
    """The proposal for one law at one ratio of scale to block width."""

    law: StaircaseLaw
    blocks: int  # on each side
    multiple: int  # M
    weights: tuple[int, ...]  # W of each block, from the lowest; the last one is the tail's
    decay: Fraction  # the tail's envelope falls by this from block to block
    thresholds: npt.NDArray[np.uint64]
    aliases: npt.NDArray[np.int64]
    sure: npt.NDArray[np.uint64]  # keep without a look at x if the 32 bits are below this
    ratios: FloatArray  # M / W

    @property
    def lowest(self) -> int:
        """The block of the first weight."""
        return -self.blocks if self.law.signed else 0

    def propose(self, size: int) -> _IntArray:
        """Draw weight indices with probabilities weights / 2^64, exactly."""
        words = random_words(size)
        width = np.uint64(64 - (len(self.thresholds) - 1).bit_length())
        columns = (words >> width).view(np.int64)
        words &= np.uint64((1 << int(width)) - 1)
        return np.where(words < self.thresholds.take(columns), columns, self.aliases.take(columns))

    def chances(
        self, values: _IntArray, choices: _IntArray, scales: float | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the probability of keeping each value, times 2^32, and a bound on its float error."""
        phi = self.law.phi(np.abs(values) / scales)
        chance = self.ratios[choices] * np.exp(-phi) * 2.0**_UNIFORM_BITS
        return chance, chance * float_margin(phi)

    def sample(
        self,
        size: int,
        *,
        shifts: int | _IntArray,
        scales: float | FloatArray,
        exact: Callable[[int], Fraction],
    ) -> npt.NDArray[Any]:
        """Draw `size` values; element i has blocks of 2^shifts[i], scales[i], and scale^power exact(i).

        Every scale / 2^shift must lie within the ratios that this staircase was built for.
        An array of Python integers is returned in the event, of probability below
        e^-4000 for scales up to 2^50, that a value does not fit into 64 bits.
        """
        values: npt.NDArray[Any] = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            pending = np.arange(start, min(start + _CHUNK, size))
            while len(pending):
                drawn, kept, wide = self._round(pending, _at(shifts, pending), _at(scales, pending), exact)
                values[pending] = drawn
                if wide:
                    values = values.astype(object)
                    for i, value in wide.items():
                        values[i] = value
                pending = pending[~kept]
        return values

    def _round(
        self,
        elements: _IntArray,
        shifts: int | _IntArray,
        scales: float | FloatArray,
        exact: Callable[[int], Fraction],
    ) -> tuple[_IntArray, npt.NDArray[np.bool_], dict[int, int]]:
        """Propose once for each element: values, which were kept, and kept ones too wide for 64 bits."""
        choices = self.propose(len(elements))
        uniforms, offsets = _uniforms_and_offsets(len(elements), shifts)
        values = (choices + self.lowest << shifts) + offsets
        kept = uniforms < self.sure.take(choices)
        doubtful = np.flatnonzero(~kept)
        if not len(doubtful):
            return values, kept, {}

        x, u, which = values[doubtful], uniforms[doubtful], choices[doubtful]
        chance, margin = self.chances(x, which, _at(scales, doubtful))
        yes = u + 1.0 <= chance - margin
        unsettled = ~yes & (u <= chance + margin)
        tail = len(self.weights) - 1
        kept[doubtful] = yes & (which != tail)

        wide: dict[int, int] = {}
        for j in np.flatnonzero(unsettled & (which != tail)):
            kept[doubtful[j]] = falls_below(
                int(u[j]),
                _UNIFORM_BITS,
                ratio=Fraction(self.multiple, self.weights[which[j]]),
                exponent=self.law.exponent(int(x[j]), exact(int(elements[doubtful[j]]))),
            )
        for j in doubtful[which == tail]:
            element = int(elements[j])
            value = self._beyond(int(_at(shifts, j)), exact(element))
            if value is None:
                continue
            kept[j] = True
            if abs(value) < 2**63:
                values[j] = value
            else:
                wide[element] = value
        return values, kept, wide

    def _beyond(self, shift: int, scale_power: Fraction) -> int | None:
        """Propose once beyond the last block, in exact arithmetic; None if rejected.

        Theorem: the law is log-concave, so from block to block it falls at least as fast
        as between the first two blocks beyond the stairs, and `decay` bounds that.
        """
        envelope = self.weights[-1] * (1 - self.decay) / (2 if self.law.signed else 1)
        block = self.blocks
        while bernoulli(self.decay):
            block += 1
            envelope *= self.decay
        value = (block << shift) + random_bits(shift)
        if self.law.signed and random_bits(1):
            value = -1 - value
        kept = falls_below(
            random_bits(64),
            64,
            ratio=self.multiple / envelope,
            exponent=self.law.exponent(value, scale_power),
        )
        return value if kept else None


@lru_cache(maxsize=512)
def staircase(law: StaircaseLaw, *, low: float, high: float, wide: bool) -> Staircase:
    """Build the staircase for scales from `low` to `high` block widths; blocks of one integer unless wide."""
    blocks = max(_LEAST_BLOCKS, math.ceil(law.covered_scales * high) + 1)
    index = np.arange(-blocks if law.signed else 0, blocks, dtype=np.float64)
    if wide:  # the far edge of a block stands in for its last integer
        near = np.where(index < 0, -index - 1, index)
        far = near + 1
    else:
        near = far = np.abs(index)
    with np.errstate(over="ignore"):
        peak = np.exp(-law.phi(near / high))
        least = np.exp(-law.phi(far / low))
        beyond, next_beyond = np.exp(-law.phi(np.array([blocks, blocks + 1.0]) / high))
    fall = next_beyond / beyond if beyond > 0 else 0.0
    decay = Fraction(min(2**16 - 1, math.floor(fall * _ROUND_UP * 2**16) + 1), 2**16)
    sides = 2 if law.signed else 1
    tail = sides * float(beyond) * _ROUND_UP / float(1 - decay)

    multiple = math.floor(2.0**64 / (float(peak.sum()) + tail) * (1 - 2.0**-30))
    # One more than needed, so that a weight is also above what underflowed to zero.
    weights = [math.ceil(float(p) * multiple * _ROUND_UP) + 1 for p in peak]
    weights.append(2**64 - sum(weights))
    if weights[-1] < multiple * tail + 1 or fall * _ROUND_UP > decay:
        raise AssertionError("the staircase does not cover its law")  # unreachable: M leaves 2^-30 of room
    ratios = multiple / np.array(weights, dtype=np.float64)
    sure = np.floor(ratios[:-1] * least * (1 - 2.0**-36) * 2.0**_UNIFORM_BITS)
    thresholds, aliases = _alias_table(weights)
    return Staircase(
        law=law,
        blocks=blocks,
        multiple=multiple,
        weights=tuple(weights),
        decay=decay,
        thresholds=thresholds,
        aliases=aliases,
        sure=np.append(sure, 0.0).astype(np.uint64),
        ratios=ratios,
    )


def _alias_table(weights: list[int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Share 2^64 among columns of equal width, each holding at most two weights (Walker 1977).

    Integers throughout: the table's law is weights / 2^64 exactly.
    """
    columns = 1 << (len(weights) - 1).bit_length()
    width = 2**64 // columns
    left = weights + [0] * (columns - len(weights))
    thresholds, aliases = [width] * columns, list(range(columns))
    small = [i for i, weight in enumerate(left) if weight < width]
    large = [i for i, weight in enumerate(left) if weight >= width]
    while small:
        i, donor = small.pop(), large[-1]
        thresholds[i], aliases[i] = left[i], donor
        left[donor] -= width - left[i]
        if left[donor] < width:
            small.append(large.pop())
    return np.array(thresholds, dtype=np.uint64), np.array(aliases, dtype=np.int64)


def _uniforms_and_offsets(size: int, shifts: int | _IntArray) -> tuple[npt.NDArray[Any], int | _IntArray]:
    """Draw 32 bits for each decision and shifts[i] bits for each place within a block."""
    widest = int(np.max(shifts))
    if widest == 0:
        return random_words((size + 1) // 2).view(np.uint32)[:size], 0
    words = random_words(size)
    uniforms = words >> np.uint64(32)
    places = words if widest <= 32 else random_words(size)
    return uniforms, places.view(np.int64) & ((np.int64(1) << shifts) - 1)


def _at(values: Any, where: Any) -> Any:
    """Index one value per element, or pass on one value for all."""
    return values[where] if isinstance(values, np.ndarray) else values
