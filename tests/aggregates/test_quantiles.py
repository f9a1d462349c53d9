"""The tree estimate is the least-squares one, its variances are exact, and quantiles cover."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.quantiles import quantiles
from sfumato.aggregates.registry import Function
from sfumato.aggregates.trees import Tree
from sfumato.core import discrete_gaussian, discrete_laplace
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise_law import noise_law

DRAWS = 10_000
MOST = int(binom.isf(1e-9, DRAWS, 0.05))

SHAPES = [(1, 1, 2), (7, 1, 4), (8, 4, 2), (13, 3, 3), (10, 5, 2), (33, 2, 4), (5, 4, 2)]


def matrix(tree: Tree) -> np.ndarray:
    """Return the sums that are observed, one row per block of every layer."""
    rows = []
    for layer, width in enumerate(tree.widths()):
        size = tree.branching**layer
        rows += [[float(i // size == block) for i in range(tree.cells)] for block in range(width)]
    return np.array(rows)


def sums(tree: Tree, cells: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(
        np.add.reduceat(cells, np.arange(0, tree.cells, tree.branching**layer), axis=1)
        for layer in range(tree.levels)
    )


@pytest.mark.parametrize(("cells", "levels", "branching"), SHAPES)
def test_estimates_are_least_squares(cells: int, levels: int, branching: int) -> None:
    """Exact: against the normal equations."""
    tree = Tree(cells=cells, levels=levels, branching=branching, variance=3.0)
    observed = matrix(tree)
    noisy = np.random.default_rng(1).integers(-50, 50, (4, len(observed)))
    ends = np.cumsum([0, *tree.widths()])
    layers = tuple(noisy[:, a:b] for a, b in pairwise(ends))
    expected = np.linalg.lstsq(observed, noisy.T.astype(float), rcond=None)[0].T
    assert tree.consistent(layers) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("cells", "levels", "branching"), SHAPES)
def test_variances_of_ranks_are_exact(cells: int, levels: int, branching: int) -> None:
    tree = Tree(cells=cells, levels=levels, branching=branching, variance=3.0)
    observed = matrix(tree)
    covariance = 3.0 * np.linalg.inv(observed.T @ observed)
    first = np.tril(np.ones((cells + 1, cells)), -1)
    variances, shared, total = tree.prefix_variances()
    assert variances == pytest.approx(np.diag(first @ covariance @ first.T), abs=1e-9)
    assert shared == pytest.approx(first @ covariance @ np.ones(cells), abs=1e-9)
    assert total == pytest.approx(covariance.sum())


def answer(edges: np.ndarray, *qs: float, points: bool = False) -> Answer:
    return Answer(
        name="q",
        function=Function.QUANTILE,
        measures=("c",),
        quantiles=qs,
        edges=tuple(float(edge) for edge in edges),
        points=points,
        several=True,
    )


def test_without_noise_quantiles_are_those_of_the_cells() -> None:
    tree = Tree(cells=4, levels=1, branching=2, variance=1.0)
    law = LaplaceNoise(Fraction(1))
    cells = np.array([[2, 0, 6, 2]])
    how = answer(np.array([0, 10, 20, 30, 40]), 0.0, 0.1, 0.2, 0.5, 0.8, 1.0)
    found = [float(each.values[0]) for each in quantiles(how, (cells,), tree, law, 0.05)]
    assert found == pytest.approx([0, 5, 10, 25, 30, 40])
    how = answer(np.array([0, 10, 20, 30, 40]), 0.0, 0.1, 0.2, 0.5, 0.8, 1.0, points=True)
    assert [float(each.values[0]) for each in quantiles(how, (cells,), tree, law, 0.05)] == [
        0,
        0,
        0,
        20,
        20,
        30,
    ]


def test_nobody_has_no_median() -> None:
    tree = Tree(cells=4, levels=1, branching=2, variance=1.0)
    law = LaplaceNoise(Fraction(1))
    cells = np.array([[2, 0, -6, 2], [0, 0, 0, 0]])
    [found] = quantiles(answer(np.arange(5), 0.5), (cells,), tree, law, 0.05)
    assert np.isnan(found.values).all() and (found.low == 0).all() and (found.high == 4).all()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(("number", "levels", "branching"), [(300, 1, 2), (300, 4, 4), (5000, 7, 2)])
def test_intervals_cover_the_true_quantile(number: int, levels: int, branching: int, kind: str) -> None:
    """10,000 draws of noise on one histogram; misses of level 0.95 above MOST: false alarm 1e-9 each.
    Power: intervals at half their width are caught (next test)."""
    for missed in missing(number, levels, branching, kind, 1.0):
        assert missed <= MOST


def test_intervals_for_less_noise_than_there_is_would_be_caught() -> None:
    assert max(missing(5000, 4, 4, "gaussian", 0.5)) > MOST


def missing(number: int, levels: int, branching: int, kind: str, told: float) -> list[int]:
    """Return how often the intervals of three quantiles miss, told some part of the noise's deviation."""
    width = 64
    generator = np.random.default_rng(3)
    ages = np.clip(np.rint(generator.gamma(4, 5, number)), 0, width - 1).astype(np.int64)
    cells = np.bincount(ages, minlength=width)
    scale = Fraction(3) * levels
    parameter = scale if kind == "laplace" else scale**2
    part = Fraction(told)
    law = noise_law(kind, parameter * (part if kind == "laplace" else part**2))
    tree = Tree(cells=width, levels=levels, branching=branching, variance=law.deviation**2)

    def draw(size: int) -> np.ndarray:
        if kind == "laplace":
            return discrete_laplace(parameter, size=size)
        return discrete_gaussian(parameter, size=size, squared=True)

    layers = tuple(
        layer + draw(DRAWS * layer.shape[1]).reshape(DRAWS, -1) for layer in sums(tree, cells[None, :])
    )
    qs = (0.1, 0.5, 0.95)
    found = quantiles(answer(np.arange(width + 1), *qs, points=True), layers, tree, law, 0.05)
    stacked = np.array([each.values for each in found])
    assert (np.diff(stacked, axis=0) >= 0).all()  # they rise, in every draw
    truths = [float(np.sort(ages)[int(np.ceil(q * number)) - 1]) for q in qs]
    return [
        int(((each.low > truth) | (truth > each.high)).sum())
        for each, truth in zip(found, truths, strict=True)
    ]


def test_many_groups_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(cells=16, levels=3, branching=2, variance=18.0)
    law = LaplaceNoise(Fraction(3))
    layers = sums(tree, np.random.default_rng(5).integers(0, 90, (25, 16)))
    how = answer(np.arange(17), 0.2, 0.6)
    whole = quantiles(how, layers, tree, law, 0.05)
    monkeypatch.setattr("sfumato.aggregates.quantiles._AT_ONCE", 16 * 4)
    for one, other in zip(whole, quantiles(how, layers, tree, law, 0.05), strict=True):
        assert one.values.tolist() == other.values.tolist()
        assert one.low.tolist() == other.low.tolist() and one.high.tolist() == other.high.tolist()


def test_layers_help() -> None:
    """Exact: the deviation of the median's rank among 1024 cells, at equal noise per unit in total."""
    flat = Tree(cells=1024, levels=1, branching=2, variance=1.0)
    layered = Tree(cells=1024, levels=3, branching=16, variance=3.0)  # Gaussian: a third of the budget each
    assert layered.prefix_variances()[0][512] < flat.prefix_variances()[0][512] / 5
