"""Generated tables of every type of PostgreSQL, with a person of extreme values and without.

Whatever the types: every question has the same status, the same charge and the same shape with the person and
without. No question fails in the server: every type that opens is total.
"""

from __future__ import annotations

import itertools
import random
import warnings
from dataclasses import dataclass
from typing import Any

import pytest

import sfumato as sf
from sfumato.backends.postgres.dialect import POSTGRES
from tests.backends.specimens import Case
from tests.backends.test_generated_sources import outcome
from tests.conformance.server import Server
from tests.conformance.test_spark_sources import asked
from tests.soaked import rest_soaked

_CASES, _COLUMNS = 24, 6
_NUMBERS = itertools.count()
_SCHEMA = """
CREATE SCHEMA generated;
CREATE TYPE generated.mood AS ENUM ('sad', 'glad');
CREATE DOMAIN generated.small AS int CHECK (VALUE < 2147483647 OR VALUE IS NULL);
CREATE DOMAIN generated.word AS text;
CREATE TYPE generated.pair AS (a int, b text);
CREATE COLLATION generated.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A type of PostgreSQL, with ordinary values and extreme ones, as SQL."""

    of_type: str
    ordinary: tuple[str, ...]
    extremes: tuple[str, ...]


def _quoted(*values: str) -> tuple[str, ...]:
    return tuple(f"'{value}'" for value in values)


