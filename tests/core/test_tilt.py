"""The tilted transform against convolution in exact arithmetic: its error bound holds, and is needed."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import sfumato.core.tilt as tilt_module
from sfumato.core.loss_sketch import WindowPlan
from sfumato.core.losses import LossDistribution
from sfumato.core.tilt import TiltedLaw, convolve

STEP = 0.125
Exact = dict[int, Fraction]

RNG = np.random.default_rng(5)
FIRST: Exact = {index: Fraction(int(RNG.integers(1, 100)), 2000) for index in range(-12, 9)}
SECOND: Exact = {-3: Fraction(1, 4), 0: Fraction(1, 2), 40: Fraction(1, 2**20)}


def law(exact: Exact, infinite: float = 0.0) -> LossDistribution:
    masses = np.array([float(mass) for mass in exact.values()])
    return LossDistribution(step=STEP, indices=np.array(list(exact)), masses=masses, infinite=infinite)


def power(parts: list[tuple[Exact, int]]) -> Exact:
    """Return the composed measure, by convolution of Fractions."""
    result: Exact = {0: Fraction(1)}
    for exact, count in parts:
        for _ in range(count):
            longer: dict[int, Fraction] = defaultdict(Fraction)
            for index, mass in result.items():
                for other, share in exact.items():
                    longer[index + other] += mass * share
            result = dict(longer)
    return result


def exact_delta(exact: Exact, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        return mpmath.fsum(
            mpmath.mpf(mass.numerator) / mass.denominator * (1 - mpmath.exp(epsilon - index * STEP))
            for index, mass in exact.items()
            if index * STEP > epsilon
        )


def plan(theta: float, lower: float | None = None, upper: float | None = None) -> WindowPlan:
    return WindowPlan(theta=theta, lower=lower, upper=upper, low=0.0, high=0.0, step=STEP)


PARTS = [(FIRST, 6), (SECOND, 5)]
COMPOSED = power(PARTS)


def composed(theta: float, lower: float | None = None, upper: float | None = None) -> TiltedLaw:
    return convolve([(law(exact), count) for exact, count in PARTS], plan(theta, lower, upper))


@pytest.mark.parametrize("theta", [0.0, 0.7, 3.0, 12.0])
class TestAgainstExactArithmetic:
    def test_all_wrong_mass_is_within_the_bound(self, theta: float) -> None:
        got = composed(theta)
        with mpmath.workdps(40):
            wrong = mpmath.fsum(
                abs(
                    mpmath.mpf(got.masses[place])
                    - mpmath.mpf(COMPOSED.get(got.first + place, Fraction(0)).numerator)
                    / COMPOSED.get(got.first + place, Fraction(0)).denominator
                    * mpmath.exp(mpmath.mpf(theta) * (got.first + place) * STEP - mpmath.mpf(got.cumulant))
                )
                for place in range(len(got.masses))
            )
        assert 0 < wrong <= got.stray + got.slack
        assert got.stray < 1e-10

    def test_bounds_on_delta(self, theta: float) -> None:
        got = composed(theta)
        for epsilon in (-3.0, 0.0, 1.0, 4.3, 9.0):
            exact = exact_delta(COMPOSED, epsilon)
            assert got.delta_below(epsilon) <= exact <= got.delta_above(epsilon)

    def test_bounds_on_epsilon(self, theta: float) -> None:
        got = composed(theta)
        for delta in (1e-5, 1e-6, 1e-7):
            low, high = got.epsilon_below(delta), got.epsilon_above(delta)
            assert exact_delta(COMPOSED, high) <= delta <= exact_delta(COMPOSED, low)
            assert high - low < 1e-6 or theta > 1.0  # a tilt for a far tail sees the near one less well

    def test_points_are_below_the_ceiling(self, theta: float) -> None:
        got = composed(theta)
        ceiling = got.ceiling(-40, 60)
        assert all(COMPOSED.get(index, 0) <= ceiling[index + 40] for index in range(-40, 61))


def test_only_a_tilt_sees_a_far_tail() -> None:
    """The highest loss has a mass of 1e-39: found to 1e-6 when tilted, and not at all when not."""
    epsilon = max(COMPOSED) * STEP - 1.0
    exact = exact_delta(COMPOSED, epsilon)
    assert 1e-45 < exact < 1e-30
    assert exact <= composed(12.0).delta_above(epsilon) <= exact * (1 + 1e-6)
    assert composed(0.0).delta_above(epsilon) > 1e6 * exact


def test_a_narrow_window_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What wraps around, or is cut off, is bounded by Chernoff's inequality and added."""
    monkeypatch.setattr(tilt_module, "NEGLIGIBLE", 4.0)
    narrow = composed(0.7, 1.0, 1.0)
    assert len(narrow.masses) < len(composed(0.7).masses)
    for epsilon in (0.0, 1.0, 2.0):
        exact = exact_delta(COMPOSED, epsilon)
        assert narrow.delta_below(epsilon) <= exact <= narrow.delta_above(epsilon)


