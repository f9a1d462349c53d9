"""SQL in, tree out: fixture pairs of questions with their trees, and of refused ones with their carets."""

from __future__ import annotations

import pytest

from sfumato.catalog import Catalog
from sfumato.errors import QueryRefused
from sfumato.plan.options import Options
from sfumato.plan.request import Request
from sfumato.plan.sql import parse
from tests.plan.example import CATALOG, accepted, refused
from tests.plan.outline import outline


def rendered(request: Request) -> str:
    """Return all of a request in short lines."""
    lines = []
    for named in request.queries:
        lines.append(f"[{named.name}]")
        lines += [f"  {line}" for line in outline(named.query).split("\n")]
    lines.append(f"outer {request.postprocessing}")
    if request.public:
        lines.append(f"public {', '.join(request.public)}")
    plain = Options()
    for name in Options.__dataclass_fields__:
        if getattr(request.options, name) != getattr(plain, name):
            lines.append(f"{name} {getattr(request.options, name)}")
    return "\n".join(lines)


@pytest.mark.parametrize(("question", "expected"), accepted(), ids=lambda text: text[:60])
def test_a_question_becomes_its_tree(question: str, expected: str) -> None:
    assert rendered(parse(question, CATALOG)) == expected


@pytest.mark.parametrize(("question", "carets", "message"), refused(), ids=lambda text: text[:60])
def test_a_question_is_refused_with_code_and_caret(question: str, carets: str, message: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        parse(question, CATALOG)
    error = caught.value
    assert f"{error.code} {error.message}" == message
    lines = str(error).split("\n")
    shown = lines[2][2:] if error.start is not None else "-"
    assert shown == carets
    assert lines[0] == f"error[{error.code}]: {error.message}"
    assert error.hints


def test_the_fixtures_are_many() -> None:
    assert len(accepted()) >= 60
    assert len(refused()) >= 80
    assert {message[:5] for _, _, message in refused()} >= {
        "SF401",
        "SF402",
        "SF403",
        "SF404",
        "SF406",
        "SF407",
    }


@pytest.mark.parametrize("question", [pair[0] for pair in accepted()], ids=lambda text: text[:60])
def test_reading_is_a_function_of_text_and_catalog(question: str) -> None:
    assert parse(question, CATALOG) == parse(question, CATALOG)


def test_every_private_question_is_asked_once_and_used() -> None:
    """A subquery read twice would be charged twice."""
    for question, _ in accepted():
        request = parse(question, CATALOG)
        assert request.postprocessing is not None
        for named in request.queries:
            assert f'"{named.name}"' in request.postprocessing
        blocks = question.upper().count("COUNT(*)")
        assert len(request.queries) <= max(1, blocks)


def test_a_place_on_a_later_line() -> None:
    with pytest.raises(QueryRefused) as caught:
        parse("SELECT region,\n       SUM(wage) AS s\nFROM people GROUP BY 1", CATALOG)
    assert str(caught.value).split("\n")[1:3] == ["         SUM(wage) AS s", "             ^^^^"]


@pytest.mark.parametrize(
    "text",
    ["", "   ", ";", "-- nothing", "\0", "SELECT " + "(" * 3000 + "1" + ")" * 3000, "SELECT '", "((("],
)
def test_nonsense_is_refused_and_nothing_else(text: str) -> None:
    with pytest.raises(QueryRefused):
        parse(text, CATALOG)


def test_a_very_long_question_is_refused() -> None:
    with pytest.raises(QueryRefused, match="SF401"):
        parse("SELECT COUNT(*) FROM people WHERE " + " OR ".join(["age = 1"] * 20_000), CATALOG)


def test_released_names_avoid_tables() -> None:
    taken = Catalog((*CATALOG.tables, *(_renamed("released"), _renamed("released_2"))))
    request = parse("SELECT COUNT(*) FROM people", taken)
    assert request.queries[0].name == "released_3"


def _renamed(name: str):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(CATALOG.tables[-1], name=name)
