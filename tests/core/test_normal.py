"""The normal law, against sixty digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from sfumato.core.normal import middle_quantile, scaled_tail, tail_quantile, upper_tail

CLOSE = 1e-14


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(60):
        yield


def tail_of(z: float) -> mpmath.mpf:
    return mpmath.erfc(mpmath.mpf(z) / mpmath.sqrt(2)) / 2


def test_the_scaled_tail_is_close_on_both_sides_of_where_the_fraction_begins():
    points = np.array([-5.0, -1.0, -1e-9, 0.0, 0.3, 1.0, 3.0, 4.999999, 5.0, 5.1, 8.0, 26.0, 27.0, 60.0])
    for x, found in zip(points, scaled_tail(points), strict=True):
        truth = mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x)
        assert abs(found / truth - 1) < CLOSE, x


def test_the_scaled_tail_has_its_limits():
    far = np.array([1e8, 1e200])
    assert scaled_tail(far) * far * math.sqrt(math.pi) == pytest.approx([1, 1])
    assert scaled_tail(np.array([math.inf])) == [0]
    assert scaled_tail(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("z", [-30.0, -1.0, 0.0, 0.5, 10.0, 37.0])
def test_the_tail(z):
    assert abs(upper_tail(z) / tail_of(z) - 1) < 1e-13


@pytest.mark.parametrize("z", [1e-6, 0.01, 0.5, 1.0, 2.0, 6.9, 7.1, 37.0, 150.0, 400.0])
def test_quantiles_undo_tails(z):
    (found,) = tail_quantile(np.array([float(mpmath.log(tail_of(z)))]))
    assert abs(found - z) < CLOSE * max(1.0, z)


@pytest.mark.parametrize("mass", [1e-300, 1e-12, 1e-3, 0.1, 0.3935, 0.4622, 0.5])
def test_quantiles_near_the_middle_keep_their_digits(mass):
    truth = mpmath.erfinv(mpmath.mpf(mass)) * mpmath.sqrt(2)
    assert abs(middle_quantile(mass) / truth - 1) < CLOSE
