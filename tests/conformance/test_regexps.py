"""Regular expressions of every form, over texts of every alphabet: one value on all engines, or refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.backends.postgres import regexps
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.backends.regexp_matches import Extent, certain, empty, extent
from sfumato.backends.regexps import parsed
from sfumato.catalog import Kind
from sfumato.errors import Unsupported
from sfumato.plan.functions import call
from sfumato.plan.numbers import KindError
from sfumato.plan.patterns import groups_of
from sfumato.plan.tree import Expression, Literal
from tests.conformance.test_expressions import S, _engines, _text

ATOMS = (
    "a", "b", "c", ".", "[a-c]", "[^ab]", r"\d", r"\w", r"\s", r"\W", "é", "K", "[é-ü]", "s", r"\.", r"\n",
    "-", "[x-z_]", r"[^\w]", r"[\d.-]", " ", "日", "(a|b)", "(?:ab|a)", "(a*)", "()", "(c|)", "^", "$", r"\b",
    "[k-t]", "(?:a|bc)", "(b+)", r"[\s\S]", r"(?:\b)", "(^)", "ẞ", "[^K]",
)  # fmt: skip
TIMES = ("", "", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,3}", "*?", "+?", "??", "{1,}", "{0}", "{2,3}?")
LETTERS = "abcABCkKKsSſ xyz_1.-9é日üÉ\nİıßẞ~\u00a0"


def _patterns(chance: random.Random, number: int) -> Iterator[str]:
    while number:
        parts = []
        for _ in range(chance.randint(1, 4)):
            atom = chance.choice(ATOMS)
            parts.append(atom + (chance.choice(TIMES) if atom not in ("^", "$", r"\b") else ""))
            parts.append("|" if chance.random() < 0.12 else "")
        pattern = "".join(parts)
        pattern = pattern if chance.random() < 0.8 else f"({pattern}){chance.choice(TIMES)}"
        try:
            groups_of(pattern)
        except KindError:
            continue
        number -= 1
        yield pattern


def _texts(chance: random.Random) -> list[tuple[str | None]]:
    some = ["".join(chance.choices(LETTERS, k=chance.randint(0, 8))) for _ in range(60)]
    few = ["".join(chance.choices("abc ", k=chance.randint(0, 9))) for _ in range(60)]
    return [(one,) for one in (None, "", "aab cab\nabc", *some, *few)]


def _asked(pattern: str, option: str) -> Iterator[Expression]:
    given = (S, _text(pattern))
    options = (_text(option),) if option else ()
    yield from (call(name, (*given, *options)) for name in ("regexp_matches", "regexp_full_match"))
    yield call("regexp_replace", (*given, _text("<&>"), *options))
    yield call("regexp_replace", (*given, _text("#"), _text(f"g{option}")))
    for group in range(min(groups_of(pattern), 3) + 1):
        yield call("regexp_extract", (*given, Literal(value=group, kind=Kind.INTEGER)))


def _compared(connection: Any, seed: int, patterns: int) -> Any:
    chance = random.Random(seed)
    nodes = [
        node for pattern in _patterns(chance, patterns) for node in _asked(pattern, chance.choice(("", "i")))
    ]
    found = _engines(connection, _texts(chance), {"s": Kind.TEXT}).compare(nodes)
    assert found.same > len(nodes) / 2
    return found


@pytest.mark.parametrize("seed,patterns", [(1, 40), pytest.param(2, 1500, marks=pytest.mark.soak)])
def test_patterns_mean_the_same(connection: Any, seed: int, patterns: int) -> None:
    assert not _compared(connection, seed, patterns).wrong


def test_a_longer_match_is_seen(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: RE2's match is taken for the longest, and for one that can be divided in one way alone."""
    monkeypatch.setattr(regexps, "extent", lambda tree: Extent.LONGEST)
    monkeypatch.setattr(regexps, "certain", lambda tree, group: True)
    monkeypatch.setattr(regexps, "empty", lambda tree: False)
    wrong = "".join(_compared(connection, 3, 60).wrong)
    assert "regexp_extract" in wrong and "regexp_replace" in wrong


KNOWN = {
    "ab|a": Extent.LONGEST, "a|ab": Extent.SHORTEST, "a.*?b": Extent.SHORTEST, r"\d+": Extent.LONGEST,
    "(?:a|ab)(?:c|bcd)?": Extent.UNKNOWN, "x*": Extent.LONGEST, "": Extent.LONGEST, "a?b??": Extent.UNKNOWN,
}  # fmt: skip


