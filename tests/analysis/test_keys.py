"""Key selection: the chance that a lone unit's key appears, from the exact law of the noise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.analysis.keys import appearance, threshold
from sfumato.core import discrete_gaussian, discrete_laplace
from sfumato.core.noise_law import noise_law

LAWS = [
    ("laplace", Fraction(1, 3)),
    ("laplace", Fraction(5)),
    ("laplace", Fraction(80)),
    ("gaussian", Fraction(1, 4)),
    ("gaussian", Fraction(30)),
    ("gaussian", Fraction(20000)),
]


def pmf(kind: str, parameter: Fraction, reach: int) -> np.ndarray:  # type: ignore[type-arg]
    x = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-np.abs(x) / float(parameter) if kind == "laplace" else -(x**2) / (2 * float(parameter)))
    return weights / weights.sum()


def spread(kind: str, parameter: Fraction) -> int:
    return math.ceil(40 * (float(parameter) if kind == "laplace" else math.sqrt(parameter))) + 20


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
def test_tails_are_those_of_the_law(kind: str, parameter: Fraction) -> None:
    reach = spread(kind, parameter)
    masses = pmf(kind, parameter, reach)
    for gap in (1, 2, 3, reach // 8 + 1, reach // 3 + 1):
        tail = float(masses[reach + gap :].sum())
        assert tail <= noise_law(kind, parameter).tail(gap) * (1 + 1e-12) + 1e-300
        assert noise_law(kind, parameter).tail(gap) == pytest.approx(tail, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**9)])
def test_thresholds_hold_and_are_the_smallest(
    kind: str, parameter: Fraction, groups: int, gathered: bool, delta: Fraction
) -> None:
    level = threshold(noise_law(kind, parameter), groups, delta, gathered=gathered)
    assert appearance(noise_law(kind, parameter), level, groups, gathered=gathered) <= delta
    least = groups + 1 if gathered else 2
    if level > least:
        assert appearance(noise_law(kind, parameter), level - 1, groups, gathered=gathered) > delta


def partitions(total: int, most: int) -> list[tuple[int, ...]]:
    if total == 0:
        return [()]
    return [
        (part, *rest) for part in range(1, min(total, most) + 1) for rest in partitions(total - part, part)
    ]


@given(st.sampled_from(LAWS), st.integers(1, 6), st.integers(0, 40))
def test_no_way_of_falling_together_appears_more_often(
    law: tuple[str, Fraction], groups: int, above: int
) -> None:
    level = groups + 1 + above
    claimed = appearance(noise_law(*law), level, groups, gathered=True)
    for number in range(groups + 1):
        for parts in partitions(number, number):
            hidden = math.prod(1 - noise_law(*law).tail(level - part) for part in parts)
            assert 1 - hidden <= claimed + 1e-15


def test_a_lone_unit_appears_as_rarely_as_claimed() -> None:
    """Draw it: 2 million lone units at delta = 1e-3.

    False alarms: the bound is 7 standard deviations up, 1e-11. Power: a threshold that is one too
    low makes the rate e^(1/5) = 1.22 times as large, 10 deviations.
    """
    draws, delta = 2_000_000, Fraction(1, 1000)
    for kind, parameter, draw in (
        ("laplace", Fraction(5), lambda: discrete_laplace(5, size=draws)),
        ("gaussian", Fraction(30), lambda: discrete_gaussian(Fraction(30), size=draws, squared=True)),
    ):
        level = threshold(noise_law(kind, parameter), 1, delta, gathered=False)
        rate = np.count_nonzero(1 + draw() >= level) / draws
        exact = appearance(noise_law(kind, parameter), level, 1, gathered=False)
        assert exact <= delta
        assert abs(rate - exact) <= 7 * math.sqrt(exact / draws)


def test_thresholds_rise_as_delta_falls_and_groups_grow() -> None:
    levels = [
        threshold(noise_law("laplace", Fraction(5)), 3, Fraction(1, 10**n), gathered=False)
        for n in range(2, 12)
    ]
    assert all(low < high for low, high in pairwise(levels))
    grown = [
        threshold(noise_law("gaussian", Fraction(30)), n, Fraction(1, 10**6), gathered=False)
        for n in (1, 10, 1000)
    ]
    assert all(low < high for low, high in pairwise(grown))