_TEXTS = (
    *_quoted(
        "",
        "NaN",
        "-inf",
        "1e999",
        "0001-01-01",
        "294247-01-10",
        "0x",
        "infinity",
        "  ",
        "%_\\",
        "\u202e\U0001d4b3",
    ),
    *("repeat('9', 400)", "repeat('\u00e9', 700000)", "repeat('1 ', 3000000)", "chr(1)", "E'\\n\\v'"),
)
_TIMES = _quoted(
    "infinity",
    "-infinity",
    "294276-12-31 23:59:59.999999",
    "4713-01-01 00:00:00 BC",
    "0001-01-01",
    "9999-12-31 23:59:59.999999",
)
COLUMNS = (
    Column("smallint", ("1", "2"), ("32767", "-32768")),
    Column("int", ("1", "2"), ("2147483647", "-2147483648")),
    Column("bigint", ("1", "2"), ("9223372036854775807", "-9223372036854775808", "4611686018427387904")),
    Column("real", ("1.5", "2"), _quoted("NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45", "-0")),
    Column(
        "double precision",
        ("1.5", "2"),
        _quoted("NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "5e-324", "-0"),
    ),
    Column("numeric(10, 2)", ("1.5", "2"), _quoted("NaN", "99999999.99", "-99999999.99")),
    Column("numeric(38, 0)", ("1", "2"), ("9" * 38, "-" + "9" * 38, "'NaN'")),
    Column("numeric(38, 38)", ("0.5", "0.25"), ("0." + "9" * 38, "'NaN'")),
    Column("numeric(18, 3)", ("1.5", "2"), ("9" * 15 + ".999", "'NaN'")),
    Column("numeric(5, -2)", ("100", "200"), ("9999900", "'NaN'")),
    Column("numeric(3, 6)", ("0.000001", "0.000002"), ("0.000999", "'NaN'")),
    Column("numeric(60, 10)", ("1", "2"), ("9" * 50, "'NaN'")),
    Column("numeric", ("1", "2"), ("'NaN'", "'Infinity'", "repeat('9', 131072)::numeric", "1e-16383")),
    Column("boolean", ("true", "false"), ("NULL", "true")),
    Column("text", _quoted("a", "b"), _TEXTS),
    Column("varchar", _quoted("a", "b"), _TEXTS),
    Column("varchar(20)", _quoted("a", "b"), _quoted("", "NaN", "1e999", "9" * 20)),
    Column("char(5)", _quoted("a", "b"), _quoted("", "    ")),
    Column("text COLLATE generated.loose", _quoted("a", "b"), _quoted("A", "\u00e4", "")),
    Column('text COLLATE "en-US-x-icu"', _quoted("a", "b"), _quoted("A", "\u00e4", "")),
    Column("name", _quoted("a", "b"), ("repeat('x', 63)", "''")),
    Column('"char"', _quoted("a", "b"), ("chr(1)::text",)),
    Column(
        "date",
        _quoted("2024-01-01", "2024-02-29"),
        _quoted("infinity", "-infinity", "5874897-12-31", "4713-01-01 BC", "0001-01-01"),
    ),
    Column("timestamp", _quoted("2024-01-01", "2024-02-29 12:00"), _TIMES),
    Column("timestamptz", _quoted("2024-01-01", "2024-02-29 12:00"), _TIMES),
    Column(
        "timestamp(0)",
        _quoted("2024-01-01", "2024-02-29 12:00"),
        _quoted("infinity", "294276-12-31 23:59:59"),
    ),
    Column("time", _quoted("00:00", "12:00"), _quoted("24:00", "23:59:59.999999")),
    Column(
        "timetz",
        _quoted("00:00", "12:00"),
        _quoted(
            "24:00-15:59",
        ),
    ),
    Column("interval", _quoted("1 day", "1 hour"), _quoted("178000000 years", "-178000000 years")),
    Column("bytea", _quoted("a", "b"), ("'\\xff00'::bytea",)),
    Column("uuid", _quoted("0" * 32, "1" * 32), _quoted("f" * 32)),
    Column("json", _quoted("1", "{}"), _quoted("null", '{"a": 1e999999}')),
    Column("jsonb", _quoted("1", "{}"), _quoted("null", '{"a": 1e9999}')),
    Column("int[]", _quoted("{1}", "{}"), _quoted("{NULL}", "[5:5]={2147483647}")),
    Column(
        "text[]",
        _quoted("{a}", "{}"),
        _quoted(
            "{NULL}",
        ),
    ),
    Column(
        "int4range",
        _quoted("[1,2)", "empty"),
        _quoted(
            "(,)",
        ),
    ),
    Column(
        "inet",
        _quoted("127.0.0.1", "::1"),
        _quoted(
            "255.255.255.255/0",
        ),
    ),
    Column(
        "macaddr",
        _quoted("08:00:2b:01:02:03", "08:00:2b:01:02:04"),
        _quoted(
            "ff:ff:ff:ff:ff:ff",
        ),
    ),
    Column("bit(4)", ("B'0001'", "B'0010'"), ("B'1111'",)),
    Column(
        "money",
        ("1", "2"),
        _quoted(
            "92233720368547758.07",
        ),
    ),
    Column(
        "point",
        _quoted("(1,2)", "(3,4)"),
        _quoted(
            "(NaN,Infinity)",
        ),
    ),
    Column(
        "tsvector",
        _quoted("a", "b"),
        _quoted(
            "",
        ),
    ),
    Column("oid", ("1", "2"), ("4294967295",)),
    Column("generated.mood", _quoted("sad", "glad"), ("NULL", "'glad'")),
    Column("generated.small", ("1", "2"), ("2147483646", "-2147483648")),
    Column("generated.word", _quoted("a", "b"), _TEXTS),
    Column("generated.pair", ("ROW(1, 'a')", "ROW(2, 'b')"), ("ROW(NULL, NULL)",)),
)


@pytest.fixture(scope="module")
def schema(connection: Any) -> str:
    """Make a schema with types of its own, and return its name."""
    connection.execute(_SCHEMA)
    return "generated"


def made(connection: Any, schema: str, columns: list[Column], chance: random.Random, *, far: bool) -> str:
    """Make a table of ordinary people, with a person of extreme values or without; return its name."""
    name = f"{schema}.t{next(_NUMBERS)}"
    listed = ", ".join(f"x{at} {one.of_type}" for at, one in enumerate(columns))
    connection.execute(f"CREATE TABLE {name} (id bigint, ordinary boolean, {listed})")
    rows = [(person, "true", [(*one.ordinary, "NULL")[place % 3] for one in columns])
            for place, person in enumerate((1, 2, 3, 4, 1))]  # fmt: skip
    extremes = [[chance.choice(one.extremes) for one in columns] for _ in range(2)]
    if far:
        rows += [(10**12, "false", values) for values in extremes]
    for person, ordinary, values in rows:
        connection.execute(f"INSERT INTO {name} VALUES ({person}, {ordinary}, {', '.join(values)})")
    return name


def opened(server: Server, name: str) -> Any:
    """Return what opens a table as users do."""

    def connect(**declared: Any) -> sf.Database:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the role is the server's owner
            declared.pop("name")
            return sf.connect(server.url, table={"t": name}, **declared)

    return connect


def compare(server: Server, connection: Any, schema: str, columns: list[Column], seed: int) -> list[Any]:
    """Return what can be seen with the extreme person: no more, and no less, than without."""
    found = []
    for far in (True, False):
        name = made(connection, schema, columns, random.Random(seed), far=far)
        case = Case(f"{seed}: {', '.join(one.of_type for one in columns)}", None, None, {})
        found.append(outcome(opened(server, name), case, asked))
    there, absent = found
    assert there == absent, [pair for pair in zip(there, absent, strict=False) if pair[0] != pair[1]][:1]
    return there


@pytest.mark.parametrize("seed", rest_soaked(range(_CASES), 12))
def test_neighbours_cannot_be_told_apart_on_postgresql(
    server: Server, connection: Any, schema: str, seed: int
) -> None:
    """Each case has its share of all types, so that every type is in one, beside types that are drawn."""
    chance = random.Random(seed)
    share = [one for place, one in enumerate(COLUMNS) if place % _CASES == seed % _CASES]
    columns = [*share, *chance.sample(COLUMNS, _COLUMNS - len(share))]
    there = compare(server, connection, schema, columns, seed)
    assert all(isinstance(status, tuple) for _, status, _ in there[1:]), there


def test_a_value_that_cannot_be_computed_is_seen(
    server: Server, connection: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a square root that the server computes of negative numbers, too."""
    columns = [one for one in COLUMNS if one.of_type == "bigint"]

    def root(write: Any, arguments: Any, kind: Any) -> str:
        return f"sqrt({write(arguments[0], kind)})"

    monkeypatch.setitem(POSTGRES.functions, "sqrt", root)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="bigint"):
        for seed in range(4):
            compare(server, connection, schema, columns, seed)
