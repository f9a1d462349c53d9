"""Selections: how the groups of a question that nobody declared are chosen, in one round or in two.

In all rules a group is shown if a noisy number of it reaches a threshold, and the noise is cut off below
that threshold: `analysis.keys` proves what this costs.

Plain rule: the number is that of units. Used where that number gets noise anyway, where a unit is in one
group only or in more than there are weights for, and where a least number of units was asked for.

Rule by rows: the number is that of rows. Used where rows are counted, and a cap on a unit's rows over all
groups (`max_rows_total`) says what one unit adds to all numbers together. The noisy count that is shown
decides, so that it has the whole budget, and nothing is spent twice.

Weighted rule: a unit has one weight, G steps of a grid, and divides it evenly over the d of its
groups that have not been found yet: floor(G / sqrt(d)) in each with Gaussian noise, floor(G / d) with
Laplace noise. So a unit that is in few groups counts more in them, at no cost. A first round with a
small share of the budget finds the most popular groups; in the second, nobody wastes weight on those.

Theorem. Let a dataset have one unit more than another. In each round, what was found before is public, and
the other units weigh the same in both datasets. A unit of which d groups are left moves their weights by at
most G in Euclidean norm (Gaussian: d floor(G / sqrt(d))^2 <= G^2) or in sum (Laplace: d floor(G / d) <= G),
which is what the round's event says. Some of these weights leaves its window with a chance of at most
d f(w_d); the largest of these over d <= k is the round's delta, whatever was found before. Rounds compose
adaptively, and their deltas add up.

In a coarser grouping set the same holds of the groups there that a unit's k groups fall together into:
there are at most k of them, and the unit counts in each once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.core.events import Event
from sfumato.core.noise_law import NoiseLaw
from sfumato.plan.tree import Literal

__all__ = [
    "DELTAS",
    "MOST_WEIGHTS",
    "Round",
    "SHARES",
    "Selection",
    "deciding_measure",
    "grid_of",
    "units_measure",
]

SHARES = {True: (Fraction(1, 32), Fraction(31, 32)), False: (Fraction(1, 96), Fraction(95, 96))}
"""What each round spends of the selection's budget, where costs add up like squares of shifts and where not:
measured to find many more keys where some are popular, and to miss 1 to 2% of them where none is.
"""

DELTAS = (Fraction(1, 20), Fraction(19, 20))
"""What each round takes of the selection's delta."""

MOST_WEIGHTS = 100_000
"""Groups of a unit up to which it is told what a unit weighs in each: beyond, units are counted."""

_GRID = 27_720  # divisible by 1 to 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round: groups whose noisy weight is above the cut are found; all in steps of the grid."""

    law: NoiseLaw
    cut: int  # noise beyond it is drawn again
    delta: Fraction  # the chance that some weight of a unit leaves its window
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How the groups of one grouping set are chosen: by their noisy numbers of units or rows, or by weights.

    `measure` names a measure that is the number of units or of rows and gets noise anyway; its noisy value
    decides. None: the exact groups' own `units` get noise of this law for the purpose; or,
    if there are `rounds`, weights do; one unit has `grid` steps of weight. Law, threshold and cut are
    then those of the last round, and delta and event are of all rounds.
    """

    grouping_set: int
    measure: str | None
    law: NoiseLaw
    threshold: int  # a group is shown if its noisy number is at least this
    cut: int | None = None  # noise beyond it is drawn again; None: keys are declared, and noise has no cut
    delta: Fraction  # the chance that some number of a unit leaves its window
    event: Event | None  # what the noise costs; None: it is the measure's, which is charged already
    row: Fraction | None = None  # rows decide, and the measure counts them in this part of a row
    grid: int = 1
    most: int = 1  # groups of a unit
    rounds: tuple[Round, ...] = ()

    def needed(self, groups: int = 1) -> int:
        """Return how many units reach the threshold without noise, each in this many groups not yet found.

        >>> from sfumato.core.laplace import LaplaceNoise
        >>> Selection(grouping_set=0, measure=None, law=LaplaceNoise(Fraction(1)), threshold=900,
        ...     delta=Fraction(0), event=None, grid=100).needed(2)
        18
        """
        return -(-self.threshold // (self.law.divided(self.grid, groups) if self.grid > 1 else 1))

    @property
    def condition(self) -> str:
        """What the noisy number of a group must be, in words."""
        if self.rounds:
            return (
                f"the noisy weight is at least that of {self.needed():,} units that are in no other group,"
                f" or of {self.needed(self.most):,} units that are in {self.most} each"
            )
        return f"the noisy number of {self.counted[1]} is at least {self.counted[0]:,}"

    @property
    def counted(self) -> tuple[int, str]:
        """How many units or rows reach the threshold without noise, in however many groups units are."""
        if self.row is not None:
            return math.ceil(self.threshold * self.row), "rows"
        return self.needed(self.most), "units"


def grid_of(groups: int) -> int:
    """Return the steps G of one unit: enough that rounding down takes at most a thousandth."""
    return _GRID << max(0, (1024 * groups // _GRID).bit_length())


def units_measure(query: BoundedQuery) -> str | None:
    """Return the measure that is the number of units in each group, if there is one."""
    one_row = query.row_unit or (query.max_groups is None and query.max_rows == 1)

    def counts_units(measure: Measure) -> bool:
        if measure.condition is not None or measure.clamp is not None or measure.factors:
            return False
        return measure.kind is MeasureKind.UNITS or (measure.kind is MeasureKind.MOMENT and one_row)

    return next((measure.name for measure in query.measures if counts_units(measure)), None)


def deciding_measure(query: BoundedQuery, min_units: int | None) -> str | None:
    """Return the measure whose noisy value decides which groups are shown, if one can.

    That is the number of units, or else, where a cap over all groups bounds what a unit adds to all groups
    together, the number of rows; but not where a least number of units was asked for.
    """
    units = units_measure(query)
    if units is not None or query.max_total is None or (min_units or 1) > 1:
        return units

    def counts_rows(measure: Measure) -> bool:
        ones = all(
            isinstance(factor.expression, Literal) and factor.grid.lower == factor.grid.upper == 1
            for factor in measure.factors
        )
        plain = measure.condition is None and measure.clamp is None
        return measure.kind is MeasureKind.MOMENT and plain and ones

    return next((measure.name for measure in query.measures if counts_rows(measure)), None)
