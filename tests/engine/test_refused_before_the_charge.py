"""What no data can make right is refused before the charge; objects with texts that are none, when opened."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.errors import EngineFailure, InvalidArgument, SfumatoError

BAD = pyarrow.Array.from_buffers(
    pyarrow.string(), 3, pyarrow.array([b"fine", b"\xff\xfe", b"fine"], pyarrow.binary()).buffers()
)
HUGE = 10**400


def people(frame: Any = None, **given: Any) -> sf.Database:
    if frame is None:
        frame = pd.DataFrame({"person": [1, 2, 3], "x": [1.0, 2.0, 3.0], "n": [1, 2, 3]})
    options = {"max_groups": 1, "max_rows": 1, "budget": sf.Budget(epsilon=9, delta=1e-6)}
    return sf.connect(frame, name="people", **{"unit": "person", **options, **given})


@pytest.mark.parametrize("column", [BAD, BAD.dictionary_encode(), pyarrow.chunked_array([BAD[:1], BAD[1:]])])
def test_texts_that_are_none_are_found_when_a_table_is_opened(column: Any) -> None:
    with pytest.raises(InvalidArgument, match="UTF-8"):
        people(pyarrow.table({"person": [1, 2, 3], "word": column}))


@pytest.mark.parametrize("upper", [5e-324, 1e-310])
@pytest.mark.parametrize("aggregate", ["SUM(x)", "MEDIAN(x)", "VAR_POP(x)"])
def test_grids_too_fine_for_the_engine_are_refused_before_the_charge(upper: float, aggregate: str) -> None:
    database = people(columns={"x": sf.between(0, upper)})
    with pytest.raises(SfumatoError, match=r"SF[24]"):
        database.sql(f"SELECT {aggregate} FROM people", epsilon=1).release()
    assert database.budget.spent == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda: people().sql(
            f"SELECT SUM(x, contribution_bounds_per_row => (0, {HUGE})) FROM people", epsilon=1
        ),
        lambda: people().sql(
            "SELECT SUM(x, contribution_bounds_per_group => (-1e400, 1)) FROM people", epsilon=1
        ),
        lambda: people().sql("SELECT COUNT(*) FROM people", epsilon=HUGE).release(),
        lambda: people().sql("SELECT COUNT(*) FROM people", epsilon=1, max_rows=HUGE),
        lambda: people(max_groups=HUGE),
        lambda: people().caps(limit=HUGE, epsilon=1),
        lambda: people(columns={"n": sf.one_of(1, HUGE)}),
        lambda: people(columns={"n": sf.one_of(1, 2**63)}),
        lambda: (
            people(columns={"x": sf.between(0, HUGE)}).sql("SELECT SUM(x) FROM people", epsilon=1).release()
        ),
    ],
)
def test_numbers_beyond_all_bounds_are_refused(ask: Any) -> None:
    with pytest.raises(SfumatoError, match=r"SF[14]"):
        ask()


def test_a_statement_that_takes_too_long_is_charged_and_says_nothing() -> None:
    size = 20_000
    frame = pd.DataFrame({"person": [1] * size, "x": range(size)})
    database = people(frame, seconds=0.05)
    text = "SELECT COUNT(*) FROM people a JOIN people b ON a.person = b.person AND a.x * b.x % 7 = 3"
    with pytest.raises(EngineFailure):
        database.sql(text, epsilon=1).release()
    assert database.budget.spent > 0
    with pytest.raises(InvalidArgument, match="seconds"):
        people(seconds=0)


def test_statements_have_an_hour_unless_said_otherwise() -> None:
    source = open_tables({"t": pyarrow.table({"x": [1]})})
    [(limit,)] = source.cursor().execute("SELECT current_setting('max_execution_time')").fetchall()
    assert int(limit) == 3_600_000
