"""Every function, aggregate and form of docs/queries.md has the same exact integers on all engines.

Expressions are asked several at a time, as keys of one question: each of their values is then in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.comparing import Compared, Worlds, compare, compare_together
from tests.conformance.engines import DuckDB, Engine, Spark, lean
from tests.conformance.forms import AGGREGATES, CAPS, EXPRESSIONS, FORMS, ODD, ODD_FORMS, ODD_ROWS
from tests.engine.questions import Asked

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"
KEYS, MEASURES = 20, 6  # expressions and aggregates of one question
PARTS = 36


def _keys(some: Sequence[str]) -> Asked:
    listed = ", ".join(f"{one} AS k{place}" for place, one in enumerate(some))
    grouped = ", ".join(f"k{place}" for place in range(len(some)))
    return Asked(f"SELECT {listed}, COUNT(*) FROM visits AS v GROUP BY {grouped}", CAPS)


def _measures(some: Sequence[str], part: int) -> Asked:
    listed, key = ", ".join(some), (None, "v.region", "v.word")[part % 3]
    before, after = ("", "") if key is None else (f"{key}, ", f" GROUP BY {key}")
    return Asked(f"SELECT {before}{listed} FROM visits AS v{after}", CAPS)


@cache
def _odd(engine: Engine) -> tuple[Any, Any]:
    catalog = engine.known(ODD)
    ours, theirs = (one.tables(catalog, ODD_ROWS).backend(catalog) for one in (DuckDB(), engine))
    return ours, theirs


def check(found: Compared, engine: Engine) -> None:
    """Hold what was found against what an engine may refuse."""
    assert not found.wrong
    assert not found.unlisted(engine)
    assert found.same >= found.refused.total() // 2


@pytest.mark.parametrize(("engine", "part"), lean(range(PARTS), postgresql=36), indirect=["engine"])
def test_every_function_of_every_kind(worlds: Worlds, part: int) -> None:
    some = EXPRESSIONS[part::PARTS]
    check(
        compare_together(some, _keys, KEYS, worlds.catalog, lambda place: worlds.both(part + 2 * place)),
        worlds.engine,
    )


@pytest.mark.parametrize(("engine", "part"), lean(range(PARTS), postgresql=18), indirect=["engine"])
def test_every_aggregate_of_every_kind(worlds: Worlds, part: int) -> None:
    found = compare_together(
        AGGREGATES[part::PARTS],
        lambda some: _measures(some, part),
        MEASURES,
        worlds.catalog,
        lambda place: worlds.both(part + 5 * place),
    )
    check(found, worlds.engine)


@pytest.mark.parametrize(("engine", "part"), lean(range(PARTS), postgresql=18), indirect=["engine"])
def test_forms_that_are_written_by_hand(worlds: Worlds, part: int) -> None:
    check(
        compare(FORMS[part::PARTS], worlds.catalog, lambda place: worlds.both(part + 4 * place)),
        worlds.engine,
    )


@pytest.mark.parametrize(("engine", "part"), lean(range(PARTS), postgresql=18), indirect=["engine"])
def test_odd_names_and_sizes_and_the_ends_of_types(engine: Engine, part: int) -> None:
    catalog = engine.known(ODD)
    check(compare(ODD_FORMS[part::PARTS], catalog, lambda _: _odd(engine)), engine)


@pytest.mark.soak
def test_generated_code_means_the_same(on_spark: Spark) -> None:
    """Tests ask Spark with settings that save time; here it has those that it comes with."""
    usual = {"codegen.wholeStage": "true", "codegen.factoryMode": "FALLBACK", "adaptive.enabled": "true"}
    with on_spark.settings({f"spark.sql.{name}": value for name, value in usual.items()}):
        worlds = Worlds(on_spark)
        check(compare(FORMS[::9], worlds.catalog, worlds.both), on_spark)


def test_planted_differences_are_caught(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A division that raises, a NaN that is a value, texts in the order of a language."""
    dialect = worlds.engine.dialect
    normalised, by_language = dialect.normalised, worlds.engine.by_language

    def divided(write: Any, arguments: Any, kind: Any) -> str:
        return " / ".join(write(one, kind) for one in arguments)

    def wrong(expression: str) -> list[str]:
        return compare([_keys([expression])], worlds.catalog, lambda _: worlds.both(1)).wrong

    asked = ("v.amount / (v.score * 0)", "v.single > 3", "v.word < v.region")
    assert [wrong(one) for one in asked] == [[], [], []]
    with monkeypatch.context() as patch:
        patch.setitem(dialect.functions, "/", divided)  # type: ignore[arg-type]
        assert "fails" in wrong(asked[0])[0]
    with monkeypatch.context() as patch:
        patch.setattr(
            type(dialect), "normalised", lambda _, sql, kind: sql if kind.binary else normalised(sql, kind)
        )
        assert "!=" in wrong(asked[1])[0]
    with monkeypatch.context() as patch:
        patch.setattr(type(dialect), "plain_text", lambda self, sql: f"({by_language.format(sql)})")
        assert "!=" in wrong(asked[2])[0]


def test_every_function_that_is_documented_is_asked_for() -> None:
    """The lists of docs/queries.md, in capitals; and more than 500 questions in all."""
    text = PAGE.read_text(encoding="utf-8")
    asked = "\n".join((*EXPRESSIONS, *AGGREGATES, *(one.text for one in FORMS)))
    listed = text.split("What can be asked:")[1].split("## Functions")[0].split("\n- Several quantiles")[0]
    rows = text.split("## Functions")[1].split("- **Regular expressions**")[0]
    names = set(re.findall(r"`([A-Z][A-Z_0-9]+)", listed + rows)) | {"SUM", "COUNT"}
    assert len(names) > 60
    assert {name for name in names if not re.search(rf"\b{name}\b", asked)} - {
        "VAR_",
        "STDDEV_",
        "COVAR_",
    } == set()
    assert len(EXPRESSIONS) + len(AGGREGATES) + len(FORMS) + len(ODD_FORMS) > 1500
