"""What an engine refuses is what its page says, neither more nor less.

Nothing is read: refusals come from the plan. Reasons for the examples on the page (`refusals.reasons`) are
held against those for every function, conversion and aggregate of every kind, and against every reason that
the engine's source could give. Whole questions are held against the same reasons where they are compared.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sfumato.backends
from sfumato.backends.dialect import Dialect
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.backends.spark.dialect import SPARK
from sfumato.catalog import Kind
from sfumato.errors import QueryRefused, Unsupported
from sfumato.plan.functions import FUNCTIONS, call
from sfumato.plan.numbers import KindError
from sfumato.plan.tree import Cast, ColumnRef, Expression, Literal
from tests.conformance import refusals
from tests.conformance.engines import ENGINES
from tests.conformance.refusals import KINDS, PAGES, asked, listed, reason, reasons, refusal

DIALECTS: dict[str, Dialect] = {"postgresql": POSTGRES, "spark": SPARK}
FOLDERS = {"postgresql": "postgres", "spark": "spark"}
_HELD = {**KINDS, "h": Kind.HUGEINT}
COLUMNS = {kind: ColumnRef(name=f"t.{name}", kind=kind) for name, kind in _HELD.items()}
NAMES = {column.name: column.name[2:] for column in COLUMNS.values()}
OF_CONSTANTS = {  # functions some of whose arguments are constants
    "date_add": ("day", 1, COLUMNS[Kind.DATE]),
    "date_trunc": ("month", COLUMNS[Kind.DATE]),
    "date_diff": ("day", COLUMNS[Kind.DATE], COLUMNS[Kind.TIMESTAMP]),
    "lpad": (COLUMNS[Kind.TEXT], 5, "x"),
    "rpad": (COLUMNS[Kind.TEXT], 5, "x"),
    "split_part": (COLUMNS[Kind.TEXT], "-", 2),
    "regexp_matches": (COLUMNS[Kind.TEXT], "a+", "i"),
    "regexp_full_match": (COLUMNS[Kind.TEXT], "a+"),
    "regexp_extract": (COLUMNS[Kind.TEXT], "(a)b", 1),
    "regexp_replace": (COLUMNS[Kind.TEXT], "a+", "-", "g"),
    "strftime": (COLUMNS[Kind.DATE], "%Y-%m-%d"),
    "strptime": (COLUMNS[Kind.TEXT], "%Y-%m-%d"),
    "replace": (COLUMNS[Kind.TEXT], "a", "b"),
    "in": (COLUMNS[Kind.INTEGER], 1, 2),
    "like": (COLUMNS[Kind.TEXT], "a%"),
    "ilike": (COLUMNS[Kind.TEXT], "a%"),
}
UNREACHED = (  # what the plan refuses for all engines, before one of them could
    "is not a constant",
    "that is not known",
    "of chosen letters",
    "of STRFTIME in PostgreSQL",
    ".* of one unit's rows in PostgreSQL",
    "a sum whose bounds need more than # digits",  # rows of a person are capped at 2^31, and bounds at 1e60
    "a column of whole numbers of # bits in Spark",  # Spark has none
    "expressions that are nested so deep",  # said in words below the list; no example is as long
)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_page_lists_is_refused_there_alone(engine: str) -> None:
    """`refusal` asks DuckDB, too."""
    examples = [one for one in listed(engine) if "\\0" not in one]
    assert len(examples) > 8 and len(set(examples)) == len(examples)
    assert [one for one in examples if refusal(engine, asked(one)) is None] == []


def test_a_text_with_nul_is_refused() -> None:
    assert r"'a\0b'" in listed("postgresql")
    with pytest.raises(Unsupported, match="NUL"):
        POSTGRES.constant("a\0b")


def _calls() -> Iterator[tuple[str, Expression]]:
    """Yield calls of every function with arguments of every kind that the plan allows."""
    for name, signature in FUNCTIONS.items():
        if name in OF_CONSTANTS:
            given = (
                Literal(value=one, kind=Kind.TEXT if isinstance(one, str) else Kind.INTEGER)
                if isinstance(one, str | int)
                else one
                for one in OF_CONSTANTS[name]
            )
            yield name, call(name, tuple(given))
            continue
        for first in COLUMNS.values():
            for second in COLUMNS.values():
                arguments = (first, second, second)[: signature.least]
                try:
                    yield name, call(name, arguments)
                except KindError:
                    continue


def unlisted(engine: str, nodes: list[Expression]) -> set[str]:
    """Return the reasons for which an engine refuses expressions, but for those on its page."""
    found = set()
    for node in nodes:
        try:
            DIALECTS[engine].expression(node, NAMES)
        except Unsupported as refused:
            found.add(reason(refused.message))
    return found - reasons(engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_other_function_is_written(engine: str) -> None:
    made = list(_calls())
    assert {name for name, _ in made} == set(FUNCTIONS)
    assert unlisted(engine, [node for _, node in made]) == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_other_conversion_is_written(engine: str) -> None:
    pairs = [Cast(operand=column, kind=kind) for column in COLUMNS.values() for kind in _HELD.values()]
    assert unlisted(engine, list(pairs)) == set()


AGGREGATES = (
    "COUNT({})", "COUNT(DISTINCT {})", "SUM({})", "SUM(DISTINCT {})", "AVG({})", "MIN({})", "MAX({})",
    "VAR_POP({})", "VAR_SAMP({})", "STDDEV_POP({})", "STDDEV_SAMP({})", "MEDIAN({})", "QUANTILE({}, 0.3)",
    "COVAR_POP({}, {})", "COVAR_SAMP({}, {})", "CORR({}, {})", "REGR_SLOPE({}, {})",
    "REGR_INTERCEPT({}, {})", "REGR_R2({}, {})",
)  # fmt: skip
VALUES = ("i", "x", "s", "b", "day", "CAST(d AS DECIMAL(38, 29))", "CAST(i AS HUGEINT)")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_other_aggregate_of_a_units_rows_is_written(engine: str) -> None:
    written, found = 0, set()
    for one in (form.format(value, value) for form in AGGREGATES for value in VALUES):
        try:
            why = refusal(engine, asked(f"(SELECT person, {one} AS a FROM t GROUP BY person)"))
        except QueryRefused:  # by the plan
            continue
        written += why is None
        found |= {why} - {None}
    assert found - reasons(engine) == set() and written > 35


# -- what the source could say ----------------------------------------------------------------


def _messages(engine: str) -> Iterator[str]:
    """Yield patterns of all messages with which the modules of an engine refuse something."""
    folder = Path(sfumato.backends.__file__).parent / FOLDERS[engine]
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            one.targets[0].id: one.value
            for one in tree.body
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Unsupported":
                given: Any = node.args[0]
                given = constants[given.id] if isinstance(given, ast.Name) else given
                parts = given.values if isinstance(given, ast.JoinedStr) else [given]
                yield "".join(
                    re.escape(reason(one.value)) if isinstance(one, ast.Constant) else ".*" for one in parts
                )


def unsaid(engine: str) -> set[str]:
    """Return the messages of an engine's source for which its page has no example."""
    said = reasons(engine) | {"a text with the character NUL, which PostgreSQL cannot hold,"}
    return {
        one
        for one in _messages(engine)
        if not any(re.fullmatch(one, each) for each in said)
        and not any(re.search(each, one.replace("\\", "")) for each in UNREACHED)
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_every_reason_of_the_source_has_an_example(engine: str) -> None:
    assert len(set(_messages(engine))) > 10
    assert unsaid(engine) == set()


@pytest.mark.parametrize(
    ("engine", "gone", "more"),
    [
        ("postgresql", "CAST(s AS DECIMAL(15, 2))", "CAST(d AS DOUBLE)"),
        ("postgresql", "LOG2(x)", "LN(x)"),
        ("spark", "EXP(x)", "SQRT(x)"),
        ("spark", "CAST(x AS TEXT)", "CAST(d AS TEXT)"),
        ("spark", "CORR(x, i)", "AVG(x)"),
    ],
)
def test_a_page_that_lists_too_little_or_too_much_fails(
    engine: str, gone: str, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGES[engine].read_text(encoding="utf-8")
    other = tmp_path / "page.md"
    monkeypatch.setitem(PAGES, engine, other)
    reasons.cache_clear()
    try:
        other.write_text(page.replace(f"`{gone}`", f"`{more}`"), encoding="utf-8")
        with pytest.raises(AssertionError):
            test_what_the_page_lists_is_refused_there_alone(engine)
        other.write_text(page.replace(f"`{gone}`", "nothing"), encoding="utf-8")
        with pytest.raises(AssertionError):
            for held in (
                test_every_reason_of_the_source_has_an_example,
                test_every_other_conversion_is_written,
                test_every_other_function_is_written,
                test_every_other_aggregate_of_a_units_rows_is_written,
            ):
                held(engine)
    finally:
        reasons.cache_clear()


def test_all_engines_have_a_page() -> None:
    assert set(PAGES) == set(refusals._BACKENDS) == set(ENGINES)
