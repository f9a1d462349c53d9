"""The bounded plan: what an engine computes, in integers, and what one unit can change of it.

Every number that is released comes from *measures*. A measure gives each group an integer;
in each of the at most `max_groups` groups that a unit is kept in, the unit moves it by at most
`sensitivity`, and nobody else's part of it. That box is the sensitivity; nothing else is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from operator import itemgetter

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.measure_request import GridFactor
from sfumato.aggregates.sample_and_aggregate import BlockStatistic
from sfumato.catalog.kind import Value
from sfumato.core.grid import Grid
from sfumato.core.steps import spend
from sfumato.plan.tree import Expression, GroupChoice, Relation, Span

__all__ = ["BlockValues", "BoundedQuery", "Bounding", "Consistency", "Factor", "Measure", "MeasureKind"]


class MeasureKind(Enum):
    """How one unit's rows in a group become its contribution."""

    MOMENT = "moment"  # the sum over rows of the product of the factors; with no factor, the number of rows
    UNITS = "units"  # one, if any row satisfies the condition
    DISTINCT = "distinct"  # the number of distinct values, of which one unit brings at most `max_values`,
    # or with a factor the sum of its distinct integers
    CELLS = "cells"  # a histogram of the single factor: one integer per cell of `edges`
    BLOCKS = "blocks"  # no sum over units: the sum over blocks of units of a statistic of each block


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor(GridFactor):
    """A row-wise value on its grid: NULL and NaN count as absent, others become whole steps.

    The value is (expression - centre), rounded and clamped as `Grid` says.
    """

    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockValues:
    """A statistic of each of `number` blocks of units, less `centre`, on a grid that holds zero.

    A unit's block is a function of its name and the salt. Rows in which an argument is NULL or NaN are left
    out; a block without rows, or whose statistic is no finite number, is zero.
    """

    statistic: BlockStatistic
    arguments: tuple[Expression, ...]
    number: int
    centre: float
    grid: Grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One integer per group.

    MOMENT: a row counts if the condition is true (or absent) and no factor is NULL. A unit with n
    rows in a group (rows of the source, whatever the condition) and the exact integer sum s over
    its counting rows contributes trunc(s * min(n, max_rows) / n). With `clamp` (sums clamped per
    unit and group instead of capped rows) it contributes s clamped to that interval instead; where the
    sum is one of values, and none of its rows counts, nothing: its sum is NULL, and not the lower bound.

    CELLS: the factor's integer is the index of the cell, 0 to len(edges) - 2; cells are of equal
    width, and `edges` say which values of the expression each of them holds. A unit with c of its
    n rows in a cell adds trunc(c * weight * min(n, max_rows) / n) to it.

    BLOCKS: see `BlockValues`. All rows of the units that are kept in a group count.
    """

    name: str  # the column of the exact table
    kind: MeasureKind
    factors: tuple[Factor, ...] = ()
    condition: Expression | None = None
    value: Expression | None = None  # DISTINCT: what is counted, unless a factor is added up
    max_values: int = 1  # DISTINCT: at most this many values of one unit in a group
    edges: tuple[float, ...] = ()  # CELLS: ascending; cell i holds edges[i] <= x < edges[i+1], ends clamped
    clamp: tuple[int, int] | None = None
    blocks: BlockValues | None = None  # BLOCKS: what is computed of them
    weight: int = 1  # CELLS: how many units of the cells' integers one row is
    sensitivity: int  # at most this, per unit and group (CELLS: in total over the cells of a group)

    @property
    def skips_absent(self) -> bool:
        """Whether a unit none of whose rows counts must be told from one whose sum is zero."""
        return bool(self.factors) and self.clamp is not None and not self.clamp[0] <= 0 <= self.clamp[1]

    @property
    def span(self) -> int:
        """How far one unit can move one group up and another down, both together.

        Theorem: it moves each group by a number between two ends a <= 0 <= b; this is b - a. Where all that
        it adds has one sign, one of the ends is 0 and the other the sensitivity, as of every count. A moment
        of rows between l < 0 < h is between l m and h m, and its sensitivity is m max(-l, h) (`measures`).
        """
        low, high = self.clamp or (0, 1)
        if self.clamp is None and self.kind in (MeasureKind.MOMENT, MeasureKind.DISTINCT):
            for factor in self.factors:
                ends = [end * side for end in (factor.grid.low, factor.grid.high) for side in (low, high)]
                low, high = min(ends), max(ends)
        if self.kind is not MeasureKind.BLOCKS and (low >= 0 or high <= 0):
            return self.sensitivity
        if self.kind is not MeasureKind.MOMENT:
            return 2 * self.sensitivity
        return -(-self.sensitivity * (high - low) // max(-low, high))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedQuery:
    """What the engine is to compute.

    Groups of a unit beyond `max_groups` are dropped, chosen by a salted hash of unit and key. With
    `declared` keys, only those groups count and all of them are returned, empty ones as zeros;
    they are matched before units' groups are chosen. `max_groups=None`: no GROUP BY, or the keys
    are such that a unit is in one group only. `max_total`: where a unit's weights min(n, max_rows) in the
    groups that are kept add up to W > max_total, each of its moments and cells there is multiplied by
    max_total / W before it is truncated; only set where it can bite. `row_unit`: each row is a unit by
    itself.
    Grouping sets: chosen and capped at the finest grouping, then added up for each set.
    `members`: which kept groups belong to one unit is wanted as well, to select keys by weights.
    `choice`: of the groups that are computed, declared ones, only chosen ones are shown.
    """

    source: Relation
    row_unit: bool
    keys: tuple[tuple[str, Expression], ...]
    grouping_sets: tuple[tuple[int, ...], ...]
    declared: tuple[tuple[Value, ...], ...] | None
    max_groups: int | None
    max_rows: int | None
    measures: tuple[Measure, ...]
    max_total: int | None = None
    members: bool = False
    choice: GroupChoice | None = None
    _parts: dict[tuple[int, ...], int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def most_parts(self, grouping_set: tuple[int, ...]) -> int:
        """Return how many declared groups fall into one group of a grouping set at most."""
        assert self.declared is not None
        spend(len(self.declared) // 20)
        if grouping_set not in self._parts:
            if grouping_set:
                counts = Counter(map(itemgetter(*grouping_set), self.declared))
                self._parts[grouping_set] = max(counts.values())
            else:
                self._parts[grouping_set] = len(self.declared)
        return self._parts[grouping_set]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """How answers over several grouping sets are made to add up (`analysis.consistency`).

    `shares` are of the cost, in the order of the grouping sets; `pure_shares` where that is an epsilon.
    `chain` holds the places of nested sets, the coarsest first; None: the sets make a cube, and key i has
    `sizes[i]` values. `totals` are known exactly (`analysis.invariants`): of the groups of a set, by its
    place, how many rows; `counted` are the measures that count them.
    """

    shares: tuple[Fraction, ...]
    pure_shares: tuple[Fraction, ...]
    chain: tuple[int, ...] | None
    sizes: tuple[int, ...] = ()
    totals: Mapping[int, Mapping[tuple[Value, ...], int]] = field(default_factory=dict, hash=False)
    unprotected: tuple[str, ...] = ()  # what the totals are, in words
    counted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounding:
    """What the engine computes, how it answers the question, and whether keys must be selected."""

    query: BoundedQuery
    answers: tuple[Answer, ...]
    select_keys: bool
    others: bool = False  # groups that are not selected are shown as one (`analysis/remainder_group`)
    min_units: int | None = None  # groups of fewer units are not wanted
    intervals: bool = True  # what only intervals need is paid for (`analysis/single_quantile`)
    # of epsilon: those of aggregates by name, under None that of selecting keys
    shares: Mapping[str | None, Fraction] = field(default_factory=dict, hash=False)
    consistency: Consistency | None = None  # of several grouping sets, where answers are to add up
    text: str = ""  # the question, and where in it the keys are, for refusals
    keys_span: Span | None = None

    def answer(self, name: str) -> Answer:
        """Return the answer of one aggregate."""
        return next(answer for answer in self.answers if answer.name == name)
