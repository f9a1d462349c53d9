"""Planning: nothing here is a guarantee, but a poor plan would cost time and tightness."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.events import (
    Approximate,
    FinitePair,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
)
from sfumato.core.events.base import Direction, Event
from sfumato.core.loss_sketch import LossSketch, WindowPlan, tilt_at_delta, tilt_at_epsilon

REMOVE, ADD = Direction.REMOVE, Direction.ADD
COIN = RandomizedResponse(truth=Fraction(3, 4), choices=2)
SAMPLED = PoissonSubsampled(event=Gaussian(sigma=1), rate=Fraction(1, 100))


@pytest.mark.parametrize("theta", [-3.0, 0.0, 2.0, 20.0])
def test_moments_of_a_gaussian(theta: float) -> None:
    cumulant, mean, variance = LossSketch.of(Gaussian(sigma=4), REMOVE).moments(theta)
    assert cumulant == pytest.approx((theta + theta**2) / 32, rel=1e-3, abs=1e-6)
    assert mean == pytest.approx(1 / 32 + theta / 16, rel=1e-3)
    assert variance == pytest.approx(1 / 16, rel=1e-3)


def test_atoms_are_found_where_they_are() -> None:
    outline = LossSketch.of(COIN, REMOVE)
    held = np.isfinite(outline.log_masses)
    assert outline.losses[held] == pytest.approx([-math.log(3), math.log(3)])
    assert np.exp(outline.log_masses[held]) == pytest.approx([0.25, 0.75])


def test_small_and_large_losses_are_both_resolved() -> None:
    """Losses of 1e-6 beside one of 10: the variance is right although both share one outline."""
    tiny, rare = Fraction(1, 10**6), Fraction(1, 10**14)
    event = FinitePair(
        with_person=(rare, Fraction(1, 2) + tiny, Fraction(1, 2) - tiny - rare),
        without=(rare / 22026, Fraction(1, 2) - tiny, Fraction(1, 2) + tiny - rare / 22026),
    )
    variance = LossSketch.of(event, REMOVE).moments(0.0)[2]
    assert variance == pytest.approx(float(16 * tiny**2), rel=0.3)


@pytest.mark.parametrize(
    "event", [Gaussian(sigma=4), Laplace(scale=2), COIN, SAMPLED], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("direction", [REMOVE, ADD])
def test_knots_cover_the_support(event: Event, direction: Direction) -> None:
    outline = LossSketch.of(event, direction)
    plan = WindowPlan.around([(outline, 50)], 1.0, 1e-4)
    knots = plan.knots(outline, 50)
    assert np.all(np.diff(knots) > 0)
    above = event.tails(knots * plan.step, direction)[0]
    assert above[0] > 1 - 1e-13 or event.tails(np.array([(knots[0] - 1) * plan.step]), direction)[0][0] == 1
    assert above[-1] <= 1e-40
    assert len(knots) < 2**18


def test_knots_are_dense_only_where_the_mass_is() -> None:
    outline = LossSketch.of(SAMPLED, REMOVE)
    plan = WindowPlan.around([(outline, 10_000)], 3.0, 1e-5)
    knots = plan.knots(outline, 10_000)
    assert len(knots) < 0.1 * (knots[-1] - knots[0])
    middle = np.abs(knots * plan.step) < 0.01
    assert np.all(np.diff(knots)[middle[:-1]] == 1)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_tilt_at_epsilon_minimises_the_bound(epsilon: float) -> None:
    parts = [(LossSketch.of(Gaussian(sigma=4), REMOVE), 10)]

    def bound(theta: float) -> float:
        cumulant = 10 * parts[0][0].moments(theta)[0]
        return cumulant - theta * epsilon + theta * math.log(theta) - (1 + theta) * math.log1p(theta)

    theta = tilt_at_epsilon(parts, epsilon)
    assert bound(theta) <= bound(0.9 * theta)
    assert bound(theta) <= bound(1.1 * theta)


@pytest.mark.parametrize("delta", [0.5, 1e-6, 1e-30])
def test_the_two_tilts_agree(delta: float) -> None:
    parts = [(LossSketch.of(Laplace(scale=4), REMOVE), 200)]
    theta = tilt_at_delta(parts, delta)
    epsilon = 200 * parts[0][0].moments(theta)[1] + math.log(theta / (1 + theta))
    assert tilt_at_epsilon(parts, epsilon) == pytest.approx(theta, rel=0.02)


def test_a_bounded_loss_still_has_a_tilt_at_any_delta() -> None:
    """Below the mass of the largest loss the bound falls like 1/theta."""
    parts = [(LossSketch.of(COIN, REMOVE), 2)]
    assert tilt_at_delta(parts, 1e-9) == pytest.approx(0.75**2 / 1e-9, rel=0.02)


def test_heavy_atoms_sit_on_the_grid() -> None:
    for event in (COIN, Laplace(scale=7)):
        outline = LossSketch.of(event, REMOVE)
        places = event.support(REMOVE)[1] / WindowPlan.around([(outline, 100)], 1.0, 1e-4).step
        assert 0 <= places - round(places) + 1e-6 < 1e-4


class TestReaching:
    def test_follows_a_gaussian_beyond_its_support(self) -> None:
        event = Gaussian(sigma=1)
        outline = LossSketch.reaching(event, REMOVE, 20.0)
        assert outline is not None
        assert outline.edges[-1] > event.support(REMOVE)[1] + 5
        assert outline.moments(20.0)[0] == pytest.approx(210.0, rel=1e-3)

    def test_bounded_losses_need_no_more(self) -> None:
        outline = LossSketch.reaching(COIN, REMOVE, 500.0)
        assert outline is not None
        assert outline.edges[-1] == pytest.approx(math.log(3))

    def test_knows_when_there_is_no_bound(self) -> None:
        assert LossSketch.reaching(Approximate(loss=1, failure=Fraction(1, 10**60)), REMOVE, 2.0) is None
        assert LossSketch.reaching(Gaussian(sigma=1), REMOVE, 300.0) is None