def test_a_window_too_small_for_anything_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilt_module, "_MOST_SIZE", 16)
    for ends in ((None, None), (1.0, 1.0)):
        tiny = composed(0.7, *ends)
        assert tiny.stray > 1e-3
        for epsilon in (0.0, 1.0, 2.0):
            assert tiny.delta_below(epsilon) <= exact_delta(COMPOSED, epsilon) <= tiny.delta_above(epsilon)


@pytest.mark.parametrize("factor", [1, 2, 7])
def test_a_coarser_grid_costs_more(factor: int) -> None:
    coarse, missing = composed(0.7).coarsened(factor)
    assert coarse.step == factor * STEP
    assert missing < 1e-10
    for epsilon in np.linspace(-4.0, 12.0, 25):
        exact = exact_delta(COMPOSED, float(epsilon))
        assert exact <= coarse.delta(float(epsilon)) + missing * math.exp(
            composed(0.7).cumulant - 0.7 * epsilon
        )
        assert coarse.delta(float(epsilon)) <= exact_delta(COMPOSED, float(epsilon) - factor * STEP) + 1e-12


def test_infinite_losses_add_up() -> None:
    got = convolve([(law(FIRST, 1e-9), 1000), (law(SECOND, 1e-6), 1)], plan(0.5, 2.0, 2.0))
    assert got.infinite == pytest.approx(2e-6, rel=1e-5)
    assert got.epsilon_above(1e-6) == math.inf
    assert got.epsilon_below(1e-6) == math.inf
    assert got.epsilon_above(1e-5) < math.inf
    assert convolve([(law(FIRST, 1.0), 2)], plan(0.5)).delta_above(1e3) == 1.0


def test_losses_far_apart_do_not_overflow() -> None:
    wide = {-4000: Fraction(1, 4), 0: Fraction(1, 2), 8000: Fraction(1, 4)}
    got = convolve([(law(wide), 4)], plan(1e-3))
    exact = power([(wide, 4)])
    for epsilon in (0.0, 999.0, 1001.0, 3999.0):
        assert got.delta_below(epsilon) <= exact_delta(exact, epsilon) <= got.delta_above(epsilon)
    assert got.epsilon_above(0.01) == pytest.approx(got.epsilon_below(0.01), rel=1e-9)


@pytest.mark.parametrize("level", [-2.0, 0.0, 1.0, 3.0, 6.0])
def test_the_tail_above_a_point_holds_what_the_window_holds_there(level: float) -> None:
    """Two Gaussians of mu 1 have the loss N(1, 2): mass inside the window counts, not only stray mass."""
    from sfumato.core.composition import _above
    from sfumato.core.events import Direction, Gaussian

    law = _above(((Gaussian(sigma=1), 2),), Direction.REMOVE, lambda parts: 1.0)
    index = math.floor(level / law.step)
    truth = math.erfc((index * law.step + law.step - 1.0) / 2.0) / 2.0
    assert truth * (1 - 1e-6) <= law.tail_above(index) <= truth * 1.001 + 1e-12
