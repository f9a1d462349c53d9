"""Integer noise with exactly the stated law: geometric, discrete Laplace, discrete Gaussian.

Scales are rational; a float stands for the binary value it holds. Scalars are drawn with
the rejection samplers of Canonne, Kamath and Steinke (2020), in integer arithmetic. Arrays
are drawn through a `Staircase`, whose law is the same and whose speed is that of NumPy.
Scales above 2^50 are drawn one by one as Python integers: nothing wraps around.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import Number, count, positive
from sfumato.core.coins import bernoulli_exp
from sfumato.core.entropy import random_bits
from sfumato.core.staircase import GAUSSIAN, GEOMETRIC, LAPLACE, StaircaseLaw, staircase
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument

__all__ = ["discrete_gaussian", "discrete_laplace", "geometric"]

_IntArray = npt.NDArray[np.int64]
_Elements = npt.NDArray[Any] | list[Any]

_WIDE = 2.0**50
_TINY = 2.0**-500  # below this a float stands in: both laws are 0 but for a chance of e^-(2^499)
_BLOCKS = 5  # blocks are of 2^-5 to 2^-4 of the scale, and never below one
_FEW_SCALES = 16
_PER_OCTAVE = 8
_LEAST_STEP = -10 * _PER_OCTAVE  # below 2^-10 every scale shares one staircase


@overload
def geometric(scale: Number, size: None = None) -> int: ...
@overload
def geometric(scale: Number, size: int) -> _IntArray: ...
@overload
def geometric(scale: _Elements, size: None = None) -> _IntArray: ...


def geometric(scale: Number | _Elements, size: int | None = None) -> int | npt.NDArray[Any]:
    """Draw from P(x) = (1 - exp(-1/scale)) * exp(-x/scale), x = 0, 1, ...; one scale or one per element.

    >>> bool((geometric(2, size=100) >= 0).all())
    True
    """
    return _draw(GEOMETRIC, _scalar_geometric, scale, size, "scale", squared=False)


@overload
def discrete_laplace(scale: Number, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Number, size: int) -> _IntArray: ...
@overload
def discrete_laplace(scale: _Elements, size: None = None) -> _IntArray: ...


def discrete_laplace(scale: Number | _Elements, size: int | None = None) -> int | npt.NDArray[Any]:
    """Draw from P(x) proportional to exp(-|x|/scale) over all integers; one scale or one per element.

    >>> discrete_laplace(10, size=4).shape
    (4,)
    """
    return _draw(LAPLACE, _scalar_laplace, scale, size, "scale", squared=False)


@overload
def discrete_gaussian(sigma: Number, size: None = None, *, squared: bool = False) -> int: ...
@overload
def discrete_gaussian(sigma: Number, size: int, *, squared: bool = False) -> _IntArray: ...
@overload
def discrete_gaussian(sigma: _Elements, size: None = None, *, squared: bool = False) -> _IntArray: ...


def discrete_gaussian(
    sigma: Number | _Elements, size: int | None = None, *, squared: bool = False
) -> int | npt.NDArray[Any]:
    """Draw from P(x) proportional to exp(-x^2 / (2 sigma^2)) over all integers; one sigma or one per element.

    With `squared=True` the first argument is sigma^2: a rational rho has a rational
    sigma^2 = 1 / (2 rho), but rarely a rational sigma.

    >>> discrete_gaussian(10, size=4).shape
    (4,)
    """
    return _draw(GAUSSIAN, _scalar_gaussian, sigma, size, "sigma", squared=squared)


def _scalar_geometric(scale: Fraction) -> int:
    """Theorem: X = U + n*V with U below n kept with probability exp(-U/n), V geometric(1 - 1/e),
    is geometric with scale n; X // d has scale n/d (Canonne, Kamath and Steinke 2020, Algorithm 2)."""
    numerator = scale.numerator
    while not bernoulli_exp(Fraction(within := uniform_below(numerator), numerator)):
        pass
    whole = 0
    while bernoulli_exp(1):
        whole += 1
    return (within + numerator * whole) // scale.denominator


