"""Files of frames have one schema, and each value that a question may need is read when a frame is opened."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.backends.spark.source import open_source
from sfumato.errors import InvalidArgument
from tests.conformance.spark_session import Spark
from tests.soaked import rest_soaked

ROWS = 20
NUMBERS = pa.array(range(ROWS), pa.int32())
DIFFERING: dict[str, tuple[dict[str, pa.Array], str]] = {
    "type": ({"id": NUMBERS, "x": NUMBERS.cast(pa.int64())}, r"file 2 has `x` as bigint, and .* as int"),
    "lacks": ({"id": NUMBERS}, "file 2 lacks the column `x`"),
    "has": ({"id": NUMBERS, "x": NUMBERS, "y": NUMBERS}, "file 2 has the column `y`"),
    "letters": ({"id": NUMBERS, "X": NUMBERS}, "file 2 has the column `X`"),
}


def _written(columns: dict[str, pa.Array], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    (orc if path.suffix == ".orc" else parquet).write_table(pa.table(columns), path)


def _moments(last: int) -> pa.Array:
    """Return milliseconds; the last of them are no microseconds."""
    packed = b"".join(struct.pack("<q", one) for one in [*range(ROWS - 1), last])
    return pa.Array.from_buffers(pa.timestamp("ms"), ROWS, [None, pa.py_buffer(packed)])


def _count(frame: Any, asked: str = "COUNT(*)") -> int:
    db = sf.connect(frame, name="t", unit="id", max_rows=1, max_groups=1, budget=sf.Budget(epsilon=1e4))
    release = db.sql(f"SELECT {asked} AS n FROM t", epsilon=100).release()
    return round(release.to_arrow().column("n").to_pylist()[0])


@pytest.mark.parametrize("of", rest_soaked(["parquet", "orc"], 2))
def test_files_that_differ_are_refused_by_column(spark: Spark, tmp_path: Path, of: str) -> None:
    """Frames that are as their files, and frames that are computed; files in another order are alike."""
    for name, (second, said) in DIFFERING.items():
        _written({"id": NUMBERS, "x": NUMBERS}, tmp_path / name / f"a.{of}")
        _written(second, tmp_path / name / f"b.{of}")
        frame = spark.remote().read.format(of).load(str(tmp_path / name))
        computed = frame.selectExpr("id", "id + 1 AS z").union(spark.remote().range(3).selectExpr("id", "id"))
        for one in (frame, computed) if name == "type" else (frame,):
            with pytest.raises(InvalidArgument, match=said) as raised:
                open_source({"t": one})
            assert raised.value.place in ("t.x", "t.X", "t.y") and raised.value.__context__ is None
    _written({"id": NUMBERS, "x": NUMBERS, "X": NUMBERS}, tmp_path / "alike" / f"a.{of}")
    with pytest.raises(InvalidArgument, match="two columns of one name"):
        open_source({"t": spark.session.read.format(of).load(str(tmp_path / "alike"))})
    _written({"x": NUMBERS, "id": NUMBERS}, tmp_path / "type" / f"b.{of}")
    assert _count(spark.session.read.format(of).load(str(tmp_path / "type"))) == ROWS


def test_frames_and_tables_that_declare_other_types_than_files_are_refused(
    spark: Spark, tmp_path: Path
) -> None:
    """A schema of the reader's, and one of the catalog; a folder may say a column, and a default may."""
    _written({"id": NUMBERS, "x": NUMBERS}, tmp_path / "one" / "k=1" / "a.parquet")
    _written({"id": NUMBERS, "x": NUMBERS}, tmp_path / "one" / "k=2" / "a.parquet")
    reader = spark.session.read.schema("id INT, x BIGINT, k INT")
    spark.session.sql(
        f"CREATE TABLE wider (id INT, x DOUBLE) USING parquet LOCATION '{tmp_path / 'one' / 'k=1'}'"
    )
    for frame in (reader.parquet(str(tmp_path / "one")), spark.remote().table("wider")):
        with pytest.raises(InvalidArgument, match=r"have `x` as int, and the frame as (bigint|double)"):
            open_source({"t": frame})
    opened = open_source({"t": spark.session.read.parquet(str(tmp_path / "one"))})
    assert [one.name for one in opened.fields("t")] == ["id", "x", "k"]
    more = spark.session.read.schema("id INT, x INT, later STRING").parquet(str(tmp_path / "one"))
    assert _count(more, "COUNT(later)") == 0


