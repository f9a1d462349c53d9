"""Exactly uniform integers."""

from __future__ import annotations

from typing import overload

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import count
from sfumato.core.entropy import random_bits, random_words

__all__ = ["uniform_below"]


@overload
def uniform_below(bound: int, size: None = None) -> int: ...
@overload
def uniform_below(bound: int, size: int) -> npt.NDArray[np.int64]: ...


def uniform_below(bound: int, size: int | None = None) -> int | npt.NDArray[np.int64]:
    """Draw integers uniformly from 0 to bound - 1.

    Theorem: the lowest b bits are uniform below 2^b >= bound; keeping only those below
    `bound` leaves each of them equally likely. A bound above 2^63 gives an array of
    Python integers.

    >>> 0 <= uniform_below(6) < 6
    True
    """
    bound = count(bound, "bound")
    bits = (bound - 1).bit_length()
    if size is None:
        while (one := random_bits(bits)) >= bound:
            pass
        return one
    size = count(size, "size", least=0)
    if bits > 63:
        return np.array([uniform_below(bound) for _ in range(size)], dtype=object)
    mask = np.uint64((1 << bits) - 1)
    drawn = (random_words(size) & mask).view(np.int64)
    if bound == 1 << bits:
        return drawn
    pending = np.flatnonzero(drawn >= bound)
    while len(pending):
        again = (random_words(len(pending)) & mask).view(np.int64)
        drawn[pending] = again
        pending = pending[again >= bound]
    return drawn
