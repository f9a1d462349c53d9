"""Nobody's salary can be found by asking which questions fail.

A value that cannot be read makes the questions fail that come across it. Engines skip blocks of rows whose
statistics rule a condition out. So `WHERE salary >= 50000` would fail just where a block with such a person
is reached: a search by halves, in which each question costs almost nothing, would end at a salary. Each kind
of file and table that can hold such a value is attacked here, on each engine: either it is not opened, or
whether a question is answered does not depend on its condition.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.errors import EngineFailure, InvalidArgument

SALARY = 73_217
OTHERS = 40
MOST = 2**17

Write = Callable[[Path], Any]
Columns = dict[str, pa.Array]


def poisoned(of_type: pa.DataType, stored: Callable[[int], bytes], value: int) -> pa.Array:
    """Return a column whose last value, and no other, is far off."""
    packed = b"".join(stored(one) for one in [*range(OTHERS), value])
    return pa.Array.from_buffers(of_type, OTHERS + 1, [None, pa.py_buffer(packed)])


def _word(value: int) -> bytes:
    return struct.pack("<q", value)


def _wide(value: int) -> bytes:
    return value.to_bytes(16, "little", signed=True)


def _people(seen: pa.Array) -> pa.Table:
    """Return a table whose last row is one person's, whose salary is above all others."""
    salaries = pa.array([*range(OTHERS), SALARY], pa.int64())
    return pa.table({"id": pa.array(range(OTHERS + 1)), "salary": salaries, "seen": seen})


def _blocks(seen: pa.Array, folder: Path) -> list[Path]:
    """Write one file, in which the person has a row group of her own."""
    parquet.write_table(_people(seen), folder / "t.parquet", row_group_size=OTHERS)
    return [folder / "t.parquet"]


def _files(seen: pa.Array, folder: Path, of_type: pa.DataType) -> list[Path]:
    """Write two files, in which the person has a file of her own, with another type."""
    table = _people(seen)
    parquet.write_table(table[:OTHERS], folder / "a.parquet")
    parquet.write_table(
        table[OTHERS:].set_column(2, "seen", seen[OTHERS:].cast(of_type)), folder / "b.parquet"
    )
    return [folder / "a.parquet", folder / "b.parquet"]


def _numbers(last: int = 7) -> pa.Array:
    return pa.array([*range(OTHERS), last], pa.int32())


def _damaged(folder: Path) -> list[Path]:
    """Write a file of which the person's block of a column is damaged."""
    path = folder / "t.parquet"
    parquet.write_table(_people(_numbers()), path, row_group_size=OTHERS, compression="gzip")
    chunk = parquet.read_metadata(path).row_group(1).column(2)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    written = bytearray(path.read_bytes())
    written[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(written)
    return [path]


FILES: dict[str, Callable[[Path], list[Path]]] = {
    "milliseconds": lambda folder: _blocks(poisoned(pa.timestamp("ms"), _word, 2**62), folder),
    "text": lambda folder: _files(_numbers(), folder, pa.string()),
    "bigger": lambda folder: _files(_numbers(), folder, pa.int64()),
    "real": lambda folder: _files(_numbers(), folder, pa.float64()),
    "decimal": lambda folder: _files(_numbers(), folder, pa.decimal128(12, 2)),
    "moment": lambda folder: _files(pa.array(_numbers().cast(pa.int64())), folder, pa.timestamp("us")),
    "digits": lambda folder: _blocks(poisoned(pa.decimal128(20, 2), _wide, 10**23), folder),
    "few digits": lambda folder: _blocks(poisoned(pa.decimal128(10, 2), _wide, 10**17), folder),
    "far moment": lambda folder: _blocks(poisoned(pa.timestamp("us"), _word, 2**63 - 1), folder),
    "far moment in UTC": lambda folder: _blocks(
        poisoned(pa.timestamp("us", tz="UTC"), _word, -(2**63)), folder
    ),
    "far day": lambda folder: _blocks(
        poisoned(pa.date32(), lambda one: struct.pack("<i", one), -(2**31)), folder
    ),
    "damage": _damaged,
}
LEAN = ("milliseconds", "bigger")


def find_salary(db: sf.Database) -> int:
    """Search for the most m of which a question about salaries of at least m does not end as one above all.

    Return 0 where they end alike: nobody's salary can be told.
    """

    def ended(least: int) -> str:
        asked = f"SELECT COUNT(seen), COUNT(CAST(seen AS TEXT)) FROM t WHERE salary >= {least}"
        try:
            return str(db.sql(asked, epsilon=1e-6).release().columns)
        except EngineFailure as failure:
            return failure.code

    above = ended(MOST)
    if ended(0) == above:
        return 0
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ended(middle) == above else (middle, high)
    return low


def attack(source: Any, **options: Any) -> None:
    """Attack a source, unless it is refused when it is opened."""
    budget = sf.Budget(epsilon=1)
    try:
        db = sf.connect(source, unit="id", max_rows=1, max_groups=1, budget=budget, **options)
    except InvalidArgument as refusal:
        assert str(SALARY) not in str(refusal)
        return
    assert find_salary(db) == 0


@pytest.mark.parametrize(
    "of", [pytest.param(of, marks=() if of in LEAN else pytest.mark.soak) for of in FILES]
)
def test_no_salary_is_found_in_files_of_spark(spark: Any, tmp_path: Path, of: str) -> None:
    paths = FILES[of](tmp_path)
    attack(spark.session.read.parquet(*map(str, paths)), name="t")


@pytest.mark.parametrize("of", FILES)
def test_no_salary_is_found_in_files(tmp_path: Path, of: str) -> None:
    attack(FILES[of](tmp_path), name="t")


POSTGRES = {
    "date": ("DATE '2020-01-01'", "DATE '5874897-12-31'"),
    "earliest date": ("DATE '2020-01-01'", "DATE '-infinity'"),
    "timestamp": ("TIMESTAMP '2020-01-01'", "TIMESTAMP '294276-12-31 23:59:59.999999'"),
    "timestamptz": ("TIMESTAMPTZ '2020-01-01 00:00+00'", "TIMESTAMPTZ 'infinity'"),
    "numeric(38,2)": ("1", "'NaN'::numeric"),
    "numeric(38,0)": ("1", "repeat('9', 38)::numeric"),
    "double precision": ("1", "1.7976931348623157e308"),
    "real": ("1", "'-Infinity'::real"),
    "bigint": ("1", "-9223372036854775808"),
    "text": ("'1'", "repeat(U&'\\FFFD\\0001', 100000)"),
}


@pytest.mark.parametrize("of", POSTGRES)
@pytest.mark.filterwarnings("ignore")  # the role is the server's owner
def test_no_salary_is_found_in_tables_of_postgresql(server: Any, connection: Any, of: str) -> None:
    """An index on salaries lets the server reach some rows alone."""
    ordinary, extreme = POSTGRES[of]
    of_type = of.removeprefix("earliest ")
    connection.execute(
        f"DROP TABLE IF EXISTS attacked; CREATE TABLE attacked (id int, salary int, seen {of_type});"
        f" INSERT INTO attacked SELECT g, g, {ordinary} FROM generate_series(1, {OTHERS}) AS g;"
        f" INSERT INTO attacked VALUES (0, {SALARY}, {extreme});"
        " CREATE INDEX ON attacked (salary); ANALYZE attacked"
    )
    attack(server.url, table={"t": "attacked"})
