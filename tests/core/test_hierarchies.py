"""Estimates that add up: against dense least squares, and integers that are exact whatever was measured."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sfumato.core.cube_estimates import cube_variances, estimate_cube
from sfumato.core.tree_estimates import LevelTree, estimate_tree
from sfumato.core.tree_rounding import round_tree
from sfumato.errors import InvalidArgument

# three levels, ragged: 2 roots, 5 nodes (in no order), 9 leaves
RAGGED = LevelTree(roots=2, parents=(np.array([1, 0, 0, 1, 1]), np.array([4, 0, 0, 1, 2, 3, 3, 3, 1])))
VARIANCES = [3.0, 0.5, 2.0]


def leaf_matrix(tree: LevelTree) -> list[np.ndarray[Any, Any]]:
    """Return, for each level, the matrix that makes its nodes of the leaves."""
    matrices = [np.eye(tree.sizes[-1])]
    for level in range(len(tree.parents) - 1, -1, -1):
        matrices.insert(0, np.asarray(tree.sums(level, matrices[0])))
    return matrices


def dense(
    matrices: list[np.ndarray[Any, Any]], variances: list[float], measured: list[np.ndarray[Any, Any]]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return weighted least squares of the leaves, and their covariance, by linear algebra."""
    weights = np.concatenate(
        [np.full(len(one), 1 / variance) for one, variance in zip(matrices, variances, strict=True)]
    )
    whole = np.concatenate(matrices)
    covariance = np.linalg.inv(whole.T @ (weights[:, None] * whole))
    return covariance @ whole.T @ (weights[:, None] * np.concatenate(measured)), covariance


