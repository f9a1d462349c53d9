"""Batches, partitions and samples of events."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.events import (
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
from sfumato.errors import InvalidArgument, Unsupported

F = Fraction
REMOVE, ADD = Direction.REMOVE, Direction.ADD
mp.mp.dps = 40


# -- batches ------------------------------------------------------------------------------


def test_series_add() -> None:
    assert Repeated(event=Pure(loss=0.1), times=10).epsilon() == 1
    assert Composed(events=[Pure(loss=0.1)] * 10).epsilon() == 1
    batch = Composed(events=(Laplace(scale=2), DiscreteLaplace(scale=3, sensitivity=1)))
    assert batch.epsilon() == F(5, 6)
    mixed = Composed(events=(Laplace(scale=2), RandomizedResponse(truth=F(3, 4), choices=2)))
    assert F(mixed.epsilon()) >= F(1, 2) + F(math.log(3))
    assert mixed.epsilon() == pytest.approx(0.5 + math.log(3), rel=1e-15)
    assert Composed(events=(Laplace(scale=2), Gaussian(sigma=9))).epsilon() == math.inf


def test_rho_and_mu_of_gaussians_are_exact() -> None:
    batch = Repeated(event=Gaussian(sigma=50), times=1000)
    assert batch.rho() == F(1000, 5000)
    assert Repeated(event=Gaussian(sigma=50), times=2500).mu() == 1
    assert F(batch.mu()) ** 2 >= F(1000, 2500)
    assert batch.mu() == pytest.approx(math.sqrt(0.4), rel=1e-15)
    integers = Repeated(event=DiscreteGaussian(sigma_squared=2500, sensitivity=1), times=4)
    assert integers.rho() == F(4, 5000)
    assert integers.mu() == pytest.approx(2 * float(integers.event.mu()), rel=1e-14)
    assert integers.mu() >= 2 * integers.event.mu()
    assert Composed(events=(Gaussian(sigma=9), ZeroConcentrated(charge=1))).mu() == math.inf


ELEMENTARY: list[Event] = [
    Laplace(scale=2),
    Gaussian(sigma=3),
    DiscreteLaplace(scale=3, sensitivity=2),
    DiscreteGaussian(sigma_squared=7, sensitivity=1),
    RandomizedResponse(truth=F(3, 4), choices=2),
    RandomizedResponse(truth=F(1, 4), choices=9),
    FinitePair(with_person=(F(1, 2), F(1, 2)), without=(F(1, 4), F(3, 4))),
    Pure(loss=0.3),
    ZeroConcentrated(charge=0.2),
]


@pytest.mark.parametrize("event", ELEMENTARY, ids=repr)
def test_a_repeated_event_costs_what_a_loop_of_it_costs(event: Event) -> None:
    """For every kind alike: a count that one kind forgets is a count of one."""
    times = 7
    repeated, loop = Repeated(event=event, times=times), Composed(events=(event,) * times)
    assert repeated.parts() == loop.parts() == ((event, times),)
    for cost in ("epsilon", "rho", "mu"):
        assert getattr(repeated, cost)() == getattr(loop, cost)()
    assert repeated.renyi(3.0) == loop.renyi(3.0)
    assert repeated.rho() >= times * event.rho()
    assert repeated.rho() == pytest.approx(times * float(event.rho()), rel=1e-14)
    assert repeated.renyi(3.0) == pytest.approx(times * event.renyi(3.0), rel=1e-14)
    assert repeated.epsilon() == pytest.approx(times * float(event.epsilon()), rel=1e-14)
    assert repeated.mu() == pytest.approx(math.sqrt(times) * float(event.mu()), rel=1e-14)
    assert repeated.symmetric == event.symmetric


def test_parts_are_flattened_and_counted_together() -> None:
    a, b = Laplace(scale=2), Gaussian(sigma=3)
    nested = Composed(
        events=(Repeated(event=Composed(events=(a, b, a)), times=5), b, Repeated(event=a, times=2))
    )
    assert nested.parts() == ((a, 12), (b, 6))
    assert Repeated(event=Repeated(event=a, times=3), times=4).parts() == ((a, 12),)
    kept_whole = Parallel(events=(a, b))
    assert Composed(events=(kept_whole, kept_whole)).parts() == ((kept_whole, 2),)


def test_groups_of_a_batch_are_batches_of_groups() -> None:
    batch = Composed(events=(Repeated(event=Gaussian(sigma=6), times=4), Pure(loss=0.5)))
    assert batch.group(3) == Composed(events=(Repeated(event=Gaussian(sigma=2), times=4), Pure(loss=1.5)))
    assert Repeated(event=Pure(loss=0.1), times=10).group(5).epsilon() == 5


# -- partitions ---------------------------------------------------------------------------


def test_parallel_takes_the_maximum() -> None:
    apart = Parallel(events=(Laplace(scale=2), Pure(loss=0.3), DiscreteLaplace(scale=5, sensitivity=3)))
    assert apart.epsilon() == F(3, 5)
    assert apart.rho() == max(event.rho() for event in apart.events)
    assert apart.mu() == max(event.mu() for event in apart.events)
    assert apart.renyi(2.0) == max(event.renyi(2.0) for event in apart.events)
    assert apart.delta(0.2) == max(event.delta(0.2) for event in apart.events)
    assert apart.parts() == ((apart, 1),)
    assert apart.symmetric


def test_the_curve_of_a_partition_is_the_highest_of_its_parts() -> None:
    parts = (
        Gaussian(sigma=4),
        Pure(loss=F(1, 4)),
        FinitePair(with_person=(F(1, 10), F(9, 10)), without=(F(1, 20), F(19, 20))),
        PoissonSubsampled(event=Laplace(scale=F(1, 2)), rate=F(1, 10)),
    )
    apart = Parallel(events=parts)
    levels = np.linspace(-3, 3, 1201)
    for direction in (REMOVE, ADD):
        p, q = apart.tails(levels, direction)
        sticks = [
            part_p - np.exp(levels) * part_q
            for part_p, part_q in (part.tails(levels, direction) for part in parts)
        ]
        assert p - np.exp(levels) * q == pytest.approx(np.max(sticks, axis=0), abs=1e-15)
        assert len({int(np.argmax(column)) for column in np.transpose(sticks)}) >= 3  # all of them matter
        # A curve of some pair: its slope in e^level is -Q(L > level), never rising.
        assert (np.diff(q) <= 1e-14).all()
        assert (np.diff(p) <= 1e-14).all()


def test_where_curves_cross_the_flatter_one_counts() -> None:
    """Strict tails at the crossing: the slope from the right. Both pairs have total variation 1/4."""
    steep = FinitePair(with_person=(F(3, 4), F(1, 4)), without=(F(1, 2), F(1, 2)))
    flat = FinitePair(with_person=(F(1, 2), F(1, 2)), without=(F(1, 4), F(3, 4)))
    for events in ((steep, flat), (flat, steep)):
        p, q = Parallel(events=events).tails(np.array([0.0]), REMOVE)
        assert (float(p[0]), float(q[0])) == (0.5, 0.25)


def test_groups_may_be_spread_over_the_parts() -> None:
    assert Parallel(events=(Pure(loss=0.1), Pure(loss=0.2))).group(3) == Pure(loss=0.6)
    assert Parallel(events=(Gaussian(sigma=2), Gaussian(sigma=5))).group(2) == Gaussian(sigma=1)
    claims = Parallel(events=(ZeroConcentrated(charge=0.1), Gaussian(sigma=10)))
    assert claims.group(3) == ZeroConcentrated(charge=0.9)


# -- samples ------------------------------------------------------------------------------


@st.composite
def pairs(draw: st.DrawFn) -> FinitePair:
    size = draw(st.integers(1, 5))
    weights = st.lists(st.integers(0, 12), min_size=size, max_size=size).filter(any)
    laws = [draw(weights) for _ in range(2)]
    return FinitePair(
        with_person=tuple(F(weight, sum(laws[0])) for weight in laws[0]),
        without=tuple(F(weight, sum(laws[1])) for weight in laws[1]),
    )


@given(pairs(), st.fractions(F(1, 100), 1, max_denominator=100))
def test_a_sampled_pair_is_the_pair_of_mixtures(pair: FinitePair, rate: Fraction) -> None:
    """Against the mixture written out: every direction, level, and infinite loss."""
    mixture = FinitePair(
        with_person=tuple(
            rate * p + (1 - rate) * q for p, q in zip(pair.with_person, pair.without, strict=True)
        ),
        without=pair.without,
    )
    sampled = PoissonSubsampled(event=pair, rate=rate)
    levels = np.concatenate([np.linspace(-5, 5, 101) + 0.00123, [-math.inf, math.inf]])
    for direction in (REMOVE, ADD):
        for mine, truth in zip(
            sampled.tails(levels, direction), mixture.tails(levels, direction), strict=True
        ):
            assert mine == pytest.approx(truth, abs=1e-14)
        low, high = mixture.support(direction)
        assert sampled.support(direction)[0] <= low + 1e-12
        assert sampled.support(direction)[1] >= high
    for epsilon in (0.0, 0.1, 1.0):
        assert sampled.delta(epsilon) == pytest.approx(mixture.delta(epsilon), rel=1e-9, abs=1e-12)
    if math.isfinite(pair.epsilon()):
        assert sampled.epsilon() >= mixture.epsilon() * (1 - 1e-15)


@pytest.mark.parametrize("rate", [F(1, 1000), F(1, 10), F(9, 10), F(1)])
@pytest.mark.parametrize("loss", [F(1, 100), F(1), F(40), F(2000)])
def test_epsilon_is_amplified_exactly(loss: Fraction, rate: Fraction) -> None:
    exact_rate = mp.mpf(rate.numerator) / rate.denominator
    truth = mp.log(1 + exact_rate * mp.expm1(mp.mpf(loss.numerator) / loss.denominator))
    epsilon = mp.mpf(float(PoissonSubsampled(event=Pure(loss=loss), rate=rate).epsilon()))
    assert truth * (1 - mp.mpf(2) ** -52) <= epsilon <= truth * (1 + mp.mpf("1e-10"))


@pytest.mark.parametrize(
    ("sigma", "rate", "order"), [(1.1, 0.01, 2), (0.7, 0.1, 8), (5.0, 0.5, 3), (1.1, 0.01, 32)]
)
def test_sampled_gaussian_renyi_is_the_integral_in_the_worse_direction(
    sigma: float, rate: float, order: int
) -> None:
    s, r = mp.mpf(sigma), mp.mpf(rate)

    def log_ratio(x: mp.mpf) -> mp.mpf:
        return mp.log(1 - r + r * mp.exp((2 * x - 1) / (2 * s * s)))

    def divergence(power: int, ends: list[mp.mpf]) -> mp.mpf:
        moment = mp.quad(lambda x: mp.npdf(x, 0, s) * mp.exp(power * log_ratio(x)), ends)
        return mp.log(moment) / (order - 1)

    with mp.workdps(20):
        removed = divergence(order, [-12 * s, 0, 1, order / 2, order, order + 12 * s])
        added = divergence(1 - order, [-12 * s, -2 * s, 0, 1, 12 * s])
    value = PoissonSubsampled(event=Gaussian(sigma=sigma), rate=rate).renyi(float(order))
    assert removed >= added
    assert removed * (1 - mp.mpf("1e-12")) <= value <= removed * (1 + mp.mpf("1e-9"))


@pytest.mark.parametrize("event", [e for e in ELEMENTARY if e.symmetric], ids=repr)
def test_the_binomial_formula_serves_every_symmetric_event(event: Event) -> None:
    sampled = PoissonSubsampled(event=event, rate=F(1, 5))
    moment = mp.fsum(
        mp.binomial(4, k)
        * mp.mpf("0.8") ** (4 - k)
        * mp.mpf("0.2") ** k
        * (mp.exp((k - 1) * mp.mpf(event.renyi(float(k)))) if k > 1 else 1)
        for k in range(5)
    )
    assert sampled.renyi(4.0) == pytest.approx(float(mp.log(moment) / 3), rel=1e-9)
    assert sampled.renyi(4.0) < event.renyi(4.0)


def test_asymmetric_pairs_are_looked_at_from_both_sides() -> None:
    """A rare outcome that the person makes rarer still: adding them is the worse direction."""
    pair = FinitePair(with_person=(F(1, 1000), F(999, 1000)), without=(F(1, 10), F(9, 10)))
    rate = F(9, 10)
    mixture = FinitePair(
        with_person=tuple(
            rate * p + (1 - rate) * q for p, q in zip(pair.with_person, pair.without, strict=True)
        ),
        without=pair.without,
    )
    sampled = PoissonSubsampled(event=pair, rate=rate)
    for order in (2.0, 3.0, 6.5):
        assert sampled.renyi(order) == pytest.approx(mixture.renyi(order), rel=1e-3)
        assert sampled.renyi(order) >= mixture.renyi(order) * (1 - 1e-10)
    assert sampled.delta(1.0) == pytest.approx(mixture.delta(1.0), rel=1e-9)


def test_a_sample_of_everyone_is_everyone() -> None:
    whole = PoissonSubsampled(event=Gaussian(sigma=2), rate=1)
    assert whole.symmetric
    assert whole.renyi(2.5) == Gaussian(sigma=2).renyi(2.5)
    assert whole.delta(0.5) == Gaussian(sigma=2).delta(0.5)
    assert whole.support(ADD) == Gaussian(sigma=2).support(ADD)
    assert not PoissonSubsampled(event=Gaussian(sigma=2), rate=F(1, 2)).symmetric


def test_sampling_never_costs_more() -> None:
    for event in ELEMENTARY:
        sampled = PoissonSubsampled(event=event, rate=F(1, 3))
        assert sampled.epsilon() < event.epsilon() or math.isinf(event.epsilon())
        assert sampled.rho() <= event.rho()
        assert sampled.mu() <= event.mu()


def test_groups_of_a_sample_go_by_what_is_claimed_of_one() -> None:
    sampled = PoissonSubsampled(event=Pure(loss=1), rate=F(1, 10))
    assert sampled.group(3) == Pure(loss=3 * F(sampled.epsilon()))
    noisy = PoissonSubsampled(event=Gaussian(sigma=6), rate=F(1, 10))
    assert noisy.group(3) == Gaussian(sigma=2)
    certain = FinitePair(with_person=(F(1), F(0)), without=(F(1, 2), F(1, 2)))
    with pytest.raises(Unsupported):
        PoissonSubsampled(event=certain, rate=F(1, 2)).group(2)


# -- through the loss distribution ----------------------------------------------------------


def test_a_batch_of_gaussians_is_a_gaussian() -> None:
    batch, whole = Repeated(event=Gaussian(sigma=20), times=100), Gaussian(sigma=2)
    for epsilon in (0.0, 0.5, 2.0):
        assert whole.delta(epsilon) <= batch.delta(epsilon) * (1 + 1e-9)
        assert batch.delta(epsilon) == pytest.approx(whole.delta(epsilon), rel=1e-3)
    levels = np.linspace(0.0, 3.0, 31)
    p, q = batch.tails(levels, REMOVE)
    true_p, true_q = whole.tails(levels, REMOVE)
    stick, true_stick = p - np.exp(levels) * q, true_p - np.exp(levels) * true_q
    assert (stick >= true_stick * (1 - 1e-9) - 1e-12).all()
    assert stick == pytest.approx(true_stick, rel=1e-3, abs=1e-9)
    low, high = batch.support(REMOVE)
    assert low < -2
    assert high > 3


def test_batches_can_be_parts_and_samples() -> None:
    batch = Composed(events=(Gaussian(sigma=5), Repeated(event=Gaussian(sigma=10), times=12)))  # mu = 0.4
    whole = Gaussian(sigma=F(5, 2))
    sampled, apart = (
        PoissonSubsampled(event=batch, rate=F(1, 4)),
        Parallel(events=(batch, Pure(loss=F(1, 5)))),
    )
    for epsilon in (0.1, 0.6):
        small = PoissonSubsampled(event=whole, rate=F(1, 4)).delta(epsilon)
        assert small * (1 - 1e-9) <= sampled.delta(epsilon) <= small * 1.001
        assert apart.delta(epsilon) == pytest.approx(
            Parallel(events=(whole, Pure(loss=F(1, 5)))).delta(epsilon), rel=1e-3
        )
        p, q = sampled.tails(np.array([epsilon]), REMOVE)
        assert small * (1 - 1e-9) <= float(p[0] - math.exp(epsilon) * q[0]) <= small * 1.001


@pytest.mark.parametrize("rate", [F(1, 10**4), F(1, 10**11)], ids=str)
@pytest.mark.parametrize("loss", [F(1, 2), F(2), F(40)], ids=str)
def test_small_samples_keep_their_digits(loss: Fraction, rate: Fraction) -> None:
    """Against 60 digits: epsilon and the divergence near order 1 are not below the truth, where a sum of
    large and nearly opposite terms would be."""
    event = PoissonSubsampled(event=Pure(loss=loss), rate=rate)
    with mp.workdps(60):
        r, e = mp.mpf(rate.numerator) / rate.denominator, mp.mpf(loss.numerator) / loss.denominator
        truth = mp.log(1 + r * mp.expm1(e))
        assert truth <= event.epsilon() <= truth * (1 + mp.mpf(10) ** -9)
        p, a = 1 / (1 + mp.exp(-e)), mp.mpf("1.0001")
        pairs = [((1 - r) * (1 - p) + r * p, 1 - p), ((1 - r) * p + r * (1 - p), p)]
        divergence = mp.log(mp.fsum(x**a * y ** (1 - a) for x, y in pairs)) / (a - 1)
        assert divergence <= event.renyi(1.0001)


@pytest.mark.parametrize(("sigma", "rate"), [(F(3, 2), F(1, 10**5)), (F(1), F(1, 100)), (F(4), F(1, 3))])
def test_sampled_renyi_rises_with_the_order(sigma: Fraction, rate: Fraction) -> None:
    """Between whole orders too, where the moment may come from forty standard deviations out: a bound
    that looks only at where the mass is would be nine orders of magnitude too small."""
    event = PoissonSubsampled(event=Gaussian(sigma=sigma), rate=rate)
    orders = [1.5, 2, 2.5, 3, 8, 8.25, 9, 31.5, 32, 64, 64.5, 65]
    values = [event.renyi(order) for order in orders]
    assert values == sorted(values)
    nested = PoissonSubsampled(event=PoissonSubsampled(event=Gaussian(sigma=sigma), rate=F(1, 2)), rate=rate)
    assert nested.renyi(64) >= PoissonSubsampled(event=Gaussian(sigma=sigma), rate=rate / 2).renyi(64)
    assert Parallel(events=(event,)).renyi(64.5) == event.renyi(64.5)


@pytest.mark.parametrize("gap", [F(1, 10**10), F(1, 10**14), F(71, 25 * 10**15)], ids=str)
def test_a_sample_of_nearly_everyone(gap: Fraction) -> None:
    """An output that only the unsampled give has the probability `gap` / 2, which floats must not lose."""
    pair = FinitePair(with_person=(0, 1), without=(F(1, 2), F(1, 2)))
    event = PoissonSubsampled(event=pair, rate=1 - gap)
    level = float(-mp.log(mp.mpf(gap.numerator) / gap.denominator)) - 0.01
    truth = F(1, 2) - F(math.exp(level)) * gap / 2
    assert event.delta(level) >= float(truth) * (1 - 1e-9)
    with pytest.raises(InvalidArgument):
        PoissonSubsampled(event=pair, rate=1 - F(1, 10**20))
    with pytest.raises(InvalidArgument):
        PoissonSubsampled(event=pair, rate=F(1, 10**200))
