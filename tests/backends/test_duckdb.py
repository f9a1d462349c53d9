"""The backend against a reference in plain Python, and the box that one unit stays in."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.analysis.bounded import BoundedQuery, Factor, Measure, MeasureKind
from sfumato.backends import ExactGroups, open_tables
from sfumato.backends.bounding import contributions
from sfumato.backends.duckdb import DuckDBBackend, by_unit
from sfumato.backends.duckdb.compile import compile_query
from sfumato.backends.duckdb.engine import Engine
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.core.grid import Grid
from sfumato.errors import EngineFailure
from sfumato.plan.tree import Call, Cast, ColumnRef, Filter, Literal, Projection, Relation, Scan

from .reference import order, reference

SCHEMA = pa.schema(
    [("who", pa.int64()), ("name", pa.string()), ("g", pa.string()), ("h", pa.int64()), ("x", pa.float64())]
)
FIELDS = tuple(
    Field(name, kind)
    for name, kind in {
        "who": Kind.INTEGER, "name": Kind.TEXT, "g": Kind.TEXT, "h": Kind.INTEGER, "x": Kind.REAL
    }.items()
)  # fmt: skip
G, H, X = (
    ColumnRef(name="t.g", kind=Kind.TEXT),
    ColumnRef(name="t.h", kind=Kind.INTEGER),
    ColumnRef(name="t.x", kind=Kind.REAL),
)
SCAN = Scan(table="t", alias="t", columns=(G, H, X))
FINE = Grid(step=Fraction(1, 4), lower=-5, upper=5)
WIDE = Grid(step=Fraction(1, 2**40), lower=-4, upper=4)
ONES = Grid(step=Fraction(1, 1024), lower=1, upper=1)
CELLS = Grid(step=3, lower=0, upper=9)
POSITIVE = Call(function=">=", arguments=(X, Literal(value=0.0, kind=Kind.REAL)), kind=Kind.BOOLEAN)

COUNT = Measure(name="count", kind=MeasureKind.MOMENT, sensitivity=2)
SOME = Measure(name="some", kind=MeasureKind.MOMENT, condition=POSITIVE, sensitivity=2)
SUM = Measure(
    name="sum",
    kind=MeasureKind.MOMENT,
    factors=(Factor(expression=X, centre=0.5, grid=FINE),),
    sensitivity=40,
)
PRODUCT = Measure(
    name="product",
    kind=MeasureKind.MOMENT,
    factors=(Factor(expression=X, centre=0.0, grid=FINE), Factor(expression=H, centre=1.0, grid=FINE)),
    condition=POSITIVE,
    sensitivity=2 * 400,
)
WIDEST = Measure(
    name="widest",
    kind=MeasureKind.MOMENT,
    factors=(Factor(expression=X, centre=0.0, grid=WIDE),),
    sensitivity=2**43,
)
PRESENT = Measure(
    name="present",
    kind=MeasureKind.MOMENT,
    factors=(Factor(expression=X, centre=0.0, grid=ONES),),
    sensitivity=2048,
)
CLAMPED = Measure(
    name="clamped",
    kind=MeasureKind.MOMENT,
    factors=(Factor(expression=X, centre=0.0, grid=FINE),),
    clamp=(-7, 9),
    sensitivity=9,
)
ABOVE, BELOW = (
    Measure(
        name=name,
        kind=MeasureKind.MOMENT,
        factors=CLAMPED.factors,
        condition=where,
        clamp=clamp,
        sensitivity=9,
    )
    for name, where, clamp in (("above", POSITIVE, (2, 9)), ("below", None, (-9, -3)))
)
TIMES = Measure(name="times", kind=MeasureKind.MOMENT, condition=POSITIVE, clamp=(2, 5), sensitivity=5)
UNITS = Measure(name="people", kind=MeasureKind.UNITS, sensitivity=1)
SOME_UNITS = Measure(name="some people", kind=MeasureKind.UNITS, condition=POSITIVE, sensitivity=1)
HISTOGRAM = Measure(
    name="cells",
    kind=MeasureKind.CELLS,
    factors=(Factor(expression=X, centre=-4.0, grid=CELLS),),
    edges=(-5.5, -2.5, 0.5, 3.5, 6.5),
    weight=16,
    sensitivity=32,
)
DISTINCT = Measure(
    name="distinct", kind=MeasureKind.DISTINCT, value=H, condition=POSITIVE, max_values=2, sensitivity=2
)
DISTINCT_SUM = Measure(
    name="distinct sum", kind=MeasureKind.DISTINCT, factors=CLAMPED.factors, max_values=2, sensitivity=100
)
MEASURES = (
    COUNT, SOME, SUM, PRODUCT, WIDEST, PRESENT, CLAMPED, ABOVE, BELOW, TIMES, UNITS, SOME_UNITS, HISTOGRAM,
    DISTINCT, DISTINCT_SUM,
)  # fmt: skip

SPECIAL = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), None, 0.125, -0.125, 1e300, -2.5, 4.9]
ROW = st.fixed_dictionaries(
    {
        "who": st.one_of(st.none(), st.integers(0, 6), st.sampled_from([-(2**63), 2**63 - 1])),
        "name": st.one_of(st.none(), st.sampled_from(["", "a", "b", "é\0", "a" * 20])),
        "g": st.one_of(st.none(), st.sampled_from(["", "p", "q", "r\0", "zé", "ein langer Schlüssel"])),
        "h": st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1])),
        "x": st.one_of(st.sampled_from(SPECIAL), st.floats(-6, 6)),
    }
)
ROWS = st.lists(ROW, max_size=40)
DECLARED = tuple((g, h) for g in ("p", "q", "nowhere") for h in (0, 1))


def query(**changes: Any) -> BoundedQuery:
    fields: dict[str, Any] = {
        "source": SCAN,
        "row_unit": False,
        "keys": (("g", G), ("h", H)),
        "grouping_sets": ((0, 1),),
        "declared": None,
        "max_groups": 2,
        "max_rows": 2,
        "measures": MEASURES,
    }
    return BoundedQuery(**{**fields, **changes})


def catalog(unit: str | None) -> Catalog:
    return Catalog((Table(name="t", fields=FIELDS, unit=Unit(name="person", column=unit)),))


def run(
    asked: BoundedQuery, rows: list[dict[str, Any]], unit: str | None, salt: int = 7, threads: int = 1
) -> tuple[ExactGroups, ...]:
    source = open_tables({"t": pa.Table.from_pylist(rows, schema=SCHEMA)}, threads=threads)
    try:
        return DuckDBBackend(source, catalog(unit), threads=threads).run(asked, _salt=salt).reveal()
    finally:
        source.close()


def as_tables(groups: tuple[ExactGroups, ...]) -> list[dict[tuple[Any, ...], dict[str, Any]]]:
    tables = []
    for one in groups:
        table = {}
        for place, key in enumerate(one.keys):
            table[key] = {
                name: values[place].tolist()
                if values[place].__class__.__module__ == "numpy"
                else values[place]
                for name, values in one.measures.items()
            }
            if one.units is not None:
                table[key]["units"] = int(one.units[place])
        assert len(table) == len(one.keys)
        tables.append(table)
    return tables


def expected(asked: BoundedQuery, rows: list[dict[str, Any]], unit: str | None, salt: int = 7) -> Any:
    renamed = [{f"t.{name}": value for name, value in row.items()} for row in rows]
    for row, renamed_row in zip(rows, renamed, strict=True):
        renamed_row.update(row)
    tables = reference(asked, renamed, unit, salt)
    for place, table in enumerate(tables):
        for entry in table.values():
            if asked.declared is not None or not asked.grouping_sets[place]:
                entry.pop("units")
    return tables


SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FEWER = settings(SETTINGS, max_examples=20)


@SETTINGS
@given(
    ROWS,
    st.sampled_from(["who", "name", None]),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, 1, 2, 4]),
    st.booleans(),
    st.integers(0, 2**64 - 1),
)
def test_it_computes_what_the_bounded_plan_says(
    rows: list[dict[str, Any]],
    unit: str | None,
    max_rows: int | None,
    max_total: int | None,
    declared: bool,
    salt: int,
) -> None:
    asked = query(
        row_unit=unit is None,
        declared=DECLARED if declared else None,
        max_groups=2 if unit else None,
        max_rows=max_rows,
        max_total=None if unit is None or max_rows is None else max_total,
        grouping_sets=((0, 1), (0,), (1,), ()),
    )
    if declared:  # -0.0 and NULL aside, declared keys are matched as they are
        rows = [row for row in rows if row["h"] is None or abs(row["h"]) < 2**62]
    groups = run(asked, rows, unit, salt)
    assert as_tables(groups) == expected(asked, rows, unit, salt)
    for one in groups:
        keys = list(one.keys)
        assert keys == sorted(keys, key=order)


@FEWER
@given(ROWS, st.sampled_from(["who", "name", None]))
def test_without_groups(rows: list[dict[str, Any]], unit: str | None) -> None:
    asked = query(row_unit=unit is None, keys=(), grouping_sets=((),), max_groups=None)
    assert as_tables(run(asked, rows, unit)) == expected(asked, rows, unit)


@FEWER
@given(ROWS, st.randoms(use_true_random=False), st.sampled_from(["who", "name"]))
def test_order_and_threads_do_not_matter(rows: list[dict[str, Any]], random: Any, unit: str) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    first = run(query(), rows, unit, threads=1)
    assert as_tables(run(query(), shuffled, unit, threads=2)) == as_tables(first)


@SETTINGS
@given(ROWS, st.lists(ROW, min_size=1, max_size=12), st.sampled_from(["who", "name"]), st.booleans())
def test_one_unit_stays_in_its_box(
    rows: list[dict[str, Any]], added: list[dict[str, Any]], unit: str, declared: bool
) -> None:
    newcomer: Any = 99 if unit == "who" else "newcomer"
    added = [{**row, unit: newcomer} for row in added]
    asked = query(declared=DECLARED if declared else None)
    without, (other,) = as_tables(run(asked, rows, unit))[0], as_tables(run(asked, rows + added, unit))
    assert set(without) <= set(other)
    changed = [key for key in other if other[key] != without.get(key)]
    assert len(changed) <= 2 or declared
    for measure in asked.measures:
        moved = 0
        for key in other:
            before = without.get(key, {}).get(measure.name)
            after = other[key][measure.name]
            if measure.kind is MeasureKind.CELLS:
                change = sum(abs(a - b) for a, b in zip(after, before or [0] * len(after), strict=True))
            else:
                change = abs(after - (before or 0))
            assert change <= measure.sensitivity
            moved += change > 0
        assert moved <= 2
    new = [key for key in other if key not in without]
    assert all(other[key].get("units") == 1 for key in new)


def test_every_private_error_looks_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("a private value: 42")

    monkeypatch.setattr(by_unit, "bound_contributions", broken)
    with pytest.raises(EngineFailure) as failure:
        run(query(), [{"who": 1, "name": "a", "g": "p", "h": 1, "x": 1.0}], "who")
    assert "42" not in str(failure.value)
    assert failure.value.code == "SF501"
    assert failure.value.__cause__ is None and failure.value.__context__ is None


def test_a_file_that_vanishes_is_the_same_error(tmp_path: Any) -> None:
    import pyarrow.parquet as parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pa.Table.from_pylist([], schema=SCHEMA), path)
    source = open_tables({"t": path})
    path.unlink()
    with pytest.raises(EngineFailure):
        DuckDBBackend(source, catalog("who")).run(query())


@FEWER
@given(ROWS, st.sampled_from(["who", "name"]), st.sampled_from([1, 3, 10]))
def test_units_can_be_worked_on_in_parts(rows: list[dict[str, Any]], unit: str, at_once: int) -> None:
    asked = query(grouping_sets=((0, 1), (0,), ()))
    whole = as_tables(run(asked, rows, unit))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_unit, "ROWS_AT_ONCE", at_once)
        assert as_tables(run(asked, rows, unit)) == whole


@pytest.mark.parametrize("unit", ["who", "name"])
def test_parts_blocks_and_threads_of_a_large_table_change_nothing(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of rows: several parts of the units, several threads in each, several blocks in those.

    Power: a row that is taken twice or not at all, a unit divided between parts, threads or blocks.
    """
    rows = [
        {
            "who": (place * 7919) % 311,
            "name": f"n{(place * 7919) % 311}",
            "g": "pqrs"[(place * 31) % 4],
            "h": (place * 17) % 5,
            "x": (place * 13) % 29 - 14.0,
        }
        for place in range(4000)
    ]
    asked = query(grouping_sets=((0, 1), (0,), ()))
    whole = as_tables(run(asked, rows, unit))
    assert whole == expected(asked, rows, unit)
    worked: list[tuple[int, int]] = []
    blocks: list[int] = []
    honestly, block = by_unit.bound_contributions, contributions._Deal._block

    def parted(rows: Any, *arguments: Any, threads: int) -> Any:
        worked.append((len(rows.units), threads))
        return honestly(rows, *arguments, threads=threads)

    def counted(self: Any, words: Any, *arguments: Any) -> Any:
        blocks.append(len(words[0]))
        return block(self, words, *arguments)

    monkeypatch.setattr(by_unit, "bound_contributions", parted)
    monkeypatch.setattr(contributions._Deal, "_block", counted)
    monkeypatch.setattr(by_unit, "ROWS_AT_ONCE", 700)
    monkeypatch.setattr(contributions, "_BLOCK", 64)
    for threads in (1, 2, 3, 5, 8):
        worked.clear()
        blocks.clear()
        assert as_tables(run(asked, rows, unit, threads=threads)) == whole
        assert len(worked) == 6 and sum(size for size, _ in worked) == 4000
        assert {number for _, number in worked} == {threads}
        assert len(blocks) > 6 * threads and sum(blocks) == 4000


