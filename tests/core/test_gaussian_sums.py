"""Sums of discrete Gaussian integers: half-widths cover by the exact law, and hardly more."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.gaussian import GaussianNoise
from sfumato.core.gaussian_sums import GaussianSum, many_half_widths
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import tail
from tests.lattice_laws import chance_within, lattice_law, least_width

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999999)
SIGMAS = (0.15, 0.3, 0.4, 0.5, 0.7, 1, 2, 5, 30)
SUMS = {
    "alike": (1, 1),
    "a cell of 2 x 3": (12, -6, -6, -12, 6, 6, 3, -3, 4, -2, -2, 6),
    "one and little ones": (40, *[1] * 12),
    "far apart": (1, 7, 50),
}


def sum_of(sigma: float, weights: tuple[int, ...]) -> GaussianSum:
    return GaussianSum.of([(GaussianNoise(Fraction(sigma) ** 2), np.array(weights, dtype=np.float64))])


@pytest.mark.parametrize("weights", SUMS.values(), ids=SUMS)
def test_half_widths_cover_and_are_hardly_wider_than_the_least(weights: tuple[int, ...]) -> None:
    """By the exact law. The least width is a multiple of the lattice's step."""
    for sigma in SIGMAS:
        noise = sum_of(sigma, weights)
        law = lattice_law([(GaussianNoise(Fraction(sigma) ** 2), weight) for weight in weights])
        for level in LEVELS:
            width = noise.half_width(level)
            assert chance_within(law, width) >= level - 1e-10, (sigma, level)
            most = (1 + 1e-3) * least_width(law, level) + 0.005 * sigma * math.hypot(*weights) + 1e-6
            assert width <= most, (sigma, level)


@pytest.mark.parametrize("sigma", [0.4, 0.5, 2, 30])
def test_a_single_integer_has_the_exact_quantile(sigma: float) -> None:
    law = GaussianNoise(Fraction(sigma) ** 2)
    for level in LEVELS:
        assert sum_of(sigma, (3,)).half_width(level) == pytest.approx(3 * law.half_width(level), rel=1e-8)


def test_a_width_of_nothing_is_right() -> None:
    """At 0.3 nine in ten sums of 12 are exact; the widths of higher levels are those of noise."""
    weights = SUMS["a cell of 2 x 3"]
    law = lattice_law([(GaussianNoise(Fraction(9, 100)), weight) for weight in weights])
    noise = sum_of(0.3, weights)
    assert noise.half_width(0.9) == 0 and 0.9 < law[0] < 0.95
    assert noise.half_width(0.95) >= 2
    assert GaussianSum.of([]).half_width(0.95) == 0


def test_the_normal_quantile_does_not_cover() -> None:
    """The planted rule that these half-widths replace: it misses a single integer 21 times in 100."""
    law = lattice_law([(GaussianNoise(Fraction(1, 4)), 1)])
    assert chance_within(law, 1.96 * 0.5) < 0.8
    weights = SUMS["a cell of 2 x 3"]
    law = lattice_law([(GaussianNoise(Fraction(1, 4)), weight) for weight in weights])
    assert chance_within(law, 1.96 * sum_of(0.5, weights).deviation) < 0.95


def test_normal_parts_are_as_wide_as_their_terms() -> None:
    """Many little integers are kept as one normal law, and the width is that of all of them."""
    generator = np.random.default_rng(3)
    weights = np.concatenate([generator.uniform(0.5, 1, 3_000), [4.0, 30.0]])
    noise = GaussianSum.of([(GaussianNoise(Fraction(900)), weights)])
    assert noise.normal > 0 and not noise.terms and 0.5 < noise.shift < 1.1
    deviation = 30 * math.sqrt(np.square(weights).sum())
    assert noise.deviation == pytest.approx(deviation, rel=1e-9)
    for level, z in ((0.5, 0.67449), (0.95, 1.959964), (0.999999, 4.891638)):
        assert z < noise.half_width(level) / deviation < z * 1.004
    assert noise.scaled(0.5).half_width(0.95) == pytest.approx(noise.half_width(0.95) / 2)


def test_levels_of_almost_one_are_bounded() -> None:
    noise = sum_of(0.5, (1, 1))
    law = lattice_law([(GaussianNoise(Fraction(1, 4)), 1)] * 2)
    for level in (Fraction(10**9 - 1, 10**9), Fraction(10**12 - 1, 10**12)):
        assert chance_within(law, noise.half_width(level)) >= float(level) - 1e-12
    assert noise.half_width(1 - Fraction(1, 10**400)) < 31


@pytest.mark.parametrize("sigma", [0.5, 2, 30])
def test_many_sums_at_once_are_covered(sigma: float) -> None:
    law = GaussianNoise(Fraction(sigma) ** 2)
    for weights in SUMS.values():
        exact = lattice_law([(law, weight) for weight in weights])
        sizes = np.abs(np.array([weights, weights], dtype=np.float64))
        for level in LEVELS:
            wide = many_half_widths([(law, np.square(sizes).sum(axis=1), sizes.max(axis=1))], level)
            assert wide[0] == wide[1] and chance_within(exact, wide[0]) >= level - 1e-10
            if sigma == 30:
                assert wide[0] <= 1.1 * sum_of(sigma, weights).half_width(level)


PAIRS = [
    (first, second, weights)
    for first, second in ((0.15, 0.15), (0.5, 2), (3, 3), (20, 1))
    for weights in ((1, 1), (1, 3), (5, 2))
]


@pytest.mark.parametrize("kinds", [("laplace", "laplace"), ("gaussian", "gaussian"), ("laplace", "gaussian")])
def test_tails_of_ratios_are_at_least_the_exact_ones(kinds: tuple[str, str]) -> None:
    """What Fieller's intervals of quotients rest on, for two noises of any size; it may be larger."""
    for first, second, weights in PAIRS:
        laws: list[NoiseLaw] = [
            LaplaceNoise(Fraction(one)) if kind == "laplace" else GaussianNoise(Fraction(one) ** 2)
            for kind, one in zip(kinds, (first, second), strict=True)
        ]
        exact = lattice_law(list(zip(laws, weights, strict=True)))
        above = 1 - np.concatenate(([0.0], np.cumsum(exact)))[:-1]  # P(|S| >= d)
        distances = np.arange(len(above), dtype=np.float64)
        sizes = [np.full(len(above), float(weight)) for weight in weights]
        found = tail(laws, sizes, distances, np.zeros(len(above)))
        likely = above > 1e-3
        assert (found >= above * (1 - 1e-9))[likely].all(), (first, second, weights)
