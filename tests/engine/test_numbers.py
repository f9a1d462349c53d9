"""Decimals, wide integers and odd numbers through every door: exact answers, or typed refusals."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, QueryRefused

PRECISE = 1e6
BUDGET = sf.Budget(epsilon=1e9, delta=1e-6, rule="pure")
ROWS = """
    SELECT i AS person, (i % 11 / 100)::DECIMAL(15, 2) AS discount, (i % 50)::DECIMAL(15, 2) AS quantity,
           (900 + i % 7)::DECIMAL(15, 2) AS price, 18446744073709551600::UBIGINT + (i % 3)::UBIGINT AS wide,
           170141183460469231731687303715884105700::HUGEINT + i % 2 AS widest, (i % 5 / 10)::FLOAT AS single,
           i * 1e-303 AS tiny
    FROM range(3000) AS r(i)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("numbers") / "items.duckdb"
    with duckdb.connect(str(found)) as connection:
        connection.execute(f"CREATE TABLE items AS {ROWS}")
    return found


def opened(path: Path, **more: Any) -> sf.Database:
    return sf.connect(
        str(path), name="items", unit="person", max_rows=1, max_groups=1, budget=BUDGET,
        columns={"discount": sf.between(0, 1), "price": sf.between(0, 1000)}
        | {"tiny": sf.between(1e-300, 3e-300)} | more.pop("columns", {}),
        **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def db(path: Path) -> sf.Database:
    return opened(path)


def plain(path: Path, text: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(text).fetchall()


def test_the_sixth_query_of_tpch(db: sf.Database, path: Path) -> None:
    """In doubles 0.06 + 0.01 is below 0.07, and a third of the rows is lost."""
    text = """
        SELECT COUNT(*) AS n, SUM(price * discount) AS revenue FROM items
        WHERE discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND quantity < 24
    """
    ((count, revenue),) = db.sql(text, epsilon=PRECISE).release().rows
    ((n, exact),) = plain(path, text)
    assert count == n and revenue == pytest.approx(float(exact), rel=1e-5)


def test_decimal_keys_come_out_as_decimals(db: sf.Database, path: Path) -> None:
    text = (
        "SELECT discount, COUNT(*) AS n FROM items GROUP BY discount HAVING discount > 0.05 ORDER BY discount"
    )
    release = db.sql(text, epsilon=PRECISE).release()
    assert list(release.rows) == plain(path, text) and release.types == ("DECIMAL(15,2)", "BIGINT")
    assert sf.Release.from_json(release.to_json()).rows == release.rows
    assert release.to_pandas()["discount"].tolist() == [row[0] for row in release.rows]
    assert release.to_polars()["discount"].to_list() == [row[0] for row in release.rows]
    assert "0.06" in str(release) and Decimal("0.06") in release.to_arrow().column("discount").to_pylist()


@pytest.mark.parametrize(
    "key", ["THEN 0.5 ELSE 1e0", "THEN 0.1 ELSE 1e-1", "THEN 0.5 ELSE 1", "THEN 1 ELSE 99999999999999999999"]
)
def test_keys_that_the_question_lists(db: sf.Database, path: Path, key: str) -> None:
    text = f"SELECT CASE WHEN discount = 0.07 {key} END AS k, COUNT(*) AS n FROM items GROUP BY 1"
    assert dict(db.sql(text, epsilon=PRECISE).release().rows) == dict(plain(path, text))


def test_declared_decimals_are_read_as_they_are_printed(path: Path) -> None:
    declared = sf.one_of(0.05, 0.06, Decimal("0.5"))
    known = opened(path, columns={"discount": declared})
    release = known.sql("SELECT discount, COUNT(*) AS n FROM items GROUP BY 1", epsilon=PRECISE).release()
    ((five,), (six,)) = plain(
        path, "SELECT count(*) FROM items WHERE discount IN (0.05, 0.06) GROUP BY discount"
    )
    assert list(release.rows) == [(Decimal("0.05"), five), (Decimal("0.06"), six), (Decimal("0.50"), 0)]
    with pytest.raises(InvalidArgument, match="not of kind decimal"):
        opened(path, columns={"discount": sf.one_of(0.055)})
    with pytest.raises(InvalidArgument, match="not of kind hugeint"):
        opened(path, columns={"wide": sf.one_of(0.5)})


@pytest.mark.parametrize("column", ["wide", "widest"])
def test_wide_keys_stay_whole_in_every_form(db: sf.Database, path: Path, column: str) -> None:
    text = f"SELECT {column}, COUNT(*) AS n FROM items GROUP BY 1 ORDER BY 1"
    release = db.sql(text, epsilon=PRECISE).release()
    assert list(release.rows) == plain(path, text)
    keys = [key for key, _ in release.rows]
    assert release.to_pandas()[column].tolist() == keys and release.to_polars()[column].to_list() == keys
    assert release.to_arrow().column(column).to_pylist() == keys
    assert sf.Release.from_json(release.to_json()).rows == release.rows


def test_a_person_s_own_sums_are_exact(db: sf.Database) -> None:
    """Sums of 128-bit numbers that overflow are NULL; those of decimals are decimals."""
    text = """
        WITH each AS (
            SELECT person, SUM(discount) AS d, SUM(CAST(discount AS DECIMAL(38, 10))) AS w,
                   AVG(discount) AS a, SUM(widest) AS h, MAX(wide) AS m, SUM(CAST(widest AS DOUBLE)) AS r
            FROM (SELECT * FROM items UNION ALL SELECT * FROM items) GROUP BY person
        )
        SELECT COUNT(*) FILTER (WHERE d = 0.14) AS d, COUNT(*) FILTER (WHERE w = 0.14) AS w,
               COUNT(*) FILTER (WHERE a = 0.07) AS a, COUNT(h) AS h, COUNT(r) AS r,
               COUNT(*) FILTER (WHERE m = 18446744073709551601) AS m
        FROM each
    """
    ((d, w, a, h, r, m),) = db.sql(text, epsilon=PRECISE).release().rows
    assert (d, w, a, h, r, m) == (273, 273, 273, 0, 3000, 1000)


def test_joins_of_exact_numbers(path: Path) -> None:
    """18446744073709551600, ..01 and ..02 are one double: in doubles every row would match every label."""
    labels = duckdb.sql(
        "SELECT 18446744073709551600::UBIGINT + i::UBIGINT AS code, i AS label FROM range(3) r(i)"
    )
    known = opened(path, public={"labels": labels.to_arrow_table()})
    text = "SELECT label, COUNT(*) AS n FROM items JOIN labels ON wide = code GROUP BY label"
    assert dict(known.sql(text, epsilon=PRECISE).release().rows) == {0: 1000, 1: 1000, 2: 1000}


def test_estimates_of_decimals(db: sf.Database) -> None:
    ((low, high),) = db.bounds("price", epsilon=PRECISE).release().rows
    assert (low, high) == (512, 1024)
    ((middle,),) = db.sql("SELECT MEDIAN(price) AS m FROM items", epsilon=PRECISE).release().rows
    assert middle == pytest.approx(903, abs=1)


CONDITIONS = [
    (lambda: sf.col("wide") == np.uint64(18446744073709551600), 1000),
    (lambda: sf.col("discount") == Decimal("0.07"), 273),
    (lambda: sf.col("discount") == 0.07, 273),
    (lambda: sf.col("discount") * 100 == np.int64(7), 273),
    (lambda: sf.col("discount").is_in(0.07, np.float64(0.08)), 545),
    (lambda: sf.col("discount").between(0.06 - 0.01, 0.07), 819),
    (lambda: sf.col("single") == 0.1, 600),
    (lambda: sf.col("single") == np.float32(0.1), 600),
    (lambda: sf.col("discount").cast("decimal(4, 1)") == Decimal("0.1"), 1635),
]


@pytest.mark.parametrize("place", range(len(CONDITIONS)))
def test_numbers_of_python_and_numpy(db: sf.Database, place: int) -> None:
    condition, count = CONDITIONS[place]
    ((found,),) = db.table("items").where(condition()).agg(n=sf.count()).release(epsilon=PRECISE).rows
    assert found == count


@pytest.mark.parametrize("made", [
    lambda: sf.lit(10**400), lambda: sf.col(5), lambda: sf.col("price").cast("foo"),
    lambda: sf.col("price").cast(5), lambda: sf.lit(Decimal("NaN")),
    lambda: sf.lit(Decimal("sNaN")), lambda: sf.lit(Decimal("1e-50000000")),
    lambda: sf.lit(Decimal("1e50000000")), lambda: sf.lit(1 + 2j), lambda: sf.lit(np.array([1])),
])  # fmt: skip
def test_senseless_constants_are_refused(made: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        made()
    assert caught.value.hints


@pytest.mark.parametrize(("text", "code"), [
    ("SELECT COUNT(DISTINCT NULL) FROM items", "SF403"),
    ("SELECT SUM(tiny) FROM items", "SF405"),
    ("SELECT MEDIAN(tiny) FROM items", "SF405"),
    ("SELECT VAR_POP(price * 1e150) FROM items", "SF405"),
    (f"SELECT COUNT(*) FROM items WHERE price = {'1' * 5000}", "SF401"),
    (f"SELECT COUNT(*) FROM items WHERE price = 0.{'1' * 5000}", "SF401"),
    ("SELECT COUNT(*) FROM items WHERE price = 1e", "SF401"),
])  # fmt: skip
def test_senseless_questions_are_refused_with_a_hint(db: sf.Database, text: str, code: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        db.sql(text, epsilon=1).explain()
    assert caught.value.code == code and caught.value.hints


def test_tiny_numbers_can_be_asked_about_in_another_unit(db: sf.Database) -> None:
    ((total,),) = db.sql("SELECT SUM(tiny * 1e290) AS s FROM items", epsilon=PRECISE).release().rows
    expected = sum(min(max(i * 1e-3, 1), 3) for i in range(3000))
    assert total == pytest.approx(expected * 1e-10, rel=1e-5)


@pytest.mark.parametrize("condition", [
    "widest * CAST(price AS DECIMAL(38, 38)) * 0.1 = 1",
    "LEAST(CAST(price AS DECIMAL(4, 0)), 18446744073709551615, price) = 1",
])  # fmt: skip
def test_what_no_decimal_holds_is_refused(db: sf.Database, condition: str) -> None:
    """DuckDB refuses the one; of the other it makes DECIMAL(38, 0), in which 0.07 is 0."""
    with pytest.raises(QueryRefused) as caught:
        db.sql(f"SELECT COUNT(*) FROM items WHERE {condition}", epsilon=1)
    hint = "convert one of them: CAST(x AS DOUBLE), or to a DECIMAL with fewer digits"
    assert caught.value.hints == (hint,)
