"""The discrete Gaussian's tails and its distance to a continuous one."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.events import DiscreteGaussian, Gaussian
from sfumato.core.events.lattice import gaussian_mu, gaussian_reach, gaussian_survival, last_output

F = Fraction
mp.mp.dps = 40


@given(
    shift=st.integers(1, 10**9),
    slope=st.fractions(min_value=F(1, 10**6), max_value=10**6).filter(bool),
    output=st.integers(-(10**9), 10**9),
    steps=st.integers(-3, 3),
)
def test_the_last_output_above_a_level_is_exact(shift: int, slope: Fraction, output: int, steps: int) -> None:
    """At the float nearest to some output's loss, and a few floats around it."""
    level = float((shift - 2 * output) * slope)
    for _ in range(abs(steps)):
        level = math.nextafter(level, math.copysign(math.inf, steps))
    found = int(last_output(np.array([level]), shift, slope)[0])
    assert (shift - 2 * found) * slope > F(level)
    assert (shift - 2 * (found + 1)) * slope <= F(level)


def summed_tail(variance: Fraction, thresholds: list[int]) -> list[mp.mpf]:
    """P(X >= m) by adding up weights in 40 digits; a weight follows from the last by one product."""
    s = mp.mpf(variance.numerator) / variance.denominator
    last = math.ceil(60 * math.sqrt(variance)) + 10
    weight, ratio, bend = mp.mpf(1), mp.exp(-1 / (2 * s)), mp.exp(-1 / s)
    weights = []
    for _ in range(last):
        weights.append(weight)
        weight, ratio = weight * ratio, ratio * bend
    tails, total = {}, mp.mpf(0)
    for x in reversed(range(last)):
        total += weights[x]
        tails[x] = total
    norm = 2 * tails[1] + 1
    return [tails[m] / norm if m > 0 else 1 - tails[1 - m] / norm for m in thresholds]


# 10_000 is where the table ends and the Euler-Maclaurin formula begins.
@pytest.mark.parametrize(
    "variance", [F(1, 100), F(1, 4), F(2), F(100), F(9999), F(10_000), F(10_001), F(10**6 + 1, 3), F(10**6)]
)
def test_survival_is_the_sum_of_the_weights_to_the_far_tail(variance: Fraction) -> None:
    sigma = math.sqrt(variance)
    thresholds = sorted(
        {round(z * sigma) for z in (-30, -5, -1, -0.1, 0, 0.1, 1, 3, 8, 13.4, 25, 37)} | {1, 2}
    )
    found = gaussian_survival(np.array(thresholds, dtype=float), variance)
    for m, value, truth in zip(thresholds, found, summed_tail(variance, thresholds), strict=True):
        z = m / sigma
        # An exponent of z^2/2 is a float, so this is the accuracy there is; losses.GUARD allows for it.
        allowed = 2e-15 * (4 + max(z, 0) ** 2)
        assert abs(mp.mpf(float(value)) - truth) <= allowed * truth + mp.mpf("1e-320"), (m, z)
        if z < 13.5:
            assert allowed < 2.0**-41


def test_the_smallest_tail_that_a_float_can_hold() -> None:
    survival = gaussian_survival(np.array([1.0, 2.0, 3.0, 4.0, 1e9]), F(1, 100))
    assert survival[:3] == pytest.approx([math.exp(-50), math.exp(-200), math.exp(-450)], rel=1e-12)
    assert survival[3] == survival[4] == 0


@pytest.mark.parametrize("sigma", [10**4, 10**7, 10**12, 10**60])
def test_wide_noise_has_the_tails_of_a_normal_law_between_the_integers(sigma: int) -> None:
    for z in (-2, 0, 1, 5, 13, 30):
        m = round(z * sigma)
        truth = mp.erfc((mp.mpf(m) - mp.mpf(1) / 2) / sigma / mp.sqrt(2)) / 2
        value = float(gaussian_survival(np.array([float(m)]), F(sigma) ** 2)[0])
        next_term = (abs(z) + mp.mpf(1) / sigma) * (abs(z) + 1) / (24 * mp.mpf(sigma) ** 2)
        assert abs(value - truth) <= (2e-15 * (4 + z * z) + next_term) * truth


@pytest.mark.parametrize("variance", [F(1, 10**6), F(1, 100), F(1), F(100), F(9999), F(10_000), F(10**12)])
def test_the_reach_leaves_less_than_1e_40(variance: Fraction) -> None:
    reach = gaussian_reach(variance)
    assert gaussian_survival(np.array([reach + 1.0]), variance)[0] <= 1e-40
    assert reach <= 14 * math.sqrt(variance) + 1


