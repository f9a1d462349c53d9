"""Every expression has one value on all engines: DuckDB's, whose meaning is that of plain SQL there."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import Dialect, Writer
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.postgres import dialect as postgres
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.catalog import Field, Kind, Table
from sfumato.catalog.identifiers import identifier
from sfumato.errors import Unsupported
from sfumato.plan.functions import FUNCTIONS, call
from sfumato.plan.tree import Aggregate, Cast, ColumnRef, Expression, Literal
from tests.conformance.engines import arrow
from tests.engine.test_differential import SEEDS, TOGETHER, Found, Said, Sides, made
from tests.soaked import rest_soaked

REFUSED = {"log2", "strptime"}


@dataclass(slots=True)
class Compared:
    """How many expressions were the same, and what was not."""

    same: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


class Engines:
    """DuckDB and another engine over the same rows of a table `t`; columns are of their kinds already."""

    dialect = POSTGRES
    together = TOGETHER

    def __init__(self, other: Any, engine: Any, rows: Sequence[tuple[Any, ...]], kinds: dict[str, Kind]):
        self.names = {name: self.dialect.quoted(name) for name in kinds}
        self._kinds, self._other, self._duckdb = kinds, other, engine
        self._copy(rows)

    def _copy(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Give the other engine the rows, each with its `place`."""
        columns = ", ".join(
            f"{self.names[name]} {POSTGRES.sql_type(kind)}" for name, kind in self._kinds.items()
        )
        self._other.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t (place bigint, {columns})")
        with self._other.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
            for place, row in enumerate(rows):
                copy.write_row((place, *row))

    def _answer(self, listed: list[str], rows: str) -> tuple[list[tuple[Any, ...]], list[str]]:
        """Return the values of expressions, and the first letters of their types."""
        types = ", ".join(f"CAST(pg_typeof({sql}) AS text)" for sql in listed)
        found = self._other.execute(
            f"SELECT {', '.join(listed)}, {types} FROM {rows}", binary=True
        ).fetchall()
        return [row[: len(listed)] for row in found], [one[:7] for one in found[0][len(listed) :]]

    def _rows(self, dialect: Dialect) -> str:
        listed = ", ".join(
            f"{dialect.normalised(dialect.quoted(name), kind)} AS {dialect.quoted(name)}"
            for name, kind in self._kinds.items()
        )
        return f"(SELECT place, {listed} FROM t) AS q ORDER BY place"

    def compare(self, nodes: Sequence[Expression]) -> Compared:
        """Hold both engines against each other, some expressions at a time."""
        found, asked = Compared(), []
        for node in nodes:
            try:
                asked.append((node, self.dialect.expression(node, self.names)))
            except Unsupported:
                found.refused += 1
        for start in range(0, len(asked), self.together):
            self._compare(asked[start : start + self.together], found)
        return found

    def _compare(self, some: list[tuple[Expression, str]], found: Compared) -> None:
        try:
            theirs, types = self._answer([sql for _, sql in some], self._rows(self.dialect))
        except Exception as error:
            if len(some) == 1:
                found.wrong.append(f"{some[0][0]} fails: {error}")
                return
            for half in (some[: len(some) // 2], some[len(some) // 2 :]):
                self._compare(half, found)
            return
        names = {name: identifier(name) for name in self._kinds}
        listed = ", ".join(DUCKDB.expression(node, names) for node, _ in some)
        ours = self._duckdb.execute(f"SELECT {listed} FROM {self._rows(DUCKDB)}").fetchall()
        for place, (node, _) in enumerate(some):
            pairs = [(mine[place], yours[place]) for mine, yours in zip(ours, theirs, strict=True)]
            wrong = [pair for pair in pairs if not _same(*pair)]
            typed = node.kind is None or self.dialect.sql_type(node.kind).startswith(types[place])
            if wrong or not typed:
                found.wrong.append(f"{node}: {wrong[:3]} {types[place]}")
            else:
                found.same += 1


def _same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    alike = type(ours) is type(theirs) or isinstance(ours, Decimal) or isinstance(theirs, Decimal)
    return alike and bool(ours == theirs)


# -- generated expressions ------------------------------------------------------------------


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    return Sides(tmp_path_factory.mktemp("conformance"))


@pytest.fixture(scope="module")
def generated(sides: Sides, connection: Any) -> Engines:
    return over_sides(Engines, connection, sides)


def over_sides(engines: type[Engines], other: Any, sides: Sides) -> Engines:
    """Return engines over the rows that expressions are generated for."""
    fields = sides.catalog.tables[0].fields
    listed = ", ".join(f"{name} AS {identifier(column)}" for column, name in sides.names.items())
    sides.engine.execute(f"CREATE OR REPLACE TEMP VIEW t AS SELECT c_person AS place, {listed} FROM cleaned")
    rows = sides.engine.execute("SELECT * EXCLUDE (place) FROM temp.t ORDER BY place").fetchall()
    return engines(other, sides.engine, rows, {f"t.{one.name}": one.kind for one in fields})


def planned(sides: Sides, said: list[Said]) -> Iterator[Expression]:
    """Yield what the texts mean."""
    for start in range(0, len(said), TOGETHER):
        yield from (node for node in sides._planned(said[start : start + TOGETHER], Found()) if node)


@pytest.mark.parametrize("seed", rest_soaked(SEEDS, len(SEEDS)))
def test_generated_expressions_have_one_value(sides: Sides, generated: Engines, seed: int) -> None:
    nodes = list(planned(sides, made(seed)))
    found = generated.compare(nodes)
    assert not found.wrong
    assert found.same >= 0.6 * len(nodes)


def test_what_is_refused_is_refused_by_name() -> None:
    assert set(FUNCTIONS) - set(POSTGRES.functions) == REFUSED
    assert set(POSTGRES.functions) <= set(FUNCTIONS)
    texts = ColumnRef(name="s", kind=Kind.TEXT)
    with pytest.raises(Unsupported, match="strptime"):
        POSTGRES.expression(call("strptime", (texts, Literal(value="%Y", kind=Kind.TEXT))), {"s": "s"})
    with pytest.raises(Unsupported, match="NUL"):
        POSTGRES.constant("a\0b")


# -- extremes -------------------------------------------------------------------------------

NUMBERS = (
    0.0, -0.0, 1.0, -1.5, 0.1, 2.5, -0.5, 0.49999999999999994, 1e308, 1.7976931348623157e308, 5e-324, -5e-324,
    2.2250738585072014e-308, 1e-310, 1e-200, -1e200, math.inf, -math.inf, math.nan, None, 2.0**537, 2.0**-538,
    2.0**500, 2.0**-500, 2.0**1023, 709.782712893384, 709.7827128933841, -745.1332191019411,
    -745.1332191019412, 9007199254740993.0, -9223372036854775808.0, 9.3e18, 9223372036854774784.0,
    1.0000000000000002, 3e-163,
)  # fmt: skip
TEXTS = ("", "abcde", "é日x", "İıßẞΣς", "\u00a0 a\u3000", "\ta ", "x%_y\\", "B", "b", None)
PLACES = (0, 1, 2, 5, 6, -1, -2, -5, -6, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, None)
A, B = (ColumnRef(name=name, kind=Kind.REAL) for name in "ab")
S, P, Q = (ColumnRef(name=n, kind=k) for n, k in (("s", Kind.TEXT), ("p", Kind.INTEGER), ("q", Kind.INTEGER)))


def _engines(
    connection: Any, rows: list[tuple[Any, ...]], kinds: dict[str, Kind], of: type[Engines] = Engines
) -> Engines:
    engine = duckdb.connect()
    columns = ", ".join(f"{name} {DUCKDB.sql_type(kind)}" for name, kind in kinds.items())
    engine.execute(f"CREATE TABLE t (place BIGINT, {columns})")
    written = [kind is Kind.HUGEINT or bool(kind.digits) for kind in kinds.values()]  # numbers as texts
    fields = [Field("place", Kind.INTEGER)]
    fields += [
        Field(name, Kind.TEXT if as_text else kind)
        for (name, kind), as_text in zip(kinds.items(), written, strict=True)
    ]
    given = [
        {
            "place": place,
            **{
                name: str(value) if as_text and value is not None else value
                for name, value, as_text in zip(kinds, row, written, strict=True)
            },
        }
        for place, row in enumerate(rows)
    ]
    engine.register("given", arrow(Table(name="t", fields=tuple(fields), unit=None), given))
    engine.execute("INSERT INTO t SELECT * FROM given")
    return of(connection, engine, rows, kinds)


def _real(value: float) -> Literal:
    return Literal(value=value, kind=Kind.REAL)


def _text(value: str) -> Literal:
    return Literal(value=value, kind=Kind.TEXT)


def _arithmetic() -> Iterator[Expression]:
    finite = [one for one in NUMBERS if one is not None and math.isfinite(one)]
    for name in "+-*/":
        yield call(name, (A, B))
        yield from (call(name, (A, _real(one))) for one in finite[::3])
        yield from (call(name, (_real(one), A)) for one in finite[1::3])
    for name in ("neg", "abs", "floor", "ceil", "round", "trunc", "sqrt", "ln", "log10", "exp", "sign"):
        yield call(name, (A,))
    yield from (Cast(operand=A, kind=kind) for kind in (Kind.INTEGER, Kind.FLOAT, Kind.TEXT))
    single = Cast(operand=A, kind=Kind.FLOAT)
    yield from (call(name, (single, Cast(operand=B, kind=Kind.FLOAT))) for name in "+-*/")
    yield Cast(operand=single, kind=Kind.TEXT)
    yield Cast(operand=A, kind=Kind.INTEGER, limits=(-128, 127))
    yield call("*", (call("+", (A, B)), call("/", (A, call("-", (B, A))))))
    yield from (call(name, (A, B)) for name in ("<", "=", "least", "greatest", "nullif", "log"))
    digits = (Literal(value=one, kind=Kind.INTEGER) for one in (1, 2, 22, -1, -22))
    yield from (call(name, (A, one)) for one in digits for name in ("round", "trunc"))


def test_extreme_binary_numbers_have_one_value(connection: Any) -> None:
    """Overflow, underflow, denormal numbers, infinities and NaN, beside each other and beside constants."""
    rows = list(itertools.product(NUMBERS, repeat=2))
    found = _engines(connection, rows, {"a": Kind.REAL, "b": Kind.REAL}).compare(list(_arithmetic()))
    assert not found.wrong and not found.refused


def _on_texts() -> Iterator[Expression]:
    yield from (call("substr", one) for one in ((S, P), (S, P, Q)))
    yield from (call(name, (S, P)) for name in ("left", "right"))
    yield from (call(name, (S,)) for name in ("lower", "upper", "trim", "ltrim", "rtrim", "length"))
    yield from (call("like", (S, _text(one))) for one in ("%\\", "x\\%%", "_%", "%a%", ""))
    yield from (call("ilike", (S, _text(one))) for one in ("%ẞ%", "A%", "%ς"))
    for name, one in itertools.product(
        ("contains", "starts_with", "ends_with", "position", "<"), ("", "a", "日")
    ):
        yield call(name, (S, _text(one)))
    yield from (call("replace", (S, _text(one), _text("xx"))) for one in ("", "a", "é"))
    yield call("concat", (S, _text("-"), S))
    yield call("concat_ws", (_text("-"), S, S))
    yield call("||", (S, S))


def test_texts_and_places_in_them_have_one_value(connection: Any) -> None:
    """Negative places, letters of any alphabet, backslashes in patterns, the order of letters."""
    rows = list(itertools.product(TEXTS, PLACES, PLACES))
    kinds = {"s": Kind.TEXT, "p": Kind.INTEGER, "q": Kind.INTEGER}
    found = _engines(connection, rows, kinds).compare(list(_on_texts()))
    assert not found.wrong and not found.refused


@pytest.mark.parametrize("exponent", (-1000, -600, -20, -1, 0, 1, 30, 600, 1000))
def test_powers_of_two_scale_alike(connection: Any, exponent: int) -> None:
    engines = _engines(connection, [(one,) for one in NUMBERS], {"a": Kind.REAL})
    ours, theirs = (
        run.execute(f"SELECT {dialect.scaled('a', exponent)} FROM {engines._rows(dialect)}").fetchall()
        for run, dialect in ((engines._duckdb, DUCKDB), (connection, POSTGRES))
    )
    assert ours == theirs


# -- planted differences --------------------------------------------------------------------


def test_planted_differences_are_seen(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A division that raises, a NaN that is a value, texts in the order of a language."""
    rows = [(1.5, 0.0, "a"), (math.nan, 2.0, "B"), (1e308, 1e-10, "b"), (None, None, None)]
    kinds = {"a": Kind.REAL, "b": Kind.REAL, "s": Kind.TEXT}
    engines = _engines(connection, rows, kinds)
    asked = [call("/", (A, B)), call("<", (A, _real(9.0))), call("<", (S, _text("B")))]
    assert engines.compare(asked).same == 3

    def divided(write: Any, arguments: Any, kind: Any) -> str:
        return " / ".join(write(one, kind) for one in arguments)

    with monkeypatch.context() as patch:
        patch.setitem(POSTGRES.functions, "/", divided)  # type: ignore[arg-type]
        assert "division by zero" in engines.compare(asked).wrong[0]
    with monkeypatch.context() as patch:
        patch.setattr(postgres._Postgres, "normalised", lambda self, sql, kind: sql)
        assert len(engines.compare(asked).wrong) == 1
    with monkeypatch.context() as patch:
        patch.setattr(postgres._Postgres, "plain_text", lambda self, sql: f"CAST({sql} AS text)")
        patch.setattr(postgres._Postgres, "text", lambda self, value: f"'{value}'::text")
        assert len(engines.compare(asked).wrong) == 1


# -- aggregates of one unit's rows ----------------------------------------------------------

REALS = (Function.SUM, Function.AVG, Function.MIN, Function.MAX, Function.COUNT, Function.COUNT_DISTINCT)
WHOLE = (*REALS, Function.SUM_DISTINCT)


def test_aggregates_of_a_units_rows_have_one_value(connection: Any) -> None:
    """Sums that overflow on their way or at the end, cancel, or hold one infinite value, in any order."""
    chance = random.Random(5)
    usual = [one for one in NUMBERS if one is None or math.isfinite(one)]
    far = [1.7e308, -1.7e308, 1e308, -1e308, 1e292, -1e292, 3.0, -1e-300, 5e-324, 2.0**970]
    whole = [0, 1, -5, 2**63 - 1, -(2**63), 2**53 + 1, None]
    rows = []
    for unit in range(400):
        values = (usual, far, far, NUMBERS)[unit % 4]
        rows += [
            (unit, chance.choice(values), chance.choice(whole)) for _ in range(chance.choice((1, 2, 3, 9)))
        ]
    kinds = {"u": Kind.INTEGER, "a": Kind.REAL, "p": Kind.INTEGER}
    engines = _engines(connection, rows, kinds)
    asked = [Aggregate(function=one, arguments=(A,)) for one in REALS]
    asked += [Aggregate(function=one, arguments=(P,)) for one in WHOLE]
    found = []
    for run, dialect in ((engines._duckdb, DUCKDB), (connection, POSTGRES)):
        write = Writer(dialect, engines.names)
        listed = ", ".join(
            dialect.canonical(dialect.unit_aggregate(one, write), one.kind or Kind.INTEGER) for one in asked
        )
        given = engines._rows(dialect).removesuffix(" ORDER BY place")
        found.append(run.execute(f'SELECT "u", {listed} FROM {given} GROUP BY "u" ORDER BY "u"').fetchall())
    assert found[0] == found[1]
    assert sum(row[1] is None for row in found[0]) > 40 and len({row[1] for row in found[0]}) > 60
