"""What holds for every event: refusals, records, and consistency of its curves with its loss tails."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.events import (
    Approximate,
    Composed,
    Direction,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
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
from sfumato.core.search import exp_excess, root_above, sum_above
from sfumato.errors import InvalidArgument, Unsupported

F = Fraction
mp.mp.dps = 40
THIRDS = (F(1, 3), F(1, 3), F(1, 3))

ELEMENTARY: dict[str, Event] = {
    "laplace": Laplace(scale=F(3, 2)),
    "narrow laplace": Laplace(scale=F(1, 9)),
    "gaussian": Gaussian(sigma=F(5, 4)),
    "wide gaussian": Gaussian(sigma=50),
    "discrete laplace": DiscreteLaplace(scale=F(7, 3), sensitivity=4),
    "discrete laplace, odd shift": DiscreteLaplace(scale=2, sensitivity=1),
    "discrete gaussian": DiscreteGaussian(sigma_squared=F(25, 4), sensitivity=3),
    "narrow discrete gaussian": DiscreteGaussian(sigma_squared=F(1, 5), sensitivity=1),
    "wide discrete gaussian": DiscreteGaussian(sigma_squared=10**8, sensitivity=4000),
    "coin toss": RandomizedResponse(truth=F(3, 4), choices=2),
    "ten choices": RandomizedResponse(truth=F(2, 5), choices=10),
    "rare truth": RandomizedResponse(truth=F(1, 50), choices=5),
    "finite pair": FinitePair(with_person=(F(1, 2), F(1, 3), F(1, 6)), without=THIRDS),
    "finite pair, certain outcomes": FinitePair(
        with_person=(F(1, 10), F(6, 10), F(3, 10), F(0)), without=(F(0), F(3, 10), F(1, 2), F(1, 5))
    ),
    "pure": Pure(loss=F(7, 10)),
    "approximate": Approximate(loss=F(1, 2), failure=F(1, 1000)),
}
COMBINED: dict[str, Event] = {
    "sampled gaussian": PoissonSubsampled(event=Gaussian(sigma=F(11, 10)), rate=F(1, 100)),
    "sampled discrete gaussian": PoissonSubsampled(
        event=DiscreteGaussian(sigma_squared=2, sensitivity=1), rate=F(1, 5)
    ),
    "sampled finite pair": PoissonSubsampled(event=ELEMENTARY["finite pair, certain outcomes"], rate=F(1, 3)),
    "sampled twice": PoissonSubsampled(
        event=PoissonSubsampled(event=Laplace(scale=1), rate=F(1, 2)), rate=F(1, 4)
    ),
    "sampled wholly": PoissonSubsampled(event=Laplace(scale=1), rate=1),
    "parallel": Parallel(events=(Laplace(scale=2), Gaussian(sigma=4), Pure(loss=F(1, 4)))),
    "parallel of samples": Parallel(
        events=(
            PoissonSubsampled(event=Gaussian(sigma=1), rate=F(1, 10)),
            ELEMENTARY["finite pair"],
        )
    ),
}
WITH_TAILS = ELEMENTARY | COMBINED
ALL: dict[str, Event] = WITH_TAILS | {
    "zero-concentrated": ZeroConcentrated(charge=F(1, 8)),
    "repeated": Repeated(event=ELEMENTARY["laplace"], times=7),
    "composed": Composed(
        events=(Repeated(event=Gaussian(sigma=3), times=2), ELEMENTARY["ten choices"], Gaussian(sigma=3))
    ),
}


def both_ways(events: dict[str, Event]) -> list[Any]:
    return [
        pytest.param(event, direction, id=f"{name}, {direction.value}")
        for name, event in events.items()
        for direction in event.directions
    ]


def levels_of(event: Event, direction: Direction, number: int = 4001) -> np.ndarray:
    """Levels across the support and beyond; irrational steps, so that no atom is met by chance."""
    low, high = event.support(direction)
    reach = (high - low) * (1 + 1 / math.pi) + 1 / math.e
    return low - reach / math.sqrt(50) + reach * np.arange(number) / (number - 1)


# -- the tails ----------------------------------------------------------------------------


@pytest.mark.parametrize(("event", "direction"), both_ways(WITH_TAILS))
def test_tails_fall_from_one_and_stay_within_the_support(event: Event, direction: Direction) -> None:
    levels = levels_of(event, direction)
    p, q = event.tails(levels, direction)
    assert p.shape == q.shape == levels.shape
    for tail in (p, q):
        assert (tail >= 0).all()
        assert (tail <= 1).all()
        assert (np.diff(tail) <= 1e-15).all()
    low, high = event.support(direction)
    assert math.isfinite(low)
    assert math.isfinite(high)
    at_infinity, unseen = event.tails(np.array([math.inf]), direction)
    assert unseen[0] == 0
    assert event.tails(np.array([high]), direction)[0][0] - at_infinity[0] <= 1e-40
    everything, _ = event.tails(np.array([low - 1e-6 * (1 + abs(low)), -math.inf]), direction)
    assert everything == pytest.approx([1, 1], abs=1e-15)


@pytest.mark.parametrize(("event", "direction"), both_ways(WITH_TAILS))
def test_the_two_tails_describe_the_same_outputs(event: Event, direction: Direction) -> None:
    """Outputs of loss in (a, b] weigh between e^-b and e^-a times as much under Q as under P."""
    levels = levels_of(event, direction)
    levels = levels[(levels > -600) & (levels < 600)]
    p, q = event.tails(levels, direction)
    cells_p, cells_q = -np.diff(p), -np.diff(q)
    rounding_p, rounding_q = 2.0**-43 * p[:-1], 2.0**-43 * q[:-1]
    assert (cells_q >= np.exp(-levels[1:]) * (cells_p - rounding_p) - rounding_q).all()
    assert (cells_q <= np.exp(-levels[:-1]) * (cells_p + rounding_p) + rounding_q).all()


@pytest.mark.parametrize("event", WITH_TAILS.values(), ids=WITH_TAILS)
def test_one_direction_is_the_other_seen_from_behind(event: Event) -> None:
    """{L > l} is {-L < -l}, and -L is the loss of the other direction, whose P is this Q."""
    levels = levels_of(event, Direction.REMOVE)
    p, q = event.tails(levels, Direction.REMOVE)
    back_p, back_q = event.tails(-levels, Direction.ADD)
    assert p == pytest.approx(1 - back_q, abs=3e-14)
    assert q == pytest.approx(1 - back_p, abs=3e-14)


# -- the curves ---------------------------------------------------------------------------


@pytest.mark.parametrize("event", WITH_TAILS.values(), ids=WITH_TAILS)
def test_delta_is_the_hockey_stick_of_the_tails(event: Event) -> None:
    for epsilon in (0.0, 0.01, 0.3, 1.0, 2.5):
        deltas = []
        for direction in event.directions:
            p, q = event.tails(np.array([epsilon]), direction)
            deltas.append(float(p[0] - math.exp(epsilon) * q[0]))
        assert event.delta(epsilon) == pytest.approx(max(deltas), rel=1e-9, abs=3e-15)
        assert event.delta(epsilon) >= max(deltas) - 1e-16


@pytest.mark.parametrize("event", WITH_TAILS.values(), ids=WITH_TAILS)
def test_epsilon_is_where_the_loss_ends(event: Event) -> None:
    epsilon = event.epsilon()
    if math.isinf(epsilon):
        assert any(event.tails(np.array([event.support(way)[1]]), way)[0][0] > 0 for way in event.directions)
        return
    levels = np.array([float(epsilon) * (1 - 1e-10), math.nextafter(float(epsilon), math.inf)])
    below, above = (
        max(pair) for pair in zip(*(event.tails(levels, way)[0] for way in event.directions), strict=True)
    )
    assert below > 0
    assert above == 0


def moments(event: Event, direction: Direction, order: float) -> tuple[float, float]:
    """Bounds on the Renyi divergence from a fine table of the tails."""
    low, high = event.support(direction)
    reach = high - low
    levels = np.linspace(low - reach / 100, high + reach / 100, 200_001)
    p, _ = event.tails(levels, direction)
    cells = np.maximum(0, -np.diff(p))
    if p[-1] > 1e-40:
        return math.inf, math.inf
    shift = (order - 1) * levels.max()
    lower = math.log(float(cells @ np.exp((order - 1) * levels[:-1] - shift)) + 1e-300)
    upper = math.log(float(cells @ np.exp((order - 1) * levels[1:] - shift)) + 1e-300)
    return (lower + shift) / (order - 1), (upper + shift) / (order - 1)


# Orders at which the moment lies within the support of the tails, which is cut at P < 1e-40.
@pytest.mark.parametrize("order", [1.25, 2.0, 3.5, 8.0])
@pytest.mark.parametrize("event", ELEMENTARY.values(), ids=ELEMENTARY)
def test_renyi_agrees_with_the_tails(event: Event, order: float) -> None:
    bounds = [moments(event, direction, order) for direction in event.directions]
    lower, upper = (max(values) for values in zip(*bounds, strict=True))
    value = event.renyi(order)
    if math.isinf(value):
        assert math.isinf(upper)
        return
    assert value >= lower - 1e-12
    assert value <= upper + 1e-12 or isinstance(event, DiscreteGaussian)  # whose tail beyond 1e-40 may count


@pytest.mark.parametrize("event", ALL.values(), ids=ALL)
def test_rho_bounds_every_order(event: Event) -> None:
    if isinstance(event, PoissonSubsampled | Parallel):
        orders: tuple[float, ...] = (2.0, 3.0, 17.0)
    else:
        orders = (1.0001, 1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 100.0, 1e4)
    rho = event.rho()
    for order in orders:
        assert event.renyi(order) <= order * rho * (1 + 1e-9)


def gaussian_stick(mu: float, levels: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(mu / 2 - levels / mu) - np.exp(levels) * ndtr(-mu / 2 - levels / mu)


def exceeds_gaussian(event: Event, mu: float) -> bool:
    """Whether the event's curve rises above that of N(0,1) against N(mu,1) somewhere."""
    for direction in event.directions:
        low, high = event.support(direction)
        levels = np.linspace(max(low, -30.0), min(high, 30.0), 20_001)
        p, q = event.tails(levels, direction)
        stick = p - np.exp(levels) * q
        if (stick > gaussian_stick(mu, levels) + 1e-13 * p).any():
            return True
    return False


