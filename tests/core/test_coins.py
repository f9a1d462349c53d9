"""Coins have exactly their bias, scalar and array, through floats and through exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.core import coins as module
from sfumato.core.coins import bernoulli, bernoulli_exp, bernoulli_exp_multiples
from sfumato.core.exponential import exp_bounds
from sfumato.errors import InvalidArgument


def assert_share(heads: int, tosses: int, p: float) -> None:
    """False alarm 2e-10, by the exact binomial tails: 1e-10 on either side."""
    assert stats.binom.cdf(heads, tosses, p) > 1e-10
    assert stats.binom.sf(heads - 1, tosses, p) > 1e-10


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(999, 1000), 0.1])
def test_bernoulli_has_its_bias(p):
    """False alarm below 1e-9: two shares. Power: a bias off by 0.2% in arrays, by 5% in scalars."""
    assert_share(int(bernoulli(p, size=4_000_000).sum()), 4_000_000, float(p))
    assert_share(sum(bernoulli(p) for _ in range(20_000)), 20_000, float(p))


@pytest.mark.long
@pytest.mark.parametrize("x", [Fraction(1, 1000), 0.5, 1, Fraction(22, 7), 9])
def test_bernoulli_exp_has_its_bias(x):
    """False alarm below 1e-9: four shares. Power: a bias off by 0.2% (of 1) in arrays, by 5% in scalars."""
    p = math.exp(-float(x))
    assert_share(int(bernoulli_exp(x, size=4_000_000).sum()), 4_000_000, p)
    assert_share(int(bernoulli_exp(np.full(4_000_000, float(x))).sum()), 4_000_000, p)
    assert_share(int(bernoulli_exp([Fraction(x)] * 20_000).sum()), 20_000, p)
    assert_share(sum(bernoulli_exp(x) for _ in range(20_000)), 20_000, p)


def test_certainties():
    assert bernoulli(1) is True and bernoulli(0) is False and bernoulli_exp(0) is True
    assert bernoulli(1, size=5).all() and not bernoulli(0, size=5).any() and bernoulli_exp(0, size=5).all()
    assert not bernoulli_exp(10**9, size=1000).any()
    assert not bernoulli_exp([Fraction(10**400), 10**30]).any()
    assert bernoulli_exp(Fraction(1, 10**40), size=1000).all()
    assert bernoulli_exp(np.zeros(0)).shape == (0,)
    assert bernoulli_exp(np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(1, 2), Fraction(2**64 - 1, 2**64), Fraction(1, 10**30)]
)
def test_words_at_the_threshold_are_decided_exactly(p, monkeypatch):
    """A word below floor(p 2^64) is heads, above it tails, and at it exact arithmetic decides."""
    at = int(p * 2**64)
    words = np.array([max(at - 1, 0), at, min(at + 1, 2**64 - 1)], dtype=np.uint64)
    monkeypatch.setattr(module, "random_words", lambda size: words.copy())
    asked = []
    monkeypatch.setattr(module, "falls_below", lambda prefix, bits, **k: asked.append(prefix) or True)
    heads = bernoulli(p, size=3)
    assert at in asked
    assert all(heads[i] == (int(words[i]) < at or int(words[i]) in asked) for i in range(3))


@pytest.mark.parametrize("x", [0.1, 1.0, 7.5, 40.0])
def test_float_decisions_near_the_threshold_are_exact(x, monkeypatch):
    """Words within and just beyond the margin: those decided in floats are decided as exact bounds say."""
    low, high = exp_bounds(Fraction(x), 64)
    steps = np.array([0, 1, 2**8, 2**12, 2**13, 2**16, 2**20, 2**24], dtype=object)
    words = np.array([w for s in steps for w in (max(0, low - s), high + s)], dtype=np.uint64)
    monkeypatch.setattr(module, "random_words", lambda size: words.copy())
    asked = []
    monkeypatch.setattr(module, "falls_below", lambda prefix, bits, **k: asked.append(prefix) or False)
    heads = bernoulli_exp(np.full(len(words), x))
    for word, head in zip(words.tolist(), heads.tolist(), strict=True):
        if word not in asked:
            assert head == (word < low)
    assert asked and len(asked) < len(words)


@pytest.mark.parametrize("multiple", [1, 30, 10**20])
def test_multiples_of_a_rate_are_decided_as_exact_bounds_say(multiple, monkeypatch):
    """A third is no float: near the threshold the exact product decides, further off floats are right."""
    rate = Fraction(1, 3 * multiple)
    low, high = exp_bounds(Fraction(1, 3), 64)
    words = np.array([w for s in (0, 1, 2**12, 2**16, 2**24) for w in (low - s, high + s)], dtype=np.uint64)
    monkeypatch.setattr(module, "random_words", lambda size: words.copy())
    asked = []

    def exactly(prefix, bits, *, ratio, exponent):
        asked.append(prefix)
        assert exponent == Fraction(1, 3)
        return False

    monkeypatch.setattr(module, "falls_below", exactly)
    heads = bernoulli_exp_multiples(rate, np.array([multiple] * len(words)))
    for word, head in zip(words.tolist(), heads.tolist(), strict=True):
        if word not in asked:
            assert head == (word < low)
    assert asked and len(asked) < len(words)


def test_multiples_have_their_bias():
    """False alarm below 1e-9: two shares; a rate that is 1% off is caught."""
    heads = bernoulli_exp_multiples(Fraction(1, 7), np.tile(np.array([0, 3, 14, 10**9]), (1_000_000, 1)))
    assert heads[:, 0].all() and not heads[:, 3].any()
    assert_share(int(heads[:, 1].sum()), 1_000_000, math.exp(-3 / 7))
    assert_share(int(heads[:, 2].sum()), 1_000_000, math.exp(-2))
    for bad in (np.array([-1]), np.array([0.5]), np.array(["a"])):
        with pytest.raises(InvalidArgument):
            bernoulli_exp_multiples(1, bad)


@pytest.mark.parametrize("bad", [-0.1, 1.5, math.nan, math.inf, True, "0.5", None], ids=repr)
def test_senseless_biases_are_refused(bad):
    for size in (None, 3):
        with pytest.raises(InvalidArgument):
            bernoulli(bad, size)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, True, "0.5", None], ids=repr)
def test_senseless_exponents_are_refused(bad):
    for size in (None, 3):
        with pytest.raises(InvalidArgument):
            bernoulli_exp(bad, size)
    with pytest.raises(InvalidArgument):
        bernoulli_exp(np.array([bad], dtype=object))
    with pytest.raises(InvalidArgument):
        bernoulli_exp(np.array([0.5, -1.0]))
    with pytest.raises(InvalidArgument):
        bernoulli_exp(np.array(["a"]))
    with pytest.raises(InvalidArgument):
        bernoulli_exp([1.0], size=1)
