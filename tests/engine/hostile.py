# ruff: noqa: E501
"""Hostile questions: each limit on a single number is kept, and their products would keep a core busy.

`bench/hostile.py` measures how long each takes to be priced or refused, `test_steps.py` how many steps.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator

import pyarrow as pa

import sfumato as sf

KEYS = 40
SIX = ", ".join(f"c{place}" for place in range(6))
DAYS = (datetime.date(2026, 1, 1), datetime.date(2026, 12, 31))

Door = Callable[[sf.Database], object]


def hostile_database(*, rows: int = 60, **options: int) -> sf.Database:
    """Return a small table with many columns; `steps` may be given."""
    keys = {f"c{place}": [str(row % 3) for row in range(rows)] for place in range(KEYS)}
    table = pa.table(
        {
            "person": range(rows),
            "x": [float(row) for row in range(rows)],
            "y": range(rows),
            "big": range(rows),
            "name": [str(row) for row in range(rows)],
            "day": [DAYS[0] + datetime.timedelta(days=row % 20) for row in range(rows)],
            **keys,
        }
    )
    columns: dict[str, sf.Domain] = {name: sf.one_of("0", "1", "2") for name in keys}
    columns |= {"x": sf.between(0, 100), "y": sf.between(0, 100), "big": sf.between(0, 10**9)}
    columns |= {"day": sf.between(*DAYS)}
    budget = sf.Budget(epsilon=100, delta=1e-5)
    return sf.connect(
        table, name="v", unit="person", columns=columns, max_rows=1, max_groups=1, budget=budget, **options
    )


def _listed(text: str, number: int, between: str = ", ") -> str:
    return between.join(text.replace("#", str(place)) for place in range(number))


def _nested(inner: str, outer: str, times: int) -> str:
    for _ in range(times):
        inner = outer.replace("@", inner)
    return inner


def _sets(number: int) -> str:
    chosen = (", ".join(f"c{at}" for at in range(6) if place >> at & 1) for place in range(number))
    return ", ".join(f"({one})" for one in chosen)


QUESTIONS: dict[str, str] = {
    "sums by a cube": f"SELECT {SIX}, {_listed('SUM(x + #) AS s#', 99)} FROM v GROUP BY CUBE ({SIX})",
    "deviations by a cube": f"SELECT {SIX}, {_listed('STDDEV(x + #) AS s#', 99)} FROM v GROUP BY CUBE ({SIX})",
    "grouping sets": f"SELECT {SIX}, {_listed('SUM(x + #) AS s#', 90)} FROM v GROUP BY GROUPING SETS ({_sets(60)})",
    "sums of conditions by a cube": (
        f"SELECT {SIX}, {_listed('SUM(x + #) AS s#', 60)} FROM v WHERE {_listed('y = #', 2000, ' OR ')}"
        f" GROUP BY CUBE ({SIX})"
    ),
    "arguments of COALESCE": f"SELECT SUM(COALESCE({_listed('x', 20_000)})) AS s FROM v",
    "arguments of CONCAT_WS": f"SELECT COUNT(*) AS n FROM v WHERE CONCAT_WS({_listed('name', 9_000)}) = 'a'",
    "arguments of GREATEST": f"SELECT SUM(GREATEST({_listed('x', 6_000)})) AS s FROM v",
    "many long arguments": f"SELECT {_listed('SUM(COALESCE(' + _listed('x', 150) + ') + #) AS s#', 99)} FROM v",
    "columns": f"SELECT {_listed('COUNT(*) + # AS n#', 400)} FROM v",
    "outer columns": f"SELECT {_listed('n + # AS m#', 400)} FROM (SELECT c0, COUNT(*) AS n FROM v GROUP BY c0)",
    "quotients": f"SELECT {_listed('n / n / n / n / n / (n + #) AS m#', 400)} FROM (SELECT COUNT(*) AS n FROM v)",
    "roots": f"SELECT {_listed('SQRT(n * # + n / (n + #)) AS m#', 200)} FROM (SELECT COUNT(*) AS n FROM v)",
    "quotients of quotients": f"SELECT {_listed('n', 60, ' / ')} AS m FROM (SELECT COUNT(*) AS n FROM v)",
    "keys of computed texts": "SELECT CASE "
    + _listed("WHEN y = # THEN UPPER('a#')", 400, " ")
    + " END AS z, COUNT(*) AS n FROM v GROUP BY 1",
    "windows": f"SELECT c0, {_listed('SUM(COUNT(*)) OVER (ORDER BY c0) + # AS w#', 300)} FROM v GROUP BY c0",
    "conditions": f"SELECT c0, COUNT(*) AS n FROM v WHERE {_listed('y = #', 3000, ' OR ')} GROUP BY c0",
    "cases": f"SELECT SUM(CASE {_listed('WHEN y = # THEN #', 3000, ' ')} ELSE 0 END) AS s FROM v",
    "cases as a key": "SELECT CASE "
    + _listed("WHEN y = # THEN '#'", 2500, " ")
    + " END AS z, COUNT(*) AS n FROM v GROUP BY 1",
    "cases of noise": f"SELECT c0, CASE {_listed('WHEN COUNT(*) = # THEN #', 2500, ' ')} END AS z FROM v GROUP BY c0",
    "nested cases": "SELECT "
    + _listed("SUM(" + _nested("0", "CASE WHEN y > # THEN 1 ELSE @ END", 28) + ") AS s#", 60)
    + " FROM v",
    "parentheses": f"SELECT SUM({_nested('x', '(@)', 28)}) AS s FROM v",
    "subqueries": f"SELECT SUM(x) AS s FROM {_nested('v', '(SELECT * FROM @)', 14)}",
    "queries of WITH": "WITH a0 AS (SELECT * FROM v), "
    + ", ".join(f"a{at} AS (SELECT * FROM a{at - 1})" for at in range(1, 90))
    + " SELECT SUM(x) AS s FROM a89",
    "doubled queries of WITH": "WITH a0 AS (SELECT * FROM v), "
    + ", ".join(
        f"a{at} AS (SELECT * FROM a{at - 1} UNION ALL SELECT * FROM a{at - 1})" for at in range(1, 30)
    )
    + " SELECT SUM(x) AS s FROM a29",
    "joins": f"SELECT SUM(v0.x) AS s FROM v AS v0 {' '.join(f'JOIN v AS v{at} ON v0.person = v{at}.person' for at in range(1, 60))}",
    "listed values": f"SELECT c0, COUNT(*) AS n FROM v WHERE y IN ({_listed('#', 3000)}) GROUP BY c0",
    "very many listed values": f"SELECT COUNT(*) AS n FROM v WHERE y IN ({_listed('#', 100_000)})",
    "listed rows": f"SELECT COUNT(*) AS n FROM v JOIN (VALUES {_listed('(#)', 10_000)}) AS w (y) ON v.y = w.y",
    "a long text": f"SELECT COUNT(*) AS n FROM v WHERE name = '{'a' * 99_000}'",
    "a long pattern": f"SELECT COUNT(*) AS n FROM v WHERE name LIKE '{'%a' * 49_000}'",
    "patterns": "SELECT COUNT(*) AS n FROM v WHERE "
    + _listed("REGEXP_MATCHES(name, '(a|b){1,9}c*#')", 1500, " OR "),
    "unions": f"SELECT SUM(x) AS s FROM ({_listed('SELECT x FROM v', 2000, ' UNION ALL ')})",
    "quantiles": f"SELECT c0, {_listed('QUANTILE_CONT(big + #, 0.5) AS q#', 90)} FROM v GROUP BY c0",
    "correlations": f"SELECT {SIX}, {_listed('CORR(x + #, y) AS s#', 99)} FROM v GROUP BY {SIX}",
    "HAVING": f"SELECT c0, COUNT(*) AS n FROM v GROUP BY c0 HAVING {_listed('COUNT(*) > #', 3000, ' OR ')}",
    "ORDER BY": f"SELECT c0, SUM(x) AS n FROM v GROUP BY c0 ORDER BY {_listed('SUM(x) / COUNT(*) + #', 2000)}",
    "computed keys": f"SELECT COUNT(*) AS n FROM v GROUP BY {_listed('y + #', 100)}",
    "groups of twelve keys": f"SELECT COUNT(*) AS n FROM v GROUP BY {_listed('c#', 12)}",
    "a cube of groups": f"SELECT COUNT(*) AS n, SUM(x) AS s FROM v GROUP BY c6, c7, c8, c9, CUBE ({SIX})",
    "named arguments": "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) "
    + _listed("SUM(x + #, contribution_bounds_per_group => (0, 1#)) AS s#", 99)
    + " FROM v",
}
"""What is asked in SQL, by what there is much of."""

_SUMS = f"SELECT c0, {_listed('SUM(x + #) AS s#', 99)} FROM v GROUP BY c0"
_COUNT = "SELECT COUNT(*) AS n FROM v"


def _counts(number: int) -> list[str]:
    return [f"{_COUNT} WHERE y > {place}" for place in range(number)]


DOORS: dict[str, Door] = {
    "a workload": lambda db: db.workload(_counts(400), epsilon=1).price(),
    "a huge workload": lambda db: db.workload(_counts(10_000), epsilon=1).price(),
    "a workload of one question": lambda db: db.workload([_COUNT] * 400, epsilon=1).price(),
    "a workload with errors": lambda db: db.workload(
        {f"q{place}": one for place, one in enumerate(_counts(200))},
        errors={f"q{place}": 10 + place for place in range(200)},
    ).price(),
    "tables of two columns": lambda db: db.marginals(
        [f"c{at}" for at in range(40)], ways=2, epsilon=1
    ).price(),
    "tables of four columns": lambda db: db.marginals(
        [f"c{at}" for at in range(20)], ways=4, epsilon=1
    ).price(),
    "tables within an error": lambda db: db.marginals([f"c{at}" for at in range(20)], ways=3).within(20),
    "prefixes and ranges": lambda db: db.marginals(
        ["x", "big"],
        ways=2,
        bins={"x": 100, "big": 1000},
        bases={"x": "prefixes", "big": "ranges"},
        epsilon=1,
    ).price(),
    "a long stream": lambda db: db.stream(
        _COUNT, name="d", by="day", every="day", start="2026-01-01", horizon=1_000_000, epsilon=1
    ).priced(),
    "a stream of sums": lambda db: db.stream(
        _SUMS, name="d", by="day", every="day", start="2026-01-01", horizon=3650, epsilon=1
    ).baseline(),
    "a stream of keys": lambda db: db.stream(
        "SELECT name, COUNT(*) AS n FROM v GROUP BY name",
        name="d",
        by="day",
        every="day",
        start="2026-01-01",
        horizon=200_000,
        epsilon=1,
        participation=sf.Participation(periods=500, apart=7),
    ).baseline(),
    "advice": lambda db: db.sql(_SUMS, epsilon=1).advise(error=100),
    "a wanted error": lambda db: db.sql(_SUMS, epsilon=1).within(100),
    "losses": lambda db: db.sql(_SUMS, epsilon=1).losses(epsilon=1).priced(),
    "a hierarchy": lambda db: db.hierarchy([f"c{at}" for at in range(9)], epsilon=1).priced(),
}
"""What is asked otherwise."""


def all_doors() -> Iterator[tuple[str, Door]]:
    """Yield every hostile question with what prices it, and what explains it."""
    for name, text in QUESTIONS.items():
        yield name, lambda db, text=text: db.sql(text, epsilon=1).priced()  # type: ignore[misc]
        yield f"{name}, explained", lambda db, text=text: db.sql(text, epsilon=1).explain()  # type: ignore[misc]
    yield from DOORS.items()
