"""Numbers: the kind of what arithmetic makes of two kinds of numbers, by DuckDB's rules.

    whole and whole        whole: 64 bits, or 128 where an operand has them
    decimal with exact     decimal. A whole number has 19 or 38 digits, a short constant 10.
                           A sum has the digits before and behind the point that hold it, a product has those
                           of both operands together; more than 38 become 38, and what does not fit is NULL
    binary with any        binary: REAL beside REAL, else FLOAT

Engines that have other rules for the width of a decimal lose nothing: a width never changes a value, only
where it ends. The digits behind the point do, and they are DuckDB's. What would need more than 38 of them, or
decimals that no common kind holds exactly, is refused: DuckDB refuses the one and rounds the other.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.plan.tree import Literal

__all__ = [
    "KindError",
    "as_decimal",
    "common_number",
    "exact_literal",
    "product_kind",
    "quotient_kind",
    "remainder_kind",
    "rounded_kind",
    "sum_kind",
    "widened",
]

_WORD_DIGITS = 18  # of a decimal that fits into 64 bits


class KindError(Exception):
    """Kinds of values that do not fit one another or the function; it becomes a refusal with a place."""


def as_decimal(kind: Kind) -> Kind:
    """Return the decimals that hold a kind of exact numbers (of 128-bit integers, all but the largest).

    >>> as_decimal(Kind.INTEGER)
    Kind('decimal(19,0)')
    """
    if kind.digits:
        return kind
    return Kind.decimal(19 if kind is Kind.INTEGER else MOST_DIGITS, 0)


def exact_literal(literal: Literal) -> Literal:
    """Return a constant of 32 bits as a decimal, which has ten digits; wider ones stay as they are.

    No width of ours is below the engine's: where it rounds because 38 digits do not suffice, we refuse.
    """
    if not isinstance(literal.value, int) or not -(2**31) <= literal.value < 2**31:
        return literal
    return Literal(value=Decimal(literal.value), kind=Kind.decimal(10, 0), span=literal.span)


def common_number(kinds: list[Kind]) -> Kind:
    """Return the kind in which numbers of several kinds are compared or chosen from."""
    return reduce(_common, kinds)


def _common(first: Kind, second: Kind) -> Kind:
    if first is second:
        return first
    if not (first.exact and second.exact):
        return Kind.REAL if Kind.REAL in (first, second) else Kind.FLOAT
    if first.whole and second.whole:
        return Kind.HUGEINT
    before, scale = _digits([first, second])
    if before + scale > MOST_DIGITS and first.digits and second.digits:
        raise KindError(f"cannot hold {first.value} and {second.value} in one decimal exactly")
    return Kind.decimal(min(MOST_DIGITS, before + scale), scale)


def sum_kind(kinds: list[Kind]) -> Kind:
    """Return the kind of a sum or a difference.

    >>> sum_kind([Kind.decimal(15, 2), Kind.decimal(1, 0)])
    Kind('decimal(16,2)')
    """
    if not any(kind.digits for kind in kinds) or any(kind.binary for kind in kinds):
        return common_number(kinds)
    before, scale = _digits(kinds)
    return Kind.decimal(min(MOST_DIGITS, before + scale + 1), scale)


def _digits(kinds: list[Kind]) -> tuple[int, int]:
    """Return how many digits before and behind the point hold all of several kinds of exact numbers."""
    decimals = [as_decimal(kind) for kind in kinds]
    return max(one.digits - one.scale for one in decimals), max(one.scale for one in decimals)


def product_kind(kinds: list[Kind]) -> Kind:
    """Return the kind of a product.

    >>> product_kind([Kind.decimal(4, 2), Kind.decimal(5, 1)])
    Kind('decimal(9,3)')
    """
    if not any(kind.digits for kind in kinds) or any(kind.binary for kind in kinds):
        return common_number(kinds)
    one, other = widened(*kinds)
    scale = one.scale + other.scale
    if scale > MOST_DIGITS:
        raise KindError(f"needs {scale} digits behind the point, and decimals have {MOST_DIGITS}")
    return Kind.decimal(min(MOST_DIGITS, one.digits + other.digits), scale)


def widened(first: Kind, second: Kind) -> tuple[Kind, Kind]:
    """Return the kinds of two factors, the first too wide for the engine to cut the product."""
    one, other = as_decimal(first), as_decimal(second)
    narrow = max(one.digits, other.digits) <= _WORD_DIGITS and one.scale + other.scale < _WORD_DIGITS
    if narrow and one.digits + other.digits > _WORD_DIGITS:
        one = Kind.decimal(_WORD_DIGITS + 1, one.scale)
    return one, other


def remainder_kind(kinds: list[Kind]) -> Kind:
    """Return the kind of `%`: of decimals that no decimal holds both, binary."""
    decimal = any(kind.digits for kind in kinds) and not any(kind.binary for kind in kinds)
    if not decimal or sum(_digits(kinds)) <= MOST_DIGITS:
        return common_number(kinds)
    if any(kind.whole for kind in kinds):  # the engine decides by the narrower type of the column
        raise KindError(f"cannot hold {kinds[0].value} and {kinds[1].value} in one decimal exactly")
    return Kind.REAL


def quotient_kind(kinds: list[Kind]) -> Kind:
    """Return the kind of `/`, which is binary."""
    return Kind.REAL if Kind.FLOAT not in kinds or Kind.REAL in kinds else Kind.FLOAT


def rounded_kind(kind: Kind, places: int) -> Kind:
    """Return the kind of a number that is rounded to some digits behind the point.

    >>> rounded_kind(Kind.decimal(15, 4), 2), rounded_kind(Kind.decimal(15, 4), -2)
    (Kind('decimal(15,2)'), Kind('decimal(15,0)'))
    """
    if not kind.digits:
        return kind
    more = 1 if places < 0 and kind.scale == 0 and kind.digits < MOST_DIGITS else 0  # 99 becomes 100
    return Kind.decimal(kind.digits + more, min(kind.scale, max(places, 0)))
