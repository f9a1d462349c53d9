"""Marginal tables: exact without noise, consistent with it, and variances that are those of the noise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import InvalidArgument
from sfumato.workloads.bases import cells
from sfumato.workloads.marginal_noise import MarginalNoise
from sfumato.workloads.marginal_tables import MarginalTables, measured_residuals
from sfumato.workloads.residuals import ResidualPlan, all_ways, residual_plan
from tests.workloads.made import prefixes, ranges

SIZES = (3, 4, 5, 2)


def plan_of(ways: int = 3) -> ResidualPlan:
    bases = [cells(3), prefixes(4), ranges(5), cells(2)]
    return residual_plan(bases, dict.fromkeys(all_ways(4, ways), 1.0))


def people() -> tuple[np.ndarray, np.ndarray]:
    """Rows with cells that differ, each standing for several; some in no table."""
    codes = np.array([[(7 * i + j * j) % size for j, size in enumerate(SIZES)] for i in range(60)])
    codes[::13, 2] = -1
    return codes, np.arange(60) % 4


def truth(columns: tuple[int, ...]) -> np.ndarray:
    codes, counts = people()
    table = np.zeros([SIZES[i] for i in columns])
    for row, count in zip(codes, counts, strict=True):
        if (row >= 0).all():
            table[tuple(row[list(columns)])] += count
    return table


def noise_of(plan: ResidualPlan) -> MarginalNoise:
    laws = tuple(GaussianNoise(Fraction(one)) for one in plan.variances(cost=0.01).tolist())
    return MarginalNoise(plan=plan, laws=laws)


def tables(plan: ResidualPlan, noise: float = 0.0) -> MarginalTables:
    exact = list(measured_residuals(plan, *people()))
    noises = (np.round(noise * np.cos(np.arange(one.size))).astype(int) for one in exact)
    moved = [np.asarray(one + more.reshape(one.shape)) for one, more in zip(exact, noises, strict=True)]
    return MarginalTables(noise=noise_of(plan), measured=tuple(moved))


def test_without_noise_every_table_is_exact() -> None:
    plan = plan_of()
    assert all(one.dtype == np.int64 for one in measured_residuals(plan, *people()))
    found = tables(plan)
    for ways in range(4):
        for columns in combinations(range(4), ways):
            assert np.allclose(found.table(columns), truth(columns), atol=1e-9)


def test_with_noise_tables_agree_on_what_they_have_in_common() -> None:
    found = tables(plan_of(), noise=1e6)
    for columns in combinations(range(4), 3):
        whole = found.table(columns)
        assert np.abs(whole - truth(columns)).max() > 1
        for axis in range(3):
            smaller = columns[:axis] + columns[axis + 1 :]
            assert np.allclose(whole.sum(axis=axis), found.table(smaller), rtol=0, atol=1e-6)


def test_variances_are_those_of_the_linear_map_from_noise_to_cells() -> None:
    """Move each measured integer by one: what that does to a table is its part of the variance."""
    plan = plan_of(2)
    found, columns = tables(plan), (1, 2)
    plain = found.table(columns)
    query = np.cos(np.arange(plain.size)).reshape(plain.shape)
    each, summed = np.zeros(plain.shape), 0.0
    for place, (measured, variance) in enumerate(zip(found.measured, found.noise.variances, strict=True)):
        for index in np.ndindex(measured.shape):
            moved = [one.copy() for one in found.measured]
            moved[place][index] += 1
            other = MarginalTables(noise=found.noise, measured=tuple(moved))
            change = other.table(columns) - plain
            each += variance * change**2
            summed += variance * float((query * change).sum()) ** 2
    assert np.allclose(found.noise.cell_variances(columns), each)
    assert math.isclose(found.noise.sum_variance(columns, query), summed, rel_tol=1e-6)
    one_cell = np.zeros(plain.shape)
    one_cell[1, 3] = 1
    assert math.isclose(found.noise.sum_variance(columns, one_cell), each[1, 3])


def test_mean_cell_variances_are_those_of_the_plan() -> None:
    plan = residual_plan([cells(3), cells(4), cells(5)], {(0, 1): 1.0, (1, 2): 2.0})
    found = noise_of(plan)
    for table in plan.tables:
        mean = plan.table_variance(table, found.variances)
        assert math.isclose(found.cell_variances(table).mean(), mean)
        assert math.isclose(found.mean_variance(table), mean)


def test_counts_beyond_64_bits_do_not_wrap_around() -> None:
    plan = residual_plan([cells(3), cells(4)], {(0, 1): 1.0})
    codes = np.array([[0, 1], [2, 3]])
    counts = np.array([2**60, 2**59])
    found = tuple(measured_residuals(plan, codes, counts))
    wide = tuple(measured_residuals(plan, codes, counts.astype(object) * 2**70))
    assert wide[-1][0, 1] == 2**70 * found[-1][0, 1]
    assert found[-1].dtype == object and found[-1][0, 1] == 2 * 3 * 2**60 + 2**59
    table = MarginalTables(noise=noise_of(plan), measured=found).table((0, 1))
    assert math.isclose(table[0, 1], 2**60)


def test_a_table_that_the_workload_does_not_determine_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="not part of the workload"):
        tables(plan_of(2)).table((0, 1, 2))


def test_half_widths_of_cells_are_those_of_their_sums() -> None:
    """Of every cell, symmetric or not, by products of weights and by the query that names it."""
    noise, columns = noise_of(plan_of(2)), (0, 1)
    found = noise.cell_half_widths(columns, 0.9)
    deviations = np.sqrt(noise.cell_variances(columns))
    for place in np.ndindex(*found.shape):
        query = np.zeros(found.shape)
        query[place] = 1
        assert math.isclose(found[place], noise.sum_noise(columns, query).half_width(0.9), rel_tol=1e-6)
        assert 1.64 * deviations[place] < found[place] < 1.7 * deviations[place]
