"""Questions with several answers per person: which person holds which answers, in any input form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import count
from sfumato.core.entropy import random_words
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Integers

__all__ = ["AnswerSets", "Sets", "uniform_each"]


Sets = Array | Sequence[npt.ArrayLike] | tuple[npt.ArrayLike, npt.ArrayLike]
"""A matrix of booleans (a row per person, a column per answer), a list of each person's answers, or a pair
(values, offsets): person i holds values[offsets[i] : offsets[i + 1]]."""


def uniform_each(bounds: Integers) -> Integers:
    """Draw an integer uniformly below each bound, which is at least 1 and below 2^53.

    Theorem: as `core.uniform_below`, with the bits that each bound needs.
    """
    bits = np.frexp((bounds - 1).astype(np.float64))[1].astype(np.uint64)
    masks = (np.uint64(1) << bits) - np.uint64(1)
    drawn = (random_words(len(bounds)) & masks).view(np.int64)
    pending = np.flatnonzero(drawn >= bounds)
    while len(pending):
        drawn[pending] = (random_words(len(pending)) & masks[pending]).view(np.int64)
        pending = pending[drawn[pending] >= bounds[pending]]
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerSets:
    """The answers of many people, each of whom holds an answer once or not at all.

    >>> AnswerSets.read([[2, 0], [], [1, 1]], size=3).lengths
    array([2, 0, 1])
    """

    values: Integers
    offsets: Integers

    @classmethod
    def read(cls, given: Sets, *, size: int) -> AnswerSets:
        """Read sets of answers below `size`; what is wrong is its sender's mistake, and is not repeated."""
        if isinstance(given, np.ndarray):
            if given.ndim != 2 or given.dtype != np.bool_ or given.shape[1] != size:
                raise _unreadable(f"a matrix must hold booleans, in {size} columns")
            owners, values = np.nonzero(given)
            return cls._distinct(owners, values, len(given), size)
        if isinstance(given, tuple):
            if len(given) != 2:
                raise _unreadable("a tuple must be a pair of values and offsets")
            values, offsets = _whole(given[0]), _whole(given[1])
            if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(values):
                raise _unreadable("offsets must begin with 0 and end with the number of values")
            if (np.diff(offsets) < 0).any():
                raise _unreadable("offsets must not decrease")
        else:
            held = [_whole(each) for each in given]
            offsets = np.concatenate([[0], np.cumsum([len(each) for each in held], dtype=np.int64)])
            values = np.concatenate([np.zeros(0, dtype=np.int64), *held])
        if len(values) and not (values.min() >= 0 and values.max() < size):
            raise _unreadable(f"answers must be integers from 0 to {size - 1}")
        people = len(offsets) - 1
        return cls._distinct(np.repeat(np.arange(people), np.diff(offsets)), values, people, size)

    @classmethod
    def _distinct(cls, owners: Integers, values: Integers, people: int, size: int) -> AnswerSets:
        keys = owners * size + values
        if len(keys) and not (np.diff(keys) > 0).all():
            keys = np.unique(keys)
        offsets = np.searchsorted(keys, np.arange(people + 1, dtype=np.int64) * size)
        return cls(values=keys % size, offsets=offsets.astype(np.int64))

    @property
    def lengths(self) -> Integers:
        """How many answers each person holds."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Integers:
        """Whose each value is."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def ranks(self) -> Integers:
        """Which of its owner's each value is: 0, 1, 2, ..."""
        return np.arange(len(self.values)) - np.repeat(self.offsets[:-1], self.lengths)

    def at_most(self, most: int) -> AnswerSets:
        """Return sets of at most `most` answers: of those who hold more, a uniformly random part.

        Theorem: the first `most` steps of a shuffle (Fisher and Yates 1938) put each part in front
        equally often.
        """
        count(most, "most")
        over = np.flatnonzero(self.lengths > most)
        if not len(over):
            return self
        values, start = self.values.copy(), self.offsets[over]
        for step in range(most):
            here, there = start + step, start + step + uniform_each(self.lengths[over] - step)
            values[here], values[there] = values[there], values[here]
        return AnswerSets(
            values=values[self.ranks < most],
            offsets=np.concatenate([[0], np.cumsum(np.minimum(self.lengths, most))]),
        )

    def padded(self, most: int, *, size: int) -> Integers:
        """Return a row of exactly `most` distinct places per person; an empty place j is dummy size + j."""
        places = np.tile(np.arange(size, size + most), (len(self.lengths), 1))
        places[self.owners, self.ranks] = self.values
        return places


def _whole(given: npt.ArrayLike) -> Integers:
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise _unreadable("answers must be flat lists of whole numbers")
    return array.astype(np.int64)


def _unreadable(message: str) -> InvalidArgument:
    return InvalidArgument(
        message,
        place="answers",
        hints=("give a list of each person's answers, or the pair (values, offsets)",),
    )
