"""Residual planning: published errors, the variances of small plans by brute force, exact integers."""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InvalidArgument
from sfumato.workloads.bases import Base, cells
from sfumato.workloads.residuals import ResidualPlan, Subset, all_ways, residual_plan
from tests.workloads.made import custom, prefixes, ranges

ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
CPS = (100, 50, 7, 4, 2)
LOANS = (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15)
# Published (ResidualPlanner, table of RMSE at privacy cost 1): 1-way, 2-way, 3-way, and at most 3-way.
PUBLISHED = {
    ADULT: (3.047, 6.359, 10.515, 10.665),
    CPS: (1.744, 2.035, 2.048, 2.276),
    LOANS: (2.875, 5.634, 8.702, 8.876),
}
WAYS = ((1, False), (2, False), (3, False), (3, True))


def even(bases: list[Base], tables: list[Subset]) -> ResidualPlan:
    return residual_plan(bases, dict.fromkeys(tables, 1.0))


@pytest.mark.parametrize("sizes", PUBLISHED, ids=("adult", "cps", "loans"))
def test_the_published_errors_are_reached_to_three_decimals(sizes: tuple[int, ...]) -> None:
    bases = [cells(size) for size in sizes]
    plans = [even(bases, all_ways(len(sizes), ways, fewer=fewer)) for ways, fewer in WAYS]
    assert tuple(round(plan.rmse(plan.variances(cost=1)), 3) for plan in plans) == PUBLISHED[sizes]


@pytest.mark.soak  # four matrices of a hundred cells: slow where others use the processors
def test_prefixes_of_numeric_columns_have_smaller_errors_than_the_best_published_ones() -> None:
    bases = [prefixes(size) if place < 5 else cells(size) for place, size in enumerate(ADULT)]
    plans = [even(bases, all_ways(14, ways, fewer=fewer)) for ways, fewer in WAYS]
    found = [plan.rmse(plan.variances(cost=1)) for plan in plans]
    assert found == pytest.approx([5.001, 16.817, 43.814, 43.746], abs=0.01)
    published = (5.081, 17.274, 45.223, 45.174)  # ResidualPlanner+
    assert all(ours < best for ours, best in zip(found, published, strict=True))


def test_shares_that_are_best_for_one_table_are_near_the_bound_of_singular_values() -> None:
    """A column of prefixes alone: no Gaussian mechanism is below the bound of singular values."""
    plans = {evenness: even([prefixes(24, evenness)], [(0,)]) for evenness in (0.0, 0.5, 1.0)}
    found = {evenness: plan.rmse(plan.variances(cost=1)) for evenness, plan in plans.items()}
    asked = asked_matrix("prefixes", 24)
    bound = float(np.linalg.svd(asked, compute_uv=False).sum()) / 24
    assert bound < found[0.0] < 1.05 * bound
    assert found[0.0] < found[0.5] < found[1.0]


def asked_matrix(kind: str, size: int) -> np.ndarray:
    match kind:
        case "cells":
            return np.eye(size)
        case "prefixes":
            return np.tril(np.ones((size, size)))
        case _:
            ends = [(i, j) for i in range(size) for j in range(i, size)]
            return np.array([[float(i <= k <= j) for k in range(size)] for i, j in ends])


BASES = {"cells": cells, "prefixes": prefixes, "ranges": ranges}


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_base_measures_whole_numbers_and_recovers_all_but_the_sum(kind: str, size: int) -> None:
    base = BASES[kind](size)
    matrix = base.measure(np.eye(size, dtype=np.int64), 0)
    assert matrix.dtype == np.int64
    assert math.isclose(base.shares.sum(), 1) and np.allclose(matrix @ base.shares, 0, atol=1e-9)
    assert int((matrix**2).sum(axis=0).max(initial=0)) == base.sensitivity_squared
    asked = asked_matrix(kind, size)
    assert base.queries == len(asked)
    recovered = base.recover(np.eye(len(matrix)), 0)
    left = np.eye(size) - base.shares[:, None]
    assert np.allclose(recovered @ matrix, left, atol=1e-9)  # every residual can be recovered
    assert np.allclose(recovered.sum(axis=0), 0, atol=1e-9)
    assert np.allclose(base.weigh(np.eye(size), 0), recovered.T)
    assert math.isclose(base.residual_variance, float(((asked @ recovered) ** 2).sum()), abs_tol=1e-12)
    assert math.isclose(base.sum_variance, float(((asked @ base.shares) ** 2).sum()))


@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
def test_a_base_beats_measuring_cells_and_is_near_the_bound_of_singular_values(kind: str) -> None:
    size = 32
    base = BASES[kind](size)
    plain = cells(size).recover(np.eye(size), 0)
    asked = asked_matrix(kind, size)
    left = asked @ (np.eye(size) - base.shares[:, None])
    by_cells = float(((asked @ plain) ** 2).sum()) * cells(size).sensitivity_squared
    found = base.residual_variance * base.sensitivity_squared
    bound = np.linalg.svd(left, compute_uv=False).sum() ** 2 / size  # no strategy is below it
    assert bound <= found < min(by_cells, 1.1 * bound)


