"""Clipped gradients: one unit moves the integers by at most the claimed norm, and its own part alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.learn import gradients
from sfumato.learn.gradients import (
    SENSITIVITY,
    STEPS,
    EncodedRows,
    Residuals,
    clipped_sum,
    logistic_residuals,
    on_grid,
    probabilities,
    softmax_residuals,
    squared_residuals,
)

OBJECTIVES: list[tuple[Residuals, int]] = [
    (logistic_residuals, 1),
    (softmax_residuals, 4),
    (squared_residuals, 1),
]


def made(rng: np.random.Generator, sizes: list[int], width: int = 5) -> tuple[Any, Any, Any]:
    """Return rows at the ends of their ranges and between them, labels, and sizes of units."""
    number = sum(sizes)
    features = rng.integers(-8 * STEPS, 8 * STEPS, (number, width), endpoint=True)
    features[rng.random(features.shape) < 0.3] = 8 * STEPS
    labels = rng.integers(0, 2, number).astype(np.float64)
    return features.astype(np.int16), labels, np.array(sizes, dtype=np.int64)


def total(parts: tuple[Any, Any, Any], parameters: Any, residuals: Residuals, clip: float) -> Any:
    return clipped_sum(EncodedRows.of(*parts), parameters, residuals, clip)


def without(parts: tuple[Any, Any, Any], unit: int) -> tuple[Any, Any, Any]:
    features, labels, sizes = parts
    rows = np.repeat(np.arange(len(sizes)) != unit, sizes)
    return features[rows], labels[rows], np.delete(sizes, unit)


def squared_norm(difference: npt.NDArray[Any]) -> int:
    return sum(int(entry) ** 2 for entry in difference.ravel())


def largest_move(seed: int, objectives: list[tuple[Residuals, int]] = OBJECTIVES) -> int:
    """Return the square of how far any unit moves any of many sums, at parameters of every size."""
    rng, most = np.random.default_rng(seed), 0
    parts = made(rng, [1, 1, 2, 3, 40, 1])
    for residuals, classes in objectives:
        for size in (0.0, 0.3, 30.0, 1e6):
            parameters = size * rng.standard_normal((6, classes))
            for clip in (0.01, 1.0, 50.0):
                whole = total(parts, parameters, residuals, clip)
                for unit in range(len(parts[2])):
                    rest = total(without(parts, unit), parameters, residuals, clip)
                    most = max(most, squared_norm(whole - rest))
    return most


def test_one_unit_moves_the_sum_by_no_more_than_its_sensitivity() -> None:
    most = max(largest_move(seed) for seed in range(3))
    assert 0.999 * SENSITIVITY**2 < most <= SENSITIVITY**2  # the claim holds, and is not loose


def test_a_planted_row_that_is_not_clipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = gradients._scales

    def first_row_whole(residuals: Any, norms: Any, clip: float) -> Any:
        scales = honest(residuals, norms, clip)
        scales[:1] = gradients.LIMIT / clip
        return scales

    monkeypatch.setattr(gradients, "_scales", first_row_whole)
    assert largest_move(0, OBJECTIVES[:2]) > SENSITIVITY**2


def test_a_planted_unit_whose_rows_each_count_as_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "repeat", lambda values, sizes: np.ones(int(np.sum(sizes))))
    rng = np.random.default_rng(1)
    features, labels, _ = made(rng, [40])
    features[:], labels[:] = 8 * STEPS, 0.0  # forty times the same row
    moved = total((features, labels, np.array([40])), np.zeros((6, 1)), logistic_residuals, 0.01)
    assert squared_norm(moved) > SENSITIVITY**2


@pytest.mark.parametrize(("residuals", "classes"), OBJECTIVES)
def test_what_a_unit_adds_depends_on_nobody_else(residuals: Residuals, classes: int) -> None:
    """Sums over units one at a time, and over all in any order, are the same integers, bit by bit."""
    rng = np.random.default_rng(7)
    sizes = [1] * 9000 + [3] * 100  # more than one block of rows
    parts = features, labels, counts = made(rng, sizes, width=3)
    parameters = rng.standard_normal((4, classes))
    whole = total(parts, parameters, residuals, 1.0)
    turned = features[::-1], labels[::-1], counts[::-1]
    assert np.array_equal(whole, total(turned, parameters, residuals, 1.0))
    some = slice(0, 4111), slice(4111, len(features))
    halves = [(features[part], labels[part]) for part in some]
    split = (counts[:4111], counts[4111:])
    parted = [
        total((*half, own), parameters, residuals, 1.0) for half, own in zip(halves, split, strict=True)
    ]
    assert np.array_equal(whole, sum(parted))


def test_gradients_are_those_of_the_loss() -> None:
    rng = np.random.default_rng(3)
    features, labels, sizes = made(rng, [1] * 500)
    features //= 16
    rows, parameters = EncodedRows.of(features, labels, sizes), rng.standard_normal((6, 1))
    plain = rows.features / STEPS
    chances = 1 / (1 + np.exp(-(plain @ parameters)))
    exact = plain.T @ (chances - labels[:, None])
    found = clipped_sum(rows, parameters, logistic_residuals, 1000.0).astype(np.float64) * (
        1000.0 / SENSITIVITY
    )
    assert np.abs(found - exact).max() < 0.2  # of 500 rows, each to about a ten-thousandth


def test_probabilities_add_up() -> None:
    margins = np.array([[0.0, 1.0, -40.0], [1e6, -1e6, 0.0]])
    exact = np.exp(margins - margins.max(axis=1, keepdims=True))
    assert np.abs(probabilities(margins) - exact / exact.sum(axis=1, keepdims=True)).max() < 1e-3
    assert probabilities(np.array([[0.0], [500.0], [-500.0]])).ravel().round(9).tolist() == [0.5, 1.0, 0.0]


def test_huge_parameters_stay_within_exact_margins() -> None:
    huge = on_grid(np.array([[np.inf, 1.0], [1e12, -2.0]]))
    assert (np.abs(huge).sum(axis=0) * 2.0**20 * 8 * STEPS < 2.0**53).all()
    assert np.array_equal(on_grid(huge), huge)
