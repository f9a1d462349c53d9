"""The staircase covers its law, its table is exact, and its float margin holds."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.core.coins import float_margin
from sfumato.core.exponential import exp_bounds
from sfumato.core.staircase import GAUSSIAN, GEOMETRIC, LAPLACE, _alias_table, staircase

LAWS = [GEOMETRIC, LAPLACE, GAUSSIAN]
RATIOS = [0.004, 0.31, 1.0, 3.7, 16.0, 21.3, 31.999]


def peak(law, block: int, shift: int) -> int:
    """The integer of a block where the law is largest."""
    return block << shift if block >= 0 else ((block + 1) << shift) - 1


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_every_weight_covers_its_block(law, ratio, wide):
    """W >= M * max g, in exact arithmetic, for every block: a weight one part in 2^50 too small fails."""
    shift = 7 if wide else 0
    scale_power = (Fraction(ratio) * 2**shift) ** law.power
    stairs = staircase(law, low=ratio, high=ratio, wide=wide)
    assert sum(stairs.weights) == 2**64
    for i, weight in enumerate(stairs.weights[:-1]):
        exponent = law.exponent(peak(law, stairs.lowest + i, shift), scale_power)
        _, high = exp_bounds(exponent, 128)
        assert weight << 128 >= stairs.multiple * high


@pytest.mark.long
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_tail_envelope_covers_the_tail(law, ratio):
    """M * g <= share of the tail's weight, for the first sixty blocks beyond the stairs."""
    stairs = staircase(law, low=ratio, high=ratio, wide=True)
    shift = 5
    scale_power = (Fraction(ratio) * 2**shift) ** law.power
    envelope = stairs.weights[-1] * (1 - stairs.decay) / (2 if law.signed else 1)
    for block in range(stairs.blocks, stairs.blocks + 60):
        _, high = exp_bounds(law.exponent(block << shift, scale_power), 4096)
        assert envelope * 2**4096 >= stairs.multiple * high or high <= 1
        envelope *= stairs.decay


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("ratio", RATIOS)
def test_sure_is_never_above_the_least_chance(law, ratio):
    """The quick yes is right for every integer of the block and every scale the stairs serve."""
    low = ratio / 1.09
    stairs = staircase(law, low=low, high=ratio, wide=True)
    shift = 6
    for scale in (Fraction(low) * 2**shift, Fraction(ratio) * 2**shift):
        for i, sure in enumerate(stairs.sure[:-1]):
            block = stairs.lowest + i
            for x in (block << shift, (block + 1 << shift) - 1):
                bound, _ = exp_bounds(law.exponent(x, scale**law.power), 128)
                assert int(sure) * stairs.weights[i] << 96 <= stairs.multiple * bound


def test_the_alias_table_is_exact():
    """Adding up the columns gives back every weight, to the last unit."""
    weights = [1, 2**60 + 7, 0, 3, 2**63 - 11]
    weights.append(2**64 - sum(weights))
    thresholds, aliases = _alias_table(weights)
    width = 2**64 // len(thresholds)
    held = [0] * len(thresholds)
    for column, (threshold, alias) in enumerate(zip(thresholds.tolist(), aliases.tolist(), strict=True)):
        held[column] += threshold
        held[alias] += width - threshold
    assert held == weights + [0] * (len(held) - len(weights))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_float_interval_holds_the_truth(law):
    """|float - truth| <= margin on random points, against 200-bit arithmetic; the margin is not idle:
    one of 2^-52 alone would fail."""
    rng = np.random.default_rng(20261115)  # chooses test points, never noise
    mpmath.mp.prec = 200
    worst = 0.0
    for ratio in RATIOS:
        for shift in (0, 3, 20, 45):
            stairs = staircase(law, low=ratio, high=ratio, wide=shift > 0)
            scale = float(ratio * 2.0**shift * (1 - 1e-17))
            choices = rng.integers(0, len(stairs.weights) - 1, 150)
            values = (choices + stairs.lowest << shift) + rng.integers(0, 2**shift, 150)
            chance, margin = stairs.chances(values, choices, scale)
            for x, which, got, bound in zip(
                values.tolist(), choices.tolist(), chance.tolist(), margin.tolist(), strict=True
            ):
                exponent = law.exponent(x, Fraction(scale) ** law.power)
                if exponent > 700:
                    continue
                truth = mpmath.mpf(stairs.multiple) / stairs.weights[which] * mpmath.mpf(2) ** 32
                truth *= mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
                error = abs(mpmath.mpf(got) - truth)
                assert error <= bound
                worst = max(worst, float(error / truth))
    assert worst > 2.0**-53


def test_the_margin_grows_with_the_exponent():
    x = np.array([0.0, 1.0, 100.0])
    assert (np.diff(float_margin(x)) > 0).all()
    assert (float_margin(x) >= 8 * 2.0**-52).all()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_decisions_at_the_boundary_are_the_exact_ones(law, monkeypatch):
    """For each value, set the 32 bits right at the true threshold and one to either side: exactly
    those below it are kept, the one that straddles it is sent to exact arithmetic."""
    from sfumato.core import staircase as module

    ratio, shift = 23.7, 11
    stairs = staircase(law, low=ratio, high=ratio, wide=True)
    scale = ratio * 2.0**shift
    rng = np.random.default_rng(7)  # chooses test points, never noise
    choices = rng.integers(0, len(stairs.weights) - 1, 300)
    offsets = rng.integers(0, 2**shift, 300)
    values = (choices + stairs.lowest << shift) + offsets
    power = Fraction(scale) ** law.power
    floors = []
    for x, which in zip(values.tolist(), choices.tolist(), strict=True):
        low, high = exp_bounds(law.exponent(x, power), 160)
        lower = low * stairs.multiple // stairs.weights[which] >> 128
        assert lower == high * stairs.multiple // stairs.weights[which] >> 128
        floors.append(lower)
    asked: list[int] = []

    def exact(prefix, bits, **kwargs):
        asked.append(prefix)
        return False

    monkeypatch.setattr(type(stairs), "propose", lambda self, size: choices)
    monkeypatch.setattr(module, "falls_below", exact)
    for step in (-1, 0, 1):
        asked.clear()
        bits = np.array(floors, dtype=np.int64) + step
        valid = (bits >= 0) & (bits < 2**32)
        uniforms = np.where(valid, bits, 0).astype(np.uint64)
        monkeypatch.setattr(module, "_uniforms_and_offsets", lambda size, shifts, u=uniforms: (u, offsets))
        _, kept, _ = stairs._round(np.arange(300), shift, scale, lambda i: power)
        match step:
            case -1:
                assert kept[valid].all()
            case 0:
                assert not kept[valid].any() and len(asked) >= valid.sum()
            case 1:
                assert not kept[valid].any()
