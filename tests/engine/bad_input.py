"""Bad input, asked in a process of its own: each entry is refused, or priced, within a little CPU time.

`python -m tests.engine.bad_input` prints a line of JSON for each: its name, and the code of the refusal,
or "ok", or the name of another error. A timer ends an entry that computes for too long; limits of the process
end one that cannot be interrupted. What comes after that one is then missing, and its test fails.
"""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Callable
from typing import Any

import pandas as pd

import sfumato as sf
from sfumato.errors import SfumatoError

SECONDS = 5  # of CPU time for one entry: a guard against hangs, not a measurement
MEMORY = 4 << 30

PEOPLE = pd.DataFrame({"uid": [1, 2, 3] * 4, "x": [1.0, 2, 3] * 4, "y": [1.0, 2, 3] * 4, "n": [1, 2, 3] * 4,
                       "g": list("aba") * 4})  # fmt: skip
REGIONS = pd.DataFrame({"g": list("ab"), "zone": ["p", "q"]})


def database() -> Any:
    """Return a database of a few rows."""
    return sf.connect(
        {"t": PEOPLE},
        unit="uid",
        public={"r": REGIONS},
        columns={"t.x": sf.between(0, 5), "t.n": sf.between(0, 5), "t.g": sf.one_of("a", "b")},
        max_rows=3,
        max_groups=2,
        budget=sf.Budget(epsilon=3, delta=1e-6),
    )


def doubling(levels: int, first: str, step: str, last: str) -> str:
    """Return a statement whose every query of WITH reads the one before twice."""
    steps = [f"c{level} AS ({step.format(below=f'c{level - 1}')})" for level in range(1, levels + 1)]
    return f"WITH {', '.join([f'c0 AS ({first})', *steps])} {last.format(last=f'c{levels}')}"


def listed(pattern: str, count: int, between: str = ", ") -> str:
    """Return a pattern many times, each with its number."""
    return between.join(pattern.format(place) for place in range(count))


def product(word: str, count: int, each: int) -> str:
    """Return ROLLUP(..), ROLLUP(..), .. over keys of their own."""
    return ", ".join(
        f"{word}({', '.join(f'n + {one * each + place}' for place in range(each))})" for one in range(count)
    )


UNION = "SELECT uid, x FROM {below} UNION ALL SELECT uid, x FROM {below}"
JOIN = "SELECT a.uid, a.x FROM {below} a JOIN {below} b ON a.uid = b.uid"
PUBLIC = "SELECT a.g FROM {below} a JOIN {below} b ON a.g = b.g"
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) COUNT(*) FROM t"
NINES = "9" * 5000

