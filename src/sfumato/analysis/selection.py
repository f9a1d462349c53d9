"""Selections: how the groups of a question that nobody declared are chosen, in one round or in two.

Plain rule: a unit counts one in each group that it is kept in; a group is shown if its noisy number
of units reaches a threshold. Used where that number gets noise anyway, where a unit is in one group
only or in more than there are weights for, and where a least number of units was asked for.

Weighted rule: a unit has one weight, G steps of a grid, and divides it evenly over the d of its
groups that have not been found yet: floor(G / sqrt(d)) in each with Gaussian noise, floor(G / d) with
Laplace noise. So a unit that is in few groups counts more in them, at no cost. A first round with a
small share of the budget finds the most popular groups; in the second, nobody wastes weight on those.

Theorem. Let a dataset have one unit more than another, and call a group novel if nobody else is in
it. Change the rule so that novel groups are never found: as long as the true rule has found none,
both do the same. In each round, what was found before is public, and the other units weigh the same
in both datasets. So (1) the groups that are not novel get noisy weights that differ by at most G in
Euclidean norm (Gaussian: d floor(G / sqrt(d))^2 <= G^2) or in sum (Laplace: d floor(G / d) <= G),
which is what the round's event says, and rounds compose adaptively. And (2) in a round in which d groups
of the unit are left, n <= d of them novel, some novel one is found with chance at most
1 - (1 - P(noise >= T - w_d))^d; the largest of these over d <= k is the round's delta, whatever was
found before, since novel groups' noise is drawn afresh. The deltas of all rounds add up.

In a coarser grouping set the same holds of the groups there that a unit's k groups fall together into:
there are at most k of them, and the unit counts in each once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.core.events import Event
from sfumato.core.noise_law import NoiseLaw

__all__ = ["DELTAS", "MOST_WEIGHTS", "Round", "SHARES", "Selection", "grid_of", "units_measure"]

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
    """One round: groups whose noisy weight reaches the threshold are found; all in steps of the grid."""

    law: NoiseLaw
    threshold: int
    delta: Fraction  # the chance that a unit makes a group appear that would not exist without it
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How the groups of one grouping set are chosen: by their noisy numbers of units, or by weights.

    `measure` names a measure that is the number of units and gets noise anyway; its noisy value
    decides. None: the exact groups' own `units` get noise of this law for the purpose; or,
    if there are `rounds`, weights do; one unit has `grid` steps of weight. Law and threshold are
    then those of the last round, and delta and event are of all rounds.
    """

    grouping_set: int
    measure: str | None
    law: NoiseLaw
    threshold: int  # a group is shown if its noisy number of units is at least this
    delta: Fraction  # the chance that a unit makes a group appear that would not exist without it
    event: Event | None  # what the noise costs; None: it is the measure's, which is charged already
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
