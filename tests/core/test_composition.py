"""Composition: never below the exact cost, hardly above it, at any delta and any count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import sfumato.core.composition as composition_module
from sfumato.core.composition import Composition
from sfumato.core.events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    FinitePair,
    Gaussian,
    Laplace,
    Parallel,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
    Repeated,
    ZeroConcentrated,
)
from sfumato.core.events.base import Direction, Event
from sfumato.errors import InvalidArgument, Unsupported

REMOVE, ADD = Direction.REMOVE, Direction.ADD
COIN = RandomizedResponse(truth=Fraction(3, 4), choices=2)
SAMPLED = PoissonSubsampled(event=Gaussian(sigma=Fraction(11, 10)), rate=Fraction(1, 100))
THREE = FinitePair(
    with_person=(Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)),
    without=(Fraction(3, 10), Fraction(3, 10), Fraction(4, 10)),
)
RARELY_SAMPLED = PoissonSubsampled(event=Gaussian(sigma=Fraction(11, 10)), rate=Fraction(1, 1000))

Cumulant = Callable[[np.ndarray], np.ndarray]

# -- oracles ------------------------------------------------------------------------------


def gaussian_delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the exact epsilon of the Gaussian mechanism, by bisection in 60 digits."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        while gaussian_delta(mpmath.mpf(mu), high) > delta:
            high *= 2
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(mpmath.mpf(mu), middle) > delta else (low, middle)
        return float(high)


def response_delta(loss: mpmath.mpf, count: int, epsilon: float) -> mpmath.mpf:
    """Return the exact delta of `count` randomized responses: a binomial sum."""
    truth = 1 / (1 + mpmath.exp(-loss))
    excess = (max(0, 1 - mpmath.exp(epsilon - (2 * k - count) * loss)) for k in range(count + 1))
    return mpmath.fsum(
        mpmath.binomial(count, k) * truth**k * (1 - truth) ** (count - k) * part
        for k, part in enumerate(excess)
        if part
    )


def laplace_cumulant(scale: float) -> Cumulant:
    """ln E[e^(zL)], the Renyi divergence's formula continued to the complex plane."""
    e = 1 / scale
    return lambda z: np.log((1 + z) / (2 * z + 1) * np.exp(z * e) + z / (2 * z + 1) * np.exp(-(1 + z) * e))


def discrete_laplace_cumulant(scale: float) -> Cumulant:
    truth, e = 1 / (1 + math.exp(-1 / scale)), 1 / scale
    return lambda z: np.log(truth * np.exp(z * e) + (1 - truth) * np.exp(-z * e))


def discrete_gaussian_cumulant(sigma: float) -> Cumulant:
    x = np.arange(-math.ceil(14 * sigma), math.ceil(14 * sigma) + 1)
    p = np.exp(-((x / sigma) ** 2) / 2)
    p, losses = p / p.sum(), (1 - 2 * x) / (2 * sigma**2)
    return lambda z: np.log(np.exp(np.multiply.outer(z, losses)) @ p)


def sampled_gaussian_cumulant(sigma: float, rate: float) -> Cumulant:
    """By the trapezoidal rule, which is exact to rounding for an analytic integrand."""
    x = np.linspace(-12.0, 16.0, 1500)
    with_ = np.exp((x - 1 / (2 * sigma)) / sigma)  # its ratio to N(0,1), in units of sigma
    p = np.exp(-(x**2) / 2) * (1 - rate + rate * with_)
    p, losses = p / p.sum(), np.log1p(rate * (with_ - 1))
    return lambda z: np.log(np.exp(np.multiply.outer(z, losses)) @ p)


def inverted_delta(
    parts: Iterable[tuple[Cumulant, int]], epsilon: float, theta: float, reach: float
) -> float:
    """Return delta by inverting the transform along Re z = theta up to |Im z| = reach.

    E[(1 - e^(epsilon-L))_+] is the integral of e^(K(z) - z epsilon) / (z (z+1)) dz / (2 pi i). This
    shares nothing with the code under test but the closed forms of K; the trapezoidal rule's
    and the cut-off's relative errors are below 1e-8 here.
    """
    t = np.linspace(0.0, reach, 2001)
    z = theta + 1j * t
    values = np.exp(sum(count * cumulant(z) for cumulant, count in parts) - z * epsilon) / (z * (z + 1))
    return float(np.trapezoid(values.real, t) / math.pi)


