"""Texts read as numbers, dates and timestamps: DuckDB's grammar, also of texts that are almost one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.backends.postgres import readings
from sfumato.catalog import Kind
from sfumato.plan.tree import Cast
from tests.conformance.test_expressions import S, _engines

NUMBERS = (
    "1", "+1", " 1 ", "\t1\n", "\v1\f\r", "\u00a01", "1_000", "1__0", "_1", "1_", "1.", "1.5", ".5", "-.5",
    "2.5", "-2.5", "1e3", "1e", "1e+3", "1E-1", "15e-1", "1e400", "1e-400", "0x1F", "0b11", "-0x1", "0x",
    "0x1_0", "1e1_0", "1_0.5_0", "1_.5", "1._5", ".", "", "-", "--1", "+-1", "1 2", "inf", "-Infinity",
    "nan", "infinit", "1e3.5", "9223372036854775807.4", "9223372036854775807.5", "-9223372036854775808.5",
    "9223372036854775808", "0.49999999999999999999999", "1" + "0" * 50 + "e-50", "0." + "0" * 30 + "1e31",
    "0" * 300 + "1", "1e32768", "1e-32768", "1e-32769", "0e99999999999", "1e99999999999999999999", "１",
    "0.9223372036854775807e19", "9999999999999999999e-1", "0.12345678901234567895e19",
    "0xFFFFFFFFFFFFFFFFFF", "0b" + "1" * 64, "9" * 2000, "1.7976931348623158e308", "1.7976931348623159e308",
    "2.4703282292062327e-324", "2.4703282292062328e-324", "9007199254740993",
    "9007199254740993." + "0" * 900 + "1", "16777217", "3.4028235677973366e38", "7.1e-46",
)  # fmt: skip
MOMENTS = (
    "2024-02-29", "2024-2-9", "2024/02/29", "2024\\02\\29", "2024 02 29", "2024.02.29", "2024-02/29",
    "1-1-1", "20240229", "2023-02-29", "2000-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-01-32",
    "+2024-01-01", "-2024-01-01", "2024-01-01 (BC)", "0000-01-01", "10000-01-01", "infinity", " Epoch\t",
    "now", " 2024-02-29 ", "2024-02-29x", "2024-02-29 12", "2024-02-29 12:34", "2024-02-29T12:34:56",
    "2024-02-29t12:34:56", "2024-02-29\t 12:34:56.7", "2024-02-29 12:34:56.9999999", "2024-02-29 12:34:56.",
    "2024-02-29 12:34:56Z", "2024-02-29 12:34:56+01:30", "2024-02-29 12:34:56+0130",
    "2024-02-29 12:34:56+1", "2024-02-29 12:34:56 UTC", "2024-02-29 12:34:56 Europe/Paris",
    "2024-02-29 24:00:00", "2024-02-29 24:00:01", "2024-02-29 23:59:60", "2024-02-29 1:2:3",
    "2024-02-29 12:34:56+01:", "2024-02-29 12:34-00:", "2024-02-29 12:34 +1:", "2024-02-29 12:34:56-05:30:",
    "2024-02-29 12:34:", "2024-02-29 12:", "2024-02-29T", "2024-02-29 000000012:34", "9999-12-31 24:00:00",
    "0000002024-02-29", "2024-002-29", "", "2024", "12:34:56",
)  # fmt: skip
KINDS = (Kind.INTEGER, Kind.HUGEINT, Kind.REAL, Kind.FLOAT)


def _changed(texts: tuple[str, ...], chance: random.Random, number: int) -> Iterator[tuple[str | None]]:
    """Yield texts and ones like them: a letter more, less, or another."""
    yield from ((one,) for one in (*texts, None))
    letters = "0123456789 +-.eExXbBinfINFty:TZ/\\\t9555"  # no _: DuckDB misreads it among many digits
    for _ in range(number):
        text = list(chance.choice(texts))
        for _ in range(chance.choice((1, 1, 2, 3))):
            at = chance.randint(0, len(text))
            text[at : at + chance.randint(0, 1)] = chance.choice(("", *letters))
        yield ("".join(text),)


def _wrong(connection: Any, texts: tuple[str, ...], kinds: tuple[Kind, ...], number: int) -> list[str]:
    rows = list(_changed(texts, random.Random(number), number))
    asked = [Cast(operand=S, kind=kind) for kind in kinds]
    found = _engines(connection, rows, {"s": Kind.TEXT}).compare(asked)
    assert not found.refused
    return found.wrong


@pytest.mark.parametrize("number", [150, pytest.param(8000, marks=pytest.mark.soak)])
def test_numbers_are_read_alike(connection: Any, number: int) -> None:
    assert _wrong(connection, NUMBERS, KINDS, number) == []


@pytest.mark.parametrize("number", [150, pytest.param(20_000, marks=pytest.mark.soak)])
def test_moments_are_read_alike(connection: Any, number: int) -> None:
    assert _wrong(connection, MOMENTS, (Kind.DATE, Kind.TIMESTAMP), number) == []


def test_truths_are_read_alike(connection: Any) -> None:
    words = (
        "true",
        "t",
        "T",
        "yes",
        "y",
        "on",
        "1",
        "0",
        "FALSE",
        "f",
        "no",
        "n",
        "off",
        "",
        " t",
        "2",
        "tr",
    )
    assert _wrong(connection, words, (Kind.BOOLEAN,), 30) == []


def test_another_grammar_is_seen(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a number without an exponent, digits that are cut off, a zone that is not passed over."""
    monkeypatch.setattr(readings, "_WHOLE", r"^\s*[+-]?\d+(?:\.\d*)?\s*$")
    monkeypatch.setattr(readings, "_MOST_DIGITS", 10)
    monkeypatch.setattr(
        readings, "_TIMESTAMP", readings._TIMESTAMP.replace("|Z", "|z").replace("(?:Z", "(?:z")
    )
    assert len(_wrong(connection, NUMBERS, KINDS, 0)) >= 3
    assert len(_wrong(connection, MOMENTS, (Kind.DATE, Kind.TIMESTAMP), 0)) == 2