REFUSED: dict[str, tuple[str, str]] = {
    "a rank that is nearly zero": ("SF401", "SELECT QUANTILE(x, 1e-300000000) FROM t"),
    "a rank with two points": ("SF401", "SELECT QUANTILE(x, .1.5) FROM t"),
    "an epsilon that is nearly zero": ("SF401", CLAUSE.format("epsilon = 1e-300000000")),
    "an epsilon that is huge": ("SF401", CLAUSE.format("epsilon = 1e300000000")),
    "a huge cap": ("SF401", CLAUSE.format("max_groups_contributed = 1e300000000")),
    "unions that double": (
        "SF404", doubling(14, "SELECT uid, x FROM t", UNION, "SELECT COUNT(*) FROM {last}")),
    "unions that double sixty times": (
        "SF404", doubling(60, "SELECT uid, x FROM t", UNION, "SELECT COUNT(*) FROM {last}")),
    "joins that double": (
        "SF404", doubling(20, "SELECT uid, x FROM t", JOIN, "SELECT COUNT(*) FROM {last}")),
    "public joins that double": (
        "SF404", doubling(30, "SELECT g FROM r", PUBLIC, "SELECT COUNT(*) FROM t JOIN {last} USING (g)")),
    "noisy tables that double": (
        "SF404", doubling(60, "SELECT COUNT(*) AS uid, 1 AS x FROM t", UNION, "SELECT SUM(x) FROM {last}")),
    "a thousand sums": ("SF404", f"SELECT {listed('SUM(n + {0}) AS s{0}', 1000)} FROM t"),
    "a hundred and one sums": ("SF404", f"SELECT {listed('SUM(n + {0}) AS s{0}', 101)} FROM t"),
    "thousands of sums of one kind": ("SF410", f"SELECT {listed('SUM(n) AS s{0}', 3000)} FROM t"),
    "thousands of windows": (
        "SF404", f"SELECT {listed('SUM(COUNT(*)) OVER () AS w{0}', 1000)} FROM t GROUP BY g"),
    "thousands of additions": ("SF401", "SELECT SUM(n" + "+1" * 3000 + ") FROM t"),
    "thousands of outer additions": ("SF401", "SELECT COUNT(*)" + "+1" * 3000 + " FROM t"),
    "nested parentheses": ("SF401", "SELECT COUNT(*) FROM t WHERE " + "(" * 2000 + "n > 1" + ")" * 2000),
    "nested calls": ("SF401", "SELECT SUM(" + "ABS(" * 200 + "n" + ")" * 200 + ") FROM t"),
    "nested cases": (
        "SF401", "SELECT SUM(" + "CASE WHEN n > 1 THEN 1 ELSE " * 300 + "0" + " END" * 300 + ") FROM t"),
    "nested subqueries": ("SF401", "SELECT COUNT(*) FROM " + "(SELECT uid, n FROM " * 100 + "t" + ")" * 100),
    "nested negations": ("SF401", "SELECT COUNT(*) FROM t WHERE " + "NOT " * 1000 + "n > 1"),
    "many unions": ("SF401", f"SELECT COUNT(*) FROM ({listed('SELECT uid FROM t', 500, ' UNION ALL ')})"),
    "many joins": ("SF404", f"SELECT COUNT(*) FROM t {listed('JOIN r r{0} ON t.g = r{0}.g', 300, ' ')}"),
    "many scalar subqueries": ("SF401", f"SELECT {listed('(SELECT COUNT(*) FROM t)', 300, ' + ')}"),
    "conditions on noise without end": (
        "SF401", f"SELECT g, COUNT(*) FROM t GROUP BY g HAVING {listed('COUNT(*) <> {0}', 400, ' OR ')}"),
    "a long literal": ("SF401", f"SELECT COUNT(*) FROM t WHERE n > {NINES}"),
    "a long literal with a point": ("SF401", f"SELECT COUNT(*) FROM t WHERE x > {NINES}.5"),
    "a long literal outside": ("SF401", f"SELECT COUNT(*) + {NINES} FROM t"),
    "a large literal outside": ("SF401", f"SELECT COUNT(*) + {2**127} FROM t"),
    "a long position": ("SF401", f"SELECT g, COUNT(*) FROM t GROUP BY {NINES}"),
    "a long limit": ("SF401", f"SELECT g, COUNT(*) FROM t GROUP BY g LIMIT {NINES}"),
    "a long number of parts": ("SF401", f"SELECT APPROX_QUANTILES(x, {NINES}) FROM t"),
    "a long bound": ("SF401", f"SELECT SUM(n, contribution_bounds_per_group => (0, {NINES})) FROM t"),
    "a long option": ("SF401", CLAUSE.format(f"max_groups_contributed = {NINES}")),
    "far bounds of a group": (
        "SF401", "SELECT SUM(y, contribution_bounds_per_group => (-1e300, 1e300)) FROM t"),
    "far bounds of a row": ("SF401", "SELECT AVG(y, contribution_bounds_per_row => (-1e300, 1e300)) FROM t"),
    "bounds whose squares are no numbers": (
        "SF401", "SELECT VAR_POP(y, contribution_bounds_per_row => (-1e150, 1e150)) FROM t"),
    "bounds that follow and are far": ("SF405", "SELECT SUM(x * 1e100) FROM t"),
    "near bounds of a row": (
        "SF405", "SELECT SUM(x, contribution_bounds_per_row => (1e-300, 3e-300)) FROM t"),
    "near bounds of a group": (
        "SF405", "SELECT SUM(x, contribution_bounds_per_group => (1e-300, 3e-300)) FROM t"),
    "products of rollups": ("SF404", f"SELECT COUNT(*) FROM t GROUP BY {product('ROLLUP', 8, 8)}"),
    "products of cubes": ("SF404", f"SELECT COUNT(*) FROM t GROUP BY {product('CUBE', 5, 6)}"),
    "a cube of many": ("SF404", f"SELECT COUNT(*) FROM t GROUP BY {product('CUBE', 1, 30)}"),
    "a rollup of thousands": ("SF404", f"SELECT COUNT(*) FROM t GROUP BY {product('ROLLUP', 1, 3000)}"),
    "thousands of grouping sets": (
        "SF404", f"SELECT COUNT(*) FROM t GROUP BY GROUPING SETS({listed('(n + {0})', 3000)})"),
    "thousands of keys": ("SF404", f"SELECT COUNT(*) FROM t GROUP BY {listed('n + {0}', 2000)}"),
    "a long text": ("SF401", f"SELECT COUNT(*) FROM t WHERE g = '{'a' * 100_000}'"),
}  # fmt: skip
"""What is refused, with the code of the refusal."""