CASES: dict[str, tuple[list[tuple[Event, int]], list[tuple[Cumulant, int]], float, float]] = {
    "sampled Gaussian": ([(SAMPLED, 10_000)], [(sampled_gaussian_cumulant(1.1, 0.01), 10_000)], 4.0, 12.0),
    "Laplace": ([(Laplace(scale=20), 500)], [(laplace_cumulant(20.0), 500)], 4.5, 12.0),
    "mixed discrete": (
        [
            (DiscreteLaplace(scale=20, sensitivity=1), 200),
            (DiscreteGaussian(sigma_squared=2500, sensitivity=1), 300),
        ],
        [(discrete_laplace_cumulant(20.0), 200), (discrete_gaussian_cumulant(50.0), 300)],
        6.0,
        20.0,
    ),
    "a million sampled": (
        [(RARELY_SAMPLED, 10**6)],
        [(sampled_gaussian_cumulant(1.1, 0.001), 10**6)],
        4.3,
        12.0,
    ),
}


# -- tightness ----------------------------------------------------------------------------


class TestTight:
    @pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-10, 1e-15, 1e-30])
    def test_a_thousand_gaussians(self, delta: float) -> None:
        exact = gaussian_epsilon(math.sqrt(1000) / 50, delta)
        low, high = Composition([(Gaussian(sigma=50), 1000)]).epsilon_bounds(delta)
        assert low <= exact <= high <= exact * 1.0001
        assert exact <= low * 1.0005

    def test_the_known_value(self) -> None:
        assert 2.92160059 <= Composition([(Gaussian(sigma=50), 1000)]).epsilon(1e-6) <= 2.92162

    @pytest.mark.parametrize("name", CASES)
    def test_against_inverted_transforms(self, name: str) -> None:
        """At the epsilon reported for 1e-6 the exact delta is below it; at an epsilon 0.01% less, above."""
        events, cumulants, theta, reach = CASES[name]
        low, high = Composition(events).epsilon_bounds(1e-6)
        assert inverted_delta(cumulants, high, theta, reach) <= 1e-6
        assert inverted_delta(cumulants, high * 0.9999, theta, reach) > 1e-6
        assert inverted_delta(cumulants, low, theta, reach) >= 1e-6
        assert high <= low * 1.0005

    @pytest.mark.parametrize("delta", [1e-6, 1e-15])
    def test_a_million_gaussians(self, delta: float) -> None:
        exact = gaussian_epsilon(1.0, delta)
        low, high = Composition([(Gaussian(sigma=1000), 10**6)]).epsilon_bounds(delta)
        assert low <= exact <= high <= exact * 1.0001
        assert exact <= low * 1.0005

    @pytest.mark.parametrize("count", [2, 7, 100, 900])
    def test_randomized_response(self, count: int) -> None:
        composition = Composition([(COIN, count)])
        with mpmath.workdps(60):
            for fraction in (0.05, 0.3, 0.6, 0.95):
                epsilon = round(count * math.log(3) * fraction, 6)
                exact = response_delta(mpmath.log(3), count, mpmath.mpf(repr(epsilon)))
                low, high = composition.delta_bounds(epsilon)
                assert low <= exact <= high <= exact * mpmath.mpf("1.001")
                assert low >= exact * mpmath.mpf("0.999")

    @pytest.mark.parametrize("delta", [1e-6, 1e-30])
    def test_thousands_of_randomized_responses(self, delta: float) -> None:
        epsilon = Composition([(COIN, 3000)]).epsilon(delta)
        with mpmath.workdps(60):
            assert response_delta(mpmath.log(3), 3000, mpmath.mpf(epsilon)) <= delta
            assert response_delta(mpmath.log(3), 3000, mpmath.mpf(epsilon * 0.99995)) > delta

    @pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-30])
    def test_few_bounded_events(self, delta: float) -> None:
        """Near the largest loss there is no averaging, so that every atom's place shows."""
        events = [COIN, Laplace(scale=3), THREE]
        low, high = Composition(events).epsilon_bounds(delta)
        assert low <= high <= low * 1.0001

    def test_a_rare_large_loss(self) -> None:
        """One outcome in 1e7 has a loss of 20, all others one of 1e-4: scales far apart on one grid."""
        rare, often = Fraction(1, 10**7), Fraction(49999, 100000)
        pair = FinitePair(
            with_person=(rare, often, 1 - rare - often),
            without=(rare * Fraction(1, 485165195), 1 - often, often - rare * Fraction(1, 485165195)),
        )
        low, high = Composition([(pair, 1000)]).epsilon_bounds(1e-6)
        assert low <= high <= low * 1.001

    def test_loose_claims_are_composed_optimally(self) -> None:
        """k-fold (epsilon, delta) claims: the curve of Kairouz, Oh and Viswanath (2015), Theorem 3.3."""
        composition = Composition([(Approximate(loss=Fraction(1, 10), failure=Fraction(1, 10**9)), 100)])
        with mpmath.workdps(40):
            kept = (1 - mpmath.mpf(10) ** -9) ** 100
            exact = 1 - kept + kept * response_delta(mpmath.mpf(1) / 10, 100, mpmath.mpf("4.5"))
        assert exact <= composition.delta(4.5) <= exact * 1.001