def test_what_is_known_of_a_pattern() -> None:
    assert {pattern: extent(parsed(pattern)) for pattern in KNOWN} == KNOWN
    assert certain(parsed(r"(\d+)-(\d+)"), 1) and not certain(parsed("(a+)(a*)"), 2)
    assert not certain(parsed("(a|b)+"), 1)  # of several it is the last
    assert empty(parsed("x*")) and empty(parsed("^$")) and not empty(parsed("x+"))


STEADY = {  # whether a match is found, and a group captured, in linear time
    "a+b|c": (False, False), "a+": (True, True), "^a+b": (True, False), r"id=(\d+)": (True, True),
    "[aeiou]": (True, True), "a+b": (False, False), "(?:ab)+": (False, False), "^(a+)b": (True, False),
    "a{2,5}x?y*": (True, True), "a+$": (False, False), "^a+b|c": (True, False), "x(a+|b)": (True, True),
}  # fmt: skip


def test_what_takes_more_than_linear_time_is_not_tried_on_long_texts(connection: Any) -> None:
    """The server tries `a+b|c` at each of a million letters a before a c: for half an hour."""
    found = {
        pattern: tuple(regexps._steady(parsed(pattern), captures=one) for one in (False, True))
        for pattern in STEADY
    }
    assert found == STEADY
    texts = [("a" * number + "c",) for number in (4095, 4096, 2**20 - 1)]
    asked = [
        call("regexp_extract", (S, _text("a+b|c"))),
        call("regexp_replace", (S, _text("a+b|c"), _text("#"))),
        call("regexp_replace", (S, _text("a+b|c"), _text(""), _text("g"))),
        call("regexp_extract", (S, _text("a?c"))),
        call("regexp_extract", (S, _text("(a?)c"), Literal(value=1, kind=Kind.INTEGER))),
    ]
    engines = _engines(connection, texts, {"s": Kind.TEXT})
    listed = ", ".join(engines.dialect.expression(one, engines.names) for one in asked)
    rows = connection.execute(f"SELECT {listed} FROM t ORDER BY place").fetchall()
    absent = [[one is None for one in row] for row in rows]
    assert absent == [[False] * 5, *[[True] * 3 + [False] * 2] * 2]
    assert not engines.compare(asked[3:]).wrong


MANY_PLACES = (
    r"(?:\b[ab]?\b[cd]?\b){0,40}x",
    r"\b[ab]?" * 7,
    "(?:^a?)*",
    r"(?:\b|x){7}",
    r"(?:(?:\b)?){2,20}",
)


@pytest.mark.parametrize("name", ["regexp_matches", "regexp_full_match", "regexp_extract", "regexp_replace"])
def test_patterns_that_the_server_fails_at_are_refused(name: str) -> None:
    """It reads a pattern when it meets the first text: that one text is there would be told."""
    more = (_text("#"),) if name == "regexp_replace" else ()
    for pattern in MANY_PLACES:
        with pytest.raises(Unsupported, match="with one that is repeated"):
            POSTGRES.expression(call(name, (S, _text(pattern), *more)), {"s": "s"})
    assert POSTGRES.expression(call(name, (S, _text(r"^(?:\ba|b\b)?c$"), *more)), {"s": "s"})


@pytest.mark.parametrize("seed,patterns", [(5, 400), pytest.param(6, 20_000, marks=pytest.mark.soak)])
def test_the_server_reads_each_pattern_that_is_not_refused(
    connection: Any, monkeypatch: pytest.MonkeyPatch, seed: int, patterns: int
) -> None:
    """Planted at the end: a pattern with more places, at which it fails."""
    chance = random.Random(seed)
    atoms = (*ATOMS, "^", "$", *[r"\b"] * 9)
    for _ in range(patterns):
        pattern = "".join(
            f"(?:{chance.choice(atoms)}{chance.choice(ATOMS)}?){chance.choice(TIMES)}" for _ in range(8)
        )
        try:
            groups_of(pattern)
            read = POSTGRES.expression(call("regexp_matches", (_text(""), _text(pattern))), {})
        except (KindError, Unsupported):
            continue
        connection.execute(f"SELECT {read}")
    monkeypatch.setattr(regexps, "_MOST_PLACES", 10_000)
    read = POSTGRES.expression(call("regexp_matches", (_text(""), _text(MANY_PLACES[0]))), {})
    with pytest.raises(Exception, match="too complex"):
        connection.execute(f"SELECT {read}")
