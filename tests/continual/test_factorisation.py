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
from sfumato.continual.series import deviation, period_deviations, total_deviations
from sfumato.core.arguments import FloatArray
from sfumato.core.gaussian import GaussianNoise
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
    largest = errors(square_root(horizon), horizon)[0]
    assert errors(buffers(horizon, horizon), horizon)[0] < 1.002 * largest
    assert errors(buffers(horizon), horizon)[0] < 1.04 * largest, "and go on for ever"


def appearances(participation: Participation, horizon: int) -> Iterator[tuple[int, ...]]:
    for many in range(1, participation.periods + 1):
        for chosen in itertools.combinations(range(horizon), many):
            if all(after - before >= participation.apart for before, after in itertools.pairwise(chosen)):
                yield chosen


@pytest.mark.parametrize("factorisation", [square_root(9), buffers(9, 9)], ids=["root", "buffers"])
@pytest.mark.parametrize(("periods", "apart"), [(1, 1), (2, 1), (3, 2), (2, 5), (9, 1), (9, 3)])
def test_no_appearances_change_more_than_the_sensitivity(
    factorisation: Factorisation | Buffers, periods: int, apart: int
) -> None:
    """All of them, with changes of either sign and in two groups; and one of them reaches it."""
    horizon, participation = 9, Participation(periods=periods, apart=apart)
    encoder, bound = matrix(factorisation, horizon), float(factorisation.l2_squared(participation))
    random = np.random.default_rng(5)
    reached = 0.0
    for chosen in appearances(participation, horizon):
        same = np.zeros(horizon)
        same[list(chosen)] = 1
        reached = max(reached, float(((encoder @ same) ** 2).sum()))
        for _ in range(5):
            changed, angle = np.zeros((horizon, 2)), random.uniform(0, 2 * np.pi, len(chosen))
            changed[list(chosen)] = np.column_stack((np.cos(angle), np.sin(angle)))
            assert ((encoder @ changed) ** 2).sum() <= bound * (1 + 1e-9)
    assert reached == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("factorisation", [square_root(40), buffers(40, 40)], ids=["root", "buffers"])
def test_neighbours_shift_independent_noise_by_no_more_than_claimed(
    factorisation: Factorisation | Buffers,
) -> None:
    """The same outputs from two streams: the noise that the second needs, less that of the first."""
    horizon, random = 40, np.random.default_rng(3)
    steps = steps_for(factorisation, 2)
    participation = Participation(periods=4, apart=5)
    bound = math.sqrt(factorisation.l2_squared(participation)) * steps
    bound += math.sqrt(horizon * 2) * (1 + slack(factorisation))
    assert bound < math.sqrt(factorisation.l2_squared(participation)) * steps + 2**-20 * steps + 1e-6
    longest = 0.0
    for _ in range(20):
        law = GaussianNoise(Fraction(steps * steps))
        first = CorrelatedNoise(factorisation)
        drawn = [law.draw(2) for _ in range(horizon)]
        noise = [first.next(each) for each in drawn]
        change = np.zeros((horizon, 2), dtype=object)
        for period in range(0, 20, 5):
            angle = random.uniform(0, 1.5)
            change[period] = [math.floor(steps * math.cos(angle)), math.floor(steps * math.sin(angle))]
        second = CorrelatedNoise(factorisation)
        shifts = []
        for period in range(horizon):  # the fresh noise that makes the second stream publish the same
            wanted = noise[period] - change[period]
            fresh = wanted + second._held.carried(2)
            assert second.next(fresh).tolist() == wanted.tolist()
            shifts.append(fresh - np.asarray(drawn[period], dtype=object))
        longest = max(longest, math.sqrt(float((np.array(shifts) ** 2).sum())))
    assert 0.8 * bound < longest <= bound


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
    noise.next([1, 5])  # a number that is new
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
