"""Conditions on columns of Parquet files: what the file says of its rows changes no answer.

Readers skip rows by the smallest and largest value that a file states for many of them. DuckDB's reader errs
where these leave out NaN, where all texts but NULL are one, and where a writer ordered values in another way.
Then what one person's row says would depend on the rows beside it. Each file is compared with its rows in
memory, one row group at a time.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from sfumato.backends import open_tables
from sfumato.backends.duckdb import engine_files
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.relations import Relations
from sfumato.catalog import Catalog, Table, Unit
from sfumato.plan.sql import parse

NAN, INFINITY = float("nan"), float("inf")
TEXTS = [["a", None], ["", None, ""], ["a", "b", None], ["a", "a"], [None, None]]
CONDITIONS = {
    "w": ("w IS NULL", "COALESCE(w, 'a') = 'a'", "w = 'a' OR w IS NULL", "NOT (w IS NOT NULL)", "w <> 'a'"),
    "x": ("x IS NULL", "x >= 9", "x <> 0", "NOT (x = 0)", "COALESCE(x, 0) = 0", "x < 2 OR x IS NULL"),
}


def wrongs(path: Path, column: str, values: list[Any], *, dictionary: bool) -> list[str]:
    """Return the conditions that hold for other rows of a file than of the same table in memory."""
    of_type = pyarrow.string() if column == "w" else pyarrow.float64()
    table = pyarrow.table({"person": list(range(len(values))), column: pyarrow.array(values, of_type)})
    parquet.write_table(table, path, row_group_size=3, use_dictionary=dictionary)
    sides: list[list[Any]] = []
    for origin in (str(path), table):
        source = open_tables({"t": origin})
        unit = Unit(name="person", column="person")
        catalog = Catalog((Table(name="t", unit=unit, fields=source.fields("t")),))
        cursor = source.cursor()
        found = []
        for condition in CONDITIONS[column]:
            (named,) = parse(f"SELECT COUNT(*) FROM t WHERE {condition}", catalog).queries
            rendered = Relations(catalog=catalog, dialect=DUCKDB).render(named.query.source)
            found.append(sorted(cursor.execute(f"SELECT __unit FROM ({rendered.sql})").fetchall()))
        sides.append(found)
    return [one for one, ours, plain in zip(CONDITIONS[column], *sides, strict=True) if ours != plain]


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_file_and_its_rows_in_memory_are_the_same(tmp_path: Path, dictionary: bool) -> None:
    words = [value for some in TEXTS for value in (some * 3)[:3]]
    assert wrongs(tmp_path / "w.parquet", "w", words, dictionary=dictionary) == []
    for place, numbers in enumerate(([0.0, NAN], [1.5, NAN, None], [0.0, NAN, INFINITY], [NAN] * 2)):
        assert wrongs(tmp_path / f"{place}.parquet", "x", numbers, dictionary=dictionary) == []


def test_the_reader_of_the_engine_errs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this fails, another version of the engine is right, and `_misread_columns` can go.

    The test of a text's length keeps conditions from the reader; it is left out here.
    """
    monkeypatch.setattr(type(DUCKDB), "short_text", type(DUCKDB).plain_text)
    monkeypatch.setattr(engine_files, "_misread_columns", lambda *_: frozenset())
    assert "w IS NULL" in wrongs(tmp_path / "w.parquet", "w", ["a", None], dictionary=False)


# -- the first form of statistics ----------------------------------------------------------------

FIRST = {  # values, and the smallest and the largest of them in the order of bytes or numbers with a sign
    "texts": (pyarrow.array(["a", "b", "z", "\u00e9"]), "\u00e9".encode(), b"z"),
    "numbers": (
        pyarrow.array([5, 6, 7, 2**32 - 1], pyarrow.uint32()),
        (2**32 - 1).to_bytes(4, "little"),
        (7).to_bytes(4, "little"),
    ),
    "decimals": (
        pyarrow.array([1, 2, 128, 3], pyarrow.decimal128(20, 0)),
        (128).to_bytes(9, "big"),
        (3).to_bytes(9, "big"),
    ),
}
STATISTICS = (
    re.compile(  # in thrift: fields 1 and 2 if there are any, no NULLs, fields 5 and 6, what is exact
        rb"<(?:\x18.{2,10}?\x18.{2,10}?\x16|\x36)\x00\x28.{2,10}?\x18.{2,10}?(?:[\x11\x12]{2})?\x00\x19",
        re.DOTALL,
    )
)
ASKED = {"texts": "x = 'b'", "numbers": "x = 6", "decimals": "x = 2"}


def of_first_form(path: Path, form: str) -> Path:
    """Write a file with statistics as writers had them before 2018: `min` and `max` of signed bytes."""
    values, least, most = FIRST[form]
    table = pyarrow.table({"x": values, "person": [1, 2, 3, 4]})
    parquet.write_table(table, path, store_schema=False, use_dictionary=False)
    held = path.read_bytes()
    begins = len(held) - 8 - int.from_bytes(held[-8:-4], "little")
    footer = held[begins:-8]
    stated = b"".join(b"\x18" + bytes([len(one)]) + one for one in (most, least))
    footer, changed = STATISTICS.subn(lambda _: b"<" + stated + b"\x16\x00\x00\x19", held[begins:-8], count=1)
    assert changed == 1
    path.write_bytes(held[:begins] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize("form", FIRST)
def test_no_row_is_hidden_by_one_that_an_older_writer_ordered_otherwise(tmp_path: Path, form: str) -> None:
    """The file says that all texts lie between `\u00e9` and `z`: without that one person `b` is there."""
    path = of_first_form(tmp_path / "old.parquet", form)
    with closing(open_tables({"t": path})) as source:
        cursor = source.cursor()
        counted = f"SELECT count(*) FROM t WHERE {ASKED[form]}"
        assert cursor.execute(counted).fetchall() == [(1,)]
        assert cursor.execute("SELECT count(x) FROM t").fetchall() == [(4,)]
    [(stated, other)] = (
        duckdb.connect()
        .execute(
            f"SELECT stats_min, stats_min_value FROM parquet_metadata('{path}') WHERE path_in_schema = 'x'"
        )
        .fetchall()
    )
    assert stated is not None and other is None
