"""Discretised losses: the pessimistic law's curve is never below the true one, the optimistic never above."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.core.events import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    FinitePair,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
)
from sfumato.core.events.base import Direction, Event
from sfumato.core.losses import GUARD, LossDistribution, delta_of_event, renyi_of_event
from sfumato.errors import InvalidArgument

REMOVE, ADD = Direction.REMOVE, Direction.ADD
COIN = RandomizedResponse(truth=Fraction(3, 4), choices=2)
EVENTS = [
    Laplace(scale=3),
    Gaussian(sigma=2),
    DiscreteLaplace(scale=5, sensitivity=3),
    DiscreteGaussian(sigma_squared=9, sensitivity=2),
    COIN,
    PoissonSubsampled(event=Gaussian(sigma=Fraction(11, 10)), rate=Fraction(1, 10)),
    PoissonSubsampled(event=COIN, rate=Fraction(1, 3)),
    FinitePair(
        with_person=(Fraction(1, 2), Fraction(1, 2), 0),
        without=(Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)),
    ),
    FinitePair(with_person=(Fraction(1, 9), Fraction(8, 9), 0), without=(0, Fraction(1, 2), Fraction(1, 2))),
    Approximate(loss=Fraction(1, 2), failure=Fraction(1, 10**5)),
]
PAIRS = [(event, direction) for event in EVENTS for direction in event.directions]


def true_curve(event: Event, direction: Direction, levels: np.ndarray) -> np.ndarray:
    above_p, above_q = event.tails(levels, direction)
    return above_p - np.exp(levels) * above_q


def curve(law: LossDistribution, levels: np.ndarray) -> np.ndarray:
    return np.array([law.delta(level) for level in levels])


def random_levels(event: Event, direction: Direction, number: int = 300) -> np.ndarray:
    low, high = event.support(direction)
    low, high = max(low, -30.0), min(high, 30.0)
    return np.random.default_rng(7).uniform(low - 0.1, high + 0.1, number)


def nearest_rounding(event: Event, step: float, direction: Direction) -> LossDistribution:
    """The planted bug: every loss goes to the grid point next to it."""
    low, high = event.support(direction)
    indices = np.arange(math.floor(low / step) - 1, math.ceil(high / step) + 2)
    above = event.tails((indices - 0.5) * step, direction)[0]
    masses = -np.diff(np.append(above, above[-1]))
    return LossDistribution(step=step, indices=indices, masses=masses, infinite=float(above[-1]))


def dominates(law: LossDistribution, event: Event, direction: Direction) -> bool:
    levels = random_levels(event, direction)
    truth = true_curve(event, direction, levels)
    return bool(np.all(curve(law, levels) >= truth - GUARD * event.tails(levels, direction)[0]))


@pytest.mark.parametrize(("event", "direction"), PAIRS, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("step", [0.3, 0.01, 0.00037])
class TestBothSides:
    def test_pessimistic_curve_is_above(self, event: Event, direction: Direction, step: float) -> None:
        law = LossDistribution.pessimistic(event, step, direction)
        assert dominates(law, event, direction)

    def test_any_subset_of_knots_is_above(self, event: Event, direction: Direction, step: float) -> None:
        every = LossDistribution.pessimistic(event, step, direction).indices
        chosen = np.random.default_rng(1).random(len(every)) < 0.3
        chosen[[0, -1]] = True
        law = LossDistribution.pessimistic(event, step, direction, every[chosen])
        assert dominates(law, event, direction)

    def test_pessimistic_curve_is_exact_at_knots(
        self, event: Event, direction: Direction, step: float
    ) -> None:
        law = LossDistribution.pessimistic(event, step, direction)
        some = law.losses[:: max(1, len(law.losses) // 50)]
        assert curve(law, some) == pytest.approx(true_curve(event, direction, some), abs=1e-9)

    def test_optimistic_curve_is_below(self, event: Event, direction: Direction, step: float) -> None:
        law = LossDistribution.optimistic(event, step, direction)
        levels = random_levels(event, direction)
        above_p = event.tails(levels, direction)[0]
        assert np.all(curve(law, levels) <= true_curve(event, direction, levels) + 2 * GUARD * above_p)

    def test_mass_is_one(self, event: Event, direction: Direction, step: float) -> None:
        """Up to what raising negative shares to zero adds where round-off is all that a cell holds."""
        law = LossDistribution.pessimistic(event, step, direction)
        assert law.masses.min() >= 0
        assert law.masses.sum() + law.infinite == pytest.approx(1, abs=1e-7)
        assert law.masses @ np.exp(-law.losses) <= 1 + 1e-7
        assert LossDistribution.optimistic(event, step, direction).masses.sum() <= 1 + 1e-11


def test_nearest_rounding_is_caught() -> None:
    """The check of the class above can fail: a law rounded to nearest does dip below the true curve."""
    for event in (Laplace(scale=3), Gaussian(sigma=2), COIN):
        assert not dominates(nearest_rounding(event, 0.3, REMOVE), event, REMOVE)


@pytest.mark.parametrize("event", [Gaussian(sigma=2), Laplace(scale=3)], ids=str)
def test_both_errors_fall_with_the_square_of_the_step(event: Event) -> None:
    """E[e^(2L)] is convex in e^-L, so it shows the direction too; the atoms of Laplace sit on these grids."""
    exact = 2 * event.renyi(3.0)
    for step in (1 / 30, 1 / 300):
        assert 0 < LossDistribution.pessimistic(event, step, REMOVE).cumulant(2.0) - exact < step**2
        assert 0 < exact - LossDistribution.optimistic(event, step, REMOVE).cumulant(2.0) < step**2


def test_moments() -> None:
    law = LossDistribution.pessimistic(Gaussian(sigma=2), 1e-3, REMOVE)
    mean = law.masses @ law.losses
    assert mean == pytest.approx(1 / 8, abs=1e-6)
    assert law.masses @ np.square(law.losses - mean) == pytest.approx(1 / 4, abs=1e-6)
    assert law.cumulant(3.0) == pytest.approx(3 / 8 + 9 / 8, abs=1e-5)
    value, weights = law.tilted(2.0)
    assert weights.sum() == pytest.approx(1)
    assert weights @ law.losses == pytest.approx(1 / 8 + 2 / 4, abs=1e-5)
    assert value == law.cumulant(2.0)


def test_losses_beyond_the_range_of_floats() -> None:
    """At a loss of 1000 the Q-mass underflows; rounding the loss up, or down, needs no Q."""
    event = Pure(loss=1000)
    assert LossDistribution.pessimistic(event, 0.3, REMOVE).delta(1000.0) > 0
    assert LossDistribution.pessimistic(event, 0.3, REMOVE).delta(1000.4) == 0
    assert LossDistribution.optimistic(event, 0.3, REMOVE).delta(999.0) > 0.4
    assert LossDistribution.optimistic(event, 0.3, REMOVE).delta(1000.0) == 0


class TestAssumption:
    """`GUARD` rests on tails that are right to a factor of 1 +- GUARD/2."""

    @pytest.mark.parametrize("sigma", [Fraction(1, 3), 1, 50, 10**4])
    @pytest.mark.parametrize("rate", [1, Fraction(1, 100)])
    def test_gaussian_tails(self, sigma: Fraction, rate: Fraction) -> None:
        event = PoissonSubsampled(event=Gaussian(sigma=sigma), rate=rate)
        with mpmath.workdps(60):
            mu, r = (mpmath.mpf(x.numerator) / x.denominator for x in (1 / Fraction(sigma), Fraction(rate)))
            for direction in (REMOVE, ADD):
                low, high = event.support(direction)
                levels = np.random.default_rng(3).uniform(low, high, 40)
                p, q = event.tails(levels, direction)
                for level, got_p, got_q in zip(levels, p, q, strict=True):
                    sign = 1 if direction is REMOVE else -1
                    inner = mpmath.exp(sign * mpmath.mpf(level)) - (1 - r)
                    # The loss exceeds the level iff the output, N(0,1) or N(mu,1), is beyond z.
                    z = (mpmath.log(inner / r) + mu**2 / 2) / mu if inner > 0 else -mpmath.inf
                    without, with_ = mpmath.ncdf(-sign * z), mpmath.ncdf(sign * (mu - z))
                    mixed = (1 - r) * without + r * with_
                    want_p, want_q = (mixed, without) if direction is REMOVE else (without, mixed)
                    assert abs(got_p - want_p) <= GUARD / 2 * want_p
                    assert abs(got_q - want_q) <= GUARD / 2 * want_q


class TestDelta:
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
    def test_gaussian(self, epsilon: float) -> None:
        with mpmath.workdps(40):
            mu, level = mpmath.mpf(1) / 2, mpmath.mpf(epsilon)
            exact = mpmath.ncdf(mu / 2 - level / mu) - mpmath.exp(level) * mpmath.ncdf(-mu / 2 - level / mu)
            got = delta_of_event(Gaussian(sigma=2), epsilon)
            assert exact <= got <= exact * (1 + 1e-9)

    @pytest.mark.parametrize("event", EVENTS, ids=lambda value: str(value)[:40])
    def test_agrees_with_closed_forms(self, event: Event) -> None:
        for epsilon in (0.0, 0.05, 0.3, 1.0, 2.5):
            assert delta_of_event(event, epsilon) == pytest.approx(event.delta(epsilon), rel=1e-9, abs=1e-12)

    def test_stays_in_range(self) -> None:
        assert delta_of_event(Laplace(scale=1), 1.0) == 0
        assert delta_of_event(Laplace(scale=1), 5000.0) == 0
        assert delta_of_event(Approximate(loss=0, failure=Fraction(1, 8)), 1e6) == pytest.approx(0.125)
        assert delta_of_event(Pure(loss=800), 0.0) == 1

    @pytest.mark.parametrize("epsilon", [-0.1, math.nan])
    def test_refuses(self, epsilon: float) -> None:
        with pytest.raises(InvalidArgument):
            delta_of_event(COIN, epsilon)


class TestRenyi:
    @pytest.mark.parametrize("order", [1.1, 2.0, 5.5, 32.0])
    @pytest.mark.parametrize(
        "event",
        [
            Laplace(scale=3),
            Laplace(scale=Fraction(1, 10)),
            Gaussian(sigma=2),
            Gaussian(sigma=100),
            DiscreteLaplace(scale=5, sensitivity=3),
            DiscreteGaussian(sigma_squared=9, sensitivity=2),
            COIN,
        ],
        ids=str,
    )
    def test_is_above_the_closed_form_and_close(self, event: Event, order: float) -> None:
        closed = event.renyi(order)
        assert closed * (1 - 1e-10) <= renyi_of_event(event, order) <= closed * (1 + 1e-4)

    @pytest.mark.parametrize("order", [2.0, 8.0, 25.0])
    def test_sampled_gaussian(self, order: float) -> None:
        event = PoissonSubsampled(event=Gaussian(sigma=2), rate=Fraction(1, 100))
        closed = event.renyi(order)
        assert closed * (1 - 1e-10) <= renyi_of_event(event, order) <= closed * (1 + 1e-4)

    def test_infinite_loss_is_infinite(self) -> None:
        assert renyi_of_event(Approximate(loss=Fraction(1, 2), failure=Fraction(1, 10**50)), 2.0) == math.inf

    def test_what_floats_cannot_follow_is_infinite(self) -> None:
        """At order 200 the bulk of the tilted law lies where P(L > l) underflows."""
        assert renyi_of_event(Gaussian(sigma=1), 200.0) == math.inf

    @pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan])
    def test_refuses(self, order: float) -> None:
        with pytest.raises(InvalidArgument):
            renyi_of_event(COIN, order)
