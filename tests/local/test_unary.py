"""Unary encoding: the exact matrix from the phone's draws, the law of reports, estimates and limits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local.ballots import UnaryEncoding, usual_ones

from .matrices import check_draws, check_matrix, check_surveys, code, codes_of, exact_coverage, rebuilt

F = Fraction
EXACT = [
    UnaryEncoding(size=3, own=F(2, 3), other=F(1, 3)),
    UnaryEncoding(size=3, own=F(1, 2), other=F(1, 4)),
    UnaryEncoding(size=4, own=F(3, 4), other=F(2, 5)),
    UnaryEncoding(size=2, own=F(3, 7), other=F(1, 5)),
]


def law(protocol, own):
    """Go through every outcome of the phone's draws; all are equally likely."""
    chances = [protocol.own if answer in own else protocol.other for answer in range(protocol.size)]
    outcomes = list(itertools.product(*(range(chance.denominator) for chance in chances)))
    found = {}
    for drawn in outcomes:
        report = code(
            at for at, (u, chance) in enumerate(zip(drawn, chances, strict=True)) if u < chance.numerator
        )
        found[report] = found.get(report, 0) + F(1, len(outcomes))
    return found


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_the_exact_matrix(protocol):
    laws = {frozenset([answer]): law(protocol, {answer}) for answer in range(protocol.size)}
    check_matrix(protocol, laws, lambda report, answer: bool(report >> answer & 1))
    assert rebuilt(protocol) == protocol


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_reports_follow_the_matrix(protocol):
    """False alarm 1e-9 in all; power: chances of reports off by 4% of themselves."""
    for answer in range(protocol.size):
        reports = protocol.randomise(np.full(200_000, answer))
        assert protocol.valid(reports).all()
        check_draws(codes_of(reports["bits"], protocol.size), law(protocol, {answer}), tests=protocol.size)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 5, 20])
def test_epsilon_is_never_more_than_promised(epsilon, symmetric):
    protocol = UnaryEncoding.from_epsilon(epsilon, size=10, symmetric=symmetric)
    assert epsilon - 1e-9 <= protocol.epsilon <= epsilon
    assert protocol.own == (1 - protocol.other if symmetric else F(1, 2))
    assert rebuilt(protocol) == protocol


def test_variance_is_that_of_the_table():
    for epsilon in (0.5, 1.0, 4.0):
        e, h = math.exp(epsilon), math.exp(epsilon / 2)
        optimised = UnaryEncoding.from_epsilon(epsilon, size=9)
        symmetric = UnaryEncoding.from_epsilon(epsilon, size=9, symmetric=True)
        assert optimised.variance(0, 1) == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-8)
        assert symmetric.variance(0, 1) == pytest.approx(h / (h - 1) ** 2, rel=1e-8)
        assert symmetric.variance(1, 1) == pytest.approx(h / (h - 1) ** 2, rel=1e-8)
    assert UnaryEncoding.from_epsilon(1, size=9).variance(0, 1) == pytest.approx(3.683, abs=5e-4)
    symmetric = UnaryEncoding.from_epsilon(1, size=9, symmetric=True)
    assert symmetric.variance(0, 1) == pytest.approx(3.918, abs=5e-4)


@pytest.mark.parametrize("symmetric", [False, True])
def test_estimates_and_limits_of_whole_surveys(symmetric):
    """False alarm 1e-9; power: see check_surveys."""
    protocol = UnaryEncoding.from_epsilon(1, size=11, symmetric=symmetric)
    answers = np.repeat([0, 1, 9], [100, 60, 40])
    shares = [F(1, 2), F(3, 10), *[F(0)] * 7, F(1, 5), F(0)]
    check_surveys(protocol, lambda times: np.tile(answers, times), shares)


@pytest.mark.parametrize("holders", [0, 1, 9, 30, 60])
def test_limits_cover_exactly(holders):
    """Exact: the chance summed over every number of supports."""
    protocol = UnaryEncoding.from_epsilon(2, size=61)
    assert exact_coverage(protocol, 60, 0.95, holders) >= 0.95
    assert exact_coverage(protocol, 60, 0.5, holders) >= 0.5


