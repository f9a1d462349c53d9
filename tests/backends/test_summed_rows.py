"""Sums of doubles in the engine are exact for any number of rows that is added up that way."""

from __future__ import annotations

import duckdb
import pytest

from sfumato.backends.duckdb import backend, compile
from sfumato.backends.duckdb.backend import DuckDBBackend
from tests.backends.test_entries import QUESTIONS, database, totals

LIMB = 2**compile._SUMMED - 1


def test_the_largest_sum_is_exact() -> None:
    """One row less than the limit, each of the largest limb: all but a few of them as one number."""
    rows = compile.SUMMED_ROWS - 1
    assert LIMB * rows < 2**53 <= (LIMB + 1) * (rows + 1)
    few = 1023
    numbers = f"SELECT {LIMB}::DOUBLE AS x FROM range({few}) UNION ALL SELECT {LIMB * (rows - few)}::DOUBLE"
    [(found,)] = duckdb.sql(f"SELECT CAST(sum(x) AS BIGINT) FROM ({numbers})").fetchall()
    assert found == LIMB * rows


@pytest.mark.parametrize("text", QUESTIONS[4:8])
def test_a_table_with_more_rows_is_added_up_by_units(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 rows, of which nobody has 1,000 in a group: the totals are the same."""
    db = database()
    expected = totals(db, text)
    for module in (backend, compile):
        monkeypatch.setattr(module, "SUMMED_ROWS", 1_000)
    few: list[bool] = []
    honestly = DuckDBBackend._few_rows
    monkeypatch.setattr(DuckDBBackend, "_few_rows", lambda *given: few.append(honestly(*given)) or few[-1])
    assert totals(db, text) == expected and not any(few)


@pytest.mark.parametrize("text", QUESTIONS[4:7])
def test_a_unit_with_more_rows_counts_with_its_lowest_values(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of its rows; and nobody else counts otherwise."""
    db = database()
    (bounding,) = db.sql(text, epsilon=1).priced().boundings
    program = compile.compile_query(bounding.query, db.catalog)
    assert program.sums_first
    for module in (backend, compile):
        monkeypatch.setattr(module, "SUMMED_ROWS", 30)
    many = totals(db, text)
    assert totals(db, text) == many
    for _, _, measures, _ in many:
        for measure in bounding.query.measures:
            assert all(abs(one) <= 900 * measure.sensitivity for one in measures[measure.name])
