"""Opening data leaks nothing: the named files, their own columns, and types that no value can make fail."""

from __future__ import annotations

import ast
import datetime
import itertools
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.errors import EngineStopped, InvalidArgument, SfumatoError
from tests.processes import said

SOURCE = Path(sf.__file__).parent
FAR = [2**62, -(2**62), 2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1]


def moments(of_type: pa.DataType, values: list[int]) -> pa.Array:
    """Return moments as they are stored, however far."""
    return pa.Array.from_buffers(of_type, len(values), [None, pa.array(values, pa.int64()).buffers()[1]])


def connect(source: Any, **changes: Any) -> sf.Database:
    options: dict[str, Any] = {"unit": "id", "name": "t", "budget": sf.Budget(epsilon=1e6), "max_rows": 9}
    return sf.connect(source, **{**options, **changes})


def refusal(action: Any) -> SfumatoError:
    with pytest.raises(SfumatoError) as refused:
        action()
    return refused.value


def content(source: Any, name: str = "t", **options: Any) -> list[tuple[Any, ...]]:
    opened = open_tables({name: source}, **options)
    try:
        return sorted(opened.cursor().execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
    finally:
        opened.close()


# -- lists of files -------------------------------------------------------------------------


def test_parquet_files_of_different_types_are_refused(tmp_path: Path) -> None:
    """The engine would cast the second file's values to the first one's type, and fail at one person's."""
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    parquet.write_table(pa.table({"id": [1], "x": pa.array([1], pa.int32())}), first)
    parquet.write_table(pa.table({"id": [2], "x": pa.array([2**31], pa.int64())}), second)
    refused = refusal(lambda: connect([first, second]))
    assert isinstance(refused, InvalidArgument)
    assert "file 2 has `x` as BIGINT, and the first file as INTEGER" in refused.message
    parquet.write_table(pa.table({"id": [2], "y": pa.array([1], pa.int32())}), second)
    assert "file 2 lacks the column `x`" in refusal(lambda: connect([first, second])).message
    parquet.write_table(pa.table({"id": [2], "x": pa.array([1], pa.int32()), "z": [1]}), second)
    assert "file 2 has the column `z`" in refusal(lambda: connect([first, second])).message
    parquet.write_table(pa.table({"x": pa.array([7], pa.int32()), "id": [2]}), second)
    assert content([first, second]) == [(1, 1), (2, 7)]  # the order of columns does not matter


@pytest.mark.parametrize("kinds", [None, {}, {"x": "REAL"}])
def test_columns_of_csv_files_are_matched_by_their_headers(tmp_path: Path, kinds: Any) -> None:
    from sfumato.catalog import Kind

    declared = kinds if kinds is None else {"t": {name: Kind(kind.lower()) for name, kind in kinds.items()}}
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("id,x\n1,10\n")
    second.write_text("x;id\n20;2\n" if kinds is not None else "x,id\n20,2\n")
    found = content([first, second], kinds=declared)
    assert [(int(float(who)), int(float(x))) for who, x in found] == [(1, 10), (2, 20)]
    for wrong in ("5,20\n", "id,z\n2,20\n", "id\n2\n", "id,x,y\n2,20,1\n"):
        second.write_text(wrong)
        refused = refusal(lambda: open_tables({"t": [first, second]}, kinds=declared))
        assert isinstance(refused, InvalidArgument) and "20" not in str(refused)


def test_a_first_line_that_is_no_header_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for text, reason in {
        "17,secret,52000\n18,x,1\n": "has a number where a header has a name",
        "id,,x\n0,1,2\n": "has a column without a name",
        ",,\n1,2,3\n": "names no columns",
        "id,ID\n1,2\n": "names two columns alike",
        'id,"x\ny"\n1,2\n': "names no columns",
        "id,x\r1,secret\r": "names no columns",
    }.items():
        path.write_bytes(text.encode())
        refused = refusal(lambda: connect(path))
        assert reason in refused.message and "secret" not in str(refused), text


@pytest.mark.parametrize("kinds", [None, {"t": {}}])
def test_the_index_of_a_data_frame_is_left_out(tmp_path: Path, kinds: Any) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text(",id,x\n0,7,a\n")
    second.write_text(",x,id\n1,b,8\n")
    found = open_tables({"t": [first, second]}, kinds=kinds)
    assert [field.name for field in found.fields("t")] == ["id", "x"]
    rows = sorted((int(who), x) for who, x in content([first, second], kinds=kinds))
    assert rows == [(7, "a"), (8, "b")]


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_no_file_is_read_twice(tmp_path: Path, form: str) -> None:
    """Where each row is a unit by itself, one person would count as two, and be charged as one."""
    (tmp_path / "in").mkdir()
    path, link, name = tmp_path / f"a.{form}", tmp_path / "in" / f"b.{form}", tmp_path / "in" / f"c.{form}"
    if form == "parquet":
        parquet.write_table(pa.table({"id": [1]}), path)
    else:
        path.write_text("id\n1\n")
    link.symlink_to(path)
    name.hardlink_to(path)
    twice = [path, path], [path, f"{tmp_path}/*.{form}"], [path, link], [path, name], f"{tmp_path}/in/*"
    for origin in twice:
        assert "would count twice" in str(refusal(lambda origin=origin: open_tables({"t": origin})))
    name.unlink()
    link.unlink()
    assert content(f"{tmp_path}/**/**/*.{form}") == [(1,)], "one pattern finds a file on two ways"


def test_each_path_and_pattern_names_a_file(tmp_path: Path) -> None:
    """A file that is missing among others would be people that are missing, and nobody would know."""
    parquet.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    for missing in ("b.parquet", "b*.parquet", ""):
        error = refusal(lambda missing=missing: open_tables({"t": [tmp_path / "a.parquet", missing]}))
        assert "there is no file for table `t`" in str(error) and "a.parquet" not in error.message


# -- exactly the named file, exactly its own columns ------------------------------------------


@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb"])
def test_a_path_is_no_pattern_for_the_engine(tmp_path: Path, form: str) -> None:
    names = {"v[1]": 1, "v1": 2, "a*b": 3, "axb": 4, "q?": 5, "qq": 6, "{a,b}": 7}
    for name, number in names.items():
        path = tmp_path / f"{name}.{form}"
        if form == "parquet":
            parquet.write_table(pa.table({"id": [number]}), path)
        elif form == "csv":
            path.write_text(f"id\n{number}\n")
        else:
            with duckdb.connect(str(path)) as connection:
                connection.execute(f"CREATE TABLE t AS SELECT {number} AS id")
    for name, number in names.items():
        assert content(tmp_path / f"{name}.{form}") == [(number,)], name
        if form != "duckdb":
            other = "qq" if name == "v1" else "v1"
            both = [tmp_path / f"{name}.{form}", tmp_path / f"{other}.{form}"]
            assert content(both) == sorted([(number,), (names[other],)])


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_folders_are_no_columns(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "id=5"
    folder.mkdir()
    path = folder / f"t.{form}"
    if form == "parquet":
        parquet.write_table(pa.table({"id": [1], "x": [2]}), path)
    else:
        path.write_text("id,x\n1,2\n")
    assert content(path) == [(1, 2)]
    (other := folder / f"u.{form}").write_bytes(path.read_bytes())
    assert content([path, other]) == [(1, 2)] * 2
    assert content(path, kinds={"t": {}})[0] in ((1, 2), ("1", "2"))


@pytest.fixture
def views(tmp_path: Path) -> Path:
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE private AS SELECT range AS id, range % 3 AS x FROM range(4)")
        for name, text in {
            "plain": "SELECT id, x + 1 AS y FROM private WHERE x < 2",
            "counted": "SELECT x AS id, count(*) AS n FROM private GROUP BY x",
            "ranked": "SELECT id, row_number() OVER (ORDER BY x) AS place FROM private",
            "joined": "SELECT a.id, b.x FROM private a JOIN private b ON a.x = b.x",
            "first": "SELECT id FROM private ORDER BY x LIMIT 1",
            "different": "SELECT DISTINCT x AS id FROM private",
            "below": "SELECT id, (SELECT max(x) FROM private) AS m FROM private",
            "chance": "SELECT id, random() AS r FROM private",
            "twice": "SELECT id FROM plain",
            "file": f"SELECT 1 AS id FROM read_csv('{tmp_path}/x.csv')",
            (
                "failing"
            ): "SELECT CAST(CASE WHEN x = 2 THEN 'secret' ELSE '1' END AS INTEGER) AS id FROM private",
        }.items():
            if name == "file":
                (tmp_path / "x.csv").write_text("a\n1\n")
            connection.execute(f"CREATE VIEW {name} AS {text}")
    return path


def test_a_view_is_opened_if_its_rows_are_rows_of_one_table(views: Path) -> None:
    private: dict[str, Any] = {"kinds": {"plain": {}}}
    assert content(views, "plain", **private) == [(0, 1), (1, 2), (3, 1)]
    assert content(views, "counted") == [(0, 2), (1, 1), (2, 1)], "a public one may be any question"
    for name in ("counted", "ranked", "joined", "first", "different", "below", "chance"):
        refused = refusal(lambda name=name: open_tables({name: views}, kinds={name: {}}))
        assert f"`{name}` is a view" in refused.message and "one row of one table" in refused.message
    for kinds in (None, {"file": {}, "twice": {}}):
        for name in ("file", "twice"):
            refused = refusal(lambda name=name, kinds=kinds: open_tables({name: views}, kinds=kinds))
            assert "something else than tables of its file" in refused.message
    refused = refusal(lambda: open_tables({"failing": views}))
    assert "cannot be computed" in refused.message and "secret" not in str(refused)


def test_the_only_table_of_a_file_may_have_another_name(views: Path) -> None:
    assert content(views, "private") == content(views, "other") == [(at, at % 3) for at in range(4)]
    with duckdb.connect(str(views)) as connection:
        connection.execute(
            "CREATE TABLE more AS SELECT 3 AS id; CREATE SCHEMA s; CREATE TABLE s.more AS SELECT 4 AS id"
        )
    assert "has 3 tables that `other` could mean" in refusal(lambda: open_tables({"other": views})).message
    assert "has 2 tables that `more` could mean" in refusal(lambda: open_tables({"more": views})).message
    assert content(views, "s.more") == [(4,)] and content(views, "main.more") == [(3,)]


def test_generated_columns_are_left_out(tmp_path: Path) -> None:
    """Their expression is computed at every reading, and may fail at a value."""
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, s VARCHAR, n INTEGER AS (CAST(s AS INTEGER)))")
        connection.execute("INSERT INTO t (id, s) VALUES (1, '1')")
    opened = open_tables({"t": path})
    assert [field.name for field in opened.fields("t")] == ["id", "s"]
    assert [(column.name, column.of_type) for column in opened.left_out("t")] == [("n", "generated")]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """The engine would rename one, and a list of files would match another."""
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "X"])
    parquet.write_table(twice, tmp_path / "t.parquet")
    for source in (twice, tmp_path / "t.parquet", pd.DataFrame([[1, 2]], columns=["a", "a"])):
        assert "two columns of one name" in refusal(lambda one=source: open_tables({"t": one})).message


