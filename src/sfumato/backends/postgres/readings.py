"""Texts read as numbers, dates and timestamps: DuckDB's grammar, by regular expressions.

A text is tested first, by a pattern without groups, which the engine reads in time linear in the text. What
passes is taken apart by splitting it, and no part that is converted is longer than what is converted can be.
"""

from __future__ import annotations

from sfumato.backends.dialect import OPEN_ZONE
from sfumato.backends.postgres.totality import bound, fitted, nearest_double
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported

__all__ = ["day_of", "read_text"]

_SPACES = r"E' \t\n\013\f\r'"
_SPACE = r"[ \t\n\v\f\r]*"
_DIGITS = r"\d+(_\d+)*".replace("(", "(?:")
_MANTISSA = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_WHOLE = rf"^{_SPACE}[+-]?{_MANTISSA}(?:[eE][+-]?{_DIGITS}\.?)?{_SPACE}$"
_REAL = rf"^{_SPACE}\+?-?{_MANTISSA}(?:[eE][+-]?{_DIGITS})?{_SPACE}$"
_INFINITE = rf"^{_SPACE}\+?-?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?{_SPACE}$"
_YES, _NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_MOST_DIGITS = 800  # of a decimal that tell the nearest double, and one more for all others


def read_text(sql: str, kind: Kind) -> str:
    """Return a text as a value of a kind, NULL where it is none."""
    if kind.whole:
        return bound((sql,), lambda x: _tested(x, _WHOLE, _whole(x, kind), _prefixed(x, kind)))
    if kind.binary:
        return bound((sql,), lambda x: _tested(x, _REAL, _binary(x, kind), _infinite(x, kind)))
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        return bound((sql,), lambda x: _moment(x, kind))
    if kind is Kind.BOOLEAN:
        return bound((sql,), _truth)
    raise Unsupported(f"a conversion from text to {kind.value} in PostgreSQL")


def _truth(x: str) -> str:
    small = f'lower({x} COLLATE "C")'
    yes, no = (f"{small} IN ({', '.join(map(_quoted, words))})" for words in (_YES, _NO))
    return f"CASE WHEN {yes} THEN TRUE WHEN {no} THEN FALSE END"


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("'", "''") + "'"


def _tested(x: str, pattern: str, value: str, otherwise: str) -> str:
    return f'CASE WHEN {x} COLLATE "C" ~ {_quoted(pattern)} THEN {value} ELSE {otherwise} END'


# -- numbers --------------------------------------------------------------------------------


def _taken_apart(x: str) -> str:
    """Return a SELECT of a number's parts: its sign, digits i and f, and its exponent e, cut to 5 digits."""
    plain = f"SELECT translate(btrim({x}, {_SPACES}), 'E_', 'e') AS t OFFSET 0"
    parts = "split_part(t.t, 'e', 1) AS m, rtrim(split_part(t.t, 'e', 2), '.') AS e"
    halves = f"SELECT t.t, {parts} FROM ({plain}) AS t OFFSET 0"
    digits, sign = "ltrim(h.e, '+-0')", "CASE WHEN left(h.e, 1) = '-' THEN -1 ELSE 1 END"
    size = f"CASE WHEN char_length({digits}) > 5 THEN 99999 ELSE CAST('0' || {digits} AS integer) END"
    return (
        "SELECT CASE WHEN left(ltrim(h.t, '+'), 1) = '-' THEN -1 ELSE 1 END AS sign,"
        " ltrim(split_part(h.m, '.', 1), '+-0') AS i, split_part(h.m, '.', 2) AS f,"
        f" {sign} * {size} AS e, h.e <> '' AS powered FROM ({halves}) AS h OFFSET 0"
    )