def test_the_number_of_statements_does_not_depend_on_the_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked_of(size: int) -> int:
        rows = [{"who": place % 50, "name": "n", "g": "p", "h": 0, "x": 1.0} for place in range(size)]
        statements: list[str] = []
        for name in ("one", "table"):
            honestly = getattr(Engine, name)

            def logged(self: Engine, sql: str, _honestly: Any = honestly) -> Any:
                statements.append(sql)
                return _honestly(self, sql)

            patch.setattr(Engine, name, logged)
        run(query(), rows, "who")
        return len(statements)

    monkeypatch.setattr(by_unit, "ROWS_AT_ONCE", 100)
    with monkeypatch.context() as patch:
        few = asked_of(60)
    with monkeypatch.context() as patch:
        assert asked_of(2000) == few > 0


def test_sums_beyond_64_bits_are_exact() -> None:
    grid = Grid(step=1, lower=-(2**61), upper=2**61)
    far = Measure(
        name="far",
        kind=MeasureKind.MOMENT,
        factors=(Factor(expression=X, centre=0.0, grid=grid),),
        sensitivity=2**62,
    )
    rows = [
        {"who": who, "name": str(who), "g": "p", "h": 0, "x": 1e300} for who in range(5) for _ in range(3)
    ]
    for unit in ("who", "name"):
        (groups,) = run(query(measures=(far,)), rows, unit)
        assert groups.measures["far"].tolist() == [5 * 2 * 2**61]
    (groups,) = run(query(measures=(far,), row_unit=True), rows, None)
    assert groups.measures["far"].tolist() == [15 * 2**61]


