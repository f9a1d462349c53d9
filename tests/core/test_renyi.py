"""Renyi conversions: the joint range found by brute force, never worse than the closed form, sound."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from sfumato.core.conversions import delta_of_mu, delta_of_pure, epsilon_of_mu, largest_mu, renyi_of_pure
from sfumato.core.renyi import (
    delta_of_curve,
    delta_of_renyi,
    delta_of_rho,
    epsilon_of_curve,
    epsilon_of_renyi,
    epsilon_of_rho,
    largest_renyi,
    largest_rho,
)
from sfumato.errors import InvalidArgument

from .senseless import NOT_DELTAS, NOT_NUMBERS, name

CASES = [
    (2, 1.0, 1e-5),
    (1.01, 0.5, 0.01),
    (5, 0.1, 1e-9),
    (30, 2.0, 0.3),
    (500, 1.0, 1e-12),
    (1.5, 1e-3, 0.9),
]


def brute_force(order, epsilon, delta):
    """The smallest divergence of two coins with p - e^epsilon q = delta, to 20 digits."""
    a, e, d = mp.mpf(order), mp.mpf(epsilon), mp.mpf(delta)

    def divergence(t):
        p, q = d + (1 - d) * t, (1 - d) * t * mp.exp(-e)
        return mp.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)

    low, high, ratio = mp.mpf(10) ** -30, mp.mpf(1) - mp.mpf(10) ** -30, (mp.sqrt(5) - 1) / 2
    low, high = mp.log(low), mp.log(high)
    for _ in range(150):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if divergence(mp.exp(left)) <= divergence(mp.exp(right)):
            high = right
        else:
            low = left
    return divergence(mp.exp(low))


def closed_delta(order, value, epsilon):
    """Canonne, Kamath, Steinke 2020."""
    return math.exp((order - 1) * (value - epsilon)) / (order - 1) * (1 - 1 / order) ** order


@pytest.mark.parametrize(("order", "epsilon", "delta"), CASES)
def test_one_order_is_the_joint_range_rounded_down(order, epsilon, delta):
    with mp.workdps(50):
        truth = brute_force(order, epsilon, delta)
        computed = mp.mpf(largest_renyi(order, epsilon, delta))
        assert truth * (1 - mp.mpf("1e-9")) < computed <= truth


@pytest.mark.parametrize(("order", "epsilon", "delta"), CASES)
def test_the_three_directions_of_one_order_agree(order, epsilon, delta):
    value = largest_renyi(order, epsilon, delta)
    assert delta_of_renyi(order, value, epsilon) == pytest.approx(delta, rel=1e-7)
    assert epsilon_of_renyi(order, value, delta) == pytest.approx(epsilon, rel=1e-7)


def test_never_worse_than_the_closed_form_and_sometimes_far_better():
    gains = []
    for order in (1.2, 2, 8, 40):
        for value in (0.01, 0.2, 1.0):
            for epsilon in (0.1, 1.0, 3.0):
                closed = min(1.0, closed_delta(order, value, epsilon))
                tight = delta_of_renyi(order, value, epsilon)
                assert tight <= closed * (1 + 1e-10)
                gains.append(closed / tight)
    assert max(gains) > 5


@pytest.mark.parametrize("order", [1.5, 3, 20])
def test_sound_for_mechanisms_whose_delta_is_known(order):
    for epsilon in (0.0, 0.2, 1.0):
        for mu in (0.1, 0.5, 2.0):
            true = delta_of_mu(mu, epsilon) * (1 - 1e-10)
            assert delta_of_renyi(order, order * mu * mu / 2, epsilon) >= true
        for pure in (0.3, 1.0, 2.0):
            true = delta_of_pure(pure, epsilon) * (1 - 1e-10)
            assert delta_of_renyi(order, renyi_of_pure(order, pure), epsilon) >= true


@pytest.mark.long
def test_the_search_over_orders_is_as_good_as_a_dense_grid():
    def curve(order):
        return renyi_of_pure(order, 0.3) * 5 + order * 0.01

    grid = 1 + np.geomspace(0.05, 500, 400)
    assert epsilon_of_curve(curve, 1e-5) <= min(epsilon_of_renyi(a, curve(a), 1e-5) for a in grid) * (
        1 + 1e-6
    )
    assert delta_of_curve(curve, 1.2) <= min(delta_of_renyi(a, curve(a), 1.2) for a in grid) * (1 + 1e-5)


def test_a_curve_that_ends_is_used_up_to_its_end():
    def ends_at_four(order):
        return 0.02 * order if order < 4 else math.inf

    epsilon = epsilon_of_curve(ends_at_four, 1e-6)
    assert epsilon == pytest.approx(epsilon_of_renyi(3.999999, 0.08, 1e-6), rel=1e-3)


def test_a_curve_without_a_finite_order_is_refused():
    with pytest.raises(InvalidArgument):
        epsilon_of_curve(lambda order: math.inf, 1e-6)
    with pytest.raises(InvalidArgument):
        epsilon_of_curve(lambda order: math.nan, 1e-6)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.1, 1.0, 30.0])
def test_zcdp_lies_between_the_gaussian_and_the_textbook(rho, delta):
    epsilon = epsilon_of_rho(rho, delta)
    assert epsilon_of_mu(math.sqrt(2 * rho), delta) * (1 - 1e-9) <= epsilon
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert epsilon == 0 or delta_of_rho(rho, epsilon) == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (8, 1e-5), (1e-6, 1e-12), (1, 0.3)])
def test_largest_rho_fits_and_is_the_largest(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert delta_of_rho(rho, epsilon) == pytest.approx(delta, rel=1e-5)
    assert delta_of_rho(rho * 1.001, epsilon) > delta
    assert rho < largest_mu(epsilon, delta) ** 2 / 2


def test_epsilons_beyond_the_exponents_of_floats_have_a_rho():
    below, above = largest_rho(699, 1e-3), largest_rho(701, 1e-3)
    assert below < above < below * 1.01
    assert epsilon_of_rho(largest_rho(1000, 1e-3), 1e-3) == pytest.approx(1000, rel=1e-9)


def test_nothing_lost_costs_nothing():
    assert delta_of_rho(0, 1) == epsilon_of_rho(0, 1e-6) == delta_of_renyi(2, 0, 1) == 0


@pytest.mark.parametrize("order", [*NOT_NUMBERS, 1, 1.0, 0.5, -3, 0], ids=name)
def test_senseless_orders_are_refused(order):
    with pytest.raises(InvalidArgument):
        largest_renyi(order, 1, 0.1)
    with pytest.raises(InvalidArgument):
        delta_of_renyi(order, 1, 1)
    with pytest.raises(InvalidArgument):
        epsilon_of_renyi(order, 1, 0.1)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1], ids=name)
@pytest.mark.parametrize(
    "call",
    [
        lambda v: delta_of_renyi(2, v, 1),
        lambda v: delta_of_renyi(2, 1, v),
        lambda v: largest_renyi(2, v, 0.1),
        lambda v: delta_of_rho(v, 1),
        lambda v: epsilon_of_rho(v, 0.1),
        lambda v: largest_rho(v, 0.1),
    ],
)
def test_senseless_values_are_refused(call, value):
    with pytest.raises(InvalidArgument):
        call(value)


@pytest.mark.parametrize("value", [*NOT_DELTAS, 0], ids=name)
def test_senseless_deltas_are_refused(value):
    for call in (
        lambda: largest_renyi(2, 1, value),
        lambda: largest_rho(1, value),
        lambda: epsilon_of_renyi(2, 1, value),
        lambda: epsilon_of_rho(1, value),
    ):
        with pytest.raises(InvalidArgument):
            call()