def _whole(x: str, kind: Kind) -> str:
    """Halves are rounded away. The digits before the exponent must fit, and so must the result.

    Of digits behind the point as many count as 64 bits hold; what 128 bits do not hold is no number.
    """
    largest = 2**63 - 1 if kind is Kind.INTEGER else 2**127 - 1
    most = len(str(largest))
    zeros = "(char_length(left(p.f, 160)) - char_length(ltrim(left(p.f, 160), '0')))"
    kept = f"left(left(p.f, 160), {zeros} + {most})"
    fits = f"CAST('0' || {kept} AS numeric) <= '{largest}'::numeric"
    behind = f"CASE WHEN {fits} THEN {kept} ELSE left({kept}, {zeros} + {most - 1}) END"
    if kind is Kind.HUGEINT:
        fits = f"CASE WHEN {fits} THEN left(p.f, 160) END"
        behind = f"CASE WHEN char_length(ltrim(p.f, '0')) <= {most} THEN {fits} END"
    own = f"SELECT p.*, {behind} AS b FROM ({_taken_apart(x)}) AS p OFFSET 0"
    power = "round(CAST('0' || p.i || '.' || p.b || 'e' || least(greatest(p.e, -60), 60) AS numeric))"
    plain = "(CAST('0' || p.i AS numeric) + CASE WHEN left(p.b, 1) >= '5' THEN 1 ELSE 0 END)"
    both = ("CAST('0' || p.i AS numeric)", f"CASE WHEN p.powered THEN {power} ELSE {plain} END")
    before, after = (fitted(f"(p.sign * {one})", kind) for one in both)
    inside = f"CASE WHEN p.b IS NOT NULL THEN CASE WHEN {before} IS NOT NULL THEN {after} END END"
    known = f"CASE WHEN p.e BETWEEN -32768 AND 32767 THEN {inside} END"
    return f"(SELECT CASE WHEN char_length(p.i) <= {most} THEN {known} END FROM ({own}) AS p)"


def _prefixed(x: str, kind: Kind) -> str:
    """0x1F and 0b101, without a sign, and without spaces behind."""
    digits = f"ltrim(replace(substr(ltrim({x}, {_SPACES}), 3), '_', ''), '0')"
    cases = []
    for letters, of, most in (("xX", "0-9a-fA-F", 32), ("bB", "01", 128)):
        pattern = rf"^{_SPACE}0[{letters}][{of}]+(?:_[{of}]+)*$"
        padded = ("'x' || " if most == 32 else "") + f"lpad({digits}, {most}, '0')"
        bits = f"CAST({padded} AS bit(128))"
        quarters = (f"CAST(substring({bits} FROM {at} FOR 32) AS bigint)" for at in (1, 33, 65, 97))
        powers = (f"'{2**power}'::numeric" for power in (96, 64, 32, 0))
        total = " + ".join(f"{one} * {power}" for one, power in zip(quarters, powers, strict=True))
        value = f"CASE WHEN char_length({digits}) <= {most} THEN {fitted(f'({total})', kind)} END"
        cases.append(f'WHEN {x} COLLATE "C" ~ {_quoted(pattern)} THEN {value}')
    return f"CASE {' '.join(cases)} END"


def _binary(x: str, kind: Kind) -> str:
    """The nearest binary number, which may be infinite: 800 digits tell it, and a 1 behind them for more."""
    joined = "ltrim(p.i || p.f, '0') AS s, p.e - char_length(p.f) AS e"
    digits = f"SELECT p.sign, {joined} FROM ({_taken_apart(x)}) AS p OFFSET 0"
    rest = f"CASE WHEN ltrim(substr(d.s, {_MOST_DIGITS + 1}), '0') <> '' THEN '1' ELSE '0' END"
    exponent = f"(d.e + greatest(char_length(d.s) - {_MOST_DIGITS}, 0) - 1)"
    number = f"CAST(left(d.s, {_MOST_DIGITS}) || {rest} || 'e' || {exponent} AS numeric)"
    of = "double precision" if kind is Kind.REAL else "real"
    sized = f"coalesce({nearest_double(number, single=kind is Kind.FLOAT)}, 'Infinity'::{of})"
    place = "char_length(d.s) + d.e"
    sized = f"CASE WHEN {place} < -330 THEN '0'::{of} ELSE {sized} END"
    sized = f"CASE WHEN {place} > 310 THEN 'Infinity'::{of} ELSE {sized} END"
    sized = f"CASE WHEN d.s = '' THEN '0'::{of} ELSE {sized} END"
    signed = f"SELECT d.sign, {sized} AS v FROM ({digits}) AS d OFFSET 0"
    return f"(SELECT CASE WHEN b.sign < 0 THEN -b.v ELSE b.v END FROM ({signed}) AS b)"


def _infinite(x: str, kind: Kind) -> str:
    of = "double precision" if kind is Kind.REAL else "real"
    sign = f"CASE WHEN strpos({x}, '-') > 0 THEN '-Infinity'::{of} ELSE 'Infinity'::{of} END"
    return f'CASE WHEN {x} COLLATE "C" ~ {_quoted(_INFINITE)} THEN {sign} END'


