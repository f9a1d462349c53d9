"""What every course on differential privacy teaches; exact wherever the law is known."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.core import calibration, events
from sfumato.core.events import Composed, Parallel, Pure, Repeated
from sfumato.core.finite import FiniteMechanism
from sfumato.core.gaussian import GaussianMechanism
from sfumato.core.laplace import LaplaceMechanism
from sfumato.core.response import RandomizedResponseMechanism

F = Fraction


# -- the coin toss ------------------------------------------------------------------------


def test_the_coin_toss_is_what_people_do_with_two_coins():
    """Heads: the truth. Tails: toss again, heads is yes. The law is counted over the four outcomes."""
    toss = RandomizedResponseMechanism.coin_toss()
    for answer in (0, 1):
        outcomes = [answer if first == "heads" else int(second == "heads")
                    for first, second in product(("heads", "tails"), repeat=2)]  # fmt: skip
        for report in (0, 1):
            assert toss.pmf(report, answer) == F(outcomes.count(report), 4)


def test_the_coin_toss_is_exactly_ln_3():
    toss = RandomizedResponseMechanism.coin_toss()
    assert toss.max_ratio == toss.matrix().max_ratio == 3
    assert toss.matrix().delta_at_ratio(3) == 0 < toss.matrix().delta_at_ratio(F(2999, 1000))
    for epsilon in (toss.epsilon, toss.matrix().epsilon, toss.event.epsilon()):
        assert math.log(3) <= epsilon <= math.nextafter(math.log(3), 2)


def test_two_y_minus_a_half_recovers_the_proportion():
    """Exact: the mean over all reports. Sampled: false alarm below 1e-9, power: a bias of 0.5 points."""
    toss = RandomizedResponseMechanism.coin_toss()
    for p in (F(0), F(3, 10), F(1, 2), F(1)):
        share = p * toss.pmf(1, 1) + (1 - p) * toss.pmf(1, 0)
        assert 2 * share - F(1, 2) == p
    answers = np.arange(1_000_000) % 10 < 3
    reports = toss.release(answers)
    estimate = toss.estimate(reports)
    assert estimate.values[1] == pytest.approx(2 * reports.mean() - 0.5, abs=1e-12)
    deviations = abs(estimate.values[1] - 0.3) / math.sqrt(toss.variance(0.3, len(answers)))
    assert deviations < stats.norm.isf(2.5e-10)


def test_truth_with_probability_two_thirds_is_exactly_ln_2():
    coin = RandomizedResponseMechanism.biased_coin(F(2, 3))
    assert coin.max_ratio == coin.matrix().max_ratio == 2
    for epsilon in (coin.epsilon, coin.matrix().epsilon, coin.event.epsilon()):
        assert math.log(2) <= epsilon <= math.nextafter(math.log(2), 1)


# -- Laplace ------------------------------------------------------------------------------


@given(
    x=st.fractions(-100, 100),
    change=st.fractions(-1, 1),
    output=st.fractions(-1000, 1000),
    sensitivity=st.fractions(F(1, 10), 10),
    epsilon=st.fractions(F(1, 100), 10),
)
def test_laplace_density_has_loss_at_most_epsilon_everywhere(x, change, output, sensitivity, epsilon):
    """The density exp(-|o - x| / b) / 2b with b = sensitivity / epsilon, in exact arithmetic."""
    y = x + change * sensitivity
    b = sensitivity / epsilon
    assert calibration.laplace_scale(sensitivity, epsilon) == b
    assert abs((abs(output - y) - abs(output - x)) / b) <= epsilon
    assert events.Laplace(scale=b / sensitivity).epsilon() == epsilon


@pytest.mark.parametrize("epsilon", [F(1, 100), F(1, 3), F(1), F(7)], ids=str)
@pytest.mark.parametrize("sensitivity", [1, 2, 13])
def test_integer_laplace_has_loss_at_most_epsilon_everywhere(epsilon, sensitivity):
    """Every output: between and around the two values, and beyond them the loss no longer changes."""
    noise = LaplaceMechanism(F(sensitivity) / epsilon, sensitivity=sensitivity)
    assert noise == LaplaceMechanism.from_epsilon(epsilon, sensitivity=sensitivity)
    losses = [noise.privacy_loss(output, 0, sensitivity) for output in range(-5, sensitivity + 6)]
    assert max(losses) == epsilon and min(losses) == -epsilon
    assert losses[:6] == [epsilon] * 6 and losses[-6:] == [-epsilon] * 6
    assert noise.privacy_loss(-(10**30), 0, sensitivity) == epsilon
    assert noise.event.epsilon() == epsilon and noise.event.delta(float(epsilon)) <= 1e-12


# -- groups, series, parallel -------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 10])
def test_k_people_cost_k_epsilon(k):
    noise = LaplaceMechanism.from_epsilon(F(1, 4))
    worst = max(noise.privacy_loss(output, 0, k) for output in range(-20, 40))
    assert worst == k * F(1, 4) == noise.event.group(k).epsilon()
    assert Pure(loss=F(1, 4)).group(k).epsilon() == k * F(1, 4)
    # A group of k randomises k coins: the ratios of their reports multiply.
    toss = RandomizedResponseMechanism.coin_toss().matrix()
    group = toss
    for _ in range(k - 1):
        group = group.compose(toss)
    assert group.max_ratio == 3**k
    assert GaussianMechanism.from_rho(F(1, 8)).event.group(k).rho() == k**2 * F(1, 8)  # zCDP: with the square


@given(st.lists(st.fractions(F(1, 1000), 3), min_size=1, max_size=6))
def test_series_adds_and_parallel_takes_the_maximum(costs):
    parts = tuple(LaplaceMechanism.from_epsilon(cost).event for cost in costs)
    assert Composed(events=parts).epsilon() == sum(costs)
    assert Parallel(events=parts).epsilon() == max(costs)
    assert Repeated(event=parts[0], times=10).epsilon() == 10 * costs[0]
    gaussian = tuple(GaussianMechanism.from_rho(cost).event for cost in costs)
    assert Composed(events=gaussian).rho() == sum(costs)
    assert Parallel(events=gaussian).rho() == max(costs)


def test_ten_times_a_tenth_is_one():
    assert Composed(events=(LaplaceMechanism.from_epsilon(0.1).event,) * 10).epsilon() == 1


def test_series_and_parallel_of_two_tables():
    """From the laws alone: both questions put to one person, or each to a person of their own."""
    one, two = RandomizedResponseMechanism(F(3, 4)), RandomizedResponseMechanism(F(2, 3))
    series = one.matrix().compose(two.matrix())
    assert series.max_ratio == 3 * 2
    # Inputs are pairs of people; neighbours differ in one of the two.
    people = list(product((0, 1), repeat=2))
    rows = [[one.pmf(r, a) * two.pmf(s, b) for r, s in product((0, 1), repeat=2)] for a, b in people]
    one_changed = [
        (i, j) for i, x in enumerate(people) for j, y in enumerate(people) if sum(map(int.__ne__, x, y)) == 1
    ]
    assert FiniteMechanism(rows, neighbours=one_changed).max_ratio == max(3, 2)
    assert FiniteMechanism(rows).max_ratio == 6  # both changed: a group of two


# -- Gaussian -----------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0.9, 1e-5), (0.5, 1e-6), (0.1, 1e-3), (0.9, 0.05)])
@pytest.mark.parametrize("sensitivity", [1, 4])
def test_gaussian_loss_is_within_epsilon_with_probability_one_minus_delta(epsilon, delta, sensitivity):
    """With the textbook sigma: the probability of a larger loss is summed over all outputs."""
    sigma = calibration.textbook_sigma(sensitivity, epsilon, delta)
    noise = GaussianMechanism(sigma, sensitivity=sensitivity)
    reach = math.ceil(12 * sigma)
    large = [o for o in range(-reach, reach) if abs(noise.privacy_loss(o, 0, sensitivity)) > F(repr(epsilon))]
    exceeded = math.fsum(noise.pmf(o, 0) for o in large)
    assert 0 < exceeded <= delta
    assert noise.event.delta(epsilon) <= exceeded * (1 + 1e-9)  # which is why it is (epsilon, delta)-private
    # Continuous noise: the loss is N(mu^2/2, mu^2).
    mu = sensitivity / sigma
    assert stats.norm.sf(epsilon, mu**2 / 2, mu) + stats.norm.cdf(-epsilon, mu**2 / 2, mu) <= delta


def test_the_analytic_gaussian_needs_less_noise_than_the_textbook():
    for epsilon, delta in [(0.9, 1e-5), (0.1, 1e-6)]:
        analytic = math.sqrt(calibration.analytic_sigma_squared(1, epsilon, delta))
        assert GaussianMechanism.from_budget(epsilon, delta).sigma == pytest.approx(analytic, rel=0.01)
        assert analytic < 0.9 * calibration.textbook_sigma(1, epsilon, delta)