def test_keys_of_every_kind_come_back_as_they_are() -> None:
    schema = pa.schema(
        [("who", pa.int64()), ("d", pa.date32()), ("m", pa.timestamp("us")), ("b", pa.bool_())]
    )
    rows = [
        {"who": 1, "d": datetime.date(2024, 2, 29), "m": datetime.datetime(1, 1, 1), "b": True},
        {"who": 2, "d": None, "m": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), "b": False},
    ]
    kinds = {"d": Kind.DATE, "m": Kind.TIMESTAMP, "b": Kind.BOOLEAN}
    columns = tuple(ColumnRef(name=f"t.{name}", kind=kind) for name, kind in kinds.items())
    fields = (Field("who", Kind.INTEGER), *(Field(name, kind) for name, kind in kinds.items()))
    about = Catalog((Table(name="t", fields=fields, unit=Unit(name="p", column="who")),))
    source = open_tables({"t": pa.Table.from_pylist(rows, schema=schema)})
    keys = tuple((column.name, column) for column in columns)
    asked = BoundedQuery(
        source=Scan(table="t", alias="t", columns=columns),
        row_unit=False,
        keys=keys,
        grouping_sets=((0, 1, 2),),
        declared=None,
        max_groups=1,
        max_rows=1,
        measures=(COUNT,),
    )
    (groups,) = DuckDBBackend(source, about).run(asked).reveal()
    assert list(groups.keys) == [tuple(row[name] for name in kinds) for row in rows]
    assert groups.keys[-1] == tuple(rows[1][name] for name in kinds)


