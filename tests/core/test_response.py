"""Randomized response: exact privacy, unbiased estimates, intervals that cover."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.core import events
from sfumato.core.mechanism import Mechanism
from sfumato.core.response import RandomizedResponseMechanism
from sfumato.errors import InvalidArgument, Unsupported

F = Fraction
KINDS = [
    RandomizedResponseMechanism.coin_toss(),
    RandomizedResponseMechanism.biased_coin(F(2, 3)),
    RandomizedResponseMechanism(F(1, 3)),  # lies more often than not: still informative
    RandomizedResponseMechanism(F(2, 5), choices=5),
    RandomizedResponseMechanism(F(1, 10), choices=5),
    RandomizedResponseMechanism.from_epsilon(1, choices=4),
]


@pytest.mark.parametrize("response", KINDS, ids=str)
def test_matrix_has_the_same_epsilon(response):
    matrix = response.matrix()
    assert matrix.max_ratio == response.max_ratio
    assert matrix.epsilon == response.epsilon
    assert float(response.event.epsilon()) >= response.epsilon * (1 - 1e-15)
    assert float(response.event.epsilon()) == pytest.approx(response.epsilon, rel=1e-12)
    assert response.event == events.RandomizedResponse(truth=response.truth, choices=response.choices)
    losses = [response.privacy_loss(o, x, y) for o in range(response.choices)
              for x in range(response.choices) for y in range(response.choices)]  # fmt: skip
    assert max(losses) == response.epsilon == -min(losses)
    assert isinstance(response, Mechanism)


@given(st.floats(1e-6, 50), st.integers(2, 1000))
def test_from_epsilon_never_exceeds_and_hardly_falls_short(epsilon, choices):
    response = RandomizedResponseMechanism.from_epsilon(epsilon, choices=choices)
    with mpmath.workdps(80):
        wanted = mpmath.mpf(repr(epsilon))
        ratio = mpmath.mpf(response.max_ratio.numerator) / response.max_ratio.denominator
        assert wanted - mpmath.mpf(2) ** -64 <= mpmath.log(ratio) <= wanted
        best = mpmath.exp(wanted) / (mpmath.exp(wanted) + choices - 1)
        truth = mpmath.mpf(response.truth.numerator) / response.truth.denominator
        assert best - mpmath.mpf("1e-15") <= truth <= best


@pytest.mark.parametrize("response", KINDS, ids=str)
def test_reports_have_the_stated_law(response):
    """False alarm below 1e-9 over all answers; power: a report's probability off by 2% of itself."""
    n = 300_000
    for answer in range(response.choices):
        reports = response.release(np.full(n, answer))
        counts = np.bincount(reports, minlength=response.choices)
        wanted = [float(response.pmf(o, answer)) * n for o in range(response.choices)]
        assert stats.chisquare(counts, wanted, sum_check=False).pvalue > 5e-10 / response.choices


def test_scalars_and_kinds_of_answers():
    """False alarm 1e-9; power: a scalar path whose truth is off by 5%."""
    toss = RandomizedResponseMechanism.coin_toss()
    told = [toss.release(True) for _ in range(20_000)]
    assert all(type(report) is bool for report in told)
    assert stats.binomtest(sum(told), len(told), 0.75).pvalue > 1e-9
    assert type(toss.release(1)) is int and toss.release(0) in (0, 1)
    assert type(toss.release(np.int64(1))) is int and type(toss.release(np.True_)) is bool
    assert toss.release(np.zeros((3, 4), dtype=bool)).dtype == np.bool_
    assert toss.release([0, 1, 1]).dtype == np.int64
    assert toss.release(np.zeros((3, 4), dtype=np.uint8)).shape == (3, 4)
    assert toss.release(np.array([], dtype=np.int64)).shape == (0,)


@given(st.integers(0, 50), st.integers(1, 50), st.sampled_from(KINDS))
def test_estimate_inverts_the_expected_share(yes, no, response):
    """With counts equal to their expectation the estimate is the truth: unbiased, because it is linear."""
    n = yes + no
    frequency = F(yes, n)
    expected = frequency * response.truth + (1 - frequency) * response.lie
    scale, others = expected.denominator, response.choices - 1
    if scale > 10**4:
        return  # too many reports to make the shares exact
    counts = [int(expected * scale * others)] + [int((1 - expected) * scale)] * others
    estimate = response.estimate(np.repeat(np.arange(response.choices), counts))
    assert estimate.values[0] == pytest.approx(float(frequency), abs=1e-12)
    assert estimate.values.sum() == pytest.approx(1, abs=1e-9)
    assert estimate.reports == sum(counts)


def test_coin_toss_estimate_is_two_y_minus_a_half():
    toss = RandomizedResponseMechanism.coin_toss()
    for yes in range(11):
        reports = np.arange(10) < yes
        assert toss.estimate(reports).values[1] == float(2 * F(yes, 10) - F(1, 2))


@pytest.mark.parametrize("response", KINDS, ids=str)
def test_variance_is_that_of_the_report_counts(response):
    """Exact: the variance of a sum of independent coins, computed from the law of each report."""
    n, yes = 12, 5
    coins = [response.pmf(0, 0)] * yes + [response.pmf(0, 1)] * (n - yes)
    spread = sum(c * (1 - c) for c in coins) / (n * (response.truth - response.lie)) ** 2
    assert response.variance(F(yes, n), n) == pytest.approx(float(spread), rel=1e-14)


