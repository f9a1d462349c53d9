"""Integer bounds of exp(-x) hold, and lazily extended comparisons are exact."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import exponential
from sfumato.core.exponential import exp_bounds, falls_below


@given(st.integers(0, 2**90), st.integers(1, 2**90), st.integers(1, 400))
@settings(max_examples=400, deadline=None)
def test_bounds_hold_the_truth_and_are_close(numerator, denominator, bits):
    """Against arithmetic with 200 more bits; a bound that is one unit too tight fails."""
    x = Fraction(numerator, denominator)
    low, high = exp_bounds(x, bits)
    assert 0 <= high - low <= 2
    with mpmath.workprec(bits + 300):
        truth = mpmath.exp(-mpmath.mpf(numerator) / denominator) * mpmath.mpf(2) ** bits
        assert low <= truth <= high


def test_zero_and_huge_exponents():
    assert exp_bounds(Fraction(0), 64) == (2**64, 2**64)
    assert exp_bounds(Fraction(10**300), 64) == (0, 1)
    assert not falls_below(1, 64, ratio=Fraction(1), exponent=Fraction(10**300))


@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(2, 3), Fraction(7, 5)])
@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(1), Fraction(9, 2)])
def test_comparison_flips_exactly_at_the_threshold(ratio, exponent, monkeypatch):
    """Feed prefixes right below, at and right above the threshold, and extensions of all zeros and ones."""
    with mpmath.workprec(600):
        truth = mpmath.mpf(ratio.numerator) / ratio.denominator
        truth *= mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        at = int(mpmath.floor(truth * 2**64))
        next_bits = int(mpmath.floor(truth * mpmath.mpf(2) ** 128)) - (at << 64)
    if truth >= 1:
        assert falls_below(2**64 - 1, 64, ratio=ratio, exponent=exponent)
        return
    assert falls_below(at - 1, 64, ratio=ratio, exponent=exponent)
    assert not falls_below(at + 1, 64, ratio=ratio, exponent=exponent)
    monkeypatch.setattr(exponential, "random_bits", lambda bits: next_bits - 1)
    assert falls_below(at, 64, ratio=ratio, exponent=exponent)
    monkeypatch.setattr(exponential, "random_bits", lambda bits: next_bits + 1)
    assert not falls_below(at, 64, ratio=ratio, exponent=exponent)
