"""Batches on random samples, as a Gaussian but for a failure: never below the true curve, hardly above it."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer

from sfumato.core.approximate_gaussian import mu_but_for
from sfumato.core.composition import Composition
from sfumato.core.conversions import epsilon_of_mu
from sfumato.core.events import DiscreteGaussianVector, Event, Gaussian, PoissonSubsampled, Repeated

FAILURE = 1e-7


def sampled(sigma: Fraction, rate: Fraction, times: int) -> Event:
    return Repeated(event=PoissonSubsampled(event=Gaussian(sigma=sigma), rate=rate), times=times)


def bound(mu: float, epsilon: float) -> float:
    """Return the delta of what is claimed: a failure, or else a Gaussian of mu."""
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        gaussian = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        return float(FAILURE + (1 - FAILURE) * gaussian)


@pytest.mark.long
@pytest.mark.parametrize(
    ("sigma", "rate", "times", "dearer"),
    [(Fraction(26, 10), Fraction(1, 6), 300, 1.01), (Fraction(8, 10), Fraction(1, 100), 100, 1.5)],
)
def test_the_true_curve_lies_below_the_claim_everywhere_and_meets_it(
    sigma: Fraction, rate: Fraction, times: int, dearer: float
) -> None:
    """Another library's optimistic and pessimistic curves are around the true one."""
    batch = sampled(sigma, rate, times)
    mu = float(mu_but_for(batch, FAILURE))
    levels = [mu * (mu / 2 + place / 4) for place in range(25)]
    low, high = (
        peer.from_gaussian_mechanism(
            float(sigma),
            sampling_prob=float(rate),
            value_discretization_interval=1e-4,
            pessimistic_estimate=above,
            use_connect_dots=above,
        ).self_compose(times)
        for above in (False, True)
    )
    below = low.get_delta_for_epsilon(levels)
    assert all(true <= bound(mu, level) for true, level in zip(below, levels, strict=True))
    # A mu that is 1% less would be wrong: the true delta is above its curve somewhere.
    assert any(true > bound(0.99 * mu, level) for true, level in zip(below, levels, strict=True))
    assert mu < 0.9 * float(batch.mu())
    ours, theirs = Composition([batch]).epsilon(1e-5), high.get_epsilon_for_delta(1e-5)
    assert low.get_epsilon_for_delta(1e-5) <= ours <= 1.001 * theirs
    # What is charged, with the failure, costs little more than the batch by itself, where it is a long one.
    assert ours <= epsilon_of_mu(mu, 1e-5 - FAILURE) < dearer * ours


def test_integer_noise_costs_what_real_noise_costs() -> None:
    rate, square = Fraction(1, 6), Fraction(26, 10) ** 2
    vector = DiscreteGaussianVector(sigma_squared=square * 4**20, l2_squared=Fraction(4**20))
    whole = Repeated(event=PoissonSubsampled(event=vector, rate=rate), times=300)
    assert mu_but_for(whole, FAILURE) == mu_but_for(sampled(Fraction(26, 10), rate, 300), FAILURE)
