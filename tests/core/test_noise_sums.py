"""Laws: exact quantiles of one noise; tails of sums that are never too small."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core import discrete_gaussian, discrete_laplace
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise_law import NoiseLaw, noise_law
from sfumato.core.noise_sums import tail, widest_quantile
from sfumato.errors import InvalidArgument

LAPLACE = LaplaceNoise(Fraction(7))
GAUSSIAN = GaussianNoise(Fraction(100))


def pmf(law: NoiseLaw, span: int) -> np.ndarray:
    x = np.arange(-span, span + 1)
    weights = (
        np.exp(-np.abs(x) / float(law.parameter))
        if law.name == "laplace"
        else np.exp(-(x**2) / (2 * float(law.parameter)))
    )
    return weights / weights.sum()


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_half_widths_are_the_least_of_the_discrete_law(law: NoiseLaw, level: float) -> None:
    width = law.half_width(level)
    chances = pmf(law, 400)
    inside = [chances[400 - w : 401 + w].sum() for w in (width, width - 1)]
    assert inside[0] >= level - 1e-12 and inside[1] < level


@pytest.mark.parametrize(
    ("first", "second", "weight"),
    [
        (LAPLACE, LAPLACE, 1),
        (LAPLACE, LAPLACE, 3),
        (LAPLACE, LaplaceNoise(Fraction(1, 2)), 2),
        (GAUSSIAN, GAUSSIAN, 2),
        (LAPLACE, GAUSSIAN, 1),
        (LaplaceNoise(Fraction(70)), GAUSSIAN, 1),
    ],
)
def test_tails_of_two_noises_are_from_above_and_near(first: NoiseLaw, second: NoiseLaw, weight: int) -> None:
    """Exact: the law of X + weight * Y, by convolution."""
    span = 2000
    spread = np.zeros(2 * span * weight + 1)
    spread[::weight] = pmf(second, span)
    law = np.convolve(pmf(first, span), spread)
    middle = len(law) // 2
    for distance in (1, 10, 25, 60, 120):
        exact = 1 - law[middle - distance + 1 : middle + distance].sum()
        found = float(
            tail(
                [first, second],
                [np.ones(1), np.full(1, float(weight))],
                np.array([float(distance)]),
                np.zeros(1),
            )[0]
        )
        assert found >= exact - 1e-9
        both = {first.name, second.name}
        if len(both) == 1 and exact > 1e-6:  # the closed forms: as near as half a step for each noise allows
            closer = distance - (1 + weight)
            nearer = 1.0 if closer < 1 else 1 - law[middle - closer + 1 : middle + closer].sum()
            assert found <= nearer + 1e-9


def test_nearly_equal_scales_do_not_cancel() -> None:
    scales = [Fraction(10), Fraction(10) + Fraction(1, 10**9)]
    laws = [LaplaceNoise(scale) for scale in scales]
    one = np.ones(1)
    found = tail(laws, [one, one], np.array([31.0]), np.zeros(1))[0]
    assert found == pytest.approx((1 + 30 / 20) * math.exp(-3), rel=1e-6)


def test_the_widest_quantile_holds_for_sums_of_many_laplace_noises() -> None:
    """Weighted sums of 2 to 40 noises, 200,000 draws each, at four levels: exceeded no more often than
    stated, up to 6.5 deviations (false alarm below 1e-9 in all). Catches the normal quantile alone."""
    for number in (2, 3, 8, 40):
        weights = np.linspace(0.2, 1, number)
        draws = discrete_laplace(50, size=200_000 * number).reshape(number, -1)
        deviation = math.sqrt(2) * 50 * math.sqrt((weights**2).sum())
        size = np.abs(weights @ draws) / deviation
        for chance in (0.5, 0.1, 0.05, 0.01):
            wide = widest_quantile(chance, [LaplaceNoise(Fraction(50))])
            assert (size > wide).mean() <= chance + 6.5 * math.sqrt(chance / 200_000)


def test_gaussian_sums_have_the_normal_quantile() -> None:
    """False alarm below 1e-9: 200,000 draws, within 6.5 deviations of what the law on integers says, which is
    0.051 and not 0.05. Catches sigma taken for sigma squared, or 3% off."""
    assert widest_quantile(0.05, [GAUSSIAN]) == pytest.approx(1.959964, abs=1e-6)
    draws = discrete_gaussian(100, size=200_000, squared=True)
    chance = 2 * GAUSSIAN.tail(20)
    assert chance == pytest.approx(0.05, abs=0.0015)
    assert abs((np.abs(draws) > 19.6).mean() - chance) < 6.5 * math.sqrt(chance / 200_000)


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        noise_law("uniform", Fraction(1))
    with pytest.raises(InvalidArgument):
        LaplaceNoise(Fraction(0))
    with pytest.raises(InvalidArgument):
        LAPLACE.half_width(1.0)