def test_variance_at_zero_matches_the_closed_form():
    for epsilon, k in [(1.0, 2), (1.0, 1024), (3.0, 8)]:
        e = math.exp(epsilon)
        variance = RandomizedResponseMechanism.from_epsilon(epsilon, choices=k).variance(0, 1)
        assert variance == pytest.approx((e + k - 2) / (e - 1) ** 2, rel=1e-12)
    assert RandomizedResponseMechanism.from_epsilon(1, choices=1024).variance(0, 1) == pytest.approx(
        347, abs=0.5
    )


def test_standard_errors_describe_the_spread():
    """2000 surveys, chi-square of the estimates' spread; power: an error bar off by 15%.

    False alarm below 1e-9: three spreads, 1e-10 on either side.
    """
    response = RandomizedResponseMechanism(F(1, 2), choices=3)
    answers = np.repeat([0, 1, 2], [500, 300, 200])
    estimates = [response.estimate(response.release(answers)) for _ in range(2000)]
    values = np.array([e.values for e in estimates])
    for j, f in enumerate([F(1, 2), F(3, 10), F(1, 5)]):
        variance = response.variance(f, 1000)
        statistic = ((values[:, j] - float(f)) ** 2).sum() / variance
        assert stats.chi2.ppf(1e-10, 2000) < statistic < stats.chi2.isf(1e-10, 2000)
        assert np.mean([e.standard_errors[j] for e in estimates]) == pytest.approx(
            math.sqrt(variance), rel=0.02
        )


@pytest.mark.parametrize("response", KINDS[:3], ids=str)
def test_intervals_cover_at_least_their_level(response):
    """Exact: the coverage summed over every number of yes reports, for fixed people and for samples."""
    n, level = 40, 0.9
    covers = []
    for c in range(n + 1):
        low, high = response.interval(np.arange(n) < c, level)
        covers.append((low[1], high[1]))
    for yes in (0, 1, 7, 20, 33, 40):
        fixed = np.convolve(
            stats.binom.pmf(np.arange(yes + 1), yes, float(response.truth)),
            stats.binom.pmf(np.arange(n - yes + 1), n - yes, float(response.lie)),
        )
        bias = float(F(yes, n) * response.truth + (1 - F(yes, n)) * response.lie)
        sample = stats.binom.pmf(np.arange(n + 1), n, bias)
        inside = np.array([low - 1e-12 <= yes / n <= high + 1e-12 for low, high in covers])
        assert fixed[inside].sum() >= level
        assert sample[inside].sum() >= level


def test_pure_noise_can_be_sent_but_not_read():
    noise = RandomizedResponseMechanism(F(1, 4), choices=4)
    assert noise.epsilon == 0 and noise.release([0, 1, 2, 3]).shape == (4,)
    for read in (noise.estimate, noise.interval):
        with pytest.raises(Unsupported, match="pure noise"):
            read([0, 1])
    with pytest.raises(Unsupported):
        noise.variance(0, 1)


@pytest.mark.parametrize(
    "bad", [0, 1, 1.5, -0.1, math.nan, math.inf, float("1e400"), True, "0.5", None], ids=repr
)
def test_senseless_truths_are_refused(bad):
    with pytest.raises(InvalidArgument) as caught:
        RandomizedResponseMechanism(bad)
    assert caught.value.place == "truth"
    with pytest.raises(InvalidArgument):
        RandomizedResponseMechanism.biased_coin(bad)


@pytest.mark.parametrize("bad", [0, 1, -2, 2.0, True, "3", None, math.nan], ids=repr)
def test_senseless_choices_are_refused(bad):
    for build in (
        lambda k: RandomizedResponseMechanism(F(1, 2), choices=k),
        lambda k: RandomizedResponseMechanism.from_epsilon(1, choices=k),
    ):
        with pytest.raises(InvalidArgument) as caught:
            build(bad)
        assert caught.value.place == "choices"


@pytest.mark.parametrize(
    "bad", [0, -1, math.nan, math.inf, float("1e400"), True, "1", None, 701, 10**9], ids=repr
)
def test_senseless_epsilons_are_refused(bad):
    with pytest.raises(InvalidArgument) as caught:
        RandomizedResponseMechanism.from_epsilon(bad)
    assert caught.value.place == "epsilon"


@pytest.mark.parametrize("bad", [2, -1, 0.0, "yes", None, [0, 2], [-1], [0.5], ["yes"], [None]], ids=repr)
def test_answers_outside_the_choices_are_refused_without_repeating_them(bad):
    toss = RandomizedResponseMechanism.coin_toss()
    for use in (toss.release, toss.estimate, toss.interval):
        if use is not toss.release and bad in (2, -1):
            continue
        with pytest.raises(InvalidArgument, match="from 0 to 1") as caught:
            use(bad)
        assert caught.value.hints and "yes" not in str(caught.value)


def test_other_senseless_arguments_are_refused():
    toss = RandomizedResponseMechanism.coin_toss()
    with pytest.raises(InvalidArgument, match="at least one report"):
        toss.estimate([])
    with pytest.raises(InvalidArgument):
        RandomizedResponseMechanism(F(1, 2), choices=3).release(True)
    for level in (0, 1, 2, -1, math.nan, True, "0.9", None):
        with pytest.raises(InvalidArgument):
            toss.interval([1], level)
    for frequency, n in [(2, 5), (-1, 5), (0.5, 0), (math.nan, 5), (0.5, 2.5)]:
        with pytest.raises(InvalidArgument):
            toss.variance(frequency, n)
