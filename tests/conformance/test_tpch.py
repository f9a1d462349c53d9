"""TPC-H's 22 questions in private form, on every engine: the exact integers of DuckDB, answers in intervals.

Caps are above what any customer has, so all groups of a customer count, whatever an engine's hashes are.
A few questions run over some 900 lines; the soak asks all of them, over these and over 60,000 lines.
"""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from sfumato.session import Database, Question
from tests.conformance.comparing import shown
from tests.conformance.engines import Engine, fields_of, lean
from tests.engine.test_tpch_like import SELECTED, UNCHOSEN, compare, label
from tests.engine.tpch import (
    PUBLIC,
    PUBLIC_QUESTIONS,
    QUESTIONS,
    connected,
    database,
    declared,
    scaled,
    tables,
    truth,
)

PAGE = Path(__file__).parents[2] / "docs" / "tpch.md"
EPSILON = 10**6
LARGE = {"max_groups": 200, "max_rows": 200}
LARGE_EPSILON = 10**8  # caps are wider
LEVEL = 1 - 1e-13
"""At most 3,000 intervals are looked at, so that a false alarm has a chance below 1e-9."""


@cache
def opened(engine: Engine) -> Database:
    """Return the small tables in an engine."""
    return copied(engine, tables(), max_groups=30, max_rows=30)


def copied(engine: Engine, found: dict[str, pa.Table], **caps: int) -> Database:
    rows = {name: table.to_pylist() for name, table in found.items()}
    return engine.connect(fields_of(found), rows, public=PUBLIC, **declared(**caps))


def check_integers(asked: Question, ours: Database) -> None:
    """Hold an engine's exact integers against DuckDB's."""
    for bounding in asked.priced().boundings:
        exact = (db.backend.run(bounding.query).reveal() for db in (ours, asked.database))
        assert shown(next(exact)) == shown(next(exact))


def check_answer(name: str, asked: Question, found: dict[str, Any]) -> None:
    """Hold an answer against the truth."""
    release = asked.release()
    intervals = release.intervals(LEVEL)
    labels = [place for place, column in enumerate(release.columns) if column not in intervals]
    known = {label(row, labels): row for row in truth(UNCHOSEN.get(name, QUESTIONS[name]), found)}
    assert bool(release.rows) == bool(known) and (intervals or name == "Q20")
    narrow = 0
    for column, pairs in intervals.items():
        place = release.columns.index(column)
        for pair, row in zip(pairs, release.rows, strict=True):
            own = label(row, labels)
            true = float(known[own][place]) if own in known else 0.0  # groups that are empty, and shown
            assert pair is not None and pair[0] <= true <= pair[1], (column, row)
            narrow += pair[1] - pair[0] <= abs(true) / 4
    assert narrow or name == "Q20"
    if name == "Q20":  # names, and no numbers
        assert [row[0] for row in release.rows] == [row[0] for row in truth(QUESTIONS[name], found)]


@pytest.mark.parametrize(("engine", "name"), lean(QUESTIONS, postgresql=7, spark=22), indirect=["engine"])
def test_answers_are_within_their_intervals(engine: Engine, name: str) -> None:
    asked = opened(engine).sql(QUESTIONS[name], epsilon=EPSILON)
    check_integers(asked, database())
    check_answer(name, asked, tables())


@cache
def large() -> dict[str, pa.Table]:
    """Return 60,000 lines of 15,000 orders."""
    with tempfile.TemporaryDirectory() as folder:
        found = scaled(Path(folder), 0.01)
        return {name: parquet.read_table(one) if isinstance(one, str) else one for name, one in found.items()}


@cache
def opened_large(engine: Engine | None) -> Database:
    """Return the large tables in an engine, or in DuckDB."""
    return connected(large(), **LARGE) if engine is None else copied(engine, large(), **LARGE)


@pytest.mark.parametrize(("engine", "name"), lean(QUESTIONS, of_soak=2), indirect=["engine"])
def test_integers_are_the_same_over_60_000_lines(engine: Engine, name: str) -> None:
    """What they become, an answer within its intervals, is held over few lines."""
    check_integers(opened_large(engine).sql(QUESTIONS[name], epsilon=LARGE_EPSILON), opened_large(None))


def test_caps_are_above_what_any_customer_has() -> None:
    """Otherwise engines would choose other groups, by their own hashes."""
    lines = "SELECT o_custkey, COUNT(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY 1"
    for found, cap in ((tables(), 30), (large(), LARGE["max_groups"])):
        assert max(number for _, number in truth(lines, found)) <= cap


@pytest.mark.parametrize(
    ("engine", "name"), lean(PUBLIC_QUESTIONS, postgresql=3, spark=3), indirect=["engine"]
)
def test_public_tables_are_free(engine: Engine, name: str) -> None:
    asked = opened(engine).sql(PUBLIC_QUESTIONS[name])
    assert asked.free
    compare(asked.release(), truth(PUBLIC_QUESTIONS[name]))


def test_the_page_lists_the_questions_as_they_are_asked() -> None:
    """Each of the 22, and how its groups are known: declared, found, or none."""
    rows = re.findall(r"^\| (Q\d+) \|.*\| (\w+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == list(QUESTIONS) and len(rows) == 22
    for name, groups in rows:
        boundings = database().sql(QUESTIONS[name], epsilon=1).priced().boundings
        keyed = any(one.query.keys for one in boundings)
        assert groups == ("found" if name in SELECTED else "public" if keyed else "none"), name
        assert any(one.select_keys and one.query.keys for one in boundings) == (name in SELECTED)
