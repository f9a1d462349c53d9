"""Calibration: the noise that comes out has the guarantee or the error that went in, and no more."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest

from sfumato.core.calibration import (
    analytic_sigma_squared,
    calibrate,
    discrete_sigma_squared,
    discrete_sigma_squared_of_mu,
    gaussian_error,
    laplace_error,
    laplace_scale,
    laplace_scale_of_error,
    sigma_squared_of_error,
    sigma_squared_of_mu,
    sigma_squared_of_rho,
    textbook_sigma,
)
from sfumato.core.composition import Composition
from sfumato.core.conversions import delta_of_mu
from sfumato.core.events import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from sfumato.errors import InvalidArgument, Unsupported

from .senseless import NOT_DELTAS, NOT_POSITIVE, name

F = Fraction
TARGETS = [(0.01, 1e-9), (0.1, 1e-6), (1, 1e-5), (3, 1e-12), (8, 1e-3)]


def test_exact_where_the_formula_is_rational():
    assert laplace_scale(3, 0.1) == 30
    assert DiscreteLaplace(scale=laplace_scale(3, 0.1), sensitivity=3).epsilon() == F(1, 10)
    assert sigma_squared_of_rho(4, 0.1) == 20
    assert DiscreteGaussian(sigma_squared=sigma_squared_of_rho(4, 0.1), sensitivity=2).rho() == F(1, 10)
    assert sigma_squared_of_mu(4, 0.1) == 400


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_the_analytic_gaussian_meets_its_target_and_no_less_noise_does(epsilon, delta):
    square = analytic_sigma_squared(9, epsilon, delta)
    with mp.workdps(40):
        for factor, meets in [(1, True), (1 - 1e-9, False)]:
            mu = 3 / mp.sqrt(mp.mpf(square.numerator) / square.denominator * factor)
            e = mp.mpf(epsilon)
            truth = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
            assert (truth <= delta) is meets


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.999])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1, 0.9])
def test_the_textbook_sigma_is_valid_and_looser(epsilon, delta):
    sigma = textbook_sigma(2, epsilon, delta)
    assert sigma >= 2 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert delta_of_mu(2 / sigma, epsilon) <= delta
    assert sigma**2 > analytic_sigma_squared(4, epsilon, delta)


@pytest.mark.parametrize("epsilon", [1, 1.5, 10])
def test_the_textbook_sigma_is_refused_where_it_is_wrong(epsilon):
    with pytest.raises(Unsupported, match="analytic"):
        textbook_sigma(1, epsilon, 1e-5)


def test_the_textbook_formula_is_really_wrong_above():
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / 20
    assert delta_of_mu(1 / sigma, 20) > 1e-5


@pytest.mark.parametrize("sensitivity", [1, 5])
@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_the_discrete_gaussian_meets_its_target(sensitivity, epsilon, delta):
    square = discrete_sigma_squared(sensitivity, epsilon, delta)
    assert DiscreteGaussian(sigma_squared=square, sensitivity=sensitivity).delta(epsilon) <= delta
    less = DiscreteGaussian(sigma_squared=square * F(999, 1000), sensitivity=sensitivity)
    assert less.delta(epsilon) > delta


@pytest.mark.parametrize(("sensitivity", "mu"), [(1, 0.01), (1, 1), (7, 0.5), (3, 2)])
def test_the_discrete_gaussian_of_a_mu_needs_little_more_than_the_continuous(sensitivity, mu):
    square = discrete_sigma_squared_of_mu(sensitivity, mu)
    assert DiscreteGaussian(sigma_squared=square, sensitivity=sensitivity).mu() <= mu
    continuous = sigma_squared_of_mu(sensitivity**2, mu)
    assert continuous < square < continuous + F(1, 5)


def test_a_batch_is_calibrated_as_a_batch():
    sigma = calibrate(lambda s: Gaussian(sigma=s), epsilon=1, delta=1e-6, times=100)
    exact = math.sqrt(100 * analytic_sigma_squared(1, 1, 1e-6))
    assert exact <= sigma <= exact * 1.001
    scale = calibrate(
        lambda s: Laplace(scale=s), epsilon=1, delta=1e-6, times=50, start=100.0, resolution=1e-4
    )
    assert Composition([(Laplace(scale=scale), 50)]).epsilon(1e-6) <= 1
    assert Composition([(Laplace(scale=scale * 0.999), 50)]).epsilon(1e-6) > 1
    assert scale < 50  # basic composition needs 50


def test_one_event_is_calibrated_by_its_own_delta():
    scale = calibrate(lambda s: Laplace(scale=s), epsilon=1, delta=1e-6)
    assert 1 - 1e-5 < scale <= 1


# -- error --------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("scale", [F(1, 4), F(1), F(7, 3), F(40)])
def test_laplace_error_is_the_smallest_that_covers(scale, level):
    with mp.workdps(40):
        q = mp.exp(-mp.mpf(scale.denominator) / scale.numerator)
        width = laplace_error(scale, level)
        assert 1 - 2 * q ** (width + 1) / (1 + q) >= mp.mpf(str(level))
        assert width == 0 or 1 - 2 * q**width / (1 + q) < mp.mpf(str(level))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("square", [F(1, 9), F(1), F(50), F(10**4)])
def test_gaussian_error_is_the_smallest_that_covers(square, level):
    with mp.workdps(40):
        weights = [mp.exp(-mp.mpf(x * x) * square.denominator / (2 * square.numerator)) for x in range(1500)]
        total, width = weights[0] + 2 * sum(weights[1:]), gaussian_error(square, level)
        covered = [(weights[0] + 2 * sum(weights[1 : w + 1])) / total for w in (width, width - 1)]
        assert covered[0] >= mp.mpf(str(level))
        assert width == 0 or covered[1] < mp.mpf(str(level))


@pytest.mark.parametrize("error", [0, 1, 10, 12.7, 1000, 10**9])
@pytest.mark.parametrize(
    ("noise_of", "error_of"),
    [(laplace_scale_of_error, laplace_error), (sigma_squared_of_error, gaussian_error)],
)
def test_noise_from_a_wanted_error_is_the_most(noise_of, error_of, error):
    noise = noise_of(error, 0.9)
    assert error_of(noise, 0.9) <= error
    assert error_of(noise * (1 + F(1, 10**6)), 0.9) > math.floor(error)


# -- bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=name)
@pytest.mark.parametrize(
    "call",
    [
        lambda v: laplace_scale(v, 1),
        lambda v: laplace_scale(1, v),
        lambda v: sigma_squared_of_rho(v, 1),
        lambda v: sigma_squared_of_rho(1, v),
        lambda v: sigma_squared_of_mu(v, 1),
        lambda v: sigma_squared_of_mu(1, v),
        lambda v: analytic_sigma_squared(v, 1, 0.1),
        lambda v: textbook_sigma(v, 0.5, 0.1),
        lambda v: textbook_sigma(1, v, 0.1),
        lambda v: discrete_sigma_squared(v, 1, 0.1),
        lambda v: discrete_sigma_squared(1, v, 0.1),
        lambda v: discrete_sigma_squared_of_mu(v, 1),
        lambda v: discrete_sigma_squared_of_mu(1, v),
        lambda v: calibrate(lambda s: Laplace(scale=s), epsilon=v, delta=0.1),
        lambda v: calibrate(lambda s: Laplace(scale=s), epsilon=1, delta=0.1, times=v),
        lambda v: calibrate(lambda s: Laplace(scale=s), epsilon=1, delta=0.1, start=v),
        lambda v: laplace_error(v),
        lambda v: laplace_error(1, v),
        lambda v: gaussian_error(v),
        lambda v: gaussian_error(1, v),
    ],
)
def test_senseless_arguments_are_refused(call, value):
    with pytest.raises(InvalidArgument):
        call(value)


@pytest.mark.parametrize("value", [*NOT_DELTAS, 0], ids=name)
def test_senseless_deltas_are_refused(value):
    for call in (
        lambda: analytic_sigma_squared(1, 1, value),
        lambda: textbook_sigma(1, 0.5, value),
        lambda: discrete_sigma_squared(1, 1, value),
        lambda: calibrate(lambda s: Laplace(scale=s), epsilon=1, delta=value),
    ):
        with pytest.raises(InvalidArgument):
            call()


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, True, "1", None], ids=name)
def test_senseless_errors_are_refused(value):
    for call in (laplace_scale_of_error, sigma_squared_of_error):
        with pytest.raises(InvalidArgument):
            call(value)