def measurements(sizes: tuple[int, ...], cells: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    return [rng.normal(20, 30, size=(size, cells)) for size in sizes]


def test_two_passes_are_least_squares() -> None:
    measured, matrices = measurements(RAGGED.sizes, 4), leaf_matrix(RAGGED)
    found = estimate_tree(RAGGED, measured, VARIANCES)
    leaves, covariance = dense(matrices, VARIANCES, measured)
    for values, variances, matrix in zip(found.values, found.variances, matrices, strict=True):
        assert np.allclose(values, matrix @ leaves, rtol=0, atol=1e-9)
        assert np.allclose(variances, np.diag(matrix @ covariance @ matrix.T), rtol=1e-12)


def test_known_totals_are_least_squares_with_constraints() -> None:
    cells, measured = 3, measurements(RAGGED.sizes, 3)
    totals = {1: np.array([40, 51, 62, 73, 84])}
    found = estimate_tree(RAGGED, measured, VARIANCES, totals)
    matrices = [np.kron(one, np.eye(cells)) for one in leaf_matrix(RAGGED)]
    flat = [one.reshape(-1, 1) for one in measured]
    plain, covariance = dense(matrices, VARIANCES, flat)
    # least squares under linear constraints (Lagrange)
    constraints = np.kron(leaf_matrix(RAGGED)[1], np.ones((1, cells)))
    gain = covariance @ constraints.T @ np.linalg.inv(constraints @ covariance @ constraints.T)
    leaves = plain + gain @ (totals[1][:, None] - constraints @ plain)
    left = covariance - gain @ constraints @ covariance
    for values, variances, matrix in zip(found.values, found.variances, matrices, strict=True):
        assert np.allclose(values.reshape(-1, 1), matrix @ leaves, rtol=0, atol=1e-9)
        expected = np.diag(matrix @ left @ matrix.T).reshape(-1, cells)
        assert np.allclose(expected, variances[:, None], rtol=0, atol=1e-12)
    assert np.allclose(found.values[1].sum(axis=1), totals[1])


def test_without_cells_a_known_total_is_the_node_itself() -> None:
    measured = measurements(RAGGED.sizes, 1)
    found = estimate_tree(RAGGED, measured, VARIANCES, {0: np.array([100, 50])})
    assert np.allclose(found.values[0].ravel(), [100, 50]) and np.allclose(found.variances[0], 0)
    assert np.all(found.variances[1] < estimate_tree(RAGGED, measured, VARIANCES).variances[1])


def test_no_node_errs_more_than_its_measurement_nor_than_the_sum_of_its_leaves() -> None:
    found = estimate_tree(RAGGED, measurements(RAGGED.sizes, 1), VARIANCES)
    for variances, own, matrix in zip(found.variances, VARIANCES, leaf_matrix(RAGGED), strict=True):
        assert np.all(variances < own) and np.all(variances < matrix.sum(axis=1) * VARIANCES[-1])


@pytest.mark.parametrize("sets", [((0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,), ()), ((0, 2), (1,))])
def test_a_cube_is_least_squares(sets: tuple[tuple[int, ...], ...]) -> None:
    sizes, cells = (2, 3, 4), 2
    rng = np.random.default_rng(11)
    measured = {chosen: rng.normal(size=(*(sizes[one] for one in chosen), cells)) for chosen in sets}
    variances = {chosen: 0.5 + place for place, chosen in enumerate(sets)}
    found, spread = estimate_cube(sizes, measured, variances), cube_variances(sizes, variances)
    matrices = []
    for chosen in sets:
        matrix = np.ones((1, 1))
        for column, size in enumerate(sizes):
            matrix = np.kron(matrix, np.eye(size) if column in chosen else np.ones((1, size)))
        matrices.append(matrix)
    weights = np.concatenate(
        [np.full(len(one), variances[chosen] ** -0.5) for one, chosen in zip(matrices, sets, strict=True)]
    )
    whole = weights[:, None] * np.concatenate(matrices)
    inverse = np.linalg.pinv(whole)  # of sets without the finest one the solution is not unique
    right = np.concatenate([measured[chosen].reshape(-1, cells) for chosen in sets])
    leaves = inverse @ (weights[:, None] * right)
    for chosen, matrix in zip(sets, matrices, strict=True):
        assert np.allclose(found[chosen].reshape(-1, cells), matrix @ leaves, atol=1e-9)
        expected = np.diag(matrix @ inverse @ inverse.T @ matrix.T)
        assert np.allclose(expected, spread[chosen], rtol=1e-9)


def test_a_cube_of_nested_sets_is_a_tree() -> None:
    sizes, sets = (3, 4), ((), (0,), (0, 1))
    tree = LevelTree(roots=1, parents=(np.zeros(3, dtype=np.int64), np.repeat(np.arange(3), 4)))
    measured = measurements(tree.sizes, 1)
    as_tree = estimate_tree(tree, measured, VARIANCES)
    tables = dict(
        zip(
            sets,
            (one.reshape(*shape, 1) for one, shape in zip(measured, [(), (3,), (3, 4)], strict=True)),
            strict=True,
        )
    )
    as_cube = estimate_cube(sizes, tables, dict(zip(sets, VARIANCES, strict=True)))
    spread = cube_variances(sizes, dict(zip(sets, VARIANCES, strict=True)))
    for level, chosen in enumerate(sets):
        assert np.allclose(as_tree.values[level].ravel(), as_cube[chosen].ravel())
        assert np.allclose(as_tree.variances[level], spread[chosen])


@pytest.mark.parametrize("non_negative", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_integers_add_up_exactly(non_negative: bool, known: bool) -> None:
    rng = np.random.default_rng(3)
    for scale in (0.3, 5, 1e6):
        measured = [rng.normal(0.4, scale, size=(size, 3)) for size in RAGGED.sizes]
        totals = {1: rng.integers(0, 9, size=5)} if known else None
        found = estimate_tree(RAGGED, measured, VARIANCES, totals)
        rounded = round_tree(RAGGED, found.values, totals, non_negative=non_negative)
        for level in range(2):
            assert np.array_equal(rounded[level], RAGGED.sums(level, rounded[level + 1]))
        if totals:
            assert np.array_equal(rounded[1].sum(axis=1), totals[1])
        if non_negative:
            assert min(one.min() for one in rounded) >= 0
            continue
        for level in range(1 if known else 0, 3):  # the theorem: less than one away
            assert np.abs(rounded[level] - found.values[level]).max() < 1 + 1e-9


def test_non_negative_numbers_are_the_nearest() -> None:
    tree = LevelTree(roots=1, parents=(np.zeros(4, dtype=np.int64),))
    [_, found] = round_tree(
        tree, [np.array([[10.0]]), np.array([[9.0], [4.0], [-1.0], [-2.0]])], non_negative=True
    )
    # the nearest point of the simplex is (7.5, 2.5, 0, 0); of equal fractions the first is raised
    assert found.ravel().tolist() == [8, 2, 0, 0]
    [_, none] = round_tree(
        tree, [np.array([[-3.0]]), np.array([[1.0], [-1.0], [-1.0], [-2.0]])], non_negative=True
    )
    assert none.ravel().tolist() == [0, 0, 0, 0]


def test_estimates_do_not_move_when_nothing_contradicts() -> None:
    leaves = np.arange(9.0)[:, None]
    middle = np.asarray(RAGGED.sums(1, leaves))
    measured = [np.asarray(RAGGED.sums(0, middle)), middle, leaves]
    found = estimate_tree(RAGGED, measured, VARIANCES)
    for one, other in zip(measured, found.values, strict=True):
        assert np.allclose(one, other)
    rounded = round_tree(RAGGED, found.values, non_negative=True)
    assert np.array_equal(rounded[2], leaves)


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="has no child"):
        LevelTree(roots=2, parents=(np.array([0, 0]),))
    with pytest.raises(InvalidArgument, match="has no parent"):
        LevelTree(roots=2, parents=(np.array([0, 2]),))
    with pytest.raises(InvalidArgument, match="measured once"):
        estimate_tree(RAGGED, measurements((2, 5), 1), [1.0, 1.0])
    with pytest.raises(InvalidArgument, match="above zero"):
        estimate_tree(RAGGED, measurements(RAGGED.sizes, 1), [1.0, 0.0, 1.0])


def test_all_pairs_of_columns_are_found_in_the_cube() -> None:
    sizes = (2, 3, 2)
    sets = list(combinations(range(3), 2))
    spread = cube_variances(sizes, dict.fromkeys(sets, 1.0))
    assert all(value < 1 for value in spread.values())
