"""Means, variances, covariances and correlations from noisy centred moments, with intervals.

n, S, Q, C are noisy sums in real units: of ones, of (x - centre), of its square, of a cross
product. Each statistic theta makes `numerator - theta * denominator` zero in exact sums:

    mean - centre     S - theta n
    variance          (Q - S^2/n) - theta n        (sample: theta (n - 1))
    covariance        (C - S T/n) - theta n        (sample: theta (n - 1))
    correlation       Dxy - theta sqrt(Dxx Dyy)    with the sums of products of deviations D

Intervals are Fieller's (see `ratios`). For the mean they cover with the stated probability at any
group size. For the others the noise in the numerator is linear up to a remainder of the order of
noise^2/n: its known mean is taken off, its variance is added; coverage is then approximate, and
tests measure it down to groups whose size is a few times the noise. A group whose size is not
clear of its own noise gets the whole declared range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.ratios import fieller
from sfumato.aggregates.registry import Function
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import Unsupported

__all__ = ["Estimate", "correlation", "covariance", "half_width", "mean", "variance"]

_Floats = npt.NDArray[np.float64]
_Noisy = npt.NDArray[np.int64] | npt.NDArray[np.object_]

_SAMPLE = (Function.VAR_SAMP, Function.STDDEV_SAMP, Function.COVAR_SAMP)
_ROOT = (Function.STDDEV_POP, Function.STDDEV_SAMP)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """One number per group and its interval; NaN as a value stands for NULL."""

    values: _Floats
    low: _Floats
    high: _Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sum:
    """A noisy sum in real units: `unit` is the size of one of its integers, `spread` its deviation."""

    total: _Floats
    unit: float
    law: NoiseLaw

    @property
    def spread(self) -> float:
        return self.unit * self.law.deviation


def half_width(answer: Answer, laws: Sequence[NoiseLaw], chance: float) -> float:
    """Return what the noise of a sum around a centre, S * scale + centre * N, stays within."""
    zero, one = np.zeros(1), np.ones(1)
    units = (abs(answer.centre) * float(answer.weight), float(answer.scale))
    weights = [(unit * one, zero) for unit in units]
    far = np.full(1, np.inf)
    _, high = fieller(zero, one, laws=laws, weights=weights, low=-far, high=far, chance=chance)
    return float(high[0])


def mean(answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float) -> Estimate:
    """Return centre + S / n."""
    n, s = _sums(noisy, laws, (float(answer.weight), float(answer.scale)))
    zero, one = np.zeros_like(n.total), np.ones_like(n.total)
    low, high = _limits(answer, n.total)
    ends = fieller(
        s.total,
        n.total,
        laws=laws,
        weights=[(zero, -n.unit * one), (s.unit * one, zero)],
        low=low - answer.centre,
        high=high - answer.centre,
        chance=chance,
    )
    values = answer.centre + _over(s.total, n.total)
    return _estimate(answer, values, ends[0] + answer.centre, ends[1] + answer.centre)


def variance(answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float) -> Estimate:
    """Return (Q - S^2/n) / n or / (n - 1), or its root."""
    scale = float(answer.scale)
    n, s, q = _sums(noisy, laws, (float(answer.weight), scale, scale**2))
    root = answer.function in _ROOT
    degrees = n.total - (1.0 if answer.function in _SAMPLE else 0.0)
    m = _over(s.total, n.total, otherwise=0.0)
    deviations = q.total - m * s.total
    one, zero = np.ones_like(m), np.zeros_like(m)
    bias, extra = _remainder(n, s, s, m, m)
    low, high = _limits(answer, m)
    ends = fieller(
        deviations + bias,
        degrees,
        laws=laws,
        weights=[(m**2 * n.unit, -n.unit * one), (-2 * m * s.unit, zero), (q.unit * one, zero)],
        extra=lambda theta: extra,
        low=np.sign(low) * low**2 if root else low,
        high=high**2 if root else high,
        chance=chance,
    )
    values = _over(deviations, degrees)
    if root:
        values = np.sqrt(np.maximum(values, 0.0))
        ends = np.sqrt(np.maximum(ends[0], 0.0)), np.sqrt(np.maximum(ends[1], 0.0))
    return _estimate(answer, values, *ends)


def covariance(answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float) -> Estimate:
    """Return (C - S T/n) / n or / (n - 1)."""
    a, b = float(answer.scale), float(answer.second_scale)
    n, s, t, c = _sums(noisy, laws, (float(answer.weight), a, b, a * b))
    degrees = n.total - (1.0 if answer.function in _SAMPLE else 0.0)
    x, y = _over(s.total, n.total, otherwise=0.0), _over(t.total, n.total, otherwise=0.0)
    deviations = c.total - x * t.total
    one, zero = np.ones_like(x), np.zeros_like(x)
    bias, extra = _remainder(n, s, t, x, y)
    low, high = _limits(answer, x)
    ends = fieller(
        deviations + bias,
        degrees,
        laws=laws,
        weights=[
            (x * y * n.unit, -n.unit * one),
            (-y * s.unit, zero),
            (-x * t.unit, zero),
            (c.unit * one, zero),
        ],
        extra=lambda theta: extra,
        low=low,
        high=high,
        chance=chance,
    )
    return _estimate(answer, _over(deviations, degrees), *ends)


def correlation(answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float) -> Estimate:
    """Return Dxy / sqrt(Dxx Dyy)."""
    a, b = float(answer.scale), float(answer.second_scale)
    n, s, t, q, r, c = _sums(noisy, laws, (float(answer.weight), a, b, a * a, b * b, a * b))
    x, y = _over(s.total, n.total, otherwise=0.0), _over(t.total, n.total, otherwise=0.0)
    xx, yy, xy = q.total - x * s.total, r.total - y * t.total, c.total - x * t.total
    defined = (n.total > 0) & (xx > 0) & (yy > 0)
    with np.errstate(invalid="ignore"):
        values = np.where(defined, xy / np.sqrt(np.where(defined, xx * yy, 1.0)), np.nan)
    (bx, ex), (by, ey), (bxy, exy) = (
        _remainder(n, s, s, x, x),
        _remainder(n, t, t, y, y),
        _remainder(n, s, t, x, y),
    )
    xx, yy = np.where(defined, np.maximum(xx + bx, 0), 0.0), np.where(defined, np.maximum(yy + by, 0), 0.0)
    k = np.sqrt(_over(yy, xx, otherwise=1.0))
    k = np.where(k > 0, k, 1.0)
    one, zero = np.ones_like(x), np.zeros_like(x)
    low, high = _limits(answer, x)
    ends = fieller(
        xy + bxy,
        np.sqrt(xx * yy),
        laws=laws,
        weights=[
            (x * y * n.unit, -0.5 * (k * x**2 + y**2 / k) * n.unit),
            (-y * s.unit, k * x * s.unit),
            (-x * t.unit, y / k * t.unit),
            (zero, -0.5 * k * q.unit),
            (zero, -0.5 / k * r.unit),
            (c.unit * one, zero),
        ],
        extra=lambda theta: exy + theta**2 / 4 * (k**2 * ex + ey / k**2),
        low=np.maximum(low, -1.0),
        high=np.minimum(high, 1.0),
        chance=chance,
    )
    return _estimate(answer, values, *ends)


def _remainder(n: _Sum, s: _Sum, t: _Sum, x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
    """Return (what to add, variance) for the part of the noise of S T/n that is not linear.

    (S + X)(T + Y)/(n + Z) = S T/n + linear + XY/n - (x Y + y X) Z/n + x y Z^2/n + .., x = S/n, y = T/n.
    """
    size = np.maximum(np.abs(n.total), n.spread)
    same = s is t
    with np.errstate(over="ignore"):
        bias = ((s.spread**2 if same else 0.0) + x * y * n.spread**2) / size
        products = (s.law.fourth if same else 1.0) * (s.spread * t.spread) ** 2
        across = (
            (np.abs(x) * t.spread + np.abs(y) * s.spread) ** 2
            if same
            else (x * t.spread) ** 2 + (y * s.spread) ** 2
        )
        extra = (products + across * n.spread**2 + n.law.fourth * (x * y) ** 2 * n.spread**4) / size**2
    return bias, extra


def _sums(noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], units: Sequence[float]) -> list[_Sum]:
    if not len(noisy) == len(laws) == len(units):
        raise Unsupported("an aggregate that is answered from other measures than its function says")
    return [
        _Sum(total=np.asarray(integers, dtype=np.float64) * unit, unit=unit, law=law)
        for integers, law, unit in zip(noisy, laws, units, strict=True)
    ]


def _over(numerator: _Floats, denominator: _Floats, otherwise: float = np.nan) -> _Floats:
    """Divide where the denominator is above zero."""
    positive = denominator > 0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(positive, numerator / np.where(positive, denominator, 1.0), otherwise)


def _limits(answer: Answer, like: _Floats) -> tuple[_Floats, _Floats]:
    low = -np.inf if answer.lower is None else answer.lower
    high = np.inf if answer.upper is None else answer.upper
    return np.full_like(like, low), np.full_like(like, high)


def _estimate(answer: Answer, values: _Floats, low: _Floats, high: _Floats) -> Estimate:
    """Move values into the declared range, and let intervals include them."""
    with np.errstate(invalid="ignore"):
        values = np.clip(values, *_limits(answer, values))
        low, high = np.fmin(low, values), np.fmax(high, values)
    return Estimate(values=values, low=low, high=high)