# -- consistency --------------------------------------------------------------------------


class TestConsistent:
    @pytest.mark.parametrize(
        "event",
        [
            Laplace(scale=3),
            Gaussian(sigma=2),
            DiscreteLaplace(scale=5, sensitivity=3),
            DiscreteGaussian(sigma_squared=9, sensitivity=2),
            COIN,
            SAMPLED,
            Pure(loss=0.3),
            Approximate(loss=0.3, failure=1e-9),
            THREE,
        ],
        ids=lambda event: type(event).__name__,
    )
    def test_one_event_is_itself(self, event: Event) -> None:
        alone = Composition([event])
        for epsilon in (0.0, 0.1, 0.7):
            low, high = alone.delta_bounds(epsilon)
            assert high == event.delta(epsilon)
            assert 0.999 * high - 1e-15 <= low <= high
        epsilon = alone.epsilon(1e-3)
        assert event.delta(epsilon) <= 1e-3
        assert epsilon == 0 or event.delta(epsilon * (1 - 1e-9)) > 1e-3

    def test_count_equals_a_loop(self) -> None:
        """The same loss under different names goes through one transform each instead of a power."""
        halves = [
            FinitePair(
                with_person=(Fraction(3, 4) - x, x, Fraction(1, 4)),
                without=(Fraction(1, 4) - x / 3, x / 3, Fraction(3, 4)),
            )
            for x in (Fraction(1, n) for n in range(4, 12))
        ]
        assert len(Composition(halves).parts) == 8
        for delta in (1e-2, 1e-6, 1e-12):
            power = Composition([(COIN, 8)]).epsilon(delta)
            assert Composition(halves).epsilon(delta) == pytest.approx(power, rel=1e-6)

    def test_equal_parts_are_counted(self) -> None:
        expected = Composition([(Laplace(scale=3), 6)])
        for parts in (
            [Laplace(scale=3)] * 6,
            [(Laplace(scale=3), 2), Repeated(event=Laplace(scale=3), times=4)],
            [(Composed(events=(Laplace(scale=3), Laplace(scale=3))), 3)],
        ):
            assert Composition(parts).parts == expected.parts == ((Laplace(scale=3), 6),)

    def test_two_rounds_equal_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parts: list[tuple[Event, int]] = [(SAMPLED, 2000), (Laplace(scale=100), 1717), (COIN, 1)]
        two = Composition(parts).epsilon(1e-6)
        monkeypatch.setattr(composition_module, "_BATCH", 10**9)
        assert two == pytest.approx(Composition(parts).epsilon(1e-6), rel=3e-5)

    def test_delta_and_epsilon_are_inverse(self) -> None:
        composition = Composition([(SAMPLED, 500), (Laplace(scale=10), 20)])
        for delta in (1e-2, 1e-5, 1e-9, 1e-20):
            assert composition.delta(composition.epsilon(delta)) == pytest.approx(delta, rel=1e-3)

    @pytest.mark.long
    @pytest.mark.parametrize("seed", range(12))
    def test_random_batches(self, seed: int) -> None:
        """Bounds are in order, cost falls with delta and grows with every added event."""
        rng = np.random.default_rng(seed)
        choices: list[Event] = [
            Laplace(scale=Fraction(int(rng.integers(1, 100)), 7)),
            Gaussian(sigma=Fraction(int(rng.integers(5, 500)), 9)),
            DiscreteLaplace(scale=Fraction(int(rng.integers(5, 90)), 3), sensitivity=int(rng.integers(1, 5))),
            DiscreteGaussian(sigma_squared=int(rng.integers(9, 900)), sensitivity=int(rng.integers(1, 3))),
            RandomizedResponse(truth=Fraction(int(rng.integers(40, 60)), 100), choices=3),
            PoissonSubsampled(event=Laplace(scale=2), rate=Fraction(1, int(rng.integers(2, 50)))),
            Approximate(loss=0.2, failure=1e-12),
        ]
        picked = rng.choice(len(choices), size=3, replace=False)
        parts = [(choices[i], int(rng.integers(1, 60))) for i in picked]
        previous = 0.0
        for delta in (1e-2, 1e-5, 1e-9):
            low, high = Composition(parts).epsilon_bounds(delta)
            assert 0 <= low <= high <= low * 1.01 + 1e-9
            assert high >= Composition(parts[:2]).epsilon_bounds(delta)[0]
            assert high >= previous
            previous = high

    def test_parallel_of_batches_costs_the_worst(self) -> None:
        worst = Repeated(event=Gaussian(sigma=10), times=20)
        other = Repeated(event=Laplace(scale=10), times=20)
        nested = Composition([(Parallel(events=(worst, other)), 3)])
        exact = gaussian_epsilon(math.sqrt(60) / 10, 1e-6)
        assert exact <= nested.epsilon(1e-6) <= exact * 1.001

    def test_sampling_a_batch(self) -> None:
        """A batch on one secret sample: that of 25 Gaussians is that of one with a fifth of sigma."""
        batch = Repeated(event=Gaussian(sigma=10), times=25)
        got = Composition([(PoissonSubsampled(event=batch, rate=Fraction(1, 10)), 50)]).epsilon(1e-6)
        one = Composition([(PoissonSubsampled(event=Gaussian(sigma=2), rate=Fraction(1, 10)), 50)])
        low, high = one.epsilon_bounds(1e-6)
        assert low <= got <= high * 1.002


