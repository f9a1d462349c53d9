"""Every expression has the value on Spark that it has on DuckDB; a few run here, thousands in the soak."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import Dialect, Writer
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.spark import dialect as module
from sfumato.backends.spark.dialect import SETTINGS, SPARK
from sfumato.catalog import Kind
from sfumato.core.grid import Grid
from sfumato.errors import Unsupported
from sfumato.plan.functions import FUNCTIONS, call
from sfumato.plan.tree import Aggregate, Cast, ColumnRef, Literal
from tests.conformance import test_readings
from tests.conformance.spark_session import Spark
from tests.conformance.test_expressions import (
    NUMBERS,
    PLACES,
    REALS,
    TEXTS,
    WHOLE,
    A,
    B,
    Engines,
    P,
    S,
    _arithmetic,
    _engines,
    _on_texts,
    _real,
    _text,
    over_sides,
    planned,
)
from tests.conformance.test_regexps import _asked, _patterns, _texts
from tests.engine.expressions import COLUMNS, create
from tests.engine.test_differential import SEEDS, Sides, made

REFUSED = {"exp", "ln", "log", "log10", "log2", "power", "strptime"}
# What a session may have set, and what nothing may depend on.
ODD = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.duplicateBetweenInput": "true",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.optimizer.inSetConversionThreshold": "2",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
NARROW = {
    **COLUMNS,
    "h": ("DECIMAL(38,0)", COLUMNS["h"][1][:6]),  # Spark has no whole numbers of 128 bits
    "u8": ("DECIMAL(20,0)", COLUMNS["u8"][1]),
}


class SparkEngines(Engines):
    """DuckDB and Spark over the same rows."""

    dialect = SPARK
    together = 60

    def _copy(self, rows: Sequence[tuple[Any, ...]]) -> None:
        kinds = self._kinds.values()
        listed = (f"({place}, {', '.join(map(_written, row, kinds))})" for place, row in enumerate(rows))
        names = ", ".join(("place", *self.names.values()))
        made = self._other.sql(f"SELECT * FROM VALUES {', '.join(listed)} AS v({names})")
        made.createOrReplaceTempView("t")

    def _answer(self, listed: list[str], rows: str) -> tuple[list[tuple[Any, ...]], list[str]]:
        named = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(listed))
        found = self._other.sql(f"SELECT {named} FROM {rows}")
        types = [one.dataType.simpleString().upper() for one in found.schema.fields]
        return [tuple(row) for row in found.collect()], types


def _written(value: Any, kind: Kind) -> str:
    if isinstance(value, float) and math.isnan(value):
        return f"'NaN'::{SPARK.sql_type(kind)}"
    return SPARK.constant(value, kind)


@pytest.fixture(scope="module")
def session(spark: Spark) -> Any:
    """A session with odd settings, and those that the dialect needs."""
    made = spark.session.newSession()
    for name, value in {**ODD, **INTERPRETED, **SETTINGS}.items():
        made.conf.set(name, value)
    return made


@pytest.fixture
def compiled(session: Any) -> Iterator[Any]:
    """The same session, which compiles what it runs, as sessions do."""
    for name in INTERPRETED:
        session.conf.unset(name)
    yield session
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)


# -- generated expressions ------------------------------------------------------------------


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    return Sides(tmp_path_factory.mktemp("spark"), create("t", NARROW))


def test_some_generated_expressions_have_one_value(sides: Sides, session: Any) -> None:
    nodes = list(planned(sides, made(SEEDS[0])[::8]))
    found = over_sides(SparkEngines, session, sides).compare(nodes)
    assert not found.wrong
    assert found.same >= 0.6 * len(nodes)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_generated_expressions_have_one_value(sides: Sides, compiled: Any, seed: int) -> None:
    nodes = list(planned(sides, made(seed)))
    found = over_sides(SparkEngines, compiled, sides).compare(nodes)
    assert not found.wrong
    assert found.same >= 0.6 * len(nodes)


def test_what_is_refused_is_refused_by_name() -> None:
    assert set(FUNCTIONS) - set(SPARK.functions) == REFUSED
    assert set(SPARK.functions) <= set(FUNCTIONS)
    huge = Literal(value=2**127 - 1, kind=Kind.HUGEINT)
    for node in (
        huge,
        call("*", (P, call("*", (huge, P)))),
        call("ln", (A,)),
        Cast(operand=A, kind=Kind.TEXT),
    ):
        with pytest.raises(Unsupported, match=r"38 digits|`ln`|from real to text"):
            SPARK.expression(node, {"a": "a", "p": "p"})
    with pytest.raises(Unsupported, match="128 bits"):
        SPARK.normalised("h", Kind.HUGEINT)


# -- extremes -------------------------------------------------------------------------------


def test_extreme_binary_numbers_have_one_value(session: Any) -> None:
    rows = list(itertools.product(NUMBERS[::2], NUMBERS[1::2]))
    found = _engines(session, rows, {"a": Kind.REAL, "b": Kind.REAL}, SparkEngines).compare(
        list(_arithmetic())
    )
    assert not found.wrong and found.refused == 6


def test_texts_and_places_in_them_have_one_value(session: Any) -> None:
    rows = list(itertools.product(TEXTS, PLACES[::2], PLACES[::3]))
    kinds = {"s": Kind.TEXT, "p": Kind.INTEGER, "q": Kind.INTEGER}
    asked = [
        *_on_texts(),
        *(call("like", (S, _text(one))) for one in ("a%c%e", "%b%d%", "_%\\", "%日_", "a_%_e")),
    ]
    found = _engines(session, rows, kinds, SparkEngines).compare(asked)
    assert not found.wrong and not found.refused


EXACT = {
    "p": (Kind.INTEGER, (0, 1, -7, 2**63 - 1, -(2**63), 10**18 + 5, 5 * 10**18, None)),
    "d": (Kind.decimal(15, 2), ("0", "0.05", "-9999999999999.99", "2.50", None)),
    "w": (
        Kind.decimal(38, 10),
        ("0", "9999999999999999999999999999.9999999999", "-0.0000000001", "0.5", None),
    ),
    "v": (Kind.decimal(38, 0), ("0", "9" * 38, "-" + "9" * 38, "4" + "9" * 37, "-5", "18446744073709551617")),
}


def _exact() -> Iterator[Any]:
    columns = {name: ColumnRef(name=name, kind=kind) for name, (kind, _) in EXACT.items()}
    for one in columns.values():
        yield from (call(name, (one,)) for name in ("neg", "abs", "floor", "ceil", "round", "trunc", "sign"))
        for places in (-40, -38, -37, -19, -3, 1, 9):
            digits = Literal(value=places, kind=Kind.INTEGER)
            yield from (
                call(name, (one, digits)) for name in ("round", "trunc") if places > -19 or name == "round"
            )
        targets = (Kind.INTEGER, Kind.REAL, Kind.FLOAT, Kind.TEXT, Kind.BOOLEAN, Kind.decimal(4, 1))
        yield from (Cast(operand=one, kind=kind) for kind in targets if kind is not one.kind)
        yield Cast(operand=one, kind=Kind.INTEGER, limits=(-128, 127))
        yield from (call(name, (one, columns["p"])) for name in "+-*%")
        yield from (call(name, (one, one)) for name in ("+", "-", "/", "%", "nullif"))
    yield call("//", (columns["p"], call("-", (columns["p"], Literal(value=1, kind=Kind.INTEGER)))))
    yield from (call("//", (columns["p"], Literal(value=one, kind=Kind.INTEGER))) for one in (0, -1, 3))


def test_exact_numbers_of_all_digits_have_one_value(session: Any) -> None:
    rows = [
        tuple(Decimal(one) if isinstance(one, str) else one for one in row)
        for row in itertools.zip_longest(*(values * 3 for _, values in EXACT.values()))
    ]
    kinds = {name: kind for name, (kind, _) in EXACT.items()}
    found = _engines(session, rows, kinds, SparkEngines).compare(list(_exact()))
    assert not found.wrong and not found.refused


WIDTHS = ((4, 1), (15, 2), (38, 10), (38, 0), (38, 37), (23, 0), (30, 25))


def test_numbers_of_32_bits_are_rounded_before_they_are_computed_with(session: Any) -> None:
    """The optimiser passes over a cast to FLOAT that a wider one follows."""
    singles = [Cast(operand=one, kind=Kind.FLOAT) for one in (ColumnRef(name="f", kind=Kind.REAL), P)]
    singles += [Cast(operand=ColumnRef(name="d", kind=Kind.decimal(15, 2)), kind=Kind.FLOAT)]
    asked = [call(name, both) for name in "+-*/%" for both in itertools.permutations(singles, 2)]
    asked += [Cast(operand=one, kind=kind) for one in singles for kind in (Kind.REAL, Kind.decimal(38, 10))]
    asked += [call(name, (one,)) for name in ("sqrt", "round", "floor") for one in singles]
    whole = (0, 3, 2**63 - 1, 9007199254740993, 10**18 + 5, 123456789012345678, None)
    rows = list(itertools.product((0.1, -2.5, 16777217.0, 1.0), whole, (Decimal("9999999999999.99"), None)))
    kinds = {"f": Kind.REAL, "p": Kind.INTEGER, "d": Kind.decimal(15, 2)}
    found = _engines(session, rows, kinds, SparkEngines).compare(asked)
    assert not found.wrong and not found.refused


@pytest.mark.soak
def test_decimals_of_binary_numbers_have_one_value(session: Any) -> None:
    """All digits of a double count, and the ends are doubles: 1e38 is less than 10^38, and too large."""
    far = (
        1e38,
        -1e38,
        9.99e37,
        1e23,
        -1e22,
        2.0**126,
        2.0**64,
        2.0**63,
        0.05,
        0.15,
        999.95,
        1.2345678901234567e29,
    )
    singles = Cast(operand=A, kind=Kind.FLOAT)
    asked = [Cast(operand=one, kind=Kind.decimal(*width)) for one in (A, singles) for width in WIDTHS]
    asked += [Cast(operand=one, kind=kind) for one in asked for kind in (Kind.REAL, Kind.FLOAT)]
    rows = [(one,) for one in (*NUMBERS, *far)]
    found = _engines(session, rows, {"a": Kind.REAL}, SparkEngines).compare(asked)
    assert not found.wrong and not found.refused


def test_integers_of_rows_are_the_same(session: Any) -> None:
    """What a grid of any step, and halves, make of extreme numbers."""
    engines = _engines(session, [(one,) for one in NUMBERS], {"a": Kind.REAL}, SparkEngines)
    grid = Grid(step=Fraction(1, 10), lower=Fraction(-7, 10), upper=Fraction(12, 10))
    begins = [float((Fraction(i) - Fraction(1, 2)) * grid.step) for i in range(-6, 13)]

    def asked(dialect: Dialect) -> list[str]:
        near = dialect.clamped("a", dialect.constant(-(2.0**52)), dialect.constant(2.0**52))
        scaled = [dialect.scaled("a", one) for one in (-1000, -600, -20, -1, 0, 1, 30, 600, 1000)]
        return [*scaled, dialect.half_rounded(near), dialect.nearest_point("a", grid, begins)]

    theirs, _ = engines._answer(asked(SPARK), engines._rows(SPARK))
    ours = engines._duckdb.execute(
        f"SELECT {', '.join(asked(DUCKDB))} FROM {engines._rows(DUCKDB)}"
    ).fetchall()
    assert ours == theirs


def test_odd_texts_are_themselves(session: Any) -> None:
    """Quotes, backslashes, variables, NUL and letters of all planes, as constants."""
    odd = (
        "it's",
        '"',
        "a\\nb",
        "${spark.sql.ansi.enabled}",
        "a\0b",
        "\u2028😀",
        "`",
        "%",
        "--",
        "\n",
        "日",
        "$",
    )
    found = session.sql(f"SELECT {', '.join(map(SPARK.text, odd))}").collect()[0]
    assert tuple(found) == odd


def test_texts_are_read_alike(session: Any) -> None:
    """As numbers and as moments, also texts that are almost one."""
    for texts, kinds in (
        (test_readings.NUMBERS, (Kind.INTEGER, Kind.REAL, Kind.FLOAT)),
        (test_readings.MOMENTS, (Kind.DATE, Kind.TIMESTAMP)),
    ):
        rows = list(test_readings._changed(texts, random.Random(7), 300))
        engines = _engines(session, rows, {"s": Kind.TEXT}, SparkEngines)
        found = engines.compare([Cast(operand=S, kind=kind) for kind in kinds])
        assert not found.wrong and not found.refused


FORMATS = (
    *(f"%{one}" for one in "aAbBcdfGgHhIjmMnpSTuUVwWxXyY%"), *(f"%-{one}" for one in "dmHIMSjy"),
    "%d/%m/%y %H:%M:%S.%f", "plain", "%%Y%%", "é%Y日",
)  # fmt: skip


def test_moments_are_written_alike(session: Any) -> None:
    """Every letter of a format, around the turn of years."""
    ends = ((1, 1, 0), (1, 2, 11), (1, 4, 12), (12, 28, 13), (12, 30, 23), (12, 31, 1))
    moments = [datetime.datetime(year, *end, 7, 59, 1) for year in range(2015, 2021) for end in ends]
    moments += [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)]
    moment = ColumnRef(name="m", kind=Kind.TIMESTAMP)
    rows = [(one,) for one in (*moments, None)]
    engines = _engines(session, rows, {"m": Kind.TIMESTAMP}, SparkEngines)
    found = engines.compare([call("strftime", (moment, _text(one))) for one in FORMATS])
    assert not found.wrong and not found.refused


def test_parts_of_texts_have_one_value(session: Any) -> None:
    rows = [(one,) for one in (*TEXTS, "a-b-c", "-", "abab", "é日é")]
    places = [Literal(value=one, kind=Kind.INTEGER) for one in (-9, -3, -1, 0, 1, 2, 5)]
    asked = [call("split_part", (S, _text(mark), place)) for mark in ("-", "", "ab", "é") for place in places]
    found = _engines(session, rows, {"s": Kind.TEXT}, SparkEngines).compare(asked)
    assert not found.wrong and not found.refused


def test_far_moments_do_not_fail(session: Any) -> None:
    far = (f"timestamp_micros({2**63 - 1})", f"timestamp_micros({-(2**63)})", "make_date(290000, 1, 1)")
    given = ", ".join(f"{sql} AS {name}" for sql, name in zip(far, "abc", strict=True))
    listed = ", ".join(map(SPARK.normalised, "abc", (Kind.TIMESTAMP, Kind.TIMESTAMP, Kind.DATE)))
    (row,) = session.sql(f"SELECT {listed} FROM (SELECT {given})").collect()
    assert tuple(row) == (None, None, None)


@pytest.mark.parametrize("seed,patterns", [(1, 40), pytest.param(2, 1500, marks=pytest.mark.soak)])
def test_patterns_mean_the_same(session: Any, seed: int, patterns: int) -> None:
    chance = random.Random(seed)
    nodes = [
        node for pattern in _patterns(chance, patterns) for node in _asked(pattern, chance.choice(("", "i")))
    ]
    found = _engines(session, _texts(chance), {"s": Kind.TEXT}, SparkEngines).compare(nodes)
    assert not found.wrong
    assert found.same > 0.4 * len(nodes)


HARD = (
    r"^(a|b)+$", r"(ab)", r"[ab]+c", r"^[ab]*a$", r"a*b", r"\d+$", r"x[ab]*", r"^.*b", r"(?:a|b)*c",
    r"\ba+\b", r"^(a|b)*c*d*$", r"a?a?a?a?aaaa",
)  # fmt: skip
QUADRATIC = (r"(a*)*b", r"(a|aa)+$", r"a[ab]*c", r"x*x*y", r"(ab)+c", r"^a*a*b", r".*a.*b", r"(a?){30}a{30}")


def test_long_texts_take_neither_the_stack_nor_for_ever(session: Any) -> None:
    """What Java would try in more ways than a text has letters is refused; the rest reads long texts."""
    rows = [(text * 50_000,) for text in ("a", "ab", "b", "a b ")]
    engines = _engines(session, rows, {"s": Kind.TEXT}, SparkEngines)
    asked = [call(name, (S, _text(one))) for one in HARD for name in ("regexp_matches", "regexp_full_match")]
    asked += [call("regexp_replace", (S, _text(one), _text("-"))) for one in HARD]
    asked += [call("like", (S, _text(one))) for one in ("%a%b%a%b%c", "%a_a%a%c%", "_%_a%")]
    found = engines.compare(asked)
    assert not found.wrong and found.refused <= 8
    for one in QUADRATIC:
        with pytest.raises(Unsupported, match="linear"):
            SPARK.expression(call("regexp_extract", (S, _text(one))), {"s": "s"})


def test_texts_of_other_collations_are_equal_letter_by_letter(session: Any) -> None:
    values = "VALUES ('a', 'x '), ('A', 'x'), ('b', 'X') AS v(s, r)"
    given = f"SELECT s COLLATE UNICODE_CI AS s, r COLLATE UNICODE_RTRIM AS r FROM {values}"
    listed = ", ".join(f"{SPARK.plain_text(one)} AS {one}" for one in "sr")
    counted = (
        "count(DISTINCT s), count(DISTINCT r), min(s), count(*) FILTER (WHERE s IN ('A', 'B') OR r = 'x')"
    )
    (row,) = session.sql(f"SELECT {counted} FROM (SELECT {listed} FROM ({given}))").collect()
    assert tuple(row) == (3, 3, "A", 1)


# -- planted differences --------------------------------------------------------------------


def test_planted_differences_are_seen(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A division that raises, NaN as a value, texts in the order of a language, a zone, lost digits."""
    moment, wide = datetime.datetime(2024, 2, 29, 23, 30), Decimal("9" * 28 + ".9999999999")
    rows = [
        (1.5, 0.0, "a", moment, wide),
        (math.nan, 2.0, "B", None, None),
        (1e308, 1e-10, "b", moment, Decimal(1)),
    ]
    kinds = {"a": Kind.REAL, "b": Kind.REAL, "s": Kind.TEXT, "m": Kind.TIMESTAMP, "w": Kind.decimal(38, 10)}
    engines = _engines(session, rows, kinds, SparkEngines)
    at, digits = ColumnRef(name="m", kind=Kind.TIMESTAMP), ColumnRef(name="w", kind=kinds["w"])
    asked = [call("/", (A, B)), call("<", (A, _real(9.0))), call("<", (S, _text("B")))]
    asked += [
        call("epoch", (at,)),
        call("-", (digits, Literal(value=Decimal("0.5"), kind=Kind.decimal(2, 1)))),
    ]
    assert engines.compare(asked).same == len(asked)

    def divided(write: Any, arguments: Any, kind: Any) -> str:
        return " / ".join(write(one, kind) for one in arguments)

    with monkeypatch.context() as patch:
        patch.setitem(SPARK.functions, "/", divided)  # type: ignore[arg-type]
        assert "DIVIDE_BY_ZERO" in engines.compare(asked).wrong[0]
    with monkeypatch.context() as patch:
        patch.setattr(module._Spark, "normalised", lambda self, sql, kind: sql)
        assert len(engines.compare(asked).wrong) == 1
    with monkeypatch.context() as patch:
        patch.setattr(module._Spark, "plain_text", lambda self, sql: f"{sql} COLLATE UNICODE")
        assert len(engines.compare(asked).wrong) == 1
    for name, value in (
        ("spark.sql.session.timeZone", "Asia/Kolkata"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "true"),
    ):
        session.conf.set(name, value)
        try:
            assert len(engines.compare(asked).wrong) == 1
        finally:
            session.conf.set(name, SETTINGS[name])


