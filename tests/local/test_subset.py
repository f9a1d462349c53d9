"""Subset selection: the exact matrix from the phone's draws, the law of reports, estimates and limits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidArgument
from sfumato.local.ballots import SubsetSelection, UnaryEncoding
from sfumato.local.response import KaryResponse

from .matrices import check_draws, check_matrix, check_surveys, code, codes_of, exact_coverage, rebuilt

F = Fraction
EXACT = [
    SubsetSelection(size=2, odds=F(3), chosen=1),
    SubsetSelection(size=3, odds=F(5, 2), chosen=2),
    SubsetSelection(size=5, odds=F(3, 2), chosen=2),
    SubsetSelection(size=7, odds=F(7, 3), chosen=3),
    SubsetSelection.from_epsilon(1, size=8),
]


def law(protocol, answer):
    """Follow the phone: a first draw, then others without replacement, in every order."""
    a, b = protocol.odds.numerator, protocol.odds.denominator
    inside = F(protocol.chosen * a, protocol.chosen * a + (protocol.size - protocol.chosen) * b)
    others = [each for each in range(protocol.size) if each != answer]
    found = {}
    for start, chance in (([answer], inside), ([], 1 - inside)):
        orders = list(itertools.permutations(others, protocol.chosen - len(start)))
        for order in orders:
            report = code([*start, *order])
            found[report] = found.get(report, 0) + chance / len(orders)
    return found


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_the_exact_matrix(protocol):
    laws = {frozenset([answer]): law(protocol, answer) for answer in range(protocol.size)}
    check_matrix(protocol, laws, lambda report, answer: bool(report >> answer & 1))
    weights = {report: protocol.odds if report & 1 else F(1) for report in laws[frozenset([0])]}
    assert laws[frozenset([0])] == {each: weight / sum(weights.values()) for each, weight in weights.items()}
    assert rebuilt(protocol) == protocol


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_reports_follow_the_matrix(protocol):
    """False alarm 1e-9 in all; power: chances of reports off by 5% of themselves."""
    for answer in range(protocol.size):
        reports = protocol.randomise(np.full(100_000, answer))
        assert protocol.valid(reports).all()
        check_draws(codes_of(reports["bits"], protocol.size), law(protocol, answer), tests=protocol.size)


@given(st.floats(0.01, 8), st.integers(2, 80))
def test_the_number_chosen_has_the_least_variance_of_all(epsilon, size):
    best = SubsetSelection.from_epsilon(epsilon, size=size)
    every = [SubsetSelection(size=size, odds=best.odds, chosen=w) for w in range(1, size // 2 + 1)]
    assert best.variance(0, 1) == min(each.variance(0, 1) for each in every)


def test_variance_is_that_of_the_table():
    assert SubsetSelection.from_epsilon(1, size=1024).variance(0, 1) == pytest.approx(3.674, abs=5e-4)
    for epsilon, size in [(0.1, 2), (0.5, 10), (1, 3), (1, 100), (4, 1000)]:
        ours = SubsetSelection.from_epsilon(epsilon, size=size).variance(0, 1)
        assert ours <= UnaryEncoding.from_epsilon(epsilon, size=size).variance(0, 1)
        assert ours <= KaryResponse.from_epsilon(epsilon, size=size).variance(0, 1)
    two, coin = SubsetSelection.from_epsilon(1, size=2), KaryResponse.from_epsilon(1, size=2)
    assert (two.p, two.q) == (coin.p, coin.q)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 5, 20])
def test_epsilon_is_never_more_than_promised(epsilon):
    assert epsilon - 1e-9 <= SubsetSelection.from_epsilon(epsilon, size=10).epsilon <= epsilon


@pytest.mark.parametrize("size", [11, pytest.param(60, marks=pytest.mark.soak)])
def test_estimates_and_limits_of_whole_surveys(size):
    """False alarm 1e-9; power: see check_surveys. With 60 answers subsets start from coins."""
    protocol = SubsetSelection.from_epsilon(1, size=size)
    answers = np.repeat([0, 1, 9], [100, 60, 40])
    shares = [F(1, 2), F(3, 10), *[F(0)] * 7, F(1, 5), *[F(0)] * (size - 10)]
    check_surveys(protocol, lambda times: np.tile(answers, times), shares)


@pytest.mark.parametrize("holders", [0, 1, 9, 30, 60])
def test_limits_cover_exactly(holders):
    """Exact: the chance summed over every number of supports."""
    protocol = SubsetSelection.from_epsilon(2, size=61)
    assert exact_coverage(protocol, 60, 0.95, holders) >= 0.95
    assert exact_coverage(protocol, 60, 0.5, holders) >= 0.5


def test_garbage_is_flagged_and_batches_add_up():
    protocol = SubsetSelection.from_epsilon(1, size=77)
    whole = protocol.randomise(np.arange(1000) % 77)["bits"]
    parts = sum(protocol.collect({"bits": whole[start : start + 300]}) for start in range(0, 1000, 300))
    assert (parts == protocol.collect({"bits": whole})).all() and parts.sum() == 1000 * protocol.chosen
    bad = whole[:5].copy()
    bad[0] = 255
    bad[1] = 0
    bad[2, 0] ^= 1  # one more or one less
    bad[3, -1] |= 1  # something in the padding
    assert protocol.valid({"bits": bad}).tolist() == [False] * 4 + [True]
    assert not protocol.valid({"bits": whole[:, 1:]}).any()
    assert protocol.valid({"bits": whole.astype(np.int64)}).shape == (1000,)
    assert not protocol.valid({"bits": whole.astype(np.int64)}).any()


@pytest.mark.parametrize("epsilon", [1e-6, 1, 20])
@pytest.mark.parametrize("size", [1, 2, 3, 10_000_000])
def test_the_smallest_and_the_largest(size, epsilon):
    protocol = SubsetSelection.from_epsilon(epsilon, size=size)
    assert (protocol.epsilon == 0) == (size == 1)
    one = protocol.randomise(np.array([size - 1]))
    assert protocol.valid(one).all() and one["bits"].shape == (1, protocol.octets("bits"))
    totals = protocol.collect(one)
    assert totals.shape == (size,) and totals.sum() == protocol.chosen
    nothing = protocol.randomise(np.zeros(0, dtype=int))
    assert protocol.valid(nothing).shape == (0,) and not protocol.collect(nothing).any()


def test_senseless_parameters_are_refused():
    for epsilon in (0, -1, math.nan, 21, 1e-12, "1", None):
        with pytest.raises(InvalidArgument):
            SubsetSelection.from_epsilon(epsilon, size=4)
    for size in (0, -1, 2.5, True, None):
        with pytest.raises(InvalidArgument):
            SubsetSelection.from_epsilon(1, size=size)
    for odds, chosen in [(F(1), 1), (F(3), 0), (F(3), 3), (F(3), 1.5)]:
        with pytest.raises(InvalidArgument):
            SubsetSelection(size=4, odds=odds, chosen=chosen)
    with pytest.raises(InvalidArgument, match="from 0 to 3"):
        SubsetSelection.from_epsilon(1, size=4).randomise(np.array([-1]))
