"""Conversions: those that a question writes, and those that the engine adds unasked.

A text constant beside numbers is a number, beside dates a date; a truth beside numbers is 0 or 1; a whole
number among conditions is whether it is not zero; a short whole constant beside decimals is a decimal.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

from sfumato.aggregates.record import AggregateRecord
from sfumato.catalog.kind import MOST_DIGITS, Kind, Value
from sfumato.plan import numbers
from sfumato.plan.numbers import KindError
from sfumato.plan.tree import Cast, Expression, Literal, Span

__all__ = ["MOMENTS", "as_argument", "as_condition", "cast", "with_dates", "with_decimals", "with_numbers"]

MOMENTS = (Kind.DATE, Kind.TIMESTAMP)
"""The kinds of dates."""

_TRUTHS = {"true": True, "false": False}


def cast(
    operand: Expression, kind: Kind, span: Span | None = None, limits: tuple[int, int] | None = None
) -> Expression:
    """Return a conversion; a text constant becomes a date constant at once.

    `limits` are those of a type of whole numbers that is narrower than its kind.
    """
    if isinstance(operand, Literal) and operand.kind is Kind.TEXT and kind in MOMENTS:
        return _dated(operand, kind, span)
    if isinstance(operand, Literal) and isinstance(operand.value, datetime.datetime) and kind is Kind.DATE:
        return Literal(value=operand.value.date(), kind=kind, span=span)
    if operand.kind is kind and limits is None:
        return operand
    return Cast(operand=operand, kind=kind, limits=limits, span=span)


def as_argument(value: Expression, record: AggregateRecord) -> Expression:
    """Return an argument of an aggregate: a truth that is added up is 0 or 1."""
    return cast(value, Kind.INTEGER) if record.adds_truths and value.kind is Kind.BOOLEAN else value


def as_condition(value: Expression) -> Expression:
    """Return a value as one that is true or false, where it is a whole number: whether it is not zero."""
    if value.kind is None or not value.kind.whole:
        return value
    if isinstance(value, Literal):
        return Literal(value=value.value != 0, kind=Kind.BOOLEAN, span=value.span)
    return Cast(operand=value, kind=Kind.BOOLEAN, span=value.span)


def with_dates(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    kinds = [argument.kind for argument in arguments]
    kind = next((kind for kind in kinds if kind in MOMENTS), None)
    if kind is None:
        return arguments
    return tuple(
        _dated(argument, kind, argument.span)
        if isinstance(argument, Literal) and argument.kind is Kind.TEXT
        else argument
        for argument in arguments
    )


def _dated(literal: Literal, kind: Kind, span: Span | None) -> Literal:
    """Return a text as a date or a timestamp; a date may be given with its time, and is a timestamp then."""
    text = str(literal.value)
    for read, found in ((datetime.date, Kind.DATE), (datetime.datetime, Kind.TIMESTAMP)):
        if found is Kind.DATE and kind is not Kind.DATE:
            continue
        try:
            value = read.fromisoformat(text)
        except ValueError:
            continue
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            raise KindError("timestamps have no time zone")
        return Literal(value=value, kind=found, span=span)
    raise KindError(f"'{text}' is not a {kind.value}; write it as 2024-02-01")


def with_numbers(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return text constants beside numbers as numbers, and truths beside numbers as 0 and 1."""
    kinds = [argument.kind for argument in arguments if argument.kind is not None]
    numeric = [kind for kind in kinds if kind.numeric]
    number = numeric[0] if numeric else None
    if number is None and Kind.BOOLEAN in kinds and Kind.TEXT in kinds:
        number = Kind.BOOLEAN
    if number is None or len(numeric) == len(kinds):
        return arguments
    if Kind.BOOLEAN in kinds and any(kind.numeric and not kind.whole for kind in kinds):
        return arguments  # which the engine refuses, too
    found: list[Expression] = []
    for one in arguments:
        if isinstance(one, Literal) and isinstance(one.value, str):
            one = _numbered(one, number)
        if one.kind is Kind.BOOLEAN and number.numeric:
            if isinstance(one, Literal):
                one = Literal(value=int(bool(one.value)), kind=Kind.INTEGER, span=one.span)
            else:
                one = Cast(operand=one, kind=Kind.INTEGER, span=one.span)
        found.append(one)
    return tuple(found)


def _numbered(literal: Literal, kind: Kind) -> Literal:
    """Return a text as a number (or a truth) of a kind that holds it exactly; engines would round others."""
    text = str(literal.value).strip(" ")
    if kind is Kind.BOOLEAN and text.lower() in _TRUTHS:
        return Literal(value=_TRUTHS[text.lower()], kind=kind, span=literal.span)
    digits = text.removeprefix("-")
    whole, point, rest = digits.partition(".")
    value: Value = None
    if digits.isascii() and whole.isdecimal() and len(whole) <= 18 and kind is not Kind.BOOLEAN:
        if not point and kind.exact:
            value = int(text)
        elif rest.isdecimal() and (kind is Kind.FLOAT or (kind.digits and len(rest) <= kind.scale)):
            value = Decimal(text)  # beside a FLOAT, a FLOAT too
        elif kind.binary and (not point or rest.isdecimal()):
            value = float(text)
    if value is None:
        raise KindError(f"cannot mix {kind.value} and text")
    if isinstance(value, Decimal):
        return Literal(
            value=value, kind=Kind.decimal(max(1, len(whole + rest)), len(rest)), span=literal.span
        )
    return Literal(value=value, kind=Kind.REAL if kind.binary else Kind.INTEGER, span=literal.span)


def with_decimals(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return short whole constants beside decimals as decimals."""
    if not any(argument.kind is not None and argument.kind.digits for argument in arguments):
        return arguments
    for one in arguments:
        if isinstance(one, Literal) and isinstance(one.value, int) and abs(one.value) >= 10**MOST_DIGITS:
            raise KindError("cannot hold a whole number of 39 digits in one decimal exactly")
    return tuple(
        numbers.exact_literal(argument)
        if isinstance(argument, Literal) and argument.kind is not None and argument.kind.whole
        else argument
        for argument in arguments
    )
