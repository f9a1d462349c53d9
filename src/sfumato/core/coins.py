"""Coins with exactly the stated bias: Bernoulli(p) and Bernoulli(exp(-x)), p and x rational.

Arrays are decided on 64 random bits each, in floats with a rigorous error margin; the rare element that
the margin cannot settle is decided in exact arithmetic with further bits (`exponential.falls_below`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import Number, count, non_negative, probability
from sfumato.core.entropy import random_bits, random_words
from sfumato.core.exponential import exp_bounds, falls_below
from sfumato.errors import InvalidArgument

__all__ = ["bernoulli", "bernoulli_exp", "bernoulli_exp_multiples", "float_margin"]

_BoolArray = npt.NDArray[np.bool_]
_Elements = npt.NDArray[Any] | list[Any]

_BITS = 64
_ZERO = Fraction(0)
_ONE = Fraction(1)


@overload
def bernoulli(p: Number, size: None = None) -> bool: ...
@overload
def bernoulli(p: Number, size: int) -> _BoolArray: ...


def bernoulli(p: Number, size: int | None = None) -> bool | _BoolArray:
    """Toss a coin that is True with probability exactly p.

    >>> bernoulli(1), bernoulli(0)
    (True, False)
    """
    chance = probability(p, "p")
    if size is None:
        return falls_below(random_bits(_BITS), _BITS, ratio=chance, exponent=_ZERO)
    size = count(size, "size", least=0)
    if chance == 1:
        return np.ones(size, dtype=np.bool_)
    scaled = chance * 2**_BITS
    threshold = scaled.numerator // scaled.denominator
    return _compare(random_words(size), threshold, threshold, ratio=chance, exponent=_ZERO)


@overload
def bernoulli_exp(x: Number, size: None = None) -> bool: ...
@overload
def bernoulli_exp(x: Number, size: int) -> _BoolArray: ...
@overload
def bernoulli_exp(x: _Elements, size: None = None) -> _BoolArray: ...


def bernoulli_exp(x: Number | _Elements, size: int | None = None) -> bool | _BoolArray:
    """Toss a coin that is True with probability exactly exp(-x), x >= 0; one x or one per element.

    >>> bernoulli_exp(0), bernoulli_exp(700)  # surely, and with a chance of 1e-304
    (True, False)
    """
    if isinstance(x, (np.ndarray, list)):
        if size is not None:
            raise InvalidArgument("give either one x per element or a size, not both", place="size")
        return _each_exp(x if isinstance(x, np.ndarray) else np.array(x, dtype=object))
    exponent = non_negative(x, "x")
    if size is None:
        return falls_below(random_bits(_BITS), _BITS, ratio=_ONE, exponent=exponent)
    size = count(size, "size", least=0)
    low, high = exp_bounds(exponent, _BITS)
    if low == 2**_BITS:
        return np.ones(size, dtype=np.bool_)
    return _compare(random_words(size), low, high, ratio=_ONE, exponent=exponent)


def bernoulli_exp_multiples(rate: Number, multiples: npt.NDArray[Any]) -> _BoolArray:
    """Toss a coin per element that is True with probability exactly exp(-rate * multiple).

    Multiples are integers, none below zero. As fast as floats, for exact numbers are only made of
    those elements that floats do not decide: rate, multiple and their product take a rounding each,
    of the ten that `float_margin` allows for.

    >>> bernoulli_exp_multiples(Fraction(1, 3), np.array([0, 10**6]))
    array([ True, False])
    """
    step = non_negative(rate, "rate")
    if multiples.dtype.kind not in "iuO" or (multiples.size and multiples.min() < 0):
        raise InvalidArgument("multiples must be integers that are not negative", place="multiples")
    whole = multiples.ravel()
    with np.errstate(over="ignore"):
        floats = np.minimum(whole.astype(np.float64) * float(min(step, Fraction(2**60))), 2.0**60)
    return _decided(floats, lambda i: step * int(whole[i])).reshape(multiples.shape)


def float_margin(exponents: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Bound the relative error of `ratio * exp(-x)` in float64, where x took up to ten roundings.

    Theorem: a relative error of 10 * 2^-53 in x moves exp(-x) by a factor of at most
    exp(x * 10 * 2^-53) < 1 + x * 2^-49 in the range where it matters (x below 1000); exp
    itself, the ratio and their product add less than 8 * 2^-52. The bound is above both.
    """
    return (exponents + 8) * 2.0**-49


def _compare(
    words: npt.NDArray[np.uint64], low: int, high: int, *, ratio: Fraction, exponent: Fraction
) -> _BoolArray:
    """Decide word/2^64 < p where low <= p * 2^64 <= high, or low = high is the floor of it."""
    heads = words < np.uint64(low)
    for i in np.flatnonzero(~heads & (words <= np.uint64(min(high, 2**_BITS - 1)))):
        heads[i] = falls_below(int(words[i]), _BITS, ratio=ratio, exponent=exponent)
    return heads


def _each_exp(exponents: npt.NDArray[Any]) -> _BoolArray:
    rational = exponents.dtype == object
    if rational:
        checked = [non_negative(x, "x") for x in exponents.ravel()]
        floats = np.array([float(x) if x < 2**60 else 2.0**60 for x in checked])
    else:
        if exponents.dtype.kind not in "iuf":
            raise InvalidArgument("x must hold numbers", place="x")
        floats = exponents.astype(np.float64).ravel()
        if not np.isfinite(floats).all() or (floats < 0).any():
            hint = "look for NaN, infinities and negatives"
            raise InvalidArgument("every x must be finite and not negative", place="x", hints=(hint,))
    heads = _decided(floats, lambda i: checked[i] if rational else Fraction(exponents.ravel()[i].item()))
    return heads.reshape(exponents.shape)


def _decided(floats: npt.NDArray[np.float64], exact: Callable[[int], Fraction]) -> _BoolArray:
    """Toss coins of exponents that floats are near, and `exact` gives where that does not settle it."""
    words = random_words(len(floats))
    scaled = np.exp(-floats) * 2.0**_BITS
    # A word rounds to float64 with an error of at most 2^10, of which 2^12 takes care.
    margin = scaled * float_margin(floats) + 2.0**12
    distance = scaled - words.astype(np.float64)
    heads: _BoolArray = distance > margin
    for i in np.flatnonzero(np.abs(distance) <= margin):
        heads[i] = falls_below(int(words[i]), _BITS, ratio=_ONE, exponent=exact(int(i)))
    return heads
