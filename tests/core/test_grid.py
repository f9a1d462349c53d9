"""The grid: fast rounding equals exact rounding, nothing grows, nothing depends on private values."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.grid import Grid
from sfumato.errors import InvalidArgument

STEPS = [Fraction(1), Fraction(1, 1024), Fraction(8), Fraction(1, 100), Fraction(1, 3), Fraction(7, 3), 0.1]
VALUES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True),
    st.floats(-100, 100),
    st.integers(-(10**6), 10**6).map(lambda n: n / 100),
    st.integers(-(10**6), 10**6).map(lambda n: (n + 0.5) / 100),  # near the middle between two points
    st.integers(-(10**4), 10**4).map(lambda n: n / 3),
    st.integers(-(10**4), 10**4).map(lambda n: math.nextafter(n / 2048, math.inf)),
    st.integers(2**45, 2**70).map(float),
    st.sampled_from([5e-324, -5e-324, 0.49999999999999994, -0.5, 0.5, 1.5, 2.5, 1.7e308, -1.7e308, -0.0]),
)


def nearest(value: float, grid: Grid) -> int:
    """An independent reading of the rule, straight from the words of the module."""
    if math.isnan(value):
        return min(range(grid.low, grid.high + 1), key=abs) if grid.width < 10**4 else grid.missing
    if math.isinf(value):
        return grid.high if value > 0 else grid.low
    quotient = Fraction(value) / grid.step
    if grid.toward_zero:
        steps = int(abs(quotient)) * (1 if quotient > 0 else -1)
    else:
        below = quotient.numerator // quotient.denominator
        steps = below + (quotient - below >= Fraction(1, 2))
    return max(grid.low, min(grid.high, steps))


@pytest.mark.long
@pytest.mark.parametrize("toward_zero", [False, True])
@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("reach", [10, 2**55], ids=["narrow", "wide"])
@given(values=st.lists(VALUES, min_size=1, max_size=20))
def test_fast_path_equals_exact_path(step, reach, toward_zero, values):
    bound = reach * Fraction(step)
    grid = Grid(step=step, lower=-bound, upper=bound + Fraction(step) / 3, toward_zero=toward_zero)
    wanted = [nearest(value, grid) for value in values]
    assert grid.to_integers(np.array(values)).tolist() == wanted
    assert [grid.to_integer(value) for value in values] == wanted


@pytest.mark.parametrize("step", STEPS, ids=str)
@given(data=st.data())
def test_points_beside_every_boundary(step, data):
    """The floats next to where the rounding changes are where a careless division goes wrong."""
    rational = Fraction(step)
    half = data.draw(st.integers(-(2**40), 2**40))
    middle = float(half * rational / 2)
    around = [math.nextafter(middle, -math.inf), middle, math.nextafter(middle, math.inf)]
    for toward_zero in (False, True):
        bound = 2**45 * rational
        grid = Grid(step=step, lower=-bound, upper=bound, toward_zero=toward_zero)
        assert grid.to_integers(around).tolist() == [nearest(value, grid) for value in around]


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=10),
    step=st.sampled_from([1, 3, Fraction(1, 7), 2**20]),
)
def test_integers_take_the_same_rule(values, step):
    grid = Grid(step=step, lower=-(2**55), upper=2**54)
    assert grid.to_integers(np.array(values, dtype=np.int64)).tolist() == [grid.to_integer(v) for v in values]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.float16, np.float32])
def test_small_types(dtype):
    values = np.array([0, 1, 2, 100], dtype=dtype)
    assert Grid(lower=-1000, upper=50).to_integers(values).tolist() == [0, 1, 2, 50]
    assert Grid(lower=500, upper=1000).to_integers(values).tolist() == [500] * 4
    assert Grid(lower=-1000, upper=-500).to_integers(values).tolist() == [-500] * 4
    assert Grid(step=2, lower=0, upper=1000).to_integers(values).tolist() == [0, 1, 1, 50]


def test_objects_and_scalars():
    grid = Grid(step=Fraction(1, 10), lower=0, upper=1)
    values = np.array(
        [Fraction(1, 3), Decimal("0.55"), Decimal("NaN"), None, 7, Decimal("-Infinity")], dtype=object
    )
    assert grid.to_integers(values).tolist() == [3, 6, 0, 0, 10, 0]
    assert grid.to_integers(0.5).tolist() == 5
    assert grid.to_integers(np.zeros((2, 3))).shape == (2, 3)
    assert grid.to_integers([]).shape == (0,)


def test_bounds_round_inward_and_missing_is_the_point_nearest_zero():
    grid = Grid(step=Fraction(1, 4), lower=Fraction(1, 3), upper=1.9)
    assert (grid.low, grid.high, grid.missing) == (2, 7, 2)
    assert grid.to_integers([math.nan, math.inf, -math.inf, 0.34, 1.9]).tolist() == [2, 7, 2, 2, 7]
    assert Grid(lower=-9, upper=-4).missing == -4
    assert Grid(lower=-9, upper=4).missing == 0


@given(
    x=st.floats(-50, 50),
    y=st.floats(-50, 50),
    step=st.sampled_from([Fraction(s) for s in STEPS]),
    toward_zero=st.booleans(),
)
def test_steps_of_bounds_what_rounding_does_to_a_distance(x, y, step, toward_zero):
    grid = Grid(step=step, lower=-60, upper=60, toward_zero=toward_zero)
    distance = abs(Fraction(x) - Fraction(y))
    if distance:
        assert abs(grid.to_integer(x) - grid.to_integer(y)) <= grid.steps_of(distance)


def test_whole_steps_apart_stay_whole_steps_apart():
    """Rounding halves to even would turn 0.5 and 1.5 into 0 and 2: a sensitivity of one into two."""
    grid = Grid(lower=-10, upper=10)
    halves = grid.to_integers(np.arange(-9, 9) + 0.5)
    assert set(np.diff(halves).tolist()) == {1}
    assert grid.steps_of(1) == 1 and grid.steps_of(1.25) == 2 and grid.steps_of(10**6) == 20


@given(vector=st.lists(st.floats(-100, 100), min_size=1, max_size=8), step=st.sampled_from(STEPS))
def test_norms_never_grow_toward_zero(vector, step):
    grid = Grid(step=step, lower=-50, upper=60, toward_zero=True)
    rounded = [int(n) * grid.step for n in grid.to_integers(vector)]
    assert sum(abs(v) for v in rounded) <= sum(abs(Fraction(v)) for v in vector)
    assert sum(v**2 for v in rounded) <= sum(Fraction(v) ** 2 for v in vector)


@given(steps=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8), step=st.sampled_from(STEPS))
def test_back_to_reals_is_the_nearest_float(steps, step):
    grid = Grid(step=step, lower=-1, upper=20)
    wanted = [float(n * Fraction(step)) for n in steps]
    assert grid.to_real(np.array(steps)).tolist() == wanted
    assert grid.to_real(steps[0]) == wanted[0]


def test_real_values_beyond_floats_become_infinite():
    grid = Grid(step=2**1000, lower=0, upper=2**1010)
    assert grid.to_real(2**40) == math.inf and grid.to_real(np.array([-(2**40)]))[0] == -math.inf
    assert grid.to_integers([1e303, math.inf]).tolist() == [93, 1024]  # an extreme step is exact too


def test_how_far_values_are_apart_is_known_in_public():
    grid = Grid(lower=-(2**40), upper=1)
    assert (grid.sensitivity, grid.width) == (2**40, 2**40 + 1)


@pytest.mark.parametrize("name", ["step", "lower", "upper"])
@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, float("1e400"), True, "1", None, 1j, [1]], ids=repr
)
def test_senseless_numbers_are_refused(name, bad):
    with pytest.raises(InvalidArgument) as caught:
        Grid(**{"step": 1, "lower": 0, "upper": 10} | {name: bad})
    assert caught.value.place == name


@pytest.mark.parametrize(
    "arguments",
    [
        {"step": 0, "lower": 0, "upper": 1},
        {"step": -1, "lower": 0, "upper": 1},
        {"step": 1, "lower": 2, "upper": 1},
        {"step": 1, "lower": Fraction(1, 4), "upper": Fraction(3, 4)},
        {"step": 1, "lower": 0, "upper": 2**62 + 1},
        {"step": Fraction(1, 2**50), "lower": -(2**13), "upper": 0},
        {"step": 1, "lower": 1, "upper": 5, "toward_zero": True},
        {"step": 1, "lower": 0, "upper": 5, "toward_zero": 1},
    ],
    ids=repr,
)
def test_senseless_grids_are_refused(arguments):
    with pytest.raises(InvalidArgument) as caught:
        Grid(**arguments)
    assert caught.value.place is not None


@pytest.mark.parametrize(
    "bad", [np.array(["a"]), np.array([True]), np.array([1j]), np.array([1], np.longdouble)]
)
def test_columns_of_another_type_are_refused(bad):
    with pytest.raises(InvalidArgument):
        Grid(lower=0, upper=1).to_integers(bad)
    with pytest.raises(InvalidArgument):
        Grid(lower=0, upper=1).to_real(np.array([0.5]))


def test_a_grid_is_a_frozen_value():
    grid = Grid(step=0.5, lower=0, upper=1)
    same = Grid(step=Fraction(1, 2), lower=0, upper=1)
    assert grid == same and hash(grid) == hash(same)
    with pytest.raises(AttributeError):
        grid.step = Fraction(1)