@pytest.mark.parametrize("event", WITH_TAILS.values(), ids=WITH_TAILS)
def test_mu_is_enough_and_where_it_is_claimed_to_be_the_smallest_no_less_is(event: Event) -> None:
    mu = float(event.mu())
    if math.isinf(mu):
        return
    assert not exceeds_gaussian(event, mu)
    if not event.symmetric or isinstance(event, PoissonSubsampled):
        return  # a sample's mu is that of the whole, and approached only in the limit
    assert exceeds_gaussian(event, mu * (1 - 1e-4))


# -- bad input ----------------------------------------------------------------------------

GOOD: list[tuple[type[Event], dict[str, Any]]] = [
    (Laplace, {"scale": 1}),
    (Gaussian, {"sigma": 1}),
    (DiscreteLaplace, {"scale": 1, "sensitivity": 1}),
    (DiscreteGaussian, {"sigma_squared": 1, "sensitivity": 1}),
    (RandomizedResponse, {"truth": F(1, 2), "choices": 2}),
    (FinitePair, {"with_person": (F(1, 2), F(1, 2)), "without": (F(1, 4), F(3, 4))}),
    (Pure, {"loss": 1}),
    (ZeroConcentrated, {"charge": 1}),
    (Approximate, {"loss": 1, "failure": 0.1}),
    (Repeated, {"event": Pure(loss=1), "times": 2}),
    (Composed, {"events": (Pure(loss=1),)}),
    (Parallel, {"events": (Pure(loss=1),)}),
    (PoissonSubsampled, {"event": Pure(loss=1), "rate": F(1, 2)}),
]
NEVER = [math.nan, math.inf, -math.inf, 1e400, -1, -0.5, True, "1", b"1", None, [1], {}, 1j]
ZERO_MAKES_SENSE = {("RandomizedResponse", "truth"), ("Approximate", "loss"), ("Approximate", "failure")}


