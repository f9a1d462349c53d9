"""Projective geometry: the exact matrix, the counts against their definition, the choice of geometry."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidArgument
from sfumato.local.ballots import SubsetSelection
from sfumato.local.geometry import ProjectiveGeometry
from sfumato.local.supports import absorb, absorb_last, inverses

from .matrices import check_draws, check_matrix, check_surveys, rebuilt

F = Fraction
EXACT = [
    ProjectiveGeometry(size=3, prime=2, dimension=2, odds=F(3)),
    ProjectiveGeometry(size=7, prime=2, dimension=3, odds=F(3, 2)),
    ProjectiveGeometry(size=4, prime=3, dimension=2, odds=F(5, 2)),
    ProjectiveGeometry(size=13, prime=3, dimension=3, odds=F(3)),
    ProjectiveGeometry(size=10, prime=3, dimension=3, odds=F(3)),
    ProjectiveGeometry(size=6, prime=5, dimension=2, odds=F(7)),
    ProjectiveGeometry(size=15, prime=2, dimension=4, odds=F(2)),
    ProjectiveGeometry(size=1, prime=2, dimension=2, odds=F(2)),
]


def points_of(prime, dimension):
    """All points in the order of their numbers: by the coordinates after the first 1, then as numbers."""
    return [
        (0,) * (dimension - 1 - r) + (1, *tail)
        for r in range(dimension)
        for tail in itertools.product(range(prime), repeat=r)
    ]


def product(u, v, prime):
    return sum(a * b for a, b in zip(u, v, strict=True)) % prime


def law(protocol, answer):
    """Steps 1 to 5 of the phone, over all draws; going back to 2 makes what is left likelier."""
    q, t = protocol.prime, protocol.dimension
    points = points_of(q, t)
    number = {point: i for i, point in enumerate(points)}
    v = points[answer]
    first = v.index(1)
    w, rest = (q ** (t - 1) - 1) // (q - 1), q ** (t - 1)
    heads = w * protocol.odds / (w * protocol.odds + rest)
    found: dict[int, Fraction] = {}
    for c, chance in ((0, heads), (1, 1 - heads)):
        sent = []
        for drawn in itertools.product(range(q), repeat=t):
            u = list(drawn)
            u[first] = (u[first] + c - product(u, v, q)) % q
            if any(u):
                leading = next(each for each in u if each)
                sent.append(number[tuple(each * pow(leading, -1, q) % q for each in u)])
        for report in sent:
            found[report] = found.get(report, F(0)) + chance / len(sent)
    return found


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_the_exact_matrix(protocol):
    points = points_of(protocol.prime, protocol.dimension)
    laws = {frozenset([answer]): law(protocol, answer) for answer in range(protocol.size)}
    check_matrix(protocol, laws, lambda report, x: product(points[report], points[x], protocol.prime) == 0)
    assert len(points) == protocol.points
    assert rebuilt(protocol) == protocol


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_reports_follow_the_matrix(protocol):
    """False alarm 1e-9 in all; power: chances of reports off by 5% of themselves."""
    for answer in range(protocol.size):
        reports = protocol.randomise(np.full(100_000, answer))
        assert protocol.valid(reports).all()
        check_draws(reports["point"], law(protocol, answer), tests=protocol.size)


@pytest.mark.parametrize(
    ("prime", "dimension"),
    [(2, 2), (2, 3), (3, 2), (3, 3), (5, 3), (2, 6), (7, 2), (3, 5), (5, 4), (13, 3), (17, 2)],
)
def test_counts_are_those_of_the_definition(prime, dimension):
    points = points_of(prime, dimension)
    protocol = ProjectiveGeometry(size=len(points), prime=prime, dimension=dimension, odds=F(3))
    vectors = np.array(points)
    assert (vectors == protocol.coordinates(np.arange(len(points))).T).all()
    for factor in range(1, prime):
        assert (protocol.numbers(vectors.T * factor % prime) == np.arange(len(points))).all()
    totals = (np.arange(len(points)) * 7919 + 13) % 101
    wanted = (vectors @ vectors.T % prime == 0) @ totals
    assert (protocol.supports(totals) == wanted).all()
    fewer = ProjectiveGeometry(size=2, prime=prime, dimension=dimension, odds=F(3))
    assert (fewer.supports(totals) == wanted[:2]).all()


def test_sums_over_residues_are_their_definition():
    """More columns than are worked on at once."""
    for prime, rest in ((2, 70_000), (3, 1), (5, 7), (7, 3000)):
        table = (np.arange(prime * prime * rest) * 7919 % 97).reshape(prime, prime, rest)
        out = absorb(table)
        for z, d in itertools.product(range(prime), repeat=2):
            assert (out[z, :, d] == sum(table[(z - w * d) % prime, w] for w in range(prime))).all()
        assert (absorb_last(table) == out[0]).all()
        some = np.arange(1, prime)
        assert (some * inverses(some, prime) % prime == 1).all()


def test_estimates_and_limits():
    """As check_surveys says, for shares of 0, 1/4 and 3/4 of forty people."""
    people = np.repeat([0, 2], [30, 10])
    protocol = ProjectiveGeometry(size=3, prime=3, dimension=3, odds=F(3))
    check_surveys(protocol, lambda times: np.tile(people, times), [F(3, 4), F(0), F(1, 4)])


def test_variance_is_that_of_subset_selection_where_the_prime_fits():
    """With a prime of odds + 1 the two have the same p and q, up to what whole sets allow."""
    for prime, dimension in ((3, 7), (7, 4), (17, 3)):
        points = (prime**dimension - 1) // (prime - 1)
        odds = F(prime - 1)
        ours = ProjectiveGeometry(size=points, prime=prime, dimension=dimension, odds=odds)
        sets = SubsetSelection(size=points, odds=odds, chosen=(prime ** (dimension - 1) - 1) // (prime - 1))
        assert (ours.p, ours.q) == (sets.p, sets.q)
        best = min(
            SubsetSelection(size=points, odds=odds, chosen=w).variance(0, 1)
            for w in range(1, points // 2 + 1, max(1, points // 500))
        )
        assert ours.variance(0, 1) <= best * 1.002


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [30, 1024, 10**7])
def test_the_chosen_geometry_is_nearly_the_best(epsilon, size):
    """Whatever the prime and the smallest dimension: at most 2% less variance, unless points run out."""
    chosen = ProjectiveGeometry.from_epsilon(epsilon, size=size)
    for prime in (p for p in range(2, 400) if all(p % d for d in range(2, p))):
        dimension = next(t for t in itertools.count(2) if (prime**t - 1) // (prime - 1) >= size)
        if (prime**dimension - 1) // (prime - 1) <= 2**26:
            other = ProjectiveGeometry(size=size, prime=prime, dimension=dimension, odds=chosen.odds)
            assert chosen.variance(0, 1) <= 1.02 * other.variance(0, 1)
    e = math.exp(epsilon)
    if size > 100:
        assert chosen.variance(0, 1) < 1.06 * 4 * e / (e - 1) ** 2


@pytest.mark.soak
def test_ten_million_answers():
    """All gave the last one. False alarm below 1e-9: by more than 9 deviations."""
    protocol = ProjectiveGeometry.from_epsilon(4, size=10**7)
    counts = protocol.supports(protocol.collect(protocol.randomise(np.full(2000, 10**7 - 1))))
    assert len(counts) == 10**7 and counts.argmax() == 10**7 - 1
    assert abs(counts.max() / 2000 - float(protocol.p)) < 0.11


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 8, 20])
@pytest.mark.parametrize("size", [1, 2, 3, 1000, 10**7])
def test_any_size_and_epsilon(epsilon, size):
    protocol = ProjectiveGeometry.from_epsilon(epsilon, size=size)
    assert protocol.epsilon <= epsilon and (size == 1 or protocol.epsilon > epsilon - 1e-9)
    reports = protocol.randomise(np.array([0, size - 1]))
    assert protocol.valid(reports).all()
    assert protocol.points <= 2**protocol.message_bits
    nothing = protocol.randomise(np.array([], dtype=np.int64))
    assert not protocol.valid(nothing).size
    if size <= 1000:
        assert not protocol.supports(protocol.collect(nothing)).any()
    assert rebuilt(protocol) == protocol


def test_what_no_phone_can_have_sent():
    protocol = ProjectiveGeometry.from_epsilon(1, size=5)
    point = np.array([-1, protocol.points, 2**62, -(2**63), 0, protocol.points - 1])
    assert protocol.valid({"point": point}).tolist() == [False] * 4 + [True] * 2


def test_parameters_that_make_no_sense():
    for wrong in (
        {"size": 0},
        {"size": 14},
        {"size": 2**25 + 1},
        {"prime": 4},
        {"dimension": 1},
        {"dimension": 40},
        {"odds": F(1)},
    ):
        with pytest.raises(InvalidArgument):
            ProjectiveGeometry(**{"size": 3, "prime": 3, "dimension": 3, "odds": F(3), **wrong})
    with pytest.raises(InvalidArgument, match="at most"):
        ProjectiveGeometry.from_epsilon(1, size=2**25 + 1)
