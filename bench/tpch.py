"""Questions in the manner of TPC-H beside the same text in plain DuckDB; the opening of six Parquet tables.

Customers are the unit; customer, orders and lineitem are private and name the customer, the others are
public. Tables have the sizes of scale factor 1 unless told otherwise. Both sides read the same Parquet files,
in turns.

    python bench/tpch.py [--scale 1]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from report import Row, show

import sfumato as sf

__all__ = ["tpch_rows"]

MOST_RATIO, MOST_OPENING = 4.0, 1.0
CUSTOMERS, ORDERS, LINES, PARTS, SUPPLIERS = 150_000, 1_500_000, 6_000_000, 200_000, 10_000
TABLES = {
    "nation": "SELECT i AS n_nationkey, 'NATION ' || i AS n_name FROM range(25) AS t(i)",
    "supplier": "SELECT i AS s_suppkey, i % 25 AS s_nationkey, md5(i::VARCHAR) AS s_comment "
    "FROM range({suppliers}) AS t(i)",
    "part": "SELECT i AS p_partkey, 'Brand#' || i % 25 AS p_brand, md5(i::VARCHAR) AS p_name "
    "FROM range({parts}) AS t(i)",
    "customer": "SELECT i AS custkey, i % 25 AS c_nationkey, md5(i::VARCHAR) AS c_comment "
    "FROM range({customers}) AS t(i)",
    "orders": """
        SELECT i AS o_orderkey, (hash(i) % {customers})::BIGINT AS custkey,
               DATE '1992-01-01' + (hash(i * 7) % 2400)::INTEGER AS o_orderdate,
               (hash(i * 3) % 5)::VARCHAR || '-PRIORITY' AS o_orderpriority, md5(i::VARCHAR) AS o_comment
        FROM range({orders}) AS t(i)
    """,
    "lineitem": """
        SELECT i // 4 AS l_orderkey, (hash(i // 4) % {customers})::BIGINT AS custkey,
               (hash(i * 5) % {parts})::BIGINT AS l_partkey, (hash(i * 3) % {suppliers})::BIGINT AS l_suppkey,
               (1 + hash(i * 11) % 50)::DECIMAL(15, 2) AS l_quantity,
               ((90000 + hash(i * 13) % 10400000) / 100)::DECIMAL(15, 2) AS l_extendedprice,
               ((hash(i * 17) % 11) / 100)::DECIMAL(15, 2) AS l_discount,
               ((hash(i * 19) % 9) / 100)::DECIMAL(15, 2) AS l_tax,
               ['A', 'N', 'R'][1 + (hash(i * 23) % 3)::INTEGER] AS l_returnflag,
               ['F', 'O'][1 + (hash(i * 29) % 2)::INTEGER] AS l_linestatus,
               DATE '1992-01-02' + (hash(i * 31) % 2500)::INTEGER AS l_shipdate,
               ['AIR', 'FOB', 'MAIL', 'SHIP', 'TRUCK'][1 + (hash(i * 37) % 5)::INTEGER] AS l_shipmode,
               md5(i::VARCHAR) AS l_comment
        FROM range({lines}) AS t(i)
    """,
}
PRIVATE = ("customer", "orders", "lineitem")
QUESTIONS = {
    "Q1, eight aggregates": """
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity, SUM(l_extendedprice) AS price,
               SUM(l_extendedprice * (1 - l_discount)) AS discounted,
               SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge,
               AVG(l_quantity) AS mean_quantity, AVG(l_extendedprice) AS mean_price,
               AVG(l_discount) AS mean_discount, COUNT(*) AS n
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus
    """,
    "Q15, revenue by supplier": """
        SELECT l_suppkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey
    """,
    "Q18, large orders": """
        SELECT COUNT(*) AS n, SUM(LEAST(quantity, 400)) AS quantity
        FROM (SELECT custkey, l_orderkey, SUM(l_quantity) AS quantity FROM lineitem
              GROUP BY custkey, l_orderkey)
        WHERE quantity > 150
    """,
    "Q20, suppliers with much of a part": """
        SELECT s_nationkey, COUNT(*) AS n, SUM(LEAST(quantity, 400)) AS quantity
        FROM (SELECT custkey, l_partkey, l_suppkey, SUM(l_quantity) AS quantity FROM lineitem
              WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
              GROUP BY custkey, l_partkey, l_suppkey) AS bought
        JOIN supplier ON l_suppkey = s_suppkey
        WHERE quantity > 20 GROUP BY s_nationkey
    """,
}
COLUMNS = {
    "l_quantity": sf.between(0, 50),
    "l_extendedprice": sf.between(0, 105_000),
    "l_discount": sf.between(0, 0.1),
    "l_tax": sf.between(0, 0.08),
    "l_returnflag": sf.one_of("A", "N", "R"),
    "l_linestatus": sf.one_of("F", "O"),
}
CAPS = {"max_groups": 20, "max_rows": 100}


def tpch_rows(*, scale: float = 1, times: int = 5) -> Iterator[Row]:
    """Return the ratios of all questions, and the seconds of an opening."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        paths = _written(Path(folder), scale)
        opening = [_seconds(lambda: _opened(paths, times)) for _ in range(times)]
        yield Row(
            name="open six Parquet tables, TPC-H sizes",
            ours=statistics.median(opening),
            rival=None,
            unit="s",
            ratio=statistics.median(opening),
            most=MOST_OPENING,
        )
        database = _opened(paths, 2 * times * len(QUESTIONS))
        with duckdb.connect() as plain:
            plain.execute("SET enable_progress_bar = false")
            for name, path in paths.items():
                plain.read_parquet(str(path)).create_view(name)
            for name, text in QUESTIONS.items():
                ours, floors = [], []
                for _ in range(times):
                    floors.append(_seconds(lambda text=text: plain.execute(text).fetchall()))
                    ours.append(_seconds(database.sql(text, epsilon=1, **CAPS).release))
                mine, least = statistics.median(ours), statistics.median(floors)
                yield Row(
                    name=f"TPC-H-like {name}: plain DuckDB",
                    ours=mine,
                    rival=least,
                    unit="s",
                    ratio=mine / least,
                    most=MOST_RATIO,
                )


def _written(folder: Path, scale: float) -> dict[str, Path]:
    """Write the tables; they are the same for the same scale."""
    import duckdb

    whole = {"customers": CUSTOMERS, "orders": ORDERS, "lines": LINES, "parts": PARTS, "suppliers": SUPPLIERS}
    sizes = {name: max(1, round(size * scale)) for name, size in whole.items()}
    paths = {name: folder / f"{name}.parquet" for name in TABLES}
    for name, path in paths.items():
        duckdb.sql(TABLES[name].format(**sizes)).write_parquet(str(path))
    return paths


def _opened(paths: dict[str, Path], questions: int) -> Any:
    return sf.connect(
        {name: paths[name] for name in PRIVATE},
        unit="custkey",
        public={name: path for name, path in paths.items() if name not in PRIVATE},
        columns={f"lineitem.{name}": domain for name, domain in COLUMNS.items()},
        budget=sf.Budget(epsilon=questions, delta=1e-7),
    )


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    rows = show(tpch_rows(scale=options.scale, times=options.times), {})
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