@pytest.mark.parametrize("value", NEVER, ids=repr)
@pytest.mark.parametrize(("kind", "fields"), GOOD, ids=lambda part: getattr(part, "__name__", ""))
def test_senseless_arguments_are_refused(kind: type[Event], fields: dict[str, Any], value: Any) -> None:
    kind(**fields)
    for name in fields:
        with pytest.raises(InvalidArgument):
            kind(**(fields | {name: value}))


@pytest.mark.parametrize(("kind", "fields"), GOOD, ids=lambda part: getattr(part, "__name__", ""))
def test_zero_is_refused_where_it_is_senseless(kind: type[Event], fields: dict[str, Any]) -> None:
    for name in fields:
        if (kind.__name__, name) not in ZERO_MAKES_SENSE:
            with pytest.raises(InvalidArgument):
                kind(**(fields | {name: 0}))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (DiscreteLaplace, {"scale": 1, "sensitivity": 1.0}),
        (DiscreteGaussian, {"sigma_squared": 1, "sensitivity": 0.5}),
        (DiscreteGaussian, {"sigma_squared": 1, "sensitivity": 10**200}),
        (Laplace, {"scale": 10**500}),
        (Gaussian, {"sigma": F(1, 10**500)}),
        (RandomizedResponse, {"truth": 1.5, "choices": 2}),
        (RandomizedResponse, {"truth": 0.5, "choices": 1}),
        (Approximate, {"loss": 1, "failure": 1}),
        (FinitePair, {"with_person": (F(1, 2), F(1, 2)), "without": (F(1),)}),
        (FinitePair, {"with_person": (F(1, 2), F(1, 4)), "without": (F(1, 2), F(1, 2))}),
        (FinitePair, {"with_person": (0.1,) * 10, "without": (0.1,) * 10}),
        (FinitePair, {"with_person": (F(3, 2), F(-1, 2)), "without": (F(1, 2), F(1, 2))}),
        (FinitePair, {"with_person": (), "without": ()}),
        (PoissonSubsampled, {"event": Pure(loss=1), "rate": 1.5}),
        (Composed, {"events": ()}),
        (Parallel, {"events": (Pure(loss=1), 2)}),
    ],
)
def test_values_out_of_range_are_refused(kind: type[Event], fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        kind(**fields)


@pytest.mark.parametrize("event", ALL.values(), ids=ALL)
def test_arguments_of_the_curves_are_checked(event: Event) -> None:
    for bad in (math.nan, -0.5):
        with pytest.raises(InvalidArgument):
            event.delta(bad)
    for bad in (math.nan, 1.0, 0.5, -3.0):
        with pytest.raises(InvalidArgument):
            event.renyi(bad)


@pytest.mark.parametrize("event", ALL.values(), ids=ALL)
@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2"])
def test_a_group_has_a_whole_number_of_people(event: Event, size: Any) -> None:
    with pytest.raises(InvalidArgument):
        event.group(size)


# -- records ------------------------------------------------------------------------------

widths = st.fractions(min_value=F(1, 1000), max_value=1000).filter(bool)
rates = st.fractions(min_value=0, max_value=1, max_denominator=10**6)
shifts = st.integers(min_value=1, max_value=10**20)


@st.composite
def laws(draw: st.DrawFn, size: int) -> tuple[Fraction, ...]:
    weights = draw(st.lists(st.integers(0, 100), min_size=size, max_size=size).filter(any))
    return tuple(F(weight, sum(weights)) for weight in weights)


simple = st.one_of(
    st.builds(Laplace, scale=widths),
    st.builds(Gaussian, sigma=widths),
    st.builds(DiscreteLaplace, scale=widths, sensitivity=shifts),
    st.builds(DiscreteGaussian, sigma_squared=widths, sensitivity=shifts),
    st.builds(RandomizedResponse, truth=rates, choices=st.integers(2, 50)),
    st.builds(FinitePair, with_person=laws(4), without=laws(4)),
    st.builds(Pure, loss=widths),
    st.builds(ZeroConcentrated, charge=widths),
    st.builds(Approximate, loss=widths, failure=rates.filter(lambda rate: rate < 1)),
)
events = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(Repeated, event=inner, times=st.integers(1, 10**9)),
        st.builds(Composed, events=st.lists(inner, min_size=1, max_size=4).map(tuple)),
        st.builds(Parallel, events=st.lists(inner, min_size=1, max_size=4).map(tuple)),
        st.builds(PoissonSubsampled, event=inner, rate=rates.filter(bool)),
    ),
    max_leaves=6,
)


