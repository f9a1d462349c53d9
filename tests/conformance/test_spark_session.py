"""Tables of a Spark session, classic and Connect: opening them, and questions from a frame to the answer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.backends.spark.source import SparkTables, open_source
from sfumato.catalog import Kind
from sfumato.errors import EngineFailure, EngineStopped, InvalidArgument, ProjectRefused, Unsupported
from sfumato.ledger import Ledger
from tests.backends.misstated import misstated
from tests.conformance.spark_session import Spark
from tests.soaked import rest_soaked

BUDGET = sf.Budget(epsilon=1000, delta=1e-6)
COUNT = "SELECT COUNT(*) AS n FROM visits"
SESSIONS = pytest.mark.parametrize("door", ["session", "remote"])
LEAN = pytest.mark.parametrize("door", [pytest.param("session", marks=pytest.mark.soak), "remote"])


@pytest.fixture(scope="module")
def clinic(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the tables of a small clinic, one of them a folder of files, and return the folder."""
    made = {
        "visits": "id, CAST(id % 500 AS INT) AS person, if(id % 4 = 0, 'north', 'south') AS region,"
        " CAST(id % 50 AS INT) AS cost FROM range(1000)",
        "people": "id AS who, 20 + id % 60 AS age FROM range(500)",
        "lines": "id AS visit, 5 AS price FROM range(1000)",
        "places": "* FROM VALUES ('north', 'Umea'), ('south', 'Lund') AS t(region, capital)",
    }
    for name, text in made.items():
        spark.session.sql(f"CREATE TABLE {name} USING parquet AS SELECT {text}")
    folder = tmp_path_factory.mktemp("odd é") / "a b,%20[x]=1"
    spark.session.table("visits").write.parquet(str(folder / "one"))
    return folder


def _sessions(spark: Spark, door: str) -> Any:
    return spark.session if door == "session" else spark.remote()


def _connect(source: Any, **more: Any) -> sf.Database:
    columns = {"region": sf.one_of("north", "south"), "cost": sf.between(0, 100)}
    given = {"unit": "person", "columns": columns, "budget": BUDGET, "max_groups": 3, "max_rows": 3, **more}
    given.setdefault("name", None if isinstance(source, dict | str) else "visits")
    return sf.connect(source, **given)


def _near(db: sf.Database, text: str) -> list[int]:
    release = db.sql(text, epsilon=100).release()
    return [round(float(value)) for value in release.to_arrow().column("n").to_pylist()]


