"""Ladders: a column and its generalisations, level upon level, up to `*`, which stands for every value.

Levels nest: what is one value on a level is one value on all above. So the values of a column can be put
in an order in which whatever a generalised value stands for is a run of neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.anonymity.columns import Coded, Floats, Integers, texts_of
from sfumato.errors import InvalidArgument

__all__ = ["Ladder", "Level", "STAR", "certainty", "levelled"]

STAR = "*"


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level of a column: the group of each value, and what each group is called.

    `costs` say how much of the column a group leaves open, from 0 to 1; see `certainty`.
    """

    groups: Integers
    labels: tuple[str | None, ...]
    costs: Floats


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """A column and its levels: the first has the values as they are, the last is `*`."""

    column: Coded
    levels: tuple[Level, ...]

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.levels) - 1

    @cached_property
    def order(self) -> Integers:
        """The codes of the values, in an order in which every group of every level is a run."""
        return np.lexsort([level.groups for level in self.levels])

    @cached_property
    def position(self) -> Integers:
        """The place of each code in that order."""
        position = np.empty(len(self.order), dtype=np.int64)
        position[self.order] = np.arange(len(self.order))
        return position

    @cached_property
    def natural(self) -> bool:
        """Whether that order is the order of the values."""
        return bool((self.order[1:] > self.order[:-1]).all())

    def runs(self, level: int) -> tuple[Integers, Integers]:
        """Return where the run of each group of a level begins, and where it has ended."""
        sizes = np.bincount(self.levels[level].groups)
        start = np.full(len(sizes), len(self.order))
        np.minimum.at(start, self.levels[level].groups, self.position)
        return start, start + sizes


def certainty(column: Coded, start: Integers, stop: Integers, *, natural: bool = True) -> Floats:
    """Return how much of a column is left open by knowing that a value is in a run, start to stop.

    Definition: the normalised certainty penalty (Xu et al. 2006). Numbers and moments: the width of the run,
    as a share of the width of the column. Categories: 0 for a run of one, else the number of values in it,
    as a share of all. So it is for numbers too where a run has a missing value among others.
    """
    many = stop - start
    cost = np.where(many > 1, many / max(column.size, 1), 0.0)
    places = column.places
    if places is not None and natural:
        inside = stop <= len(places)
        last = np.minimum(stop, len(places)) - 1
        first = np.minimum(start, len(places) - 1)
        cost = np.where(inside, places[last] - places[first], cost)
    return np.where(many == column.size, 1.0 if column.size > 1 else 0.0, cost)


def levelled(column: Coded, middle: Sequence[tuple[Integers, Sequence[str], Floats | None]]) -> Ladder:
    """Put levels between the values of a column and `*`; refuse levels that do not nest.

    Each level is given for the values that are not missing. NaN and NULL are groups of their own on
    every level but the top.
    """
    known = column.size - column.missing
    alone = np.arange(column.size)
    ends = texts_of(column.values.slice(known))
    levels = [Level(groups=alone, labels=(), costs=np.zeros(column.size))]
    for number, (groups, labels, costs) in enumerate(middle, start=1):
        every = np.concatenate([groups, len(labels) + np.arange(column.missing)])
        sizes = np.bincount(every, minlength=len(labels) + column.missing)
        counted = np.where(sizes > 1, sizes / max(column.size, 1), 0.0)
        if costs is not None:
            counted[: len(labels)] = costs
        _nest(column.name, number, levels[-1].groups, every)
        levels.append(Level(groups=every, labels=(*labels, *ends), costs=counted))
    whole = np.array([1.0 if column.size > 1 else 0.0])
    levels.append(Level(groups=np.zeros(column.size, dtype=np.int64), labels=(STAR,), costs=whole))
    return Ladder(column=column, levels=tuple(levels))


def _nest(name: str, number: int, below: Integers, above: Integers) -> None:
    parent = np.zeros(int(below.max(initial=0)) + 1, dtype=np.int64)
    parent[below] = above
    if (parent[below] != above).any():
        raise InvalidArgument(
            f"level {number} of the hierarchy of `{name}` divides what is one value on level {number - 1}",
            place=name,
            hints=("levels only join: whatever has one name on a level has one name on the next",),
        )
