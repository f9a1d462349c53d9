"""Texts read as numbers, dates and timestamps: DuckDB's grammar, by regular expressions.

A text is tested first, by a pattern that Java reads in linear time: where a part can end in one way alone it
is possessive, which Java runs through in a loop. What passes is taken apart, and its parts are cast.
"""

from __future__ import annotations

from collections.abc import Callable

from sfumato.backends.dialect import OPEN_ZONE
from sfumato.backends.spark.totality import bound
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported

__all__ = ["read_text"]

_SPACES = " \t\n\x0b\f\r"
_SPACE = r"[ \t\n\x0B\f\r]*+"
_DIGITS = r"[0-9]++(?:_[0-9]++)*+"
_MANTISSA = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?+)?+|\.{_DIGITS})"
_WHOLE = rf"\A{_SPACE}[+-]?{_MANTISSA}(?:[eE][+-]?{_DIGITS}\.?+)?+{_SPACE}\z"
_REAL = rf"\A{_SPACE}\+?-?{_MANTISSA}(?:[eE][+-]?{_DIGITS})?+{_SPACE}\z"
_INFINITE = rf"\A{_SPACE}\+?-?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?+{_SPACE}\z"
_DATE = rf"{_SPACE}[0-9]++(?:-[0-9][0-9]?-|/[0-9][0-9]?/|\\[0-9][0-9]?\\| [0-9][0-9]? )[0-9][0-9]?"
_TIME = r"0*[0-9]{1,2}:(?:[0-9][0-9]?(?::(?:[0-9][0-9]?(?:\.[0-9]*+)?)?)?)?"
_OFFSET = r"[+-][0-9][0-9](?::?[0-9][0-9]|:[0-9][0-9]:[0-9][0-9])?"
_ZONE = (
    rf"(?:(?:Z|{_OFFSET}|(?:[+-][0-9][0-9]:(?:[0-9][0-9]:)?)? [A-Za-z0-9_/+:-]*+){_SPACE})?"  # passed over
)
_TIMESTAMP = rf"\A{_DATE}(?:[T \t\n\x0B\f\r]{_SPACE}{_TIME}{_ZONE})?\z"
_ONLY_DATE = rf"\A{_DATE}{_SPACE}\z"
_MOST_EXPONENT = 5  # digits
_WORD_DIGITS = 19
_MOST_DAY = 86_400_000_000  # microseconds

_Text = Callable[[str], str]


def read_text(sql: str, kind: Kind, text: _Text) -> str:
    """Return a text as a value of a kind, NULL where it is none; `text` writes a constant."""
    if kind is Kind.INTEGER:
        return bound((sql,), lambda x: _tested(x, _WHOLE, _whole(x, text), text, _prefixed(x, text)))
    if kind.binary:
        return bound((sql,), lambda x: _binary(x, kind, text))
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        return bound((sql,), lambda x: _moment(x, kind, text))
    raise Unsupported(f"a conversion from text to {kind.value} in Spark")


def _tested(x: str, pattern: str, value: str, text: _Text, otherwise: str = "NULL") -> str:
    return f"CASE WHEN regexp_like({x}, {text(pattern)}) THEN {value} ELSE {otherwise} END"


def _trimmed(x: str, text: _Text) -> str:
    return f"trim(BOTH {text(_SPACES)} FROM {x})"


# -- numbers --------------------------------------------------------------------------------


def _whole(x: str, text: _Text) -> str:
    """Halves are rounded away. The digits before the exponent must fit, and so must the result.

    Of the digits behind the point DuckDB reads as many as 64 bits hold, if an exponent follows.
    """
    plain = f"translate({_trimmed(x, text)}, 'E_', 'e')"

    def halves(t: str) -> str:
        mantissa, power = f"split_part({t}, 'e', 1)", f"trim(TRAILING '.' FROM split_part({t}, 'e', 2))"
        return bound((t, mantissa, power), parts)

    def parts(t: str, mantissa: str, power: str) -> str:
        digits = f"trim(LEADING '+-0' FROM {power})"
        size = f"CASE WHEN char_length({digits}) > {_MOST_EXPONENT} THEN 99999"
        size = f"{size} ELSE try_cast(concat('0', {digits}) AS INT) END"
        return bound(
            (
                f"(left(trim(LEADING '+' FROM {t}), 1) = '-')",
                f"trim(LEADING '+-0' FROM split_part({mantissa}, '.', 1))",
                f"left(split_part({mantissa}, '.', 2), 100)",
                f"(CASE WHEN left({power}, 1) = '-' THEN -1 ELSE 1 END * {size})",
                f"({power} <> '')",
            ),
            joined,
        )

    def joined(negative: str, whole: str, behind: str, power: str, powered: str) -> str:
        zeros = f"(char_length({behind}) - char_length(trim(LEADING '0' FROM {behind})) + {_WORD_DIGITS})"
        kept = f"left({behind}, {zeros})"
        fits = f"try_cast(concat('0', {kept}) AS DECIMAL(38,0)) <= {2**63 - 1}"
        read = f"CASE WHEN {fits} THEN {kept} ELSE left({behind}, {zeros} - 1) END"
        moved = f"CASE WHEN {powered} THEN {power} ELSE 0 END"
        digits = f"concat({whole}, CASE WHEN {powered} THEN {read} ELSE {behind} END)"
        place = f"(char_length({whole}) + least(greatest({moved}, -60), 60))"
        known = f"char_length({whole}) <= {_WORD_DIGITS} AND {power} BETWEEN -32768 AND 32767"
        least = f"CASE WHEN {negative} THEN '-' ELSE '' END"
        alone = f"try_cast(concat({least}, '0', {whole}) AS BIGINT) IS NOT NULL"
        return f"CASE WHEN {known} AND {alone} THEN {bound((digits, place, negative), shifted)} END"

    def shifted(digits: str, place: str, negative: str) -> str:
        before = f"rpad(left({digits}, greatest({place}, 0)), greatest({place}, 0), '0')"
        following = f"CASE WHEN {place} >= 0 THEN substring({digits}, {place} + 1, 1) ELSE '' END"
        number = f"try_cast(concat('0', {before}) AS DECIMAL(38,0))"
        size = f"try_add({number}, CASE WHEN {following} >= '5' THEN 1 ELSE 0 END)"
        return f"try_cast(try_multiply({size}, CASE WHEN {negative} THEN -1 ELSE 1 END) AS BIGINT)"

    return bound((plain,), halves)


