"""A value that is read from a text depends on the text alone, not on what lies behind it in memory."""

from __future__ import annotations

import duckdb
import pyarrow
import pytest

from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.catalog import Kind

TEXTS = [
    f"2020-01-01 {time}{zone}:" for time in ("12:34", "12:34:56") for zone in ("+00", "+01", "-1", "-05:30")
]
BEHIND = ("0", "9", "30", "00000000", "99999999999999999999", "x", ":30")


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIMESTAMP], ids=str)
def test_zones_that_end_in_a_colon_are_no_moments(kind: Kind) -> None:
    """DuckDB by itself reads some of them one way or another, by what is behind them (see `read_text`)."""
    rows = [{"s": text + behind, "n": len(text)} for text in TEXTS for behind in BEHIND] * 40
    given = pyarrow.Table.from_pylist(rows)  # noqa: F841 (DuckDB finds it by its name)
    read = DUCKDB.cast("substr(s, 1, n)", Kind.TEXT, kind, None)
    assert duckdb.sql(f"SELECT count({read}), count(*) FROM given").fetchall() == [(0, len(rows))]
    # A name of a zone may end so, and is read; it is refused with the others, which shows that they are.
    named = DUCKDB.cast("'2020-01-01 12:34 x1+1:'", Kind.TEXT, kind, None)
    assert duckdb.sql(f"SELECT {named}").fetchall() == [(None,)]
    for text in ("2020-01-01 12:34+01:30", "2020-01-01 12:34", "2020-01-01 12:"):
        [(found,)] = duckdb.sql(f"SELECT {DUCKDB.cast(DUCKDB.text(text), Kind.TEXT, kind, None)}").fetchall()
        assert found is not None