def _scalar_laplace(scale: Fraction) -> int:
    """Theorem: a random sign on a geometric magnitude, with one of the two zeros refused (ibid.)."""
    while True:
        magnitude, negative = _scalar_geometric(scale), random_bits(1)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def _scalar_gaussian(sigma_squared: Fraction) -> int:
    """Theorem: Y of discrete Laplace scale t, kept with probability exp(-(|Y| - s/t)^2 / (2s)),
    s = sigma^2, is discrete Gaussian for any t; t near sigma is fast (ibid., Algorithm 3)."""
    t = math.isqrt(sigma_squared.numerator // sigma_squared.denominator) + 1
    while True:
        y = _scalar_laplace(Fraction(t))
        if bernoulli_exp((abs(y) - sigma_squared / t) ** 2 / (2 * sigma_squared)):
            return y


def _draw(
    law: StaircaseLaw,
    scalar: Callable[[Fraction], int],
    given: Number | _Elements,
    size: int | None,
    name: str,
    *,
    squared: bool,
) -> int | npt.NDArray[Any]:
    """Draw from `law`; `scalar` and the staircase take scale^power, which is exact where the scale is not."""

    def power(value: Any) -> Fraction:
        checked = positive(value, name)
        return checked if squared else checked**law.power

    if isinstance(given, (np.ndarray, list)):
        if size is not None:
            raise InvalidArgument(f"give either one {name} per element or a size, not both", place="size")
        # A list is checked element by element: NumPy would turn [1, True] into numbers.
        elements = given if isinstance(given, np.ndarray) else np.array(given, dtype=object)
        return _each(law, scalar, elements.ravel(), power, name, squared).reshape(elements.shape)
    exact = power(given)
    if size is None:
        return scalar(exact)
    size = count(size, "size", least=0)
    scale = _root(exact, law.power)
    if scale > _WIDE:
        return np.array([scalar(exact) for _ in range(size)], dtype=object)
    shift = max(0, math.frexp(scale)[1] - _BLOCKS)
    ratio = scale / 2**shift
    stairs = staircase(law, low=ratio, high=ratio, wide=shift > 0)
    return stairs.sample(size, shifts=shift, scales=scale, exact=lambda _: exact)


def _each(
    law: StaircaseLaw,
    scalar: Callable[[Fraction], int],
    elements: npt.NDArray[Any],
    power: Callable[[Any], Fraction],
    name: str,
    squared: bool,
) -> npt.NDArray[Any]:
    """Draw with one scale per element: elements of similar scale share a staircase."""
    if elements.dtype.kind in "iuf":
        scales = elements.astype(np.float64)
        if not (np.isfinite(scales) & (scales > 0)).all():
            hint = f"look for NaN, infinities, zeros and negatives among the {name}s"
            raise InvalidArgument(f"every {name} must be finite and above zero", place=name, hints=(hint,))
        if squared:
            scales = np.sqrt(scales)
        scales = np.maximum(scales, _TINY)
    else:  # Fractions, Python integers; anything else is refused by name
        scales = np.array([_root(power(value), law.power) for value in elements], dtype=np.float64)

    if (scales > _WIDE).any():
        return np.array([scalar(power(value)) for value in elements], dtype=object)
    values: npt.NDArray[Any] = np.empty(len(elements), dtype=np.int64)
    for where, low, high in _groups(scales):
        given = elements[where]
        shifts = np.maximum(0, np.frexp(scales[where])[1] - _BLOCKS).astype(np.int64)
        stairs = staircase(law, low=low, high=high, wide=bool(shifts[0] > 0))

        def exact(i: int, given: npt.NDArray[Any] = given) -> Fraction:
            return power(given[i])

        drawn = stairs.sample(len(where), shifts=shifts, scales=scales[where], exact=exact)
        values = values if drawn.dtype != object else values.astype(object)
        values[where] = drawn
    return values


def _groups(scales: npt.NDArray[np.float64]) -> list[tuple[_IntArray, float, float]]:
    """Group elements that share a staircase: their indices, and the range of scale / 2^shift."""
    shifts = np.maximum(0, np.frexp(scales)[1] - _BLOCKS)
    ratios = scales / np.exp2(shifts)
    wide = shifts > 0
    keys = np.where(wide, -ratios, ratios)
    if len(np.unique(keys)) > _FEW_SCALES:
        keys = 2 * np.maximum(_LEAST_STEP, np.ceil(np.log2(ratios) * _PER_OCTAVE)) + wide
    groups = (np.flatnonzero(keys == key) for key in np.unique(keys))
    # The exact range of what is in the group: no rounding of a logarithm matters.
    return [(where, float(ratios[where].min()), float(ratios[where].max())) for where in groups]


def _root(exact: Fraction, power: int) -> float:
    """Return exact^(1/power) within a few units in the last place; inf where it is above every float."""
    try:
        root = float(exact)
    except OverflowError:
        return math.inf
    return max(_TINY, math.sqrt(root) if power == 2 else root)