# -- mu -----------------------------------------------------------------------------------


def upper_quantile(tail: mp.mpf) -> mp.mpf:
    """The z with P(N > z) = tail < 1/2, by Newton's method on the logarithm."""
    log_tail = mp.log(tail)
    z = mp.sqrt(max(mp.mpf("0.01"), -2 * log_tail))
    for _ in range(60):
        value = mp.erfc(z / mp.sqrt(2)) / 2
        step = (mp.log(value) - log_tail) * value / mp.npdf(z)
        z += step
        if abs(step) < mp.mpf(10) ** -30:
            break
    return z


@pytest.mark.parametrize("variance", [F(1, 100), F(1, 9), F(1, 2), F(1), F(4), F(40)])
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 8])
def test_mu_is_the_worst_threshold_and_no_more(variance: Fraction, sensitivity: int) -> None:
    s = mp.mpf(variance.numerator) / variance.denominator
    last = 60 + sensitivity
    weights = [mp.exp(-mp.mpf(x * x) / (2 * s)) for x in range(last + 60)]
    norm = 2 * mp.fsum(weights) - 1
    tails, total = {}, mp.mpf(0)
    for x in reversed(range(len(weights))):
        total += weights[x]
        tails[x] = total / norm
    quantiles = {m: upper_quantile(tails[m]) for m in range(1, last)}
    quantiles |= {1 - m: -z for m, z in quantiles.items()}  # h at m - 1/2 is odd
    worst = max(quantiles[m] - quantiles[m - sensitivity] for m in range(1, last))
    mu = mp.mpf(float(gaussian_mu(variance, sensitivity)))
    assert worst <= mu <= worst * (1 + mp.mpf("3e-9"))


@pytest.mark.parametrize("sigma", [2, 5, 10, 30, 99])
def test_the_bound_for_wide_noise_holds_where_every_threshold_was_looked_at(sigma: int) -> None:
    variance = F(sigma) ** 2
    for sensitivity in (1, 2, 7, 50):
        scanned = float(gaussian_mu(variance, sensitivity)) * sigma / sensitivity
        assert 1 < scanned <= 1 / (1 - 1 / (12 * float(variance))) + 1e-9
        if sensitivity <= sigma / 4:
            assert scanned == pytest.approx(1 + 1 / (24 * sigma**2), rel=0.1 / sigma**2)


@pytest.mark.parametrize("sigma", [100, 250, 10**3, 10**6, 10**50])
def test_wide_noise_costs_barely_more_than_a_gaussian(sigma: int) -> None:
    for sensitivity in (1, sigma // 3, 10 * sigma):
        mu = F(gaussian_mu(F(sigma) ** 2, sensitivity)) * sigma / sensitivity
        assert 1 < mu <= 1 + F(1, 11 * sigma**2) + F(1, 10**15)
    # The lower end is real: at the middle threshold a mu without the lattice's share is too small.
    if sigma <= 1000:
        half = gaussian_survival(np.array([1.0]), F(sigma) ** 2)[0]
        needed = 2 * math.sqrt(2) * float(mp.erfinv(1 - 2 * mp.mpf(half)))
        assert 1 / sigma < needed <= float(gaussian_mu(F(sigma) ** 2, 1))


def test_mu_of_shifts_too_long_to_scan_is_bounded_by_pieces() -> None:
    variance = F(50)
    long = float(gaussian_mu(variance, 3 * 2**16 + 5))
    assert long == pytest.approx((3 * 2**16 + 5) / math.sqrt(50), rel=1e-3)
    assert long >= (3 * 2**16 + 5) / math.sqrt(50)


def test_a_mu_too_small_by_a_ten_thousandth_is_caught_by_the_delta_curves() -> None:
    for sigma, sensitivity in ((0.5, 1), (1, 1), (3, 2), (40, 10)):
        event = DiscreteGaussian(sigma_squared=F(sigma) ** 2, sensitivity=sensitivity)
        mu = float(event.mu())
        levels = np.linspace(0, 3 * mu, 301)
        enough = [event.delta(x) <= Gaussian(sigma=1 / mu).delta(x) * (1 + 1e-9) + 1e-15 for x in levels]
        short = [event.delta(x) <= Gaussian(sigma=1 / (mu * (1 - 1e-4))).delta(x) for x in levels]
        assert all(enough)
        assert not all(short)
