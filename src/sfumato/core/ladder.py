"""The ladder: noisy totals for every bound on one person's contribution at once, so that none is chosen.

A person's contribution is a vector v of whole numbers, one per group, and r is at least its norm: |v|_1 where
noise is Laplace's, |v|_2 where it is Gaussian. Level j holds norms of about g = 2^j. A person of norm r with
g <= r < 2g is divided over two levels: v (2g - r) / r goes to level j and v 2 (r - g) / r to level j + 1,
which together is v. A person of r <= 1 is in level 0, one of r >= 2^top in level `top`, cut to that norm.
Parts are whole numbers of 1 / `unit`, cut toward zero.

Theorem (one person): let n_j be the norm of a person's part of level j, in units of 2^j. The n_j sum to at
most 1. Proof: r' = |v| <= r. Before they are cut the two norms are (r' / r) (2g - r) / g and
(r' / r) 2 (r - g) / (2g), which sum to r' / r <= 1. Cutting toward zero makes no entry larger, so no norm.
At the ends there is one level, and r' <= 1, or r' 2^top / r <= 2^top.

Theorem (Laplace): discrete Laplace noise of scale 2^j unit / epsilon on all entries of level j is
epsilon-private. Proof: one person moves the entries of level j by n_j 2^j unit in sum, so the loss is at most
the sum of n_j epsilon (the triangle inequality for each entry).

Theorem (Gaussian): the part of level j is spread over that level and the `DEPTH` levels below it: 3/4^(i+1)
of it to level j - i, and 4^-DEPTH to the last. Of the squares of its norms, each in units of its own level,
the sum is n_j^2 (3 + 4^-DEPTH) / 4. Proof: the shares sum to 1; the squares are 9/16 4^-i and 4^-DEPTH, and
9/16 (4/3) (1 - 4^-DEPTH) + 4^-DEPTH is that. Norms over all levels and entries obey the triangle inequality,
and the n_j sum to at most 1, so for two levels the sum of squares is no larger than for one.
With variances that grow by 4 from level to level, the whole costs what `DiscreteGaussianVector` says of the
lowest level's variance: the rho of entries adds up, and is d^2 / (2 sigma^2) for a shift by d; the mu of an
entry is at most |d| m(sigma), so the squares sum to that norm times m(sigma)^2 sigma^2, at its largest.

All that follows from the noisy levels is post-processing: which of them are added up, and what is left out.
Assumes: add or remove one person. Noise is drawn anew for each entry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.events import DiscreteGaussian, DiscreteGaussianVector, Event, Pure
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import InvalidArgument

__all__ = ["CapLadder", "DEPTH", "GaussianLadder", "LaplaceLadder", "divided"]

DEPTH = 4
"""Over how many levels below its own Gaussian noise spreads a part."""

_Totals = npt.NDArray[Any]  # whole numbers of Python, or of 64 bits


def divided(vector: Sequence[int], norm: Fraction, *, top: int, unit: int) -> dict[int, list[int]]:
    """Return a person's parts of levels, in whole numbers of 1 / `unit`; `norm` is at least the vector's.

    >>> divided([3], Fraction(3), top=10, unit=1)
    {1: [1], 2: [2]}
    """
    shares: dict[int, Fraction] = {}
    level = min(max(int(norm), 1).bit_length() - 1, top)
    lower = Fraction(2**level)
    if level == top or norm <= 1:
        shares[level] = min(Fraction(1), lower / norm) if norm else Fraction(1)
    else:
        shares[level], shares[level + 1] = (2 * lower - norm) / norm, 2 * (norm - lower) / norm
    return {
        one: [_toward_zero(unit * share * each) for each in vector] for one, share in shares.items() if share
    }


def _toward_zero(value: Fraction) -> int:
    return int(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapLadder(ABC):
    """Levels 0 to `top`, whose parts are whole numbers of 1 / `unit`."""

    top: int
    unit: int = 1

    def __post_init__(self) -> None:
        if self.top < 0 or self.unit < 1:
            raise InvalidArgument("a ladder has a level and a unit of at least one", place="top")

    @property
    @abstractmethod
    def lowest(self) -> int:
        """The lowest level that is published: 0, or that to which level 0 is spread."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many of the whole numbers that are published make one row."""

    @abstractmethod
    def event(self) -> Event:
        """Return what publishing all levels of all groups costs, once."""

    @abstractmethod
    def noise(self, level: int) -> NoiseLaw:
        """Return the law of the noise on each entry of a level."""

    @abstractmethod
    def published(self, totals: _Totals) -> _Totals:
        """Return what gets noise, of the exact totals of levels 0 to `top`: one row per published level."""

    def release(self, totals: _Totals) -> _Totals:
        """Return the published levels with their noise, in whole numbers of 1 / `steps`; the lowest first."""
        exact = self.published(np.asarray(totals, dtype=object))
        drawn = [self.noise(level).draw(exact.shape[1]) for level in range(self.lowest, self.top + 1)]
        noisy: _Totals = exact + np.array([[int(one) for one in row] for row in drawn], dtype=object)
        return noisy

    def deviations(self) -> list[float]:
        """Return what one unit of the noise of each published level is, in rows."""
        return [self._width(level) / self.steps for level in range(self.lowest, self.top + 1)]

    @abstractmethod
    def _width(self, level: int) -> float:
        """Return the scale or the deviation of the noise of a level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceLadder(CapLadder):
    """A ladder with discrete Laplace noise: epsilon-private.

    >>> ladder = LaplaceLadder(top=14, epsilon=Fraction(1, 2))
    >>> ladder.noise(3).parameter, ladder.event().epsilon()
    (Fraction(16, 1), Fraction(1, 2))
    """

    epsilon: Fraction

    @property
    def lowest(self) -> int:
        return 0

    @property
    def steps(self) -> int:
        return self.unit

    def event(self) -> Event:
        return Pure(loss=self.epsilon)

    def noise(self, level: int) -> LaplaceNoise:
        return LaplaceNoise(2**level * self.unit / self.epsilon)

    def published(self, totals: _Totals) -> _Totals:
        return totals

    def _width(self, level: int) -> float:
        return float(self.noise(level).parameter)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianLadder(CapLadder):
    """A ladder with discrete Gaussian noise, whose variance at the lowest level is `variance`."""

    variance: Fraction

    @property
    def lowest(self) -> int:
        return -DEPTH

    @property
    def steps(self) -> int:
        """Shares are whole numbers of 4^-DEPTH."""
        return self.unit << 2 * DEPTH

    @property
    def l2_squared(self) -> Fraction:
        """The most that the squares of all shifts sum to, each in units of its level: steps times 2^level."""
        return Fraction(self.unit**2 * (3 * 4**DEPTH + 1), 4)

    def event(self) -> Event:
        """Return the event of the lowest level; its norm is raised if a wider level's mu is larger."""
        variances = [self.noise(level).parameter for level in range(self.lowest, self.top + 1)]
        steps = [
            Fraction(DiscreteGaussian(sigma_squared=one, sensitivity=1).mu()) ** 2 * one for one in variances
        ]
        raised = self.l2_squared * max(steps) / steps[0]
        return DiscreteGaussianVector(sigma_squared=self.variance, l2_squared=raised)

    def noise(self, level: int) -> GaussianNoise:
        return GaussianNoise(self.variance * 4 ** (level + DEPTH))

    def published(self, totals: _Totals) -> _Totals:
        spread = np.zeros((self.top + 1 + DEPTH, totals.shape[1]), dtype=object)
        for level, row in enumerate(totals):
            for below, share in enumerate(_SHARES):
                spread[level - below + DEPTH] += share * row
        return spread

    def _width(self, level: int) -> float:
        return math.ldexp(math.sqrt(self.variance), level + DEPTH)


_SHARES = (*(3 * 4 ** (DEPTH - 1 - below) for below in range(DEPTH)), 1)  # of 4^DEPTH
