"""Files of frames have one schema, and each value that a question may need is read when a frame is opened."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.backends.spark.dialect import SPARK
from sfumato.backends.spark.frames import FramePlan, _plain
from sfumato.backends.spark.private_frames import check_rows
from sfumato.backends.spark.source import open_source
from sfumato.backends.spark.stored_files import compare_schemas
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


SCAN = """== Physical Plan ==
FileScan avro [id#0,x#1] Batched: false, DataFilters: [], Format: Avro, Location: InMemoryFileIndex(1 paths)\
[file:/t], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<id:int,x:int>
"""


def _schema(columns: str) -> Any:
    """Return what pyspark says of columns and types."""
    told = [one.split(" ") for one in columns.split(", ")]
    fields = [
        SimpleNamespace(name=name, dataType=SimpleNamespace(simpleString=lambda of_type=of_type: of_type))
        for name, of_type in told
    ]
    return SimpleNamespace(fields=fields, names=[name for name, _ in told])


class _AvroSession:
    """Says of Avro files what Spark says of Parquet files: no Spark of the tests reads Avro."""

    def __init__(self, frame: str, files: dict[str, str]) -> None:
        self.frame, self.files = frame, files

    @property
    def read(self) -> _AvroSession:
        return self

    def format(self, of_format: str) -> _AvroSession:
        assert of_format == "avro"
        return self

    def option(self, *_: str) -> _AvroSession:
        return self

    def load(self, path: str) -> Any:
        return SimpleNamespace(schema=_schema(self.files[path]))

    def table(self, view: str) -> Any:
        return SimpleNamespace(schema=_schema(self.frame))

    def sql(self, text: str) -> Any:
        assert text == "EXPLAIN SELECT * FROM v"
        return SimpleNamespace(collect=lambda: [(SCAN,)])


@pytest.mark.parametrize("after", [" [id#0,x#1] avro", " spark_catalog.default.t[id#0,x#1] avro"])
def test_files_of_avro_are_compared_where_a_plan_names_them(after: str) -> None:
    """Neither Spark nor Avro is here: plans are as they are written for other formats."""
    alike, leaf = "id int, x int", f"Relation{_plain(after)}"

    def compared(second: str, frame: str = alike, *, plain: bool = True) -> list[int]:
        session = _AvroSession(frame, {"file:/t/a.avro": alike, "file:/t/b.avro": second})
        plan = FramePlan(leaves=(leaf,), plain=plain, cached=False, many=False)
        return [len(one.paths) for one in compare_schemas(session, "t", "v", plan, tuple(session.files))]

    assert compared(alike) == compared("x int, id int", plain=False) == [2]
    for second, said in (
        ("id int, x bigint", r"file 2 has `x` as bigint, and .* as int"),
        ("id int", "file 2 lacks the column `x`"),
        ("id int, x int, y int", "file 2 has the column `y`"),
        ("id int, X int", "file 2 has the column `X`"),
    ):
        for plain in (True, False):
            with pytest.raises(InvalidArgument, match=said):
                compared(second, plain=plain)
    with pytest.raises(InvalidArgument, match="have `x` as int, and the frame as bigint"):
        compared(alike, "id int, x bigint")
    check_rows("t", [("Filter", " (x#1 > 3)"), ("Relation", after)])


def test_no_spark_of_the_tests_reads_avro(spark: Spark, tmp_path: Path) -> None:
    """Once it does, its files belong to the tests above, and the page of Spark says too little."""
    with pytest.raises(Exception, match="AVRO_DATA_SOURCE_NOT_ENABLED"):
        spark.session.read.format("avro").load(str(tmp_path))


@pytest.mark.soak
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


@pytest.mark.soak
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


COUNTED = {"x > 5": [0, 1], "x = 0": [1, 1], "f IN (0, 9)": [1, 2]}


def _counted(spark: Spark, folder: Path) -> dict[str, list[int]]:
    """Return how many people meet conditions: of 1, NaN and -0, and of those and a person who has 9."""
    found: dict[str, list[int]] = {asked: [] for asked in COUNTED}
    for name, more in (("without", []), ("with", [9.0])):
        values = [1.0, float("nan"), -0.0, *more]
        columns = {"x": pa.array(values), "f": pa.array(values, pa.float32())}
        _written({"id": NUMBERS[: len(values)], **columns}, folder / f"{name}.parquet")
        frame = spark.session.read.parquet(str(folder / f"{name}.parquet"))
        budget = sf.Budget(epsilon=1e4)
        db = sf.connect(frame, name="t", unit="id", max_rows=1, max_groups=1, budget=budget)
        for asked, counts in found.items():
            release = db.sql(f"SELECT COUNT(*) AS n FROM t WHERE {asked}", epsilon=100).release()
            counts.append(round(release.to_arrow().column("n").to_pylist()[0]))
    return found


@pytest.mark.soak
def test_no_condition_of_a_question_on_a_binary_number_reaches_statistics(
    spark: Spark, tmp_path: Path
) -> None:
    """One person more changes no count by more than that person: NaN is NULL, and -0.0 is 0.0.

    Noise is not zero with a probability of e^-100.
    """
    assert _counted(spark, tmp_path) == COUNTED


@pytest.mark.soak
def test_a_condition_of_a_question_that_reaches_statistics_is_seen(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own conditions leave out the people of NaN and of -0.0, unless somebody else has a 9."""
    dialect = type(SPARK)
    plain = dialect.normalised
    monkeypatch.setattr(dialect, "normalised", lambda *given: plain(*given).replace("nanvl", "coalesce"))
    found = _counted(spark, tmp_path)
    assert found["x > 5"] == [0, 2] and found["x = 0"] == [0, 0]


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


@pytest.mark.soak
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