# -- types that questions cannot use --------------------------------------------------------------


def odd_sources(folder: Path) -> dict[str, Any]:
    """Return one table in several forms, with columns that no question can use."""
    table = pa.table(
        {
            "id": [1, 2],
            "x": [1, 2],
            "tags": [[1], [2]],
            "home": [{"street": "a"}, None],
            "at": pa.array([datetime.time(1), None]),
            "raw": [b"a", b"b"],
        }
    )
    parquet.write_table(table, folder / "t.parquet")
    parquet.write_table(table.append_column("ms", pa.array([0, 1], pa.timestamp("ms"))), folder / "m.parquet")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return {
        "arrow": table,
        "parquet": folder / "t.parquet",
        "milliseconds": folder / "m.parquet",
        "duckdb": folder / "t.duckdb",
        "polars": pl.from_arrow(table),
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
    }


@pytest.mark.parametrize("form", ["arrow", "parquet", "milliseconds", "duckdb", "polars", "pandas"])
def test_columns_that_cannot_be_used_are_left_out_aloud(form: str, tmp_path: Path) -> None:
    source = odd_sources(tmp_path)[form]
    db = connect(source)
    assert [one.name for one in db.catalog.tables[0].unsupported] == ["tags", "home", "at", "raw"]
    for name in ("tags", "home", "t.at", "RAW"):
        refused = refusal(lambda name=name: db.sql(f"SELECT COUNT({name}) FROM t", epsilon=1))
        assert refused.code == "SF402" and "which questions cannot use" in refused.message
        assert "convert it before it is opened" in str(refused)
    for ask in (
        lambda: db.table("t").agg(n=sf.count(sf.col("tags"))),
        lambda: db.bounds("tags", epsilon=1),
        lambda: db.declare(tags=sf.between(0, 1)),
        lambda: connect(source, columns={"tags": sf.between(0, 1)}),
        lambda: connect(source, unit="tags"),
    ):
        assert "`tags` is a column of type" in refusal(ask).message
    explained = db.sql("SELECT COUNT(x) AS n FROM t", epsilon=1).explain()
    assert "left out of `t`: `tags` is a column of type" in explained
    assert db.sql("SELECT COUNT(x) AS n FROM t", epsilon=1000).release().one()["n"] == 2