@LEAN
def test_questions_are_answered_with_joins_public_tables_and_paths_to_the_unit(
    spark: Spark, clinic: Path, door: str
) -> None:
    """False alarm below 1e-9: the noise of the sum has a scale of 1, that of counts one of at most 0.25."""
    session = _sessions(spark, door)
    db = _connect(
        {name: session.table(name) for name in ("visits", "people", "lines")},
        unit={"visits": "person", "people": "who", "lines": "visit -> visits.id -> person"},
        protects="person",
        columns={
            "visits.region": sf.one_of("north", "south"),
            "people.age": sf.between(0, 100),
            "lines.price": sf.between(0, 10),
        },
        public={"places": session.table("places")},
    )
    asked = [
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY region", [250, 750]),
        ("SELECT MONTHNAME(DATE '2024-01-01') AS m, COUNT(*) AS n FROM visits GROUP BY 1", [1000]),
        (f"{COUNT} v JOIN people p ON v.person = p.who WHERE p.age < 50", [520]),
        ("SELECT SUM(price) AS n FROM lines", [5000]),
        (f"{COUNT} v JOIN places c ON v.region = c.region WHERE c.capital = 'Umea'", [250]),
    ]
    for text, expected in asked:
        found = _near(db, text)
        near = [abs(a - b) <= max(12, b // 125) for a, b in zip(found, expected, strict=True)]
        assert all(near), (text, found)
    exact = db.sql("SELECT capital FROM places ORDER BY capital").release()
    assert exact.to_arrow().column("capital").to_pylist() == ["Lund", "Umea"]
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"  # the user's own is as it was


@pytest.mark.soak
def test_a_project_file_names_a_spark_by_a_variable(
    spark: Spark, clinic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "sfumato.toml"
    file.write_text(
        'ledger = "l"\n[sources.lake]\nenvironment = "LAKE"\n[tables.visits]\nsource = "lake"\n'
        'table = "spark_catalog.default.visits"\nunit = "person"\nmax_groups = 1\nmax_rows = 2\n'
        "[budget]\nepsilon = 100\ndelta = 1e-6\n"
    )
    Ledger.open(tmp_path / "l").close()
    monkeypatch.setenv("LAKE", spark.address)
    assert abs(_near(sf.open(file), COUNT)[0] - 1000) < 20
    monkeypatch.setenv("LAKE", "sc://127.0.0.1:1/;token=secret")
    with pytest.raises(Exception, match="does not answer") as raised:
        sf.open(file)
    assert "secret" not in repr(raised.value) and raised.value.__context__ is None
    file.write_text(file.read_text().replace('environment = "LAKE"', 'address = "sc://h/;token=secret"'))
    with pytest.raises(ProjectRefused, match="no password") as raised:
        sf.open(file)
    assert "secret" not in repr(raised.value)


@LEAN
def test_columns_are_read_by_their_types(spark: Spark, door: str) -> None:
    session = _sessions(spark, door)
    session.sql("DROP TABLE IF EXISTS typed")
    session.sql(
        "CREATE TABLE typed (`Who``s` INT, n DECIMAL(10,2), m TIMESTAMP, z TIMESTAMP_NTZ, d DATE,"
        " c CHAR(5), v VARCHAR(5), u STRING COLLATE UNICODE, s STRING, b BINARY, l ARRAY<INT>, f FLOAT,"
        " i INTERVAL DAY, y BOOLEAN) USING parquet"
    )
    tables = open_source({"t": session.table("typed")})
    assert {one.name: one.kind for one in tables.fields("t")} == {
        "Who`s": Kind.INTEGER,
        "n": Kind.decimal(10, 2),
        "m": Kind.TIMESTAMP,
        "z": Kind.TIMESTAMP,
        "d": Kind.DATE,
        "v": Kind.TEXT,
        "s": Kind.TEXT,
        "f": Kind.FLOAT,
        "y": Kind.BOOLEAN,
    }
    assert {one.name for one in tables.left_out("t")} == {"c", "u", "b", "l", "i"}


def test_values_are_read_without_failing_and_moments_are_in_utc(spark: Spark) -> None:
    """The session's zone is not UTC; a text that is not UTF-8 is NULL."""
    frame = spark.session.sql(
        "SELECT TIMESTAMP_LTZ '2024-01-01 05:30:00 Asia/Kolkata' AS m, CAST(X'61FF' AS STRING) AS s, 1 AS Big"
    )
    tables = open_source({"t": frame})
    with tables.reading() as cursor:
        [row] = cursor.execute(f"SELECT CAST(m AS STRING), s, `Big` FROM {tables.stored('t')}").fetchall()
    assert row == ("2024-01-01 00:00:00", None, 1)


MOVING: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rand": (lambda frame: frame.selectExpr("*", "rand(7) AS r"), "chance"),
    "uuid": (lambda frame: frame.selectExpr("*", "uuid() AS r"), "chance"),
    "file": (lambda frame: frame.selectExpr("*", "input_file_name() AS r"), "chance"),
    "place": (lambda frame: frame.selectExpr("*", "monotonically_increasing_id() AS r"), "chance"),
    "inner": (lambda frame: frame.where("cost > (SELECT count(*) FROM range(9) WHERE rand() > 0.5)"), "agg"),
    "now": (lambda frame: frame.selectExpr("*", "now() AS r"), "`now`|`current_timestamp`"),
    "today": (lambda frame: frame.where("current_date() > DATE '2020-01-01'"), "`current_date`"),
    "sample": (lambda frame: frame.sample(0.5, seed=7), "a sample"),
    "limit": (lambda frame: frame.orderBy("cost").limit(5), "a limit"),
    "first": (lambda frame: frame.groupBy("person").agg({"cost": "first"}), "an aggregate"),
    "window": (lambda frame: frame.selectExpr("*", "row_number() OVER (ORDER BY cost) AS r"), "a window"),
    "duplicates": (lambda frame: frame.dropDuplicates(["person"]), "dropDuplicates"),
    "python": (lambda frame: frame.mapInArrow(lambda batches: batches, "person long"), "MapInArrow"),
    "stream": (lambda frame: frame.sparkSession.readStream.format("rate").load(), "a stream"),
    "fails": (lambda frame: frame.where("isnull(raise_error(region))"), "chance|cannot be read"),
    "casts": (lambda frame: frame.selectExpr("person", "CAST(region AS INT) AS r"), "cannot be read"),
}


@LEAN
@pytest.mark.filterwarnings("ignore:PySpark does not")
def test_frames_that_may_have_other_rows_each_time_are_refused_by_name(
    spark: Spark, clinic: Path, door: str, capfd: pytest.CaptureFixture[str]
) -> None:
    session = _sessions(spark, door)
    session.conf.set("spark.sql.ansi.enabled", "true")
    try:
        for change, match in MOVING.values():
            with pytest.raises(InvalidArgument, match=match) as raised:
                open_source({"visits": change(session.table("visits"))})
            assert raised.value.__context__ is None
    finally:
        session.conf.set("spark.sql.ansi.enabled", "false")
    assert "north" not in "".join(capfd.readouterr())  # neither does pyspark's own log show a value


@pytest.mark.soak
@SESSIONS
def test_frames_of_rows_are_the_same_version_whoever_opens_them(
    spark: Spark, clinic: Path, door: str
) -> None:
    """Filters, columns, unions, rows in memory: cached or not, here or in another session."""
    session = _sessions(spark, door)
    frame = session.table("visits")
    for changed in (
        frame,
        frame.where("cost > 3").selectExpr("person", "cost + 1 AS cost"),
        frame.union(frame),
        session.createDataFrame([(1, "a"), (2, None)], ["person", "s"]),
    ):
        first = open_source({"t": changed})
        assert first.version() == first.version() == open_source({"t": changed}).version()
    frame.cache().count()
    try:
        assert open_source({"t": frame}).identities("t") == open_source(
            {"t": spark.session.table("visits")}
        ).identities("t")
        assert open_source({"t": frame}).version() == open_source({"t": frame}).version()
        with pytest.raises(InvalidArgument, match="cached"):
            open_source({"t": frame.union(frame)})
    finally:
        frame.unpersist()


def test_files_that_change_are_noticed_before_the_charge(spark: Spark, clinic: Path, tmp_path: Path) -> None:
    folder = tmp_path / "odd é,%20"
    shutil.copytree(clinic / "one", folder / "k=1")
    db = _connect(spark.session.read.parquet(str(folder / "k=1")), ledger=tmp_path / "l")
    assert abs(_near(db, COUNT)[0] - 1000) < 20
    assert f"path {folder.resolve()}" in _identities(db)
    spent = len(db.ledger.history())
    first = next((folder / "k=1").glob("*.parquet"))
    first.rename(first.with_suffix(".gone"))
    with pytest.raises(InvalidArgument, match="changed since it was opened") as raised:
        db.sql(COUNT, epsilon=1).release()
    assert raised.value.__context__ is None and len(db.ledger.history()) == spent


def test_files_that_change_while_a_question_reads_are_noticed(
    spark: Spark, clinic: Path, tmp_path: Path
) -> None:
    shutil.copytree(clinic / "one", tmp_path / "one")
    db = _connect(
        spark.session.read.parquet(str(tmp_path / "one")), ledger=tmp_path / "l", partition="region"
    )
    tables: SparkTables = db.backend._tables  # type: ignore[attr-defined]
    db.backend.data_version()
    with pytest.raises(Exception, match=r"does not exist|changed since it was opened"), tables.reading():
        next(one for one in (tmp_path / "one").glob("part-0*")).rename(tmp_path / "one" / "part-8.parquet")
    tables._files["visits"] = ()  # as of a table that says nothing of its files
    with pytest.raises(InvalidArgument, match="no files that tell"):
        db.backend.data_version()


@pytest.mark.soak
@pytest.mark.parametrize("act", ["in place", "replaced", "linked"])
def test_a_file_of_the_same_size_and_time_is_another_version_for_spark(
    spark: Spark, tmp_path: Path, act: str
) -> None:
    """Copies keep times, and Spark says no more of a file than its path, size and time."""
    paths = [tmp_path / name / "rows.parquet" for name in ("one", "two")]
    for path, cost in zip(paths, (1, 2), strict=True):
        path.parent.mkdir()
        pq.write_table(pa.table({"person": list(range(50)), "cost": [cost] * 50}), path)
        os.utime(path, (1e9, 1e9))
    assert paths[0].stat().st_size == paths[1].stat().st_size
    opened = paths[0]
    if act == "linked":
        (opened := tmp_path / "rows.parquet").symlink_to(paths[0])
    first = open_source({"t": spark.session.read.parquet(str(opened))})
    version = first.version()
    if act == "in place":
        opened.write_bytes(paths[1].read_bytes())
        os.utime(opened, (1e9, 1e9))
    elif act == "replaced":
        paths[1].replace(opened)
    else:
        opened.unlink()
        opened.symlink_to(paths[1])
    with pytest.raises(InvalidArgument, match="changed since it was opened"):
        first.version()
    assert open_source({"t": spark.session.read.parquet(str(opened))}).version() != version


def _identities(db: sf.Database) -> tuple[str, ...]:
    tables: SparkTables = db.backend._tables  # type: ignore[attr-defined]
    return tables.identities("visits")


@LEAN
def test_functions_and_views_of_the_session_hide_nothing(spark: Spark, clinic: Path, door: str) -> None:
    session = _sessions(spark, door).newSession()
    session.sql("CREATE OR REPLACE FUNCTION try_validate_utf8(x STRING) RETURNS STRING RETURN 'hidden'")
    session.sql("SELECT 1 AS person, 'north' AS region, 1 AS cost").createOrReplaceTempView("stored")
    session.conf.set("spark.sql.decimalOperations.allowPrecisionLoss", "true")
    db = _connect(session.table("visits"))
    assert abs(_near(db, f"{COUNT} WHERE region = 'north'")[0] - 250) < 12
    session.udf.register("CEIL", lambda x: 7)
    with pytest.raises(InvalidArgument, match="`ceil`, which hides"):
        open_source({"visits": session.table("visits")})


@LEAN
@pytest.mark.parametrize("of", rest_soaked(["csv", "json"], 2))
def test_a_text_that_is_no_value_fails_as_files_are_opened_not_after_a_charge(
    spark: Spark, door: str, of: str, tmp_path: Path
) -> None:
    """FAILFAST fails on one person's value, and only where its column is asked about."""
    session = _sessions(spark, door)
    row = '{{"person": {0}, "region": "north", "cost": {1}}}' if of == "json" else "{0},north,{1}"
    reader = session.read.schema("person INT, region STRING, cost INT").option("mode", "FAILFAST")
    for name, last in (("good", 1), ("bad", '"none"')):
        (tmp_path / name).write_text("\n".join(row.format(person, 1) for person in range(50)))
        with (tmp_path / name).open("a") as file:
            file.write("\n" + row.format(50, last))
    good = reader.format(of).load(str(tmp_path / "good"))
    assert abs(_near(_connect(good), f"{COUNT} WHERE cost = 1")[0] - 51) < 12
    session.sql(f"CREATE TABLE {door}_{of} (person INT, region STRING, cost INT) USING {of}"
                f" OPTIONS (path '{tmp_path / 'bad'}', mode 'FAILFAST')")  # fmt: skip
    for frame in (reader.format(of).load(str(tmp_path / "bad")), session.table(f"{door}_{of}")):
        with pytest.raises(InvalidArgument, match="cannot be read"):
            _connect(frame)


@LEAN
def test_a_decimal_of_too_many_digits_fails_as_files_are_opened_not_after_a_charge(
    spark: Spark, tmp_path: Path, door: str
) -> None:
    session = _sessions(spark, door)
    for far in (False, True):
        path = misstated(tmp_path / f"{far}.parquet", "as many bytes", far=far)
        frame = session.read.parquet(str(path))
        if far:
            with pytest.raises(InvalidArgument, match="cannot be read") as refused:
                sf.connect(frame, unit="id", name="t", budget=BUDGET)
            assert "9999" not in str(refused.value)
        else:
            sf.connect(frame, unit="id", name="t", budget=BUDGET)


@pytest.mark.soak
@LEAN
def test_neither_a_path_nor_reserved_words_of_the_session_change_an_answer(
    spark: Spark, clinic: Path, door: str
) -> None:
    """A session may look for functions and tables in a schema of its own first, before Spark's and views."""
    session = _sessions(spark, door).newSession()
    session.sql("CREATE SCHEMA IF NOT EXISTS before")
    session.sql("CREATE OR REPLACE FUNCTION before.coalesce(x BIGINT, y INT) RETURNS BIGINT RETURN 77L")
    session.conf.set("spark.sql.path.enabled", "true")
    session.sql("SET PATH = spark_catalog.before, spark_catalog.default, system.builtin, system.session")
    assert session.sql("SELECT coalesce(1L, 2)").collect() == [(77,)]
    db = _connect(session.table("visits"))
    assert abs(_near(db, f"{COUNT} WHERE region = 'north'")[0] - 250) < 12
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.ansi.enforceReservedKeywords", "true")
    db = _connect(session.table("visits"))
    assert abs(_near(db, f"{COUNT} WHERE region = 'north'")[0] - 250) < 12


def test_what_needs_rows_or_memory_or_two_sessions_is_refused(spark: Spark, clinic: Path) -> None:
    frame = spark.session.table("visits")
    with pytest.raises(InvalidArgument, match="`memory` is not for Spark"):
        _connect(frame, memory="1GB")
    with pytest.raises(InvalidArgument, match="not all of one Spark session"):
        open_source({"a": frame, "b": spark.remote().table("visits")})
    db = _connect(frame)
    for asked in (db.backend.row_hash, lambda: db.backend.parts("visits")):
        with pytest.raises(Unsupported, match="Spark"):
            asked()


@LEAN
def test_what_fails_in_the_engine_after_the_charge_says_nothing(
    spark: Spark, clinic: Path, door: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A statement that fails on a value: one failure, without the value, charged; the next is answered."""
    db = _connect(_sessions(spark, door).table("visits"))
    tables: SparkTables = db.backend._tables  # type: ignore[attr-defined]
    failing = (
        "(SELECT id, person, region, CAST(concat(region, cost) AS INT) AS cost"
        f" FROM {tables._views['visits']}) AS stored"
    )
    with monkeypatch.context() as patch:
        patch.setitem(tables._stored, "visits", failing)
        with pytest.raises(EngineFailure) as raised:
            db.sql("SELECT SUM(cost) AS n FROM visits", epsilon=1).release()
    assert raised.value.__context__ is None and len(db.ledger.history()) == 1
    assert "north" not in str(raised.value) + "".join(capfd.readouterr())
    assert abs(_near(db, COUNT)[0] - 1000) < 20
    tables.close()
    with pytest.raises(EngineStopped):
        db.sql("SELECT SUM(cost) AS n FROM visits", epsilon=1).release()
    assert len(db.ledger.history()) == 2


@pytest.mark.soak
def test_a_table_behind_jdbc_is_public_alone(spark: Spark, clinic: Path, tmp_path: Path) -> None:
    """It may be a view there. Rows that are units are not joined with it: it may change."""
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    statement = spark.context._jvm.java.sql.DriverManager.getConnection(url).createStatement()
    statement.execute('CREATE TABLE "places" ("region" VARCHAR(9), "capital" VARCHAR(9))')
    statement.execute("""INSERT INTO "places" VALUES ('north', 'Umea')""")
    places = spark.session.read.format("jdbc").option("url", url).option("dbtable", '"places"').load()
    with pytest.raises(InvalidArgument, match="a view or a query elsewhere"):
        _connect(places, unit="capital", columns=None)
    frames = {"visits": spark.session.table("visits")}
    db = _connect(frames, public={"places": places}, ledger=tmp_path / "one")
    assert not db.backend._tables._plans["places"].plain  # type: ignore[attr-defined]
    rows = _connect(frames, unit=None, public={"places": places}, ledger=tmp_path / "two")
    with pytest.raises(InvalidArgument, match="no files that tell when it changes"):
        rows.sql("SELECT COUNT(*) AS n FROM visits JOIN places USING (region)", epsilon=1).release()
    assert not rows.ledger.history()