class TestTails:
    """A batch is an event again: its tails are those of a pair that dominates it."""

    @pytest.mark.parametrize("count", [2, 40, 5000])
    def test_of_gaussians(self, count: int) -> None:
        composition = Composition([(Gaussian(sigma=20), count)])
        mu = math.sqrt(count) / 20
        low, high = composition.support(REMOVE)
        for z in np.linspace(-5, 11, 33):
            level = mu * mu / 2 + z * mu
            p, q = (float(tail[0]) for tail in composition.tails(np.array([level]), REMOVE))
            with mpmath.workdps(60):
                exact = gaussian_delta(mpmath.mpf(mu), mpmath.mpf(level))
                assert exact <= p - mpmath.exp(level) * q + 1e-12 * p
                assert p - mpmath.exp(level) * q <= exact * mpmath.mpf("1.01") + 1e-12 * p
            assert low < level < high

    @pytest.mark.parametrize("direction", [REMOVE, ADD])
    def test_shape(self, direction: Direction) -> None:
        composition = Composition([(SAMPLED, 20), (COIN, 3)])
        low, high = composition.support(direction)
        levels = np.concatenate([[-math.inf], np.linspace(low - 1, high + 1, 5000), [math.inf]])
        p, q = composition.tails(levels, direction)
        assert p[0] == 1
        assert q[0] <= 1
        assert np.all(np.diff(p) <= 0)
        assert np.all(np.diff(q) <= 0)
        assert p[-1] < 1e-30
        assert q[-1] == 0

    def test_symmetric_batches_need_one_direction(self) -> None:
        composition = Composition([(COIN, 5)])
        levels = np.linspace(-6, 6, 50)
        for one, other in zip(composition.tails(levels, REMOVE), composition.tails(levels, ADD), strict=True):
            assert np.array_equal(one, other)

    def test_failures_stay_infinite(self) -> None:
        composition = Composition([(Approximate(loss=0.1, failure=1e-6), 10)])
        p, q = composition.tails(np.array([math.inf]), REMOVE)
        assert p[0] == pytest.approx(1e-5, rel=1e-5)
        assert q[0] == 0


