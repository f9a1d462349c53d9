"""Factorisations: the published errors, the sensitivity by brute force, and noise that is what it claims."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from sfumato.continual.correlated_noise import CorrelatedNoise, slack, steps_for
from sfumato.continual.factorisation import Factorisation, square_root
from sfumato.continual.participation import Participation
from sfumato.continual.rates import Buffers, buffers
from sfumato.continual.remembered import packed_integers, unpacked_integers
from sfumato.continual.series import deviation, period_deviations, total_deviations
from sfumato.core.arguments import FloatArray
from sfumato.core.events import DiscreteGaussianVector
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.rules import GaussianRule, Rule, ZeroConcentratedRule
from sfumato.errors import InvalidArgument

ONCE = Participation()


def errors(factorisation: Factorisation | Buffers, horizon: int) -> tuple[float, float]:
    """Return the largest and the root mean squared error of running totals, in units of sigma."""
    length = math.sqrt(factorisation.l2_squared(ONCE))
    found = length * total_deviations(factorisation, horizon)
    return float(found.max()), float(np.sqrt((found**2).mean()))


def matrix(factorisation: Factorisation | Buffers, horizon: int) -> FloatArray:
    """Return C, from the inverse of its inverse."""
    inverse = factorisation.inverse(horizon)
    lower = np.array([[inverse[s - t] if s >= t else 0.0 for t in range(horizon)] for s in range(horizon)])
    return np.linalg.inv(lower)


@pytest.mark.parametrize(("horizon", "largest", "mean"), [(365, 2.944, 2.782), (1024, 3.273, 3.110)])
def test_the_published_errors(horizon: int, largest: float, mean: float) -> None:
    assert np.round(errors(square_root(horizon), horizon), 3).tolist() == [largest, mean]


@pytest.mark.parametrize("horizon", [16, 30, 100, 365, 1024])
def test_buffers_are_nearly_as_good(horizon: int) -> None:
    """Up to the design horizon; and their guarantee never ends."""
    largest, mean = errors(square_root(horizon), horizon)
    assert errors(buffers(horizon), horizon)[0] < 1.016 * largest
    assert errors(buffers(horizon), horizon)[1] < 0.997 * mean
    after = errors(buffers(horizon), 4 * horizon)[0]
    assert 1.15 * largest < after < 1.5 * largest, "errors grow past it"


def appearances(participation: Participation, horizon: int) -> Iterator[tuple[int, ...]]:
    for many in range(1, participation.periods + 1):
        for chosen in itertools.combinations(range(horizon), many):
            if all(after - before >= participation.apart for before, after in itertools.pairwise(chosen)):
                yield chosen


@pytest.mark.parametrize(
    ("factorisation", "horizon"), [(square_root(9), 9), (buffers(16), 400)], ids=["root", "buffers"]
)
@pytest.mark.parametrize(("periods", "apart"), [(1, 1), (2, 1), (3, 2), (2, 5), (9, 1), (9, 3)])
def test_no_appearances_change_more_than_the_sensitivity(
    factorisation: Factorisation | Buffers, horizon: int, periods: int, apart: int
) -> None:
    """All of nine periods, with changes of either sign and in two groups; and one of them reaches it.

    That of buffers is a sum without an end: after 400 periods nearly all of it is there.
    """
    often = len(Participation(periods=periods, apart=apart).earliest(9))
    participation = Participation(periods=often, apart=apart)
    encoder, bound = matrix(factorisation, horizon)[:, :9], float(factorisation.l2_squared(participation))
    random = np.random.default_rng(5)
    reached = 0.0
    for chosen in appearances(participation, 9):
        same = np.zeros(9)
        same[list(chosen)] = 1
        reached = max(reached, float(((encoder @ same) ** 2).sum()))
        for _ in range(5):
            changed, angle = np.zeros((9, 2)), random.uniform(0, 2 * np.pi, len(chosen))
            changed[list(chosen)] = np.column_stack((np.cos(angle), np.sin(angle)))
            assert ((encoder @ changed) ** 2).sum() <= bound * (1 + 1e-9)
    assert reached == pytest.approx(bound, rel=1e-6) and reached <= bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("factorisation", "horizon"), [(square_root(40), 40), (buffers(16), 80)], ids=["root", "buffers"]
)
def test_neighbours_shift_independent_noise_by_no_more_than_claimed(
    factorisation: Factorisation | Buffers, horizon: int
) -> None:
    """The same outputs from two streams: the noise that the second needs, less that of the first."""
    random = np.random.default_rng(3)
    steps = steps_for(factorisation, 2, 1)
    participation = Participation(periods=4, apart=5)
    bound = math.sqrt(factorisation.l2_squared(participation)) * steps
    bound += math.sqrt(factorisation.roundings * 2) * (1 + slack(factorisation))
    assert bound < math.sqrt(factorisation.l2_squared(participation)) * steps + 2**-20 * steps + 1e-6
    finer = [2 ** factorisation.extra_bits(number) for number in range(1, horizon + 1)]
    longest = 0.0
    for _ in range(20):
        first = CorrelatedNoise(factorisation)
        drawn = [GaussianNoise(Fraction(steps * fine) ** 2).draw(2) for fine in finer]
        noise = [first.next(each) for each in drawn]
        change = np.zeros((horizon, 2), dtype=object)
        for period in range(0, 20, 5):
            angle, size = random.uniform(0, 1.5), steps * finer[period]
            change[period] = [math.floor(size * math.cos(angle)), math.floor(size * math.sin(angle))]
        second = CorrelatedNoise(factorisation)
        shifts = []
        for period in range(horizon):  # the fresh noise that makes the second stream publish the same
            wanted = noise[period] - change[period]
            fresh = wanted + second._held.carried(2)
            assert second.next(fresh).tolist() == wanted.tolist()
            shifts.append((fresh - drawn[period]).astype(float) / finer[period])
        longest = max(longest, float(np.linalg.norm(shifts)))
    assert 0.8 * bound < longest <= bound


def test_rounding_never_adds_more_however_long_a_stream_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs of which each is chosen so that two neighbours round the next period differently.

    They differ by one step, once. With steps that never become finer the length would be sqrt(periods).
    """
    monkeypatch.setattr("sfumato.continual.correlated_noise._FINER", 6)  # few bits: many such outputs
    factorisation, periods = buffers(16), 500
    bound = math.sqrt(factorisation.roundings) * (1 + slack(factorisation))
    one, other = (CorrelatedNoise(factorisation) for _ in range(2))
    one.next([5])
    other.next([4])
    column = np.array([1.0, *_coefficients(factorisation, periods)])
    shifts = [1.0]
    for number in range(2, periods + 1):
        fine = 2.0 ** factorisation.extra_bits(number)
        apart = int(one._held.carried(1)[0] - other._held.carried(1)[0])
        shifts.append(-apart / fine)
        tries = []
        for noise in (one, other):
            ahead = CorrelatedNoise(factorisation)
            ahead.resume([np.repeat(noise._held.kept, 256)], number - 1)
            carried = ahead._held.carried(256)
            ahead.next(np.arange(256) + carried)
            tries.append(ahead._held.carried(256))
        wanted = int(np.argmax(np.abs(tries[0] - tries[1])))
        for noise in (one, other):
            assert noise.next(noise._held.carried(1) + wanted).tolist() == [wanted]
    rounding = np.array(shifts) - np.sign(shifts[0]) * column[:periods]
    assert 0.5 * bound < np.linalg.norm(rounding) <= bound < math.sqrt(periods) / 4


