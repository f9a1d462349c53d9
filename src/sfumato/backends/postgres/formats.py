"""STRFTIME in PostgreSQL's words: each part of a format by itself, whatever the server's language is."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.backends.dialect import Arguments, Writer
from sfumato.backends.postgres.totality import bound
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported
from sfumato.plan.tree import Literal

__all__ = ["DAYS", "MONTHS", "listed_name", "strftime"]

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip

_PARTS = {
    "d": "DD", "f": "US", "G": "IYYY", "g": "MS", "H": "HH24", "I": "HH12", "j": "DDD", "m": "MM", "M": "MI",
    "p": "AM", "S": "SS", "T": "HH24:MI:SS", "X": "HH24:MI:SS", "u": "ID", "V": "IW", "x": "YYYY-MM-DD",
    "c": "YYYY-MM-DD HH24:MI:SS", "y": "YY", "Y": "YYYY",
}  # fmt: skip
_WEEK = "CAST((extract(doy FROM {{0}}) + 6 - {}) AS integer) / 7"
_COMPUTED = {
    "n": "to_char({0}, 'US') || '000'",
    "w": "CAST(extract(dow FROM {0}) AS text)",
    "U": f"lpad(CAST({_WEEK.format('extract(dow FROM {0})')} AS text), 2, '0')",
    "W": f"lpad(CAST({_WEEK.format('(extract(isodow FROM {0}) - 1)')} AS text), 2, '0')",
}


def listed_name(names: tuple[str, ...], part: str, first: int, moment: str) -> str:
    """Return the name of a part of a moment; `first` is the number of the first name."""
    listed = ", ".join(f"'{name}'" for name in names)
    place = f"CAST(extract({part} FROM {moment}) AS integer) + {1 - first}"
    return f'((ARRAY[{listed}]::text[])[{place}] COLLATE "C")'


def _written(part: str, x: str) -> str:
    """Return a part of a format, such as %Y or %-d, of a moment."""
    letter = part[-1]
    if letter in "aA":
        name = listed_name(DAYS, "dow", 0, x)
        return name if letter == "A" else f"left({name}, 3)"
    if letter in "bhB":
        name = listed_name(MONTHS, "month", 1, x)
        return name if letter == "B" else f"left({name}, 3)"
    if letter in _COMPUTED:
        return _COMPUTED[letter].format(x)
    if letter not in _PARTS:
        raise Unsupported(f"`{part}` of STRFTIME in PostgreSQL")
    return f"to_char({x}, '{'FM' if part[1] == '-' else ''}{_PARTS[letter]}')"


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a format, which begin with %, and what is between them."""
    while text:
        before, percent, rest = text.partition("%")
        if before:
            yield before
        size = 2 if rest.startswith("-") else 1
        if percent:
            yield percent + rest[:size]
        text = rest[size:]


def strftime(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Return a moment in a format."""
    moment, form = arguments
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        raise Unsupported("a format that is not a constant")
    parts = list(_split(form.value))

    def made(x: str) -> str:
        plain = {"%%": "%"} | {part: part for part in parts if part[0] != "%"}
        joined = " || ".join(
            write.dialect.text(plain[part]) if part in plain else _written(part, x) for part in parts
        )
        return f'CASE WHEN {x} IS NOT NULL THEN ({joined}) COLLATE "C" END'

    return bound((f"CAST({write(moment, moment.kind or Kind.TIMESTAMP)} AS timestamp)",), made)
