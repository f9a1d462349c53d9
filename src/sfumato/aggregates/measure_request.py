"""What a record sees of an aggregate that was asked, and the measures that it can ask for in turn.

`analysis/asked` implements this: it knows expressions, conditions, bounds and caps. A record knows which
sums make up its answer, and nothing else.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, Self

from sfumato.aggregates.answer import Answer
from sfumato.catalog.kind import Kind
from sfumato.core.grid import Grid

if TYPE_CHECKING:
    from sfumato.aggregates.registry import Function
    from sfumato.aggregates.sample_and_aggregate import BlockDesign

__all__ = ["BoundedArgument", "GridFactor", "MeasureRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedArgument:
    """An argument of an aggregate, as a number between bounds."""

    low: Fraction
    high: Fraction
    whole: bool  # it only takes whole numbers
    kind: Kind | None = None  # of dates and timestamps, which are counted
    epoch: datetime.date | None = None  # from this one on


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFactor:
    """A value less its centre, on its grid."""

    centre: float
    grid: Grid


class MeasureRequest(Protocol):
    """One aggregate of a question. Measures are named; equal ones are one, whoever asks."""

    name: str
    quantiles: tuple[float, ...]
    several: bool
    bounds_per_group: tuple[float, float] | None

    @property
    def function(self) -> Function:
        """Which aggregate it is."""

    def argument(self, place: int = 0) -> BoundedArgument:
        """Return an argument with its bounds, or refuse the question; dates count from a bound on."""

    def factor(self, place: int = 0, *, centred: bool = True) -> GridFactor:
        """Return an argument on its grid: less the middle of its bounds, if centred."""

    def rows(self) -> tuple[str, Fraction]:
        """Return the number of rows in which all arguments have a value, and what its integer is worth."""

    def moment(self, *places: int, centred: bool = True) -> str:
        """Return the sum over those rows of a product of factors."""

    def units(self) -> str:
        """Return the number of units."""

    def distinct(self) -> str:
        """Return the number of different values of the argument."""

    def distinct_sum(self) -> tuple[str, Fraction, bool]:
        """Return the sum of the different values, its step, and whether values are whole."""

    def clamped_rows(self) -> str:
        """Return the number of rows, of which one unit's part in a group is within `bounds_per_group`."""

    def clamped_sum(self) -> tuple[str, Fraction, bool]:
        """Return the sum of which that holds, its step, and whether values are whole."""

    def ranked_cells(self) -> Answer:
        """Return the answer from a histogram fine enough to read ranks off, as far as its cells say."""

    def listed_cells(self, *, single: bool = False) -> Answer:
        """Return the same over the argument's listed values, or over equal cells between its bounds.

        `single`: each cell is one value, or the question is refused.
        """

    def block_values(self) -> tuple[str, GridFactor, BlockDesign]:
        """Return the sum of a statistic over blocks of people, the grid of its values, and the blocks."""

    def beside_count(self) -> Self | None:
        """Return the aggregate over rows that the question counts anyway, None if it does not count them."""