PRICED: dict[str, str] = {
    "a long list": f"SELECT COUNT(*) FROM t WHERE n IN ({listed('{0}', 15_000)})",
    "hundreds of AND": f"SELECT COUNT(*) FROM t WHERE {listed('n <> {0}', 243, ' AND ')}",
    "hundreds of OR": f"SELECT COUNT(*) FROM t WHERE {listed('n <> {0}', 1000, ' OR ')}",
    "a CASE of many branches": f"SELECT SUM(CASE {listed('WHEN n = {0} THEN {0}', 500, ' ')} END) FROM t",
    "additions": "SELECT SUM(n" + " + 1" * 50 + ") FROM t",
    "outer additions": "SELECT COUNT(*)" + " + 1" * 50 + " FROM t",
    "calls": "SELECT SUM(" + "ABS(" * 25 + "n" + ")" * 25 + ") FROM t",
    "dozens of aggregates": f"SELECT {listed('COUNT_IF(n = {0}) AS s{0}', 30)} FROM t",
    "a byte order mark": "\ufeffSELECT COUNT(*) FROM t",
    "a column that is called all": 'SELECT g AS "all", COUNT(*) FROM t GROUP BY g ORDER BY "all" DESC',
    "a union of noisy tables": "WITH a AS (SELECT COUNT(*) AS n FROM t), b AS (SELECT SUM(n) AS n FROM t)"
    " SELECT n FROM a UNION ALL SELECT n FROM b",
}
"""What is large and yet answered."""


def _cube(db: Any) -> Any:
    return db.table("t").cube(**{f"k{place}": sf.col("n") + place for place in range(30)}).agg(n=sf.count())


def _rollup(db: Any) -> Any:
    return (
        db.table("t").rollup(**{f"k{place}": sf.col("n") + place for place in range(3000)}).agg(n=sf.count())
    )


def _unions(db: Any) -> Any:
    rows = db.table("t")
    for _ in range(30):
        rows = rows.union_all(rows)
    return rows.agg(n=sf.count())


def _additions(db: Any) -> Any:
    value = sf.col("n")
    for _ in range(5000):
        value = value + 1
    return db.table("t").agg(n=sf.sum_(value))


def _list(db: Any) -> Any:
    return db.table("t").where(sf.col("n").is_in(*range(200_000))).agg(n=sf.count())


COUNT = "SELECT COUNT(*) AS n FROM t"

CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a cube from Python": ("SF404", _cube),
    "a rollup from Python": ("SF404", _rollup),
    "unions from Python that double": ("SF404", _unions),
    "additions from Python": ("SF401", _additions),
    "a list from Python": ("SF401", _list),
    "far bounds from Python": (
        "SF101", lambda db: db.table("t").agg(s=sf.sum_("y").clamp_groups(-1e300, 1e300))),
    "weights that are a text": ("SF101", lambda db: db.sql(COUNT, epsilon=1, weights="n")),
    "weights that are a number": ("SF101", lambda db: db.sql(COUNT, epsilon=1, weights=3)),
    "weights without names": ("SF101", lambda db: db.sql(COUNT, epsilon=1, weights={3: 1})),
    "no text": ("SF101", lambda db: db.sql(None)),
    "bytes": ("SF101", lambda db: db.sql(b"SELECT COUNT(*) FROM t")),
    "no question": ("SF101", lambda db: db.ask(None)),
    "no table": ("SF101", lambda db: db.table(None)),
    "a release that is empty": ("SF101", lambda db: sf.Release.from_json("")),
    "a release that is null": ("SF101", lambda db: sf.Release.from_json("null")),
    "a release that is none": ("SF101", lambda db: sf.Release.from_json(None)),
    "a release that is deep": ("SF101", lambda db: sf.Release.from_json("[" * 100_000)),
    "a release that is cut": ("SF101", lambda db: sf.Release.from_json('{"format": 1')),
}  # fmt: skip
"""Calls that are refused."""

EXPECTED: dict[str, str] = {
    **{name: code for name, (code, _) in (*REFUSED.items(), *CALLS.items())},
    **dict.fromkeys(PRICED, "ok"),
    "all of it was free": "ok",
}
"""What each entry must come to."""


def outcome(go: Callable[[], Any]) -> str:
    """Return what a call comes to: "ok", the code of a refusal with a hint, or the name of another error."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        go()
    except SfumatoError as error:
        return error.code if error.hints else f"{error.code} without a hint"
    except BaseException as error:
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "ok"


def _stopped(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    """Ask all of it."""
    signal.signal(signal.SIGPROF, _stopped)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
    db = database()
    asked: dict[str, Callable[[], Any]] = {}
    for name, text in {**{name: text for name, (_, text) in REFUSED.items()}, **PRICED}.items():
        asked[name] = lambda text=text: db.sql(text, epsilon=1).explain()  # type: ignore[misc]
    for name, (_, call) in CALLS.items():
        asked[name] = lambda call=call: call(db)  # type: ignore[misc]
    for name, go in asked.items():
        print(json.dumps([name, outcome(go)]), flush=True)
    print(json.dumps(["all of it was free", "ok" if db.budget.spent == 0 else "charged"]), flush=True)


if __name__ == "__main__":
    main()
