"""The noise has exactly the stated law: against the pmf, through the exact fallback, for any scale."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import coins, exponential, noise, staircase
from sfumato.core.noise import discrete_gaussian, discrete_laplace, geometric
from sfumato.errors import InvalidArgument
from tests.soaked import rest_soaked

from .laws import chi_square_verdict, gaussian_tail, geometric_tail, laplace_tail, quantile_edges

DRAWS = 10_000_000
SCALES = [
    Fraction(1, 10),
    Fraction(1),
    Fraction(355, 113),
    Fraction(1009, 31),
    Fraction(10**4, 7),
    Fraction(10**9),
]
LAWS = [
    pytest.param(geometric, geometric_tail, 16.0, id="geometric"),
    pytest.param(discrete_laplace, laplace_tail, 16.0, id="laplace"),
    pytest.param(discrete_gaussian, gaussian_tail, 6.0, id="gaussian"),
]


@pytest.mark.soak
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize(("draw", "tail", "reach"), LAWS)
def test_ten_million_draws_follow_the_law(draw, tail, reach, scale):
    """False alarm 1e-9. Power: a scale wrong by 0.5%, a doubled zero, and blocks that overlap by one
    integer for scales up to 33, are caught with near certainty."""
    draws = draw(scale, size=DRAWS)
    assert draws.dtype == np.int64
    chi_square_verdict(draws, lambda m: tail(scale, m), quantile_edges(scale, reach))


@pytest.mark.long
@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_places_within_a_block_are_uniform(draw):
    """For a huge scale the last digits are uniform to one part in 10^6. False alarm 1e-9; power: a
    block width off by one, or a bit that is stuck, shifts one residue by far more than 1%."""
    residues = draw(10**9, size=DRAWS) % 97
    chi_square_verdict(residues, lambda m: 1 - m / 97, np.arange(1, 97))


@pytest.mark.long
@pytest.mark.parametrize(("draw", "tail", "reach"), LAWS)
def test_scalars_follow_the_law(draw, tail, reach):
    """False alarm 1e-9; power with 2 * 10^4 draws: a scale wrong by 10%."""
    scale = Fraction(17, 5)
    draws = np.array([draw(scale) for _ in range(20_000)])
    chi_square_verdict(draws, lambda m: tail(scale, m), quantile_edges(scale, reach))


@pytest.mark.long
@pytest.mark.parametrize(("draw", "tail", "reach"), LAWS)
def test_one_scale_per_element(draw, tail, reach):
    """Few and many different scales, shuffled together. False alarm 1e-9 over all 30 verdicts; power: an
    element drawn with its neighbour's scale, or a bound that holds for the largest scale of a group only."""
    for distinct in (5, 400):
        scales = np.geomspace(0.3, 3e6, distinct).repeat(2_000_000 // distinct)
        scales = scales.reshape(distinct, -1).T.ravel()  # every scale recurs at a fixed stride
        draws = draw(scales)
        for i in range(0, distinct, max(1, distinct // 25)):
            scale = Fraction(float(scales[i]))
            edges = quantile_edges(scale, reach)
            chi_square_verdict(draws[i::distinct], lambda m, s=scale: tail(s, m), edges, verdicts=30)


@pytest.mark.soak
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(41, 3), Fraction(10**4, 7)], ids=str)
@pytest.mark.parametrize(("draw", "tail", "reach"), LAWS)
def test_beyond_the_stairs(draw, tail, reach, scale, monkeypatch):
    """Cut the stairs off at one scale, so that a third of all draws comes from the exact tail.
    False alarm 1e-9; power with 4 * 10^4 draws: a side left out, counted twice or shifted by one block."""
    for name in ("GEOMETRIC", "LAPLACE", "GAUSSIAN"):
        monkeypatch.setattr(noise, name, dataclasses.replace(getattr(noise, name), covered_scales=1.0))
    draws = draw(scale, size=40_000)
    chi_square_verdict(draws, lambda m: tail(scale, m), quantile_edges(scale, reach))


@pytest.fixture
def exact_only(monkeypatch):
    """Force every element of every array draw through the exact fallback."""
    monkeypatch.setattr(staircase, "float_margin", lambda x: np.full_like(x, 1e200))
    build = staircase.staircase

    def unsure(*args, **kwargs):
        stairs = build(*args, **kwargs)
        return dataclasses.replace(stairs, sure=np.zeros_like(stairs.sure))

    monkeypatch.setattr(noise, "staircase", unsure)


@pytest.mark.long
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(355, 113), Fraction(10**4, 7)], ids=str)
@pytest.mark.parametrize(("draw", "tail", "reach"), LAWS)
def test_the_exact_fallback_has_the_same_law(draw, tail, reach, scale, exact_only, monkeypatch):
    """Every element is decided in exact arithmetic. False alarm 1e-9; power with 4 * 10^4 draws: a
    scale wrong by 7%."""
    decided = 0
    decide = staircase.falls_below

    def counted(*args, **kwargs):
        nonlocal decided
        decided += 1
        return decide(*args, **kwargs)

    monkeypatch.setattr(staircase, "falls_below", counted)
    draws = draw(scale, size=40_000)
    assert decided >= 40_000
    chi_square_verdict(draws, lambda m: tail(scale, m), quantile_edges(scale, reach))


