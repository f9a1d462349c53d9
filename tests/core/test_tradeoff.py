"""Trade-off curves: known values, exact laws, and conjugacy with the profile delta(epsilon)."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.stats import norm

from sfumato.core.conversions import delta_of_mu, largest_mu
from sfumato.core.events import DiscreteLaplace, FinitePair, Gaussian, Laplace, Pure, RandomizedResponse
from sfumato.core.tradeoff import TradeOff
from sfumato.errors import InvalidArgument

from .senseless import NOT_DELTAS, NOT_NUMBERS, NOT_POSITIVE, name


@pytest.mark.parametrize(
    ("epsilon", "mu", "advantage", "bound"),
    [(1, 0.2681, 0.1066, 0.4621), (3, 0.7191, 0.2808, 0.9051), (8, 1.6660, 0.5952, 0.9993)],
)
def test_the_actual_mechanism_says_far_less_than_its_epsilon(epsilon, mu, advantage, bound):
    exact = largest_mu(epsilon, 1e-5)
    assert exact == pytest.approx(mu, abs=5e-5)
    assert TradeOff.of_mu(exact).advantage() == pytest.approx(advantage, abs=5e-5)
    assert TradeOff.of_approximate(epsilon, 1e-5).advantage() == pytest.approx(bound, abs=5e-5)


def test_pure_epsilon_one():
    curve = TradeOff.of_approximate(1)
    assert curve.advantage() == pytest.approx((math.e - 1) / (math.e + 1), rel=1e-9)
    for prior, posterior in [(0.5, 0.7311), (0.1, 0.2320), (0.01, 0.0267)]:
        assert curve.posterior(prior) == pytest.approx(posterior, abs=5e-5)
    assert curve.tpr(0.01) == pytest.approx(math.e * 0.01, rel=1e-9)
    assert curve.fnr(0) == pytest.approx(1) and curve.fnr(1) == pytest.approx(0, abs=1e-9)
    assert curve.fnr(1 / (1 + math.e)) == pytest.approx(1 / (1 + math.e))


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_gaussian_curve_lies_just_below_its_formula(mu):
    curve = TradeOff.of_mu(mu)
    for rate in (1e-6, 0.001, 0.05, 0.3, 0.5, 0.9, 0.999):
        truth = float(norm.cdf(norm.ppf(1 - rate) - mu))
        assert truth - 2e-5 <= curve.fnr(rate) <= truth
    assert curve.advantage() == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-9)


def test_the_curve_of_an_event_is_that_of_its_law():
    gaussian, formula = TradeOff.of_event(Gaussian(sigma=2)), TradeOff.of_mu(0.5)
    for rate in (0.001, 0.1, 0.5, 0.9):
        assert gaussian.fnr(rate) == pytest.approx(formula.fnr(rate), abs=2e-5)
    laplace = TradeOff.of_event(Laplace(scale=2))
    assert laplace.advantage() == pytest.approx(-math.expm1(-0.25), rel=1e-9)
    assert laplace.posterior(0.5) == pytest.approx(1 / (1 + math.exp(-0.5)), rel=1e-9)


@pytest.mark.parametrize(
    "event",
    [
        RandomizedResponse(truth=Fraction(3, 4), choices=2),
        Pure(loss=Fraction(1)),
        DiscreteLaplace(scale=Fraction(3), sensitivity=2),
        FinitePair(with_person=(Fraction(1, 2), Fraction(1, 2)), without=(Fraction(1, 4), Fraction(3, 4))),
        Gaussian(sigma=1),
    ],
)
def test_curve_and_profile_are_conjugate(event):
    """delta(epsilon) = max over tests of tpr - e^epsilon fpr; a curve with the wrong sign or scale fails."""
    curve = TradeOff.of_event(event)
    for epsilon in (0.0, 0.1, 0.3, 0.9):
        delta = event.delta(epsilon)
        assert delta - 1e-12 <= curve.delta(epsilon) <= delta + 1e-5
        rates = [k / 200 for k in range(201)]
        best = max(curve.tpr(rate) - math.exp(epsilon) * rate for rate in rates)
        assert best == pytest.approx(curve.delta(epsilon), abs=5e-3)
        assert best <= curve.delta(epsilon) + 1e-9


def test_an_asymmetric_pair_is_judged_by_its_worse_direction():
    leaks = FinitePair(with_person=(Fraction(1, 100), Fraction(99, 100)), without=(Fraction(0), Fraction(1)))
    curve = TradeOff.of_event(leaks)
    assert curve.tpr(0) == pytest.approx(0.01, rel=1e-9)
    assert curve.posterior(0.01) == 1.0


def test_posterior_of_a_test_with_false_alarms():
    curve = TradeOff.of_mu(1)
    power = curve.tpr(0.05)
    assert curve.posterior(0.1, 0.05) == pytest.approx(0.1 * power / (0.1 * power + 0.9 * 0.05))
    assert curve.posterior(0, 0.05) == 0 and curve.posterior(1, 0.05) == 1


def test_between_known_points_delta_is_never_too_small():
    curve = TradeOff.of_mu(0.7)
    for epsilon in (0.01234, 0.5, 1.777, 4.2):
        truth = delta_of_mu(0.7, epsilon)
        assert truth * (1 - 1e-9) <= curve.delta(epsilon) <= truth * 1.001


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1], ids=name)
def test_senseless_epsilons_are_refused(value):
    for call in (TradeOff.of_approximate, TradeOff.of_approximate(1).delta):
        with pytest.raises(InvalidArgument):
            call(value)
    with pytest.raises(InvalidArgument):
        TradeOff(epsilons=(value,), deltas=(0.0,))


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=name)
def test_senseless_mus_are_refused(value):
    with pytest.raises(InvalidArgument):
        TradeOff.of_mu(value)


@pytest.mark.parametrize("value", [v for v in NOT_DELTAS if v not in (1, 1.0)] + [1.5], ids=name)
def test_senseless_rates_are_refused(value):
    curve = TradeOff.of_approximate(1)
    for call in (curve.tpr, curve.fnr, curve.posterior, lambda v: curve.posterior(0.5, v)):
        with pytest.raises(InvalidArgument):
            call(value)
    with pytest.raises(InvalidArgument):
        TradeOff.of_approximate(1, value)


def test_lines_must_be_in_order():
    for epsilons, deltas in [((), ()), ((1.0,), ()), ((1.0, 1.0), (0.5, 0.1)), ((1.0, 2.0), (0.1, 0.5))]:
        with pytest.raises(InvalidArgument):
            TradeOff(epsilons=epsilons, deltas=deltas)
