"""Counting the cells of one group gives what sorting its rows gives, and applies only where it may."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.backends.bounding.contributions import bound_contributions
from sfumato.backends.bounding.one_group import count_one_group
from sfumato.backends.bounding.packing import PackedChoice, PackedRows, Packing, Run, Slot

WEIGHT = 12
RUN = Run(slot=Slot(word=0, shift=0, bits=3), width=5, weight=WEIGHT)
PACKING = Packing(code_bits=0, value_bits=3)


def choice(max_rows: int | None, **changes: object) -> PackedChoice:
    given = {"max_groups": 1, "salt": 5, "key_hashes": np.array([3], dtype=np.uint64), "runs": (RUN,)}
    return PackedChoice(**(given | {"max_rows": max_rows} | changes))  # type: ignore[arg-type]


def rows_of(pairs: list[tuple[int, int]]) -> PackedRows:
    units, cells = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return PackedRows(units=units, words=(cells.view(np.uint64),))


def slowly(pairs: list[tuple[int, int]], most: int | None) -> tuple[Counter[int], list[int]]:
    cells: Counter[int] = Counter()
    sizes = Counter(unit for unit, _ in pairs)
    for (unit, cell), many in Counter(pairs).items():
        n = sizes[unit]
        if cell:
            cells[cell - 1] += many * WEIGHT * min(n, n if most is None else most) // n
    return +cells, sorted(sizes.values())


@given(
    st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 5)), min_size=1, max_size=60),
    st.sampled_from([None, 1, 2, 3, 4, 6, 60]),
)
def test_counting_is_what_the_definition_says(pairs: list[tuple[int, int]], most: int | None) -> None:
    kept = bound_contributions(rows_of(pairs), PACKING, choice(most), threads=2)
    cells: Counter[int] = Counter()
    for one in kept:
        for place, added in zip(*(column.tolist() for column in one.runs[RUN.slot]), strict=True):
            cells[place] += added
        assert len(np.unique(one.unit)) == len(one.unit)
        assert not one.code.any()
    rows = sorted(n for one in kept for n in one.rows.tolist())
    assert (+cells, rows) == slowly(pairs, most)


def test_it_is_taken_for_dense_units_of_one_group() -> None:
    pairs = [(unit, unit % 6) for unit in range(40)] + [(7, 1)] * 5
    counted = count_one_group(rows_of(pairs), PACKING, choice(3))
    assert counted is not None
    kept, rest = counted
    assert len(kept.unit) == 39
    assert rest.units.tolist() == [7] * 6  # the one unit with more rows than count is left to be sorted


@pytest.mark.parametrize(
    ("pairs", "changes"),
    [
        ([(0, 1), (10**12, 1)], {}),
        ([(0, 1), (1, 1)], {"key_hashes": np.array([3, 4], dtype=np.uint64)}),
        ([(0, 1), (1, 1)], {"sums": (Slot(word=0, shift=0, bits=3),)}),
    ],
)
def test_elsewhere_rows_are_sorted(pairs: list[tuple[int, int]], changes: dict[str, object]) -> None:
    assert count_one_group(rows_of(pairs), PACKING, choice(3, **changes)) is None


def test_a_cap_over_all_groups_holds_in_one_group() -> None:
    """Six rows of one unit weigh no more than two, though each group would allow all six."""
    kept = bound_contributions(rows_of([(0, 1)] * 6 + [(1, 2)]), PACKING, choice(6, max_total=2))
    cells: Counter[int] = Counter()
    for one in kept:
        for place, added in zip(*(column.tolist() for column in one.runs[RUN.slot]), strict=True):
            cells[place] += added
    assert cells == {0: 2 * WEIGHT, 1: WEIGHT}


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 5), st.integers(1, 9)), min_size=1),
    st.sampled_from([None, 1, 2, 3, 6]),
)
def test_units_of_a_wide_range_are_counted_in_buckets(
    several: list[tuple[int, int, int]], most: int | None
) -> None:
    """A bucket that is taken for one unit would leave out rows of two that each have few."""
    pairs = [(unit, cell) for unit, cell, times in several for _ in range(times)]
    pairs += [(-(2**63), 1), (2**63 - 1, 1)]
    assert count_one_group(rows_of(pairs), PACKING, choice(most)) is None
    assert count_one_group(rows_of(pairs), PACKING, choice(most, only_cells=True)) is not None
    cells: Counter[int] = Counter()
    for one in bound_contributions(rows_of(pairs), PACKING, choice(most, only_cells=True), threads=2):
        for place, added in zip(*(column.tolist() for column in one.runs[RUN.slot]), strict=True):
            cells[place] += added
    assert +cells == slowly(pairs, most)[0]