@pytest.mark.long
@pytest.mark.parametrize("scale", rest_soaked(SCALES, 2), ids=str)
@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_float_and_exact_decisions_agree_on_the_same_bits(draw, scale, monkeypatch):
    """Stronger than any statistic: replay the same random bits through both ways, element by element."""
    tape: list[np.ndarray] = []
    record = staircase.random_words

    def recording(size):
        tape.append(record(size))
        return tape[-1].copy()

    # Further bits, where either way asks for them, are a constant of their own. Beyond the stairs the same
    # coin would be tossed for ever: who gets there is sent back, either way. That tail has tests of its own.
    for module in (exponential, staircase, coins):
        monkeypatch.setattr(module, "random_bits", lambda bits: (1 << bits) // 3)
    monkeypatch.setattr(staircase.Staircase, "_beyond", lambda *_: None)
    monkeypatch.setattr(staircase, "random_words", recording)
    fast = draw(scale, size=30_000)

    replay = iter(tape)
    monkeypatch.setattr(staircase, "random_words", lambda size: next(replay).copy())
    monkeypatch.setattr(staircase, "float_margin", lambda x: np.full_like(x, 1e200))
    build = staircase.staircase
    monkeypatch.setattr(
        noise,
        "staircase",
        lambda *a, **k: dataclasses.replace(build(*a, **k), sure=np.zeros_like(build(*a, **k).sure)),
    )
    slow = draw(scale, size=30_000)
    assert (fast == slow).all()


@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_wide_scales_widen_and_never_wrap(draw):
    scale = 10**40
    draws = draw(scale, size=64)
    assert draws.dtype == object
    assert all(type(x) is int for x in draws)
    assert max(abs(x) for x in draws) > 10**38  # all below with probability far under 1e-100
    assert abs(draw(Fraction(10**300, 7))) < 10**304
    assert draw([1, 10**30]).dtype == object


@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [5e-324, 1e-200, Fraction(1, 10**400)], ids=str)
def test_vanishing_scales_give_zero(draw, scale):
    """P(X != 0) is below e^-(10^199)."""
    assert draw(scale) == 0
    assert not draw(scale, size=1000).any()
    assert not draw([scale, 1e-150]).any()


def test_value_beyond_64_bits_widens_the_array(monkeypatch):
    """The tail of a scale of 2^49 may leave 64 bits with probability e^-16384; force it."""
    stairs = staircase.staircase(staircase.LAPLACE, low=16.0, high=16.0, wide=True)
    monkeypatch.setattr(type(stairs), "propose", lambda self, size: np.full(size, len(self.weights) - 1))
    monkeypatch.setattr(type(stairs), "_beyond", lambda self, shift, power: 2**80)
    drawn = discrete_laplace(2**49, size=3)
    assert drawn.dtype == object and list(drawn) == [2**80] * 3


@given(st.fractions(min_value=Fraction(1, 1000), max_value=10**15))
@settings(max_examples=60, deadline=None)
def test_any_rational_scale_is_accepted(scale):
    for draw in (geometric, discrete_laplace, discrete_gaussian):
        assert draw(scale, size=3).shape == (3,)
        assert draw([scale, scale / 2]).shape == (2,)
        assert isinstance(draw(scale), int)


def test_sigma_squared_is_exact_where_sigma_is_not():
    """False alarm 1e-9; power: sigma^2 read as sigma."""
    draws = discrete_gaussian(Fraction(50), size=1_000_000, squared=True)
    sigma = Fraction(50**0.5)
    chi_square_verdict(draws, lambda m: gaussian_tail(sigma, m), quantile_edges(sigma, 5.0))
    assert discrete_gaussian([2, 3], squared=True).shape == (2,)


BAD = [
    0,
    -1,
    0.0,
    -0.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e400,
    True,
    "1",
    None,
    Fraction(-1, 3),
    b"1",
    1j,
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_senseless_scales_are_refused(draw, bad):
    for arguments in ((bad,), (bad, 3), ([1, bad],), (np.array([bad], dtype=object),)):
        with pytest.raises(InvalidArgument) as caught:
            draw(*arguments)
        assert "error[SF101]" in str(caught.value)


@pytest.mark.parametrize("bad", [-1, 2.0, True, "3"], ids=repr)
def test_senseless_sizes_are_refused(bad):
    with pytest.raises(InvalidArgument):
        discrete_laplace(1, bad)
    with pytest.raises(InvalidArgument):
        discrete_laplace([1, 2], 2)