def test_a_matrix_may_leave_some_cells_out() -> None:
    base = custom([[1, 1, 0, 0], [0, 0, 1, 0]])
    plan = residual_plan([base], {(0,): 1.0})
    assert plan.rmse(plan.variances(cost=1)) < 1.2


@pytest.mark.parametrize("asked", [[], [[0, 0]], [1, 2], [[1, math.nan]], "ab", [[1], [1, 2]]])
def test_what_is_no_matrix_is_refused(asked: object) -> None:
    with pytest.raises(InvalidArgument, match="is a matrix"):
        custom(asked)


def test_the_variances_of_a_plan_are_those_of_its_matrices() -> None:
    """Build every matrix of a small plan, and its noise, and compare with the closed forms."""
    kinds, sizes = ("cells", "prefixes", "ranges"), (3, 4, 2)
    bases = [BASES[kind](size) for kind, size in zip(kinds, sizes, strict=True)]
    plan = residual_plan(bases, {(0, 1): 1.0, (1, 2): 3.0, (0, 1, 2): 0.5})
    variances = plan.variances(cost=1)
    measured = [base.measure(np.eye(base.size, dtype=np.int64), 0) for base in bases]
    sums = [np.ones((1, size)) for size in sizes]
    cost = 0.0
    for residual, variance, sensitivity in zip(
        plan.residuals, variances, plan.sensitivities_squared, strict=True
    ):
        product = reduce(np.kron, [measured[i] if i in residual else sums[i] for i in range(3)])
        assert (product**2).sum(axis=0).max() == sensitivity
        cost += sensitivity / variance
    assert math.isclose(cost, 1)
    for table in plan.tables:
        total = 0.0
        asked = reduce(np.kron, [asked_matrix(kinds[i], sizes[i]) for i in table])
        for residual, variance in zip(plan.residuals, variances, strict=True):
            if set(residual) <= set(table):
                estimate = reduce(
                    np.kron,
                    [
                        (np.eye(sizes[i]) - bases[i].shares[:, None]) @ np.linalg.pinv(measured[i])
                        if i in residual
                        else bases[i].shares[:, None]
                        for i in table
                    ],
                )
                total += variance * ((asked @ estimate) ** 2).sum()
        assert math.isclose(total / len(asked), plan.table_variance(table, variances))


def test_no_other_variances_of_the_same_cost_are_better() -> None:
    plan = residual_plan([cells(3), cells(5), prefixes(4)], {(0, 1): 1.0, (2,): 2.0, (1, 2): 1.0})
    best = plan.variances(cost=2)
    least = float(plan.objective @ best)
    changes = np.array(plan.sensitivities_squared, dtype=float)
    for one, other in combinations(range(len(best)), 2):
        moved = best.copy()
        moved[one] *= 1.1
        moved[other] = changes[other] / (2 - (changes / moved).sum() + changes[other] / moved[other])
        assert math.isclose((changes / moved).sum(), 2)
        assert plan.objective @ moved > least


def test_a_table_of_more_weight_has_less_error() -> None:
    bases = [cells(4), cells(6), cells(8)]
    tables = all_ways(3, 2)
    plain = even(bases, tables)
    heavy = residual_plan(bases, {tables[0]: 10.0, tables[1]: 1.0, tables[2]: 1.0})
    before, after = (
        [plan.table_variance(table, plan.variances(cost=1)) for table in tables] for plan in (plain, heavy)
    )
    assert after[0] < before[0] and after[1] > before[1] and after[2] > before[2]


def test_targets_are_met_at_no_more_cost_than_by_any_weights() -> None:
    bases = [cells(4), cells(9), cells(30)]
    tables = all_ways(3, 2)
    targets = {tables[0]: 1.0, tables[1]: 4.0, tables[2]: 25.0}

    def cost(plan: ResidualPlan) -> float:
        """What it costs to scale a plan until every table is within its target."""
        variances = plan.variances(cost=1)
        return max(plan.table_variance(table, variances) / target for table, target in targets.items())

    found = cost(even(bases, tables).within(targets))
    assert found < cost(even(bases, tables))
    for first in (0.3, 1.0, 3.0):
        for second in (0.1, 0.3, 1.0):
            weights = dict(zip(tables, (1.0, first, second), strict=True))
            assert found <= cost(residual_plan(bases, weights)) * (1 + 1e-3)


def test_a_column_of_one_cell_is_not_measured() -> None:
    plan = even([cells(1), cells(3)], [(0, 1)])
    assert plan.residuals == ((), (1,))
    assert math.isclose(plan.rmse(plan.variances(cost=1)), 1)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "one table at least"),
        ({(0,): 0.0}, "above zero"),
        ({(0,): math.nan}, "above zero"),
        ({(1, 0): 1.0}, "in their order"),
        ({(0, 0): 1.0}, "different columns"),
        ({(2,): 1.0}, "different columns"),
    ],
)
def test_plans_that_make_no_sense_are_refused(weights: dict[Subset, float], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        residual_plan([cells(2), cells(3)], weights)
