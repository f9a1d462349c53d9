"""Tables in the manner of TPC-H, invented and small, and its 22 questions in private form.

Customers are the unit. `customer` and `orders` name them by columns of their own, `lineitem` reaches them
through its key; part, supplier, partsupp, nation and region are public. The questions keep the joins,
conditions and aggregates of TPC-H's. What is changed, and why: groups that are single people's (an order, a
customer) become groups of many; an average over people inside a condition (Q17, Q22) becomes a constant.
TPC-H's own Q2, Q11 and Q16 read public tables alone: `PUBLIC_QUESTIONS` has them as they are. Their private
forms are about what customers bought: how much of the cheapest supplier's (Q2), at which cost (Q11), and from
how many suppliers (Q16).
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import sfumato as sf
from sfumato.session import Database

__all__ = [
    "PUBLIC",
    "PUBLIC_QUESTIONS",
    "QUESTIONS",
    "connected",
    "database",
    "declared",
    "scaled",
    "tables",
    "truth",
]

MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "RUSSIA"),
}
CUSTOMERS, PARTS, SUPPLIERS = 150, 60, 12
MONEY = pa.decimal128(15, 2)
PUBLIC = ("region", "nation", "part", "supplier", "partsupp")
_FIRST = datetime.date(1992, 1, 1)


def _cents(draw: random.Random, low: int, high: int) -> Decimal:
    return Decimal(draw.randint(low * 100, high * 100)) / 100


def _table(rows: list[dict[str, Any]], *money: str) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return pa.table(
        {name: pa.array(each, MONEY if name in money else None) for name, each in columns.items()}
    )


@cache
def tables() -> dict[str, pa.Table]:
    """Return the tables; every customer has at most 6 orders of at most 5 lines."""
    draw = random.Random(20)
    names = [(region, nation) for region, nations in NATIONS.items() for nation in nations]
    regions = list(NATIONS)
    supplied = [(part, (part + step * 5) % SUPPLIERS) for part in range(PARTS) for step in range(4)]
    orders: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for customer in range(CUSTOMERS):
        for _ in range(draw.choice((0, 0, 1, 2, 3, 6))):
            date = _FIRST + datetime.timedelta(days=draw.randint(0, 2000))
            order = len(orders)
            orders.append(
                {
                    "o_orderkey": order,
                    "o_custkey": customer,
                    "o_orderstatus": draw.choice("FFOP"),
                    "o_totalprice": _cents(draw, 1, 5000),
                    "o_orderdate": date,
                    "o_orderpriority": draw.choice(PRIORITIES),
                    "o_comment": draw.choice(("plain", "special requests", "other", "special packages")),
                }
            )
            for _ in range(draw.randint(1, 5)):
                ship, commit = (date + datetime.timedelta(days=draw.randint(1, 90)) for _ in range(2))
                part, supplier = draw.choice(supplied)
                lines.append(
                    {
                        "l_orderkey": order,
                        "l_partkey": part,
                        "l_suppkey": supplier,
                        "l_quantity": draw.randint(1, 50),
                        "l_extendedprice": _cents(draw, 1, 1000),
                        "l_discount": Decimal(draw.randint(0, 10)) / 100,
                        "l_tax": Decimal(draw.randint(0, 8)) / 100,
                        "l_returnflag": draw.choice("ANR"),
                        "l_linestatus": draw.choice("FO"),
                        "l_shipdate": ship,
                        "l_commitdate": commit,
                        "l_receiptdate": ship + datetime.timedelta(days=draw.randint(1, 30)),
                        "l_shipinstruct": draw.choice(INSTRUCTIONS),
                        "l_shipmode": draw.choice(MODES),
                    }
                )
    return {
        "region": _table([{"r_regionkey": at, "r_name": name} for at, name in enumerate(regions)]),
        "nation": _table(
            [
                {"n_nationkey": at, "n_name": nation, "n_regionkey": regions.index(region)}
                for at, (region, nation) in enumerate(names)
            ]
        ),
        "part": _table(
            [
                {
                    "p_partkey": at,
                    "p_name": f"{('green', 'red', 'blue')[at % 3]} {('tin', 'brass')[at % 2]}",
                    "p_brand": f"Brand#{at % 4}",
                    "p_type": ("PROMO TIN", "STANDARD BRASS", "ECONOMY TIN")[at % 3],
                    "p_size": 1 + at % 7,
                    "p_container": ("SM BOX", "MED BAG", "LG CASE")[at % 3],
                }
                for at in range(PARTS)
            ]
        ),
        "supplier": _table(
            [
                {
                    "s_suppkey": at,
                    "s_name": f"Supplier#{at}",
                    "s_nationkey": at % len(names),
                    "s_acctbal": _cents(draw, -900, 9000),
                    "s_comment": "Customer Complaints" if at % 5 == 4 else "fine",
                }
                for at in range(SUPPLIERS)
            ],
            "s_acctbal",
        ),
        "partsupp": _table(
            [
                {
                    "ps_partkey": part,
                    "ps_suppkey": supplier,
                    "ps_availqty": draw.randint(1, 200),
                    "ps_supplycost": _cents(draw, 1, 20),
                }
                for part, supplier in supplied
            ],
            "ps_supplycost",
        ),
        "customer": _table(
            [
                {
                    "c_custkey": at,
                    "c_name": f"Customer#{at}",
                    "c_nationkey": draw.randrange(len(names)),
                    "c_phone": f"{10 + draw.randrange(25)}-{draw.randrange(1000)}",
                    "c_mktsegment": draw.choice(SEGMENTS),
                    "c_acctbal": _cents(draw, -900, 9000),
                }
                for at in range(CUSTOMERS)
            ],
            "c_acctbal",
        ),
        "orders": _table(orders, "o_totalprice"),
        "lineitem": _table(lines, "l_extendedprice", "l_discount", "l_tax"),
    }


@cache
def database() -> Database:
    """Return the small tables as one database: caps above what any customer has."""
    return connected(tables(), max_groups=30, max_rows=30)


def connected(found: Mapping[str, Any], *, max_groups: int, max_rows: int) -> Database:
    """Return tables as one database, with bounds around all values."""
    private = {name: table for name, table in found.items() if name not in PUBLIC}
    public = {name: found[name] for name in PUBLIC}
    return sf.connect(private, public=public, **declared(max_groups=max_groups, max_rows=max_rows))


def declared(*, max_groups: int, max_rows: int) -> dict[str, Any]:
    """Return what is said about the tables: whose rows they hold, and between which bounds."""
    dates = sf.between(datetime.date(1992, 1, 1), datetime.date(1998, 12, 31))
    return {
        "unit": {
            "customer": "c_custkey",
            "orders": "o_custkey",
            "lineitem": "l_orderkey -> orders.o_orderkey -> o_custkey",
        },
        "protects": "customer",
        "columns": {
            "customer.c_mktsegment": sf.one_of(*SEGMENTS),
            "customer.c_acctbal": sf.between(-1000, 10_000),
            "orders.o_orderpriority": sf.one_of(*PRIORITIES),
            "orders.o_orderdate": dates,
            "orders.o_totalprice": sf.between(0, 5000),
            "lineitem.l_quantity": sf.between(0, 50),
            "lineitem.l_extendedprice": sf.between(0, 1000),
            "lineitem.l_discount": sf.between(0, Decimal("0.1")),
            "lineitem.l_tax": sf.between(0, Decimal("0.08")),
            "lineitem.l_returnflag": sf.one_of("A", "N", "R"),
            "lineitem.l_linestatus": sf.one_of("F", "O"),
            "lineitem.l_shipmode": sf.one_of(*MODES),
            "lineitem.l_shipdate": dates,
            "partsupp.ps_supplycost": sf.between(0, 20),
        },
        "max_groups": max_groups,
        "max_rows": max_rows,
        "budget": sf.Budget(epsilon=10**13, delta=1e-9, rule="pure"),
    }


def truth(text: str, found: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """Return what DuckDB answers; `lineitem` has no customer there, either."""
    with duckdb.connect() as engine:
        for name, table in (found or tables()).items():
            if isinstance(table, str):
                engine.execute(f"CREATE VIEW {name} AS FROM read_parquet('{table}')")
            else:
                engine.register(name, table)
        return engine.execute(text).fetchall()


def scaled(folder: Path, factor: float) -> dict[str, Any]:
    """Return tables of `factor` times as many rows as TPC-H has at scale 1; the private ones as files."""
    customers, orders, lines = (round(number * factor) for number in (150_000, 1_500_000, 6_000_000))

    def below(most: int, seed: int, what: str = "i") -> str:
        return f"CAST(hash({what}, {seed}) % {most} AS BIGINT)"

    def pick(values: Sequence[str], seed: int) -> str:
        return f"{list(values)}[1 + {below(len(values), seed)}]"

    def money(low: int, high: int, seed: int) -> str:
        return f"CAST(({low} + {below(high - low, seed)}) / 100.0 AS DECIMAL(15, 2))"

    def later(date: str, most: int, seed: int) -> str:
        return f"{date} + CAST(1 + {below(most, seed)} AS INTEGER)"

    ordered = later("DATE '1992-01-01'", 2000, 1)
    of_line = ordered.replace("hash(i,", "hash(i // 4,")
    comments = ("plain", "special requests", "other", "special packages")
    texts = {
        "customer": f"""
            SELECT i AS c_custkey, 'Customer#' || i AS c_name, {below(15, 1)} AS c_nationkey,
                   (10 + {below(25, 2)}) || '-' || i AS c_phone, {pick(SEGMENTS, 3)} AS c_mktsegment,
                   {money(-90_000, 900_000, 4)} AS c_acctbal
            FROM range({customers}) AS t(i)""",
        "orders": f"""
            SELECT i AS o_orderkey, {below(customers * 2 // 3, 2)} AS o_custkey,
                   {pick("FFOP", 3)} AS o_orderstatus, {money(100, 500_000, 4)} AS o_totalprice,
                   {ordered} AS o_orderdate, {pick(PRIORITIES, 5)} AS o_orderpriority,
                   {pick(comments, 6)} AS o_comment
            FROM range({orders}) AS t(i)""",
        "lineitem": f"""
            SELECT i // 4 AS l_orderkey, {below(PARTS, 3)} AS l_partkey,
                   ({below(PARTS, 3)} + {below(4, 4, "'step ' || i")} * 5) % {SUPPLIERS} AS l_suppkey,
                   1 + {below(50, 5)} AS l_quantity, {money(100, 100_000, 6)} AS l_extendedprice,
                   {money(0, 11, 7)} AS l_discount, {money(0, 9, 8)} AS l_tax,
                   {pick("ANR", 9)} AS l_returnflag, {pick("FO", 10)} AS l_linestatus,
                   {later(of_line, 90, 2)} AS l_shipdate, {later(of_line, 90, 11)} AS l_commitdate,
                   {later(later(of_line, 90, 2), 30, 12)} AS l_receiptdate,
                   {pick(INSTRUCTIONS, 13)} AS l_shipinstruct, {pick(MODES, 14)} AS l_shipmode
            FROM range({lines}) AS t(i)""",
    }
    found: dict[str, Any] = {name: table for name, table in tables().items() if name in PUBLIC}
    with duckdb.connect() as engine:
        for name, text in texts.items():
            found[name] = str(folder / f"{name}.parquet")
            engine.execute(f"COPY ({text}) TO '{found[name]}' (FORMAT parquet)")
    return found


QUESTIONS = {
    "Q1": """
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base,
               SUM(l_extendedprice * (1 - l_discount)) AS sum_disc,
               SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
               AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc,
               COUNT(*) AS orders
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "Q2": """
        WITH bought AS (
            SELECT ps_partkey AS partkey, ps_suppkey AS suppkey, SUM(l_quantity) AS quantity
            FROM lineitem, partsupp, part
            WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND p_partkey = ps_partkey
            AND p_size = 2 AND p_type LIKE '%TIN' GROUP BY ps_partkey, ps_suppkey)
        SELECT s_acctbal, s_name, n_name, partkey, quantity FROM bought, supplier, partsupp, nation, region
        WHERE partkey = ps_partkey AND suppkey = ps_suppkey AND s_suppkey = ps_suppkey
        AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'AFRICA'
        AND ps_supplycost = (
            SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region
            WHERE partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'AFRICA')
        ORDER BY s_acctbal DESC, n_name, s_name, partkey LIMIT 100""",
    "Q3": """
        SELECT o_orderpriority, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS n
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
        AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1993-03-15'
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "Q4": """
        SELECT o_orderpriority, COUNT(*) AS order_count FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1996-10-01' AND EXISTS (
            SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "Q5": """
        SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS n
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
        AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
        AND r_name = 'AFRICA' AND o_orderdate >= DATE '1993-01-01'
        GROUP BY n_name ORDER BY revenue DESC""",
    "Q6": """
        SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1996-01-01'
        AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24""",
    "Q7": """
        SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue, COUNT(DISTINCT who) AS customers
        FROM (
            SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation,
                   EXTRACT(year FROM l_shipdate) AS l_year, c_custkey AS who,
                   l_extendedprice * (1 - l_discount) AS volume
            FROM supplier, lineitem, orders, customer, nation n1, nation n2
            WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
            AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
            AND ((n1.n_name = 'BRAZIL' AND n2.n_name = 'KENYA')
                OR (n1.n_name = 'KENYA' AND n2.n_name = 'BRAZIL'))
            AND l_shipdate BETWEEN DATE '1993-01-01' AND DATE '1996-12-31') AS shipping
        GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    "Q8": """
        SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share
        FROM (
            SELECT EXTRACT(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume,
                   n2.n_name AS nation
            FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
            WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
            AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey
            AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey AND p_type LIKE '%TIN') AS all_nations
        GROUP BY o_year ORDER BY o_year""",
    "Q9": """
        SELECT nation, o_year, SUM(amount) AS sum_profit, COUNT(DISTINCT who) AS customers FROM (
            SELECT n_name AS nation, EXTRACT(year FROM o_orderdate) AS o_year, o_custkey AS who,
                   l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
            FROM part, supplier, lineitem, partsupp, orders, nation
            WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
            AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
            AND p_name LIKE '%green%') AS profit
        GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    "Q10": """
        SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue,
               COUNT(DISTINCT c_custkey) AS customers
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
        AND l_returnflag = 'R' AND c_nationkey = n_nationkey
        GROUP BY n_name ORDER BY n_name""",
    "Q11": """
        SELECT ps_partkey, SUM(ps_supplycost * l_quantity) AS worth FROM lineitem, partsupp, supplier, nation
        WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND ps_suppkey = s_suppkey
        AND s_nationkey = n_nationkey AND n_name = 'KENYA'
        GROUP BY ps_partkey HAVING SUM(ps_supplycost * l_quantity) > (
            SELECT SUM(ps_supplycost * l_quantity) * 0.05 FROM lineitem, partsupp, supplier, nation
            WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND ps_suppkey = s_suppkey
            AND s_nationkey = n_nationkey AND n_name = 'KENYA')
        ORDER BY worth DESC, ps_partkey""",
    "Q12": """
        SELECT l_shipmode,
               SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH'
                   THEN 1 ELSE 0 END) AS high,
               SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH'
                   THEN 1 ELSE 0 END) AS low
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
        AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1993-01-01'
        GROUP BY l_shipmode ORDER BY l_shipmode""",
    "Q13": """
        SELECT c_count, COUNT(*) AS custdist FROM (
            SELECT c_custkey, LEAST(COUNT(o_orderkey), 4) AS c_count FROM customer LEFT OUTER JOIN orders
            ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey) AS c_orders
        GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    "Q14": """
        SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount)
                   ELSE 0 END) / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
        FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1994-09-01'
        AND l_shipdate < DATE '1996-10-01'""",
    "Q15": """
        WITH revenue AS (
            SELECT s_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
            FROM lineitem JOIN supplier ON l_suppkey = s_suppkey
            WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1997-04-01' GROUP BY s_suppkey)
        SELECT s_suppkey, s_name, total_revenue FROM supplier, revenue
        WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)
        ORDER BY s_suppkey""",
    "Q16": """
        SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt,
               COUNT(DISTINCT o_custkey) AS customer_cnt
        FROM partsupp, part, lineitem, orders
        WHERE p_partkey = ps_partkey AND l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        AND o_orderkey = l_orderkey AND p_brand <> 'Brand#3' AND p_type NOT LIKE 'ECONOMY%'
        AND p_size IN (1, 3, 5) AND ps_suppkey NOT IN (
            SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    "Q17": """
        SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#2' AND p_container = 'LG CASE'
        AND l_quantity < 0.2 * 100""",
    "Q18": """
        SELECT o_orderpriority, COUNT(DISTINCT c_custkey) AS customers, SUM(l_quantity) AS quantity
        FROM customer, orders, lineitem
        WHERE o_orderkey IN (
            SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 100)
        AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "Q19": """
        SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
        WHERE (p_partkey = l_partkey AND p_brand = 'Brand#1' AND p_container IN ('SM BOX', 'MED BAG')
               AND l_quantity >= 1 AND l_quantity <= 30 AND p_size BETWEEN 1 AND 5
               AND l_shipmode IN ('AIR', 'REG AIR', 'MAIL', 'RAIL') )
        OR (p_partkey = l_partkey AND p_brand = 'Brand#2' AND l_quantity BETWEEN 10 AND 40
            AND l_shipmode LIKE '%AIR')""",
    "Q20": """
        WITH shipped AS (
            SELECT ps_partkey, ps_suppkey, SUM(l_quantity) AS quantity
            FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
            WHERE l_shipdate >= DATE '1994-01-01' GROUP BY ps_partkey, ps_suppkey)
        SELECT s_name FROM supplier, nation WHERE s_suppkey IN (
            SELECT partsupp.ps_suppkey FROM partsupp, shipped
            WHERE partsupp.ps_partkey = shipped.ps_partkey AND partsupp.ps_suppkey = shipped.ps_suppkey
            AND partsupp.ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'green%')
            AND ps_availqty > 0.5 * quantity AND quantity > 0.25)
        AND s_nationkey = n_nationkey AND n_name <> 'KENYA' ORDER BY s_name""",
    "Q21": """
        SELECT s_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation
        WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
        AND l1.l_receiptdate > l1.l_commitdate
        AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey
            AND l2.l_suppkey <> l1.l_suppkey)
        AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
            AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
        AND s_nationkey = n_nationkey AND n_name <> 'CHINA'
        GROUP BY s_name ORDER BY numwait DESC, s_name""",
    "Q22": """
        SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (
            SELECT SUBSTRING(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer
            WHERE SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > 0
            AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
        GROUP BY cntrycode ORDER BY cntrycode""",
}

PUBLIC_QUESTIONS = {
    "Q2": """
        SELECT s_acctbal, s_name, n_name, p_partkey FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 2 AND p_type LIKE '%TIN'
        AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'AFRICA'
        AND ps_supplycost = (
            SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region
            WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'AFRICA')
        ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    "Q11": """
        SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS worth FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'KENYA'
        GROUP BY ps_partkey HAVING SUM(ps_supplycost * ps_availqty) > (
            SELECT SUM(ps_supplycost * ps_availqty) * 0.05 FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'KENYA')
        ORDER BY worth DESC, ps_partkey""",
    "Q16": """
        SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#3' AND p_type NOT LIKE 'ECONOMY%'
        AND p_size IN (1, 3, 5) AND ps_suppkey NOT IN (
            SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
}
"""TPC-H's questions about public tables alone, which are answered exactly and for free."""
