"""Several answers: exact matrices of sets, the law of reports, estimates and limits, what is best where."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidArgument
from sfumato.local.ballots import SubsetSelection, UnaryEncoding
from sfumato.local.response import KaryResponse
from sfumato.local.sets import SetSelection, SeveralAnswers, UnarySets, best_for_several

from .matrices import check_draws, check_matrix, check_surveys, code, codes_of, exact_coverage, rebuilt

F = Fraction

INNER = [
    KaryResponse(size=5, odds=F(3)),
    UnaryEncoding(size=5, own=F(1, 2), other=F(1, 4)),
    SubsetSelection(size=5, odds=F(5, 2), chosen=1),
    SubsetSelection(size=5, odds=F(5, 2), chosen=3),
]
PADDED = [SeveralAnswers(size=3, most=2, inner=inner) for inner in INNER] + [
    SeveralAnswers(size=3, most=3, inner=SubsetSelection(size=6, odds=F(3), chosen=2)),
    SeveralAnswers(size=4, most=1, inner=UnaryEncoding(size=5, own=F(2, 3), other=F(1, 3))),
]
SELECTED = [
    SetSelection(size=1, most=1, odds=F(3), chosen=1),
    SetSelection(size=3, most=2, odds=F(5, 2), chosen=1),
    SetSelection(size=3, most=3, odds=F(5, 2), chosen=2),
    SetSelection(size=5, most=2, odds=F(7, 3), chosen=3),
    SetSelection(size=4, most=3, odds=F(3), chosen=2),
]
WHOLE = [
    UnarySets(size=3, most=1, own=F(1, 2), other=F(1, 4)),
    UnarySets(size=3, most=2, own=F(1, 2), other=F(1, 4)),
    UnarySets(size=3, most=2, own=F(3, 4), other=F(2, 3)),
    UnarySets(size=3, most=3, own=F(2, 3), other=F(1, 3)),
    UnarySets(size=1, most=1, own=F(2, 3), other=F(1, 3)),
]


def sets_of(protocol):
    """Every set that a person may hold."""
    return [
        frozenset(held)
        for number in range(protocol.most + 1)
        for held in itertools.combinations(range(protocol.size), number)
    ]


def inner_law(inner, answer):
    """The definitions of the inner protocols: weights, normalised; reports as codes of bits."""
    if isinstance(inner, KaryResponse):
        weights = {1 << each: inner.odds if each == answer else F(1) for each in range(inner.size)}
    elif isinstance(inner, SubsetSelection):
        reports = itertools.combinations(range(inner.size), inner.chosen)
        weights = {code(each): inner.odds if answer in each else F(1) for each in reports}
    else:
        weights = {}
        for report in range(1 << inner.size):
            chances = [inner.own if each == answer else inner.other for each in range(inner.size)]
            parts = [c if report >> each & 1 else 1 - c for each, c in enumerate(chances)]
            weights[report] = math.prod(parts, start=F(1))
    return {report: weight / sum(weights.values()) for report, weight in weights.items()}


def padded_law(protocol, own):
    """Average over the places of the padded set."""
    places = [*sorted(own), *range(protocol.size + len(own), protocol.size + protocol.most)]
    assert len(places) == protocol.most
    found = {}
    for place in places:
        for report, chance in inner_law(protocol.inner, place).items():
            found[report] = found.get(report, 0) + chance / protocol.most
    return found


def selected_law(protocol, own):
    """The definition: sets that meet the padded own one weigh the odds, others 1."""
    places = {*own, *range(protocol.size + len(own), protocol.size + protocol.most)}
    reports = itertools.combinations(range(protocol.size + protocol.most), protocol.chosen)
    weights = {code(each): protocol.odds if places & set(each) else F(1) for each in reports}
    return {report: weight / sum(weights.values()) for report, weight in weights.items()}


def phone_law(protocol, own):
    """Follow the phone: strike out places until a coin says stop, then others in every order."""
    places = [*sorted(own), *range(protocol.size + len(own), protocol.size + protocol.most)]
    found, left = {}, F(1)

    def fill(start, struck, chance):
        free = [each for each in range(protocol.size + protocol.most) if each not in struck]
        orders = list(itertools.permutations(free, protocol.chosen - len(start)))
        for order in orders:
            report = code([*start, *order])
            found[report] = found.get(report, 0) + chance / len(orders)

    for step, place in enumerate(places):
        heads = protocol.chances()[protocol.most - step - 1]
        fill([place], places[: step + 1], left * heads)
        left *= 1 - heads
    fill([], places, left)
    return found


def whole_law(protocol, own):
    """Independent bits."""
    found = {}
    for report in range(1 << protocol.size):
        chances = [protocol.own if each in own else protocol.other for each in range(protocol.size)]
        parts = [c if report >> each & 1 else 1 - c for each, c in enumerate(chances)]
        found[report] = math.prod(parts, start=F(1))
    return found


LAWS = (
    [(protocol, padded_law) for protocol in PADDED]
    + [(protocol, selected_law) for protocol in SELECTED]
    + [(protocol, whole_law) for protocol in WHOLE]
)


@pytest.mark.parametrize(("protocol", "law"), LAWS, ids=lambda it: getattr(it, "__name__", str(it)))
def test_the_exact_matrix(protocol, law):
    laws = {own: law(protocol, own) for own in sets_of(protocol)}
    check_matrix(protocol, laws, lambda report, answer: bool(report >> answer & 1))


@pytest.mark.parametrize("protocol", SELECTED, ids=str)
def test_the_phones_steps_draw_by_weight(protocol):
    for own in sets_of(protocol):
        assert phone_law(protocol, own) == selected_law(protocol, own)


@pytest.mark.parametrize(("protocol", "law"), LAWS, ids=lambda it: getattr(it, "__name__", str(it)))
def test_reports_follow_the_matrix(protocol, law):
    """False alarm 1e-9 in all; power: chances of reports off by 7% of themselves."""
    every = sets_of(protocol)
    for own in every:
        held = np.zeros((40_000, protocol.size), dtype=bool)
        held[:, sorted(own)] = True
        reports = protocol.randomise(held)
        assert protocol.valid(reports).all()
        column = next(iter(reports.values()))
        codes = 1 << column if column.ndim == 1 else codes_of(column, protocol.message_bits)
        check_draws(codes, law(protocol, own), tests=len(every))


def test_parameters_build_them_again():
    for protocol in (*SELECTED, *WHOLE):
        assert rebuilt(protocol) == protocol
    kinds = {kind.name: kind for kind in (KaryResponse, UnaryEncoding, SubsetSelection)}
    for protocol in PADDED:
        said = protocol.parameters()
        inner = {
            name.removeprefix("inner_"): F(value) if isinstance(value, str) else value
            for name, value in said.items()
            if name.startswith("inner_")
        }
        again = SeveralAnswers(size=said["size"], most=said["most"], inner=kinds[said["inner"]](**inner))
        assert again == protocol and again.fields == protocol.inner.fields


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 5, 20])
@pytest.mark.parametrize(("size", "most"), [(1, 1), (4, 4), (9, 2), (40, 25)])
def test_epsilon_is_never_more_than_promised(epsilon, size, most):
    for protocol in (
        SetSelection.from_epsilon(epsilon, size=size, most=most),
        UnarySets.from_epsilon(epsilon, size=size, most=most, symmetric=True),
        SeveralAnswers.from_epsilon(epsilon, size=size, most=most, inner=UnaryEncoding.from_epsilon),
    ):
        assert epsilon - 1e-9 <= protocol.epsilon <= epsilon
    optimised = UnarySets.from_epsilon(epsilon, size=size, most=most, symmetric=False)
    assert optimised.epsilon <= epsilon and (2 * most > size or optimised.epsilon >= epsilon - 1e-9)
    # Dummies are distinct: k-ary response to one of several says less than its own epsilon.
    response = SeveralAnswers.from_epsilon(epsilon, size=size, most=most, inner=KaryResponse.from_epsilon)
    assert math.exp(response.epsilon) == pytest.approx((math.exp(epsilon) + most - 1) / most, rel=1e-8)


@pytest.mark.parametrize(
    "protocol",
    [
        SeveralAnswers.from_epsilon(3, size=6, most=3),
        SeveralAnswers.from_epsilon(3, size=6, most=3, inner=UnaryEncoding.from_epsilon),
        SeveralAnswers.from_epsilon(3, size=6, most=3, inner=KaryResponse.from_epsilon),
        SetSelection.from_epsilon(1, size=6, most=3),
        SetSelection(size=40, most=3, odds=F(3), chosen=9),
        UnarySets.from_epsilon(3, size=6, most=3),
    ],
    ids=lambda protocol: f"{protocol.name}-{protocol.size}",
)
def test_estimates_and_limits_of_whole_surveys(protocol):
    """False alarm 1e-9; power: see check_surveys."""
    lists = [[0], [0, 1], [], [2, 0, 1], [5, 4, 0]] * 40
    shares = [F(sum(answer in each for each in lists), len(lists)) for answer in range(protocol.size)]
    held = np.array([[answer in each for answer in range(protocol.size)] for each in lists])
    check_surveys(protocol, lambda times: np.tile(held, (times, 1)), shares)


@pytest.mark.parametrize("holders", [0, 1, 9, 30, 60])
def test_limits_cover_exactly(holders):
    """Exact: the chance summed over every number of supports."""
    for protocol in (
        SeveralAnswers.from_epsilon(4, size=61, most=3),
        SetSelection.from_epsilon(2, size=61, most=3),
        UnarySets.from_epsilon(4, size=61, most=3),
    ):
        assert exact_coverage(protocol, 60, 0.95, holders) >= 0.95


def test_who_holds_more_is_heard_about_a_part():
    """False alarm 1e-9: with s answers, `most` of which count, each is reported most / s as often.

    Power: supports off by 5% of themselves.
    """
    n = 100_000
    for protocol in (
        SeveralAnswers(size=5, most=2, inner=KaryResponse(size=7, odds=F(6))),
        SetSelection(size=5, most=2, odds=F(6), chosen=2),
        UnarySets(size=5, most=2, own=F(3, 4), other=F(1, 4)),
    ):
        supports = protocol.supports(protocol.collect(protocol.randomise([[0, 1, 2, 3]] * n)))
        held = (protocol.p + protocol.q) / 2  # two of four
        for answer, chance in enumerate([held, held, held, held, protocol.q]):
            two = np.zeros(n, dtype=np.int64)
            two[: supports[answer]] = 1
            check_draws(two, {1: chance, 0: 1 - chance}, tests=15)


def test_variances_compared():
    """Figures of the docstrings: what grows as `most` and what as its square."""
    for most in (2, 5, 20):
        share = F(most, 1000)
        selected = SetSelection.from_epsilon(1, size=1000, most=most).variance(share, 1)
        sampled = SeveralAnswers.from_epsilon(1, size=1000, most=most).variance(share, 1)
        whole = UnarySets.from_epsilon(1, size=1000, most=most).variance(share, 1)
        assert selected < 4.5 * most < most**2 * 3.6 < sampled < whole < 4.1 * most**2
    one, subset = (
        SetSelection(size=9, most=1, odds=F(3), chosen=4),
        SubsetSelection(size=10, odds=F(3), chosen=4),
    )
    assert (one.p, one.q) == (subset.p, subset.q)
    # One place, drawn by weight, is k-ary response to a random own place, at the odds that this allows.
    narrow = SetSelection(size=9, most=3, odds=F(3), chosen=1)
    response = SeveralAnswers(size=9, most=3, inner=KaryResponse(size=12, odds=1 + 3 * (F(3) - 1)))
    assert (narrow.p, narrow.q, narrow.max_ratio) == (response.p, response.q, response.max_ratio)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 3, 8])
@pytest.mark.parametrize(("size", "most"), [(1, 1), (2, 1), (6, 6), (30, 1), (60, 2), (60, 7), (200, 3)])
def test_the_number_chosen_is_the_best(epsilon, size, most):
    best = SetSelection.from_epsilon(epsilon, size=size, most=most)
    share = F(most, size)
    every = [
        SetSelection(size=size, most=most, odds=best.odds, chosen=w).variance(share, 1)
        for w in range(1, (size + 1) // 2 + 1)
    ]
    assert best.variance(share, 1) <= min(every) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 8])
@pytest.mark.parametrize(("size", "most"), [(1, 1), (3, 3), (10, 2), (10, 10), (200, 5)])
def test_the_best_is_best(epsilon, size, most):
    share = F(most, size)
    best = best_for_several(epsilon, size=size, most=most)
    assert best.size == size and best.epsilon <= epsilon
    for other in (
        SetSelection.from_epsilon(epsilon, size=size, most=most),
        UnarySets.from_epsilon(epsilon, size=size, most=most, symmetric=True),
        UnarySets.from_epsilon(epsilon, size=size, most=most, symmetric=False),
        SeveralAnswers.from_epsilon(epsilon, size=size, most=most),
        SeveralAnswers.from_epsilon(epsilon, size=size, most=most, inner=UnaryEncoding.from_epsilon),
        SeveralAnswers.from_epsilon(epsilon, size=size, most=most, inner=KaryResponse.from_epsilon),
    ):
        assert best.variance(share, 1) <= other.variance(share, 1)


@pytest.mark.parametrize("kind", [SetSelection, UnarySets, SeveralAnswers])
def test_the_smallest_the_largest_and_garbage(kind):
    protocol = kind.from_epsilon(1, size=1_000_000, most=3)
    one = protocol.randomise([[0, 999_999]])
    assert protocol.valid(one).all() and one["bits"].shape == (1, protocol.octets("bits"))
    assert protocol.supports(protocol.collect(one)).shape == (1_000_000,)
    small = kind.from_epsilon(1, size=50, most=3)
    nothing = small.randomise([])
    assert small.valid(nothing).shape == (0,) and not small.collect(nothing).any()
    whole = small.randomise([[1, 2], [], [3, 4, 5, 6, 7]] * 100)
    assert small.valid(whole).all() and len(small.valid(whole)) == 300
    parts = sum(small.collect({"bits": whole["bits"][start : start + 70]}) for start in range(0, 300, 70))
    assert (parts == small.collect(whole)).all()
    bad = whole["bits"][:3].copy()
    bad[0], bad[1, -1] = 255, bad[1, -1] | 1
    assert small.valid({"bits": bad}).tolist() == [False, False, True]
    assert not small.valid({"bits": bad[:, 1:]}).any() and not small.valid({"bits": bad[0]}).any()


def test_senseless_parameters_are_refused():
    for kind in (SetSelection, UnarySets, SeveralAnswers):
        for size, most in [(3, 4), (3, 0), (0, 1), (3, 1.5), (3, True), (None, 1)]:
            with pytest.raises(InvalidArgument):
                kind.from_epsilon(1, size=size, most=most)
        for epsilon in (0, -1, math.nan, 21, 1e-12, "1", None):
            with pytest.raises(InvalidArgument):
                kind.from_epsilon(epsilon, size=4, most=2)
        with pytest.raises(InvalidArgument, match="from 0 to 3") as caught:
            kind.from_epsilon(1, size=4, most=2).randomise([[0], [4]])
        assert caught.value.place == "answers"
    with pytest.raises(InvalidArgument, match="dummies"):
        SeveralAnswers(size=4, most=2, inner=KaryResponse(size=4, odds=F(3)))
    for odds, chosen in [(F(1), 1), (F(3), 0), (F(3), 3)]:
        with pytest.raises(InvalidArgument):
            SetSelection(size=4, most=2, odds=odds, chosen=chosen)
    for own, other in [(F(1, 2), F(1, 2)), (1, F(1, 2)), (F(1, 2), 0)]:
        with pytest.raises(InvalidArgument):
            UnarySets(size=3, most=2, own=own, other=other)
