"""Guarantees: what each implies, composes to, and promises to a group."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sfumato.core.events import Gaussian, Laplace
from sfumato.core.measures import (
    ApproximateDP,
    GaussianDP,
    PureDP,
    RenyiCurve,
    RenyiDP,
    ZeroConcentratedDP,
)
from sfumato.errors import InvalidArgument, Unsupported

from .senseless import NOT_DELTAS, NOT_POSITIVE, name

F = Fraction


def test_series_adds():
    ten = PureDP(epsilon=0.1)
    for _ in range(9):
        ten = ten.compose(PureDP(epsilon=0.1))
    assert ten.epsilon == 1
    both = ApproximateDP(epsilon=0.1, delta=1e-6).compose(ApproximateDP(epsilon=0.2, delta=2e-6))
    assert (both.epsilon, both.delta) == (F(3, 10), F(3, 10**6))
    assert ZeroConcentratedDP(rho=0.1).compose(ZeroConcentratedDP(rho=0.2)).rho == F(3, 10)
    assert GaussianDP(mu=3).compose(GaussianDP(mu=4)).mu == pytest.approx(5, rel=1e-10)
    assert GaussianDP(mu=3).compose(GaussianDP(mu=4)).mu >= 5
    assert RenyiDP(order=2, epsilon=0.1).compose(RenyiDP(order=2, epsilon=0.2)).epsilon == F(3, 10)


def test_k_people_cost_k_epsilon():
    assert PureDP(epsilon=0.1).group(7).epsilon == F(7, 10)
    assert GaussianDP(mu=0.1).group(7).mu == F(7, 10)
    assert ZeroConcentratedDP(rho=0.1).group(7).rho == F(49, 10)


def test_group_of_an_approximate_guarantee_is_the_geometric_sum():
    group = ApproximateDP(epsilon=0.5, delta=1e-6).group(3)
    truth = 1e-6 * (1 + math.exp(0.5) + math.exp(1))
    assert group.epsilon == F(3, 2)
    assert truth <= group.delta <= truth * (1 + 1e-9)
    assert ApproximateDP(epsilon=0, delta=F(1, 100)).group(3).delta == F(3, 100)
    assert ApproximateDP(epsilon=500).group(10**6).delta == 0
    with pytest.raises(Unsupported):
        ApproximateDP(epsilon=1, delta=F(1, 10**400)).group(10**4)


def test_group_at_one_order_needs_a_high_order():
    assert RenyiDP(order=16, epsilon=1).group(3) == RenyiDP(order=4, epsilon=9)
    assert RenyiDP(order=1.5, epsilon=1).group(1) == RenyiDP(order=1.5, epsilon=1)
    with pytest.raises(Unsupported):
        RenyiDP(order=3, epsilon=1).group(2)


def test_the_chain_of_implications():
    pure = PureDP(epsilon=1)
    chain = [pure, pure.to_gaussian(), pure.to_zero_concentrated(), pure.to_renyi(5)]
    for guarantee in chain:
        assert pure.implies(guarantee)
        follows = guarantee.to_approximate(1e-6)
        assert follows.delta == F(1, 10**6)
        assert guarantee.implies(ApproximateDP(epsilon=follows.epsilon * F(1000001, 1000000), delta=1e-6))
        assert not guarantee.implies(ApproximateDP(epsilon=follows.epsilon * F(99, 100), delta=1e-6))
    assert not GaussianDP(mu=0.001).implies(pure)
    assert not ApproximateDP(epsilon=0.1, delta=1e-9).implies(ZeroConcentratedDP(rho=100))
    assert GaussianDP(mu=1).implies(ZeroConcentratedDP(rho=0.5))
    assert not ZeroConcentratedDP(rho=0.5).implies(GaussianDP(mu=100))


def test_a_known_delta_is_not_improved_by_nothing():
    known = ApproximateDP(epsilon=1, delta=1e-6)
    assert known.to_approximate(1e-6) == known
    assert known.to_approximate(1e-3).epsilon < 1
    assert known.delta_at(0.5) > 1e-6
    with pytest.raises(Unsupported):
        known.to_approximate(1e-7)


def test_a_renyi_order_says_nothing_of_higher_ones():
    assert RenyiDP(order=8, epsilon=1).to_renyi(2) == RenyiDP(order=2, epsilon=1)
    with pytest.raises(Unsupported):
        RenyiDP(order=2, epsilon=1).to_renyi(8)


def test_a_renyi_curve_is_the_sum_of_its_sources():
    curve = RenyiCurve(sources=(Gaussian(sigma=10),)).compose(RenyiCurve(sources=(Laplace(scale=5),)))
    assert curve.renyi(3) == pytest.approx(Gaussian(sigma=10).renyi(3) + Laplace(scale=5).renyi(3))
    together = curve.to_approximate(1e-6).epsilon
    assert together <= curve.to_renyi(20).to_approximate(1e-6).epsilon
    assert curve.delta_at(together * F(1001, 1000)) <= 1e-6


def test_kinds_do_not_mix():
    with pytest.raises(Unsupported):
        PureDP(epsilon=1).compose(ZeroConcentratedDP(rho=1))  # type: ignore[arg-type]
    with pytest.raises(Unsupported):
        RenyiDP(order=2, epsilon=1).compose(RenyiDP(order=3, epsilon=1))
    with pytest.raises(InvalidArgument):
        PureDP(epsilon=1).implies(1)  # type: ignore[arg-type]
    for refused in ("to_pure", "to_gaussian", "to_zero_concentrated"):
        with pytest.raises(Unsupported):
            getattr(RenyiDP(order=2, epsilon=1), refused)()
    with pytest.raises(Unsupported):
        ApproximateDP(epsilon=1, delta=F(1, 2)).compose(ApproximateDP(epsilon=1, delta=F(1, 2)))


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=name)
@pytest.mark.parametrize(
    "build",
    [
        lambda v: PureDP(epsilon=v),
        lambda v: ZeroConcentratedDP(rho=v),
        lambda v: GaussianDP(mu=v),
        lambda v: RenyiDP(order=2, epsilon=v),
        lambda v: RenyiDP(order=v, epsilon=1),
        lambda v: RenyiCurve(sources=v),
        lambda v: PureDP(epsilon=1).group(v),
        lambda v: ApproximateDP(epsilon=1, delta=1e-6).group(v),
    ],
)
def test_senseless_guarantees_are_refused(build, value):
    with pytest.raises(InvalidArgument):
        build(value)


@pytest.mark.parametrize("value", NOT_DELTAS, ids=name)
def test_senseless_deltas_are_refused(value):
    with pytest.raises(InvalidArgument):
        ApproximateDP(epsilon=1, delta=value)
    for guarantee in (
        PureDP(epsilon=1),
        GaussianDP(mu=1),
        ZeroConcentratedDP(rho=1),
        RenyiDP(order=2, epsilon=1),
    ):
        with pytest.raises(InvalidArgument):
            guarantee.to_approximate(value)


def test_a_delta_of_one_over_n_is_refused_where_n_is_public():
    with pytest.raises(InvalidArgument, match="1/n"):
        ApproximateDP(epsilon=1, delta=1e-3, people=1000)
    assert ApproximateDP(epsilon=1, delta=1e-6, people=1000) == ApproximateDP(epsilon=1, delta=1e-6)
