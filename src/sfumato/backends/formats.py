"""Moments as texts: STRFTIME made of other functions, for engines that write dates in another way."""

from __future__ import annotations

from sfumato.catalog.kind import Kind
from sfumato.plan.functions import call, case
from sfumato.plan.tree import Call, Cast, Expression, Literal

__all__ = ["formatted"]

_LONG = {"T": "%H:%M:%S", "X": "%H:%M:%S", "x": "%Y-%m-%d", "c": "%Y-%m-%d %H:%M:%S"}
_PARTS = {  # letter: the part, and its digits
    "d": ("day", 2), "H": ("hour", 2), "j": ("dayofyear", 3), "m": ("month", 2), "M": ("minute", 2),
    "S": ("second", 2), "u": ("isodow", 1), "V": ("week", 2), "w": ("dow", 1), "Y": ("year", 4),
}  # fmt: skip


def formatted(moment: Expression, pattern: str) -> Expression:
    """Return a timestamp as a text in a format that `plan/patterns.py` let pass; NULL stays NULL.

    >>> from sfumato.backends.duckdb.dialect import DUCKDB
    >>> import datetime
    >>> day = Literal(value=datetime.datetime(2024, 2, 9), kind=Kind.TIMESTAMP)
    >>> import duckdb
    >>> duckdb.sql(f"SELECT {DUCKDB.expression(formatted(day, '%-d %b'), {})}").fetchall()
    [('9 Feb',)]
    """
    pieces = _pieces(moment, pattern)
    text = call("concat", tuple(pieces)) if pieces else _text("")
    return case(((call("is_null", (moment,)), Literal(value=None, kind=None)),), text)


def _pieces(moment: Expression, pattern: str) -> list[Expression]:
    found: list[Expression] = []
    plain, rest = "", pattern
    while rest:
        letter, rest = rest[0], rest[1:]
        if letter != "%":
            plain += letter
            continue
        padded = not rest.startswith("-")
        letter, rest = (rest[0], rest[1:]) if padded else (rest[1], rest[2:])
        if letter == "%":
            plain += letter
            continue
        found += [_text(plain)] if plain else []
        plain = ""
        found += _pieces(moment, _LONG[letter]) if letter in _LONG else [_piece(moment, letter, padded)]
    return [*found, _text(plain)] if plain else found


def _text(value: str) -> Literal:
    return Literal(value=value, kind=Kind.TEXT)


def _whole(value: int) -> Literal:
    return Literal(value=value, kind=Kind.INTEGER)


def _piece(moment: Expression, letter: str, padded: bool) -> Expression:
    """Return what one letter stands for."""
    match letter:
        case "A":
            return call("dayname", (moment,))
        case "B":
            return call("monthname", (moment,))
        case "a" | "b" | "h":
            return call("left", (_piece(moment, letter.upper().replace("H", "B"), True), _whole(3)))
        case "p":
            morning = call("<", (call("hour", (moment,)), _whole(12)))
            return case(((morning, _text("AM")),), _text("PM"))
    number, digits = _number(moment, letter)
    text = Cast(operand=number, kind=Kind.TEXT)
    return call("lpad", (text, _whole(digits), _text("0"))) if padded else text


def _number(moment: Expression, letter: str) -> tuple[Expression, int]:
    """Return the number that a letter stands for, and how many digits it has."""
    if letter in _PARTS:
        name, digits = _PARTS[letter]
        return call(name, (moment,)), digits
    part = {
        name: call(name, (moment,))
        for name in ("year", "month", "week", "hour", "dayofyear", "dow", "isodow")
    }
    match letter:
        case "y":
            return call("%", (part["year"], _whole(100))), 2
        case "I":
            return call("+", (call("%", (call("+", (part["hour"], _whole(11))), _whole(12))), _whole(1))), 2
        case "U" | "W":
            day = call("+", (part["dow"], _whole(1))) if letter == "U" else part["isodow"]
            return call("//", (call("-", (call("+", (part["dayofyear"], _whole(7))), day)), _whole(7))), 2
        case "G":
            early = call(
                "and", (call("=", (part["month"], _whole(1))), call(">", (part["week"], _whole(50))))
            )
            late = call("and", (call("=", (part["month"], _whole(12))), call("=", (part["week"], _whole(1)))))
            more = case(((early, _whole(-1)), (late, _whole(1))), _whole(0))
            return call("+", (part["year"], more)), 4
    second = call("date_trunc", (_text("second"), moment))
    micros = Call(function="date_diff", arguments=(_text("microsecond"), second, moment), kind=Kind.INTEGER)
    match letter:
        case "f":
            return micros, 6
        case "g":
            return call("//", (micros, _whole(1000))), 3
    return call("*", (micros, _whole(1000))), 9  # n, nanoseconds
