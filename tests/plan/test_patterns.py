"""Regular expressions and formats: whatever is taken, the engine reads; what it may not read, is refused."""

from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.plan.numbers import KindError
from sfumato.plan.patterns import check_format, groups_of

PATTERNS = (
    "a|",
    "(?:ab)+?c*",
    "[^\\]a-f\\d-]{2,}",
    "\\w\\.\\b",
    "^$",
    "(a(b)){3}",
    "é日.",
    "[-a]",
    "[a-]",
    "a{0}",
    "\\n",
)
NO_PATTERNS = (
    "(", ")", "(?=a)", "(?i)a", "(?P<x>a)", "[", "[]", "[]a]", "[z-a]", "[[a]", "[a-\\d]", "*a", "a**",
    "a{2}{3}", "\\B",
    "^*", "{2}", "a{2", "a{x}", "a{,3}", "a{3,2}", "a{1000}", "\\1", "\\q", "\\", "\\b*", "(a{99}){99}",
    "(" * 30 + ")" * 30,
    "x" * 201, "a{2}b}", "]",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_that_are_taken_are_read_by_the_engine(pattern: str) -> None:
    found = groups_of(pattern)
    assert found == re.compile(pattern).groups
    duckdb.execute("SELECT regexp_matches('abc', ?)", [pattern]).fetchall()


@pytest.mark.parametrize("pattern", NO_PATTERNS)
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(KindError):
        groups_of(pattern)


@given(st.text("ab(|)[]^-{}1,2*+?.$\\dwbé", max_size=12))
def test_no_pattern_is_taken_that_the_engine_refuses(pattern: str) -> None:
    try:
        groups_of(pattern)
    except KindError:
        return
    duckdb.execute("SELECT regexp_matches('ab1é', ?)", [pattern]).fetchall()


@given(st.text("%-YmdaZzQ 1", max_size=8))
def test_no_format_is_taken_that_the_engine_refuses(text: str) -> None:
    try:
        check_format([text])
    except KindError:
        return
    duckdb.execute("SELECT strftime(DATE '2024-02-03', ?), try_strptime('1', ?)", [text, text]).fetchall()
