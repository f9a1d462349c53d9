"""Private frames of Spark: each of their rows is made from one stored row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import sfumato as sf
from sfumato.backends.spark import private_frames
from sfumato.backends.spark.frames import read_plan
from sfumato.backends.spark.private_frames import check_rows
from sfumato.backends.spark.sessions import cloned, pin, quiet, take_over
from sfumato.backends.spark.source import open_source
from sfumato.errors import InvalidArgument
from tests.conformance.spark_session import Spark
from tests.soaked import rest_soaked

TABLES = re.compile(r"\b(visits|others|seen|lonely|placed)\b")

MIXED = {  # each row of the answer may say something of person 999
    "a join": "SELECT a.* FROM visits a JOIN visits b ON b.person = 999",
    "a join on the person": "SELECT a.* FROM visits a JOIN visits b ON a.person = b.person",
    "a semi join": "SELECT a.* FROM visits a LEFT SEMI JOIN visits b ON b.person = 999",
    "an anti join": "SELECT a.* FROM visits a LEFT ANTI JOIN visits b ON b.person = 999",
    "a comma": "SELECT a.* FROM visits a, visits b",
    "a natural join": "SELECT * FROM visits NATURAL JOIN others",
    "a lateral join": "SELECT a.* FROM visits a, LATERAL (SELECT a.person + 1 AS next)",
    "a lateral function": "SELECT person, x FROM visits, LATERAL explode(array(1, 2)) AS t(x)",
    "EXISTS": "SELECT * FROM visits WHERE EXISTS (SELECT 1 FROM visits WHERE person = 999)",
    "NOT EXISTS": "SELECT * FROM visits WHERE NOT EXISTS (SELECT 1 FROM visits WHERE person = 999)",
    "of another table": "SELECT * FROM visits WHERE NOT EXISTS (SELECT 1 FROM others WHERE person = 999)",
    "IN": "SELECT * FROM visits WHERE 999 IN (SELECT person FROM visits)",
    "NOT IN": "SELECT * FROM visits WHERE 999 NOT IN (SELECT person FROM visits)",
    "a scalar": "SELECT *, (SELECT max(person) FROM visits) AS top FROM visits",
    "a scalar of a row": "SELECT *, (SELECT first(x) FROM VALUES (1) AS t(x)) AS one FROM visits",
    "EXCEPT": "SELECT cost FROM visits EXCEPT SELECT cost FROM visits WHERE person = 999",
    "EXCEPT ALL": "SELECT cost FROM visits EXCEPT ALL SELECT cost FROM visits WHERE person = 999",
    "INTERSECT": "SELECT cost FROM visits INTERSECT SELECT cost FROM visits WHERE person = 999",
    "DISTINCT": "SELECT DISTINCT cost FROM visits",
    "UNION": "SELECT cost FROM visits UNION SELECT cost FROM visits",
    "in a common table expression": "WITH a AS (SELECT DISTINCT person FROM visits) SELECT * FROM a",
    "in a union": "SELECT person FROM visits UNION ALL SELECT max(person) FROM visits",
    "below": "SELECT * FROM (SELECT person FROM visits WHERE person IN (SELECT person FROM others))",
    "in a view": "SELECT * FROM lonely",
    "a number of rows": "SELECT person, _metadata.row_index AS place FROM visits",
    "a name of a file": "SELECT person, _metadata.file_name AS place FROM visits",
    "a path": "SELECT person, _metadata.file_path AS place FROM visits",
    "a size": "SELECT person, _metadata.file_size AS place FROM visits",
    "a time": "SELECT person, _metadata.file_modification_time AS place FROM visits",
    "all of it": "SELECT person, to_json(_metadata) AS place FROM visits",
    "as a condition": "SELECT person FROM visits WHERE _metadata.file_size < 2000",
    "a block": "SELECT person, _metadata.file_block_length AS place FROM visits",
    "an order": "SELECT person FROM visits ORDER BY _metadata.row_index",
    "a number of rows by a name": "SELECT * FROM placed UNION ALL SELECT * FROM placed",
    "a number of a task": "SELECT person, spark_partition_id() AS place FROM visits",
    "a larger number": "SELECT person, monotonically_increasing_id() AS place FROM visits",
    "the file": "SELECT person, input_file_name() AS place FROM visits",
    "chance": "SELECT person, rand(7) AS place FROM visits",
    "a session": "SELECT person, current_user() AS place FROM visits",
    "a version": "SELECT person, version() AS place FROM visits",
    "a class": "SELECT person, reflect('java.lang.System', 'lineSeparator') AS place FROM visits",
    "unpivoted": "SELECT * FROM visits UNPIVOT (v FOR k IN (cost))",
    "aggregated": "SELECT person, count(*) AS n FROM visits GROUP BY person",
    "ranked": "SELECT person, row_number() OVER (ORDER BY cost) AS place FROM visits",
    "limited": "SELECT person FROM visits ORDER BY cost LIMIT 3",
    "sampled": "SELECT person FROM visits TABLESAMPLE (50 PERCENT) REPEATABLE (7)",
    "recursive": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
}
HIDDEN = {  # names and texts that imitate a plan
    "an alias of several lines": "SELECT cost AS `x#1]\n+- Project [y` FROM visits JOIN seen USING (person)",
    "a heading": "SELECT a.person, '\n\n== Optimized Logical Plan ==\n' AS t FROM visits a JOIN visits b",
    "another heading": "SELECT a.person, '\n== Analyzed Logical Plan ==\none: int\nProject [x]' AS t"
    " FROM visits a JOIN visits b ON b.person = 999",
    "a relation": "SELECT a.person, '] parquet' AS t FROM visits a JOIN visits b ON b.person = 999",
    "a column": "SELECT `] x` FROM (SELECT *, 1 IN (SELECT person FROM seen) AS `] x` FROM visits)",
}
NAMED = {
    "a number of rows by a name": "`_metadata`",
    "a join": "a join",
    "NOT EXISTS": "a subquery",
    "UNION": "`Distinct`",
    "a version": "`version(",
}
BY_ROW = {
    "all": "SELECT * FROM visits",
    "columns": "SELECT person AS who, CAST(cost AS DOUBLE) AS cost, upper(region) AS r FROM visits",
    "a condition": "SELECT * FROM visits WHERE cost > 3 AND region LIKE 'n%' AND cost IN (4, 5, 6, 7, 8, 9)",
    "functions": "SELECT person, CASE WHEN cost > 2 THEN 'a' ELSE 'b' END AS a, coalesce(region, 'x') AS b,"
    " nvl(region, 'y') AS c, if(cost > 1, 1, 2) AS d, round(cost / 3, 2) AS e, floor(cost) AS f, -cost AS g,"
    " region || '!' AS h, substring(region, 1, 2) AS i, cost BETWEEN 1 AND 2 AS k, cost <=> 3 AS v,"
    " DATE '2024-02-03' + INTERVAL 3 DAYS AS l, try_cast(region AS INT) AS m, region RLIKE 'n.*' AS n,"
    " struct(cost, person).cost AS o, array(cost, 2)[0] AS p, year(DATE '2024-02-03') AS j,"
    " date_trunc('month', TIMESTAMP_NTZ '2024-02-03') AS q, hash(person) AS s, nullif(cost, 3) AS t,"
    " concat_ws(',', region, 'z') AS r, cost % 3 AS u, CAST(cost AS DECIMAL(9, 2)) * 2.5 AS w,"
    " greatest(cost, 4) AS x, regexp_replace(region, 'o', 'u') AS y, from_json('{}', 'a INT').a AS z"
    " FROM visits",
    "two tables": "SELECT person, cost FROM visits UNION ALL SELECT person, 0 FROM others",
    "a common table expression": "WITH a AS (SELECT person, cost FROM visits) SELECT * FROM a WHERE cost > 1",
    "several rows of one": "SELECT person, explode(array(cost, 7)) AS cost FROM visits",
    "in an order": "SELECT /*+ REPARTITION(3) */ * FROM visits ORDER BY cost",
    "a view": "SELECT * FROM seen",
    "a text that is padded": "SELECT person, trim(region) AS r FROM others",
    "nested": "SELECT a FROM (SELECT person AS a, cost AS b FROM visits) WHERE b > 1",
    "a text of several lines": "SELECT person, 'a\n+- Project [x]' AS t FROM visits",
}


@pytest.fixture(scope="module")
def clinic(spark: Spark) -> Iterator[None]:
    """Two schemas, `with_` and `without` person 999, whose other rows are alike."""
    session = spark.session
    people = "id % 60 AS person, if(id % 4 = 0, 'north', 'south') AS region, id % 12 AS cost FROM range(120)"
    for schema, more in (("with_", " UNION ALL SELECT 999, 'north', 3"), ("without", "")):
        for text in (
            f"CREATE SCHEMA {schema}",
            f"CREATE TABLE visits USING parquet AS SELECT /*+ COALESCE(1) */ * FROM (SELECT {people}{more})",
            "CREATE TABLE others (person BIGINT, region CHAR(9), cost BIGINT) USING parquet",
            "INSERT INTO others SELECT /*+ COALESCE(1) */ * FROM visits",
            "CREATE VIEW seen AS SELECT person, upper(region) AS region FROM visits",
            "CREATE TABLE placed USING parquet AS SELECT person FROM visits",
            "ALTER TABLE placed ADD COLUMNS (_tmp_metadata_row_index BIGINT)",
            f"CREATE VIEW lonely AS {MIXED['NOT EXISTS']}",
        ):
            _frame(session, schema, text)
    yield
    for schema in ("with_", "without"):
        session.sql(f"DROP SCHEMA {schema} CASCADE")


def _frame(session: Any, schema: str, text: str) -> Any:
    return session.sql(TABLES.sub(rf"{schema}.\1", text))


def _rows(frames: dict[str, Any], kinds: Any) -> dict[str, list[str]]:
    """Return the rows of open frames that are not of person 999."""
    tables = open_source(frames, kinds=kinds)
    with tables.reading() as cursor:
        every = {name: cursor.execute(f"SELECT * FROM {tables.stored(name)}").fetchall() for name in frames}
    return {name: sorted(repr(row) for row in rows if 999 not in row) for name, rows in every.items()}


def _depending(session: Any, texts: dict[str, str]) -> set[str]:
    """Return which private frames have other rows of other people where person 999 has none."""
    kinds: dict[str, Any] = {name: {} for name in texts}
    with_, without = (
        _rows({name: _frame(session, schema, text) for name, text in texts.items()}, kinds)
        for schema in ("with_", "without")
    )
    return {name for name in texts if with_[name] != without[name]}


@pytest.mark.parametrize(
    ("door", "every"),
    [("remote", 6), *(pytest.param(door, 1, marks=pytest.mark.soak) for door in ("session", "remote"))],
)
def test_private_frames_that_say_more_than_one_row_are_refused_and_others_are_not(
    spark: Spark, clinic: None, door: str, every: int
) -> None:
    """A public frame may join, and ask for what is there."""
    session = spark.session if door == "session" else spark.remote()
    every_text = MIXED | HIDDEN | BY_ROW
    asked = {*list(every_text)[::every], *NAMED, "functions", "a heading"}
    texts = {name: text for name, text in every_text.items() if name in asked}
    own = cloned(session)
    with quiet():
        for view, text in enumerate(texts.values()):
            take_over(own, _frame(session, "with_", text), f"v{view}")
        pin(own)

    def refusal(name: str, *, private: bool) -> str:
        try:
            with quiet():
                read_plan(own, f"v{list(texts).index(name)}", "t", private=private)
        except InvalidArgument as refused:
            assert "saveAsTable" in refused.hints[-1]
            return refused.message
        return ""

    refused = {name: refusal(name, private=True) for name in texts}
    assert {name for name, said in refused.items() if said} == texts.keys() - BY_ROW.keys()
    for name, named in NAMED.items():
        assert named in refused[name]
    assert not any(refusal(name, private=False) for name in ("a join", "NOT EXISTS", "UNION"))


@pytest.mark.soak
@pytest.mark.parametrize("door", ["session", "remote"])
def test_private_frames_have_the_same_rows_of_other_people(spark: Spark, clinic: None, door: str) -> None:
    session = spark.session if door == "session" else spark.remote()
    assert _depending(session, BY_ROW) == set()


@pytest.mark.soak
@pytest.mark.parametrize("planted", rest_soaked(["a join", "NOT EXISTS", "EXCEPT"], 3))
def test_frames_that_mix_people_are_seen_where_the_list_is_too_long(
    spark: Spark, clinic: None, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    monkeypatch.setattr(private_frames, "_JOINS", set())
    monkeypatch.setattr(private_frames, "_BY_ROW", private_frames._BY_ROW | {"Join", "Except"})
    monkeypatch.setattr(private_frames, "_READS_MORE", {})
    assert _depending(spark.session, {"bad": MIXED[planted], "good": BY_ROW["nested"]}) == {"bad"}


def test_what_a_session_hides_in_plans_is_read(spark: Spark, clinic: None) -> None:
    """A session may leave texts out of its plans: also the names of functions that are refused."""
    session = spark.session.newSession()
    session.conf.set("spark.sql.redaction.string.regex", r"current_user\(\)|exists#")
    for text in (
        "SELECT person, current_date() AS d FROM visits",
        "SELECT *, current_user() AS u FROM visits",
    ):
        frame = _frame(session, "with_", text)
        with pytest.raises(InvalidArgument, match="depends on `current_"):
            open_source({"t": frame})


@pytest.mark.soak
@pytest.mark.parametrize("many", ["two tables", "several rows of one"])
def test_rows_that_are_units_are_not_copied(spark: Spark, clinic: None, many: str) -> None:
    """One person's row would be two."""

    def connect(text: str) -> sf.Database:
        frame = _frame(spark.remote(), "with_", text)
        return sf.connect(frame, name="t", unit=None, budget=sf.Budget(epsilon=1))

    with pytest.raises(InvalidArgument, match="each row is a unit") as raised:
        connect(BY_ROW[many])
    assert "column" in raised.value.hints[0]
    assert connect(BY_ROW["nested"])


