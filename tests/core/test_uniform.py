"""Uniform integers are exactly uniform."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core import uniform as module
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument

from .laws import chi_square_verdict


@pytest.mark.parametrize("bound", [2, 3, 6, 64, 97, 1000])
def test_array_is_uniform(bound):
    """False alarm 1e-9; power: a modulo bias, or one value missing."""
    drawn = uniform_below(bound, size=2_000_000)
    chi_square_verdict(drawn, lambda m: 1 - m / bound, np.arange(1, bound))


def test_scalar_is_uniform():
    """False alarm 1e-9; power: one of six values off by 15%."""
    drawn = np.array([uniform_below(6) for _ in range(30_000)])
    chi_square_verdict(drawn, lambda m: 1 - m / 6, np.arange(1, 6))


def test_huge_bound_is_uniform_in_its_top_part():
    """At 3 * 2^61 masking must reject a quarter. False alarm 1e-9; power: wrapping into the lower part."""
    bound = 3 << 61
    thirds = uniform_below(bound, size=300_000) >> 61
    chi_square_verdict(thirds, lambda m: 1 - m / 3, np.arange(1, 3))


def test_beyond_64_bits():
    drawn = uniform_below(10**30, size=50)
    assert drawn.dtype == object and all(0 <= d < 10**30 for d in drawn)
    assert max(drawn) > 10**28  # fails with probability 1e-100
    assert uniform_below(1) == 0 and not uniform_below(1, size=4).any()
    assert uniform_below(5, size=0).shape == (0,)


def test_rejected_words_are_drawn_again(monkeypatch):
    tape = iter([[7, 2, 5], [6, 3], [1]])
    monkeypatch.setattr(module, "random_words", lambda size: np.array(next(tape), dtype=np.uint64))
    assert uniform_below(5, size=3).tolist() == [1, 2, 3]


@pytest.mark.parametrize("bad", [0, -3, 2.0, True, "6", None], ids=repr)
def test_senseless_bounds_are_refused(bad):
    with pytest.raises(InvalidArgument):
        uniform_below(bad)
