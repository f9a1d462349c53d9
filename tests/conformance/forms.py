"""Questions of every form that docs/queries.md lists, over the tables of `tests.engine.worlds`.

Expressions are every function of every kind that it could take: an operator of seven kinds of numbers has
49 forms. What a kind does not allow is refused by the plan, before any engine is asked. Aggregates are every
one of every kind; forms are written by hand, in `forms.sql`. `ODD` has tables with names that need quotes,
with no row or one, and with values at the ends of their types.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.catalog.identifiers import identifier
from tests.engine.questions import Asked

__all__ = ["AGGREGATES", "CAPS", "EXPRESSIONS", "FORMS", "ODD", "ODD_FORMS", "ODD_ROWS"]

CAPS: dict[str, Any] = {"max_groups": 3, "max_rows": 4}
WHOLE = ("v.qty", "v.big", "v.code")
NUMBERS = (*WHOLE, "v.amount", "v.single", "v.price", "v.rate")
TEXTS = ("v.word", "v.region")
DATES = ("v.day", "v.at")
TRUTH = ("v.member",)
ALL = (*NUMBERS, *TEXTS, *DATES, *TRUTH)
TYPES = (
    "TINYINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL(15, 2)",
    "DECIMAL(38, 10)", "TEXT", "BOOLEAN", "DATE", "TIMESTAMP",
)  # fmt: skip
PARTS = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "DOW", "ISODOW", "HOUR", "MINUTE", "SECOND",
    "EPOCH",
)  # fmt: skip
UNITS = (
    "second", "minute", "hour", "day", "week", "month", "quarter", "year",
)  # fmt: skip

_ONE_NUMBER = (
    "-{}", "ABS({})", "CEIL({})", "FLOOR({})", "ROUND({})", "ROUND({}, 2)", "ROUND({}, -1)", "TRUNC({})",
    "TRUNC({}, 1)", "SIGN({})", "SQRT({})", "EXP({})", "LN({})", "LOG({})", "LOG10({})", "LOG2({})",
    "POWER({}, 2)", "POWER({}, 0.5)", "LOG(2, {})", "{} * PI()", "{} // 3", "{} % 3", "{} / 0", "{} % 0",
    "{} BETWEEN -1 AND 3.5", "{} IN (0, 0.1, 7)",
)  # fmt: skip
_ONE_TEXT = (
    "LOWER({})", "UPPER({})", "TRIM({})", "LTRIM({})", "RTRIM({})", "TRIM({}, 'ab')", "LENGTH({})",
    "SUBSTR({}, 2)", "SUBSTR({}, -2, 1)", "SUBSTR({}, 0, 2)", "LEFT({}, 1)", "LEFT({}, -1)", "RIGHT({}, 1)",
    "RIGHT({}, -1)", "REPLACE({}, 'a', 'bb')", "REPLACE({}, '', 'x')", "CONCAT({}, NULL, 'x')",
    "CONCAT_WS('-', {}, NULL, 'y')", "{} || 'x'", "CONTAINS({}, 'a')", "CONTAINS({}, '')",
    "STARTS_WITH({}, 'a')", "ENDS_WITH({}, 'h')", "{} LIKE '%o_t%'", "{} LIKE 'a\\%'", "{} ILIKE 'N%'",
    "{} NOT LIKE ''", "POSITION('o' IN {})", "STRPOS({}, '')", "INSTR({}, '本')", "SPLIT_PART({}, 'o', 1)",
    "SPLIT_PART({}, 'o', 2)", "SPLIT_PART({}, 'o', -1)", "LPAD({}, 4, '日')", "RPAD({}, 4, 'ab')",
    "REGEXP_MATCHES({}, '[no]+')", "{} ~ '^.$'", "REGEXP_FULL_MATCH({}, '[a-z]*')",
    "REGEXP_EXTRACT({}, '(.)o', 1)", "REGEXP_REPLACE({}, '[aeiou]', '-', 'g')",
    "REGEXP_REPLACE({}, 'o', 'x')", "{} < 'b'", "{} > ' '", "{} = 'A'", "{} = 'a '",
    "{} IN ('a', '', '日本')", "STRPTIME({}, '%Y-%m-%d')",
)  # fmt: skip
_ONE_DATE = (
    *(f"{part}({{}})" for part in PARTS),
    *(f"EXTRACT({part} FROM {{}})" for part in PARTS[:9:2]),
    *(f"DATE_TRUNC('{unit}', {{}})" for unit in UNITS),
    *(f"DATE_DIFF('{unit}', {{}}, v.at)" for unit in UNITS),
    "{} + INTERVAL 1 MONTH", "{} + INTERVAL '-1' YEAR", "{} - INTERVAL 90 DAY", "{} + INTERVAL 36 HOUR",
    "{} + INTERVAL 7 WEEK", "DATE_PART('month', {})", "LAST_DAY({})", "MONTHNAME({})", "DAYNAME({})",
    "STRFTIME({}, '%d/%m/%Y')", "STRFTIME({}, '%H:%M:%S %j')", "DATE_ADD({}, INTERVAL 1 MONTH)", "{} + 7",
    "{} - 800000", "{} - DATE '2024-01-01'", "{} >= '2024-02-01'", "{} < TIMESTAMP '2024-03-01 12:00:00'",
    "{} BETWEEN '0001-01-01' AND '2024-06-01'",
)  # fmt: skip
_ANY = (
    "CASE WHEN v.member THEN {} END", "IF(v.qty > 3, {}, NULL)", "COALESCE({}, {})", "NULLIF({}, {})",
    "{} IS NULL", "{} IS DISTINCT FROM {}", "{} = {}", "{} IN (NULL)", "GREATEST({}, {})",
    "LEAST({}, NULL)",
)  # fmt: skip
_MORE = (
    "CAST(-v.score AS TEXT)", "CAST(v.amount * 1e300 AS TEXT)", "CAST(v.price * 3 AS TEXT)",
    "CAST(v.big + v.code AS TEXT)", "NOT v.member", "NOT NULL",
    "NULL AND v.member", "CASE WHEN NULL THEN v.qty ELSE 1 END", "v.member AND v.qty > 2", "v.member OR NULL",
    "v.member IS NOT TRUE", "v.member = 1", "NOT v.qty", "v.word < v.region", "v.word || v.region",
    "CONCAT(v.word, v.qty, v.member)", "v.day = v.at", "v.at - v.day",
)  # fmt: skip


def _expressions() -> Iterator[str]:
    yield from ALL
    for operator in ("+", "-", "*", "/", "//", "%", "<", "=", "IS DISTINCT FROM"):
        yield from (f"{a} {operator} {b}" for a, b in itertools.product(NUMBERS, NUMBERS))
    for name in ("LEAST", "GREATEST", "POWER", "COALESCE"):
        yield from (f"{name}({a}, {b})" for a, b in itertools.product(NUMBERS, NUMBERS))
    for forms, columns in ((_ONE_NUMBER, NUMBERS), (_ONE_TEXT, TEXTS), (_ONE_DATE, DATES), (_ANY, ALL)):
        yield from (form.format(*[one] * 2) for form in forms for one in columns)
    yield from (f"CAST({one} AS {kind})" for one in ALL for kind in TYPES)
    yield from _MORE


EXPRESSIONS = tuple(dict.fromkeys(_expressions()))

_OF_ONE = (
    "COUNT({})", "COUNT(DISTINCT {})", "SUM({})", "SUM(DISTINCT {})", "AVG({})", "VAR_POP({})",
    "VAR_SAMP({})", "VAR({})", "STDDEV_POP({})", "STDDEV_SAMP({})", "STD({})", "MEDIAN({})",
    "QUANTILE({}, 0.9)", "QUANTILE({}, [0.1, 0.5, 0.9])", "QUANTILE_CONT({}, 0.25)",
    "PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY {})", "MIN({})", "MAX({})", "HISTOGRAM({})", "MODE({})",
    "SUM({}) FILTER (WHERE v.member)", "COUNT(DISTINCT {}) FILTER (WHERE v.qty < 5)",
    "AVG({}) FILTER (WHERE v.word > 'a')",
)  # fmt: skip
_OF_TWO = ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")
_PAIRS = ("v.age, v.amount", "v.price, v.single", "v.rate, v.score")

AGGREGATES = (
    "COUNT(*)",
    "COUNT(DISTINCT v.person)",
    *(form.format(one) for form in _OF_ONE for one in ("v.age", "v.score", *ALL)),
    *(f"{name}({pair})" for name in _OF_TWO for pair in _PAIRS),
    "HISTOGRAM(v.age > 30)",
    "SUM(v.member)",
    "SUM(LEAST(GREATEST(v.amount, 0), 500))",
    "SUM(v.amount, contribution_bounds_per_group => (-7, 40.5))",
    "SUM(v.qty, contribution_bounds_per_row => (0, 3))",
)

# of all rows of one person
_OWN_NUMBERS = (
    "COUNT(*)", "COUNT(word)", "COUNT(DISTINCT word)", "SUM(amount)", "SUM(big)", "SUM(price)", "SUM(rate)",
    "SUM(code)", "AVG(amount)", "AVG(qty)", "AVG(price)", "MIN(amount)", "MAX(qty)", "MIN(rate)",
    "MAX(single)", "SUM(DISTINCT qty)", "STDDEV_POP(amount)", "STDDEV(age)", "VAR_SAMP(price)",
    "MEDIAN(amount)", "QUANTILE_CONT(age, 0.3)", "CORR(amount, score)", "COVAR_POP(amount, age)",
    "REGR_SLOPE(age, qty)", "REGR_R2(age, qty)", "COUNT(*) FILTER (WHERE member)",
    "SUM(amount) FILTER (WHERE qty > 5)",
)  # fmt: skip
_OWN_KEYS = (
    "COUNT(*)", "MIN(word)", "MAX(word)", "MIN(day)", "MAX(at)", "MIN(member)", "MAX(member)", "MIN(score)",
    "SUM(rate)", "SUM(single)", "AVG(score)", "SUM(amount)", "MAX(big)", "MAX(code)", "MIN(price)",
)  # fmt: skip
_OWN = "(SELECT person, {} AS a FROM visits GROUP BY person) AS u"
_BY_WORD = "SELECT v.word, COUNT(*), SUM(v.qty), COUNT(DISTINCT v.amount) FROM visits AS v GROUP BY v.word"
_BY_REGION = "SELECT v.region, COUNT(*), AVG(v.amount) FROM visits AS v GROUP BY v.region"


def _forms() -> Iterator[Asked]:
    written = (Path(__file__).parent / "forms.sql").read_text(encoding="utf-8")
    yield from (Asked(text.strip(), CAPS) for text in written.split(";\n") if text.strip())
    for one in _OWN_NUMBERS:
        yield Asked(f"SELECT COUNT(u.a), SUM(LEAST(GREATEST(u.a, -9), 99)) FROM {_OWN.format(one)}", CAPS)
    for one in _OWN_KEYS:
        yield Asked(f"SELECT u.a, COUNT(*) FROM {_OWN.format(one)} GROUP BY u.a", CAPS)
    total = {"max_groups": 2, "max_rows": 2, "max_rows_total": 3}
    for text in (_BY_WORD, _BY_REGION):
        for options in ({**CAPS, "max_distinct": 2}, total, {**CAPS, "min_units": 3}):
            yield Asked(text, options)
    yield Asked(_BY_REGION, {**CAPS, "others": True})


FORMS = tuple(_forms())

# -- tables with odd names, sizes and values ---------------------------------------------------

_ODD = 'Öd"d ta.ble'
_PEOPLE = Unit(name="person", column="the person")
_FIELDS = (
    Field("the person", Kind.INTEGER),
    Field("select", Kind.TEXT, one_of("a", "A", "a ", "ä", "a\u0308", "", "O'Neil", 'say "x"', "\\", "%")),
    Field("Group", Kind.INTEGER, between(-(2**63), 2**63 - 1)),
    Field("日本 \U0001f3a8", Kind.REAL, between(-1e60, 1e60)),
    Field('q"uo`te', Kind.decimal(38, 0), between(Decimal(1 - 10**38), Decimal(10**38 - 1))),
    Field("tiny", Kind.decimal(38, 38), between(Decimal(-1), Decimal(1))),
    Field("$1", Kind.DATE, between(datetime.date(1900, 1, 1), datetime.date(2100, 12, 31))),
    Field("a;--", Kind.TIMESTAMP, between(datetime.date(1900, 1, 1), datetime.date(2100, 12, 31))),
    Field("NULL", Kind.BOOLEAN, one_of(True, False)),
    Field("x.y", Kind.FLOAT, between(-3, 3)),
)
ODD = Catalog(
    (
        Table(name=_ODD, fields=_FIELDS, unit=_PEOPLE),
        Table(name="empty", fields=_FIELDS, unit=_PEOPLE),
        Table(name="One", fields=_FIELDS, unit=_PEOPLE),
        Table(
            name="group",
            fields=(Field("select", Kind.TEXT), Field("ORDER", Kind.TEXT, one_of("x", "X", "x "))),
            unit=None,
        ),
        Table(name="nothing", fields=(Field("select", Kind.TEXT), Field("limit", Kind.INTEGER)), unit=None),
    )
)
_NAMES = [field.name for field in _FIELDS]


def _odd_rows() -> Iterator[dict[str, Any]]:
    """Yield rows with the ends of all types, each beside others in another row."""
    day, moment = datetime.date, datetime.datetime
    ends = (0, 1, -1, 10**38 - 1, 1 - 10**38)
    values: dict[str, tuple[Any, ...]] = {
        "the person": (*range(1, 38), None),
        "select": (
            *("a", "A", "a ", "ä", "a\u0308", "", "O'Neil", 'say "x"', "\\", "%", None),
            *("b\n\t", "\u00e9\u00df\u0130", "\U0001f3a8"),
        ),
        "Group": (0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, None),
        "日本 \U0001f3a8": (0.0, -0.0, 1e60, -1e300, math.inf, -math.inf, math.nan, 5e-324, 0.1, None),
        'q"uo`te': (*map(Decimal, ends), None),
        "tiny": (*(Decimal(f"{one}e-38") for one in ends), None, None),
        "$1": (
            *(day(1, 1, 1), day(9999, 12, 31), day(1582, 10, 10), day(1900, 2, 28), day(2000, 2, 29)),
            *(day(1969, 12, 31), None),
        ),
        "a;--": (
            *(moment(1, 1, 1), moment(9999, 12, 31, 23, 59, 59, 999999)),
            *(moment(1969, 12, 31, 23, 59, 59, 1), None),
        ),
        "NULL": (True, False, None),
        "x.y": (0.1, -0.0, 0.0, -2.5, math.nan, math.inf),
    }
    for place in range(150):
        yield {
            name: some[(place * step) % len(some)]
            for step, (name, some) in enumerate(values.items(), start=1)
        }


ODD_ROWS: dict[str, list[dict[str, Any]]] = {
    _ODD: list(_odd_rows()),
    "empty": [],
    "One": list(_odd_rows())[1:2],
    "group": [
        {"select": one, "ORDER": two}
        for one, two in (("a", "x"), ("A", "X"), ("a ", "x "), ("ä", "x"), (None, "x"))
    ],
    "nothing": [],
}


_ODD_TEXTS = (
    'SELECT g."ORDER", COUNT(*) FROM {} AS t JOIN "group" AS g ON t."select" = g."select" GROUP BY g."ORDER"',
    'SELECT COUNT(*) FROM {} AS t JOIN nothing AS g ON t."select" = g."select"',
    'SELECT COUNT(*) FROM {} AS t LEFT JOIN nothing AS g ON t."select" = g."select"',
    'SELECT COUNT(*) FROM {} AS t JOIN "empty" AS e ON t."the person" = e."the person"',
    'SELECT "Group" // 7 AS "a""b", COUNT(*) AS "n n" FROM {} GROUP BY "a""b"',
    """SELECT COUNT(*) FROM {} WHERE "select" IN ('O''Neil', 'say "x"', '\\', '%', 'a\u0308')""",
    """SELECT COUNT(*) FROM {} WHERE "select" = 'a' AND "NULL" IS NOT NULL""",
    'SELECT n, COUNT(*) FROM (SELECT "the person" AS p, COUNT(*) AS n FROM {} GROUP BY p) AS u GROUP BY n',
    *(
        f"SELECT {form} FROM {{}}{rest}".replace("@", identifier(name))
        for form, rest in (
            ("@, COUNT(*)", " GROUP BY @"),
            ("COUNT(DISTINCT @), COUNT(@)", ""),
            ("SUM(@), AVG(@)", ""),
            ("MEDIAN(@)", ""),
        )
        for name in _NAMES[1:]
    ),
)
ODD_FORMS = tuple(
    Asked(text.format(identifier(name)), CAPS) for name in (_ODD, "empty", "One") for text in _ODD_TEXTS
)
