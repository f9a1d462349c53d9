"""Residual planning: the optimal Gaussian noise for any set of marginal tables, in closed form.

A table over columns W, in which each column i is asked about by its base (`bases`), is a sum of one
*residual* for each subset A of W: the part that depends on all columns of A and sums to zero over each of
them. Residuals are measured, each once, by the product of their columns' integer matrices on the exact table
over A; whatever tables are asked for are made of them, so that all tables agree.

With noise of variance s_A on each integer of residual A, the sum of variances of a table W is

    sum over A in W of  s_A  prod_{i in A} r_i  prod_{j in W - A} m_j

(r: `Base.residual_variance`, m: `Base.sum_variance`), and one row of one person changes the integers by a
vector of squared norm at most p_A = prod_{i in A} b_i (b: `Base.sensitivity_squared`), for the columns of a
product of matrices are products of columns. A total v = sum_A v_A s_A at a fixed cost c = sum_A p_A / s_A
is least for

    s_A = sqrt(p_A / v_A) * sum_B sqrt(p_B v_B) / c

(Lagrange). Theorem (Xiao, He, Zhang, Kifer 2023, Theorem 5): no Gaussian mechanism for cells does better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument
from sfumato.workloads.bases import Base

__all__ = ["ResidualPlan", "Subset", "all_ways", "residual_plan"]

Subset = tuple[int, ...]
"""Places of columns, ascending."""

_ROUNDS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResidualPlan:
    """Which residuals are measured for which tables, and with which noise.

    >>> from sfumato.workloads.bases import cells
    >>> plan = residual_plan([cells(2), cells(3)], {(0, 1): 1.0})
    >>> plan.residuals, plan.sensitivities_squared
    (((), (0,), (1,), (0, 1)), (1, 2, 6, 12))
    >>> round(plan.rmse(plan.variances(cost=1)), 3)
    1.0
    """

    bases: tuple[Base, ...]
    weights: Mapping[Subset, float]  # of the sum of variances of each table
    residuals: tuple[Subset, ...]

    @property
    def tables(self) -> tuple[Subset, ...]:
        """The tables that are asked for."""
        return tuple(self.weights)

    @property
    def sensitivities_squared(self) -> tuple[int, ...]:
        """For each residual, the squared norm of what one row of one person can change: p_A."""
        return tuple(math.prod(self.bases[i].sensitivity_squared for i in one) for one in self.residuals)

    def part(self, table: Subset, residual: Subset) -> float:
        """Return how much noise of variance 1 on a residual adds to the sum of variances of a table."""
        if not set(residual) <= set(table):
            return 0.0
        return math.prod(
            self.bases[i].residual_variance if i in residual else self.bases[i].sum_variance for i in table
        )

    @property
    def objective(self) -> FloatArray:
        """For each residual, what noise of variance 1 on it adds to the weighted sum of variances: v_A."""
        found = dict.fromkeys(self.residuals, 0.0)
        spend(sum(2 ** len(table) for table in self.weights) // 4)
        for table, weight in self.weights.items():
            for residual in self.measured_for(table):
                found[residual] += weight * self.part(table, residual)
        return np.array(list(found.values()))

    @property
    def least_objective(self) -> float:
        """The least weighted sum of all variances, at a cost of 1."""
        return float(np.sqrt(self._changes() * self.objective).sum()) ** 2

    def measured_for(self, table: Subset) -> list[Subset]:
        """Return the residuals that a table is made of."""
        known = [i for i in table if self.bases[i].size > 1]
        return [one for ways in range(len(known) + 1) for one in combinations(known, ways)]

    def variances(self, *, cost: float) -> FloatArray:
        """Return the variance of the noise on each residual, at a cost of sum p_A / s_A."""
        changes, wanted = self._changes(), self.objective
        found: FloatArray = np.sqrt(changes / wanted) * (np.sqrt(changes * wanted).sum() / cost)
        return found

    def _changes(self) -> FloatArray:
        return np.array([float(one) for one in self.sensitivities_squared])

    def table_variance(self, table: Subset, variances: FloatArray) -> float:
        """Return the mean variance of the answers of a table."""
        spend(2 ** len(table) // 4)
        known = dict(zip(self.residuals, variances.tolist(), strict=True))
        total = math.fsum(known[one] * self.part(table, one) for one in self.measured_for(table))
        return total / self.answers(table)

    def answers(self, table: Subset) -> int:
        """Return how many answers a table has."""
        return math.prod(self.bases[i].queries for i in table)

    def rmse(self, variances: FloatArray) -> float:
        """Return the root of the mean variance of all answers of all tables."""
        counts = [self.answers(table) for table in self.tables]
        each = [self.table_variance(table, variances) for table in self.tables]
        total = math.fsum(count * one for count, one in zip(counts, each, strict=True))
        return math.sqrt(total / sum(counts))

    def within(self, targets: Mapping[Subset, float]) -> ResidualPlan:
        """Return the plan of least cost whose mean variance in each table is at most a target.

        Theorem: the least sum p_A / s_A subject to convex (linear) bounds has multipliers w_W >= 0 for which
        it is the plan of those weights. They are found by multiplying each by a power of how far its table is
        off, and whatever they are, scaling all variances until the worst table fits meets every target.
        """
        tables = tuple(targets)
        weights = dict.fromkeys(tables, 1.0)
        best, least = self, math.inf
        for _ in range(_ROUNDS):
            plan = residual_plan(self.bases, weights)
            variances = plan.variances(cost=1.0)
            off = {one: plan.table_variance(one, variances) / targets[one] for one in tables}
            worst = max(off.values())
            if worst < least * (1 - 1e-6):
                best, least = plan, worst
            if worst / min(off.values()) < 1 + 1e-4:
                break
            largest = max(weights.values())
            weights = {one: max(weights[one] * (off[one] / worst), largest * 1e-12) for one in tables}
        return best


def residual_plan(bases: Sequence[Base], weights: Mapping[Subset, float]) -> ResidualPlan:
    """Return the plan for tables, of which one of weight 2 counts as two of weight 1."""
    if not weights:
        raise InvalidArgument("a workload has one table at least", place="tables")
    for table, weight in weights.items():
        if not (math.isfinite(weight) and weight > 0):
            raise InvalidArgument("the weight of a table is a number above zero", place="weights")
        if list(table) != sorted(set(table)) or not all(0 <= i < len(bases) for i in table):
            raise InvalidArgument("a table is of different columns, in their order", place="tables")
    spend(sum(1 + 2 ** len(table) // 4 for table in weights))
    found: dict[Subset, None] = {}
    for table in weights:
        known = [i for i in table if bases[i].size > 1]
        for ways in range(len(known) + 1):
            found |= dict.fromkeys(combinations(known, ways))
    residuals = tuple(sorted(found, key=lambda one: (len(one), one)))
    return ResidualPlan(bases=tuple(bases), weights=dict(weights), residuals=residuals)


def all_ways(columns: int, ways: int, *, fewer: bool = False) -> list[Subset]:
    """Return all sets of so many columns; with `fewer` also all smaller ones, the empty one is the total.

    >>> all_ways(3, 2, fewer=True)
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    first = 0 if fewer else ways
    return [one for size in range(first, ways + 1) for one in combinations(range(columns), size)]
