"""Intervals of rates cover, whatever the counts are; and they are not wider than they have to be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.gaussian import GaussianNoise
from sfumato.learn.rates import CellSum, Rate, rate_of

DRAWS = 3000
MISS = 0.2


def misses_allowed(draws: int, miss: float) -> int:
    """Return how many misses of `draws` happen with probability 1e-9 at most (Chernoff)."""
    count = math.ceil(draws * miss)
    while draws * (
        count / draws * math.log(count / draws / miss)
        + (1 - count / draws) * math.log((1 - count / draws) / (1 - miss))
    ) < math.log(1e9):
        count += 1
    return count


@pytest.mark.parametrize(
    ("right", "wrong", "cells", "deviation"),
    [
        (900, 100, (2, 2), 8),
        (30, 2, (1, 1), 8),  # hardly anything is known
        (0, 5000, (10, 90), 40),  # a rate at the end of its range
        (400, 10, (3, 1), 2),  # noise of few steps: its law is not that of a normal one
        (0, 0, (1, 4), 5),  # nobody: any rate is right
    ],
)
def test_intervals_cover_as_often_as_they_say(
    right: int, wrong: int, cells: tuple[int, int], deviation: int
) -> None:
    """False alarms: 1e-9. Power: an interval without the noise of the denominator misses half of the time."""
    law = GaussianNoise(Fraction(deviation**2))
    truth = right / (right + wrong) if right + wrong else None
    missed = 0
    noise = [law.draw(DRAWS * number).reshape(DRAWS, number).sum(axis=1) for number in cells]
    for one, other in zip(*noise, strict=True):
        counts = CellSum(right + int(one), cells[0]), CellSum(wrong + int(other), cells[1])
        rate = rate_of(*counts, deviation=deviation, miss=MISS)
        assert 0 <= rate.low <= rate.value <= rate.high <= 1
        missed += truth is not None and not rate.low <= truth <= rate.high
    assert missed <= misses_allowed(DRAWS, MISS)
    if right == 900:
        assert missed >= DRAWS * MISS - (misses_allowed(DRAWS, MISS) - DRAWS * MISS) - DRAWS * MISS / 2


def test_averaged_counts_cover() -> None:
    """False alarms: 1e-9. Two tables that count the same make one count with less noise."""
    law, missed = GaussianNoise(Fraction(900)), 0
    for _ in range(DRAWS // 3):
        drawn = [int(law.draw(number).sum()) for number in (2, 5, 90, 5)]
        right = CellSum(800 + drawn[0], 2).averaged(CellSum(800 + drawn[1], 5))
        wrong = CellSum(300 + drawn[2], 90).averaged(CellSum(300 + drawn[3], 5))
        rate = rate_of(right, wrong, deviation=30, miss=MISS)
        missed += not rate.low <= 8 / 11 <= rate.high
    assert missed <= misses_allowed(DRAWS // 3, MISS)


def test_an_interval_is_as_narrow_as_the_delta_method_says_where_that_is_right() -> None:
    rate = rate_of(CellSum(90_000, 3), CellSum(10_000, 5), deviation=50, miss=0.05)
    expected = 2 * 1.96 * 50 * math.sqrt(0.1**2 * 3 + 0.9**2 * 5) / 100_000
    assert rate.high - rate.low == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("counts", [(3, 5), (-40, -60), (-1e6, -1e6), (0, 0), (1e-3, -1e-3)])
def test_what_noise_hides_is_no_information(counts: tuple[float, float]) -> None:
    rate = rate_of(CellSum(counts[0], 1), CellSum(counts[1], 1), deviation=100, miss=0.05)
    assert (rate.low, rate.high) == (0, 1)
    assert not rate.informative
    assert rate.said() == "no information at this budget"


def test_differences_are_boxes() -> None:
    low, high = Rate(0.9, 0.88, 0.92).minus(Rate(0.7, 0.6, 0.8))
    assert np.allclose((low, high), (0.08, 0.32))
