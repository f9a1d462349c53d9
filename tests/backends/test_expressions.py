"""Every function of the allow-list has one total meaning: no value of any column makes it fail."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sfumato.analysis.calendar import of_kind
from sfumato.analysis.ranges import Known, known_of
from sfumato.backends.arrays import arrow_array
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.catalog import Kind
from sfumato.catalog.identifiers import identifier
from sfumato.errors import Unsupported
from sfumato.plan.functions import FUNCTIONS, call, later
from sfumato.plan.moments import STEPS
from sfumato.plan.numbers import KindError
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal
from tests.soaked import rest_soaked

INF, NAN = math.inf, math.nan
LOW, HIGH = -(2**63), 2**63 - 1
EXTREMES: dict[Kind, list[Any]] = {
    Kind.INTEGER: [None, 0, 1, -1, 2, 7, -7, 2**31, -(2**31) - 1, 2**53 + 1, LOW, HIGH],
    Kind.HUGEINT: [None, 0, -1, 7, 2**53 + 1, 2**64, 10**38 - 1, -(2**127), 2**127 - 1],
    Kind.decimal(15, 2): [None, *map(Decimal, ("0.00", "0.07", "-2.50", "9999999999999.99"))],
    Kind.decimal(38, 0): [None, *map(Decimal, ("0", "7", "9" * 38, "-" + "9" * 38))],
    Kind.decimal(38, 10): [None, *map(Decimal, ("0.0000000000", "-2.5000000000", "9" * 28 + "." + "9" * 10))],
    Kind.FLOAT: [None, 0.0, -0.0, 1.0, -2.5, 2.0**-140, 2.0**127, -INF, INF, NAN],
    Kind.REAL: [None, 0.0, -0.0, 1.0, -1.5, 2.5, 0.5, 1e-320, 1e308, -1e308, 1e19, INF, -INF, NAN],
    Kind.TEXT: [
        None,
        "",
        "a",
        "\0",
        "a\0b",
        "é",
        "ß",
        "日本",
        "\U0001f600x",
        "it's",
        '"',
        "%_\\",
        "12",
        "nan",
        "x" * 300,
    ],
    Kind.BOOLEAN: [None, True, False],
    Kind.DATE: [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2024, 2, 29)],
    Kind.TIMESTAMP: [
        None,
        datetime.datetime(1, 1, 1),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    ],
}
KINDS = tuple(EXTREMES)
CONNECTION = duckdb.connect()
CONNECTION.execute("SET TimeZone = 'UTC'")


def column(place: int, kind: Kind) -> ColumnRef:
    return ColumnRef(name=f"a{place}", kind=kind)


def evaluate(node: Expression, rows: list[tuple[Any, ...]], kinds: tuple[Kind, ...]) -> list[Any]:
    """Evaluate over rows, through a scan that normalises columns as scans do."""
    return [value for (value,) in evaluate_all([node], rows, kinds)]


def evaluate_all(
    nodes: Sequence[Expression], rows: list[tuple[Any, ...]], kinds: tuple[Kind, ...]
) -> list[list[Any]]:
    """Evaluate several expressions in one statement; return a list of values for each row."""
    arrays = []
    for i, kind in enumerate(kinds):
        values = [row[i] for row in rows]
        if kind is Kind.HUGEINT:  # Arrow has no whole numbers of 39 digits
            arrays.append(pa.array([None if value is None else str(value) for value in values], pa.string()))
        else:
            arrays.append(arrow_array(values, kind))
    names = [f"a{i}" for i in range(len(kinds))]
    table = pa.table([*arrays, pa.array(range(len(rows)))], names=[*names, "place"])
    cleaned = ", ".join(
        f"{DUCKDB.normalised(name, kind)} AS {name}" for name, kind in zip(names, kinds, strict=True)
    )
    listed = [DUCKDB.expression(node, {name: name for name in names}) for node in nodes]
    both = ", ".join([*(f"typeof({sql})" for sql in listed), *listed])
    CONNECTION.register("given", table)
    text = f"SELECT {both} FROM (SELECT place, {cleaned} FROM given) ORDER BY place"
    found = CONNECTION.execute(text.replace(", ,", ",")).fetchall()
    CONNECTION.unregister("given")
    for place, node in enumerate(nodes):
        if node.kind is not None:
            assert {row[place] for row in found} <= {DUCKDB.sql_type(node.kind)}
    return [list(row[len(nodes) :]) for row in found]


def test_every_function_is_rendered_and_nothing_else() -> None:
    assert set(DUCKDB.functions) == set(FUNCTIONS)


def signatures(name: str) -> list[Call]:
    """Calls of a function with columns of all kinds that it accepts, and constants where it needs them."""
    signature = FUNCTIONS[name]
    found = []
    parts = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
    patterns = ["a", "^[^a-z]*$", "(.|\\s)+?", "\\bé{0,3}", "x*"]
    formats = ["%Y-%m-%d %H:%M:%S.%f", "%j %B %b %A %a %u %w %V %G %I %p %U %W %% %g %-d %y", "a"]
    literals: dict[str, tuple[list[Any], ...]] = {
        "round": ([0, 2, -2, 400, -400, 10**30, None],),
        "trunc": ([0, 2, -2, 400, -400, 10**30, None],),
        "like": (["%", "_", "a%", "", "a\0b", "\\", "é_"],),
        "ilike": (["%A%", "É", "\0"],),
        "replace": (["", "a", "é\0", "a" * 70_000, None],),
        "date_trunc": (parts,),
        "date_diff": (parts,),
        "date_add": (parts, [1, -90, 60_000]),
        "strftime": (formats,),
        "strptime": (formats,),
        "split_part": ([",", "", "\0", "é"], [0, 1, -2, 2**31 - 1]),
        "lpad": ([0, 3, 400], ["0", "é\0"]),
        "rpad": ([0, 3, 400], ["0", "é\0"]),
        "regexp_matches": (patterns, ["i", "c", ""]),
        "regexp_full_match": (patterns, ["i", "c", ""]),
        "regexp_extract": ([*patterns[:2], "(a)(.)?"], [0, 2]),
        "regexp_replace": (patterns, ["", "-", "a" * 70_000], ["g", "gi", "c"]),
    }
    for size in range(signature.least, (signature.most or 3) + 1):
        pools = [(Kind.INTEGER, Kind.TEXT) if place in signature.literal else KINDS for place in range(size)]
        for kinds in itertools.product(*pools):
            arguments: list[Expression] = [column(i, kind) for i, kind in enumerate(kinds)]
            options: list[list[Expression]] = [[argument] for argument in arguments]
            for place, values in zip(signature.literal, literals.get(name, ()), strict=True):
                if place < size:
                    kind = kinds[place]
                    options[place] = [Literal(value=v, kind=kind) for v in values]
            if name == "in":
                options[1:] = [[Literal(value=v, kind=k) for v in EXTREMES[k][1:3]] for k in kinds[1:]]
            for chosen in itertools.product(*options):
                try:
                    found.append(call(name, tuple(chosen)))
                except KindError:
                    continue
    return found


@pytest.mark.parametrize("name", rest_soaked(sorted(FUNCTIONS), 4))
def test_functions_are_total(name: str) -> None:
    calls = signatures(name)
    assert calls
    for node in calls:
        kinds = tuple(a.kind if isinstance(a, ColumnRef) and a.kind else Kind.INTEGER for a in node.arguments)
        pools = [
            EXTREMES[k] if isinstance(a, ColumnRef) else [None]
            for a, k in zip(node.arguments, kinds, strict=True)
        ]
        rows = list(itertools.product(*pools))
        if len(rows) > 400:
            rows = rows[:: len(rows) // 400]
        values = evaluate(node, rows, kinds)
        assert not any(isinstance(value, float) and math.isnan(value) for value in values)


def _takes_reals(name: str) -> bool:
    return any(Kind.REAL in (argument.kind for argument in node.arguments) for node in signatures(name))


@pytest.mark.parametrize("name", rest_soaked(filter(_takes_reals, sorted(FUNCTIONS)), 3))
def test_no_function_sees_the_sign_of_zero(name: str) -> None:
    """Whatever takes reals, written as text, is the same of 0.0 and of -0.0."""
    for node in signatures(name):
        kinds = tuple(a.kind if isinstance(a, ColumnRef) and a.kind else Kind.INTEGER for a in node.arguments)
        if Kind.REAL not in kinds:
            continue
        pools = [
            EXTREMES[k][1:4] if isinstance(a, ColumnRef) else [None]
            for a, k in zip(node.arguments, kinds, strict=True)
        ]
        pools = [[0.0, 1.0, -1.5] if k is Kind.REAL else pool for pool, k in zip(pools, kinds, strict=True)]
        rows = list(itertools.product(*pools))
        signed = [
            tuple(-0.0 if type(value) is float and value == 0 else value for value in row) for row in rows
        ]
        written = Cast(operand=node, kind=Kind.TEXT)
        assert evaluate(written, rows, kinds) == evaluate(written, signed, kinds)


def finite(function: Callable[..., float]) -> Callable[..., float | None]:
    def guarded(*arguments: Any) -> float | None:
        if any(a is None or (isinstance(a, float) and math.isnan(a)) for a in arguments):
            return None
        try:
            value = function(*(float(a) for a in arguments))
        except (ArithmeticError, ValueError):
            return None
        return value if isinstance(value, float) and math.isfinite(value) else None

    return guarded


REAL = {
    "+": finite(lambda a, b: a + b),
    "-": finite(lambda a, b: a - b),
    "*": finite(lambda a, b: a * b),
    "/": finite(lambda a, b: a / b),
    "%": finite(math.fmod),
    "neg": finite(lambda a: -a),
    "abs": finite(abs),
    "floor": finite(lambda a: float(math.floor(a))),
    "ceil": finite(lambda a: float(math.ceil(a))),
    "sqrt": finite(math.sqrt),
    "ln": finite(math.log),
    "log10": finite(math.log10),
    "log2": finite(math.log2),
    "trunc": finite(lambda a: float(math.trunc(a))),
    "exp": finite(math.exp),
    "power": finite(math.pow),
}


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_arithmetic_agrees_with_python(name: str) -> None:
    size = FUNCTIONS[name].least
    node = call(name, tuple(column(i, Kind.REAL) for i in range(size)))
    rows = list(itertools.product(EXTREMES[Kind.REAL], repeat=size))
    for row, value in zip(rows, evaluate(node, rows, (Kind.REAL,) * size), strict=True):
        expected = REAL[name](*row)
        if expected is None or value is None:
            assert value == expected, row
        else:
            assert math.isclose(value, expected, rel_tol=1e-15), row


EXACT: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "abs": abs,
    "round": lambda a: a,
}


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.HUGEINT])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_arithmetic_of_whole_numbers_is_exact(name: str, kind: Kind) -> None:
    """Doubles would differ beyond 2^53; what does not fit is NULL."""
    size = FUNCTIONS[name].least
    node = call(name, tuple(column(i, kind) for i in range(size)))
    rows = list(itertools.product(EXTREMES[kind], repeat=size))
    largest = 2**63 if kind is Kind.INTEGER else 2**127
    for row, value in zip(rows, evaluate(node, rows, (kind,) * size), strict=True):
        if None in row:
            assert value is None
            continue
        exact = EXACT[name](*row)
        assert value == (exact if -largest <= exact < largest else None), row


@pytest.mark.parametrize("kinds", list(itertools.product([kind for kind in KINDS if kind.exact], repeat=2)))
@pytest.mark.parametrize("name", ["+", "-", "*"])
def test_arithmetic_of_decimals_is_exact(name: str, kinds: tuple[Kind, Kind]) -> None:
    """Whatever the widths are: a value is exact, or does not fit into 38 digits and is NULL."""
    node = call(name, (column(0, kinds[0]), column(1, kinds[1])))
    rows = list(itertools.product(*(EXTREMES[kind] for kind in kinds)))
    if not node.kind.digits:
        return
    for row, value in zip(rows, evaluate(node, rows, kinds), strict=True):
        if None in row:
            assert value is None
            continue
        exact = EXACT[name](*map(Fraction, row))
        if any(abs(side) >= 10**38 for side in row):
            continue  # no decimal holds such a whole number
        fits = abs(exact) < 10 ** (node.kind.digits - node.kind.scale)
        assert (None if value is None else Fraction(value)) == (exact if fits else None), row


NUMBERS = [kind for kind in KINDS if kind.numeric]


def _apart(kinds: tuple[Kind, Kind]) -> int:
    return NUMBERS.index(kinds[1]) - NUMBERS.index(kinds[0])


PAIRS = [
    pytest.param(kinds, marks=[] if _apart(kinds) in (0, 1) else [pytest.mark.soak])
    for kinds in itertools.product(NUMBERS, repeat=2)
]


@pytest.mark.parametrize("kinds", PAIRS)
def test_what_two_expressions_share_does_not_fail_for_both(kinds: tuple[Kind, Kind]) -> None:
    """The engine computes once what two expressions share, and forgets the TRY that was around it."""
    first, second = column(0, kinds[0]), column(1, kinds[1])
    half = Literal(value=Decimal("0.5"), kind=Kind.decimal(2, 1))
    calls = []
    for name in ("+", "-", "*", "%", "//", "/", "least", "=", "neg", "abs", "floor", "round"):
        for arguments in ((first, second), (second, first), (first, half), (first,)):
            try:
                calls.append(call(name, arguments))
                calls.append(call("*", (calls[-1], second)))
            except KindError:
                continue
    rows = list(itertools.product(*(EXTREMES[kind] for kind in kinds)))
    alone = [evaluate(node, rows, kinds) for node in calls]
    together = evaluate_all(calls, rows, kinds)
    assert [list(row) for row in zip(*alone, strict=True)] == together


def test_integer_remainders_are_exact() -> None:
    rows = list(itertools.product(EXTREMES[Kind.INTEGER], repeat=2))
    node = call("%", (column(0, Kind.INTEGER), column(1, Kind.INTEGER)))
    for (a, b), value in zip(rows, evaluate(node, rows, (Kind.INTEGER, Kind.INTEGER)), strict=True):
        missing = a is None or b is None or b == 0
        assert value == (None if missing else int(math.copysign(1, a)) * (abs(a) % abs(b))), (a, b)


def test_integer_quotients_are_cut_toward_zero() -> None:
    rows = list(itertools.product(EXTREMES[Kind.INTEGER], repeat=2))
    node = call("//", (column(0, Kind.INTEGER), column(1, Kind.INTEGER)))
    for (a, b), value in zip(rows, evaluate(node, rows, (Kind.INTEGER, Kind.INTEGER)), strict=True):
        if a is None or b is None or b == 0:
            assert value is None
            continue
        exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert value == (exact if LOW <= exact <= HIGH else None), (a, b)


@pytest.mark.parametrize("part", ["year", "quarter", "month", "day", "hour", "minute", "second"])
def test_differences_of_dates_lie_in_their_range(part: str) -> None:
    """The ends of the range are those of the engine: the differences between the ends of the bounds."""
    days = [datetime.date(2023, 12, 31), datetime.date(2024, 1, 1), datetime.date(2024, 2, 29)]
    later = [datetime.datetime(2024, 3, 4, 5, 59), datetime.datetime(2025, 12, 31, 23, 1)]
    rows = list(itertools.product(days, later))
    named = Literal(value=part, kind=Kind.TEXT)
    node = call("date_diff", (named, column(0, Kind.DATE), column(1, Kind.TIMESTAMP)))
    values = evaluate(node, rows, (Kind.DATE, Kind.TIMESTAMP))
    known = {"a0": Known(dates=(days[0], days[-1])), "a1": Known(dates=(later[0], later[-1]))}
    interval = known_of(node, known).interval
    assert interval is not None and (interval.low, interval.high) == (min(values), max(values))


@pytest.mark.parametrize("unit", list(STEPS))
@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIMESTAMP])
def test_moments_later_agree_with_python_and_lie_in_their_range(unit: str, kind: Kind) -> None:
    """Constants are moved by Python, rows by the engine; a month later moments may have changed places."""
    days = [datetime.date(2024, 1, day) for day in (28, 29, 30, 31)] + [datetime.date(2024, 2, 29)]
    times = [datetime.time(), datetime.time(12), datetime.time.max]
    moments: list[Any] = days
    if kind is Kind.TIMESTAMP:
        moments = [datetime.datetime.combine(day, time) for day in days for time in times]
    for count in (-13, -1, 0, 1, 400):
        node = later(column(0, kind), unit, count)
        values = evaluate(node, [(moment,) for moment in moments], (kind,))
        constants = [later(Literal(value=moment, kind=kind), unit, count) for moment in moments]
        assert values == [one.value for one in constants if isinstance(one, Literal)]
        for low, high in itertools.combinations(range(len(moments)), 2):
            ends = known_of(node, {"a0": Known(dates=(moments[low], moments[high]))}).dates
            between = values[low : high + 1]
            assert ends is not None and ends[0] <= min(between) and max(between) <= ends[1]


@pytest.mark.parametrize(("name", "kind"), [("last_day", Kind.DATE), ("epoch", Kind.TIMESTAMP)])
def test_ranges_of_what_is_made_of_moments(name: str, kind: Kind) -> None:
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(2024, 2, 3)]
    rows = [(of_kind(moment, kind),) for moment in moments]
    node = call(name, (column(0, kind),))
    values = evaluate(node, rows, (kind,))
    known = known_of(node, {"a0": Known(dates=(rows[0][0], rows[1][0]))})
    low, high = known.dates if name == "last_day" else (known.interval.low, known.interval.high)
    assert low <= values[0] and values[1] <= high


def test_names_of_days_and_months_are_all_listed() -> None:
    days = [(datetime.date(2024, 1, 1) + datetime.timedelta(days=day),) for day in range(366)]
    for name in ("dayname", "monthname"):
        node = call(name, (column(0, Kind.DATE),))
        assert tuple(dict.fromkeys(evaluate(node, days, (Kind.DATE,)))) == known_of(node, {}).values


TEXTS: dict[str, Callable[..., Any]] = {
    "length": len,
    "trim": lambda a: a.strip(" "),
    "ltrim": lambda a: a.lstrip(" "),
    "rtrim": lambda a: a.rstrip(" "),
    "||": lambda a, b: a + b,
    "contains": lambda a, b: b in a,
    "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b),
    "position": lambda a, b: a.find(b) + 1,
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_texts_agree_with_python(name: str) -> None:
    size = FUNCTIONS[name].least
    node = call(name, tuple(column(i, Kind.TEXT) for i in range(size)))
    rows = list(itertools.product(EXTREMES[Kind.TEXT], repeat=size))
    expected = [None if None in row else TEXTS[name](*row) for row in rows]
    assert evaluate(node, rows, (Kind.TEXT,) * size) == expected


def test_positions_in_texts() -> None:
    rows = list(itertools.product(EXTREMES[Kind.TEXT], EXTREMES[Kind.INTEGER]))
    arguments = column(0, Kind.TEXT), column(1, Kind.INTEGER)
    for name, python in {
        "left": lambda text, n: text[:n],
        "right": lambda text, n: text[max(0, len(text) - n) :] if n >= 0 else text[-n:],
        "substr": lambda text, n: text[n - 1 :] if n > 0 else text if n == 0 else text[n:],
    }.items():
        values = evaluate(call(name, arguments), rows, (Kind.TEXT, Kind.INTEGER))
        for (text, n), value in zip(rows, values, strict=True):
            missing = text is None or n is None or not -(2**31) <= n < 2**31
            assert value == (None if missing else python(text, n)), (name, text, n)


def test_patterns_are_literal() -> None:
    texts = [(text,) for text in EXTREMES[Kind.TEXT]]
    for pattern, matches in {
        "%": lambda text: True,
        "_": lambda text: len(text) == 1,
        "a\0b": lambda text: text == "a\0b",
        "%\\": lambda text: text.endswith("\\"),
        "it's": lambda text: text == "it's",
    }.items():
        node = call("like", (column(0, Kind.TEXT), Literal(value=pattern, kind=Kind.TEXT)))
        expected = [None if text is None else matches(text) for (text,) in texts]
        assert evaluate(node, texts, (Kind.TEXT,)) == expected, pattern


def test_least_and_greatest_skip_null_and_coalesce_takes_the_first() -> None:
    rows = list(itertools.product([None, 1, 2], [None, 1, 2]))
    arguments = column(0, Kind.INTEGER), column(1, Kind.INTEGER)
    kinds = Kind.INTEGER, Kind.INTEGER
    present = [[value for value in row if value is not None] for row in rows]
    assert evaluate(call("least", arguments), rows, kinds) == [min(some, default=None) for some in present]
    assert evaluate(call("greatest", arguments), rows, kinds) == [max(some, default=None) for some in present]
    assert evaluate(call("coalesce", arguments), rows, kinds) == [next(iter(some), None) for some in present]
    assert evaluate(call("nullif", arguments), rows, kinds) == [None if a == b else a for a, b in rows]


def test_parts_of_dates() -> None:
    rows = [(value,) for value in EXTREMES[Kind.TIMESTAMP]]
    for name, python in {
        "year": lambda t: t.year,
        "quarter": lambda t: (t.month + 2) // 3,
        "month": lambda t: t.month,
        "week": lambda t: t.isocalendar()[1],
        "day": lambda t: t.day,
        "dow": lambda t: t.isoweekday() % 7,
        "hour": lambda t: t.hour,
        "minute": lambda t: t.minute,
    }.items():
        values = evaluate(call(name, (column(0, Kind.TIMESTAMP),)), rows, (Kind.TIMESTAMP,))
        assert values == [None if t is None else python(t) for (t,) in rows], name


def test_dates_far_away_are_missing() -> None:
    sql = DUCKDB.normalised("d", Kind.DATE)
    dates = "['infinity'::DATE, '5877641-06-23'::DATE, '2024-01-01'::DATE]"
    text = f"SELECT {sql} FROM (SELECT unnest({dates}) AS d)"
    assert CONNECTION.execute(text).fetchall() == [(None,), (None,), (datetime.date(2024, 1, 1),)]


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_conversions_are_total(source: Kind, target: Kind) -> None:
    node = Cast(operand=column(0, source), kind=target)
    rows = [(value,) for value in EXTREMES[source]]
    if source is Kind.TEXT:
        rows += [
            ("9223372036854775808",),
            ("1e400",),
            ("2024-02-30",),
            ("infinity",),
            ("290309-12-22 (BC)",),
            ("true",),
        ]
    values = evaluate(node, rows, (source,))
    assert not any(isinstance(value, float) and math.isnan(value) for value in values)


def test_branches_have_one_type() -> None:
    test = call("is_null", (column(0, Kind.REAL),))
    node = Case(
        branches=((test, Literal(value=1, kind=Kind.INTEGER)),),
        otherwise=column(0, Kind.REAL),
        kind=Kind.REAL,
    )
    assert evaluate(node, [(None,), (2.5,), (NAN,)], (Kind.REAL,)) == [1.0, 2.5, 1.0]
    sql = DUCKDB.expression(node, {"a0": "a0"}, Kind.REAL)
    assert CONNECTION.execute(f"SELECT {sql} FROM (SELECT 2.5::DOUBLE AS a0)").fetchall() == [(2.5,)]


@pytest.mark.parametrize("kind", KINDS)
def test_constants_come_back(kind: Kind) -> None:
    for value in EXTREMES[kind]:
        (found,) = CONNECTION.execute(f"SELECT {DUCKDB.constant(value, kind)}").fetchall()[0]
        if isinstance(value, float) and math.isnan(value):
            assert found is None
        else:
            assert found == value and type(found) is type(value)


def test_names_are_quoted_and_odd_texts_refused() -> None:
    (row,) = CONNECTION.execute(f"SELECT 1 AS {identifier(chr(34) + '; DROP --')}").fetchall()
    assert row == (1,)
    with pytest.raises(Unsupported):
        identifier("a\0b")
    with pytest.raises(Unsupported):
        DUCKDB.constant("\ud800")
    with pytest.raises(Unsupported):
        DUCKDB.expression(Call(function="sleep", arguments=(), kind=Kind.INTEGER), {})