# -- moments --------------------------------------------------------------------------------

_DATE = rf"{_SPACE}\d+(?:-\d\d?-|/\d\d?/|\\\d\d?\\| \d\d? )\d\d?"
_TIME = r"0*\d{1,2}:(?:\d\d?(?::(?:\d\d?(?:\.\d*)?)?)?)?"
_OFFSET = r"[+-]\d\d(?::?\d\d|:\d\d:\d\d)?"
_ZONE = rf"(?:(?:Z|{_OFFSET}|(?:[+-]\d\d:(?:\d\d:)?)? [A-Za-z0-9_/+:-]*){_SPACE})?"  # has no effect
_TIMESTAMP = rf"^{_DATE}(?:[T \t\n\v\f\r]{_SPACE}{_TIME}{_ZONE})?$"
_ONLY_DATE = rf"^{_DATE}{_SPACE}$"


def _moment(x: str, kind: Kind) -> str:
    patterns = (_TIMESTAMP, _ONLY_DATE) if kind is Kind.DATE else (_TIMESTAMP,)
    found = _from_parts(x, kind)
    cases = f"""WHEN {x} COLLATE "C" ~ {_quoted(OPEN_ZONE)} THEN NULL """
    cases += " ".join(f'WHEN {x} COLLATE "C" ~ {_quoted(one)} THEN {found}' for one in patterns)
    first = f"'1970-01-01'::{'date' if kind is Kind.DATE else 'timestamp'}"
    named = f"lower(btrim({x}, {_SPACES}) COLLATE \"C\") IN ('epoch', '-epoch')"
    return f"CASE {cases} WHEN {named} THEN {first} END"


def _from_parts(x: str, kind: Kind) -> str:
    """Take a moment apart: from the first digit other than zero on, and behind the day."""
    given = f"SELECT ltrim(btrim({x}, {_SPACES}), '0') AS t OFFSET 0"
    day = r"regexp_match(left(g.t, 10), '^(\d{1,4})[-/\\ ](\d\d?)[-/\\ ](\d\d?)')"
    behind = r"regexp_replace(g.t, '^\d{1,4}[-/\\ ]\d\d?[-/\\ ]\d\d?', '')"
    apart = f"SELECT {day} AS d, ltrim(ltrim({behind}, 'T'), {_SPACES}) AS c FROM ({given}) AS g OFFSET 0"
    clock = r"'^(\d{1,3}):(\d\d?)?:?(\d\d?)?(?:\.(\d{0,6}))?'"
    clock = f"regexp_match(left('0' || ltrim(a.c, '0'), 20), {clock})"
    clock = f"SELECT a.d, {clock} AS c FROM ({apart}) AS a OFFSET 0"
    numbers = ", ".join(
        [
            *(f"CAST(b.d[{place}] AS integer) AS {name}" for place, name in enumerate("ymd", 1)),
            *(
                f"CAST(coalesce(b.c[{place}], '0') AS integer) AS {name}"
                for place, name in enumerate("his", 1)
            ),
            "CAST(rpad(coalesce(b.c[4], ''), 6, '0') AS integer) AS u",
        ]
    )
    micros = "(((CAST(n.h AS bigint) * 60 + n.i) * 60 + n.s) * 1000000 + n.u)"
    value = day_of("n.y", "n.m", "n.d")
    if kind is Kind.TIMESTAMP:
        value = f"CAST({value} AS timestamp) + {micros} * INTERVAL '1 microsecond'"
    tests = ("n.i < 60", "n.s < 60", f"{micros} <= 86400000000")
    for test in tests:
        value = f"CASE WHEN {test} THEN {value} END"
    return f"(SELECT {value} FROM (SELECT {numbers} FROM ({clock}) AS b OFFSET 0) AS n)"


def day_of(year: str, month: str, day: str) -> str:
    """Return the date of a year, from 1 to 9999, a month and a day, NULL where there is none."""
    last = (
        f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {year} % 400 = 0 THEN 29"
        f" WHEN {year} % 100 = 0 THEN 28 WHEN {year} % 4 = 0 THEN 29 ELSE 28 END"
    )
    found = f"make_date({year}, {month}, {day})"
    for test in (f"{day} BETWEEN 1 AND {last}", f"{month} BETWEEN 1 AND 12", f"{year} BETWEEN 1 AND 9999"):
        found = f"CASE WHEN {test} THEN {found} END"
    return found
