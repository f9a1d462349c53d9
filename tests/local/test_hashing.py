"""Local hashing: collisions exactly as rare as claimed, the exact matrix, exact counts at any size."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidArgument
from sfumato.local.hashing import LinearFamily, LocalHashing, smallest_factor

from .laws import exact_law
from .matrices import check_draws, check_matrix, check_surveys, exact_coverage, rebuilt

F = Fraction
EXACT = [
    LocalHashing(size=2, hashes=2, odds=F(3)),
    LocalHashing(size=5, hashes=2, odds=F(3, 2)),
    LocalHashing(size=4, hashes=3, odds=F(5, 2)),  # two digits, the second pair of values of three
    LocalHashing(size=5, hashes=4, odds=F(3)),  # not a prime: binary digits
    LocalHashing(size=3, hashes=5, odds=F(7, 3)),
    LocalHashing(size=4, hashes=6, odds=F(5)),
    LocalHashing(size=1, hashes=4, odds=F(3)),
]


def digits(value, base, length):
    return [value // base**place % base for place in range(length - 1, -1, -1)]


def length_of(protocol, base):
    return next(m for m in itertools.count(1) if base**m >= protocol.size)


def base_of(g):
    return min(32, next(d for d in range(2, g + 1) if g % d == 0))


def hashed(seed, value, g):
    return sum(a * x for a, x in zip(seed, digits(value, base_of(g), len(seed)), strict=True)) % g


def phone(protocol, answer):
    """The procedure of the docstring, written again."""
    g, odds = protocol.hashes, protocol.odds

    def procedure(below):
        seed = tuple(below(g) for _ in range(length_of(protocol, base_of(g))))
        h = hashed(seed, answer, g)
        honest = below(odds.numerator + (g - 1) * odds.denominator) < odds.numerator
        return seed, h if honest else (h + 1 + below(g - 1)) % g

    return procedure


def law(protocol, answer):
    return exact_law(phone(protocol, answer))


def opened(protocol, reports):
    """Read seeds from their bytes without the code under test."""
    g = protocol.hashes
    width, m = (g - 1).bit_length(), length_of(protocol, base_of(g))
    for row, value in zip(reports["seed"], reports["value"].tolist(), strict=True):
        bits = "".join(f"{octet:08b}" for octet in row.tolist())
        yield tuple(int(bits[i * width : (i + 1) * width], 2) for i in range(m)), value


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_the_exact_matrix(protocol):
    laws = {frozenset([answer]): law(protocol, answer) for answer in range(protocol.size)}
    check_matrix(protocol, laws, lambda report, x: hashed(report[0], x, protocol.hashes) == report[1])
    assert rebuilt(protocol) == protocol


@pytest.mark.parametrize("protocol", EXACT, ids=str)
def test_reports_follow_the_matrix(protocol):
    """False alarm 1e-9 in all; power: chances of reports off by a tenth of themselves."""
    for answer in range(protocol.size):
        reports = protocol.randomise(np.full(30_000, answer))
        assert protocol.valid(reports).all()
        wanted = law(protocol, answer)
        numbered = {report: number for number, report in enumerate(wanted)}
        codes = np.array([numbered[report] for report in opened(protocol, reports)])
        check_draws(codes, {numbered[report]: p for report, p in wanted.items()}, tests=protocol.size)


@pytest.mark.parametrize("g", [2, 3, 4, 5, 6, 9, 15, 35])
def test_two_answers_collide_with_chance_exactly_one_in_g(g):
    """Every seed of two or three digits; all pairs of answers."""
    family = LinearFamily.of(g, size=min(g, 8) if g > 9 else 8)
    seeds = np.array(list(itertools.product(range(g), repeat=family.digits))).T.astype(family.dtype)
    table = family.table(seeds)
    for x, y in itertools.combinations(range(family.base**family.digits), 2):
        assert np.count_nonzero(table[x] == table[y]) * g == seeds.shape[1]
        differences = (table[x].astype(int) - table[y]) % g
        assert len(set(np.bincount(differences, minlength=g).tolist())) == 1


def test_a_base_above_the_smallest_prime_factor_is_refused():
    """With digits up to 3 modulo 4, answers 0 and 2 would collide half of the time."""
    with pytest.raises(InvalidArgument, match="base"):
        LinearFamily(modulus=4, base=4, digits=1)
    assert [smallest_factor(n) for n in (2, 9, 35, 97, 2 * 3 * 5)] == [2, 3, 5, 97, 2]


@given(st.integers(2, 2**31), st.integers(1, 9), st.integers(0, 5))
def test_seeds_survive_their_journey(g, m, people):
    family = LinearFamily(modulus=g, base=2, digits=m)
    seeds = family.draw(people)
    packed = family.pack(seeds)
    assert packed.shape == (people, family.seed_bytes) and family.valid(packed).all()
    assert (family.unpack(packed) == seeds).all()
    for row, seed in zip(packed, seeds.T, strict=True):
        number = sum(int(a) << family.width * (m - 1 - i) for i, a in enumerate(seed))
        assert int.from_bytes(row.tobytes(), "big") == number << -m * family.width % 8


@pytest.mark.parametrize("people", [1, 200, 3000])
@pytest.mark.parametrize(
    ("g", "size"), [(2, 1000), (3, 82), (4, 1024), (21, 700), (56, 33), (149, 1030), (1000, 70), (70_000, 9)]
)
def test_counts_are_those_of_the_definition(g, size, people):
    """Below and above the number of people from which vectors run over people; more than one block."""
    protocol = LocalHashing(size=size, hashes=g, odds=F(3))
    reports = protocol.randomise(np.arange(people) % size)
    seeds = np.array([[*seed, value] for seed, value in opened(protocol, reports)], dtype=np.int64)
    spelled = np.array([digits(x, base_of(g), seeds.shape[1] - 1) for x in range(size)])
    wanted = ((spelled @ seeds[:, :-1].T) % g == seeds[:, -1]).sum(axis=1)
    counts = protocol.collect(reports)
    assert (counts == wanted).all() and counts.dtype == np.int64
    half = people // 2
    parts = [{k: v[s] for k, v in reports.items()} for s in (slice(half), slice(half, None))]
    assert (sum(protocol.collect(part) for part in parts) == wanted).all()
    some = np.array([size - 1, 0, size // 2, size - 1, size // 3])  # neither in order nor different
    assert (protocol.supports_of(reports, some) == wanted[some]).all()


def test_candidates_among_more_answers_than_can_be_listed():
    """An answer that all gave stands out among 2^60; false alarm below 1e-9, by 9 deviations."""
    protocol = LocalHashing.from_epsilon(3, size=2**60)
    reports = protocol.randomise(np.full(2000, 2**59 + 12345))
    counts = protocol.supports_of(reports, np.array([5, 2**59 + 12345, 2**60 - 1, 2**59]))
    share = (counts / 2000 - float(protocol.q)) / float(protocol.p - protocol.q)
    assert share[1] > 0.8 and (abs(share[[0, 2, 3]]) < 0.2).all()


def test_estimates_and_limits():
    """As check_surveys says, for shares of 0, 1/4 and 3/4 of forty people."""
    people = np.repeat([0, 2], [30, 10])
    for protocol in (LocalHashing(size=3, hashes=4, odds=F(3)), LocalHashing(size=3, hashes=5, odds=F(6))):
        check_surveys(protocol, lambda times: np.tile(people, times), [F(3, 4), F(0), F(1, 4)])
    protocol = LocalHashing.from_epsilon(1, size=41)
    assert min(exact_coverage(protocol, 40, 0.95, holders) for holders in range(41)) >= 0.95


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3, 5])
def test_variance_is_that_of_the_table(epsilon):
    e = math.exp(epsilon)
    g = round(e) + 1
    protocol = LocalHashing.from_epsilon(epsilon, size=1024)
    assert protocol.hashes == g and protocol.q == F(1, g)
    assert protocol.variance(0, 1) == pytest.approx((e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)), rel=1e-8)
    assert protocol.p == protocol.odds / (protocol.odds + g - 1)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 5, 20])
@pytest.mark.parametrize("size", [1, 2, 1000, 10**7])
def test_any_size_and_epsilon(epsilon, size):
    protocol = LocalHashing.from_epsilon(epsilon, size=size)
    assert protocol.epsilon <= epsilon and (size == 1 or protocol.epsilon > epsilon - 1e-9)
    reports = protocol.randomise(np.array([0, size - 1, size // 2]))
    assert protocol.valid(reports).all() and reports["seed"].shape[1] == protocol.octets("seed")
    assert 8 * protocol.octets("seed") + 40 > protocol.message_bits
    counts = protocol.supports_of(reports, np.array([0, size - 1]))
    assert ((counts >= 0) & (counts <= 3)).all()
    nothing = protocol.randomise(np.array([], dtype=np.int64))
    assert not protocol.valid(nothing).size and not protocol.supports_of(nothing, np.array([0])).any()
    assert rebuilt(protocol) == protocol


@pytest.mark.soak
def test_ten_million_answers_are_counted():
    """All three reports miss their sender's answer with chance below 1e-16."""
    protocol = LocalHashing.from_epsilon(20, size=10**7, hashes=1000)
    counts = protocol.collect(protocol.randomise(np.array([9_999_999] * 3)))
    assert len(counts) == 10**7 and counts[-1] >= 1 and counts.max() <= 3


