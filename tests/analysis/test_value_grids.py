"""Grids: chosen from bounds alone, and never reaching beyond them."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato.analysis.value_grids import Cells, cells_of, centred_grid, clamped_grid, ones, ranked_cells
from sfumato.core.intervals import Interval

ENDS = (
    st.fractions(-(10**12), 10**12, max_denominator=1000)
    | st.fractions(-3, 3)
    | st.integers(-5, 5).map(Fraction)
)
BOUNDS = st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends)))


@given(BOUNDS, st.booleans(), st.sampled_from([1, 1024]), st.booleans(), st.booleans())
def test_values_on_a_grid_stay_within_their_bounds(
    bounds: tuple[Fraction, Fraction], whole: bool, parts: int, centred: bool, multiplied: bool
) -> None:
    low, high = bounds
    grid, centre = centred_grid(low, high, whole=whole, parts=parts, centred=centred, multiplied=multiplied)
    assert (
        grid.step.numerator * grid.step.denominator
    ).bit_count() == 1  # a power of two: engines divide exactly
    assert grid.sensitivity <= (2**25 if multiplied else 2**41)
    lowest, highest = (point * grid.step + Fraction(centre) for point in (grid.low, grid.high))
    if grid.low < grid.high:
        assert low <= lowest < highest <= high
    else:  # bounds that hold no grid point: the nearest stands for all
        slack = max(grid.step, Fraction(1) if whole else Fraction(0))
        assert low - slack <= lowest <= high + slack
    for value in (low, high, (low + high) / 2):
        steps = grid.to_integer(value - Fraction(centre))
        exact = value if not whole else Fraction(round(value))
        back = steps * grid.step + Fraction(centre)
        assert abs(back - min(max(exact, lowest), highest)) <= (
            max(Fraction(1), grid.step) if whole else grid.step
        )
    if centred and not whole:
        assert abs(Fraction(centre) - (low + high) / 2) <= grid.step


def test_integers_are_exact_where_they_fit() -> None:
    grid, centre = centred_grid(
        Fraction(0), Fraction(110), whole=True, parts=1024, centred=True, multiplied=True
    )
    assert grid.step == Fraction(1, 32) and centre == 55
    assert centred_grid(Fraction(0), Fraction(1), whole=True, parts=1024, centred=False, multiplied=False)[
        0
    ].step == Fraction(1, 1024)
    assert (
        centred_grid(Fraction(0), Fraction(5000), whole=True, parts=1024, centred=False, multiplied=False)[
            0
        ].step
        == 1
    )


@given(BOUNDS, st.booleans())
def test_sums_of_groups_are_clamped_inside_their_bounds(
    bounds: tuple[Fraction, Fraction], whole: bool
) -> None:
    low, high = bounds
    grid, clamp = clamped_grid(low, high, whole=whole)
    assert clamp[0] <= clamp[1]
    if clamp[0] < clamp[1]:
        assert low <= clamp[0] * grid.step and clamp[1] * grid.step <= high
    assert grid.low <= clamp[0] and clamp[1] <= grid.high  # one row can fill the whole bound
    near, _ = clamped_grid(low, high, whole=whole, rows=Interval(0, 7))
    assert near.lower >= -1 and near.upper <= 8


@given(BOUNDS, st.booleans())
def test_cells_cover_the_bounds(bounds: tuple[Fraction, Fraction], whole: bool) -> None:
    low, high = bounds
    check_cells(cells_of(low, high, whole=whole, most=20), 20)
    check_cells(ranked_cells(low, high, whole=whole, grouped=False), 4096)
    check_cells(ranked_cells(low, high, whole=whole, grouped=True), 4096 if whole else 1024)


def check_cells(cells: Cells, most: int) -> None:
    number = len(cells.edges) - 1
    assert 1 <= number <= most
    assert (cells.grid.low, cells.grid.high) == (0, number - 1)
    for place in {0, number // 2, number - 1}:
        middle = (Fraction(cells.edges[place]) + Fraction(cells.edges[place + 1])) / 2
        value = Fraction(cells.edges[place]) if cells.points else middle
        assert cells.grid.to_integer(value - Fraction(cells.centre)) == place


def test_presence() -> None:
    assert ones(1024).to_integer(-1e300) == ones(1024).to_integer(7) == 1024
