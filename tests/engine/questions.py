"""Questions without end: SQL from a seeded generator, over the tables of `worlds`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Asked", "questions"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the caps it comes with."""

    text: str
    options: dict[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """What may stand behind FROM, and what can be said about its rows."""

    source: str
    unit: str | None  # how COUNT(DISTINCT unit) is written
    numbers: tuple[str, ...]  # bounded expressions
    values: tuple[str, ...]  # whatever can be counted
    keys: tuple[str, ...]
    tests: tuple[str, ...]
    dates: tuple[str, ...] = ()  # bounded dates and timestamps
    with_: str = ""
    semi: tuple[str, ...] = ()  # conditions that can stand in WHERE alone
    always: str = ""  # a condition without which the question is another


def _visits(alias: str, table: str) -> dict[str, Any]:
    a = alias
    return {
        "numbers": (
            f"{a}.age",
            f"{a}.amount",
            f"{a}.qty",
            f"{a}.big",
            f"{a}.score",
            f"{a}.amount * {a}.qty",
            f"{a}.age + 2 * {a}.qty - {a}.score",
            f"CASE WHEN {a}.member THEN {a}.amount ELSE {a}.qty END",
            f"coalesce({a}.amount, 7.5)",
            f"abs({a}.amount)",
            f"least(greatest({a}.amount / 3, -1), 2)",
            f"{a}.age / 7",
            f"{a}.age % 7",
            f"{a}.age // 7",
            f"least(greatest({a}.big // {a}.qty, -9), 9)",
            f"length(left({a}.word, 3))",
            f"length(substr({a}.word, 2, 4))",
            f"least(greatest(date_diff('day', DATE '2024-01-01', {a}.at), -50), 500)",
            f"isodow({a}.day) + dayofyear({a}.at)",
            f"round({a}.amount)",
            f"CAST({a}.amount AS INTEGER)",
            f"sqrt(abs({a}.amount))",
            f"least(length({a}.word), 3)",
            f"month({a}.day)",
            f"hour({a}.at)",
            f"nullif({a}.qty, 3)",
            f"greatest(least({a}.amount / nullif({a}.qty, 0), 5), -5)",
            f"least(greatest(exp({a}.amount), 0), 9)",
            f"least(greatest(ln({a}.score), -9), 0)",
            f"least(greatest(power({a}.amount, {a}.qty), -3), 3)",
            f"least(greatest(CAST({a}.word AS DOUBLE), 0), 1)",
            f"least(greatest({a}.big + {a}.big, -100), 100)",
            f"dow({a}.at) - week({a}.day)",
            f"ceil({a}.score * 3)",
            f"{a}.price",
            f"{a}.rate",
            f"{a}.code",
            f"{a}.single",
            f"{a}.price * (1 - 0.06)",
            f"{a}.price * {a}.qty",
            f"{a}.price * {a}.rate * 0.5",
            f"round({a}.rate, 2)",
            f"least(greatest({a}.rate + {a}.price, -1), 9.99)",
            f"least(greatest({a}.code * {a}.code, 0), 10)",
            f"{a}.price - 0.5 * {a}.single",
            f"coalesce({a}.price, {a}.qty)",
            f"CAST({a}.price AS DECIMAL(5, 1))",
            f"{a}.price % 7.5",
            f"sign({a}.amount) + trunc({a}.rate)",
            f"least(greatest(log10({a}.amount) - log2({a}.qty), -9), 9)",
            f"trunc({a}.amount) * pi()",
            f"position('a' IN left({a}.word, 9))",
            f"epoch({a}.day) / 1e9 + second({a}.at)",
            f"date_diff('week', DATE '2024-01-03', {a}.day)",
            f"date_diff('second', {a}.day, {a}.at) / 1e5",
            f"length(split_part(lpad({a}.word, 7, 'ä'), 'a', 1))",
            f"({a}.day - DATE '2024-01-01')",
        ),
        "dates": (
            f"{a}.day",
            f"{a}.at",
            f"date_trunc('month', {a}.day)",
            f"CAST({a}.at AS DATE)",
            f"CAST({a}.day AS TIMESTAMP)",
            f"least(greatest({a}.at, TIMESTAMP '2024-03-01 12:00:00'), TIMESTAMP '2024-03-02 00:00:00')",
            f"CASE WHEN {a}.member THEN {a}.day ELSE DATE '2024-05-05' END",
            f"{a}.day + INTERVAL 1 MONTH",
            f"date_add({a}.at, INTERVAL '-3' HOUR)",
            f"last_day({a}.at)",
            f"{a}.day + 7",
        ),
        "values": (
            f"{a}.word",
            f"{a}.amount",
            f"{a}.day",
            f"{a}.member",
            f"{a}.big",
            f"lower({a}.word)",
            f"CAST({a}.score AS TEXT)",
            f"{a}.age",
            f"{a}.code",
            f"{a}.rate",
            f"{a}.price * 2",
            f"CAST({a}.single AS TEXT)",
        ),
        "keys": (
            f"{a}.region",
            f"{a}.member",
            f"{a}.word",
            f"{a}.age",
            f"{a}.score",
            f"{a}.amount",
            f"{a}.day",
            f"{a}.at",
            f"floor({a}.age / 10)",
            f"CASE WHEN {a}.age > 30 THEN 'old' WHEN {a}.age > 5 THEN 'young' ELSE 'none' END",
            f"upper({a}.word)",
            f"month({a}.day)",
            f"date_trunc('month', {a}.day)",
            f"{a}.qty > 3",
            f"{a}.age // 10",
            f"{a}.member IS NOT TRUE",
            f"date_diff('month', {a}.day, {a}.at)",
            f"{a}.big",
            f"{a}.amount / {a}.qty",
            f"substr({a}.word, 1, 1)",
            f"concat({a}.word, {a}.region)",
            f"{a}.word || {a}.region",
            f"replace({a}.word, 'a', 'b')",
            f"CAST({a}.amount AS INTEGER)",
            f"CAST({a}.at AS DATE)",
            f"date_trunc('hour', {a}.at)",
            f"CAST({a}.big AS TEXT)",
            f"CAST({a}.score AS TEXT)",
            f"CAST(-{a}.score * {a}.qty AS TEXT)",
            f"sqrt({a}.amount)",
            f"{a}.code",
            f"{a}.rate",
            f"{a}.price * 0.1",
            f"{a}.single",
            f"CAST({a}.rate * {a}.code AS TEXT)",
            f"monthname({a}.day)",
            f"strftime({a}.at, '%Y-%m %A')",
            f"concat_ws('-', {a}.word, {a}.region)",
            f"regexp_extract({a}.word, '([a-z])(.)?', 1)",
            f"regexp_replace({a}.word, '.?', 'x', 'g')",
            f"rpad({a}.word, 2, '日')",
            f"strptime({a}.word, '%Y')",
            f"sign({a}.amount)",
            f"{a}.at - INTERVAL 1 YEAR",
            f"last_day({a}.day)",
        ),
        "tests": (
            f"{a}.age > 25",
            f"{a}.amount BETWEEN -5 AND 80",
            f"{a}.region IN ('north', 'south')",
            f"{a}.word LIKE 'a%'",
            f"{a}.word IS NOT NULL AND NOT {a}.member",
            f"{a}.day >= '2024-03-01'",
            f"{a}.amount / {a}.qty > 2",
            f"{a}.member OR {a}.score = 0.5",
            f"{a}.big * {a}.big > 0",
            f"{a}.region <> 'east'",
            f"CAST({a}.word AS INTEGER) IS NULL",
            f"CAST({a}.amount AS TEXT) <> 'nan'",
            f"{a}.big + 1 > {a}.qty - {a}.big",
            f"{a}.amount = {a}.amount",
            f"{a}.word IS DISTINCT FROM {a}.region",
            f"{a}.member IS FALSE OR {a}.qty // 2 = 1",
            f"contains({a}.word, 'a') OR starts_with({a}.word, '日')",
            f"{a}.rate BETWEEN 0.06 - 0.01 AND 0.06 + 0.01",
            f"{a}.code = 9007199254740993 OR {a}.rate * {a}.price * 1000 > 1",
            f"{a}.single = 0.1 OR {a}.code + {a}.big > 18446744073709551615",
            f"regexp_matches({a}.word, '^[^a]*$') OR {a}.word ~ 'b|日'",
            f"{a}.member = 1 OR {a}.qty = '3' OR NOT {a}.big",
            f"{a}.day > DATE '2024-04-30' - INTERVAL 30 DAY",
        ),
        "unit": None if table == "lone" else f"{a}.person",
    }


def _origins() -> tuple[_Origin, ...]:
    visits = _visits("v", "visits")
    plain = [
        _Origin(source=f"{name} AS v", **_visits("v", name)) for name in ("visits", "visits", "named", "lone")
    ]
    joined = {
        **visits,
        "keys": (*visits["keys"], "p.zone", "p.zone", "p.size"),
        "numbers": (*visits["numbers"], "p.size * v.qty", "v.amount + p.size"),
    }
    lone = _visits("v", "lone")
    beside = {
        **lone,
        "keys": (*lone["keys"], "c.capital", "c.capital", "c.height"),
        "numbers": (*lone["numbers"], "c.height", "c.height * v.qty", "v.amount + c.height"),
    }
    listed = {
        **visits,
        "keys": (*visits["keys"], "l.zone", "l.zone", "l.size"),
        "numbers": (*visits["numbers"], "l.size * v.qty", "v.amount + l.size"),
    }
    own = {
        **visits,
        "numbers": (*visits["numbers"], "o.cost", "o.cost * v.qty"),
        "keys": (*visits["keys"], "o.place", "o.item"),
        "values": (*visits["values"], "o.item"),
    }
    return (
        *plain,
        _Origin(source="visits AS v JOIN places AS p ON v.region = p.region", **joined),
        _Origin(source="lone AS v JOIN capitals AS c ON v.region = c.region", **beside),
        _Origin(source="lone AS v LEFT JOIN capitals AS c ON c.region = v.region AND v.qty > 2", **beside),
        _Origin(source="visits AS v LEFT JOIN places AS p ON v.region = p.region AND p.size > 1", **joined),
        _Origin(
            source="visits AS v JOIN (VALUES ('north', 'a', 1), ('south', 'b', 2.5), ('south', 'c', NULL))"
            " AS l(region, zone, size) ON v.region = l.region",
            **listed,
        ),
        _Origin(source="visits AS v JOIN orders AS o ON v.person = o.buyer", **own),
        _Origin(source="visits AS v LEFT JOIN orders AS o ON v.person = o.buyer AND v.qty > o.item", **own),
        _Origin(source="(SELECT * FROM visits WHERE age > 25) AS v", **visits),
        _Origin(with_="WITH v AS (SELECT * FROM visits WHERE amount > 0 OR member) ", source="v", **visits),
        _Origin(
            source="visits AS v",
            semi=(
                "EXISTS (SELECT 1 FROM orders AS o WHERE o.buyer = v.person AND o.cost > 10)",
                "v.region IN (SELECT region FROM places)",
                "v.word IN (SELECT w FROM UNNEST(['a', '日本']) AS u(w))",
                "NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.buyer = v.person AND o.cost > 10)",
                "NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.buyer = v.person AND o.cost > 1e300)",  # few
                "NOT EXISTS (SELECT 1 FROM visits AS w WHERE w.person = v.person AND w.amount > 1e300)",
                "NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.buyer = v.person AND o.cost > v.amount)",
                "NOT EXISTS (SELECT 1 FROM orders AS o WHERE v.person = o.buyer) AND v.age > 20",
                "NOT EXISTS (SELECT 1 FROM places AS p WHERE p.region = v.region)",
            ),
            **visits,
        ),
        _Origin(
            source="visits AS v, places AS p, orders AS o",
            always="v.person = o.buyer AND p.region = v.region",
            **{**own, "keys": (*own["keys"], "p.zone")},
        ),
        _Origin(
            source="(SELECT person AS who, region AS r, amount AS x, qty AS i FROM visits"
            " UNION ALL SELECT buyer, place, cost, item FROM orders) AS u",
            unit="u.who",
            numbers=("u.x", "least(greatest(u.i, 0), 5)", "u.x / 2", "abs(u.x) + 1"),
            values=("u.r", "u.i", "u.x"),
            keys=("u.r", "u.i", "u.x"),
            tests=("u.x > 3", "u.r IS NOT NULL", "u.i BETWEEN 1 AND 4"),
        ),
        _Origin(
            with_="WITH u AS (SELECT person, COUNT(*) AS n, SUM(amount) AS s, AVG(age) AS m, MAX(qty) AS q,"
            " COUNT(DISTINCT word) AS d, MIN(score) AS l, MIN(day) AS f, MAX(at) AS e"
            " FROM visits GROUP BY person) ",
            source="u",
            unit="u.person",
            dates=("u.f", "u.e"),
            numbers=(
                "least(u.n, 20)",
                "least(greatest(u.s, -50), 300)",
                "u.m",
                "u.q",
                "least(u.d, 4)",
                "u.l",
            ),
            values=("u.n", "u.q", "u.d", "u.m"),
            keys=("u.n", "least(u.n, 8)", "u.d", "u.q", "u.m", "u.n > 3"),
            tests=("u.n > 1", "u.s > 10", "u.q IS NOT NULL", "u.m < 60"),
        ),
        _Origin(  # what one person's real numbers add up to: the same in every order
            source="(SELECT person AS who, SUM(amount) AS s, AVG(score) AS m, STDDEV_POP(amount) AS d,"
            " MAX(word) AS w, MEDIAN(amount) AS h, CORR(amount, score) AS c, SUM(big) AS b,"
            " REGR_SLOPE(amount, score) AS e"
            " FROM visits GROUP BY person) AS u",
            unit="u.who",
            numbers=(
                "least(greatest(u.s, -9), 9)",
                "u.m",
                "least(u.d, 40)",
                "least(greatest(u.c, -1), 1)",
                "u.h",
            ),
            values=("u.s", "u.m", "u.d", "u.w", "u.h", "u.c", "u.b", "u.e"),
            keys=("u.s", "u.m", "u.d", "u.w", "u.h", "u.c", "u.b", "round(u.s)"),
            tests=("u.s > 1", "u.w <> 'a'", "u.c IS NOT NULL", "u.b > 0"),
        ),
        _Origin(  # which of equal values one person's rows leave must not be seen: 0.0 and -0.0
            source="(SELECT person AS who, MIN(score) AS l, MAX(-score) AS h, MIN(abs(amount) * score) AS p,"
            " MAX(score) AS t, MEDIAN(score * qty) AS m FROM visits WHERE score < 0.3 GROUP BY person) AS u",
            unit="u.who",
            numbers=("u.l", "u.h", "least(length(CAST(u.l AS TEXT)), 4)", "abs(u.t) + u.l"),
            values=("CAST(u.l AS TEXT)", "CAST(u.h AS TEXT)", "u.p", "u.t", "CAST(u.p AS TEXT)"),
            keys=("CAST(u.l AS TEXT)", "CAST(u.h AS TEXT)", "CAST(u.t AS TEXT)", "CAST(-u.l AS TEXT)", "u.m"),
            tests=("CAST(u.l AS TEXT) = '0.0'", "CAST(u.h AS TEXT) LIKE '-%'", "u.l = 0"),
        ),
        _Origin(
            source="(SELECT DISTINCT person AS who, score AS x, abs(amount) * 0 AS y FROM visits) AS u",
            unit="u.who",
            numbers=("u.x", "least(length(CAST(u.x AS TEXT)), 4)"),
            values=("CAST(u.x AS TEXT)", "u.x", "CAST(u.y AS TEXT)"),
            keys=("CAST(u.x AS TEXT)", "u.x", "CAST(u.x * 2 AS TEXT)", "left(CAST(u.x AS TEXT), 1)"),
            tests=("CAST(u.x AS TEXT) <> '-0.0'", "u.x = 0"),
        ),
        _Origin(
            source="(SELECT person AS who, score AS x, COUNT(*) AS n FROM visits GROUP BY who, x) AS u",
            unit="u.who",
            numbers=("u.x", "least(u.n, 3) * u.x"),
            values=("CAST(u.x AS TEXT)", "u.x", "u.n"),
            keys=("CAST(u.x AS TEXT)", "u.x", "CAST(u.x * u.n AS TEXT)", "least(u.n, 4)"),
            tests=("CAST(u.x AS TEXT) <> '-0.0'", "u.n > 1"),
        ),
        _Origin(
            with_="WITH u AS (SELECT person, COUNT(*) AS n, SUM(amount) AS s FROM visits GROUP BY person) ",
            source="orders AS o JOIN u ON u.person = o.buyer",
            unit="o.buyer",
            numbers=("o.cost", "least(u.n, 5) * o.cost", "least(greatest(u.s, 0), 9)"),
            values=("o.item", "u.n", "u.s"),
            keys=("u.n", "u.s", "o.item", "o.place"),
            tests=("u.n > 1", "o.cost > 3", "u.s > o.cost"),
        ),
        _Origin(
            source="(SELECT person AS who, region AS r, month(day) AS mon, COUNT(*) AS n, SUM(qty) AS s"
            " FROM visits WHERE amount > -10 GROUP BY person, region, mon HAVING COUNT(*) < 50) AS u",
            unit="u.who",
            numbers=("least(u.n, 20)", "least(u.s, 40)", "least(u.n, 3) * u.mon"),
            values=("u.n", "u.r", "u.mon"),
            keys=("u.r", "u.mon", "u.n", "least(u.n, 4)"),
            tests=("u.n > 1", "u.r <> 'north'", "u.mon IN (1, 2, 3)"),
        ),
    )


def _aggregate(source: random.Random, origin: _Origin) -> str:
    number = source.choice(origin.numbers)
    other = source.choice(origin.numbers)
    moment = source.choice(origin.dates or origin.numbers)
    made = source.choice(
        [
            "COUNT(*)",
            f"COUNT({source.choice(origin.values)})",
            f"COUNT(DISTINCT {source.choice(origin.values)})",
            "COUNT(*)" if origin.unit is None else f"COUNT(DISTINCT {origin.unit})",
            f"SUM({number})",
            f"SUM({number})",
            f"SUM(DISTINCT CAST({number} AS BIGINT))",
            f"MODE({source.choice(origin.tests)})",
            f"MODE(least(greatest(CAST({other} AS BIGINT), -9), 40))",
            f"SUM({number}, contribution_bounds_per_group => (-7, 40.5))",
            f"SUM({number}, contribution_bounds_per_row => (-2, 30))",
            f"AVG({number})",
            f"VAR_SAMP({number})",
            f"STDDEV_POP({number})",
            f"COVAR_POP({number}, {other})",
            f"CORR({number}, {other})",
            f"REGR_SLOPE({number}, {other})",
            f"REGR_INTERCEPT({number}, {other})",
            f"REGR_R2({number}, {other})",
            f"MEDIAN({number})",
            f"QUANTILE({number}, [0.1, 0.9])",
            f"MIN({number})",
            f"MAX({number})",
            f"HISTOGRAM({number})",
            f"HISTOGRAM({source.choice(origin.tests)})",
            f"MEDIAN({moment})",
            f"QUANTILE({moment}, [0.1, 0.9])",
            f"MAX({moment})",
            f"HISTOGRAM({moment})",
            "COUNT(*)" if origin.unit is None else _sampled(source, origin, number, other),
        ]
    )
    if source.random() < 0.25 and "contribution" not in made:
        made += f" FILTER (WHERE {source.choice(origin.tests)})"
    return made


def _sampled(source: random.Random, origin: _Origin, number: str, other: str) -> str:
    one = source.choice(["KURTOSIS", "SKEWNESS", "MAD", "GEOMEAN", "MAX", "MEDIAN", "STDDEV"])
    some = [f"{one}({number})", f"ENTROPY({source.choice(origin.values)})", f"CORR({number}, {other})"]
    return f"SAMPLE_AND_AGGREGATE({source.choice(some)}, -2, 6.5, blocks => {source.randint(2, 9)})"


def _chosen(source: random.Random, origin: _Origin) -> str | None:
    """Return a question for the declared group of the largest or smallest number, in all or in each part."""
    declared = [key for key in origin.keys if key.endswith((".region", ".member")) and " " not in key]
    if not declared:
        return None
    keys = source.sample(declared, min(len(declared), source.choice([1, 2, 2])))
    number = source.choice(origin.numbers)
    scores = [
        "COUNT(*)",
        f"COUNT(DISTINCT {origin.unit or source.choice(origin.values)})",
        f"SUM({number})",
        f"SUM({number}) FILTER (WHERE {source.choice(origin.tests)})",
        f"SUM(DISTINCT CAST({number} AS BIGINT))",
        f"SUM({number}, contribution_bounds_per_group => (-7, 40.5))",
    ]
    listed = ", ".join(f"{key} AS key{at}" for at, key in enumerate(keys))
    where = f" WHERE {origin.always}" if origin.always else ""
    inner = f"{origin.with_}SELECT {listed}, {source.choice(scores)} AS score FROM {origin.source}{where}"
    name = source.choice(["ARG_MAX", "ARG_MIN"])
    outer, by = ("key0, ", " GROUP BY key0") if len(keys) > 1 and source.random() < 0.8 else ("", "")
    return (
        f"SELECT {outer}{name}(key{len(keys) - 1}, score) AS best"
        f" FROM ({inner} GROUP BY {', '.join(keys)}) AS g{by}"
    )


def questions(seed: int, number: int) -> list[Asked]:
    """Return so many questions, none of which is to be refused."""
    source = random.Random(seed)
    origins = _origins()
    made = []
    for place in range(number):
        origin = origins[place % len(origins)]
        keys = source.sample(origin.keys, source.choice([0, 1, 1, 1, 2, 2]))
        if len(keys) == 2 and source.random() < 0.5:  # more often than not, all groups are declared
            declared = [key for key in origin.keys if key.endswith((".region", ".member", ".zone"))]
            keys = source.sample(declared, 2) if len(declared) >= 2 else keys
        keys = list(dict.fromkeys(keys))
        listed = [f"{key} AS key{at}" for at, key in enumerate(keys)]
        listed += [f"{_aggregate(source, origin)} AS agg{at}" for at in range(source.choice([1, 1, 2, 3]))]
        text = f"{origin.with_}SELECT {', '.join(listed)} FROM {origin.source}"
        if source.random() < (0.8 if origin.semi else 0.5):
            test = source.choice(origin.semi or origin.tests)
            text += f" WHERE {origin.always} AND ({test})" if origin.always else f" WHERE {test}"
        elif origin.always:
            text += f" WHERE {origin.always}"
        if keys:
            named = ", ".join(f"key{at}" for at in range(len(keys)))
            ways = [", ".join(keys), named, "ALL", f"ROLLUP({named})", f"CUBE({named})"]
            text += f" GROUP BY {source.choice(ways)}"
        options = {
            "max_groups": source.randint(1, 4),
            "max_rows": source.randint(1, 4),
            "max_rows_total": (None, None, 3)[len(text) % 3],
            "max_distinct": source.choice([None, 1, 2, 3]),
            "noise": source.choice([None, "laplace", "gaussian"]),
        }
        chosen = _chosen(random.Random(f"{seed} {place}"), origin) if place % 6 == 5 else None
        made.append(Asked(chosen or text, options))
    return made
