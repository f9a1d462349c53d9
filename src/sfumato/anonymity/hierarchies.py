"""Hierarchies: how values of a column may be generalised, stated without looking at the table.

    Intervals(widths=(5, 20), low=0, high=120)    37 -> [35, 40) -> [20, 40) -> *
    Prefixes(keep=(4, 3))                         53715 -> 5371* -> 537** -> *
    Calendar(steps=("month", "year"))             1984-05-17 -> 1984-05 -> 1984 -> *
    Levels(parents={"Masters": ("Degree",), ..})  Masters -> Degree -> *
    Flat()                                        anything -> *

A value that a hierarchy does not cover is refused, by the name of the column and never by the value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity.columns import Coded, Floats, Integers, Scale
from sfumato.anonymity.ladders import STAR, Ladder, levelled
from sfumato.core.arguments import Number, budget_quantity, count, exact
from sfumato.errors import InvalidArgument

__all__ = ["Calendar", "Flat", "Hierarchy", "Intervals", "Levels", "Prefixes"]

_UNCOVERED = "level 1 of its hierarchy does not cover every value"
_MOST_INTERVALS = 1_000_000
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_STEPS: dict[str, Callable[[int], str]] = {  # how a period is called, by its number
    "day": lambda day: str(np.datetime64(day, "D")),
    "month": lambda month: f"{month // 12:04d}-{month % 12 + 1:02d}",
    "quarter": lambda quarter: f"{quarter // 4:04d}-Q{quarter % 4 + 1}",
    "year": lambda year: f"{year:04d}",
    "decade": lambda decade: f"{decade * 10:04d}s",
    "century": lambda century: f"{century * 100:04d} to {century * 100 + 99:04d}",
}


class Hierarchy(ABC):
    """A way to generalise a column, level upon level.

    >>> isinstance(Flat(), Hierarchy), isinstance(Prefixes(keep=(2,)), Hierarchy)
    (True, True)
    """

    @abstractmethod
    def ladder(self, column: Coded) -> Ladder:
        """Return the levels of a column; refuse a column that this is not for."""


@dataclass(frozen=True, slots=True)
class Flat(Hierarchy):
    """A value is shown as it is, or as `*`.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"sex": ["f", "m", "f", "m"]})
    >>> made = reach(people, ["sex"], Goal(k=4), method="recoding", hierarchies={"sex": Flat()})
    >>> made.table["sex"].unique().to_pylist()
    ['*']
    """

    def ladder(self, column: Coded) -> Ladder:
        """Return the two levels of any column."""
        return levelled(column, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals(Hierarchy):
    """Numbers in intervals that begin at `low`, each width a multiple of the one before.

    Values lie between `low` and `high`, both included; without `high` there is no upper bound.
    An interval has its lower end and not its upper one: [20, 25).

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"age": [31, 34, 52, 54]})
    >>> ages = Intervals(widths=(5, 10), low=0, high=120)
    >>> made = reach(people, ["age"], Goal(k=2), method="recoding", hierarchies={"age": ages})
    >>> made.table["age"].to_pylist()
    ['[30, 35)', '[30, 35)', '[50, 55)', '[50, 55)']
    """

    widths: tuple[Number, ...]
    low: Number = 0
    high: Number | None = None

    def __post_init__(self) -> None:
        if not self.widths:
            raise InvalidArgument("intervals need widths", place="widths", hints=("widths=(5, 10, 20)",))
        widths = [budget_quantity(width, "widths") for width in self.widths]
        for one, other in pairwise(widths):
            if (other / one).denominator != 1 or other == one:
                raise InvalidArgument(
                    "each width must be a multiple of the one before",
                    place="widths",
                    hints=("5, 10, 20 nest; 5, 12 do not: [10, 15) would lie in two intervals",),
                )
        if self.high is not None and _written(self.high, "high") <= _written(self.low, "low"):
            raise InvalidArgument("`high` must be above `low`", place="high")

    def ladder(self, column: Coded) -> Ladder:
        """Return the levels of a column of numbers."""
        if column.scale is not Scale.NUMBER:
            raise _unfit(column, "intervals are for numbers", "Prefixes are for texts, Calendar for dates")
        low, widths = _written(self.low, "low"), [budget_quantity(width, "widths") for width in self.widths]
        finest = self._finest(column, low, widths[0])
        numbers = column.numbers
        middle = []
        for width in widths:
            which, groups = np.unique(finest // int(width / widths[0]), return_inverse=True)
            begins = [low + width * int(index) for index in which]
            labels = [f"[{_shown(begin)}, {_shown(begin + width)})" for begin in begins]
            ends = [(float(begin), float(begin + width)) for begin in begins]
            middle.append((groups, labels, _widths(ends, numbers, column.places)))
        return levelled(column, middle)

    def _finest(self, column: Coded, low: Fraction, width: Fraction) -> Integers:
        """Return the number of the narrowest interval that each value lies in."""
        known = column.known
        if len(known) == 0:
            return np.zeros(0, dtype=np.int64)
        least, most = known[0].as_py(), known[-1].as_py()
        high = math.inf if self.high is None else _written(self.high, "high")
        infinite = least in (-math.inf, math.inf) or most == math.inf
        if infinite or _written(least, column.name) < low or _written(most, column.name) > high:
            raise _unfit(column, _UNCOVERED, "widen `low` and `high`")
        many = int((_written(most, column.name) - low) / width) + 2
        whole = low.denominator == width.denominator == 1
        if pa.types.is_integer(known.type) and whole and -(2**62) < low < 2**62 and most < 2**62:
            return np.asarray((np.asarray(known.cast(pa.int64())) - int(low)) // int(width))
        if many > _MOST_INTERVALS:
            raise _unfit(column, "there would be more than a million intervals", "make the widths larger")
        # An end is compared as the float that it is printed as, so that what is shown is what is true.
        ends = np.array([float(low + width * index) for index in range(many)])
        return np.searchsorted(ends, column.numbers, side="right") - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes(Hierarchy):
    """Texts by their beginnings: each level keeps a number of characters.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"zip": ["53715", "53710", "53703", "53706"]})
    >>> zips = Prefixes(keep=(4, 3))
    >>> made = reach(people, ["zip"], Goal(k=2), method="recoding", hierarchies={"zip": zips})
    >>> made.table["zip"].to_pylist()
    ['5370*', '5370*', '5371*', '5371*']
    """

    keep: tuple[int, ...]

    def __post_init__(self) -> None:
        lengths = [count(length, "keep") for length in self.keep]
        if not lengths or any(one <= other for one, other in pairwise(lengths)):
            raise InvalidArgument(
                "prefixes get shorter from level to level", place="keep", hints=("keep=(4, 3, 2)",)
            )

    def ladder(self, column: Coded) -> Ladder:
        """Return the levels of a column of texts."""
        types = pa.types
        if not (types.is_string(column.values.type) or types.is_large_string(column.values.type)):
            hint = "Intervals are for numbers, Calendar for dates"
            raise _unfit(column, "prefixes are for texts", hint)
        texts = column.known_texts()
        longest = max(map(len, texts), default=0)
        middle = []
        for length in self.keep:
            labels, groups = _grouped([text[:length] for text in texts])
            middle.append((groups, [label + STAR * max(longest - length, 1) for label in labels], None))
        return levelled(column, middle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar(Hierarchy):
    """Dates and timestamps by day, month, quarter, year, decade, century; those of them that are named.

    >>> import datetime
    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"born": [datetime.date(1980, 1, 3), datetime.date(1980, 1, 30)]})
    >>> made = reach(people, ["born"], Goal(k=2), method="recoding", hierarchies={"born": Calendar()})
    >>> made.table["born"].to_pylist()
    ['1980-01', '1980-01']
    """

    steps: tuple[str, ...] = ("month", "year", "decade")

    def __post_init__(self) -> None:
        if not self.steps or list(self.steps) != [step for step in _STEPS if step in self.steps]:
            raise InvalidArgument(
                "the steps of a calendar get longer", place="steps", hints=(f"from {', '.join(_STEPS)}",)
            )

    def ladder(self, column: Coded) -> Ladder:
        """Return the levels of a column of dates or timestamps."""
        if column.scale is not Scale.MOMENT:
            raise _unfit(column, "a calendar is for dates", "is it a column of texts? write it as dates")
        known = column.known
        if pa.types.is_timestamp(known.type):
            known = known.cast(pa.timestamp("us", known.type.tz), safe=False).cast(pa.int64())
            moments = np.asarray(known).view("datetime64[us]")
        else:
            moments = np.asarray(known.cast(pa.date32()).cast(pa.int32())).astype("datetime64[D]")
        days = moments.astype("datetime64[us]").astype(np.int64).astype(np.float64)
        middle = []
        for step in self.steps:
            which, groups = np.unique(_period(moments, step), return_inverse=True)
            labels = [_STEPS[step](int(period)) for period in which]
            ends = [(_begin(int(period), step), _begin(int(period) + 1, step)) for period in which]
            middle.append((groups, labels, _widths(ends, days, column.places)))
        return levelled(column, middle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels(Hierarchy):
    """Every value with its parent, the parent of that, and so on; all chains are equally long.

    Values are named as texts: 12 as "12". Values that do not occur in the table do no harm.

    >>> jobs = Levels(parents={"nurse": ("care",), "doctor": ("care",), "judge": ("law",)})
    >>> jobs.parents["nurse"]
    ('care',)
    """

    parents: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        heights = {len(chain) for chain in self.parents.values()}
        if len(heights) != 1:
            raise InvalidArgument(
                "all values need equally many levels, and at least one value some",
                place="parents",
                hints=("repeat a name where a branch is shorter than others",),
            )

    @classmethod
    def tree(cls, tree: Mapping[str, Any]) -> Levels:
        """Read a tree: names of what is below; values in lists at the ends. Short branches are stretched.

        >>> Levels.tree({"degree": ["BSc", "MSc"], "none": ["10th"]}).parents["MSc"]
        ('degree',)
        """
        chains = list(_chains(tree, ()))
        height = max((len(chain) for _, chain in chains), default=0)
        parents: dict[str, tuple[str, ...]] = {}
        for value, chain in chains:
            stretched = (*chain, *(chain[-1:] * (height - len(chain))))
            if parents.setdefault(value, stretched) != stretched:
                raise InvalidArgument("a value of the tree has two parents", place="tree")
        return cls(parents=parents)

    def ladder(self, column: Coded) -> Ladder:
        """Return the levels of a column whose values are all named."""
        texts = column.known_texts()
        if any(text not in self.parents for text in texts):
            raise _unfit(column, _UNCOVERED, "name them all")
        height = len(next(iter(self.parents.values())))
        for level in range(1, height + 1):
            above = {chain[level - 1]: chain[level:] for chain in self.parents.values()}
            if any(above[chain[level - 1]] != chain[level:] for chain in self.parents.values()):
                raise _unfit(
                    column,
                    f"level {level + 1} of its hierarchy divides what is one value on level {level}",
                    "levels only join: whatever has one name on a level has one name on the next",
                )
        _named(self.parents, column)
        middle = []
        for level in range(height):
            labels, groups = _grouped([self.parents[text][level] for text in texts])
            middle.append((groups, labels, None))
        if middle and middle[-1][1] == [STAR]:
            middle.pop()  # the top is there anyhow
        return levelled(column, middle)


def _named(parents: Mapping[str, tuple[str, ...]], column: Coded) -> None:
    """Refuse a name that stands for fewer values on one level than on another: a reader could not tell."""
    names = (pair for value, chain in parents.items() for pair in enumerate((value, *chain)))
    covers = Counter(names)
    known: dict[str, int] = {}
    for (level, name), many in covers.items():
        if known.setdefault(name, many) != many:
            raise _unfit(
                column,
                f"a name on level {level} of its hierarchy means something else on another level",
                "give what stands for several values a name of its own",
            )


def _chains(tree: Any, path: tuple[str, ...]) -> Any:
    listed = path and isinstance(tree, Sequence) and not isinstance(tree, str)
    if isinstance(tree, Mapping):
        for name, below in tree.items():
            yield from _chains(below, (str(name), *path))
    elif listed and not any(isinstance(value, Mapping | list | tuple) for value in tree):
        yield from ((str(value), path) for value in tree)
    else:
        raise InvalidArgument("a tree has names, and lists of values at its ends", place="tree")


def _grouped(names: Sequence[str]) -> tuple[list[str], Integers]:
    labels, groups = np.unique(np.array(names, dtype=object), return_inverse=True)
    return labels.tolist(), groups


def _widths(ends: Sequence[tuple[float, float]], values: Floats, places: Floats | None) -> Floats | None:
    """Return the widths of intervals, as far as there are values, as shares of the width of the column."""
    if places is None or len(values) == 0 or not values[0] < values[-1]:
        return None
    low, high = values[0], values[-1]
    begins, stops = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    return np.asarray((np.minimum(stops, high) - np.maximum(begins, low)) / (high - low))


def _period(moments: Any, step: str) -> Integers:
    if step == "day":
        return np.asarray(moments.astype("datetime64[D]").astype(np.int64))
    months = moments.astype("datetime64[M]").astype(np.int64) + 1970 * 12
    return np.asarray(months // _MONTHS[step])


def _begin(period: int, step: str) -> float:
    if step == "day":
        first = np.datetime64(period, "D")
    else:
        first = np.datetime64(period * _MONTHS[step] - 1970 * 12, "M")
    return float(first.astype("datetime64[us]").astype(np.int64))


def _written(value: Number, name: str) -> Fraction:
    """Read a bound as the decimal that was written."""
    return Fraction(repr(value)) if isinstance(value, float) and np.isfinite(value) else exact(value, name)


def _shown(end: Fraction) -> str:
    return str(end.numerator) if end.denominator == 1 else repr(float(end))


def _unfit(column: Coded, why: str, hint: str) -> InvalidArgument:
    return InvalidArgument(f"column `{column.name}`: {why}", place=column.name, hints=(hint,))
