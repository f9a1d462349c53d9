"""Numbers are read exactly, and what makes no sense is refused with a hint."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.arguments import (
    budget_quantity,
    count,
    delta_quantity,
    exact,
    non_negative,
    positive,
    probability,
    upper_float,
)
from sfumato.errors import InvalidArgument

from .senseless import NOT_DELTAS, NOT_NUMBERS, NOT_POSITIVE, name


def test_floats_are_read_in_two_ways():
    """A scale is the binary value that the float holds; a budget is the decimal that a person wrote."""
    assert exact(0.1, "scale") == Fraction(3602879701896397, 36028797018963968)
    assert budget_quantity(0.1, "epsilon") == Fraction(1, 10)
    assert sum(budget_quantity(0.1, "epsilon") for _ in range(10)) == 1
    assert budget_quantity(np.float64(1e-7), "delta") == Fraction(1, 10**7)
    assert budget_quantity(Decimal("0.3"), "epsilon") == Fraction(3, 10)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_is_exact(value):
    assert float(exact(value, "x")) == value
    assert exact(np.float64(value), "x") == Fraction(value)


@pytest.mark.parametrize("value", [3, np.int64(3), Fraction(3), Decimal(3), 3.0, np.float32(3)], ids=repr)
def test_every_kind_of_number_is_read(value):
    assert exact(value, "x") == 3 and positive(value, "x") == 3


@given(st.fractions())
def test_upper_float_is_the_next_float_above(value):
    above = upper_float(value)
    assert Fraction(above) >= value > Fraction(np.nextafter(above, -np.inf).item())


def test_upper_float_of_what_no_float_reaches():
    assert upper_float(Fraction(10**400)) == float("inf")
    assert upper_float(Fraction(-(10**400))) < -1e308
    assert upper_float(Fraction(1, 10**400)) > 0


def refused(read, value):
    with pytest.raises(InvalidArgument) as caught:
        read(value)
    assert caught.value.hints, "a refusal without a hint"
    assert caught.value.place is not None
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=name)
def test_what_is_not_a_number_is_refused_with_a_hint(value):
    for read in (exact, positive, non_negative, budget_quantity, probability, count):
        refused(lambda given, read=read: read(given, "epsilon"), value)


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=name)
def test_what_is_not_positive_is_refused_with_a_hint(value):
    for parameter in ("epsilon", "rho", "scale"):
        refused(lambda given, parameter=parameter: positive(given, parameter), value)
        refused(lambda given, parameter=parameter: budget_quantity(given, parameter), value)


@pytest.mark.parametrize("value", NOT_DELTAS, ids=name)
def test_what_is_not_a_delta_is_refused_with_a_hint(value):
    refused(delta_quantity, value)


def test_delta_must_be_below_one_in_n_where_n_is_public():
    assert delta_quantity(1e-4, people=9999) == Fraction(1, 10**4)
    refused(lambda value: delta_quantity(value, people=10_000), 1e-4)
    refused(lambda value: delta_quantity(value, people=0), 1e-4)


@pytest.mark.parametrize("value", [-1e-9, 1.0001, Fraction(3, 2)], ids=repr)
def test_what_is_not_a_probability_is_refused_with_a_hint(value):
    refused(lambda given: probability(given, "p"), value)


@pytest.mark.parametrize("value", [0, -1, 2.0, True], ids=repr)
def test_what_is_not_a_count_is_refused_with_a_hint(value):
    refused(lambda given: count(given, "times"), value)
    assert count(0, "size", least=0) == 0
