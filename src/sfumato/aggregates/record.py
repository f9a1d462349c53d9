"""The record of an aggregate: all that the package knows about one, in one class.

    syntax      label, names, arity, takes, kind      plan/ reads questions by them
    one unit    own_range, standard                   the same of one unit's own rows: analysis/, backends/
    measures    measured                              the sums that it is answered from: analysis/
    answer      answered, linear                      from noisy sums to values and intervals: release/
    forecast    forecast                              the same before anything is spent: analysis/
    notes       notes                                 what a reader of the answer should know

A record touches no data: it asks for measures, and sees noisy integers. A new aggregate is one more
record, in the file of its family, and a line in `registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.catalog.kind import Kind
from sfumato.core.intervals import EVERYTHING, Interval

__all__ = ["AggregateRecord"]


@dataclass(frozen=True, slots=True)
class AggregateRecord(ABC):
    """One aggregate of SQL, over the rows of all units or of one."""

    label: str  # as it is shown and stored
    names: tuple[str, ...] = ()  # what SQL calls it, where it takes `arity` values and nothing else

    arity: ClassVar[int] = 1
    counts: ClassVar[bool] = False  # a number of rows, units or values: noise can make it negative
    counts_rows: ClassVar[bool] = False  # it needs the number of rows in which its arguments have a value
    clamps: ClassVar[bool] = True  # its values are clamped to their bounds
    adds_truths: ClassVar[bool] = False  # a truth among its arguments is 0 or 1
    adds_up: ClassVar[bool] = False  # what one unit adds to a group can be clamped as a whole
    multiplies: ClassVar[bool] = False  # it needs products of values
    ranks: ClassVar[bool] = False  # it is read off a histogram by ranks
    lists: ClassVar[bool] = False  # its answer is a list
    chooses: ClassVar[bool] = False  # its answer is one of listed values, and has no interval
    instead: ClassVar[dict[Kind, str]] = {}  # what to ask instead, by the kind that it does not take

    standard: ClassVar[bool] = False  # engines have it under its label, over values in order

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Return whether an argument may be of a kind, None for NULL; `inner`: of one unit's own rows."""
        return kind is not None and kind.numeric

    def kind(self, argument: Kind | None) -> Kind | None:
        """Return the kind of the answer, None for a list."""
        return Kind.REAL

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return where it lies among one unit's own rows, however many those are.

        The arguments lie in these intervals; the first has so many different `values`, if that is known.
        """
        return EVERYTHING

    @abstractmethod
    def measured(self, asked: MeasureRequest) -> Answer:
        """Return how the aggregate is answered, and from which measures."""

    @abstractmethod
    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return values and intervals of a level; None: values alone, ends mean nothing."""

    @abstractmethod
    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return how far off the answer will be, in groups of `size` rows."""

    def linear(self, answer: Answer) -> Mapping[str, Fraction] | None:
        """Return what one integer of each measure is worth, None where the answer is no sum of them."""
        return None

    def notes(self, answer: Answer, noises: Sequence[AddedNoise], name: str, *, shown: bool) -> Iterator[str]:
        """Yield what a reader of the column should know; `shown`: it is in the result under that name."""
        yield from ()