@pytest.mark.soak
def test_rows_of_an_rdd_are_those_that_a_program_holds(spark: Spark, clinic: None) -> None:
    """An RDD may read tables by a plan that nobody sees."""
    session = spark.session
    lonely = _frame(session, "with_", MIXED["NOT EXISTS"])
    for hidden in (session.createDataFrame(lonely.rdd, lonely.schema), lonely.localCheckpoint(eager=False)):
        with pytest.raises(InvalidArgument, match="an RDD that reads tables or files"):
            open_source({"t": hidden.select("person")}, kinds={"t": {}})
    for held in (session.createDataFrame([(1, "a")], "person INT, s STRING"), lonely.localCheckpoint()):
        assert open_source({"t": held}, kinds={"t": {}}).fields("t")


def test_numbers_of_a_range_are_rows_that_a_program_holds(spark: Spark) -> None:
    """However many tasks make them; what only looks like a range is read as everything is."""
    for numbers in (spark.session.range(3), spark.remote().range(0, 3, 1, 5).selectExpr("-id AS id")):
        assert open_source({"t": numbers}, kinds={"t": {}}).fields("t")
    written = "(-9, 30, step=-1, splits=Some(2))"
    check_rows("t", [("Project", " [id#1L]"), ("Range", f" {written}"), ("Range", " (0, 3, step=1)")])
    for node, after in (
        ("Project", f" [{written} AS x#2]"),
        ("Range", f" {written} [shown(id#1L)]"),
        ("Range", " (0, 30, step=1, splits=Some(shown(2)))"),
    ):
        with pytest.raises(InvalidArgument, match="not known to be a function of one row"):
            check_rows("t", [(node, after)])


