"""Priorities: a salted hash decides which groups and values of a unit count, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["different_pairs", "mixed", "most_per_owner", "starts_of"]

_Words = npt.NDArray[np.uint64]
_Integers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_ZERO = np.zeros(1, dtype=np.int64)


def mixed(values: _Words) -> _Words:
    """Return a one-to-one scrambling of 64-bit words: shifts and odd multipliers can be undone."""
    words = values ^ (values >> _HALF)
    for _ in range(2):
        words *= _MULTIPLIER
        words ^= words >> _HALF
    return words


def starts_of(values: npt.NDArray[Any]) -> _Integers:
    """Return where each run of equal values begins."""
    return np.concatenate((_ZERO, np.flatnonzero(values[1:] != values[:-1]) + 1))


def different_pairs(owners: _Integers, values: _Integers) -> tuple[_Integers, _Integers]:
    """Return the different pairs of two columns of numbers from zero, in order.

    >>> [column.tolist() for column in different_pairs(np.array([1, 0, 1]), np.array([2, 5, 2]))]
    [[0, 1], [5, 2]]
    """
    bits = int(values.max(initial=0)).bit_length()
    if int(owners.max(initial=0)).bit_length() + bits < 64:  # then a pair is one number
        pairs = np.sort((owners << bits) | values)
        pairs = pairs[starts_of(pairs)] if len(pairs) else pairs
        return pairs >> bits, pairs & ((1 << bits) - 1)
    order = np.lexsort((values, owners))
    owners, values = owners[order], values[order]
    new = np.ones(len(owners), dtype=np.bool_)
    new[1:] = (owners[1:] != owners[:-1]) | (values[1:] != values[:-1])
    return owners[new], values[new]


def most_per_owner(priorities: _Words, starts: _Integers, most: int) -> _Flags:
    """Flag the `most` entries of smallest priority of each owner; of equal ones, the earlier entries.

    An owner's number and the upper bits of the priorities are sorted as one word; where the bits
    that are left do not decide between the last entry that is kept and the next, all bits do.

    >>> most_per_owner(np.array([9, 5, 5, 7], dtype=np.uint64), np.array([0, 3]), 1).tolist()
    [False, True, False, True]
    """
    size = len(priorities)
    most = min(most, size)  # however large: a number that numpy cannot hold would fail, and only here
    counts = np.diff(starts, append=size)
    bits = np.uint64(max(1, len(starts).bit_length()))
    owners = np.arange(len(starts), dtype=np.uint64) << (np.uint64(64) - bits)
    words = np.repeat(owners, counts) | (priorities >> bits)
    ordered = np.sort(words)
    last = starts + np.minimum(counts, most) - 1
    limits = ordered[last]
    keep: _Flags = words <= np.repeat(limits, counts)
    undecided = (counts > most) & (ordered[np.minimum(last + 1, size - 1)] == limits)
    for owner in np.flatnonzero(undecided).tolist():
        begin = int(starts[owner])
        order = np.argsort(priorities[begin : begin + int(counts[owner])], kind="stable")
        keep[begin : begin + int(counts[owner])] = False
        keep[begin + order[:most]] = True
    return keep
