"""Randomized response, finite pairs, and mechanisms known only by a guarantee."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.events import (
    Approximate,
    Direction,
    Event,
    FinitePair,
    Gaussian,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
)
from sfumato.errors import Unsupported

F = Fraction
REMOVE, ADD = Direction.REMOVE, Direction.ADD
mp.mp.dps = 40


def exact(value: Fraction | float) -> mp.mpf:
    rational = F(value)
    return mp.mpf(rational.numerator) / rational.denominator


def mp_log(ratio: Fraction) -> mp.mpf:
    return mp.log(mp.mpf(ratio.numerator)) - mp.log(mp.mpf(ratio.denominator))


# -- randomized response ------------------------------------------------------------------


def test_known_truths_of_the_coin_toss() -> None:
    coin_toss = RandomizedResponse(truth=F(3, 4), choices=2)
    assert coin_toss.epsilon() == math.log(3)
    two_thirds = RandomizedResponse(truth=F(2, 3), choices=2)
    assert exact(two_thirds.epsilon()) >= mp.log(2)
    assert two_thirds.epsilon() <= math.nextafter(math.log(2), 1)
    assert RandomizedResponse(truth=F(1, 2), choices=2).epsilon() == 0
    assert RandomizedResponse(truth=F(1, 5), choices=5).epsilon() == 0
    for truth, choices in ((1, 2), (0, 2), (1, 7), (0, 7)):
        event = RandomizedResponse(truth=truth, choices=choices)
        assert event.epsilon() == event.mu() == event.rho() == event.renyi(2.0) == math.inf


@given(st.fractions(min_value=0, max_value=1, max_denominator=10**9), st.integers(2, 1000))
def test_epsilon_is_the_next_float_above_the_logarithm(truth: Fraction, choices: int) -> None:
    lie = (1 - truth) / (choices - 1)
    if truth == 0 or lie == 0:
        return
    loss = abs(mp_log(truth / lie))
    epsilon = RandomizedResponse(truth=truth, choices=choices).epsilon()
    assert loss <= exact(epsilon)
    assert epsilon == 0 or exact(math.nextafter(epsilon, 0)) < loss


@pytest.mark.parametrize(
    ("truth", "choices"),
    [(F(3, 4), 2), (F(1, 3), 2), (F(1, 2), 3), (F(2, 5), 10), (F(1, 50), 5), (F(1, 2), 2000), (F(1), 3)],
)
def test_tails_by_hand(truth: Fraction, choices: int) -> None:
    event = RandomizedResponse(truth=truth, choices=choices)
    lie = (1 - truth) / (choices - 1)
    high, low = max(truth, lie), min(truth, lie)
    top = event.epsilon()
    levels = np.array([-top - 0.5, -top, -top / 2, 0.0, top / 2, top, math.inf])
    if math.isinf(top):
        levels = np.array([-math.inf, -math.inf, -1.0, 0.0, 1.0, math.inf, math.inf])
    p, q = event.tails(levels, REMOVE)
    certain = float(high) if low == 0 else 0.0
    # -top is a float just below the loss itself, except where it is exact: all or all but the lowest.
    assert p[0] == 1
    assert p[2:].tolist() == [float(1 - low), float(high), float(high), certain, certain]
    assert q[2:].tolist() == [float(1 - high), float(low), float(low), 0.0, 0.0]


@pytest.mark.parametrize("choices", range(2, 7))
@pytest.mark.parametrize("truth", [F(9, 10), F(99, 100), F(3, 5)])
def test_rho_up_to_six_choices_is_the_divergence_of_order_one(truth: Fraction, choices: int) -> None:
    lie = (1 - truth) / (choices - 1)
    divergence = (exact(truth) - exact(lie)) * mp_log(truth / lie)
    rho = exact(RandomizedResponse(truth=truth, choices=choices).rho())
    assert divergence <= rho <= divergence * (1 + mp.mpf("1e-8"))


def divergence(p: list[mp.mpf], q: list[mp.mpf], order: mp.mpf) -> mp.mpf:
    moment = mp.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True) if a > 0)
    return mp.log(moment) / (order - 1)


@pytest.mark.parametrize(("truth", "choices"), [(F(1, 20), 4), (F(1, 10), 1000), (F(1, 3), 10**6)])
def test_rho_of_many_choices_is_the_largest_over_orders(truth: Fraction, choices: int) -> None:
    """With many choices, or a rare truth, a higher order asks for more than order 1 does."""
    event = RandomizedResponse(truth=truth, choices=choices)
    t, lie = exact(truth), exact((1 - truth) / (choices - 1))
    p, q = [t, lie, 1 - t - lie], [lie, t, 1 - t - lie]
    orders = [1 + mp.mpf(2) ** (mp.mpf(k) / 8) for k in range(-80, 80)]
    worst = max(divergence(p, q, order) / order for order in orders)
    assert worst > 1.005 * (t - lie) * mp.log(t / lie)
    assert worst <= exact(event.rho()) <= worst * mp.mpf("1.01")  # the grid of orders is coarse
    for order in (1.001, 1.7, 3.0, 40.0, 1e5):
        truth_ = divergence(p, q, mp.mpf(order))
        assert truth_ <= exact(event.renyi(order)) <= truth_ * (1 + mp.mpf("1e-9"))


# -- finite pairs -------------------------------------------------------------------------


@st.composite
def pairs(draw: st.DrawFn) -> FinitePair:
    size = draw(st.integers(1, 6))
    weights = st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any)
    laws = [draw(weights) for _ in range(2)]
    return FinitePair(
        with_person=tuple(F(weight, sum(laws[0])) for weight in laws[0]),
        without=tuple(F(weight, sum(laws[1])) for weight in laws[1]),
    )


@given(pairs(), st.floats(-4, 4))
def test_a_pair_is_what_its_outcomes_say(pair: FinitePair, level: float) -> None:
    bound = exact(math.exp(level))
    for direction, (left, right) in {
        REMOVE: (pair.with_person, pair.without),
        ADD: (pair.without, pair.with_person),
    }.items():
        above = [(p, q) for p, q in zip(left, right, strict=True) if p > 0 and exact(p) > bound * exact(q)]
        p_tail, q_tail = pair.tails(np.array([level]), direction)
        if not any(abs(exact(p) - bound * exact(q)) < 1e-12 for p, q in zip(left, right, strict=True)):
            assert p_tail[0] == pytest.approx(float(sum(p for p, _ in above)), abs=1e-15)
            assert q_tail[0] == pytest.approx(float(sum(q for _, q in above)), abs=1e-15)
        certain = sum((p for p, q in zip(left, right, strict=True) if q == 0), F(0))
        assert pair.tails(np.array([math.inf]), direction)[0][0] == float(certain)


@given(pairs(), st.fractions(0, 5, max_denominator=50))
def test_delta_of_a_pair_is_exact(pair: FinitePair, epsilon: Fraction) -> None:
    factor = mp.exp(exact(epsilon))
    truth = max(
        mp.fsum(max(mp.mpf(0), exact(p) - factor * exact(q)) for p, q in zip(left, right, strict=True))
        for left, right in ((pair.with_person, pair.without), (pair.without, pair.with_person))
    )
    delta = pair.delta(epsilon)  # type: ignore[arg-type]
    assert truth <= exact(delta) + mp.mpf("1e-38")
    assert exact(delta) <= truth * (1 + mp.mpf(2) ** -52) + mp.mpf("1e-27")


@settings(max_examples=40)
@given(pairs())
def test_costs_of_a_pair(pair: FinitePair) -> None:
    ratios = [
        (p / q if q else math.inf) if p else F(0)
        for p, q in zip(pair.with_person, pair.without, strict=True)
        if p or q
    ]
    epsilon, rho = pair.epsilon(), pair.rho()
    if 0 in ratios or math.inf in ratios:
        assert epsilon == rho == pair.mu() == pair.renyi(2.0) == math.inf
        return
    assert exact(epsilon) == pytest.approx(
        max(abs(mp_log(F(ratio))) for ratio in ratios), abs=1e-30, rel=3e-16
    )
    p, q = [exact(x) for x in pair.with_person], [exact(x) for x in pair.without]
    p, q = [a for a in p if a], [b for b in q if b]
    worst = mp.mpf(0)
    for order in (1.001, 1.1, 1.5, 2.0, 4.0, 30.0, 1000.0):
        truth = max(divergence(p, q, mp.mpf(order)), divergence(q, p, mp.mpf(order)))
        value = exact(pair.renyi(order))
        assert truth - mp.mpf("1e-25") <= value <= truth * (1 + mp.mpf("1e-9")) + mp.mpf("1e-25")
        worst = max(worst, truth / order)
    assert worst <= exact(rho) * (1 + mp.mpf("1e-12")) + mp.mpf("1e-25")
    assert rho <= Event.rho(pair) * (1 + 1e-9)


def test_mu_of_an_asymmetric_pair_is_the_worst_corner() -> None:
    pair = FinitePair(with_person=(F(1, 2), F(1, 3), F(1, 6)), without=(F(1, 10), F(3, 10), F(6, 10)))

    def quantile(x: Fraction) -> mp.mpf:
        return mp.sqrt(2) * mp.erfinv(2 * exact(x) - 1)

    corners = [(F(1, 10), F(1, 2)), (F(4, 10), F(1, 6))]  # false positive and false negative rates
    worst = max(quantile(1 - alpha) - quantile(beta) for alpha, beta in corners)
    assert worst <= exact(pair.mu()) <= worst * (1 + mp.mpf("1e-10"))
    swapped = FinitePair(with_person=pair.without, without=pair.with_person)
    assert swapped.mu() == pytest.approx(pair.mu(), rel=1e-10)


def test_symmetry_is_recognised_exactly() -> None:
    law = (F(1, 2), F(1, 3), F(1, 6))
    assert FinitePair(with_person=law, without=law[::-1]).symmetric
    assert FinitePair(with_person=law, without=law).symmetric
    assert not FinitePair(with_person=law, without=(F(1, 3), F(1, 3), F(1, 3))).symmetric
    split = FinitePair(
        with_person=(F(1, 4), F(1, 2), F(1, 8), F(1, 8)), without=(F(1, 12), F(1, 6), F(3, 8), F(3, 8))
    )
    assert split.symmetric  # two outcomes of ratio 3, two of ratio 1/3: the coin toss in disguise
    assert split.epsilon() == RandomizedResponse(truth=F(3, 4), choices=2).epsilon()
    assert split.directions == (REMOVE,)


def test_a_long_pair_is_as_good_as_a_short_one() -> None:
    """A geometric law cut into 5000 outcomes, as losses in floats and as tails in exact sums."""
    size = 5000
    weights = [10_000 - x for x in range(size)]
    pair = FinitePair(
        with_person=tuple(F(weight, sum(weights)) for weight in weights),
        without=tuple(F(weight, sum(weights)) for weight in reversed(weights)),
    )
    assert pair.symmetric
    assert pair.epsilon() == pytest.approx(math.log(10_000 / 5001), rel=1e-15)
    levels = np.linspace(-0.7, 0.7, 57)
    x = np.arange(size)
    p, q = np.array(weights) / sum(weights), np.array(weights[::-1]) / sum(weights)
    losses = np.log(p / q)
    for level, found_p, found_q in zip(levels, *pair.tails(levels, REMOVE), strict=True):
        assert found_p == pytest.approx(p[losses > level].sum(), rel=1e-12, abs=1e-15)
        assert found_q == pytest.approx(q[losses > level].sum(), rel=1e-12, abs=1e-15)
    assert x.sum() > 0
    assert pair.rho() >= float(p @ losses)
    assert pair.rho() == pytest.approx(float(p @ losses), rel=1e-3)
    assert pair.delta(0.1) == pytest.approx(float(np.maximum(0, p - math.exp(0.1) * q).sum()), rel=1e-12)


# -- claims -------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [F(101, 100), F(3), F(1000)])
def test_a_pure_claim_costs_what_randomized_response_costs(ratio: Fraction) -> None:
    response = RandomizedResponse(truth=ratio / (1 + ratio), choices=2)
    claim = Pure(loss=F(response.epsilon()))
    levels = np.linspace(-1.5, 1.5, 61) * response.epsilon()
    for mine, theirs in zip(claim.tails(levels, REMOVE), response.tails(levels, REMOVE), strict=True):
        inner = np.abs(np.abs(levels) - response.epsilon()) > 1e-9
        assert mine[inner] == pytest.approx(theirs[inner], rel=1e-14)
    assert claim.rho() == pytest.approx(float(response.rho()), rel=1e-9)
    assert claim.mu() == pytest.approx(float(response.mu()), rel=1e-9)
    for order in (1.01, 2.0, 50.0):
        assert claim.renyi(order) == pytest.approx(response.renyi(order), rel=1e-9)
    for epsilon in (0.0, 0.005, 1.0):
        assert claim.delta(epsilon) == pytest.approx(response.delta(epsilon), rel=1e-9)


def test_an_approximate_claim_fails_as_often_as_it_says() -> None:
    claim = Approximate(loss=F(1, 2), failure=F(1, 1000))
    p, q = claim.tails(np.array([-math.inf, -1.0, 0.0, 0.5, 3.0, math.inf]), REMOVE)
    truth = math.exp(0.5) / (1 + math.exp(0.5))
    assert p == pytest.approx([1, 1, 0.001 + 0.999 * truth, 0.001, 0.001, 0.001], rel=1e-14)
    assert q == pytest.approx([0.999, 0.999, 0.999 * (1 - truth), 0, 0, 0], rel=1e-14)
    assert claim.delta(0.5) == pytest.approx(0.001, rel=1e-15)
    assert F(claim.delta(0.5)) >= F(1, 1000)
    assert claim.epsilon() == claim.rho() == claim.mu() == claim.renyi(3.0) == math.inf
    harmless = Approximate(loss=F(1, 2), failure=0)
    assert harmless.epsilon() == F(1, 2)
    assert harmless.rho() == Pure(loss=F(1, 2)).rho()
    only_failure = Approximate(loss=0, failure=F(1, 1000))
    assert only_failure.delta(0.0) == pytest.approx(0.001, rel=1e-15)


def test_a_zcdp_claim_has_no_loss_distribution() -> None:
    claim = ZeroConcentrated(charge=0.125)
    assert claim.rho() == F(1, 8)
    assert claim.epsilon() == claim.mu() == math.inf
    assert claim.renyi(4.0) == 0.5
    for refuse in (lambda: claim.tails(np.zeros(1), REMOVE), lambda: claim.support(REMOVE)):
        with pytest.raises(Unsupported, match="hint"):
            refuse()
    gaussian = Gaussian(sigma=2)  # satisfies the claim, so cannot cost more than it
    assert gaussian.rho() == claim.rho()
    assert gaussian.delta(1.0) < claim.delta(1.0) < 10 * gaussian.delta(1.0)


# -- groups -------------------------------------------------------------------------------


def test_groups_of_people() -> None:
    assert Pure(loss=0.1).group(10) == Pure(loss=1)
    assert ZeroConcentrated(charge=0.1).group(3) == ZeroConcentrated(charge=0.9)
    response = RandomizedResponse(truth=F(3, 4), choices=2)
    assert response.group(2) == Pure(loss=2 * F(response.epsilon()))
    assert response.group(1) == response
    harmless = RandomizedResponse(truth=F(1, 2), choices=2)
    assert harmless.group(9) == harmless
    pair = FinitePair(with_person=(F(1, 2), F(1, 2)), without=(F(1, 4), F(3, 4)))
    assert pair.group(3).epsilon() == 3 * F(pair.epsilon())


@pytest.mark.parametrize("size", [1, 2, 5])
def test_groups_of_an_approximate_claim_add_a_geometric_series(size: int) -> None:
    claim = Approximate(loss=F(1, 2), failure=F(1, 10**6))
    grown = claim.group(size)
    assert grown.loss == F(size, 2)
    series = mp.fsum(mp.exp(mp.mpf(k) / 2) for k in range(size)) / 10**6
    assert series <= exact(grown.failure) <= series * (1 + mp.mpf("1e-10"))
    assert Approximate(loss=0, failure=F(1, 10**6)).group(size).failure == pytest.approx(size / 10**6)


@pytest.mark.parametrize(
    "event",
    [
        Approximate(loss=1, failure=F(1, 10)),
        Approximate(loss=1000, failure=F(1, 10**9)),
        FinitePair(with_person=(F(1), F(0)), without=(F(1, 2), F(1, 2))),
        RandomizedResponse(truth=1, choices=2),
    ],
)
def test_groups_that_nothing_can_be_said_about_are_refused(event: Any) -> None:
    with pytest.raises(Unsupported, match="hint"):
        event.group(100)


@pytest.mark.parametrize("digits", [7, 11, 15, 30])
def test_nearly_equal_laws_keep_a_mu(digits: int) -> None:
    """The difference of two quantiles loses its digits; the bound may not fall below (p - q) / phi(z)."""
    step = Fraction(1, 10**digits)
    event = FinitePair(
        with_person=(Fraction(1, 4) + step, Fraction(3, 4) - step), without=(Fraction(1, 4), Fraction(3, 4))
    )
    assert event.mu() >= float(step) / 0.31777657 * (1 - 1e-6)  # the normal density at its lower quartile
    many = RandomizedResponse(truth=Fraction(1, 3) + step, choices=3)
    assert many.mu() >= float(step) * 1.5 / 0.36360 * (1 - 1e-3)


def test_divergences_of_rare_outputs_are_not_lost() -> None:
    rare = FinitePair(
        with_person=(Fraction(1, 10**25), 1 - Fraction(1, 10**25)),
        without=(Fraction(1, 10**40), 1 - Fraction(1, 10**40)),
    )
    assert rare.renyi(1.5) == pytest.approx(6.3245550e-18, rel=1e-6, abs=0)
    faint = FinitePair(
        with_person=(Fraction(1, 10**400), Fraction(1, 3), Fraction(2, 3) - Fraction(1, 10**400)),
        without=(Fraction(1, 10**1000), Fraction(1, 2), Fraction(1, 2) - Fraction(1, 10**1000)),
    )
    assert faint.rho() >= 268.6 and faint.renyi(2) >= 460.5 and faint.mu() >= 1