# -- planted bugs -------------------------------------------------------------------------


class TestPlanted:
    def test_a_plain_transform_drowns(self) -> None:
        """At a delta of 1e-15 a plain FFT's round-off exceeds delta; the tilted one is right to 2e-4."""
        exact = gaussian_epsilon(math.sqrt(1000) / 50, 1e-15)
        step, size = 2e-4, 2**16
        losses = step * np.arange(-1500, 1500)
        masses = np.exp(-((losses - 1 / 5000) ** 2) * 1250)
        padded = np.zeros(size)
        padded[np.arange(-1500, 1500)] = masses / masses.sum()
        plain = np.fft.irfft(np.fft.rfft(padded) ** 1000, size)
        where = step * np.fft.fftfreq(size, 1 / size)
        delta = float(np.sum((plain * -np.expm1(exact - where))[where > exact]))
        assert not 0.5e-15 <= delta <= 2e-15
        tight = Composition([(Gaussian(sigma=50), 1000)])
        assert 1e-15 <= tight.delta(exact) <= 1.0002e-15

    def test_without_a_tilt_the_round_off_bound_shows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The bound is honest: an untilted transform admits that it cannot see a delta of 1e-15."""
        exact = gaussian_epsilon(math.sqrt(1000) / 50, 1e-15)
        monkeypatch.setattr(composition_module, "tilt_at_delta", lambda parts, delta: 1e-9)
        assert Composition([(Gaussian(sigma=50), 1000)]).epsilon(1e-15) > 1.001 * exact

    def test_an_ignored_count_would_be_caught(self) -> None:
        one, hundred = (Composition([(COIN, count)]).epsilon(1e-6) for count in (1, 100))
        assert hundred > 50 * one


# -- edges --------------------------------------------------------------------------------


class TestEdges:
    def test_nothing_costs_nothing(self) -> None:
        empty = Composition([])
        assert empty.epsilon(1e-6) == empty.epsilon(0) == empty.delta(0) == 0
        assert empty.epsilon_bounds(1e-6) == empty.delta_bounds(1) == (0, 0)

    def test_identical_laws_cost_nothing(self) -> None:
        free = FinitePair(with_person=(0.5, 0.5), without=(0.5, 0.5))
        assert Composition([(free, 9)]).epsilon(1e-6) == 0
        mixed = Composition([(free, 9), (COIN, 5)])
        assert mixed.epsilon(1e-6) == pytest.approx(Composition([(COIN, 5)]).epsilon(1e-6), rel=1e-6)

    def test_pure_epsilon_at_no_delta(self) -> None:
        assert Composition([(Pure(loss=0.1), 10)]).epsilon(0) == 1.0
        assert Composition([(Pure(loss=0.1), 10)]).delta(1) == 0.0
        assert Composition([Gaussian(sigma=1), COIN]).epsilon(0) == math.inf
        low, high = Composition([(Pure(loss=0.1), 10)]).epsilon_bounds(0)
        assert 0.9999 <= low <= high == 1.0

    def test_never_above_the_pure_sum(self) -> None:
        for delta in (1e-300, 1e-30, 1e-9):
            assert Composition([(Pure(loss=0.1), 10)]).epsilon(delta) <= 1.0

    def test_large_delta_needs_no_epsilon(self) -> None:
        assert Composition([(Gaussian(sigma=1000), 10)]).epsilon(0.3) == 0.0

    def test_more_failures_than_delta(self) -> None:
        composition = Composition([(Approximate(loss=0.1, failure=1e-7), 100)])
        assert composition.epsilon(1e-6) == math.inf
        assert composition.epsilon_bounds(1e-6) == (math.inf, math.inf)
        assert composition.delta(1000) == pytest.approx(1e-5, rel=1e-5)
        assert composition.epsilon(1.1e-5) < 10.0

    def test_laws_that_share_nothing(self) -> None:
        apart = FinitePair(with_person=(1, 0), without=(0, 1))
        for parts in ([(apart, 2)], [apart, (COIN, 3)]):
            assert Composition(parts).epsilon_bounds(0.5) == (math.inf, math.inf)
            assert Composition(parts).delta(3.0) == pytest.approx(1.0)
        assert Composition([(Approximate(loss=0, failure=1e-9), 9)]).epsilon_bounds(1e-6) == (0.0, 0.0)

    @pytest.mark.long
    @pytest.mark.parametrize("scale", [Fraction(1, 10**50), Fraction(1, 1000), 10**6, 10**50])
    @pytest.mark.parametrize("kind", [Gaussian, Laplace])
    def test_extreme_scales(self, kind: type[Event], scale: Fraction) -> None:
        event = Gaussian(sigma=scale) if kind is Gaussian else Laplace(scale=scale)
        low, high = Composition([(event, 20)]).epsilon_bounds(1e-6)
        assert 0 <= low <= high < math.inf
        assert high <= low * 1.001 + 1e-9 or high <= 20 * event.epsilon()

    @pytest.mark.long
    def test_claims_without_a_loss_distribution_are_refused(self) -> None:
        with pytest.raises(Unsupported):
            Composition([(ZeroConcentrated(charge=0.1), 2)]).epsilon(1e-6)
        assert Composition([ZeroConcentrated(charge=0.1)]).epsilon(1e-6) > 0

    @pytest.mark.parametrize("delta", [1, 1.5, -0.1, math.nan, math.inf, True, "small", None])
    def test_senseless_delta(self, delta: object) -> None:
        with pytest.raises(InvalidArgument):
            Composition([COIN]).epsilon(delta)  # type: ignore[arg-type]

    @pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf, False, "small", None])
    def test_senseless_epsilon(self, epsilon: object) -> None:
        with pytest.raises(InvalidArgument):
            Composition([COIN]).delta(epsilon)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "parts", [["coin"], [3], [(COIN, 0)], [(COIN, -1)], [(COIN, 1.5)], [(COIN, True)], [(COIN,)]]
    )
    def test_senseless_parts(self, parts: list[object]) -> None:
        with pytest.raises(InvalidArgument):
            Composition(parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(3, 20), Fraction(73, 100)], ids=str)
@pytest.mark.parametrize("times", [2, 3, 4])
def test_a_sampled_batch_of_lopsided_pairs_is_covered(times: int, rate: Fraction) -> None:
    """Against enumeration: much mass at the very top, which a window that ends one step early would lose."""
    pairs = [
        ((7 / 13, 3 / 7, 3 / 91), (37 / 446, 29 / 446, 190 / 223)),
        ((0.2299, 0.06999, 0.00008, 0.70003), (0.7661, 0.0000001, 0.1331, 0.1007999)),
    ]
    for raw_p, raw_q in pairs:
        p, q = (tuple(Fraction(x) / sum(map(Fraction, law)) for x in law) for law in (raw_p, raw_q))
        event = Repeated(event=FinitePair(with_person=p, without=q), times=times)
        sampled = PoissonSubsampled(event=event, rate=rate)
        outputs = [
            (math.prod(p[i] for i in places), math.prod(q[i] for i in places))
            for places in itertools.product(range(len(p)), repeat=times)
        ]
        for level in (0.0, 0.01, 0.3, 1.0, 2.0, 4.0):
            grown = Fraction(math.exp(level))
            mixed = [((1 - rate) * b + rate * a, b) for a, b in outputs]
            removed = sum(max(Fraction(0), a - grown * b) for a, b in mixed)
            added = sum(max(Fraction(0), b - grown * a) for a, b in mixed)
            truth = float(max(removed, added))
            assert truth * (1 - 1e-12) <= sampled.delta(level) <= truth * 1.001 + 1e-9
