"""Limits: what is at a limit passes, what is beyond it is refused, and the documentation states them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan import limits
from sfumato.plan.dialect import parsed
from sfumato.plan.sql import parse
from tests.plan.example import CATALOG

DOCS = Path(__file__).parent.parent.parent / "docs" / "queries.md"

AROUND: list[tuple[str, int, str]] = [
    ("SELECT COUNT(*) FROM people WHERE {}age > 1{}", limits.MOST_NESTING - 1, "parentheses"),
    ("SELECT {} FROM people", limits.MOST_COLUMNS, "columns"),
    ("SELECT COUNT(*) FROM people GROUP BY {}", limits.MOST_KEYS, "keys"),
    ("SELECT {} FROM people", limits.MOST_AGGREGATES, "aggregates"),
    ("SELECT COUNT(*) FROM people WHERE age > {}", limits.MOST_DIGITS - 2, "digits"),
    ("SELECT COUNT(*) FROM people WHERE income < {}", 300, "power"),
    ("SELECT COUNT(*) FROM people {}", limits.MOST_RELATIONS - 3, "joins"),
    ("SELECT SUM(age{}) FROM people", limits.MOST_DEPTH - 6, "additions"),
    ("SELECT COUNT(*) FROM people GROUP BY GROUPING SETS ({})", limits.MOST_GROUPING_SETS, "sets"),
]


def written(pattern: str, count: int, what: str) -> str:
    """Return a question that has so many of something."""
    match what:
        case "parentheses":
            return pattern.format("(" * count, ")" * count)
        case "columns":
            return pattern.format(", ".join(f"COUNT(*) AS c{place}" for place in range(count)))
        case "keys":
            return pattern.format(", ".join(f"age + {place}" for place in range(count)))
        case "aggregates":
            return pattern.format(", ".join(f"SUM(age + {place})" for place in range(count)))
        case "digits":
            return pattern.format("0." + "1" * count)
        case "power":
            return pattern.format(f"1e{count}")
        case "joins":
            return pattern.format(
                " ".join(f"JOIN regions r{n} ON people.region = r{n}.region" for n in range(count))
            )
        case "additions":
            return pattern.format(" + 1" * count)
    return pattern.format(
        ", ".join(f"(age + {place // 8}, age + {20 + place % 8})" for place in range(count))
    )


@pytest.mark.parametrize(("pattern", "most", "what"), AROUND, ids=[what for _, _, what in AROUND])
def test_the_limit_itself_passes_and_more_is_refused(pattern: str, most: int, what: str) -> None:
    parse(written(pattern, most, what), CATALOG)
    with pytest.raises(QueryRefused) as caught:
        parse(written(pattern, most + (200 if what == "power" else 8), what), CATALOG)
    assert caught.value.code in ("SF401", "SF404") and caught.value.hints


@pytest.mark.parametrize("word", ["AND", "OR"])
@pytest.mark.parametrize("count", [2, 16, 17, 18, 31, 32, 33, 1000])
def test_balancing_keeps_conditions_and_their_order(word: str, count: int) -> None:
    text = f"SELECT 1 WHERE {f' {word} '.join(f'a{place}' for place in range(count))}"
    [statement] = parsed(text)
    assert statement is not None
    names = [column.name for column in limits.balanced(statement).find_all(exp.Column, bfs=False)]
    assert names == [f"a{place}" for place in range(count)]
    kinds = {type(node) for node in statement.find_all(exp.And, exp.Or)}
    assert kinds == {exp.And if word == "AND" else exp.Or}
    depths = [column.depth for column in statement.find_all(exp.Column)]
    assert max(depths) <= max(20, count.bit_length() + 4)


def test_balancing_does_not_mix_and_with_or() -> None:
    ors = [f"({' OR '.join(f'a{one}_{place}' for place in range(20))})" for one in range(20)]
    [statement] = parsed(f"SELECT 1 WHERE {' AND '.join(ors)}")
    assert statement is not None
    before = statement.sql()
    assert limits.balanced(statement).sql() == before


def test_every_limit_is_documented() -> None:
    table = DOCS.read_text().partition("### How large a question may be")[2].partition("\n\n`SF401`")[0]
    stated = set(re.findall(r"\| ([^|]+) \|$", table, re.MULTILINE))
    named = [name for name in limits.__all__ if name.isupper()]
    shown = {"FURTHEST": "1e60", "NEAREST": "1e60", "LARGEST": "2^127 - 1"}
    numbers = {name: shown[name] if name in shown else f"{getattr(limits, name):,}" for name in named}
    assert set(numbers.values()) == stated - {"at most"}
    assert 1 / limits.NEAREST == limits.FURTHEST == 10**60 and limits.LARGEST == 2**127 - 1


def test_of_a_long_line_the_part_at_fault_is_shown() -> None:
    text = f"SELECT COUNT(*) FROM people WHERE {'age > 1 AND ' * 200} aeg > 1 {'AND age > 1 ' * 200}"
    with pytest.raises(QueryRefused) as refusal:
        parse(text, CATALOG)
    _, line, caret, *_ = str(refusal.value).splitlines()
    assert len(line) <= 162
    assert line[caret.index("^") : caret.rindex("^") + 1] == "aeg"