def test_half_floats_and_wide_decimals(tmp_path: Path) -> None:
    wide = pa.array([None, 5], pa.decimal256(60, 2))
    halves = pa.array(np.array([1.5, np.nan], np.float16))
    table = pa.table({"id": [1, 2], "h": halves, "d": pa.array([None, 5], pa.decimal256(20, 2)), "w": wide})
    frame = pd.DataFrame({"id": [1, 2], "h": np.array([1.5, np.nan], np.float16)})
    for source in (table, frame, pl.DataFrame({"id": [1, 2], "h": pl.Series([1.5, None], dtype=pl.Float16)})):
        db = connect(source)
        assert db.sql("SELECT COUNT(h) AS n FROM t", epsilon=1000).release().one()["n"] == 1
    db = connect(table)
    assert db.sql("SELECT COUNT(d) AS n FROM t", epsilon=1000).release().one()["n"] == 1
    assert [(one.name, one.of_type) for one in db.catalog.tables[0].unsupported] == [
        ("w", "decimal256(60, 2)")
    ]


def test_empty_frames() -> None:
    for empty in (pd.DataFrame(), pl.DataFrame(), pa.table({}), pd.DataFrame(index=[1, 2])):
        assert "no column that can be asked about" in refusal(lambda one=empty: connect(one)).message
    for rows in (
        pd.DataFrame({"id": [], "x": []}),
        pd.DataFrame({"id": pd.Series([], dtype="int64"), "x": pd.Series([], dtype=object)}),
        pl.DataFrame({"id": [], "x": []}, schema={"id": pl.Int64, "x": pl.String}),
        pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.string())}),
    ):
        db = connect(rows)
        assert db.sql("SELECT COUNT(*) AS n FROM t", epsilon=1000).release().one()["n"] == 0
        assert db.sql("SELECT COUNT(x) AS n FROM t", epsilon=1000).release().one()["n"] == 0