# -- aggregates of one unit's rows ----------------------------------------------------------


def _units(number: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows of units: sums overflow on their way or at the end, cancel, or hold an infinite value."""
    chance = random.Random(5)
    usual = [one for one in NUMBERS if one is None or math.isfinite(one)]
    far = [1.7e308, -1.7e308, 1e308, -1e308, 1e292, -1e292, 3.0, -1e-300, 5e-324, 2.0**970]
    for unit in range(number):
        values = (usual, far, far, NUMBERS)[unit % 4]
        for _ in range(chance.choice((1, 2, 3, 9))):
            exact = (chance.choice(values) for _, values in EXACT.values())
            yield (
                unit,
                chance.choice(values),
                *(Decimal(one) if isinstance(one, str) else one for one in exact),
            )


@pytest.mark.soak
def test_aggregates_of_a_units_rows_have_one_value(session: Any) -> None:
    kinds = {"u": Kind.INTEGER, "a": Kind.REAL, **{name: kind for name, (kind, _) in EXACT.items()}}
    of_one = (Function.VAR_POP, Function.VAR_SAMP, Function.STDDEV_POP, Function.STDDEV_SAMP)
    engines = _engines(session, list(_units(240)), kinds, SparkEngines)
    asked = [Aggregate(function=one, arguments=(A,)) for one in REALS]
    asked += [Aggregate(function=one, arguments=(P,)) for one in WHOLE]
    decimals = [ColumnRef(name=name, kind=kinds[name]) for name in "dwv"]
    asked += [Aggregate(function=one, arguments=(column,)) for column in decimals for one in REALS]
    asked += [Aggregate(function=Function.SUM, arguments=(A,), where=call("<", (A, _real(1.0))))]
    asked += [Aggregate(function=one, arguments=(A,)) for one in of_one]
    asked += [
        Aggregate(function=Function.QUANTILE, arguments=(A,), quantiles=(one,)) for one in (0.0, 0.5, 1.0)
    ]
    nobody = Literal(value=None, kind=None)
    asked += [Aggregate(function=Function.COUNT_ROWS, arguments=(), where=nobody)]

    def listed(dialect: Dialect) -> list[str]:
        write = Writer(dialect, {name: dialect.quoted(name) for name in kinds})
        return [
            dialect.canonical(dialect.unit_aggregate(one, write), one.kind or Kind.INTEGER) for one in asked
        ]

    def grouped(dialect: Dialect) -> str:
        unit = dialect.quoted("u")
        return f"{engines._rows(dialect).removesuffix(' ORDER BY place')} GROUP BY {unit} ORDER BY {unit}"

    theirs, _ = engines._answer(listed(SPARK), grouped(SPARK))
    ours = engines._duckdb.execute(f"SELECT {', '.join(listed(DUCKDB))} FROM {grouped(DUCKDB)}").fetchall()
    assert ours == theirs
    assert sum(row[0] is None for row in ours) > 25 and len({row[0] for row in ours}) > 40
