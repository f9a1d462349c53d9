"""Answers that a person types: a question until it is answered, and values read from text."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

import typer

from sfumato.catalog import Between, Domain, Kind, OneOf, Value, kind_of
from sfumato.errors import InvalidArgument, SfumatoError

__all__ = ["ask", "bounds_or_values", "values_of"]

_T = TypeVar("_T")
_READERS: dict[Kind, Callable[[str], Value]] = {  # of all other kinds: Decimal
    Kind.INTEGER: int,
    Kind.HUGEINT: int,
    Kind.REAL: float,
    Kind.FLOAT: float,
    Kind.DATE: datetime.date.fromisoformat,
    Kind.TIMESTAMP: datetime.datetime.fromisoformat,
    Kind.BOOLEAN: lambda text: {"true": True, "false": False}[text.lower()],
    Kind.TEXT: str,
}


def ask(question: str, default: str, read: Callable[[str], _T]) -> _T:
    """Ask until the answer makes sense."""
    while True:
        given = typer.prompt(question, default=default, show_default=bool(default)).strip()
        try:
            return read(given)
        except SfumatoError as error:
            hints = "".join(f"; {hint}" for hint in error.hints if hint)
            typer.echo(f"  {error.message}{hints}")
        except ValueError:
            typer.echo("  that is not a number such as 20000 or 0.05")


def values_of(text: str, kind: Kind | None, *, bounds: bool) -> Domain:
    """Return the bounds or the values that a text lists, by the kind of their column.

    >>> values_of("0, 110", Kind.INTEGER, bounds=True)
    Between(lower=Fraction(0, 1), upper=Fraction(110, 1))
    >>> values_of("north,south", Kind.TEXT, bounds=False).values
    ('north', 'south')
    """
    if bounds and kind in (Kind.TEXT, Kind.BOOLEAN):
        raise InvalidArgument(
            f"a column of kind {kind.value} has no bounds", place=text, hints=("use one_of",)
        )
    parts = [part.strip() for part in text.split(",")]
    values = [_value(part, kind) for part in parts]
    if kind is None and not bounds and len({kind_of(value) for value in values}) > 1:
        values = list(parts)  # codes such as 01234 among numbers: all are texts
    if not bounds:
        return OneOf(tuple(values))
    if len(values) != 2:
        raise InvalidArgument("two bounds are needed", place=text, hints=("low,high",))
    return Between(*values)  # type: ignore[arg-type]


def bounds_or_values(text: str) -> Domain:
    """Return what a text says of a column whose kind is not known: two numbers or dates are bounds.

    >>> bounds_or_values("0, 110")
    Between(lower=Fraction(0, 1), upper=Fraction(110, 1))
    >>> bounds_or_values("north, south").values, bounds_or_values("1, 2, 3").values
    (('north', 'south'), (1, 2, 3))
    """
    listed = values_of(text, None, bounds=False)
    several = isinstance(listed, OneOf) and (len(listed.values) != 2 or isinstance(listed.values[0], str))
    return listed if several else values_of(text, None, bounds=True)


def _value(text: str, kind: Kind | None) -> Value:
    try:
        return _guess(text) if kind is None else _READERS.get(kind, Decimal)(text)
    except (ArithmeticError, KeyError, ValueError):
        raise InvalidArgument(
            f"`{text}` is not of kind {kind.value if kind else 'text'}", place=text
        ) from None


def _guess(text: str) -> Value:
    """Read a value of a column whose kind is not known: as a number or a date, if it looks like one.

    >>> _guess("1234"), _guess("01234")
    (1234, '01234')
    """
    if text.lstrip("+-").startswith("0") and text.lstrip("+-")[1:2].isdigit():
        return text  # no number is written so; codes are
    for read in (int, float, datetime.date.fromisoformat, datetime.datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    return text
