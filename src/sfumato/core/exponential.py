"""Exact decisions about exp(-x) for rational x, by integer interval arithmetic; bounds of e^x and ln x.

A uniform number U in [0, 1) is known by a finite prefix of its random bits. Whether
U < ratio * exp(-x) is decided from integer bounds that are certain; where the prefix
does not settle it, more random bits are drawn. The decision is therefore exact: it is
true with probability ratio * exp(-x), given ideal bits, and not merely close to it.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction

from sfumato.core.arguments import upper_float
from sfumato.core.entropy import random_bits

__all__ = ["exp_below", "exp_bounds", "falls_below", "log_above"]

_MORE_BITS = 64
_GUARD_BITS = 8


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with low <= exp(-exponent) * 2^bits <= high, for exponent >= 0.

    The bounds are at most 2 apart. Theorem: halve the exponent until it is below 1/2,
    sum the alternating Taylor series, whose truncation error is below its first omitted
    term, and square back; every rounding is outward.

    >>> exp_bounds(Fraction(0), 8)
    (256, 256)
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:
        return 0, 1  # e^-bits < 2^-bits
    numerator, denominator = exponent.numerator, exponent.denominator
    halvings = max(0, numerator.bit_length() - denominator.bit_length() + 2)
    precision = bits + 2 * halvings + 16  # each squaring at most doubles the error
    reduced = (numerator << precision) // (denominator << halvings)  # below 1/2, short by less than 1

    total = term = 1 << precision
    terms = 0
    while term:
        terms += 1
        term = (term * reduced >> precision) // terms
        total += -term if terms % 2 else term
    slack = 2 * terms + 4  # truncated terms, the omitted rest, and the reduced exponent's rounding
    low, high = total - slack, total + slack
    for _ in range(halvings):
        low = low * low >> precision
        high = -(-high * high >> precision)
    spare = precision - bits
    return low >> spare, -(-high >> spare)


def falls_below(prefix: int, bits: int, *, ratio: Fraction, exponent: Fraction) -> bool:
    """Decide U < ratio * exp(-exponent) for a uniform U whose first `bits` bits are `prefix`.

    Theorem: U lies in [prefix, prefix + 1) / 2^bits, and given the prefix it is uniform
    there; further bits refine it without changing its law, so the answer is that of an
    infinitely precise U. Terminates with probability one.
    """
    while True:
        scale = bits + _GUARD_BITS
        low, high = exp_bounds(exponent, scale)
        if (prefix + 1 << _GUARD_BITS) * ratio.denominator <= low * ratio.numerator:
            return True
        if (prefix << _GUARD_BITS) * ratio.denominator >= high * ratio.numerator:
            return False
        prefix = prefix << _MORE_BITS | random_bits(_MORE_BITS)
        bits += _MORE_BITS


def log_above(ratio: Fraction) -> float:
    """Return ln(ratio) for ratio >= 1, rounded up to the next float. Rounds: up.

    >>> log_above(Fraction(1))
    0.0
    """
    if ratio == 1:
        return 0.0
    # ln(1 + x) is about x: as many more digits as x has leading zeros, and forty to spare.
    zeros = ratio.denominator.bit_length() - (ratio.numerator - ratio.denominator).bit_length()
    context = Context(prec=60 + max(0, zeros), rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return upper_float(Fraction(context.next_plus(context.ln(quotient))))


def exp_below(epsilon: Fraction, bits: int = 96) -> Fraction:
    """Return a rational just below e^epsilon, by less than 2^-bits of it. Rounds: down."""
    if epsilon == 0:
        return Fraction(1)
    precision = bits + 8 + math.ceil(epsilon * 3 / 2)  # 1/ln 2 < 3/2: the leading zeros of e^-epsilon
    return max(Fraction(1), Fraction(2**precision, exp_bounds(epsilon, precision)[1]))
