"""Columns of every type that Arrow, Parquet, pandas, polars, DuckDB and CSV files have, with their extremes.

A specimen has ordinary values and extreme ones, stored as they are however far they lie. A `Case` is a table
of some of them in one form, with a person whose values are all extreme, and the same without that person.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet

FORMS = (
    "arrow",
    "batch",
    "parquet",
    "parquets",
    "duckdb",
    "pandas",
    "numpy",
    "polars",
    "csv",
    "csvs",
)
DRIFTS = ("type", "order", "header", "encoding", "names", "missing", "none")
REFUSED_DRIFTS = ("type", "names", "missing")
"""Differences between Parquet files that no engine opens."""
_TEXTS = [
    "",
    "\0",
    "NaN",
    "-inf",
    "1e999",
    "9" * 400,
    "0001-01-01",
    "294247-01-10",
    "é" * 3000,
    "'\"\\%_",
    "\u202e𝒳",
]
_FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308]
_INT64 = [
    *(2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1, -(2**63) + 2, 2**62, -(2**62)),
    *(253402300800000, -62135596801, -(10**18) * 5),
]


@dataclass(frozen=True, slots=True)
class Specimen:
    """A type with ordinary values and extreme ones; `make` builds an array of them."""

    name: str
    ordinary: tuple[Any, ...]
    extremes: tuple[Any, ...]
    make: Callable[[list[Any]], pa.Array]


@dataclass(frozen=True, slots=True)
class Case:
    """One source with the extreme person, and without; and what is declared of CSV columns."""

    label: str
    there: Any
    absent: Any
    columns: dict[str, Any]


def _stored(of_type: pa.DataType, code: str) -> Callable[[list[Any]], pa.Array]:
    """Return what builds arrays of a fixed-width type from the integers that are stored; None is NULL."""

    def make(values: list[Any]) -> pa.Array:
        packed = b"".join(struct.pack(f"<{code}", 0 if value is None else value) for value in values)
        bits = np.packbits([value is not None for value in values], bitorder="little").tobytes()
        return pa.Array.from_buffers(of_type, len(values), [pa.py_buffer(bits), pa.py_buffer(packed)])

    return make


def _typed(of_type: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda values: pa.array(values, of_type)


def _specimens() -> Iterator[Specimen]:
    for bits in (8, 16, 32, 64):
        half = 2 ** (bits - 1)
        yield Specimen(f"int{bits}", (1, 2, None), (half - 1, -half), _typed(getattr(pa, f"int{bits}")()))
        yield Specimen(f"uint{bits}", (1, 2, None), (2 * half - 1, 0), _typed(getattr(pa, f"uint{bits}")()))
    for width, largest in (("16", 65504.0), ("32", 3.4028234663852886e38), ("64", _FLOATS[-1])):
        far = (*_FLOATS[:4], largest, -largest)
        made = (
            (lambda values: pa.array(np.array([np.nan if v is None else v for v in values], np.float16)))
            if width == "16"
            else _typed(getattr(pa, f"float{width}")())
        )
        yield Specimen(f"float{width}", (1.5, 2.0, None), far, made)
    for maker, precision, scale in (
        (pa.decimal32, 9, 2), (pa.decimal64, 18, 0), (pa.decimal128, 38, 0), (pa.decimal128, 38, 38),
        (pa.decimal128, 10, 2), (pa.decimal256, 30, 4), (pa.decimal256, 60, 10),
    ):  # fmt: skip
        most = decimal.Decimal((0, (9,) * precision, -scale))
        one, two = (decimal.Decimal((0, (digit,), -scale)) for digit in (1, 2))
        of_type = maker(precision, scale)
        yield Specimen(str(of_type), (one, two, None), (most, most.copy_negate()), _typed(of_type))
    yield Specimen("bool", (True, False, None), (True, None), _typed(pa.bool_()))
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        yield Specimen(str(text), ("a", "b", None), tuple(_TEXTS), _typed(text))
    for index in (pa.int8(), pa.uint32(), pa.int64()):
        of_type = pa.dictionary(index, pa.string())
        yield Specimen(
            str(of_type), ("a", "b", None), tuple(_TEXTS), lambda v, t=of_type: pa.array(v).cast(t)
        )
    yield Specimen(
        "dictionary of numbers",
        (1, 2, None),
        (2**63 - 1,),
        lambda v: pa.array(v, pa.int64()).dictionary_encode(),
    )
    yield Specimen(
        "runs", ("a", "b", None), tuple(_TEXTS), lambda v: pa.compute.run_end_encode(pa.array(v, pa.string()))
    )
    yield Specimen(
        "date32",
        (19000, 19001, None),
        (2**31 - 1, -(2**31), -(2**31) + 1, 2932897, -719163),
        _stored(pa.date32(), "i"),
    )
    yield Specimen("date64", (86400000, 0, None), tuple(_INT64), _stored(pa.date64(), "q"))
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin", "+05:30"):
            of_type = pa.timestamp(unit, tz=zone)
            yield Specimen(str(of_type), (10**9, 0, None), tuple(_INT64), _stored(of_type, "q"))
        yield Specimen(f"duration {unit}", (1, 2, None), tuple(_INT64[:5]), _stored(pa.duration(unit), "q"))
    yield Specimen("time32", (1, 2, None), (86399, 0), _stored(pa.time32("s"), "i"))
    yield Specimen("time64", (1, 2, None), (86399999999, 0), _stored(pa.time64("us"), "q"))
    for blob in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield Specimen(str(blob), (b"a", b"b", None), (b"\xff\0", b""), _typed(blob))
    yield Specimen("binary[2]", (b"ab", b"cd", None), (b"\xff\0",), _typed(pa.binary(2)))
    yield Specimen("uuid", (b"0" * 16, b"1" * 16, None), (b"\xff" * 16,), _typed(pa.uuid()))
    yield Specimen("null", (None, None, None), (None,), _typed(pa.null()))
    yield Specimen("list", ([1], [], None), ([2**63 - 1] * 99,), _typed(pa.list_(pa.int64())))
    yield Specimen("fixed list", ([1, 2], [3, 4], None), ([2**63 - 1] * 2,), _typed(pa.list_(pa.int64(), 2)))
    yield Specimen(
        "struct", ({"a": 1}, {"a": None}, None), ({"a": 2**63 - 1},), _typed(pa.struct([("a", pa.int64())]))
    )
    yield Specimen("map", ([("a", 1)], [], None), ([("b", 2)] * 3,), _typed(pa.map_(pa.string(), pa.int64())))
    nanos = pa.month_day_nano_interval()
    yield Specimen("interval", ((1, 2, 3), None, None), ((2**31 - 1, -(2**31), 2**63 - 1),), _typed(nanos))


SPECIMENS = tuple(_specimens())


def generated(
    seed: int,
    folder: Path,
    *,
    forms: Sequence[str] = FORMS,
    specimens: Sequence[Specimen] = SPECIMENS,
) -> Case:
    """Return a case that is drawn from a seed: a form, some specimens, and what differs between its files."""
    chance = random.Random(seed)
    form = forms[seed % len(forms)]
    chosen = chance.sample(specimens, min(7, len(specimens)))
    many = chance.randint(1, 3)
    far = [[chance.choice(one.extremes) for _ in range(many)] for one in chosen]
    drift = DRIFTS[seed // len(forms) % len(DRIFTS)]
    return _case(form, seed, chosen, far, drift, folder)


@dataclass(frozen=True, slots=True)
class Hand:
    """The specimens that one case was dealt, and what differs between its files.

    Its person has all extremes of each specimen.
    """

    form: str
    place: int
    specimens: tuple[Specimen, ...]
    drift: str

    def case(self, folder: Path) -> Case:
        """Write the sources of the case."""
        many = max(len(one.extremes) for one in self.specimens)
        far = [list(itertools.islice(itertools.cycle(one.extremes), many)) for one in self.specimens]
        return _case(self.form, self.place, self.specimens, far, self.drift, folder)


def dealt(form: str, specimens: Sequence[Specimen], hands: int) -> list[Hand]:
    """Deal all specimens of a form of Arrow or Parquet over cases, and all drifts: none is left to chance.

    No table of `REFUSED_DRIFTS` is opened. Each of these drifts has one more case, of a few specimens.
    """
    drifts = [drift for drift in DRIFTS if drift != "header"] if form == "parquets" else ["none"]  # CSV's
    opened = [drift for drift in drifts if drift not in REFUSED_DRIFTS]
    hands = max(hands, len(opened))
    shares = [(tuple(specimens[place::hands]), opened[place % len(opened)]) for place in range(hands)]
    shares += [(tuple(specimens[:3]), drift) for drift in drifts if drift in REFUSED_DRIFTS]
    return [Hand(form, place, share, drift) for place, (share, drift) in enumerate(shares)]


def near(one: Specimen) -> Specimen:
    """Return a specimen of moments or durations with large values that are whole microseconds.

    Arrow cannot round the last day of nanoseconds in every zone: those stay two days below the largest.
    """
    unit = next(
        (unit for unit in _PER_SECOND if one.name.startswith((f"timestamp[{unit}", f"duration {unit}"))), "us"
    )
    if unit == "us":
        return one
    each = _PER_SECOND[unit]
    step = max(1, each // 10**6)
    most = min((2**63 - 1) * each // 10**6, 2**63 - 1 - (step > 1) * 2 * 86400 * each) // step * step
    ordinary = tuple(None if value is None else value * step for value in one.ordinary)
    return replace(one, ordinary=ordinary, extremes=(most, -most))


_PER_SECOND = {"s": 1, "ms": 10**3, "ns": 10**9}


def _case(
    form: str, seed: int, chosen: Sequence[Specimen], far: Sequence[Sequence[Any]], drift: str, folder: Path
) -> Case:
    ids = [1, 2, 3, 4, 1]
    rows = [[one.ordinary[place % 3] for place in range(len(ids))] for one in chosen]
    many = len(far[0]) if far else 0
    tables = []
    for extreme in (True, False):
        held: dict[str, Any] = {"id": pa.array([*ids, *([10**12] * many if extreme else [])], pa.int64())}
        held["ordinary"] = pa.array([*([True] * len(ids)), *([False] * many if extreme else [])])
        for place, one in enumerate(chosen):
            held[f"x{place}"] = one.make([*rows[place], *(far[place] if extreme else [])])
        tables.append(held)
    kept = [name for name in tables[0] if all(_holds(form, held[name]) for held in tables)]
    label = f"{seed} {form}: {', '.join(one.name for one in chosen)}"
    sources = []
    for which, held in enumerate(tables):
        there = folder / f"{seed}-{which}"
        there.mkdir()
        sources.append(_source(form, {name: held[name] for name in kept}, there, drift, seed))
    columns = {} if form not in ("csv", "csvs") else _declared(random.Random(seed))
    return Case(f"{label} ({drift})", sources[0], sources[1], columns)


def _declared(chance: random.Random) -> dict[str, Any]:
    import sfumato as sf

    day, moment = datetime.date(2000, 1, 1), datetime.datetime(2000, 1, 1)
    kinds = [
        sf.between(0, 10), sf.between(day, datetime.date(2030, 1, 1)), sf.one_of(True, False),
        sf.one_of(1, 2),
        sf.between(moment, datetime.datetime(2030, 1, 1)), sf.one_of("a", "b"), sf.one_of(day),
    ]  # fmt: skip
    return {f"x{place}": chance.choice(kinds) for place in range(7) if chance.random() < 0.7}


def _table(held: dict[str, Any]) -> pa.Table:
    return pa.table(held)


def _source(form: str, held: dict[str, Any], folder: Path, drift: str, seed: int) -> Any:
    match form:
        case "arrow":
            return _table(held)
        case "batch":
            return pa.record_batch(held)
        case "parquet" | "parquets":
            return _parquet(held, folder, drift if form == "parquets" else None, seed)
        case "duckdb":
            path = folder / "t.duckdb"
            with duckdb.connect(str(path)) as connection:
                connection.register("given", _table(held))
                connection.execute("CREATE TABLE t AS SELECT * FROM given")
            return path
        case "pandas":
            return pd.DataFrame(
                {name: pd.Series(pd.arrays.ArrowExtensionArray(one)) for name, one in held.items()}
            )
        case "numpy":
            return pd.DataFrame({name: _numpy(column) for name, column in held.items()})
        case "polars":
            return pl.DataFrame({name: pl.from_arrow(column) for name, column in held.items()})
    return _csv(held, folder, drift if form != "csv" else None)


def _holds(form: str, column: pa.Array) -> bool:
    """Return whether a form can hold a column at all, before anything of ours sees it."""
    table = pa.table({"x": column})
    try:
        if form == "duckdb":
            with duckdb.connect() as connection:
                connection.register("given", table)
                connection.execute("CREATE TABLE t AS SELECT * FROM given")
        elif form.startswith("parquet"):
            parquet.write_table(table, pa.BufferOutputStream(), version="2.6")
        elif form == "polars":
            return not pa.types.is_decimal256(column.type) and pl.from_arrow(column) is not None
    except (pa.ArrowException, duckdb.Error, pl.exceptions.PolarsError, TypeError, ValueError):
        return False
    return True


def _numpy(column: pa.Array) -> pd.Series:
    """Return a column as pandas had it before Arrow: NumPy's types, or objects."""
    if pa.types.is_timestamp(column.type):
        values = column.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        stamps = pd.Series(values.astype(np.int64).view(f"M8[{column.type.unit}]"))
        return stamps if column.type.tz is None else stamps.dt.tz_localize("UTC")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return pd.Series(column.fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_string(column.type):
        return pd.Series(column.to_pylist(), dtype=object)
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


def _parquet(held: dict[str, Any], folder: Path, drift: str | None, seed: int) -> Any:
    table = _table(held)
    options = {"compression": random.Random(seed).choice(["snappy", "none", "zstd"]), "version": "2.6"}
    if drift is None:
        rows = (2, 5, 100)[seed % 3]  # 5: the extreme person has a row group of their own
        parquet.write_table(table, folder / "t.parquet", row_group_size=rows, **options)
        return folder / "t.parquet"
    first, second = table[:3], table[3:]  # the extreme person is in the second
    if drift == "order":
        second = second.select(table.column_names[::-1])
    elif drift == "names":
        second = second.rename_columns(
            [name if name == "id" else name.upper() for name in table.column_names]
        )
    elif drift == "type":
        first = first.set_column(0, "id", first["id"].cast(pa.int16()))  # too narrow for one person
    elif drift == "missing":
        second = second.drop_columns([table.column_names[-1]])
    elif drift == "encoding":
        options |= {"use_dictionary": False, "data_page_version": "2.0"}
    parquet.write_table(first, folder / "a.parquet")
    parquet.write_table(second, folder / "b.parquet", **options)
    return [folder / "a.parquet", folder / "b.parquet"]


def _csv(held: dict[str, Any], folder: Path, drift: str | None) -> Any:
    columns = {name: _cells(column) for name, column in held.items()}
    names = list(columns)
    rows = list(zip(*columns.values(), strict=True))
    if drift is None:
        return _written(folder / "t.csv", names, rows)
    first = _written(folder / "a.csv", names, rows[:3])
    if drift == "order":
        names, rows = names[::-1], [row[::-1] for row in rows]
    elif drift == "names":
        names = [name.upper() for name in names]
    elif drift == "missing":
        names, rows = names[:-1], [row[:-1] for row in rows]
    header = None if drift == "header" else names
    return [first, _written(folder / "b.csv", header, rows[3:], mark=";" if drift == "encoding" else ",")]


def _cells(column: pa.Array) -> list[str]:
    """Return values as texts; far moments as the numbers that they are."""
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column = column.view(width)
    return ["" if value is None else str(value).replace("\0", "") for value in column.to_pylist()]


def _written(path: Path, header: list[str] | None, rows: list[tuple[str, ...]], mark: str = ",") -> Path:
    lines = [header, *rows] if header else rows
    quoted = (mark.join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines)
    path.write_text("\n".join(quoted) + "\n")
    return path
