"""Beside dp-accounting, an independent implementation, for every event that it supports."""

from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting as peer
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer_pld

from sfumato.core.composition import Composition
from sfumato.core.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
)

GRID = {"value_discretization_interval": 1e-4, "use_connect_dots": True}

pytestmark = pytest.mark.long

CASES = [
    pytest.param(
        Gaussian(sigma=50), lambda: peer_pld.from_gaussian_mechanism(50, **GRID), 300, id="gaussian"
    ),
    pytest.param(Laplace(scale=20), lambda: peer_pld.from_laplace_mechanism(20, **GRID), 100, id="laplace"),
    pytest.param(
        DiscreteLaplace(scale=20, sensitivity=3),
        lambda: peer_pld.from_discrete_laplace_mechanism(1 / 20, sensitivity=3, **GRID),
        50,
        id="discrete-laplace",
    ),
    pytest.param(
        DiscreteGaussian(sigma_squared=2500, sensitivity=2),
        lambda: peer_pld.from_discrete_gaussian_mechanism(50, sensitivity=2, **GRID),
        100,
        id="discrete-gaussian",
    ),
    pytest.param(
        RandomizedResponse(truth=Fraction(11, 20), choices=2),
        # Its parameter is the chance that the report is drawn at random instead of being the truth.
        lambda: peer_pld.from_randomized_response(0.9, 2, value_discretization_interval=1e-6),
        40,
        id="randomized-response",
        marks=pytest.mark.soak,  # the peer takes seconds
    ),
    pytest.param(
        PoissonSubsampled(event=Gaussian(sigma=1.1), rate=Fraction(1, 100)),
        lambda: peer_pld.from_gaussian_mechanism(1.1, sampling_prob=0.01, **GRID),
        1000,
        id="sampled-gaussian",
    ),
    pytest.param(
        PoissonSubsampled(event=Laplace(scale=3), rate=Fraction(1, 10)),
        lambda: peer_pld.from_laplace_mechanism(3, sampling_prob=0.1, **GRID),
        50,
        id="sampled-laplace",
    ),
]


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(("event", "build", "times"), CASES)
def test_epsilon_agrees(event, build, times, delta):
    """Both are upper bounds on one number: they agree to 0.05%, and neither is below our lower bound."""
    low, high = Composition([(event, times)]).epsilon_bounds(delta)
    theirs = build().self_compose(times).get_epsilon_for_delta(delta)
    assert high == pytest.approx(theirs, rel=5e-4)
    assert low <= theirs * (1 + 1e-9)
    assert high <= low * 1.001


@pytest.mark.parametrize("order", [2, 8, 33])
def test_renyi_agrees(order):
    """At whole orders; between them the peer interpolates and is above, up to twice the true integral."""
    for sigma, rate in [(Fraction(11, 10), Fraction(1, 100)), (Fraction(3), Fraction(1, 5))]:
        theirs = peer.rdp.RdpAccountant([order])
        theirs.compose(peer.PoissonSampledDpEvent(float(rate), peer.GaussianDpEvent(float(sigma))))
        ours = PoissonSubsampled(event=Gaussian(sigma=sigma), rate=rate).renyi(order)
        assert ours == pytest.approx(theirs._rdp[0], rel=1e-9)


def test_a_heterogeneous_batch_agrees():
    """200 discrete Laplace and 300 discrete Gaussian, which the peer composes by hand."""
    ours = Composition(
        [
            (DiscreteLaplace(scale=20, sensitivity=1), 200),
            (DiscreteGaussian(sigma_squared=2500, sensitivity=1), 300),
        ]
    )
    theirs = (
        peer_pld.from_discrete_laplace_mechanism(1 / 20, **GRID)
        .self_compose(200)
        .compose(peer_pld.from_discrete_gaussian_mechanism(50, **GRID).self_compose(300))
    )
    low, high = ours.epsilon_bounds(1e-6)
    assert low <= theirs.get_epsilon_for_delta(1e-6)
    assert math.isclose(high, theirs.get_epsilon_for_delta(1e-6), rel_tol=5e-4)
    assert high <= low * 1.001
