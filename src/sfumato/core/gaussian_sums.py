"""Weighted sums of discrete Gaussian integers: how far off they may be. Parameters, never data.

S = sum a_i X_i with real weights a_i, X_i independent with P(x) ~ exp(-x^2 / (2 s_i^2)); D^2 = sum a_i^2
s_i^2. Where noise is small such a sum is far from normal: one integer of s = 0.5 is beyond 1.96 s in 21 of
100 cases.

Theorem (tails). E exp(t S) <= exp(t^2 D^2 / 2) (Canonne, Kamath and Steinke 2020), so P(|S| > x) <= 2
exp(-x^2 / (2 D^2)).

Theorem (smoothing). Let G be normal of deviation e, independent of S, and Y = S + G. Then P(|S| > t + g) <=
P(|Y| > t) + P(|G| > g), and for any period P P(|Y| > t) <= P(|Y| >= P - t) + 1 - (d t + 2 sum_k>0 sin(k d
t) f(k d) / k) / pi, where d = 2 pi / P and f is the characteristic function of Y.
Proof: if |S| > t + g, then |Y| > t or |G| > g. The bracket is the Fourier series of the chance that Y,
moved by a multiple of P to the period around zero, lies in [-t, t]; where it does and |Y| > t, |Y| >= P -
t. The series converges absolutely, for 0 < f(u) <= exp(-e^2 u^2 / 2). So far nothing is approximate; the
series is cut where f is below e^-32.

Theorem (normal parts). Let X have s >= 2. For |u| <= 1 its characteristic function is exp(-s^2 u^2 / 2) up
to a relative 1e-22. Take terms of s_i >= 2, one after the other, of which 8 a_i is at most the deviation of
G and of those before. Then f is that of a normal law in the place of these terms, up to 2e-14.
Proof: by Poisson's formula it is exp(-s^2 u^2 / 2) times sum_k exp(-2 pi^2 k^2 s^2) cosh(2 pi k s^2 u) over
the same sum for u = 0, and 2 exp(-(2 pi^2 - 2 pi) 4) < 1e-22. So putting a normal law for term i changes
f(v) by no more than that where |v| <= 1 / a_i. Beyond, v times the deviation before term i is above 8: the
change is at most exp(-32) = 1.3e-14, and falls with each later term by a factor of exp(-2) or less, for
a_i^2 s_i^2 v^2 >= 4.

Theorem (one for all). Let the last theorem take all terms but one of s >= 2 and weight a as normal, with
that one, made continuous, for G. Then P(|S| > t + a) <= P(|N| > t) + 1e-12 for normal N of deviation D.
Proof: P(X >= y) <= P(N' >= y - 1) for its X and N' normal of deviation s (`learn.rates`), whatever the
others are, so P(S >= t + a) <= P(S' >= t) with a N' in the place of a X. And S' is normal by the last
theorem.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.mechanism import confidence
from sfumato.core.noise_law import NoiseLaw

__all__ = ["GaussianSum", "many_half_widths"]

_SMOOTH = 7e-4  # the deviation of G in that of the sum
_SHARE = 2e-4  # of the chance to miss: for the tail of G, for what lies a period away, and for rounding
_RARE = 1e-7  # below this chance the Fourier series is not accurate enough, and the first theorem is near
_EDGE = 8.0  # deviations of a normal part after which its characteristic function is nothing
_WIDE = Fraction(4)  # s^2 from which terms may be taken as normal
_NOTHING = 1e-18  # terms of the series that are left out
_CLOSE = 2e-3  # a half-width that is wider than the normal one by no more is not improved
_HALVINGS = 24
_FEW = 64  # different terms that are kept apart
_PARTS = 1e12  # of the largest weight: weights that are closer are alike
_OUTWARD = 1 + 1e-9  # more than what the arithmetic of floats is off by

_Term = tuple[Fraction, float, int]  # s^2, weight, how many


@dataclass(frozen=True, slots=True)
class GaussianSum:
    """The noise of a sum: its normal part, of a variance, and terms (s^2, weight, how many alike).

    Very many terms are one normal part and a `shift`, by the theorem on one for all.

    >>> single = GaussianSum.of([(GaussianNoise(Fraction(1, 4)), np.array([1.0]))])
    >>> single.half_width(0.95), single.half_width(0.5)
    (1.0, 0.0)
    >>> both = GaussianSum.of([(GaussianNoise(Fraction(100)), np.array([0.3, 0.7, 0.1]))])
    >>> round(both.half_width(0.95), 2), round(1.96 * both.deviation, 2)
    (15.12, 15.06)
    """

    normal: float
    terms: tuple[_Term, ...]
    shift: float = 0.0

    @classmethod
    def of(
        cls, parts: Sequence[tuple[NoiseLaw, FloatArray]], times: Sequence[FloatArray] | None = None
    ) -> GaussianSum:
        """Return the sum of noises of these laws, each with an array of weights, or `times` each of them."""
        numbers = [np.ones(weights.shape) for _, weights in parts] if times is None else times
        pairs = zip(parts, numbers, strict=True)
        found = [_alike(law.parameter, weights, number) for (law, weights), number in pairs]
        terms = sorted((one for each in found for one in each), key=lambda one: one[1])
        if sum(times for *_, times in terms) <= 1:
            return cls(normal=0.0, terms=tuple(terms))
        variance = (_SMOOTH**2) * math.fsum(map(_variance, terms))
        normal, left = 0.0, []
        for one in terms:
            if one[0] >= _WIDE and _EDGE * one[1] <= math.sqrt(variance + normal):
                normal += _variance(one)
            else:
                left.append(one)
        if len(left) > _FEW and (shift := _shift(left)) is not None:
            return cls(normal=normal + math.fsum(map(_variance, left)), terms=(), shift=shift)
        return cls(normal=normal, terms=tuple(left))

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        each = (
            weight**2 * times * GaussianNoise(square).exact_variance for square, weight, times in self.terms
        )
        return math.sqrt(math.fsum((self.normal, *each)))

    def half_width(self, level: Any) -> float:
        """Return a w with P(|sum| > w) <= 1 - level: of a single integer the least one.

        Else it is wider by 0.5% of D at most, for levels from 0.5 to 1 - 1e-7; beyond by a tenth of itself.
        """
        return _half_width(self, 1 - confidence(level))

    def scaled(self, factor: float) -> GaussianSum:
        """Return the noise of a multiple of the sum."""
        terms = tuple((square, abs(factor) * weight, times) for square, weight, times in self.terms)
        return GaussianSum(normal=factor**2 * self.normal, terms=terms, shift=abs(factor) * self.shift)


@lru_cache(maxsize=4096)
def _half_width(noise: GaussianSum, miss: Fraction) -> float:
    chance = float(miss)
    if not noise.normal and _exact(noise.terms) >= 1 - chance * (1 - 1e-9):
        return 0.0
    if not noise.normal and sum(times for *_, times in noise.terms) == 1:
        [(square, weight, _)] = noise.terms
        return weight * GaussianNoise(square).least_half_width(miss)
    deviation = math.sqrt(noise.normal + math.fsum(map(_variance, noise.terms)))
    largest = [(square, np.array([weight])) for square, weight, _ in noise.terms]
    wide = float(_outer(np.array([deviation]), largest, miss)[0])
    if noise.shift and chance >= _RARE:
        return (_quantile(chance * (1 - _SHARE)) * deviation + noise.shift) * _OUTWARD
    if chance >= _RARE and wide > (1 + _CLOSE) * _quantile(chance) * deviation:
        wide = min(wide, _smoothed(noise, deviation, chance) * deviation)
    return wide * _OUTWARD


def _smoothed(noise: GaussianSum, deviation: float, chance: float) -> float:
    """Return the half-width in deviations, by the theorem on smoothing."""
    share = _SHARE * chance
    left, normal = chance - 3 * share, noise.normal / deviation**2 + _SMOOTH**2
    spread = math.sqrt(1 + _SMOOTH**2)
    most, away = (spread * math.sqrt(2 * math.log(2 / one)) for one in (left, share))
    step = 2 * math.pi / (most + away)
    number = np.arange(1.0, math.ceil(_EDGE / (step * math.sqrt(normal))) + 1)
    series = np.exp(-normal / 2 * (step * number) ** 2) / number
    for square, weight, times in sorted(noise.terms, key=_variance, reverse=True):
        kept = series * number > _NOTHING
        number, series = number[kept], series[kept]
        series = series * _characteristic(float(square), step * number * (weight / deviation)) ** times

    def missed(t: float) -> float:
        return 1 - (step * t + 2 * float((np.sin(step * t * number) * series).sum())) / math.pi

    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if missed(middle) <= left else (middle, high)
    return high + _SMOOTH * _quantile(share)


def _characteristic(square: float, angles: FloatArray) -> FloatArray:
    """Return E cos(angle X): as a sum over x where s is small, else over multiples of 2 pi (Poisson)."""
    found: FloatArray
    if square <= 1:
        x = np.arange(1, 10)
        masses = 2 * np.exp(-(x**2) / (2 * square))
        found = (1 + sum(mass * np.cos(angles * one) for one, mass in zip(x, masses, strict=True))) / (
            1 + masses.sum()
        )
        return np.maximum(found, 0.0)
    near = np.remainder(angles + math.pi, 2 * math.pi) - math.pi
    turns = 2 * math.pi * np.arange(-1, 2)
    found = (
        sum(np.exp(-square / 2 * (near + turn) ** 2) for turn in turns) / np.exp(-square / 2 * turns**2).sum()
    )
    return found


def many_half_widths(parts: Sequence[tuple[NoiseLaw, FloatArray, FloatArray]], level: Any) -> FloatArray:
    """Return what each of many sums stays within: near to the least where noise is large, else from above.

    A part is a law, and for each sum the sum of squares of its weights, and the largest of them.
    """
    deviations = np.sqrt(sum(float(law.parameter) * squares for law, squares, _ in parts))
    largest = [(law.parameter, most) for law, _, most in parts]
    return _outer(deviations, largest, 1 - confidence(level)) * _OUTWARD


def _outer(
    deviations: FloatArray, largest: Sequence[tuple[Fraction, FloatArray]], miss: Fraction
) -> FloatArray:
    """Return half-widths by the theorems on tails and one for all, of parts (s^2, largest weights)."""
    wide: FloatArray = math.sqrt(2 * (math.log(2) - _log(miss))) * deviations
    if miss < _RARE or any(square < _WIDE for square, _ in largest):
        return wide
    normal = _quantile(float(miss) * (1 - _SHARE)) * deviations
    if not largest:
        return normal + _SMOOTH * _quantile(float(miss) * _SHARE) * deviations
    above = np.maximum(_EDGE * np.maximum.reduce([most for _, most in largest]), _SMOOTH * deviations)
    for square, most in largest:
        fits = above <= math.sqrt(square) * most
        wide = np.where(fits, np.minimum(wide, normal + most), wide)
    return wide


def _shift(terms: Sequence[_Term]) -> float | None:
    """Return the least weight that can be the a of the theorem on one for all, None if none can."""
    if any(square < _WIDE for square, *_ in terms):
        return None
    weights, variances = np.array([one[1] for one in terms]), np.array(list(map(_variance, terms)))
    before = np.concatenate(([0.0], np.cumsum(variances)[:-1]))
    for place, (square, weight, times) in enumerate(terms):
        start = np.where(np.arange(len(terms)) <= place, float(square) * weight**2, 0.0)
        normal = (_EDGE * weights) ** 2 <= before + start
        if times == 1:
            normal[place] = True
        if normal.all():
            return weight
    return None


def _alike(square: Fraction, weights: FloatArray, number: FloatArray) -> list[_Term]:
    """Return terms of one law, those of one weight together."""
    sizes = np.abs(weights).reshape(-1)
    unit = float(sizes.max(initial=0.0)) / _PARTS
    if not unit:
        return []
    found, places = np.unique(np.rint(sizes / unit), return_inverse=True)
    times = np.bincount(places.reshape(-1), weights=number.reshape(-1))
    pairs = zip(found.tolist(), times.tolist(), strict=True)
    return [(square, one * unit, round(many)) for one, many in pairs if one]


def _variance(term: _Term) -> float:
    square, weight, times = term
    return float(square) * weight**2 * times


def _exact(terms: Sequence[_Term]) -> float:
    """Return the chance that all integers are zero. Rounds: down."""
    logs = (times * math.log1p(-min(1.0, 2 * GaussianNoise(square).tail(1))) for square, _, times in terms)
    try:
        return math.exp(math.fsum(logs))
    except ValueError:  # a tail of one half
        return 0.0


def _quantile(chance: float) -> float:
    """Return the z with P(|N(0,1)| > z) = chance."""
    return GaussianNoise.standard_quantile(chance)


def _log(chance: Fraction) -> float:
    return math.log(chance.numerator) - math.log(chance.denominator)