def test_values_that_are_none_of_their_type_are_not_called_texts() -> None:
    wide = pa.Array.from_buffers(
        pa.decimal128(3, 0), 1, [None, pa.array([2**60, 0], pa.int64()).buffers()[1]]
    )
    refused = refusal(lambda: connect(pa.table({"id": [1], "x": wide})))
    assert "column `x` of table `t` has a value that is none of its type, decimal128(3, 0)" in refused.message
    days = pa.Array.from_buffers(pa.date64(), 1, [None, pa.array([5], pa.int64()).buffers()[1]])
    connect(pa.table({"id": [1], "x": days}))  # five milliseconds into a day are that day


# -- far moments -------------------------------------------------------------------------------


def far_sources(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Return sources with a far moment, and the same without it."""
    found: dict[str, tuple[Any, Any]] = {}
    extremes = itertools.cycle(FAR)
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Japan"):
            of_type = pa.timestamp(unit, tz=zone)
            near = pa.array(
                [datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC if zone else None)] * 4, of_type
            )
            for far in itertools.islice(extremes, 2):
                both = pa.concat_arrays([near, moments(of_type, [far])])
                table = pa.table({"id": [1, 2, 3, 4, 5], "x": both})
                found[f"arrow {of_type} {far}"] = table, table[:4]
            if unit != "s":
                paths = folder / f"{unit}{zone}5.parquet", folder / f"{unit}{zone}4.parquet"
                for path, one in zip(paths, (table, table[:4]), strict=True):
                    parquet.write_table(one, path, version="2.6")
                found[f"parquet {of_type} {far}"] = paths
            if zone is None:
                paths = folder / f"{unit}5.duckdb", folder / f"{unit}4.duckdb"
                for path, one in zip(paths, (table, table[:4]), strict=True):
                    with duckdb.connect(str(path)) as connection:
                        connection.register("given", one)
                        connection.execute("CREATE TABLE t AS SELECT * FROM given")
                found[f"duckdb {of_type} {far}"] = paths
    frame = pd.DataFrame({"id": range(5), "x": np.array([0, 0, 0, 0, 2**62], dtype="datetime64[s]")})
    found["pandas seconds"] = frame, frame[:4]
    series = pl.Series([0, 0, 0, 0, 2**62]).cast(pl.Datetime("ms"))
    polars = pl.DataFrame({"id": range(5), "x": series})
    found["polars milliseconds"] = polars, polars[:4]
    return found


@pytest.mark.soak
def test_far_moments_are_null_and_the_engine_lives_on(tmp_path: Path) -> None:
    """False alarm below 1e-9: of so large an epsilon no count has noise, but for a chance below e^-1000."""
    text = """
        SELECT COUNT(*) AS n, COUNT(DISTINCT x) AS d, COUNT(CASE WHEN YEAR(x) > 2000 THEN 1 END) AS y,
            COUNT(CAST(x AS TEXT)) AS s, COUNT(CAST(x AS DATE)) AS t FROM t
    """
    for label, (with_far, without) in far_sources(tmp_path).items():
        there, absent = (
            connect(source).sql(text, epsilon=100_000, max_groups=5).release().one()
            for source in (with_far, without)
        )
        assert (absent["n"], there["n"]) == (4, 5), label
        assert all(0 <= there[name] - absent[name] <= 1 for name in "dyst"), label


def test_a_filter_does_not_compute_with_what_it_sets_aside(tmp_path: Path) -> None:
    """The engine computes with all values of a dictionary, where it thinks that a function cannot fail."""
    values = [1000, 2000, 1000, -(2**63) + 2]
    held = {"id": [1, 2, 3, 4], "y": [1, 1, 1, 0], "x": moments(pa.timestamp("us"), values)}
    days = pa.Array.from_buffers(
        pa.date32(), 4, [None, pa.array([1, 2, 1, -(2**31)], pa.int32()).buffers()[1]]
    )
    parquet.write_table(
        pa.table({**held, "d": days, "s": ["1", "2", "1", "290309-12-22 (BC)"]}), tmp_path / "t.parquet"
    )
    db = connect(tmp_path / "t.parquet")
    for value in ("x", "d", "CAST(d AS TIMESTAMP)", "CAST(s AS TIMESTAMP)", "CAST(s AS DATE)"):
        for test in ("y = 1", f"YEAR({value}) = 1970", f"{value} IS NOT NULL", f"{value} < '2000-01-01'"):
            asked = f"SELECT COUNT(LOWER(CAST({value} AS TEXT))) AS n FROM t WHERE {test}"
            assert db.sql(asked, epsilon=1000).release().one()["n"] == (0 if "s AS" in value else 3), asked


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_only_milliseconds_are_not_read_in_place(unit: str, tmp_path: Path) -> None:
    """The engine's reader converts them, and may fail; other files stay where they are."""
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": moments(pa.timestamp(unit), [0])}), path, version="2.6")
    assert bool(open_tables({"t": path})._objects) is (unit == "ms")  # type: ignore[attr-defined]


@pytest.mark.parametrize("unit", ["s", "us"])
def test_a_far_moment_can_be_the_unit(unit: str, tmp_path: Path) -> None:
    for values in ([0, 1000, *FAR], [0, 1000]):
        table = pa.table({"x": moments(pa.timestamp(unit), values)})
        path = tmp_path / f"{len(values)}.parquet"
        if unit == "us":
            parquet.write_table(table, path)
        for source in (table, path if unit == "us" else table):
            db = connect(source, unit="x")
            assert db.sql("SELECT COUNT(*) AS n FROM t", epsilon=1000).release().one()["n"] == 2


def test_an_engine_that_has_stopped_is_noticed_before_the_charge() -> None:
    public = {"places": pa.table({"place": [1, 2]})}
    db = connect(pa.table({"id": [1, 2], "x": [1, 2]}), public=public)
    db.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).release()
    spent = db.budget.spent
    source = db.backend._source  # type: ignore[attr-defined]
    far = pa.table({"x": moments(pa.timestamp("s"), [2**62])})
    with pytest.raises(duckdb.Error):  # what a value did to the engine, before
        cursor = source.cursor()
        cursor.register("far", far)
        cursor.execute("SELECT count(TRY_CAST(TRY_CAST(x AS TIMESTAMPTZ) AS TIMESTAMP)) FROM far").fetchall()
    for text in (
        "SELECT COUNT(*) FROM t",
        "SELECT place, COUNT(*) FROM t JOIN places ON x = place GROUP BY 1",
    ):
        with pytest.raises(EngineStopped) as stopped:
            db.sql(text, epsilon=1).release()
        assert stopped.value.code == "SF502" and "nothing was charged" in str(stopped.value)
    assert db.budget.spent == spent
    closed = connect(pa.table({"id": [1]}))
    closed.backend._source.close()  # type: ignore[attr-defined]
    with pytest.raises(EngineStopped):
        closed.sql("SELECT COUNT(*) FROM t", epsilon=1).release()


