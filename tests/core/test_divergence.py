"""Sampled Gaussians at any rate: bounds that hold, that are near each other, and that are monotone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from sfumato.core.atoms import sampled_gaussian
from sfumato.core.composition import Composition
from sfumato.core.divergence import divergence_at_epsilon, inverts
from sfumato.core.events import Gaussian, Laplace, PoissonSubsampled
from sfumato.core.events.base import Direction

from .test_composition import gaussian_epsilon

REMOVE, ADD = Direction.REMOVE, Direction.ADD


pytestmark = pytest.mark.long


def sampled(rate: str, sigma: str) -> PoissonSubsampled:
    return PoissonSubsampled(event=Gaussian(sigma=Fraction(sigma)), rate=Fraction(rate))


def batch(rate: str, sigma: str, count: int) -> Composition:
    return Composition([(sampled(rate, sigma), count)])


def single_delta(rate: float, sigma: float, level: float, direction: Direction) -> float:
    """Return delta of one sampled Gaussian at any level, also below zero, from normal tails."""
    shift = (
        math.log1p(math.expm1(level if direction is REMOVE else -level) / rate)
        if (math.expm1(level if direction is REMOVE else -level) / rate > -1)
        else -math.inf
    )
    edge = sigma * shift + 1 / (2 * sigma)  # the output, in units of sigma, where the loss is `level`
    if direction is REMOVE:
        p = (1 - rate) * ndtr(-edge) + rate * ndtr(1 / sigma - edge)
        return float(p - math.exp(level) * ndtr(-edge))
    q = (1 - rate) * ndtr(edge) + rate * ndtr(edge - 1 / sigma)
    return float(ndtr(edge) - math.exp(level) * q)


def double_delta(rate: float, sigma: float, level: float, direction: Direction) -> float:
    """Return delta of two sampled Gaussians: the mean of that of one, by quadrature."""

    def integrand(u: float) -> float:
        ratio = math.log1p(rate * math.expm1(u / sigma - 1 / (2 * sigma**2)))
        loss, weight = (ratio, math.exp(ratio)) if direction is REMOVE else (-ratio, 1.0)
        density = weight * math.exp(-u * u / 2) / math.sqrt(2 * math.pi)
        return density * single_delta(rate, sigma, level - loss, direction)

    value, _ = quad(integrand, -12, 12 + 1 / sigma, limit=800, points=np.linspace(-8, 8 + 1 / sigma, 41))
    return value


def seen_at_once(rate: float, sigma: float, count: int, delta: float) -> float:
    """Return a lower bound on epsilon: whether any output exceeds a threshold is all that is looked at."""
    thresholds = np.linspace(0.0, 14.0 + 1 / sigma, 4001)
    q = np.exp(log_ndtr(-thresholds))
    p = (1 - rate) * q + rate * np.exp(log_ndtr(1 / sigma - thresholds))
    any_p, any_q = -np.expm1(count * np.log1p(-p)), -np.expm1(count * np.log1p(-q))
    kept = (any_p > delta) & (any_q > 0)
    return max(0.0, float(np.max(np.log((any_p[kept] - delta) / any_q[kept]), initial=0.0)))


@pytest.mark.parametrize("direction", [REMOVE, ADD])
@pytest.mark.parametrize(
    ("rate", "sigma", "level"), [("0.3", "1", 0.2), ("0.01", "0.5", 0.05), ("0.5", "4", 0.02)]
)
def test_two_events_against_quadrature(rate: str, sigma: str, level: float, direction: Direction) -> None:
    exact = double_delta(float(Fraction(rate)), float(Fraction(sigma)), level, direction)
    parts = [(sampled(rate, sigma), 2)]
    above = divergence_at_epsilon(parts, direction, level, above=True).delta_above(level)
    below = divergence_at_epsilon(parts, direction, level, above=False).delta_below(level)
    assert below <= exact * (1 + 1e-7)
    assert above >= exact * (1 - 1e-7)
    assert above <= exact * 1.002
    assert below >= exact * 0.99


@pytest.mark.parametrize(
    ("rate", "sigma", "count", "delta"),
    [
        ("1e-6", "1", 10**6, 1e-6),
        ("1e-9", "1", 10**9, 1e-12),
        ("1e-9", "0.3", 1000, 1e-12),
        ("1e-9", "0.3", 10**9, 1e-12),
        ("1e-6", "20", 10**6, 1e-5),
        ("0.5", "0.3", 10**9, 1e-12),
        ("1e-3", "1", 1000, 1e-12),
    ],
)
def test_bounds_are_within_one_percent(rate: str, sigma: str, count: int, delta: float) -> None:
    low, high = batch(rate, sigma, count).epsilon_bounds(delta)
    assert 0 < low <= high <= 1.01 * low
    assert seen_at_once(float(rate), float(sigma), count, delta) <= high


def test_many_rare_samples_are_nearly_gaussian() -> None:
    """The central limit: mu = rate sqrt(count (e^(1/sigma^2) - 1)) (Dong, Roth, Su 2022, Corollary 5.4)."""
    for rate, sigma, count, delta in (("1e-9", 1.0, 10**9, 1e-12), ("1e-6", 2.0, 10**8, 1e-9)):
        mu = float(rate) * math.sqrt(count * math.expm1(1 / sigma**2))
        exact = gaussian_epsilon(mu, delta)
        low, high = batch(rate, str(int(sigma)), count).epsilon_bounds(delta)
        assert high == pytest.approx(exact, rel=3e-3)
        assert low == pytest.approx(exact, rel=3e-3)


def test_where_delta_covers_all_there_is_nothing_to_pay() -> None:
    """At a rate of 1e-9 a million outputs differ by less than 1e-6 in total variation."""
    assert batch("1e-9", "1", 10**6).epsilon_bounds(1e-5) == (0.0, 0.0)
    assert batch("1e-9", "20", 2).epsilon(1e-9) == 0.0


def test_gaussians_beside_samples() -> None:
    """A Gaussian in the batch adds its mu exactly: with next to nothing sampled it is all there is."""
    low, high = Composition([(Gaussian(sigma=2), 3), (sampled("1e-9", "1"), 5)]).epsilon_bounds(1e-6)
    exact = gaussian_epsilon(math.sqrt(3) / 2, 1e-6)
    assert low <= exact * (1 + 1e-6)
    assert exact <= high <= exact * 1.0002
    assert exact <= low * 1.0005


def test_delta_and_epsilon_are_inverse() -> None:
    for rate, sigma, count in (("1e-6", "1", 10**6), ("0.1", "2", 100), ("1e-9", "0.3", 1000)):
        composition = batch(rate, sigma, count)
        for delta in (1e-5, 1e-9):
            epsilon = composition.epsilon(delta)
            if epsilon:
                assert composition.delta(epsilon) == pytest.approx(delta, rel=2e-2)


MORE = [("0.1", "19.06", 149), ("1e-5", "19.06", 149), ("3e-4", "0.7", 5000), ("1e-9", "0.3", 10**6)]
FAMILIES = [("0.01", "19.06", 149), ("1e-7", "0.81", 917_372_221), ("0.4", "3", 7)]
FAMILIES += [pytest.param(*family, marks=pytest.mark.soak) for family in MORE]


@pytest.mark.parametrize(("rate", "sigma", "count"), FAMILIES)
def test_epsilon_is_monotone(rate: str, sigma: str, count: int) -> None:
    """One event more, a smaller delta, a larger rate or less noise never cost less."""
    for delta in (1e-4, 1.7e-8, 1e-11):
        epsilon = batch(rate, sigma, count).epsilon(delta)
        assert batch(rate, sigma, count + 1).epsilon(delta) >= epsilon
        assert batch(rate, sigma, count).epsilon(delta * 0.999) >= epsilon
    wider = str(Fraction(sigma) * Fraction(99, 100))
    assert batch(rate, wider, count).epsilon(1e-8) >= batch(rate, sigma, count).epsilon(1e-8)


@pytest.mark.parametrize("direction", [REMOVE, ADD])
@pytest.mark.parametrize("above", [True, False])
def test_atoms_keep_both_masses(direction: Direction, above: bool) -> None:
    """P and Q have mass one each: what lies beyond the last cell is all that is missing."""
    for shift, rate in ((0.05, 1e-9), (1.0, 1e-6), (3.3, 0.3)):
        atoms = sampled_gaussian(shift, rate, direction, above=above, failure=1e-20)
        masses = np.exp(atoms.logs)
        assert masses.sum() == pytest.approx(1.0, abs=1e-13)
        assert (masses * np.exp(-atoms.losses)).sum() == pytest.approx(1.0, abs=1e-13)
        assert atoms.infinite <= 4e-20
        # Relative to the losses' own size, which differences of tails would not be.
        spread = float(masses @ np.square(atoms.losses))
        if rate < 1e-3:
            assert spread == pytest.approx(rate**2 * math.expm1(shift * shift), rel=1e-3)


@pytest.mark.parametrize("direction", [REMOVE, ADD])
@pytest.mark.parametrize(("rate", "sigma"), [(0.3, 1.0), (0.01, 0.5), (0.5, 4.0)])
def test_atoms_lie_above_or_below_the_exact_curve(rate: float, sigma: float, direction: Direction) -> None:
    """At every level, also below zero; and not on it, so that the two cannot be mistaken for each other."""
    above, below = (
        sampled_gaussian(1 / sigma, rate, direction, above=side, failure=1e-30) for side in (True, False)
    )
    apart = 0.0
    for level in np.linspace(-0.4, 1.0, 57) * min(1.0, rate / sigma):
        exact = single_delta(rate, sigma, float(level), direction)
        high, low = (
            float(np.exp(law.logs) @ -np.expm1(np.minimum(level - law.losses, 0.0))) + law.infinite
            for law in (above, below)
        )
        assert low <= exact * (1 + 1e-10) <= high * (1 + 2e-10)
        assert high - low <= 1e-3 * exact
        apart += (high - low) / max(exact, 1e-30)
    assert apart > 1e-6


def test_only_sampled_gaussians_are_inverted() -> None:
    assert inverts([(sampled("0.1", "1"), 2), (Gaussian(sigma=1), 1)])
    assert not inverts([(Gaussian(sigma=1), 2)])
    assert not inverts([(sampled("0.1", "1"), 2), (Laplace(scale=1), 1)])
    assert not inverts([(sampled("1", "1"), 2)])
