"""The odometer: running sums in every currency, the tight batch, and the difference between them."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from sfumato.core.accountant import Odometer
from sfumato.core.conversions import epsilon_of_mu
from sfumato.core.events import Approximate, Gaussian, Laplace, Pure
from sfumato.core.rules import GaussianRule, PureRule, ZeroConcentratedRule
from sfumato.errors import InvalidArgument, Unsupported

from .senseless import NOT_DELTAS, name

F = Fraction


def of(*events):
    odometer = Odometer()
    for event in events:
        odometer.record(event)
    return odometer


def test_running_sums():
    odometer = of(*[Laplace(scale=F(10))] * 20)
    pure, zcdp, gaussian = odometer.readings(1e-6)
    assert pure.total == 2 and pure.epsilon < 2
    assert zcdp.epsilon < 3 and gaussian.epsilon < 4
    assert [reading.rule for reading in odometer.readings(1e-6)] == [
        PureRule(),
        ZeroConcentratedRule(),
        GaussianRule(),
    ]


def test_the_batch_is_never_dearer_than_the_sums_and_exact_for_gaussians():
    gaussians = of(*[Gaussian(sigma=F(50))] * 100)
    exact = epsilon_of_mu(F(1, 5), 1e-6)
    assert exact * (1 - 1e-9) <= gaussians.batch(1e-6).epsilon <= exact * 1.001
    assert gaussians.read(GaussianRule(), 1e-6).epsilon == pytest.approx(exact, rel=1e-9)
    mixed = of(*[Laplace(scale=F(20))] * 30, *[Gaussian(sigma=F(50))] * 30)
    tight = mixed.batch(1e-6).epsilon
    assert all(tight < reading.epsilon for reading in mixed.readings(1e-6))


def test_an_event_without_a_price_reads_infinite():
    pure, zcdp, gaussian = of(Pure(loss=1), Gaussian(sigma=F(2))).readings(1e-6)
    assert pure.total == pure.epsilon == float("inf")
    assert zcdp.epsilon < float("inf") and gaussian.epsilon < float("inf")


def test_keys_use_their_part_of_delta():
    odometer = Odometer()
    odometer.record(Gaussian(sigma=F(10)), keys_delta=1e-7)
    assert odometer.keys_delta == F(1, 10**7)
    assert odometer.batch(2e-7).epsilon > of(Gaussian(sigma=F(10))).batch(2e-7).epsilon
    with pytest.raises(Unsupported):
        odometer.batch(1e-7)


def test_a_batch_that_may_fail_more_often_than_delta_is_refused():
    with pytest.raises(Unsupported):
        of(Approximate(loss=F(1), failure=F(1, 100))).batch(1e-6)


def test_nothing_recorded_costs_nothing():
    assert Odometer().batch(1e-6).epsilon == 0
    assert all(reading.total == reading.epsilon == 0 for reading in Odometer().readings(1e-6))


def test_it_continues_from_its_record():
    odometer = of(Laplace(scale=F(1, 3)), Gaussian(sigma=F(7)))
    again = Odometer.from_dict(json.loads(json.dumps(odometer.to_dict())))
    assert again.events == odometer.events and again.keys_delta == odometer.keys_delta


@pytest.mark.parametrize(
    "record", [{}, {"events": [{}], "keys_delta": "0"}, {"events": [], "keys_delta": "1/0"}]
)
def test_malformed_records_are_refused(record):
    with pytest.raises((InvalidArgument, Unsupported)):
        Odometer.from_dict(record)


@pytest.mark.parametrize("value", NOT_DELTAS, ids=name)
def test_senseless_deltas_are_refused_and_nothing_recorded(value):
    odometer = Odometer()
    with pytest.raises(InvalidArgument):
        odometer.record(Laplace(scale=F(1)), keys_delta=value)
    with pytest.raises(InvalidArgument):
        odometer.read(PureRule(), value)
    with pytest.raises(InvalidArgument):
        odometer.batch(value)
    assert odometer.events == ()


def test_only_events_are_recorded():
    with pytest.raises(InvalidArgument):
        Odometer().record(0.1)  # type: ignore[arg-type]
