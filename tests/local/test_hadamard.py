"""Hadamard response: the exact matrix, the transform against its definition, ten million answers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidArgument
from sfumato.local.hadamard import HadamardResponse, walsh_hadamard

from .laws import exact_law
from .matrices import check_draws, check_matrix, check_surveys, exact_coverage, rebuilt

F = Fraction
EXACT = [
    HadamardResponse(size=1, odds=F(3)),
    HadamardResponse(size=2, odds=F(3)),
    HadamardResponse(size=3, odds=F(5, 2)),
    HadamardResponse(size=4, odds=F(3, 2)),  # a power of two: one more column than answers is needed
    HadamardResponse(size=7, odds=F(7, 3)),
]


def parity(row, answer):
    return bin(row & (answer + 1)).count("1") % 2


def phone(protocol, answer):
    """The procedure of the docstring, written again."""
    rows = 2
    while rows <= protocol.size:
        rows *= 2

    def procedure(below):
        row, odds = below(rows), protocol.odds
        lie = below(odds.numerator + odds.denominator) >= odds.numerator
        return row, parity(row, answer) ^ lie

    return procedure


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_the_exact_matrix(protocol):
    laws = {frozenset([answer]): exact_law(phone(protocol, answer)) for answer in range(protocol.size)}
    check_matrix(protocol, laws, lambda report, answer: parity(report[0], answer) == report[1])
    assert rebuilt(protocol) == protocol


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_reports_follow_the_matrix(protocol):
    """False alarm 1e-9 in all; power: chances of reports off by 3% of themselves."""
    for answer in range(protocol.size):
        reports = protocol.randomise(np.full(200_000, answer))
        assert protocol.valid(reports).all()
        law = {2 * row + bit: p for (row, bit), p in exact_law(phone(protocol, answer)).items()}
        check_draws(2 * reports["row"] + reports["bit"], law, tests=protocol.size)


@pytest.mark.parametrize("bits", range(9))
def test_the_transform_is_its_definition(bits):
    values = (np.arange(1 << bits) * 7919) % 101 - 50
    signs = [[(-1) ** bin(r & c).count("1") for r in range(1 << bits)] for c in range(1 << bits)]
    assert (walsh_hadamard(values) == np.array(signs) @ values).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100, 1023, 1024])
def test_counts_are_those_of_the_definition(size):
    protocol = HadamardResponse.from_epsilon(1, size=size)
    reports = protocol.randomise(np.arange(500) % size)
    rows, bits = reports["row"].tolist(), reports["bit"].tolist()
    wanted = [sum(parity(r, x) == b for r, b in zip(rows, bits, strict=True)) for x in range(size)]
    assert protocol.supports(protocol.collect(reports)).tolist() == wanted
    parts = [{k: v[s] for k, v in reports.items()} for s in (slice(99), slice(99, None))]
    assert protocol.supports(sum(protocol.collect(part) for part in parts)).tolist() == wanted


def test_estimates_and_limits():
    """As check_surveys says, for shares of 0, 1/4 and 3/4 of forty people."""
    people = np.repeat([0, 2], [30, 10])
    protocol = HadamardResponse(size=3, odds=F(3))
    check_surveys(protocol, lambda times: np.tile(people, times), [F(3, 4), F(0), F(1, 4)])
    assert protocol.variance(0, 1) == pytest.approx(4)


def test_variance_is_that_of_the_table():
    assert HadamardResponse.from_epsilon(1, size=1024).variance(0, 1) == pytest.approx(4.683, abs=5e-4)
    for epsilon in (0.1, 2, 5):
        e = math.exp(epsilon)
        variance = HadamardResponse.from_epsilon(epsilon, size=9).variance(0, 1)
        assert variance == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-7)


def test_limits_cover_every_share():
    """Exactly, over every number of supports: totals are made whose counts are 0 .. 40."""

    class Counted(HadamardResponse):
        def supports(self, totals):
            return totals

    protocol = Counted(size=41, odds=F(3))
    assert min(exact_coverage(protocol, 40, 0.95, holders) for holders in range(41)) >= 0.95


@pytest.mark.soak
def test_ten_million_answers():
    """All gave the last one. False alarm below 1e-9: its count is 11 deviations from the bound."""
    protocol = HadamardResponse.from_epsilon(2, size=10**7)
    assert protocol.rows == 2**24
    counts = protocol.supports(protocol.collect(protocol.randomise(np.full(2000, 10**7 - 1))))
    assert len(counts) == 10**7 and counts.argmax() == 10**7 - 1 and 1600 < counts.max() < 1950


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 5, 20])
@pytest.mark.parametrize("size", [1, 2, 1000, 10**7])
def test_any_size_and_epsilon(epsilon, size):
    protocol = HadamardResponse.from_epsilon(epsilon, size=size)
    assert protocol.epsilon <= epsilon and (size == 1 or protocol.epsilon > epsilon - 1e-9)
    reports = protocol.randomise(np.array([0, size - 1]))
    assert protocol.valid(reports).all()
    assert 2 ** (protocol.message_bits - 1) == protocol.rows > size
    nothing = protocol.randomise(np.array([], dtype=np.int64))
    assert not protocol.valid(nothing).size
    if size <= 1000:
        assert not protocol.supports(protocol.collect(nothing)).any()
    assert rebuilt(protocol) == protocol


def test_what_no_phone_can_have_sent():
    protocol = HadamardResponse.from_epsilon(1, size=5)
    row = np.array([-1, 8, 2**62, 0, 7, 0, 7])
    bit = np.array([0, 1, 0, 2, -1, 0, 1])
    assert protocol.valid({"row": row, "bit": bit}).tolist() == [False] * 5 + [True] * 2


def test_parameters_that_make_no_sense():
    for wrong in ({"size": 0}, {"size": 2**28}, {"odds": F(1)}):
        with pytest.raises(InvalidArgument):
            HadamardResponse(**{"size": 3, "odds": F(3), **wrong})
