"""Hundreds of generated files and frames, each with a person of extreme values and without.

Whatever the form, the types and the differences between files: both are opened or both are refused with the
same words, every question has the same status and the same charge, and answers have the same shape. No
question fails in the engine: every type that opens is total.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.plan.sql import parse
from tests.backends.specimens import Case, generated
from tests.soaked import later, rest_soaked

_NUMBERS = (
    "{} + 1", "{} * {}", "-{}", "ABS({})", "{} % 7", "{} // 3", "SQRT({})", "LN({})", "ROUND({}, 2)",
    "FLOOR({})", "{} / 3", "CAST({} AS SMALLINT)", "CAST({} AS BIGINT)", "CAST({} AS DOUBLE)",
    "CAST({} AS DECIMAL(9, 2))",
)  # fmt: skip
_FUNCTIONS = {
    Kind.TEXT: ("LOWER({})", "LENGTH({})", "{} || {}", "CAST({} AS DOUBLE)", "CAST({} AS TIMESTAMP)"),
    Kind.BOOLEAN: ("NOT {}", "CAST({} AS INTEGER)"),
    Kind.DATE: ("YEAR({})", "CAST({} AS TIMESTAMP)", "DATE_TRUNC('month', {})"),
    Kind.TIMESTAMP: ("YEAR({})", "HOUR({})", "CAST({} AS DATE)", "DATE_TRUNC('day', {})"),
}
_ALWAYS = ("{}", "CAST({} AS TEXT)", "CASE WHEN {} = {} THEN 1 END")
_FILTER = " WHERE CAST(ordinary AS TEXT) = 'true'"  # the extreme person's rows are not computed with
_CAPS = {"max_rows": 3, "max_groups": 5}
_SOME, _MANY = 10, 260


@functools.cache
def functions(kind: Kind) -> tuple[str, ...]:
    """Return the functions that take a column of a kind; refusals follow from the kind alone."""
    table = Table(name="t", fields=(Field(name="x", kind=kind),), unit=Unit(name="row", column=None))
    found = []
    for form in (*_ALWAYS, *_FUNCTIONS.get(kind, _NUMBERS)):
        try:
            parse(f"SELECT COUNT(CAST({form.format('x', 'x')} AS TEXT)) FROM t", Catalog((table,)))
        except QueryRefused:
            continue
        found.append(form)
    return tuple(found)


def asked(table: Table) -> list[str]:
    """Return questions about all columns of a table that can be asked about; each computes every function."""
    columns = [field for field in table.fields if field.name not in ("id", "ordinary")]
    listed = []
    for field in columns:
        forms = [form.format(field.name, field.name) for form in functions(field.kind)]
        listed.append(f"COUNT({' || '.join(f'CAST({form} AS TEXT)' for form in forms)})")
    questions = [f"SELECT {', '.join(['COUNT(*)', *listed])} FROM t{where}" for where in ("", _FILTER)]
    if columns:
        name = columns[0].name
        questions.append(f"SELECT {name}, COUNT(DISTINCT {name}) FROM t GROUP BY {name}")
        inner = ", ".join(
            f"MIN({field.name}) AS i{field.name}, MAX({field.name}) AS o{field.name}" for field in columns
        )
        outer = ", ".join(f"COUNT(i{field.name}) + COUNT(o{field.name})" for field in columns[:2])
        questions.append(f"SELECT {outer} FROM (SELECT id, {inner} FROM t GROUP BY id)")
    numbers = [
        f"SUM(LEAST(GREATEST(CAST({field.name} AS DOUBLE), 0), 10))"
        for field in columns
        if field.kind.numeric
    ]
    return [*questions, *([f"SELECT {', '.join(numbers)} FROM t"] if numbers else [])]


def outcome(source: Any, case: Case, asked: Callable[[Table], list[str]] = asked) -> list[Any]:
    """Return all that can be seen by opening a source and asking about it, but for the answers.

    A source may be a function that opens it.
    """
    budget = sf.Budget(epsilon=1e9, delta=1e-3, rule="pure")
    opened = source if callable(source) else functools.partial(sf.connect, source)
    try:
        db = opened(name="t", unit="id", budget=budget, columns=case.columns, **_CAPS)
    except SfumatoError as refusal:
        return [str(refusal)]
    table = db.catalog.table("t")
    assert table is not None
    seen: list[Any] = [[(field.name, field.kind) for field in table.fields]]
    for text in asked(table):
        before = db.budget.spent_units
        try:
            answer = db.sql(text, epsilon=10).release()
            status: Any = answer.columns, "GROUP BY" in text or len(answer.rows)
        except SfumatoError as refusal:
            assert refusal.code not in ("SF501", "SF502"), f"{case.label}: {text}"
            status = str(refusal)
        seen.append((text, status, db.budget.spent_units - before))
    return seen


def compare(case: Case) -> list[Any]:
    """Return what can be seen of a case with the extreme person: no more, and no less, than without."""
    there, absent = (outcome(source, case) for source in (case.there, case.absent))
    assert len(there) == len(absent), f"{case.label}: {there[0]}, {absent[0]}"
    for one, other in zip(there, absent, strict=True):
        assert one == other, case.label
    return there


@pytest.mark.parametrize("seed", rest_soaked(range(_SOME), 3))
def test_neighbours_cannot_be_told_apart(seed: int, tmp_path: Path) -> None:
    compare(generated(seed, tmp_path))


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=later(seed // 10, 3)) for seed in range(_SOME, _MANY, 10)]
)
def test_more_neighbours_cannot_be_told_apart(seed: int, tmp_path: Path) -> None:
    for one in range(seed, seed + 10):
        compare(generated(one, tmp_path))