@pytest.mark.parametrize("size", [1, 2, 21, 22, 23, 100, 1024, 20_000])
@pytest.mark.parametrize("epsilon", [0.01, 1, 8])
def test_honest_reports_are_hardly_ever_refused(size, epsilon):
    """Exact: the chance of a number of ones outside the limits, and that limits are not far too wide."""
    protocol = UnaryEncoding.from_epsilon(epsilon, size=size)
    own, other = float(protocol.own), float(protocol.other)
    low, high = usual_ones(size, protocol.other)
    rest = stats.binom(size - 1, other)
    above = own * rest.sf(high - 1) + (1 - own) * rest.sf(high)
    below = own * rest.cdf(low - 2) + (1 - own) * rest.cdf(low - 1)
    assert above + below <= 1e-12
    assert low == 0 or rest.cdf(low + 0.7 * math.sqrt(size)) > 1e-12
    assert high == size or rest.sf(high - 2 - 0.7 * math.sqrt(size)) > 1e-12
    assert low <= size * other <= high or size < 40


def test_reports_that_say_everything_or_nothing_are_refused():
    protocol = UnaryEncoding.from_epsilon(1, size=1021)
    packed = protocol.randomise(np.arange(9))["bits"].copy()
    packed[0] = 255
    packed[1] = 255
    packed[1, -1] = 0b11111000  # every answer, and nothing in the padding
    packed[2] = 0
    packed[3, -1] |= 1  # something in the padding
    assert protocol.valid({"bits": packed}).tolist() == [False] * 4 + [True] * 5
    assert not protocol.valid({"bits": packed[:, 1:]}).any()
    assert protocol.valid({"bits": packed.astype(np.int64)}).tolist() == [False] * 9
    for size, refused in ((22, False), (23, True)):
        few = UnaryEncoding.from_epsilon(1, size=size)
        everything = np.packbits(np.ones((1, size), dtype=bool), axis=1)
        assert few.valid({"bits": everything}).tolist() == [not refused]


def test_batches_add_up():
    protocol = UnaryEncoding.from_epsilon(1, size=77)
    whole = protocol.randomise(np.arange(1000) % 77)["bits"]
    parts = sum(protocol.collect({"bits": whole[start : start + 300]}) for start in range(0, 1000, 300))
    assert (parts == protocol.collect({"bits": whole})).all()
    assert (parts == np.unpackbits(whole, axis=1, count=77).sum(axis=0)).all()
    assert protocol.supports(parts) is parts and protocol.message_bits == 77


@pytest.mark.parametrize("epsilon", [1e-6, 20])
@pytest.mark.parametrize("size", [1, 2, pytest.param(10_000_000, marks=pytest.mark.soak)])
def test_the_smallest_and_the_largest(size, epsilon):
    protocol = UnaryEncoding.from_epsilon(epsilon, size=size)
    assert (protocol.epsilon == 0) == (size == 1)
    one = protocol.randomise(np.array([size - 1]))
    assert protocol.valid(one).all() and one["bits"].shape == (1, protocol.octets("bits"))
    totals = protocol.collect(one)
    assert totals.shape == (size,) and set(np.unique(totals)) <= {0, 1}
    assert protocol.shares(totals[:size], 1).low.min() >= 0
    nothing = protocol.randomise(np.zeros(0, dtype=int))
    assert protocol.valid(nothing).shape == (0,) and not protocol.collect(nothing).any()


def test_senseless_parameters_are_refused():
    for epsilon in (0, -1, math.nan, 21, 1e-12, "1", None):
        with pytest.raises(InvalidArgument):
            UnaryEncoding.from_epsilon(epsilon, size=4)
    with pytest.raises(InvalidArgument):  # the root of the odds rounds to one
        UnaryEncoding.from_epsilon(1e-10, size=4, symmetric=True)
    for own, other in [(F(1, 2), F(1, 2)), (F(1, 3), F(1, 2)), (1, F(1, 2)), (F(1, 2), 0), (2, F(1, 2))]:
        with pytest.raises(InvalidArgument):
            UnaryEncoding(size=3, own=own, other=other)
    for size in (0, -1, 2.5, True, None):
        with pytest.raises(InvalidArgument):
            UnaryEncoding.from_epsilon(1, size=size)
    with pytest.raises(InvalidArgument, match="from 0 to 3"):
        UnaryEncoding.from_epsilon(1, size=4).randomise(np.array([4]))