def test_values_that_cannot_be_read_are_found_when_a_frame_is_opened(spark: Spark, tmp_path: Path) -> None:
    """Also those of rows that a frame leaves out, and those that a reader was told to pass over."""
    _written({"id": NUMBERS, "x": NUMBERS, "m": _moments(7)}, tmp_path / "near.parquet")
    _written({"id": NUMBERS, "x": NUMBERS, "m": _moments(2**62)}, tmp_path / "far.parquet")
    plain, lenient = spark.session.read, spark.session.read.option("ignoreCorruptFiles", "true")
    careless = spark.session.newSession()
    careless.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    far, near = str(tmp_path / "far.parquet"), str(tmp_path / "near.parquet")
    for frame in (
        plain.parquet(far),
        plain.parquet(far).where("x < 5"),
        lenient.parquet(far),
        lenient.parquet(far).selectExpr("id", "m", "x + 1 AS y"),
        careless.read.parquet(far).selectExpr("id", "m", "x + 1 AS y"),
    ):
        with pytest.raises(InvalidArgument, match=r"cannot be read|passes over errors"):
            open_source({"t": frame})
    assert _count(lenient.parquet(near), "COUNT(m)") == ROWS


def test_no_condition_of_a_frame_on_a_binary_number_reaches_statistics(spark: Spark, tmp_path: Path) -> None:
    """Whether the row that has NaN is one of the frame's would depend on who else has a large number."""
    found = []
    for name, most in (("without", 2.0), ("with", 9.0)):
        values = pa.array([1.0, most, float("nan")])
        _written({"id": NUMBERS[:3], "a`b": values}, tmp_path / f"{name}.parquet")
        frame = spark.session.read.parquet(str(tmp_path / f"{name}.parquet"))
        found.append(frame.where("`a``b` > 5").count())
        with pytest.raises(InvalidArgument, match="condition on the binary number"):
            open_source({"t": frame.where("`a``b` > 5")})
        assert _count(frame.where("`a``b` + 0 > 5 AND id >= 0 AND `a``b` IS NOT NULL")) == 1 + (most > 5)
    assert found == [0, 2]  # as Spark reads it: one person decides about the row of another


def test_a_decimal_with_more_digits_than_its_type_is_null(spark: Spark, tmp_path: Path) -> None:
    packed = b"".join(one.to_bytes(16, "little", signed=True) for one in (150, 10**12))
    values = pa.Array.from_buffers(pa.decimal128(10, 2), 2, [None, pa.py_buffer(packed)])
    parquet.write_table(
        pa.table({"id": NUMBERS[:2], "x": values}), tmp_path / "t.parquet", store_decimal_as_integer=True
    )
    tables = open_source({"t": spark.session.read.parquet(str(tmp_path / "t.parquet"))})
    with tables.reading() as cursor:
        rows = cursor.execute(f"SELECT id, x FROM {tables.stored('t')} ORDER BY id").fetchall()
    assert [(row[0], str(row[1])) for row in rows] == [(0, "1.50"), (1, "None")]


def test_a_file_that_a_frame_reads_twice_is_refused(spark: Spark, tmp_path: Path) -> None:
    """Spark lists it once: by paths, a folder and its file, links, and partitions at one place."""
    _written({"id": NUMBERS, "x": NUMBERS}, tmp_path / "t" / "a.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "t" / "a.parquet")
    folder, file, link = (str(tmp_path / one) for one in ("t", "t/a.parquet", "link.parquet"))
    for text in (
        "CREATE TABLE parted (id INT, x INT, k INT) USING parquet PARTITIONED BY (k)",
        f"ALTER TABLE parted ADD PARTITION (k = 1) LOCATION '{folder}'",
        f"ALTER TABLE parted ADD PARTITION (k = 2) LOCATION '{folder}'",
    ):
        spark.session.sql(text)
    for frame in (
        spark.session.read.parquet(file, file),
        spark.remote().read.parquet(file, file).where("x > 3"),
        spark.session.read.parquet(folder, file).selectExpr("x + 1 AS y"),
        spark.session.read.parquet(file, link),
        spark.session.table("parted"),
    ):
        with pytest.raises(InvalidArgument, match="would count twice"):
            open_source({"t": frame})
    parquet.write_table(pa.table({"id": NUMBERS, "x": NUMBERS}), tmp_path / "other.parquet")
    assert _count(spark.session.read.parquet(file, str(tmp_path / "other.parquet"))) == ROWS
