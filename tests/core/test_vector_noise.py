"""Noise on a vector of which the norm is known: what it costs, and how much of it a budget allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import pytest

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.composition import Composition
from sfumato.core.events import DiscreteGaussian, Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise_allocation import least_noise
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.vector_noise import VectorNoise, event_of_vectors

BUDGET = PrivacyBudget(epsilon=3, delta=1e-6)
VECTORS = [VectorNoise(l2_squared=9, times=4), VectorNoise(l2_squared=1), VectorNoise(l2_squared=50, times=7)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesForgotten(VectorNoise):
    """A bug: several vectors cost what one does."""

    def event(self, law: NoiseLaw) -> Event:
        return law.joint_event(l1=self.l2_squared, l2_squared=self.l2_squared)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootForgotten(VectorNoise):
    """A bug: who gives the squared norm is taken to give the norm, which is squared again."""

    def event(self, law: NoiseLaw) -> Event:
        return VectorNoise(l2_squared=self.l2_squared**2, times=self.times).event(law)


@dataclass(frozen=True, slots=True, kw_only=True)
class NormOfOne(VectorNoise):
    """A bug in the calibration alone: the norm of one vector stands for that of all."""

    def norm_under(self, law: type[NoiseLaw]) -> int | Fraction:
        return law.norm(self.l2_squared, self.l2_squared)


def prices(kind: Callable[..., VectorNoise]) -> bool:
    """Say whether an event covers, and just covers, every sequence of moves that the record allows."""
    law, vectors = GaussianNoise(Fraction(40)), kind(l2_squared=3, times=2)
    event = vectors.event(law)
    moves = [one for one in product((-1, 0, 1), repeat=3) if sum(d * d for d in one) <= 3]
    rhos = [
        sum((law.event(abs(d)).rho() for d in (*first, *second) if d), Fraction(0))
        for first, second in product(moves, repeat=2)
    ]
    return event.rho() == max(rhos)


def test_it_costs_what_the_worst_moves_do() -> None:
    assert prices(VectorNoise)


@pytest.mark.parametrize("bug", [TimesForgotten, RootForgotten])
def test_a_planted_bug_is_caught(bug: type[VectorNoise]) -> None:
    assert not prices(bug)


def test_its_delta_covers_the_entries_of_all_vectors() -> None:
    law = GaussianNoise(Fraction(25))
    entries = [DiscreteGaussian(sigma_squared=law.parameter, sensitivity=d) for d in (1, 1, 2)] * 2
    event = VectorNoise(l2_squared=6, times=2).event(law)
    for epsilon in (0.0, 1.0, 3.0):
        low, _ = Composition(entries).delta_bounds(epsilon)
        assert low <= Composition(event.parts()).delta(epsilon) <= low * 1.35 + 1e-12


def test_laplace_noise_covers_every_whole_move_within_the_norm() -> None:
    """Absolute values of whole numbers sum to no more than their squares; of other numbers they may."""
    law = LaplaceNoise(Fraction(10))
    pure = VectorNoise(l2_squared=3, times=2).event(law).epsilon()
    moves = [one for one in product(range(-1, 2), repeat=3) if sum(d * d for d in one) <= 3]
    assert pure == pytest.approx(2 * max(sum(map(abs, one)) for one in moves) / 10)


@pytest.mark.parametrize("shares", [(1,), (Fraction(1, 20), Fraction(19, 20))])
def test_noise_uses_the_allowance_by_its_shares(shares: tuple[Fraction, ...]) -> None:
    allowance, rule = BUDGET.allowance(Fraction(1)), BUDGET.rule
    vectors = [one.with_share(Fraction(share)) for one, share in zip(VECTORS, shares, strict=False)]
    laws = least_noise(GaussianNoise, vectors, BUDGET, allowance)
    found = [Fraction(rule.price(vector.event(law))) for vector, law in zip(vectors, laws, strict=True)]
    assert 1 - 1e-5 < float(sum(found) / allowance) <= 1
    assert Fraction(rule.price(event_of_vectors(vectors, laws))) <= allowance
    for price, share in zip(found, shares, strict=True):
        assert float(price / allowance) == pytest.approx(
            float(share), rel=1e-2
        )  # integers cost a little more than reals


def test_a_calibration_that_forgets_times_misses_its_shares() -> None:
    plain, wrong = (
        [kind(l2_squared=9, times=40).with_share(Fraction(1, 2)), VECTORS[1].with_share(Fraction(1, 2))]
        for kind in (VectorNoise, NormOfOne)
    )
    for vectors, close in ((plain, True), (wrong, False)):
        allowance = BUDGET.allowance(Fraction(1))
        law = least_noise(GaussianNoise, vectors, BUDGET, allowance)[0]
        share = float(Fraction(BUDGET.rule.price(vectors[0].event(law))) / allowance)
        assert (abs(share - 0.5) < 1e-3) == close
        spent = sum(
            Fraction(BUDGET.rule.price(one.event(own)))
            for one, own in zip(vectors, least_noise(GaussianNoise, vectors, BUDGET, allowance), strict=True)
        )
        assert spent <= allowance, "whatever proportions are, the price of the noise itself was tested"


def test_equal_vectors_have_equal_noise() -> None:
    laws = least_noise(GaussianNoise, [VECTORS[0], VECTORS[1], VECTORS[0]], BUDGET, BUDGET.allowance(1))
    assert laws[0] == laws[2] != laws[1]
