"""Counts: of rows, of rows that have a value, of different values, of units. One measure N: N * weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.linear import LinearRecord
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.catalog.kind import Kind
from sfumato.core.intervals import Interval

__all__ = ["Count", "CountDistinct", "CountRows", "CountUnits"]


@dataclass(frozen=True, slots=True)
class _Counted(LinearRecord):
    counts: ClassVar[bool] = True
    clamps: ClassVar[bool] = False

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Count values of any kind."""
        return True

    def kind(self, argument: Kind | None) -> Kind | None:
        """Return whole numbers."""
        return Kind.INTEGER

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return any number from zero on."""
        return Interval(0, math.inf)

    def measure(self, asked: MeasureRequest) -> tuple[str, Fraction]:
        """Return the measure, and what its integer is worth."""
        if asked.bounds_per_group is not None:
            return asked.clamped_rows(), Fraction(1)
        return asked.rows()

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for the count."""
        measure, weight = self.measure(asked)
        return Answer(
            name=asked.name,
            function=asked.function,
            measures=(measure,),
            kind=Kind.INTEGER,
            integer=True,
            weight=weight,
            lower=0.0,
        )

    def linear(self, answer: Answer) -> dict[str, Fraction]:
        """Return the count itself."""
        return {answer.measures[0]: answer.weight}


@dataclass(frozen=True, slots=True)
class Count(_Counted):
    """COUNT(x)."""

    counts_rows: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class CountRows(Count):
    """COUNT(*)."""

    arity: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class CountDistinct(_Counted):
    """COUNT(DISTINCT x)."""

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return up to how many values there are."""
        return Interval(0, math.inf if values is None else values)

    def measure(self, asked: MeasureRequest) -> tuple[str, Fraction]:
        """Return the number of values."""
        return asked.distinct(), Fraction(1)


@dataclass(frozen=True, slots=True)
class CountUnits(_Counted):
    """COUNT(DISTINCT the unit)."""

    arity: ClassVar[int] = 0

    def measure(self, asked: MeasureRequest) -> tuple[str, Fraction]:
        """Return the number of units."""
        return asked.units(), Fraction(1)