# -- time zones --------------------------------------------------------------------------------

ZONES = """
import json, sys, datetime
import duckdb, pandas as pd, polars as pl, pyarrow as pa, pyarrow.parquet as pq
import sfumato as sf
folder = sys.argv[1]
plain = [datetime.datetime(2024, 3, 31, 2, 30), datetime.datetime(2024, 10, 27, 2, 30)]
zoned = [one.replace(tzinfo=datetime.timezone.utc) for one in plain]
table = pa.table({
    "id": [1, 2], "p": pa.array(plain, pa.timestamp("us")),
    "z": pa.array(zoned, pa.timestamp("us", tz="UTC")),
    "n": pa.array(zoned, pa.timestamp("ns", tz="Asia/Tokyo")),
    "s": ["2024-03-31 02:30:00", "2024-10-27 02:30"],
    "o": ["2024-03-31 02:30:00+05", "2024-10-27 02:30:00-01:00"],
})
pq.write_table(table, f"{folder}/t.parquet")
pq.write_table(table, f"{folder}/m.parquet", coerce_timestamps="ms", allow_truncated_timestamps=True)
with duckdb.connect(f"{folder}/t.duckdb") as connection:
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("given", table)
    connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM given")
open(f"{folder}/t.csv", "w").write("id,p,z,n,s,o\\n" + "".join(
    f"{n},{p},{p}+00,{p}+00:00,{p},{o}\\n" for n, p, o in zip((1, 2), plain, table["o"].to_pylist())))
moment = sf.between(datetime.datetime(2000, 1, 1), datetime.datetime(2030, 1, 1))
sources = {"arrow": table, "parquet": f"{folder}/t.parquet", "milliseconds": f"{folder}/m.parquet",
           "pandas": table.to_pandas(), "polars": pl.from_arrow(table), "duckdb": f"{folder}/t.duckdb",
           "csv": f"{folder}/t.csv"}
found = {}
for label, source in sources.items():
    db = sf.connect(source, unit="id", name="t", budget=sf.Budget(epsilon=1e6, delta=1e-6), max_rows=1,
                    max_groups=1, columns={"p": moment, "z": moment, "n": moment} if label == "csv" else {})
    texts = [f"CAST({text} AS TIMESTAMP)" for text in ("s", "o", "CAST(z AS TEXT)")]
    for column in ("p", "z", "n", *texts):
        half = f"HOUR({column}) = 2 AND MINUTE({column}) = 30"
        first = f"{column} BETWEEN '2024-03-31 02:29:00' AND '2024-10-27 02:31:00'"
        found[f"{label} {column}"] = [
            db.sql(f"SELECT COUNT(*) AS n FROM t WHERE {test}", epsilon=1000).release().one()["n"]
            for test in (half, first)
        ]
    cursor = db.backend._source.cursor()
    assert cursor.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", *(pytest.param(z, marks=pytest.mark.soak) for z in ("UTC", "America/St_Johns"))]
)
def test_no_answer_depends_on_the_zone_of_the_machine(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both moments are half past two, in UTC; one of them does not exist in Berlin, the other does twice."""
    monkeypatch.setenv("TZ", zone)
    for label, counts in json.loads(said(ZONES, tmp_path)[0]).items():
        assert counts == [2, 2], label