def _prefixed(x: str, text: _Text) -> str:
    """0x1F and 0b101, without a sign; 64 bits are unsigned here, and of those 63 fit."""
    made = "NULL"
    for letters, of, base, most in (("xX", "0-9a-fA-F", 16, 16), ("bB", "01", 2, 64)):
        pattern = rf"\A{_SPACE}0[{letters}][{of}]++(?:_[{of}]++)*+\z"
        digits = f"trim(LEADING '0' FROM replace(substring({_trimmed(x, text)}, 3), '_', ''))"
        number = f"try_cast(conv(left(concat('0', {digits}), {most + 1}), {base}, 10) AS BIGINT)"
        made = _tested(x, pattern, f"CASE WHEN char_length({digits}) <= {most} THEN {number} END", text, made)
    return made


def _binary(x: str, kind: Kind, text: _Text) -> str:
    """The nearest binary number, which may be infinite."""
    of = "DOUBLE" if kind is Kind.REAL else "FLOAT"
    plain = f"trim(LEADING '+' FROM replace({_trimmed(x, text)}, '_', ''))"
    sign = f"CASE WHEN contains({x}, '-') THEN '-Infinity'::{of} ELSE 'Infinity'::{of} END"
    infinite = _tested(x, _INFINITE, sign, text)
    return _tested(x, _REAL, f"try_cast({plain} AS {of})", text, infinite)


# -- moments --------------------------------------------------------------------------------


def _moment(x: str, kind: Kind, text: _Text) -> str:
    after = text(
        r"\A[0-9]{1,4}(?:-[0-9][0-9]?-|/[0-9][0-9]?/|\\[0-9][0-9]?\\| [0-9][0-9]? )[0-9][0-9]?((?s:.*))\z"
    )
    date = text(r"\A([0-9]{1,4})[-/\\ ]([0-9][0-9]?)[-/\\ ]([0-9][0-9]?)")
    clock = text(r"\A([0-9]{1,3}):([0-9][0-9]?)?:?([0-9][0-9]?)?(?:\.([0-9]{0,6}))?")

    def numbers(t: str) -> str:
        day = [f"regexp_extract(left({t}, 10), {date}, {place})" for place in (1, 2, 3)]
        joined = f"concat_ws('-', lpad({day[0]}, 4, '0'), lpad({day[1]}, 2, '0'), lpad({day[2]}, 2, '0'))"
        rest = f"trim(LEADING 'T' FROM regexp_extract({t}, {after}, 1))"
        hour = f"left(concat('0', trim(LEADING '0' FROM {_left(rest)})), 20)"
        return bound((f"try_cast({joined} AS DATE)", hour), made)

    def _left(rest: str) -> str:
        return f"trim(LEADING {text(_SPACES)} FROM {rest})"

    def made(day: str, hour: str) -> str:
        part = [f"regexp_extract({hour}, {clock}, {place})" for place in (1, 2, 3, 4)]
        whole = [f"coalesce(try_cast({one} AS BIGINT), 0L)" for one in part[:3]]
        return bound((day, *whole, f"coalesce(try_cast(rpad({part[3]}, 6, '0') AS BIGINT), 0L)"), timed)

    def timed(day: str, hour: str, minute: str, second: str, micros: str) -> str:
        total = f"((({hour} * 60 + {minute}) * 60 + {second}) * 1000000 + {micros})"
        inside = f"{minute} < 60 AND {second} < 60 AND {total} <= {_MOST_DAY}"
        seconds = f"CAST({second} * 1000000 + {micros} AS DECIMAL(18,0)) * 0.000001"
        later = (
            f"CAST({day} AS TIMESTAMP_NTZ) + make_dt_interval(0, CAST({hour} AS INT), CAST({minute} AS INT),"
        )
        value = day if kind is Kind.DATE else f"{later} CAST({seconds} AS DECIMAL(18,6)))"
        return f"CASE WHEN {inside} THEN {value} END"

    given = f"trim(LEADING '0' FROM {_trimmed(x, text)})"
    tests = [_TIMESTAMP, _ONLY_DATE] if kind is Kind.DATE else [_TIMESTAMP]
    either = " OR ".join(f"regexp_like({x}, {text(one)})" for one in tests)
    epoch = f"'1970-01-01'::{'DATE' if kind is Kind.DATE else 'TIMESTAMP_NTZ'}"
    named = f"CASE WHEN lower({_trimmed(x, text)}) = 'epoch' THEN {epoch} END"
    open_zone = OPEN_ZONE.removesuffix("$") + r"\z"
    no_moment = f"regexp_like({x}, {text(open_zone)})"
    return f"CASE WHEN {no_moment} THEN NULL WHEN {either} THEN {bound((given,), numbers)} ELSE {named} END"
