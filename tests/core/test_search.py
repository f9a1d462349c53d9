"""Searches end on the side that passed the test; rounding goes the stated way."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.search import bracket, largest, lower_float, minimum, round_up, smallest
from sfumato.errors import Unsupported


@given(st.fractions())
def test_lower_float_is_the_largest_float_below(value):
    below = lower_float(value)
    assert Fraction(below) <= value < Fraction(math.nextafter(below, math.inf))


@given(st.floats(min_value=0, max_value=1e300))
def test_round_up_goes_up_by_little(value):
    assert value < round_up(value) <= value * (1 + 2e-11) + 5e-324


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_smallest_and_largest_end_on_the_passing_side(edge):
    found = smallest(lambda x: x >= edge, 0.0, 2e9)
    assert edge <= found <= edge * (1 + 1e-13)
    found = largest(lambda x: x <= edge, 0.0, 2e9)
    assert edge * (1 - 1e-13) - 1e-5 <= found <= edge


def test_smallest_takes_the_low_end_if_it_passes():
    assert smallest(lambda x: True, 0.25, 1.0) == 0.25


def test_minimum_moves_away_from_infinity():
    assert minimum(lambda x: (x - 1) ** 2 if x < 2 else math.inf, -10, 50) == pytest.approx(1, abs=1e-6)


def test_bracket_is_a_factor_of_two():
    assert bracket(lambda x: x >= 5, 1.0) == (4.0, 8.0)
    assert bracket(lambda x: x >= 5, 1000.0) == (3.90625, 7.8125)


def test_bracket_gives_up_where_nothing_helps():
    with pytest.raises(Unsupported):
        bracket(lambda x: False, 1.0)