# -- no value in what an error keeps --------------------------------------------------------------


def chain(error: BaseException) -> list[BaseException]:
    """Return an error and all that it keeps of others."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and one not in found:
            found.append(one)
            left += [one.__cause__, one.__context__]
    return found


def test_no_refusal_keeps_the_text_of_another_library(tmp_path: Path) -> None:
    secret = "secretsecret"
    broken = pa.StringArray.from_buffers(
        1, pa.array([0, 14], pa.int32()).buffers()[1], pa.py_buffer(b"\xff" + secret.encode() + b"\xff")
    )
    (tmp_path / "bad.parquet").write_bytes(secret.encode())
    (tmp_path / "bad.duckdb").write_bytes(secret.encode())
    (tmp_path / "bad.csv").write_bytes(b"id,x\n1,2,3,secretsecret\n")
    (tmp_path / "head.csv").write_bytes(b"id\xff,secretsecret\n1,2\n")
    (tmp_path / "bad.csv.gz").write_bytes(secret.encode())
    wide = pa.Array.from_buffers(
        pa.decimal128(3, 0), 1, [None, pa.array([2**60, 0], pa.int64()).buffers()[1]]
    )
    sources: list[Any] = [
        *sorted(tmp_path.iterdir()),
        tmp_path / "nowhere.parquet",
        pa.table({"id": [1], "x": broken}),
        pa.table({"id": [1], "x": wide}),
        pd.DataFrame({"id": [1, 2], "x": pd.Series([1, secret], dtype=object)}),
        pd.DataFrame({"id": [1], "x": pd.Series([2**70], dtype=object)}),
        pd.DataFrame({"id": [1], "x": pd.Series(["\ud800secretsecret"], dtype=object)}),
        pl.LazyFrame({"id": [1], "x": [secret]}).with_columns(pl.col("x").cast(pl.Int64)),
    ]
    for source in sources:
        with pytest.raises(SfumatoError) as refused:
            connect(source)
        assert len(chain(refused.value)) == 1, f"{source}: {chain(refused.value)}"
        assert secret not in str(refused.value)


def test_no_error_is_raised_while_another_is_handled() -> None:
    """An error that is raised in an `except` keeps the other in its context, `from None` or not."""
    for path in sorted((SOURCE / "backends").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                raised = [one for one in ast.walk(node) if isinstance(one, ast.Raise)]
                assert not raised, f"{path}:{raised[0].lineno}"
            if isinstance(node, ast.FunctionDef) and "contextmanager" in map(
                ast.unparse, node.decorator_list
            ):
                caught = [one for one in ast.walk(node) if isinstance(one, ast.Try) and one.handlers]
                said = (
                    f"{path}:{node.lineno}: what it raises after a `yield` has the caller's error as context"
                )
                assert not any(isinstance(part, ast.Yield) for one in caught for part in ast.walk(one)), said
