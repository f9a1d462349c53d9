"""Tables from everywhere, in a connection that can do nothing but read them."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from sfumato.backends import Source, open_tables
from sfumato.catalog import Kind
from sfumato.errors import InvalidArgument

TABLE = pa.table({"id": [1, 2, 3], "x": [0.5, None, 2.0], "name": ["a", "b'", "é"]})
KINDS = [("id", Kind.INTEGER), ("x", Kind.REAL), ("name", Kind.TEXT)]


def written(folder: Path, form: str) -> Any:
    path = folder / f"people.{form}"
    match form:
        case "parquet":
            parquet.write_table(TABLE, path)
        case "csv":
            TABLE.to_pandas().to_csv(path, index=False)
        case "duckdb":
            with duckdb.connect(str(path)) as connection:
                connection.register("given", TABLE)
                connection.execute("CREATE TABLE persons AS SELECT * FROM given")
        case "arrow":
            return TABLE
        case "batch":
            return TABLE.to_batches()[0]
        case "pandas":
            return TABLE.to_pandas()
        case "polars":
            return pl.from_arrow(TABLE)
        case "lazy":
            return pl.from_arrow(TABLE).lazy()
    return path


def content(source: Source, name: str = "people") -> Any:
    return source.cursor().execute(f"SELECT id, x, name FROM {name} ORDER BY id").fetchall()


@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb", "arrow", "batch", "pandas", "polars", "lazy"])
def test_every_form_gives_the_same_table(form: str, tmp_path: Path) -> None:
    source = open_tables({"people": written(tmp_path, form)})
    assert [(field.name, field.kind) for field in source.fields("people")] == KINDS
    assert content(source) == [(1, 0.5, "a"), (2, None, "b'"), (3, 2.0, "é")]
    assert source.version() == source.version()


def test_several_files_and_tables(tmp_path: Path) -> None:
    for number in range(3):
        parquet.write_table(TABLE.slice(number, 1), tmp_path / f"part{number}.parquet")
    source = open_tables(
        {"people": str(tmp_path / "*.parquet"), "others": TABLE, "more": [tmp_path / "part0.parquet"]}
    )
    assert len(content(source)) == len(content(source, "others")) == 3
    assert len(content(source, "more")) == 1


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """Where each row is a unit, one person would be two: by its path, by a pattern, or by a link."""
    path = written(tmp_path, "parquet")
    (tmp_path / "link.parquet").symlink_to(path)
    (tmp_path / "copy.parquet").hardlink_to(path)
    twice = (
        [path, path],
        [path, f"{tmp_path}/peop*.parquet"],
        f"{tmp_path}/[lp]*.parquet",
        [path, tmp_path / "copy.parquet"],
    )
    for named in twice:
        with pytest.raises(InvalidArgument, match="would count twice"):
            open_tables({"people": named})
    assert content(open_tables({"people": [tmp_path / "link.parquet"]}))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('{}')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('*')",
        "COPY people TO '{}'",
        "ATTACH '{}' AS other",
        "SET threads = 1",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "INSERT INTO people SELECT * FROM people",
    ],
)
@pytest.mark.parametrize("form", ["parquet", "arrow", "duckdb"])
def test_the_connection_is_locked(text: str, form: str, tmp_path: Path) -> None:
    source = open_tables({"people": written(tmp_path, form)})
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    with pytest.raises(duckdb.Error):
        source.cursor().execute(text.format(other))


def test_python_variables_are_not_tables() -> None:
    secret = TABLE  # noqa: F841
    source = open_tables({"people": TABLE})
    with pytest.raises(duckdb.Error):
        source.cursor().execute("SELECT * FROM secret")


def test_the_version_follows_the_data(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    source = open_tables({"people": path})
    before = source.version()
    assert open_tables({"people": path}).version() == before
    assert open_tables({"persons": path}).version() != before
    os.utime(path, ns=(1, 1))
    with pytest.raises(InvalidArgument, match="has changed since"):
        source.version()  # what was looked through and put on record is another file
    assert open_tables({"people": path}).version() != before
    path.unlink()
    with pytest.raises(InvalidArgument):
        source.version()
    changed = TABLE.set_column(0, "id", pa.array([1, 2, 4]))
    assert open_tables({"people": TABLE}).version() == open_tables({"people": TABLE}).version()
    assert open_tables({"people": TABLE}).version() != open_tables({"people": changed}).version()
    pieces = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    assert open_tables({"people": pieces}).version() == open_tables({"people": TABLE}).version()


def test_kinds_of_other_types() -> None:
    table = pa.table(
        {
            "u8": pa.array([1], pa.uint8()),
            "u64": pa.array([2**64 - 1], pa.uint64()),
            "f32": pa.array([1.5], pa.float32()),
            "dec": pa.array([None], pa.decimal128(10, 2)),
            "cat": pa.array(["a"]).dictionary_encode(),
            "when": pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("ns", tz="UTC")),
            "day": pa.array([datetime.date(2024, 1, 1)]),
            "yes": pa.array([True]),
            "list": pa.array([[1]]),
            "bytes": pa.array([b"x"]),
            "time": pa.array([datetime.time(1)]),
        }
    )
    kinds = {field.name: field.kind for field in open_tables({"t": table}).fields("t")}
    assert kinds == {
        "u8": Kind.INTEGER, "u64": Kind.HUGEINT, "f32": Kind.FLOAT, "dec": Kind.decimal(10, 2),
        "cat": Kind.TEXT,
        "when": Kind.TIMESTAMP, "day": Kind.DATE, "yes": Kind.BOOLEAN,
    }  # fmt: skip


def test_refusals_do_not_quote_the_data(tmp_path: Path) -> None:
    mixed = pd.DataFrame({"x": [1, "secret"]}, dtype=object)
    broken = tmp_path / "people.parquet"
    broken.write_bytes(b"secret")
    odd = tmp_path / "people.xlsx"
    odd.write_bytes(b"secret")
    for wrong in (mixed, broken, odd, tmp_path / "nowhere.csv", 7):
        with pytest.raises(InvalidArgument) as refusal:
            open_tables({"people": wrong})
        assert "secret" not in str(refusal.value)
        assert refusal.value.__cause__ is None
    with pytest.raises(InvalidArgument):
        open_tables({})
    with pytest.raises(InvalidArgument):
        open_tables({"a": TABLE, "A": TABLE})
    with duckdb.connect(str(tmp_path / "two.duckdb")) as connection:
        connection.execute("CREATE TABLE a AS SELECT 1; CREATE TABLE b AS SELECT 2")
    with pytest.raises(InvalidArgument):
        open_tables({"people": tmp_path / "two.duckdb"})
    assert open_tables({"B": tmp_path / "two.duckdb"}).fields("B")