@given(events)
def test_a_record_read_back_is_the_same_event(event: Event) -> None:
    record = json.loads(json.dumps(event.to_dict()))
    again = Event.from_dict(record)
    assert again == event
    assert hash(again) == hash(event)
    assert again.parts() == event.parts()


def test_floats_are_kept_exactly_or_read_as_decimals() -> None:
    assert Laplace(scale=0.1).scale == F(0.1)  # a scale is what the float holds
    assert Pure(loss=0.1).loss == F(1, 10)  # a budget is what was written
    assert Approximate(loss=1, failure=1e-6).failure == F(1, 10**6)
    assert Composed(events=[Pure(loss=1)]) == Composed(events=(Pure(loss=1),))


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ({"kind": "Telepathy"}, Unsupported),
        ({"kind": "_Batch"}, Unsupported),
        ({"kind": "Event"}, Unsupported),
        ({"kind": "Laplace"}, InvalidArgument),
        ({"kind": "Laplace", "scale": "1/0"}, InvalidArgument),
        ({"kind": "Laplace", "scale": "wide"}, InvalidArgument),
        ({"kind": "Laplace", "scale": "-1/2"}, InvalidArgument),
        ({"kind": "Laplace", "scale": True}, InvalidArgument),
        ({"kind": "Laplace", "scale": None}, InvalidArgument),
        ({"kind": "Laplace", "scale": "1/2", "sigma": "1/2"}, InvalidArgument),
        ({"kind": "Repeated", "event": {}, "times": 2}, InvalidArgument),
        ({"kind": "Composed", "events": [3]}, InvalidArgument),
        ({"kind": ["Laplace"], "scale": "1/2"}, InvalidArgument),
        ({}, InvalidArgument),
        ([], InvalidArgument),
    ],
)
def test_a_malformed_record_is_refused(record: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Event.from_dict(record)


# -- rounding -----------------------------------------------------------------------------


@given(st.fractions(min_value=F(1, 10**9), max_value=10**9).filter(bool), st.integers(0, 400))
def test_a_root_is_never_rounded_down(value: Fraction, bits: int) -> None:
    """Just above the square of a float, where a root that is short by any amount shows."""
    for square in (value, F(float(value)) ** 2 + F(1, 2**bits)):
        root = F(root_above(square))
        assert root * root >= square
        assert root == square or root * root <= square * (1 + F(1, 2**51))
    assert root_above(value * value) == value


def test_sums_are_exact_or_next_above() -> None:
    assert sum_above([F(1, 3), F(1, 6)]) == F(1, 2)
    tiny = sum_above([F(1), 2.0**-80])
    assert tiny == math.nextafter(1.0, 2.0)
    assert sum_above([F(1), math.inf]) == math.inf


def test_the_excess_of_the_exponential_keeps_its_digits() -> None:
    x = np.array([-700.0, -1.0, -0.999, -1e-9, 0.0, 1e-150, 1e-5, 0.5, 0.999, 1.0, 300.0])
    truth = [float(mp.expm1(mp.mpf(value)) - mp.mpf(value)) for value in x.tolist()]
    assert exp_excess(x) == pytest.approx(truth, rel=4e-16)
    assert exp_excess(1e4) == math.inf
