"""Mondrian: cut the rows in two, again and again, along the column that is widest, while the goal allows it.

The method of LeFevre, DeWitt and Ramakrishnan 2006, strict: rows with equal values are never parted, so
that the classes are a function of the values and not of the order of rows. All parts are worked on at
once: each round sorts the units that are still in play, and finds the cut of every part by adding up.

A part is cut along the column in which it is widest, as a share of the whole column's width; between the two
neighbouring values that leave the most equal halves (at the median, if it is no tie). If a half
falls short of the goal, the next widest column is tried; if none will do, the part is a class.

Theorem: no cut along a column leaves a larger smaller half than the most equal one, and the halves
of a smaller part are smaller. So a column that k forbids need not be tried again in any part of that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.anonymity.classes import Classes, Units
from sfumato.anonymity.columns import Coded, Floats, Integers
from sfumato.anonymity.goals import Goal
from sfumato.anonymity.ladders import Ladder, certainty

__all__ = ["parts"]


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """Parts of the units: each is a stretch of `units`, from its entry in `starts` to the next.

    `low` and `high` are the ends of each part along each column. `never` are the columns that no
    part of it can be cut along, `tried` those that this part was not.
    """

    units: Integers
    starts: Integers
    low: Integers
    high: Integers
    never: np.ndarray
    tried: np.ndarray

    @property
    def of_unit(self) -> Integers:
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.units)))

    def chosen(self, which: np.ndarray) -> _Parts:
        """Return some of the parts."""
        lengths = np.diff(self.starts, append=len(self.units))[which]
        return _Parts(
            units=self.units[which[self.of_unit]],
            starts=np.cumsum(lengths) - lengths,
            low=self.low[which],
            high=self.high[which],
            never=self.never[which],
            tried=self.tried[which],
        )


def parts(ladders: Sequence[Ladder], units: Units, goal: Goal, sensitive: Sequence[Coded]) -> Integers:
    """Return the class of each unit; a unit has one value in each column, and in each sensitive one."""
    positions = np.array([ladder.position[ladder.column.codes[units.examples]] for ladder in ladders])
    held = sensitive if goal.about_values else ()
    table = Classes.of(np.zeros(len(units), dtype=np.int64), 1, units, held)
    if not goal.holds(table).all():
        raise goal.unreached()
    of_unit = np.empty(len(units), dtype=np.int64)
    done = 0
    left = _fresh(
        positions, np.arange(len(units)), np.zeros(1, dtype=np.int64), np.zeros((1, len(ladders)), bool)
    )
    while len(left.starts):
        axis, possible = _widest(left, ladders)
        final = left.chosen(~possible)
        of_unit[final.units] = done + final.of_unit
        done += len(final.starts)
        left, axis = left.chosen(possible), axis[possible]
        if len(left.starts):
            left = _round(left, axis, positions, units, goal, held, table)
    return of_unit


def _fresh(positions: Integers, order: Integers, starts: Integers, never: np.ndarray) -> _Parts:
    shape = (len(starts), len(positions))
    low, high = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    for axis, along in enumerate(positions):
        values = along[order]
        low[:, axis] = np.minimum.reduceat(values, starts)
        high[:, axis] = np.maximum.reduceat(values, starts)
    return _Parts(units=order, starts=starts, low=low, high=high, never=never, tried=never.copy())


def _widest(left: _Parts, ladders: Sequence[Ladder]) -> tuple[Integers, np.ndarray]:
    """Return the widest column of each part that is not tried yet, and whether there is one."""
    widths: Floats = np.empty(left.low.shape)
    for axis, ladder in enumerate(ladders):
        low, high = left.low[:, axis], left.high[:, axis]
        width = certainty(ladder.column, low, high + 1, natural=ladder.natural)
        widths[:, axis] = np.where((low < high) & ~left.tried[:, axis], width, -1.0)
    axis = widths.argmax(axis=1)
    return axis, widths[np.arange(len(axis)), axis] >= 0


def _round(
    left: _Parts,
    axis: Integers,
    positions: Integers,
    units: Units,
    goal: Goal,
    sensitive: Sequence[Coded],
    table: Classes,
) -> _Parts:
    """Cut every part along its column if that is allowed; else note that it was tried."""
    part = left.of_unit
    along = positions[axis[part], left.units]
    key = part * int(positions.max() + 1) + along
    order = np.argsort(key)  # ties are never parted, so their order does not matter
    part, key, sorted_units = part[order], key[order], left.units[order]
    last = np.cumsum(np.diff(left.starts, append=len(part))) - 1  # where each part ends
    total = np.cumsum(units.weights[sorted_units])
    before = np.concatenate([[0], total[last[:-1]]])
    size = total[last] - before

    # A cut lies after a unit whose successor has another value in the same part; every part has one.
    cuts = np.flatnonzero((key[1:] != key[:-1]) & (part[1:] == part[:-1]))
    first = np.searchsorted(part[cuts], np.arange(len(size)))
    uneven = np.abs(2 * (total[cuts] - before[part[cuts]]) - size[part[cuts]])
    evenest = np.minimum.reduceat(uneven, first)
    fits = np.flatnonzero(uneven == evenest[part[cuts]])
    cut = cuts[fits[np.searchsorted(part[cuts[fits]], np.arange(len(size)))]]  # the lowest, if there are two
    half = total[cut] - before

    enough = np.minimum(half, size - half) >= goal.k
    good = enough & _diverse(enough, part, cut, sorted_units, units, goal, sensitive, table)
    never, tried = left.never.copy(), left.tried.copy()
    numbers = np.arange(len(size))
    never[numbers[~enough], axis[~enough]] = True
    tried[numbers[~good], axis[~good]] = True
    tried |= never
    kept = replace(left, units=sorted_units, never=never, tried=tried).chosen(~good)
    if not good.any():
        return kept
    inside = good[part]
    ends = np.sort(np.concatenate([last[good], cut[good]]))
    lengths = np.diff(np.cumsum(inside)[ends], prepend=0)
    halves = _fresh(
        positions, sorted_units[inside], np.cumsum(lengths) - lengths, np.repeat(never[good], 2, axis=0)
    )
    return _Parts(
        units=np.concatenate([kept.units, halves.units]),
        starts=np.concatenate([kept.starts, len(kept.units) + halves.starts]),
        low=np.concatenate([kept.low, halves.low]),
        high=np.concatenate([kept.high, halves.high]),
        never=np.concatenate([kept.never, halves.never]),
        tried=np.concatenate([kept.tried, halves.tried]),
    )


def _diverse(
    enough: np.ndarray,
    part: Integers,
    cut: Integers,
    order: Integers,
    units: Units,
    goal: Goal,
    sensitive: Sequence[Coded],
    table: Classes,
) -> np.ndarray:
    """Return for which parts both halves hold what is wanted of sensitive columns."""
    found = np.ones(len(cut), dtype=bool)
    if not sensitive or not enough.any():
        return found
    inside = enough[part]
    right = np.arange(len(part)) > cut[part]
    number = ((np.cumsum(enough) - 1)[part] * 2 + right)[inside]
    halves = Classes.of(number, 2 * int(enough.sum()), units, sensitive, order[inside])
    found[enough] = goal.holds(halves, table).reshape(-1, 2).all(axis=1)
    return found