@pytest.mark.parametrize(("periods", "apart"), [(1, 1), (10, 7), (365, 1), (30, 100)])
def test_the_sum_without_an_end_is_that_of_very_many_periods(periods: int, apart: int) -> None:
    """Added up over 10,000 periods past the last appearance; and no end of them is more."""
    given, many = buffers(365), periods * apart + 10_000
    column, changed = np.array([1.0, *_coefficients(given, many)]), np.zeros(many)
    for start in range(0, periods * apart, apart):
        changed[start:] += column[: many - start]
    found, bound = (
        float((changed**2).sum()),
        float(given.l2_squared(Participation(periods=periods, apart=apart))),
    )
    assert found <= bound * (1 + 1e-12) and bound <= found * (1 + 1e-6)


@pytest.mark.parametrize("rule", [GaussianRule(), ZeroConcentratedRule()], ids=lambda rule: rule.name)
def test_noise_in_finer_steps_costs_no_more(rule: Rule) -> None:
    for square in (1000, 1001, 12345, 10**9, 10**20):
        prices = [
            rule.price(DiscreteGaussianVector(sigma_squared=square * 4**bits, l2_squared=7 * 4**bits))
            for bits in range(12)
        ]
        assert prices == sorted(prices, reverse=True)


def test_errors_of_very_long_streams() -> None:
    """A convolution by Fourier transforms is as exact as intervals need."""
    given, weights = buffers(365), np.zeros(9_000)
    weights[4_000:] = 1
    exact = np.linalg.norm(np.convolve(given.inverse(9_000), weights[::-1])[:9_000])
    assert deviation(given, weights) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("bits", [20, 45, 59, 61, 90])
