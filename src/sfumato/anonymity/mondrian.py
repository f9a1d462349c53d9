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
from sfumato.anonymity.columns import Coded, Flags, Floats, Integers
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
    never: Flags
    tried: Flags

    @property
    def of_unit(self) -> Integers:
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.units)))

    def chosen(self, which: Flags) -> _Parts:
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
    held = sensitive if goal.about_values else ()
    table = Classes.of(np.zeros(len(units), dtype=np.int64), 1, units, held)
    if not goal.holds(table).all():
        raise goal.unreached()
    positions = np.array([ladder.position[ladder.column.codes[units.examples]] for ladder in ladders])
    cutting = _Cutting(
        ladders=ladders, positions=positions, units=units, goal=goal, sensitive=held, table=table
    )
    of_unit = np.empty(len(units), dtype=np.int64)
    done = 0
    nothing = np.zeros((1, len(ladders)), bool)
    left = cutting.fresh(np.arange(len(units)), np.zeros(1, dtype=np.int64), nothing)
    while len(left.starts):
        axis, possible = cutting.widest(left)
        final = left.chosen(~possible)
        of_unit[final.units] = done + final.of_unit
        done += len(final.starts)
        left, axis = left.chosen(possible), axis[possible]
        if len(left.starts):
            left = cutting.cut(left, axis)
    return of_unit


@dataclass(frozen=True, kw_only=True)
class _Cutting:
    """What is cut: units, their `positions` along each column, and what is wanted of every half."""

    ladders: Sequence[Ladder]
    positions: Integers
    units: Units
    goal: Goal
    sensitive: Sequence[Coded]
    table: Classes

    def fresh(self, order: Integers, starts: Integers, never: Flags) -> _Parts:
        """Return parts that nothing was tried on yet."""
        along = self.positions[:, order]
        low, high = (ends.reduceat(along, starts, axis=1).T for ends in (np.minimum, np.maximum))
        return _Parts(units=order, starts=starts, low=low, high=high, never=never, tried=never.copy())

    def widest(self, left: _Parts) -> tuple[Integers, Flags]:
        """Return the widest column of each part that is not tried yet, and whether there is one."""
        widths: Floats = np.empty(left.low.shape)
        for axis, ladder in enumerate(self.ladders):
            low, high = left.low[:, axis], left.high[:, axis]
            width = certainty(ladder.column, low, high + 1, natural=ladder.natural)
            widths[:, axis] = np.where((low < high) & ~left.tried[:, axis], width, -1.0)
        axis = widths.argmax(axis=1)
        return axis, widths[np.arange(len(axis)), axis] >= 0

    def cut(self, left: _Parts, axis: Integers) -> _Parts:
        """Cut every part along its column if that is allowed; else note that it was tried."""
        part = left.of_unit
        key = part * int(self.positions.max() + 1) + self.positions[axis[part], left.units]
        order = np.argsort(key)  # ties are never parted, so their order does not matter
        part, key, sorted_units = part[order], key[order], left.units[order]
        last = np.cumsum(np.diff(left.starts, append=len(part))) - 1  # where each part ends
        total = np.cumsum(self.units.weights[sorted_units])
        before = np.concatenate([[0], total[last[:-1]]])
        size = total[last] - before

        # A cut lies after a unit whose successor has another value in the same part; every part has one.
        cuts = np.flatnonzero((key[1:] != key[:-1]) & (part[1:] == part[:-1]))
        first = np.searchsorted(part[cuts], np.arange(len(size)))
        uneven = np.abs(2 * (total[cuts] - before[part[cuts]]) - size[part[cuts]])
        evenest = np.minimum.reduceat(uneven, first)
        fits = np.flatnonzero(uneven == evenest[part[cuts]])
        lowest = np.searchsorted(part[cuts[fits]], np.arange(len(size)))  # of each part, if there are two
        cut = cuts[fits[lowest]]
        half = total[cut] - before

        enough = np.minimum(half, size - half) >= self.goal.k
        good = enough & self._diverse(enough, part, cut, sorted_units)
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
        starts, hopeless = np.cumsum(lengths) - lengths, np.repeat(never[good], 2, axis=0)
        halves = self.fresh(sorted_units[inside], starts, hopeless)
        halves = replace(halves, starts=len(kept.units) + starts)
        pairs = {name: (old, getattr(halves, name)) for name, old in vars(kept).items()}
        return _Parts(**{name: np.concatenate(both) for name, both in pairs.items()})

    def _diverse(self, enough: Flags, part: Integers, cut: Integers, order: Integers) -> Flags:
        """Return for which parts both halves hold what is wanted of sensitive columns."""
        found = np.ones(len(cut), dtype=bool)
        if not self.sensitive or not enough.any():
            return found
        inside = enough[part]
        right = np.arange(len(part)) > cut[part]
        number = ((np.cumsum(enough) - 1)[part] * 2 + right)[inside]
        halves = Classes.of(number, 2 * int(enough.sum()), self.units, self.sensitive, order[inside])
        found[enough] = self.goal.holds(halves, self.table).reshape(-1, 2).all(axis=1)
        return found
