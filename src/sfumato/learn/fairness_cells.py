"""Cells of a fairness report: what a model did to the rows of each subgroup, as whole numbers.

Each set of columns, such as ("sex", "race"), makes two tables: of groups by label by predicted class, and of
groups by calibration bin by whether the prediction was right. The set without columns is of everyone.

Theorem: a row of a unit with n rows weighs floor(GRID / n), so the rows of a unit weigh at most GRID in all.
A row is in at most one cell of a table, and in which one depends on this row and the model alone. So a unit
that is added or removed changes a table by whole numbers that are not negative and add up to GRID at most:
a vector of Euclidean norm GRID at most. T tables together, which may overlap, change by a vector of squared
norm T GRID^2 at most. A person who is in all of them with one row changes them by exactly that.

Rows whose label is not declared are in no table. A row with a value that is not declared for a column is in
no group of the sets that have this column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import Value
from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument

__all__ = ["FairnessCells", "GRID", "GroupTables", "Subgroups", "value_said"]

GRID = 1 << 20
"""How many steps a unit weighs; a unit with more rows than that counts nothing."""

_Integers = npt.NDArray[np.int64]

_MOST_NUMBERS = 1_000_000  # of all tables together


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroups:
    """A set of columns, each with the values that are declared for it; without columns, everyone.

    >>> both = Subgroups(columns=("sex", "old"), values=(("f", "m"), (False, True)))
    >>> both.names
    ('sex = f, old = false', 'sex = f, old = true', 'sex = m, old = false', 'sex = m, old = true')
    """

    columns: tuple[str, ...] = ()
    values: tuple[tuple[Value, ...], ...] = ()

    @property
    def size(self) -> int:
        """How many groups there are."""
        return math.prod(map(len, self.values))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each group."""
        return tuple(
            ", ".join(f"{column} = {value_said(one)}" for column, one in zip(self.columns, each, strict=True))
            or "everyone"
            for each in product(*self.values)
        )

    def codes(self, columns: Mapping[str, _Integers], number: int) -> _Integers:
        """Return the group of each of `number` rows, -1 where it is in none."""
        code, inside = np.zeros(number, dtype=np.int64), np.ones(number, dtype=np.bool_)
        for name, values in zip(self.columns, self.values, strict=True):
            code = code * len(values) + columns[name]
            inside &= (columns[name] >= 0) & (columns[name] < len(values))
        return np.where(inside, code, -1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTables:
    """The two noisy tables of one set of columns."""

    subgroups: Subgroups
    outcomes: npt.NDArray[np.int64]  # groups x labels x predictions
    calibration: npt.NDArray[np.int64]  # groups x bins x (wrong, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessCells:
    """Which cells a report has: a public record. The first set of columns is that of everyone.

    >>> cells = FairnessCells(label="ill", classes=(False, True), sets=(Subgroups(),), bins=5)
    >>> cells.tables, cells.numbers
    (2, 14)
    """

    label: str
    classes: tuple[Value, ...]
    sets: tuple[Subgroups, ...]
    bins: int = 5

    def __post_init__(self) -> None:
        if self.bins < 1 or isinstance(self.bins, bool):
            raise InvalidArgument("there is at least one calibration bin", place="bins", hints=("bins=5",))
        if len({frozenset(one.columns) for one in self.sets}) < len(self.sets):
            raise InvalidArgument("a set of columns is named twice", place="groups")
        if self.numbers > _MOST_NUMBERS:
            raise InvalidArgument(
                f"these groups have {self.numbers:,} cells, and a report has at most {_MOST_NUMBERS:,}",
                place="groups",
                hints=("name fewer columns together",),
            )

    @property
    def tables(self) -> int:
        """How many tables one person is in: T of the module's theorem."""
        return 2 * len(self.sets)

    @property
    def numbers(self) -> int:
        """How many noisy numbers there are."""
        return sum(one.size * self._each for one in self.sets)

    @property
    def _each(self) -> int:
        return len(self.classes) ** 2 + 2 * self.bins

    @property
    def l2_squared(self) -> int:
        """The squared norm of what one unit changes, at most. Theorem: see the module."""
        return self.tables * GRID**2

    @property
    def edges(self) -> FloatArray:
        """The edges of calibration bins: from the least that the largest probability can be to one."""
        return np.linspace(1 / len(self.classes), 1.0, self.bins + 1)

    def counted(
        self,
        *,
        sizes: _Integers,
        labels: _Integers,
        columns: Mapping[str, _Integers],
        probabilities: FloatArray,
    ) -> _Integers:
        """Return all cells as one vector of integers. It is exact: it has to get noise.

        `sizes` says how many rows each unit has, beside each other; `labels` and `columns` hold places among
        the declared values, -1 where there is none; `probabilities` has a row per row and a column per class.
        """
        number = len(labels)
        weights = np.repeat(GRID // np.maximum(sizes, 1), sizes)
        known = np.nan_to_num(probabilities, nan=0.0, posinf=1.0, neginf=0.0)
        predicted = np.argmax(known, axis=1) if number else np.zeros(0, dtype=np.int64)
        sure = known.max(axis=1, initial=0.0)
        bins = np.clip(np.searchsorted(self.edges, sure, side="right") - 1, 0, self.bins - 1)
        right = (predicted == labels).astype(np.int64)
        classes = len(self.classes)
        declared = (labels >= 0) & (labels < classes)
        parts = []
        for one in self.sets:
            group = one.codes(columns, number)
            inside = declared & (group >= 0)
            outcome = (group * classes + labels) * classes + predicted
            calibrated = (group * self.bins + bins) * 2 + right
            parts += [
                _totals(outcome[inside], weights[inside], one.size * classes**2),
                _totals(calibrated[inside], weights[inside], one.size * self.bins * 2),
            ]
        return np.concatenate(parts)

    def divided(self, numbers: _Integers) -> Iterator[GroupTables]:
        """Yield the tables of each set of columns, of the vector of all cells."""
        if numbers.shape != (self.numbers,):
            raise InvalidArgument("these are not the cells of this report", place="measured")
        classes, start = len(self.classes), 0
        for one in self.sets:
            middle = start + one.size * classes**2
            end = middle + one.size * self.bins * 2
            yield GroupTables(
                subgroups=one,
                outcomes=numbers[start:middle].reshape(one.size, classes, classes),
                calibration=numbers[middle:end].reshape(one.size, self.bins, 2),
            )
            start = end


def _totals(codes: _Integers, weights: _Integers, size: int) -> _Integers:
    totals = np.zeros(size, dtype=np.int64)
    np.add.at(totals, codes, weights)
    return totals


def value_said(value: Value) -> str:
    """Return a value as text, booleans in small letters."""
    return str(value).lower() if isinstance(value, bool) else str(value)