def test_units_of_other_types_are_told_apart() -> None:
    schema = pa.schema([("who", pa.uint64()), ("g", pa.string()), ("h", pa.int64()), ("x", pa.float64())])
    rows = [{"who": 2**64 - 1 - i, "g": "p", "h": 0, "x": 1.0} for i in range(5)]
    source = open_tables({"t": pa.Table.from_pylist(rows, schema=schema)})
    about = Catalog((Table(name="t", fields=source.fields("t"), unit=Unit(name="p", column="who")),))
    (groups,) = DuckDBBackend(source, about).run(query()).reveal()
    assert groups.units is not None and groups.units.tolist() == [5]


def test_filters_and_projections_are_applied() -> None:
    rows = [{"who": i % 3, "name": "a", "g": "p", "h": i, "x": float(i)} for i in range(-4, 5)]
    parts: Relation = Projection(
        source=Filter(source=SCAN, condition=POSITIVE),
        columns=(("t.g", G), ("t.h", Cast(operand=X, kind=Kind.INTEGER)), ("t.x", X)),
    )
    asked = query(source=parts, keys=(("g", G),), grouping_sets=((0,),), measures=(COUNT, UNITS), max_rows=9)
    (groups,) = run(asked, rows, "who")
    assert groups.measures["count"].tolist() == [5]
    assert groups.measures["people"].tolist() == [3]


def test_a_query_is_compiled_once_to_be_checked_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[BoundedQuery] = []

    def counted(query: BoundedQuery, *given: Any, **options: Any) -> Any:
        compiled.append(query)
        return compile_query(query, *given, **options)

    monkeypatch.setattr("sfumato.backends.duckdb.backend.compile_query", counted)
    people = pa.table({"person": range(20), "age": [20 + one for one in range(20)]})
    budget = sf.Budget(epsilon=10, delta=1e-6)
    columns = {"age": sf.between(0, 100)}
    db = sf.connect(people, name="people", unit="person", max_rows=1, columns=columns, budget=budget)
    db.sql("SELECT AVG(age) AS age FROM people", epsilon=1).release()
    assert len(compiled) == len(set(map(id, compiled))) > 0
