"""Sampling: which units take part in a step, each by a coin of its own, and which of their rows.

Theorem: each unit is in the sample with probability exactly `rate`, independently of all others, for `coins`
are exact and drawn from the operating system. Which rows of a unit count, where it has more than `most`, is
decided by random words of its own. So the samples of two neighbouring datasets can be coupled such that all
other units appear in both alike: what `core.events.PoissonSubsampled` assumes. An empty sample is a sample.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.core.coins import bernoulli
from sfumato.core.entropy import random_words

__all__ = ["UnitSampler"]

_Places = npt.NDArray[np.int64]


class UnitSampler:
    """Draws units, each with probability `rate`, with at most `most` of the rows of each."""

    def __init__(self, sizes: _Places, rate: Fraction, most: int) -> None:
        self._sizes, self._rate, self._most = sizes, rate, most
        self._starts = np.cumsum(sizes) - sizes

    def draw(self) -> tuple[_Places, _Places]:
        """Return the places of the rows that count, a unit's own beside each other, and how many each has."""
        chosen = np.flatnonzero(bernoulli(self._rate, len(self._sizes)))
        sizes = self._sizes[chosen]
        owners = np.repeat(np.arange(len(chosen)), sizes)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = np.repeat(self._starts[chosen], sizes) + within
        if not len(sizes) or sizes.max() <= self._most:
            return rows, sizes
        order = np.lexsort((random_words(len(rows)), owners))  # each unit's rows in an order of its own
        kept = order[within < self._most]
        return rows[kept], np.minimum(sizes, self._most)
