"""K-ary response: the exact matrix, the coins of Warner, the law of reports, estimates and limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidArgument
from sfumato.local.response import KaryResponse

from .matrices import check_draws, check_matrix, check_surveys, exact_coverage, rebuilt

F = Fraction
KINDS = [
    KaryResponse.coin_toss(),
    KaryResponse(size=2, odds=F(2)),
    KaryResponse(size=5, odds=F(7, 2)),
    KaryResponse.from_epsilon(1, size=4),
    KaryResponse.from_epsilon(20, size=3),
]


def law(protocol, answer):
    """The definition: weights odds and 1, normalised."""
    weights = {report: protocol.odds if report == answer else F(1) for report in range(protocol.size)}
    return {report: weight / sum(weights.values()) for report, weight in weights.items()}


@pytest.mark.parametrize("protocol", KINDS, ids=str)
def test_the_exact_matrix(protocol):
    laws = {frozenset([answer]): law(protocol, answer) for answer in range(protocol.size)}
    check_matrix(protocol, laws, lambda report, answer: report == answer)
    assert rebuilt(protocol) == protocol


def test_the_coins_of_warner():
    toss = KaryResponse.coin_toss()
    # Heads: the truth. Tails: the second coin answers. Four equally likely outcomes.
    outcomes = [True, True, True, False]
    assert F(outcomes.count(True), 4) == toss.p == F(3, 4) and toss.q == F(1, 4)
    assert toss.max_ratio == 3 and toss.epsilon == pytest.approx(math.log(3), abs=1e-15)


def test_one_answer_says_nothing():
    alone = KaryResponse.from_epsilon(1, size=1)
    assert alone.max_ratio == 1 and alone.epsilon == 0 and alone.message_bits == 0
    assert alone.p == 1 and alone.q == 0
    assert alone.randomise(np.zeros(3, dtype=int))["value"].tolist() == [0, 0, 0]
    assert alone.shares(np.array([3]), 3).values.tolist() == [1.0]


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 5, 20])
def test_epsilon_is_never_more_than_promised(epsilon):
    protocol = KaryResponse.from_epsilon(epsilon, size=10)
    assert epsilon - 1e-9 <= protocol.epsilon <= epsilon


@pytest.mark.parametrize("protocol", KINDS, ids=str)
def test_reports_follow_the_matrix(protocol):
    """False alarm 1e-9 in all; power: every chance of a lie off by 3% of itself."""
    for answer in range(protocol.size):
        reports = protocol.randomise(np.full(200_000, answer))
        assert protocol.valid(reports).all()
        check_draws(reports["value"], law(protocol, answer), tests=protocol.size)


def test_variance_is_that_of_the_table():
    for epsilon, k in [(1.0, 2), (1.0, 1024), (3.0, 8)]:
        e = math.exp(epsilon)
        protocol = KaryResponse.from_epsilon(epsilon, size=k)
        assert protocol.variance(0, 1) == pytest.approx((e + k - 2) / (e - 1) ** 2, rel=1e-8)
    assert KaryResponse.from_epsilon(1, size=1024).variance(0, 1) == pytest.approx(347, abs=0.5)


def test_estimates_and_limits_of_whole_surveys():
    """False alarm 1e-9; power: see check_surveys."""
    answers = np.repeat([0, 1, 2, 3], [100, 60, 40, 0])
    shares = [F(1, 2), F(3, 10), F(1, 5), F(0)]
    check_surveys(KaryResponse.from_epsilon(1, size=4), lambda times: np.tile(answers, times), shares)


@pytest.mark.parametrize("holders", [0, 1, 9, 30, 60])
def test_limits_cover_exactly(holders):
    """Exact: the chance summed over every number of supports."""
    protocol = KaryResponse.from_epsilon(2, size=61)
    assert exact_coverage(protocol, 60, 0.95, holders) >= 0.95
    assert exact_coverage(protocol, 60, 0.5, holders) >= 0.5


def test_batches_add_up_and_garbage_is_flagged():
    protocol = KaryResponse.from_epsilon(1, size=10_000_000)
    reports = protocol.randomise(np.array([0, 9_999_999, 5]))["value"]
    assert protocol.valid({"value": reports}).all() and protocol.message_bits == 24
    small = KaryResponse.from_epsilon(1, size=5)
    whole = small.randomise(np.arange(1000) % 5)["value"]
    parts = sum(small.collect({"value": whole[start : start + 300]}) for start in range(0, 1000, 300))
    assert (parts == small.collect({"value": whole})).all() and parts.sum() == 1000
    garbage = np.array([-1, 5, 2**62, -(2**63), 4, 0])
    assert small.valid({"value": garbage}).tolist() == [False, False, False, False, True, True]
    assert small.valid({"value": np.array([2**64 - 1, 3], dtype=np.uint64)}).tolist() == [False, True]
    nothing = small.randomise(np.zeros(0, dtype=int))
    assert small.valid(nothing).shape == (0,) and small.collect(nothing).tolist() == [0] * 5
    unknown = small.shares(small.collect(nothing), 0)
    assert np.isnan(unknown.values).all() and (unknown.low == 0).all() and (unknown.high == 1).all()


@pytest.mark.parametrize("bad", [[5], [-1], [0.5], ["a"], [[0, 1]]], ids=repr)
def test_answers_outside_the_list_are_refused_without_repeating_them(bad):
    with pytest.raises(InvalidArgument, match="from 0 to 4") as caught:
        KaryResponse.from_epsilon(1, size=5).randomise(np.array(bad))
    assert caught.value.place == "answers"


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e-12, 21, "1", None, True], ids=repr)
def test_senseless_epsilons_are_refused(epsilon):
    with pytest.raises(InvalidArgument) as caught:
        KaryResponse.from_epsilon(epsilon, size=4)
    assert caught.value.place == "epsilon"


def test_other_senseless_parameters_are_refused():
    for size in (0, -1, 2.5, True, None):
        with pytest.raises(InvalidArgument):
            KaryResponse.from_epsilon(1, size=size)
    for odds in (F(1), F(1, 2), F(0), F(-3)):
        with pytest.raises(InvalidArgument):
            KaryResponse(size=3, odds=odds)
