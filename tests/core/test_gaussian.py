"""The Gaussian mechanism: its law, its exact loss, its intervals, with and without a grid."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from sfumato.core.adjacency import Sensitivity
from sfumato.core.events import DiscreteGaussian, DiscreteGaussianVector, Repeated
from sfumato.core.gaussian import GaussianMechanism
from sfumato.core.grid import Grid
from sfumato.core.mechanism import Mechanism
from sfumato.errors import InvalidArgument

F = Fraction
CENTS = Grid(step=F(1, 100), lower=-5, upper=20)


@pytest.mark.parametrize("square", [F(1, 20), F(1, 2), F(1), F(7, 3), F(900)], ids=str)
def test_pmf_is_a_law_and_its_logarithm_the_loss(square):
    noise = GaussianMechanism(sigma_squared=square)
    reach = math.ceil(12 * math.sqrt(square)) + 3
    assert math.fsum(noise.pmf(o, 1) for o in range(1 - reach, 2 + reach)) == pytest.approx(1, abs=1e-13)
    with mpmath.workdps(50):
        s = mpmath.mpf(square.numerator) / square.denominator
        total = mpmath.nsum(lambda x: mpmath.exp(-x * x / (2 * s)), [-mpmath.inf, mpmath.inf])
        for output in (0, 1, 3):
            wanted = mpmath.exp(-(mpmath.mpf(output - 1) ** 2) / (2 * s)) / total
            assert noise.pmf(output, 1) == pytest.approx(float(wanted), rel=1e-12)
    for output in (-1, 0, 1, 2):
        ratio = math.log(noise.pmf(output, 1) / noise.pmf(output, 2))
        assert float(noise.privacy_loss(output, 1, 2)) == pytest.approx(ratio, rel=1e-9, abs=1e-9)
    assert isinstance(noise, Mechanism)


@pytest.mark.parametrize("order", [2, 5, 17])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_renyi_divergence_of_the_law_is_within_rho(order, sensitivity):
    """Exact sum over the outputs: at most order * rho, and not far below it."""
    noise = GaussianMechanism(F(5, 2), sensitivity=sensitivity)
    logs = [
        math.log(noise.pmf(o, 0)) + (order - 1) * float(noise.privacy_loss(o, 0, sensitivity))
        for o in range(-90, 91)
    ]
    divergence = special.logsumexp(logs) / (order - 1)
    claimed = order * float(noise.event.rho())
    assert 0.999 * claimed <= divergence <= claimed * (1 + 1e-12)


@given(
    x=st.floats(-10, 30),
    move=st.floats(-0.37, 0.37),
    step=st.sampled_from([F(1, 100), F(1, 8), F(1, 3), F(2)]),
)
def test_rounding_to_the_grid_is_paid_for(x, move, step):
    grid = Grid(step=step, lower=-5, upper=20)
    noise = GaussianMechanism(2, sensitivity=0.37, grid=grid)
    y = float(x + move)
    if abs(F(y) - F(x)) <= F(0.37):
        apart = abs(grid.to_integer(x) - grid.to_integer(y))
        assert apart**2 / (2 * (4 / step**2)) <= noise.event.rho()


def test_the_rho_asked_for_is_the_rho_paid():
    assert GaussianMechanism.from_rho(0.1).event == DiscreteGaussian(sigma_squared=F(5), sensitivity=1)
    assert GaussianMechanism.from_rho(0.3, sensitivity=7).event.rho() == F(3, 10)
    assert GaussianMechanism.from_rho(0.3, sensitivity=2.5, grid=CENTS).event.rho() == F(3, 10)
    box = Sensitivity(each=2, coordinates=5)
    vector = GaussianMechanism.from_rho(0.5, sensitivity=box)
    assert vector.sigma_squared == 20 and vector.sigma == pytest.approx(math.sqrt(20))
    assert vector.event == Repeated(event=DiscreteGaussian(sigma_squared=20, sensitivity=2), times=5)
    assert vector.event.rho() == F(1, 2)


@pytest.mark.parametrize(
    "sensitivity",
    [3, Sensitivity(each=1, coordinates=5), Sensitivity(each=3, coordinates=10, l2_squared_bound=9)],
    ids=str,
)
@pytest.mark.parametrize("grid", [None, Grid(step=F(1, 8), lower=-9, upper=9)], ids=["integers", "grid"])
def test_a_budget_is_met_and_hardly_undershot(sensitivity, grid):
    noise = GaussianMechanism.from_budget(1, 1e-6, sensitivity=sensitivity, grid=grid)
    assert 0.99e-6 <= noise.event.delta(1) <= 1e-6
    less = GaussianMechanism(
        sigma_squared=noise.sigma_squared * F(999, 1000), sensitivity=sensitivity, grid=grid
    )
    assert less.event.delta(1) > 1e-6


def test_a_tighter_norm_is_a_smaller_claim():
    ball = Sensitivity(each=3, coordinates=4, l2_squared_bound=9)
    assert GaussianMechanism(6, sensitivity=ball).event == DiscreteGaussianVector(
        sigma_squared=36, l2_squared=9
    )
    assert GaussianMechanism.from_rho(F(1, 8), sensitivity=ball).sigma_squared == 36
    coarse = GaussianMechanism(6, sensitivity=ball, grid=Grid(step=F(1, 2), lower=-9, upper=9))
    # Rounding to the grid adds sqrt(4) steps.
    assert coarse.event == DiscreteGaussianVector(sigma_squared=144, l2_squared=(6 + 2) ** 2)
    box = Sensitivity(each=3, coordinates=4, l2_squared_bound=36)
    assert isinstance(GaussianMechanism(6, sensitivity=box).event, Repeated)


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=4, max_size=4),
    st.sampled_from([F(1, 8), F(1, 3), F(1)]),
)
def test_rounded_vectors_stay_within_the_rounded_norms(pairs, step):
    changes = [abs(F(x) - F(y)) for x, y in pairs]
    l1, l2_squared = sum(changes), sum(c**2 for c in changes)
    if not l1:
        return
    norms = Sensitivity(each=6, coordinates=4, l1_bound=l1, l2_squared_bound=min(l2_squared, F(144)))
    grid = Grid(step=step, lower=-10, upper=10)
    steps = [abs(grid.to_integer(x) - grid.to_integer(y)) for x, y in pairs]
    square = GaussianMechanism(1, sensitivity=norms, grid=grid).event.rho() * 2 / step**2
    assert sum(s**2 for s in steps) <= square


@pytest.mark.parametrize("grid", [None, CENTS], ids=["integers", "cents"])
def test_arrays_have_the_law(grid):
    """False alarm below 1e-9; power: a sigma off by 1%, or noise not in units of the grid."""
    sigma, value = (F(5, 2), 3) if grid is None else (F(1, 40), 3.0)
    noise = GaussianMechanism(sigma, sensitivity=Sensitivity(each=1), grid=grid)
    released = noise.release(np.full(400_000, value))
    step = 1 if grid is None else 0.01
    offsets = np.rint((released - value) / step).astype(int)
    outputs = np.arange(-8, 9)
    chances = np.array([noise.pmf(3 + o if grid is None else F(300 + int(o), 100), value) for o in outputs])
    counts = np.array([(offsets == o).sum() for o in outputs] + [(np.abs(offsets) > 8).sum()])
    wanted = np.append(chances, 1 - chances.sum()) * len(released)
    assert stats.chisquare(counts, wanted, sum_check=False).pvalue > 5e-10


def test_scalars_have_the_law():
    """False alarm below 1e-9, with no bin of few draws; power: a sigma off by 10%."""
    noise = GaussianMechanism(sigma_squared=2)
    drawn = [noise.release(7) for _ in range(6000)]
    assert all(type(d) is int for d in drawn)
    outputs = range(4, 11)
    chances = np.array([noise.pmf(o, 7) for o in outputs])
    counts = [drawn.count(o) for o in outputs]
    wanted = np.append(chances, 1 - chances.sum()) * 6000
    assert stats.chisquare([*counts, 6000 - sum(counts)], wanted, sum_check=False).pvalue > 3e-10


def test_wide_noise_is_not_cut_off():
    """Sigma 1e30: all 64 draws below 2^63 would need a chance of 1e-700."""
    noise = GaussianMechanism(10**30, sensitivity=Sensitivity(each=1))
    assert max(abs(d) for d in noise.release([0] * 64)) > 2**63
    assert noise.error(0.95) == pytest.approx(1.959963984540054e30, rel=1e-10)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.999999])
@pytest.mark.parametrize("square", [F(1, 50), F(1, 2), F(1), F(100), F(10**4), F(123456)], ids=str)
def test_error_is_the_smallest_half_width(square, level):
    width = GaussianMechanism(sigma_squared=square).error(level)
    far = math.ceil(10 * math.sqrt(square)) + 2
    with mpmath.workdps(40):
        s = mpmath.mpf(square.numerator) / square.denominator
        weights = [mpmath.exp(-mpmath.mpf(x * x) / (2 * s)) for x in range(far)]
        total = 2 * mpmath.fsum(weights) - 1
        inside = (2 * mpmath.fsum(weights[: width + 1]) - 1) / total
        assert inside >= mpmath.mpf(repr(level))
        assert width == 0 or (2 * mpmath.fsum(weights[:width]) - 1) / total < mpmath.mpf(repr(level))


def test_intervals():
    noise = GaussianMechanism(2)
    width = noise.error(0.9)
    assert noise.interval(100, 0.9) == (100 - width, 100 + width)
    low, high = noise.interval(np.array([5, 6]), 0.9)
    assert low.tolist() == [5 - width, 6 - width] and high.tolist() == [5 + width, 6 + width]
    real = GaussianMechanism(F(1, 10), grid=CENTS)
    low, high = real.interval(3.07, 0.95)
    assert (low, high) == (2.87, 3.27)


BAD = [math.nan, math.inf, -math.inf, -1, 0, True, "1", float("1e400"), [1]]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_senseless_parameters_are_refused(bad):
    for build, place in [
        (lambda: GaussianMechanism(bad), "sigma"),
        (lambda: GaussianMechanism(sigma_squared=bad), "sigma_squared"),
        (lambda: GaussianMechanism(1, sensitivity=bad), "sensitivity"),
        (lambda: GaussianMechanism.from_rho(bad), "rho"),
        (lambda: GaussianMechanism.from_rho(1, sensitivity=bad), "sensitivity"),
        (lambda: GaussianMechanism.from_budget(bad, 1e-6), "epsilon"),
        (lambda: GaussianMechanism.from_budget(1, 1e-6, sensitivity=bad), "sensitivity"),
    ]:
        with pytest.raises(InvalidArgument) as caught:
            build()
        assert caught.value.place == place


def test_other_senseless_arguments_are_refused():
    for build in (
        lambda: GaussianMechanism(),
        lambda: GaussianMechanism(1, sigma_squared=1),
        lambda: GaussianMechanism(F(1, 10**200)),
        lambda: GaussianMechanism(1, grid=3),
        lambda: GaussianMechanism.from_rho(1, grid=3),
        lambda: GaussianMechanism.from_rho(None),
        lambda: GaussianMechanism(1).release(1.5),
        lambda: GaussianMechanism(1).release([1, 2]),
        lambda: GaussianMechanism(1).error(1),
    ):
        with pytest.raises(InvalidArgument):
            build()
    for delta in (1, 1.5, -1e-9, math.nan, True, "1e-6", None, 0):
        with pytest.raises(InvalidArgument):
            GaussianMechanism.from_budget(1, delta)
