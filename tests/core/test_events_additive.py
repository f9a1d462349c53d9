"""Laplace and Gaussian events, on the line and on the integers, against their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from sfumato.core.events import Direction, DiscreteGaussian, DiscreteLaplace, Event, Gaussian, Laplace

F = Fraction
REMOVE = Direction.REMOVE
mp.mp.dps = 40


def exact(value: Fraction | float) -> mp.mpf:
    rational = F(value)
    return mp.mpf(rational.numerator) / rational.denominator


def close(value: float, truth: mp.mpf, relative: float) -> bool:
    return abs(mp.mpf(float(value)) - truth) <= relative * abs(truth) + mp.mpf("1e-320")


def barely_above(value: Fraction | float, truth: mp.mpf, relative: float = 1e-10) -> bool:
    return truth <= exact(value) <= truth * (1 + mp.mpf(relative))


# -- tails --------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [F(1, 30), F(1), F(20), F(10**9)])
def test_laplace_tails_are_integrals_of_the_densities(scale: Fraction) -> None:
    b = exact(scale)
    epsilon = float(1 / scale)
    for share in (-0.999, -0.5, 0.0, 0.3, 0.999999):
        level = share * epsilon
        edge = (1 - mp.mpf(level) * b) / 2  # the loss 1 - 2x over scale is above the level left of it
        p = mp.quad(lambda x: mp.exp(-abs(x) / b) / (2 * b), [-60 * b, 0, edge])
        q = mp.quad(lambda x: mp.exp(-abs(x - 1) / b) / (2 * b), [-60 * b, 0, edge])
        tails = Laplace(scale=scale).tails(np.array([level]), REMOVE)
        assert close(tails[0][0], p, 1e-15)
        assert close(tails[1][0], q, 1e-14)


@pytest.mark.parametrize("sigma", [F(1, 3), F(1), F(50), F(10**9)])
def test_gaussian_tails_to_the_far_end(sigma: Fraction) -> None:
    mu = 1 / exact(sigma)
    for deviations in (-8, -1, 0, 3, 13.4, 30):
        level = float(mu * mu / 2 + deviations * mu)
        tails = Gaussian(sigma=sigma).tails(np.array([level]), REMOVE)
        for tail, side in zip(tails, (1, -1), strict=True):
            truth = mp.erfc((mp.mpf(level) / mu - side * mu / 2) / mp.sqrt(2)) / 2
            assert close(tail[0], truth, 2e-15 * (10 + deviations**2))


def discrete_tails(
    weights: list[mp.mpf], loss: Callable[[int], Fraction], sensitivity: int, level: float
) -> list[mp.mpf]:
    """Sum both laws over the outputs of a loss above the level, by definition; weights are of |x|."""
    reach = len(weights) - 1 - sensitivity
    above = [x for x in range(-reach, reach + sensitivity + 1) if loss(x) > F(level)]
    norm = 2 * mp.fsum(weights) - weights[0]
    return [mp.fsum(weights[abs(x - shift)] for x in above) / norm for shift in (0, sensitivity)]


@pytest.mark.parametrize(
    ("scale", "sensitivity"), [(F(1, 7), 2), (F(1), 1), (F(1), 4), (F(7, 3), 5), (F(20), 3)]
)
def test_discrete_laplace_tails_are_sums_also_at_the_atoms(scale: Fraction, sensitivity: int) -> None:
    event = DiscreteLaplace(scale=scale, sensitivity=sensitivity)

    def loss(x: int) -> Fraction:
        return (abs(x - sensitivity) - abs(x)) / scale

    weights = [mp.exp(-x / exact(scale)) for x in range(math.ceil(60 * scale) + 2 * sensitivity)]
    for x in range(-1, sensitivity + 2):
        atom = float(loss(x))
        for level in (math.nextafter(atom, -math.inf), atom, math.nextafter(atom, math.inf), atom + 0.01):
            tails = event.tails(np.array([level]), REMOVE)
            truth = discrete_tails(weights, loss, sensitivity, level)
            assert close(tails[0][0], truth[0], 1e-14)
            assert close(tails[1][0], truth[1], 1e-14)


@pytest.mark.parametrize(
    ("variance", "sensitivity"), [(F(1, 100), 1), (F(1, 4), 3), (F(1), 2), (F(25, 4), 3), (F(7, 3), 40)]
)
def test_discrete_gaussian_tails_are_sums_also_at_the_atoms(variance: Fraction, sensitivity: int) -> None:
    event = DiscreteGaussian(sigma_squared=variance, sensitivity=sensitivity)

    def loss(x: int) -> Fraction:
        return F((x - sensitivity) ** 2 - x * x) / (2 * variance)

    reach = math.ceil(60 * math.sqrt(variance)) + 10
    weights = [mp.exp(-x * x / (2 * exact(variance))) for x in range(reach + 2 * sensitivity)]
    for x in (-9, -3, -1, 0, 1, 2, sensitivity, sensitivity + 5):
        atom = float(loss(x))
        for level in (math.nextafter(atom, -math.inf), atom, math.nextafter(atom, math.inf)):
            tails = event.tails(np.array([level]), REMOVE)
            truth = discrete_tails(weights, loss, sensitivity, level)
            assert close(tails[0][0], truth[0], 2e-13)
            assert close(tails[1][0], truth[1], 2e-13)


def test_a_level_that_no_float_equals_is_told_from_its_neighbours() -> None:
    third = DiscreteLaplace(scale=3, sensitivity=1)  # losses 1/3 and -1/3; the float is below 1/3
    assert F(1 / 3) < F(1, 3)
    assert third.tails(np.array([1 / 3]), REMOVE)[0][0] > 0.5
    assert third.tails(np.array([math.nextafter(1 / 3, 1)]), REMOVE)[0][0] == 0
    assert third.tails(np.array([-1 / 3]), REMOVE)[0][0] < 1
    assert third.tails(np.array([-math.nextafter(1 / 3, 1)]), REMOVE)[0][0] == 1


def test_huge_lattices_are_as_good_as_the_line() -> None:
    levels = np.linspace(-0.99, 0.99, 37)
    for huge in (10**12, 10**40):
        fine = DiscreteLaplace(scale=huge, sensitivity=huge).tails(levels, REMOVE)
        for tail, line in zip(fine, Laplace(scale=1).tails(levels, REMOVE), strict=True):
            assert tail == pytest.approx(line, rel=1e-11)
        normal = DiscreteGaussian(sigma_squared=huge**2, sensitivity=huge).tails(10 * levels, REMOVE)
        for tail, line in zip(normal, Gaussian(sigma=1).tails(10 * levels, REMOVE), strict=True):
            assert tail == pytest.approx(line, rel=1e-10)


# -- closed forms -------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [F(1, 30), F(1, 2), F(3), F(10**4), F(10**12)])
def test_laplace_costs_in_closed_form(scale: Fraction) -> None:
    event, epsilon = Laplace(scale=scale), 1 / exact(scale)
    assert event.epsilon() == 1 / scale
    assert barely_above(event.rho(), epsilon + mp.exp(-epsilon) - 1)
    assert barely_above(event.mu(), 2 * mp.sqrt(2) * mp.erfinv(1 - mp.exp(-epsilon / 2)))
    for share in (F(0), F(1, 3), F(999, 1000)):
        level = share / scale
        assert barely_above(event.delta(level), 1 - mp.exp((exact(level) - epsilon) / 2))
    assert event.delta(1 / scale) == 0
    for order in (1.0001, 1.5, 2.0, 7.0, 1e3, 1e9, 1e300):
        a = mp.mpf(order)
        truth = mp.log(
            a / (2 * a - 1) * mp.exp((a - 1) * epsilon) + (a - 1) / (2 * a - 1) * mp.exp(-a * epsilon)
        ) / (a - 1)
        assert barely_above(event.renyi(order), truth)


@pytest.mark.parametrize("epsilon", [F(1, 10**6), F(1, 10), F(1), F(8)])
def test_laplace_loss_never_exceeds_epsilon(epsilon: Fraction) -> None:
    event = Laplace(scale=1 / epsilon)
    top = event.support(REMOVE)[1]
    assert event.tails(np.array([top]), REMOVE)[0][0] == 0
    assert event.tails(np.array([math.nextafter(top, 0)]), REMOVE)[0][0] == pytest.approx(0.5)
    assert event.group(3).epsilon() == 3 * epsilon


def test_gaussian_costs_in_closed_form() -> None:
    event = Gaussian(sigma=F(5, 4))
    assert event.mu() == F(4, 5)
    assert event.rho() == F(8, 25)
    assert event.renyi(10.0) >= F(16, 5)
    assert event.renyi(10.0) == pytest.approx(3.2, rel=1e-15)
    assert event.epsilon() == math.inf
    assert event.group(4).mu() == 4 * event.mu()
    # Published anchors: at delta 1e-5 these mu are what epsilon 1, 3 and 8 allow.
    for mu, epsilon in ((0.2681, 1), (0.7191, 3), (1.6660, 8)):
        assert Gaussian(sigma=1 / mu).delta(epsilon) == pytest.approx(1e-5, rel=5e-3)


def test_the_gaussian_loss_is_within_epsilon_with_probability_one_minus_delta() -> None:
    event = Gaussian(sigma=4)
    above, _ = event.tails(np.array([1.0]), REMOVE)
    assert event.delta(1.0) <= float(above[0])  # the pointwise statement is the stronger one


DISCRETE_LAPLACE = [(F(1, 5), 1), (F(2), 1), (F(2), 4), (F(7, 3), 5), (F(20), 3), (F(300), 17), (F(10**7), 2)]


def lattice_moment(scale: Fraction, sensitivity: int, order: mp.mpf) -> mp.mpf:
    """Sum P^a Q^(1-a), output by output between 0 and the sensitivity, and the two geometric tails."""
    t = exact(scale)
    p = mp.exp(-1 / t)
    weight = (1 - p) / (1 + p)
    inner = mp.fsum(
        mp.exp(-order * x / t - (1 - order) * (sensitivity - x) / t) for x in range(1, sensitivity)
    )
    left = mp.exp(-(1 - order) * sensitivity / t) / (1 - p)
    right = mp.exp(-order * sensitivity / t) / (1 - p)
    return weight * (inner + left + right)


@pytest.mark.parametrize(("scale", "sensitivity"), DISCRETE_LAPLACE)
def test_discrete_laplace_renyi_and_rho(scale: Fraction, sensitivity: int) -> None:
    """The divergence by definition; rho is its value at order 1, and no order asks for more."""
    event = DiscreteLaplace(scale=scale, sensitivity=sensitivity)
    t = exact(scale)
    p = mp.exp(-1 / t)
    tail = mp.exp(-sensitivity / t) / (1 - p)
    divergence = (
        (1 - p)
        / (1 + p)
        * mp.fsum(
            [
                sensitivity / t / (1 - p),
                -sensitivity / t * tail,
                *(mp.exp(-x / t) * (sensitivity - 2 * x) / t for x in range(1, sensitivity)),
            ]
        )
    )
    assert barely_above(event.rho(), divergence)
    for order in (1.001, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, 1e4, 1e8):
        truth = mp.log(lattice_moment(scale, sensitivity, mp.mpf(order))) / (mp.mpf(order) - 1)
        assert truth <= order * exact(event.rho())  # as proved by Harrison and Manurangsi
        assert barely_above(event.renyi(order), truth, 3e-9)
    assert event.group(5) == DiscreteLaplace(scale=scale, sensitivity=5 * sensitivity)


@pytest.mark.parametrize(("scale", "sensitivity"), DISCRETE_LAPLACE)
def test_discrete_laplace_mu_is_the_worst_threshold(scale: Fraction, sensitivity: int) -> None:
    t = exact(scale)
    p = mp.exp(-1 / t)

    def quantile(k: int) -> mp.mpf:
        """Of P(X <= k)."""
        if k < 0:
            return -quantile(-k - 1)
        return mp.sqrt(2) * mp.erfinv(1 - 2 * p ** (k + 1) / (1 + p))

    worst = max(quantile(k) - quantile(k - sensitivity) for k in range(-3, sensitivity + 3))
    assert barely_above(DiscreteLaplace(scale=scale, sensitivity=sensitivity).mu(), worst)


@pytest.mark.parametrize(("scale", "sensitivity"), DISCRETE_LAPLACE)
def test_discrete_laplace_delta_by_definition(scale: Fraction, sensitivity: int) -> None:
    event, t = DiscreteLaplace(scale=scale, sensitivity=sensitivity), exact(scale)
    p = mp.exp(-1 / t)
    for share in (F(0), F(1, 7), F(1, 2), F(9, 10), F(10**6 - 1, 10**6)):
        level = share * event.epsilon()
        gain = mp.exp(exact(level))
        inner = mp.fsum(
            max(mp.mpf(0), mp.exp(-x / t) - gain * mp.exp(-(sensitivity - x) / t))
            for x in range(1, sensitivity)
        )
        left = (1 - gain * mp.exp(-sensitivity / t)) / (1 - p)
        assert barely_above(event.delta(level), (1 - p) / (1 + p) * (inner + left))
    assert event.delta(event.epsilon()) == 0


@pytest.mark.parametrize("variance", [F(1, 100), F(1, 9), F(1, 4), F(1), F(3), F(30)])
@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_discrete_gaussian_renyi_is_the_lattice_sum(variance: Fraction, sensitivity: int) -> None:
    event, s = DiscreteGaussian(sigma_squared=variance, sensitivity=sensitivity), exact(variance)
    assert event.rho() == F(sensitivity**2) / (2 * variance)
    reach = math.ceil(12 * math.sqrt(variance)) + 12
    norm = mp.fsum(mp.exp(-x * x / (2 * s)) for x in range(-reach, reach + 1))
    for order in (1.05, 1.3, 2.0, 2.5, 7.7):
        a = mp.mpf(order)
        centre = round(float((1 - a) * sensitivity))
        moment = mp.fsum(
            mp.exp(-(a * x * x + (1 - a) * (x - sensitivity) ** 2) / (2 * s))
            for x in range(centre - reach, centre + reach + 1)
        )
        truth = mp.log(moment / norm) / (a - 1)
        value = exact(event.renyi(order))
        assert truth <= value
        assert value <= truth + mp.mpf(10) ** -10 * order * exact(event.rho())
        assert value <= order * exact(event.rho()) * (1 + mp.mpf(10) ** -15)


@pytest.mark.parametrize(
    "event",
    [
        Laplace(scale=F(1, 10**90)),
        Laplace(scale=10**90),
        Gaussian(sigma=F(1, 10**90)),
        Gaussian(sigma=10**90),
        DiscreteLaplace(scale=F(1, 10**90), sensitivity=10**90),
        DiscreteLaplace(scale=10**90, sensitivity=1),
        DiscreteGaussian(sigma_squared=F(1, 10**180), sensitivity=1),
        DiscreteGaussian(sigma_squared=10**180, sensitivity=1),
        DiscreteGaussian(sigma_squared=10**180, sensitivity=10**90),
        DiscreteGaussian(sigma_squared=1, sensitivity=10**90),
    ],
    ids=repr,
)
def test_absurd_scales_give_numbers_and_no_warnings(event: Event) -> None:
    low, high = event.support(REMOVE)
    levels = np.array([-math.inf, -1e308, low, -1.0, 0.0, 1e-300, 1.0, high, 1e308, math.inf])
    for tail in event.tails(levels, REMOVE):
        assert ((tail >= 0) & (tail <= 1)).all()
    for cost in (event.rho(), event.mu(), event.renyi(2.0), event.renyi(1e300)):
        assert cost > 0
    for level in (0.0, 1.0, 1e300):
        assert 0 <= event.delta(level) <= 1