def test_what_no_phone_can_have_sent():
    protocol = LocalHashing(size=100, hashes=5, odds=F(3))  # three digits of three bits: 9 of 16
    good = protocol.randomise(np.zeros(4, dtype=np.int64))
    assert good["seed"].shape == (4, 2)
    values = np.array([-1, 5, 2**62, -(2**63)])
    assert not protocol.valid({"seed": good["seed"], "value": values}).any()
    digit_five, padding, ones = [0b10100000, 0], [0, 1], [255, 255]
    last_seven = [0b00000011, 0b10000000]
    bad = np.array([digit_five, padding, ones, last_seven], dtype=np.uint8)
    assert not protocol.valid({"seed": bad, "value": np.zeros(4, dtype=np.int64)}).any()
    highest = np.array([[0b10010010, 0]] * 4, dtype=np.uint8)
    assert protocol.valid({"seed": highest, "value": np.array([0, 1, 4, 5])}).tolist() == [True] * 3 + [False]
    short = {"seed": np.zeros((4, 1), dtype=np.uint8), "value": np.zeros(4, dtype=np.int64)}
    assert not protocol.valid(short).any()


def test_parameters_that_make_no_sense():
    for wrong in (
        {"size": 0},
        {"size": 2**62 + 1},
        {"hashes": 1},
        {"odds": F(1)},
    ):
        with pytest.raises(InvalidArgument):
            LocalHashing(**{"size": 3, "hashes": 4, "odds": F(3), **wrong})
    with pytest.raises(InvalidArgument) as caught:
        LocalHashing.from_epsilon(1, size=10).randomise(np.array([3, 777]))
    assert "777" not in str(caught.value)
