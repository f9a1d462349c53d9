"""The Laplace mechanism: its law, its exact loss, its intervals, with and without a grid."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.core import laplace as module
from sfumato.core.adjacency import Sensitivity
from sfumato.core.events import DiscreteLaplace, Pure, Repeated
from sfumato.core.grid import Grid
from sfumato.core.laplace import LaplaceMechanism
from sfumato.core.mechanism import Mechanism
from sfumato.errors import InvalidArgument

F = Fraction
CENTS = Grid(step=F(1, 100), lower=-5, upper=20)
SCALES = [F(1, 3), F(1), F(7, 2), F(40), F(10**6)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_pmf_is_a_law_and_its_logarithm_the_loss(scale):
    noise = LaplaceMechanism(scale)
    if scale < 100:
        outputs = range(-math.ceil(40 * scale) - 2, math.ceil(40 * scale) + 5)
        assert math.fsum(noise.pmf(o, 1) for o in outputs) == pytest.approx(1, abs=1e-12)
    for output in (-5, 0, 1, 2, 9):
        ratio = math.log(noise.pmf(output, 1) / noise.pmf(output, 4))
        assert float(noise.privacy_loss(output, 1, 4)) == pytest.approx(ratio, rel=1e-9, abs=1e-9)
    assert isinstance(noise, Mechanism)


@given(
    scale=st.fractions(F(1, 50), 1000),
    x=st.integers(-100, 100),
    sensitivity=st.integers(1, 20),
    output=st.integers(-500, 500),
    data=st.data(),
)
def test_loss_never_exceeds_the_epsilon_of_the_event(scale, x, sensitivity, output, data):
    noise = LaplaceMechanism(scale, sensitivity=sensitivity)
    y = x + data.draw(st.integers(-sensitivity, sensitivity))
    assert abs(noise.privacy_loss(output, x, y)) <= noise.event.epsilon() == F(sensitivity) / scale
    # And it is attained.
    assert noise.privacy_loss(min(x, x + sensitivity) - 3, x, x + sensitivity) == noise.event.epsilon()


@given(
    x=st.floats(-10, 30),
    move=st.floats(-0.37, 0.37),
    step=st.sampled_from([F(1, 100), F(1, 8), F(1, 3), F(2)]),
    output=st.integers(-1000, 1000),
)
def test_rounding_to_the_grid_is_paid_for(x, move, step, output):
    """Real values 0.37 apart may be further apart on the grid; the event has to know."""
    grid = Grid(step=step, lower=-5, upper=20)
    noise = LaplaceMechanism(F(2), sensitivity=0.37, grid=grid)
    y = float(x + move)
    if abs(F(y) - F(x)) <= F(0.37):
        loss = noise.privacy_loss(output * step, x, y)
        assert abs(loss) <= noise.event.epsilon()


def test_ignoring_the_rounding_would_be_caught():
    grid = Grid(step=1, lower=0, upper=10)
    noise = LaplaceMechanism(1, sensitivity=F(1, 4), grid=grid)
    assert noise.event.epsilon() == 1  # a quarter became a whole step
    assert noise.privacy_loss(0, 0.4, 0.6) == 1


def test_the_epsilon_asked_for_is_the_epsilon_paid():
    assert LaplaceMechanism.from_epsilon(0.1).event == DiscreteLaplace(scale=F(10), sensitivity=1)
    assert LaplaceMechanism.from_epsilon(0.3, sensitivity=7).event.epsilon() == F(3, 10)
    assert LaplaceMechanism.from_epsilon(0.3, sensitivity=2.5, grid=CENTS).event.epsilon() == F(3, 10)
    assert LaplaceMechanism.from_epsilon(0.3, sensitivity=1000, grid=CENTS).scale == 25 / F(
        3, 10
    )  # the grid is 25 wide
    box = Sensitivity(each=2, coordinates=5)
    vector = LaplaceMechanism.from_epsilon(1, sensitivity=box)
    assert vector.scale == 10
    assert vector.event == Repeated(event=DiscreteLaplace(scale=10, sensitivity=2), times=5)
    assert vector.event.epsilon() == 1


def test_a_tighter_norm_is_a_smaller_claim():
    ball = Sensitivity(each=3, coordinates=4, l1_bound=5)
    assert LaplaceMechanism(10, sensitivity=ball).event == Pure(loss=F(1, 2))
    assert LaplaceMechanism.from_epsilon(1, sensitivity=ball).scale == 5
    coarse = LaplaceMechanism(10, sensitivity=ball, grid=Grid(step=F(1, 2), lower=-9, upper=9))
    assert coarse.event == Pure(loss=(10 + 4) / F(20))  # four entries may each be rounded apart by a step
    box = Sensitivity(each=3, coordinates=4, l1_bound=12)
    assert isinstance(LaplaceMechanism(10, sensitivity=box).event, Repeated)


@pytest.mark.parametrize("grid", [None, CENTS], ids=["integers", "cents"])
def test_arrays_have_the_law(grid):
    """False alarm below 1e-9; power: a scale off by 2%, or noise not in units of the grid."""
    scale, value = (F(5, 2), 3) if grid is None else (F(1, 40), 3.0)
    noise = LaplaceMechanism(scale, sensitivity=Sensitivity(each=1), grid=grid)
    released = noise.release(np.full(400_000, value))
    step = 1 if grid is None else 0.01
    offsets = np.rint((released - value) / step).astype(int)
    outputs = np.arange(-14, 15)
    chances = np.array([noise.pmf(3 + o if grid is None else F(300 + int(o), 100), value) for o in outputs])
    counts = np.array([(offsets == o).sum() for o in outputs] + [(np.abs(offsets) > 14).sum()])
    wanted = np.append(chances, 1 - chances.sum()) * len(released)
    assert stats.chisquare(counts, wanted, sum_check=False).pvalue > 5e-10


def test_scalars_have_the_law():
    """False alarm below 1e-9; power: a scale off by 10%."""
    noise = LaplaceMechanism(2)
    drawn = [noise.release(7) for _ in range(8000)]
    assert all(type(d) is int for d in drawn)
    outputs = range(1, 14)
    chances = np.array([noise.pmf(o, 7) for o in outputs])
    counts = [drawn.count(o) for o in outputs]
    wanted = np.append(chances, 1 - chances.sum()) * 8000
    assert stats.chisquare([*counts, 8000 - sum(counts)], wanted, sum_check=False).pvalue > 5e-10


def test_shapes_and_types():
    box = Sensitivity(each=1)
    noise = LaplaceMechanism(1, sensitivity=box)
    assert noise.release(np.zeros((2, 3), dtype=np.int8)).shape == (2, 3)
    assert noise.release([1, 2]).dtype == np.int64
    assert noise.release(np.array(5)).shape == ()
    assert noise.release(np.array([], dtype=np.int64)).shape == (0,)
    assert noise.release(np.array([2**64 - 1], dtype=np.uint64)).dtype == object
    assert noise.release(np.array([1], dtype=np.uint64)).dtype == np.int64
    assert type(noise.release(np.int64(3))) is int
    real = LaplaceMechanism(1, sensitivity=box, grid=CENTS)
    assert type(real.release(1.5)) is float and type(real.release(math.nan)) is float
    assert real.release([math.inf, math.nan, 0.5]).dtype == np.float64
    assert LaplaceMechanism(1).release([3]).shape == (1,)  # one entry needs no box


def test_sums_beyond_64_bits_widen(monkeypatch):
    noise = LaplaceMechanism(1, sensitivity=Sensitivity(each=1))
    monkeypatch.setattr(module, "discrete_laplace", lambda scale, size=None: np.full(size, 10))
    top = np.array([2**63 - 5, 0])
    assert noise.release(top).tolist() == [2**63 + 5, 10]
    assert noise.release(-top - 1).tolist() == [-(2**63) + 14, 9]
    assert noise.release(-top - 1).dtype == np.int64
    monkeypatch.setattr(
        module, "discrete_laplace", lambda scale, size=None: np.full(size, 10**30, dtype=object)
    )
    assert noise.release([1, 2]).tolist() == [10**30 + 1, 10**30 + 2]


def test_wide_noise_is_not_cut_off():
    """Scale 1e30: all 64 draws below 2^63 would need a chance of 1e-700."""
    noise = LaplaceMechanism(10**30, sensitivity=Sensitivity(each=1))
    assert max(abs(d) for d in noise.release([0] * 64)) > 2**63
    assert noise.error(0.95) == pytest.approx(10**30 * math.log(20), rel=1e-12)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.999999, 1 - 1e-15])
@pytest.mark.parametrize("scale", [F(1, 1000), *SCALES, F(10**30)], ids=str)
def test_error_is_the_smallest_half_width(scale, level):
    width = LaplaceMechanism(scale).error(level)
    with mpmath.workdps(80):
        t = mpmath.mpf(scale.numerator) / scale.denominator
        miss = 1 - mpmath.mpf(repr(level))

        def beyond(w):
            return 2 * mpmath.exp(-(w + 1) / t) / (1 + mpmath.exp(-1 / t))

        assert beyond(width) <= miss
        assert width == 0 or beyond(width - 1) > miss


def test_intervals():
    noise = LaplaceMechanism(2)
    width = noise.error(0.9)
    assert noise.interval(100, 0.9) == (100 - width, 100 + width)
    low, high = noise.interval(np.array([5, 2**63 - 1]), 0.9)
    assert low.tolist() == [5 - width, 2**63 - 1 - width] and high.tolist() == [5 + width, 2**63 - 1 + width]
    real = LaplaceMechanism(F(1, 10), grid=CENTS)
    assert real.error(0.9) == pytest.approx(0.23)
    low, high = real.interval(3.07, 0.9)
    assert (low, high) == (2.84, 3.3)  # on the grid, not 2.8399999999999999
    lows, highs = real.interval([3.07, -1e18], 0.9)
    assert lows[0] == low and highs[0] == high and lows[1] <= -1e18 <= highs[1]


def test_interval_covers_exactly_as_often_as_it_says():
    noise, value, level = LaplaceMechanism(F(3, 2)), 4, 0.8
    intervals = {output: noise.interval(output, level) for output in range(-60, 70)}
    covered = math.fsum(noise.pmf(o, value) for o, (low, high) in intervals.items() if low <= value <= high)
    less = math.fsum(noise.pmf(value + d, value) for d in range(-noise.error(level) + 1, noise.error(level)))
    assert less < level <= covered


def test_off_the_grid_nothing_is_released():
    real = LaplaceMechanism(F(1, 10), grid=CENTS)
    assert real.pmf(0.005, 1.0) == 0
    assert real.pmf(1.07, 1.0) == real.pmf(F(107, 100), 1.0) > 0
    assert LaplaceMechanism(1).pmf(10**400, 0) == 0


BAD = [math.nan, math.inf, -math.inf, -1, 0, True, "1", None, float("1e400"), [1]]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_senseless_parameters_are_refused(bad):
    for build, place in [
        (lambda: LaplaceMechanism(bad), "scale"),
        (lambda: LaplaceMechanism(1, sensitivity=bad), "sensitivity"),
        (lambda: LaplaceMechanism.from_epsilon(bad), "epsilon"),
        (lambda: LaplaceMechanism.from_epsilon(1, sensitivity=bad), "sensitivity"),
    ]:
        with pytest.raises(InvalidArgument) as caught:
            build()
        assert caught.value.place == place


def test_other_senseless_arguments_are_refused():
    with pytest.raises(InvalidArgument):
        LaplaceMechanism(F(1, 10**200))
    for bad in (1, "grid", {}):
        for build in (
            lambda b: LaplaceMechanism(1, grid=b),
            lambda b: LaplaceMechanism.from_epsilon(1, grid=b),
        ):
            with pytest.raises(InvalidArgument) as caught:
                build(bad)
            assert caught.value.place == "grid"
    noise = LaplaceMechanism(1, sensitivity=Sensitivity(each=1))
    for bad in (1.0, 1.5, True, "1", None, [1.0], [True], ["1"], [None], F(3)):
        with pytest.raises(InvalidArgument) as caught:
            noise.release(bad)
        assert "Grid" in caught.value.hints[0]
    for level in (0, 1, -1, 1.5, math.nan, True, "0.9", None):
        with pytest.raises(InvalidArgument):
            noise.error(level)
    with pytest.raises(InvalidArgument, match="how many of its entries"):
        LaplaceMechanism(1).release([1, 2])
