"""Conversions: equal to high-precision arithmetic, rounded to the stated side, tight."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest

from sfumato.core.conversions import (
    delta_of_mu,
    delta_of_pure,
    epsilon_of_mu,
    epsilon_of_pure,
    largest_mu,
    largest_pure,
    mu_of_pure,
    renyi_of_pure,
    rho_of_pure,
)
from sfumato.errors import InvalidArgument

from .senseless import NOT_DELTAS, NOT_NUMBERS, name

DIGITS = 60
EPSILONS = [
    1e-300,
    1e-12,
    1e-7,
    1e-6,
    2e-6,
    1e-3,
    0.1,
    0.5,
    0.999999,
    1.0,
    1.1,
    2.0,
    5.0,
    20.0,
    50.0,
    300.0,
    700.0,
]


@pytest.fixture(autouse=True)
def _precision():
    with mp.workdps(DIGITS):
        yield


def high(value):
    exact = Fraction(value)
    return mp.mpf(exact.numerator) / exact.denominator


def excess(computed, truth):
    """How far a rounded-up value lies above the truth, relatively."""
    return float(high(computed) / truth - 1)


def gaussian_delta(mu, epsilon):
    mu, epsilon = high(mu), high(epsilon)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


# -- pure ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_of_pure_is_the_formula_rounded_up(epsilon):
    truth = high(epsilon) * mp.tanh(high(epsilon) / 2)
    assert 0 <= excess(rho_of_pure(epsilon), truth) < 2e-11


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 20.0])
def test_rho_of_pure_bounds_every_order_and_is_attained(epsilon):
    rho, e = high(rho_of_pure(epsilon)), high(epsilon)
    ratios = []
    for order in [1 + mp.mpf(10) ** k for k in range(-8, 5)]:
        divergence = mp.log(mp.cosh((order - mp.mpf(1) / 2) * e) / mp.cosh(e / 2)) / (order - 1)
        ratios.append(divergence / order / rho)
    assert all(ratio <= 1 for ratio in ratios)
    assert max(ratios) > 1 - 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mu_of_pure_is_the_formula_rounded_up(epsilon):
    mu = mu_of_pure(epsilon)
    tail = 1 / (1 + mp.exp(high(epsilon)))
    if epsilon < 30:
        truth = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(high(epsilon) / 2))
    else:
        truth = mp.findroot(
            lambda m: mp.log(mp.ncdf(-m / 2)) - mp.log(tail), high(mu) * (1 - mp.mpf(10) ** -6)
        )
    assert 0 <= excess(mu, truth) < 2e-11


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_mu_of_pure_dominates_randomized_response_and_touches_it(epsilon):
    mu = mu_of_pure(epsilon)
    gaps = [delta_of_mu(mu, e) - delta_of_pure(epsilon, e) for e in [epsilon * k / 50 for k in range(51)]]
    assert min(gaps) >= 0
    assert gaps[0] < 1e-10  # equal total variation: no smaller mu would do


@pytest.mark.parametrize("convert", [rho_of_pure, mu_of_pure])
def test_no_pure_epsilon_converts_to_no_bound(convert):
    assert convert(math.inf) == math.inf
    assert convert(Fraction(0)) == 0


def test_tiny_and_huge_fractions_are_not_lost():
    assert rho_of_pure(Fraction(1, 10**400)) == Fraction(1, 2 * 10**800)
    assert 0 < mu_of_pure(Fraction(1, 10**400)) < 1e-300
    assert rho_of_pure(10**400) == math.inf


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.4, 1.0, 7.0, 90.0])
@pytest.mark.parametrize("order", [1 + 1e-6, 1.5, 2.0, 10.0, 3000.0])
def test_renyi_of_pure_is_that_of_randomized_response(order, epsilon):
    a, e = high(order), high(epsilon)
    truth = mp.log(mp.cosh((a - mp.mpf(1) / 2) * e) / mp.cosh(e / 2)) / (a - 1)
    assert 0 <= excess(renyi_of_pure(order, epsilon), truth) < 2e-11


def test_pure_at_a_smaller_epsilon_is_randomized_response():
    for pure in (0.1, 1.0, 5.0, 40.0):
        for epsilon in (0.0, 0.05, 0.9, 4.9, 39.0):
            truth = max(mp.mpf(0), (mp.exp(high(pure)) - mp.exp(high(epsilon))) / (1 + mp.exp(high(pure))))
            delta = delta_of_pure(pure, epsilon)
            assert truth <= high(delta) <= truth * (1 + mp.mpf("3e-11"))


@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.01, 0.5, 0.9, 0.999999])
@pytest.mark.parametrize("pure", [0.1, 1.0, 5.0, 40.0])
def test_epsilon_of_pure_fits_and_is_the_smallest(pure, delta):
    def profile(epsilon):
        return (mp.exp(high(pure)) - mp.exp(epsilon)) / (1 + mp.exp(high(pure)))

    epsilon = high(epsilon_of_pure(pure, delta))
    assert profile(epsilon) <= high(delta)
    if epsilon > 0:
        assert profile(epsilon - high(pure) * mp.mpf("1e-10")) > high(delta)


def test_largest_pure_is_exact_at_delta_zero_and_fits_above_it():
    assert largest_pure(0.1, 0) == Fraction(1, 10)
    for epsilon, delta in [(1, 1e-6), (0.1, 0.01), (5, 0.3), (1e-9, 1e-9)]:
        pure = largest_pure(epsilon, delta)
        assert pure > Fraction(str(epsilon))
        truth = (mp.exp(high(pure)) - mp.exp(high(epsilon))) / (1 + mp.exp(high(pure)))
        assert high(delta) * (1 - mp.mpf(10) ** -9) < truth <= high(delta)


# -- Gaussian -----------------------------------------------------------------------------


def test_delta_of_mu_is_exact_down_to_1e_300():
    checked = 0
    for mu in [1e-6, 1e-3, 0.05, 0.49, 0.5, 0.51, 1.0, 3.0, 10.0, 31.0]:
        for near in [-mu / 2, 0.0, 0.3, 1.0, 3.0, 8.0, 15.0, 29.0, 31.0, 36.5]:
            epsilon = max(0.0, (near + mu / 2) * mu)
            truth = gaussian_delta(mu, epsilon)
            if truth < mp.mpf(10) ** -300:
                continue
            checked += 1
            computed = delta_of_mu(mu, epsilon)
            assert truth <= high(computed)
            assert computed == 1.0 or excess(computed, truth) < 4e-11, (mu, epsilon)
    assert checked > 80


@pytest.mark.parametrize("mu", [90.0, 110.0, 1e4, 1.4e10, 1.7e11, 1e15])
def test_delta_of_mu_loses_nothing_where_epsilon_over_mu_and_half_of_mu_cancel(mu):
    for near in [-5.3, -0.7, 0.0, 0.9, 4.75, 12.3, 30.1]:
        epsilon = int((near + mu / 2) * mu)
        truth = gaussian_delta(mu, epsilon)
        computed = delta_of_mu(mu, epsilon)
        assert truth <= high(computed)
        assert computed == 1.0 or truth < mp.mpf(10) ** -300 or excess(computed, truth) < 4e-11


def test_delta_of_mu_below_the_range_of_floats_is_not_zero():
    assert 0 < delta_of_mu(1e-3, 1.0) < 1e-300
    assert 0 < delta_of_mu(1e-200, 1.0) < 1e-300
    assert delta_of_mu(0, 1.0) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1, 1e-5),
        (3, 1e-5),
        (8, 1e-5),
        (1, 1e-300),
        (1e-8, 1e-12),
        (0, 1e-5),
        (700, 1e-9),
        (1e5, 0.5),
        (1, 0.999),
    ],
)
def test_largest_mu_fits_and_is_the_largest(epsilon, delta):
    mu = largest_mu(epsilon, delta)
    truth = gaussian_delta(mu, epsilon)
    assert high(delta) * (1 - mp.mpf("3e-11")) < truth <= high(delta)
    assert gaussian_delta(mu * (1 + 1e-8), epsilon) > high(delta)


@pytest.mark.parametrize(
    ("mu", "delta"), [(0.2, 1e-6), (2.0, 1e-9), (1e-5, 1e-6), (1e-5, 0.5), (30.0, 1e-200)]
)
def test_epsilon_of_mu_fits_and_is_the_smallest(mu, delta):
    epsilon = epsilon_of_mu(mu, delta)
    assert gaussian_delta(mu, epsilon) <= high(delta)
    if epsilon > 0:
        assert gaussian_delta(mu, epsilon * (1 - 1e-9)) > high(delta)


@pytest.mark.parametrize(("epsilon", "mu"), [(1, 0.2681), (3, 0.7191), (8, 1.6660)])
def test_known_mu_of_epsilon_at_delta_1e_5(epsilon, mu):
    assert largest_mu(epsilon, 1e-5) == pytest.approx(mu, abs=5e-5)


def test_loss_of_the_gaussian_stays_below_epsilon_with_probability_one_minus_delta():
    """|loss| <= epsilon with probability 1 - delta implies (epsilon, delta): delta_of_mu is not above it."""
    for mu in (0.3, 1.0, 3.0):
        for epsilon in (0.5, 1.0, 4.0):
            outside = mp.ncdf(mu / 2 - epsilon / mu) + mp.ncdf(-mu / 2 - epsilon / mu)
            assert high(delta_of_mu(mu, epsilon)) <= outside


# -- bad input ----------------------------------------------------------------------------

BAD = [value for value in NOT_NUMBERS if value != math.inf]


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1, -1e-300], ids=name)
@pytest.mark.parametrize(
    "call",
    [
        lambda v: delta_of_mu(v, 1),
        lambda v: delta_of_mu(1, v),
        lambda v: epsilon_of_mu(v, 0.1),
        lambda v: largest_mu(v, 0.1),
        lambda v: delta_of_pure(v, 1),
        lambda v: delta_of_pure(1, v),
        lambda v: epsilon_of_pure(v, 0.1),
        lambda v: largest_pure(v, 0.1),
    ],
)
def test_senseless_quantities_are_refused(call, value):
    with pytest.raises(InvalidArgument):
        call(value)


@pytest.mark.parametrize("value", [*BAD, -1], ids=name)
def test_senseless_costs_are_refused(value):
    for convert in (rho_of_pure, mu_of_pure):
        with pytest.raises(InvalidArgument):
            convert(value)
    with pytest.raises(InvalidArgument):
        renyi_of_pure(2, value)


@pytest.mark.parametrize("value", [*NOT_DELTAS, 0], ids=name)
def test_senseless_deltas_are_refused(value):
    for convert in (epsilon_of_mu, epsilon_of_pure, largest_mu):
        with pytest.raises(InvalidArgument):
            convert(1, value)
