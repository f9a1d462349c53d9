"""Packed bits: coins of exactly the stated bias, uniform subsets, and counts by the word."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.local import bits
from sfumato.local.bits import bytes_for, coin_bits, count_bits, ones, put_bits, uniform_subsets, well_formed

from .matrices import FALSE_ALARM, check_draws, code, codes_of

F = Fraction


def every_uniform_number(digits):
    """Return a source of words whose 2^digits lanes go through every number of that many binary digits.

    A lane's random bit says that its digit is 0. After the last digit all are 1.
    """
    lanes = np.arange(1 << digits, dtype=np.uint64)
    calls = itertools.count()

    def source(size):
        at = next(calls)
        assert at < digits + 64, "never ends"
        digit = (lanes >> np.uint64(digits - 1 - at)) & np.uint64(1) if at < digits else np.ones_like(lanes)
        return np.packbits(digit == 0).view(np.uint64)[:size].copy()

    return source


@pytest.mark.parametrize("numerator", [0, 1, 2, 3, 511, 512, 513, 700, 1022, 1023])
def test_a_coin_of_ten_digits_is_decided_exactly(monkeypatch, numerator):
    """Exact: of all 1024 numbers of ten digits, as many as are below the chance give heads."""
    monkeypatch.setattr(bits, "random_words", every_uniform_number(10))
    monkeypatch.setattr(bits, "_DENSE", 10**9)
    assert ones(coin_bits(F(numerator, 1024), 1, 1024)).tolist() == [numerator]


@pytest.mark.parametrize(
    "chance", [F(1, 3), F(2, 7), F(9, 11), F(2147483648, 7984949425), F(1, 10**30)], ids=str
)
def test_a_coin_without_an_end_is_decided_up_to_the_last_number(monkeypatch, chance):
    """Exact: numbers whose ten digits are below the chance's are heads, and above it tails."""
    source = every_uniform_number(10)
    drawn = []

    def ended(size):
        drawn.append(size)
        return source(size) if len(drawn) <= 10 else np.zeros(size, dtype=np.uint64)

    monkeypatch.setattr(bits, "random_words", ended)
    monkeypatch.setattr(bits, "_DENSE", 11)
    assert ones(coin_bits(chance, 1, 1024))[0] == int(chance * 1024)
    assert len(drawn) > 10


@pytest.mark.parametrize(
    "chance",
    [F(1, 3), F(1, 2), F(5, 8), F(1, 1000), F(999, 1000), F(2147483648, 7984949425), F(1, 3**50)],
    ids=str,
)
def test_coins_have_their_bias_and_do_not_depend_on_each_other(chance):
    """False alarm 1e-9 in all; power: a bias off by 0.15 points, or by 1.5 in one column."""
    rows = 60_000
    packed = coin_bits(chance, rows, 100)
    assert packed.shape == (rows, 13) and (packed[:, -1] & 0x0F == 0).all()
    columns = np.unpackbits(packed, axis=1, count=100).astype(bool)
    both = columns[:, 1:] & columns[:, :-1]
    for hits, trials, bias in (
        (columns.sum(), columns.size, chance),
        (both[:, ::2].sum(), both[:, ::2].size, chance**2),
        *((column.sum(), rows, chance) for column in columns.T),
    ):
        assert stats.binomtest(int(hits), trials, float(bias)).pvalue > FALSE_ALARM / 102


def test_certain_coins():
    assert coin_bits(0, 3, 20).tolist() == [[0, 0, 0]] * 3
    assert coin_bits(1, 2, 20).tolist() == [[255, 255, 0b11110000]] * 2
    assert coin_bits(F(1, 3), 0, 20).shape == (0, 3)


@pytest.mark.parametrize(
    ("size", "taken", "wanted"),
    [(5, [1], 2), (6, [], 3), (5, [0, 4], 0), (4, [3], 3), (14, [2], 7), (12, [0, 5], 6)],
    ids=str,
)
def test_subsets_are_uniform(size, taken, wanted):
    """False alarm 1e-9; power: chances of subsets that are off by 5% of themselves, up and down."""
    rows = 150_000
    marks = np.zeros((rows, bytes_for(size)), dtype=np.uint8)
    for place in taken:
        put_bits(marks, np.arange(rows), np.full(rows, place), np.ones(rows, dtype=bool))
    drawn = uniform_subsets(marks, size, np.full(rows, wanted))
    free = [place for place in range(size) if place not in taken]
    sets = [code(chosen) for chosen in itertools.combinations(free, wanted)]
    check_draws(codes_of(drawn, size), {each: F(1, len(sets)) for each in sets})


def test_large_subsets_spread_as_they_should(monkeypatch):
    """False alarm 1e-9: how many of a fixed half are chosen is hypergeometric; power: a spread off by 4%.

    Started with so many coins that rows with too many are drawn again and again.
    """
    rows, size, wanted = 40_000, 300, 80
    marks = np.zeros((rows, bytes_for(size)), dtype=np.uint8)
    monkeypatch.setattr(bits, "_SPARE", 0)
    drawn = uniform_subsets(marks, size, np.full(rows, wanted))
    assert (ones(drawn) == wanted).all()
    half = np.unpackbits(drawn, axis=1, count=size)[:, ::2].sum(axis=1)
    check_draws(
        half, {h: F(float(stats.hypergeom.pmf(h, size, size // 2, wanted))) for h in range(wanted + 1)}
    )


@given(st.integers(0, 700), st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_counts_are_those_of_single_bits(rows, size, seed):
    packed = np.random.default_rng(seed).integers(0, 256, (rows, bytes_for(size)), dtype=np.uint8)
    plain = np.unpackbits(packed, axis=1, count=size)
    assert (count_bits(packed, size) == plain.sum(axis=0, dtype=np.int64)).all()
    assert (ones(packed) == np.unpackbits(packed, axis=1).sum(axis=1)).all()


@pytest.mark.parametrize("rows", [1, 15, 16, 254, 255, 256, 765, 2040, 2041, 10_000])
def test_counts_never_overflow(rows):
    size = 128
    assert (count_bits(np.full((rows, 16), 255, dtype=np.uint8), size) == rows).all()
    wide = np.full((rows // 10 + 1, 2500), 255, dtype=np.uint8)
    assert (count_bits(wide, 20_000) == len(wide)).all()
    assert (count_bits(wide[:, ::2], 10_000) == len(wide)).all()  # not contiguous


def test_what_is_not_packed_bits_is_flagged_and_nothing_fails():
    good = np.array([[0b10100000], [0b10110000]], dtype=np.uint8)
    assert well_formed(good, 3).tolist() == [True, False]
    assert well_formed(good, 9).tolist() == [False, False]
    for strange in (
        good.astype(np.int64),
        good[:, 0],
        np.array([b"a", None], dtype=object),
        np.zeros((2, 0), np.uint8),
    ):
        assert well_formed(strange, 3).tolist() == [False, False]
    assert well_formed(np.array(5), 3).shape == (0,)