@pytest.mark.parametrize("factorisation", [square_root(40), buffers(16)], ids=["root", "buffers"])
def test_fast_sums_are_those_of_exact_integers(factorisation: Factorisation | Buffers, bits: int) -> None:
    """Whatever fits in 64 bits, and what does not: noise is that of the definition, in Python's integers."""
    random, noise = np.random.default_rng(bits), CorrelatedNoise(factorisation)
    earlier: list[list[int]] = []
    held = [[0] * 3 for _ in range(4)]
    for number in range(1, 41):
        fresh = [int(part * 2.0**bits) + 1 for part in random.uniform(-1, 1, 3).tolist()]
        if isinstance(factorisation, Factorisation):
            sums = [
                sum(
                    c * old[place]
                    for c, old in zip(factorisation.coefficients[1:], earlier[::-1], strict=False)
                )
                for place in range(3)
            ]
            wanted = [z - ((total + (1 << 23)) >> 24) for z, total in zip(fresh, sums, strict=True)]
        else:
            finer = factorisation.extra_bits(number) - factorisation.extra_bits(max(1, number - 1))
            held = [[one << finer for one in row] for row in held]
            pairs = list(zip(factorisation.weights, held, strict=False))
            sums = [sum(weight * row[place] for weight, row in pairs) for place in range(3)]
            wanted = [z - ((total + (1 << 45)) >> 46) for z, total in zip(fresh, sums, strict=True)]
            held = [
                [((rate * old + (1 << 29)) >> 30) + (u << 16) for old, u in zip(row, wanted, strict=True)]
                for rate, row in zip(factorisation.rates, held, strict=False)
            ]
        assert noise.next(np.array(fresh, dtype=object if bits > 62 else np.int64)).tolist() == wanted
        earlier.append(wanted)
        if number == 20:  # and after a restart, from what the state keeps
            kept = [np.array(one, dtype=object) for one in earlier] if not noise.forgets else [noise.kept]
            noise = CorrelatedNoise(factorisation)
            noise.resume([unpacked_integers(packed_integers(one)) for one in kept], number)


def _coefficients(given: Buffers, periods: int) -> FloatArray:
    powers, pairs = np.arange(periods - 1), zip(given.rates, given.weights, strict=True)
    return np.sum([weight / 2**30 * (rate / 2**30) ** powers for rate, weight in pairs], axis=0)


def test_differences_have_errors_of_their_own() -> None:
    factorisation, weights = square_root(30), np.zeros(30)
    weights[29], weights[28] = 1, -1
    single = deviation(factorisation, np.eye(30)[29])
    assert deviation(factorisation, weights) > math.sqrt(2) * single, "neighbouring days have opposite errors"
    assert deviation(factorisation, np.ones(30)) == pytest.approx(total_deviations(factorisation, 30)[-1])
    assert deviation(factorisation, np.ones(30)) < single * math.sqrt(30) / 3


def test_totals_without_missing_periods() -> None:
    """One recursion for all of them, beside the sum that each of them is."""
    factorisation, there = square_root(30), np.ones(30)
    there[[3, 4, 20]] = 0
    found = total_deviations(factorisation, 30, {4, 5, 21})
    each = [deviation(factorisation, there[: last + 1]) for last in range(30)]
    assert found == pytest.approx(each, rel=1e-12)
    days = [deviation(factorisation, np.eye(30)[last][: last + 1]) for last in range(30)]
    assert period_deviations(factorisation, 30) == pytest.approx(days, rel=1e-12)


def test_a_horizon_ends() -> None:
    noise = CorrelatedNoise(square_root(2))
    noise.next([1])
    with pytest.raises(InvalidArgument, match="come later"):
        noise.next([1, 5])
    noise.next([1])
    with pytest.raises(InvalidArgument, match="used up"):
        noise.next([1])


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, 1 << 21])
def test_horizons_that_are_none(wrong: object) -> None:
    with pytest.raises(InvalidArgument):
        square_root(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [(), (1 << 23,), (1 << 24, 5, 6), (1 << 24, -1)])
def test_coefficients_that_prove_nothing(wrong: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Factorisation(wrong)