def test_listed_functions_are_functions_of_their_arguments(spark: Spark) -> None:
    """No aggregate, window function or generator of chance is listed."""
    registry = spark.session._jsparkSession.sessionState().functionRegistry()
    java = spark.context._jvm
    built_in = java.scala.Some("builtin"), java.scala.Some("system")
    known = {row[0] for row in spark.session.sql("SHOW SYSTEM FUNCTIONS").collect()}
    groups = {}
    for name in private_frames._FUNCTIONS & known:
        found = registry.lookupFunction(
            java.org.apache.spark.sql.catalyst.FunctionIdentifier(name, *built_in)
        )
        groups[name] = found.get().getGroup() if found.isDefined() else "built into SQL"
    assert {name for name, group in groups.items() if group not in GROUPS} == set()
    moving = {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "aes_encrypt"}
    assert not private_frames._FUNCTIONS & moving
    assert private_frames._FUNCTIONS - known == {
        *("extractansiintervaldays", "likeall", "likeany", "notlikeall", "notlikeany"),
        *("timestampadd", "timestampdiff", "try_cast", "varchar"),
    }


GROUPS = {
    *(
        "array_funcs",
        "bitwise_funcs",
        "collection_funcs",
        "conditional_funcs",
        "conversion_funcs",
        "datetime_funcs",
    ),
    *("generator_funcs", "hash_funcs", "json_funcs", "map_funcs", "math_funcs", "predicate_funcs"),
    *("string_funcs", "struct_funcs", "url_funcs", "misc_funcs", "built into SQL"),
}
