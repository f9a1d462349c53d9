"""Worlds: invented tables about units, and the same tables with one unit more, from a catalog alone.

The base is nobody, or a crowd of ordinary people. Who comes is as awkward as people get: hundreds of rows,
every value at a bound or far beyond it, NULL, NaN and infinities, keys that nobody else has, as many groups
as there are, the same value as everybody.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from sfumato.audit.black_box import Pair
from sfumato.backends.arrays import arrow_array
from sfumato.catalog import Catalog, Field, Kind, OneOf, Table, Unit, between, one_of
from sfumato.catalog.domain import Between

__all__ = ["CATALOG", "NEWCOMERS", "Rows", "arrow_tables", "tables"]

Rows = dict[str, list[dict[str, Any]]]
"""The rows of each table, by its name."""

CATALOG = Catalog(
    (
        Table(
            name="visits",
            fields=(
                Field("person", Kind.INTEGER),
                Field("region", Kind.TEXT, one_of("north", "south", "east")),
                Field("word", Kind.TEXT),
                Field("amount", Kind.REAL, between(0, 10)),
                Field("age", Kind.INTEGER, between(0, 110)),
                Field("member", Kind.BOOLEAN, one_of(False, True)),
                Field("day", Kind.DATE, between(datetime.date(2024, 1, 1), datetime.date(2024, 3, 31))),
            ),
            unit=Unit(name="person", column="person"),
            max_groups=2,
            max_rows=2,
        ),
        Table(
            name="calls",
            fields=(Field("caller", Kind.INTEGER), Field("minutes", Kind.INTEGER, between(0, 60))),
            unit=Unit(name="person", column="caller"),
        ),
        Table(
            name="sales",
            fields=(Field("shop", Kind.TEXT, one_of("a", "b")), Field("price", Kind.REAL, between(0, 100))),
            unit=Unit(name="sale", column=None),
        ),
        Table(
            name="places",
            fields=(Field("place", Kind.TEXT), Field("zone", Kind.TEXT, one_of("inner", "outer"))),
            unit=None,
        ),
    )
)
"""Visits and calls of people, sales that are units by themselves, and a public list of places."""

NEWCOMERS = ("one row", "many rows", "rare keys", "upper", "lower", "beyond", "below", "absent", "ties")
"""Who comes."""

_CROWD = 12  # people; most have two rows in every table, every fourth has nine
_MANY = 60
_EPOCH = datetime.date(2024, 1, 1)


def tables(catalog: Catalog, *, public: Mapping[str, list[dict[str, Any]]] | None = None) -> tuple[Pair, ...]:
    """Propose pairs of worlds for a catalog; each side is the rows of every table.

    Public tables are the same on both sides: those given, else a few invented rows.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(9), "region": ["north", "south", "west"] * 3})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=1))
    >>> "people" in tables(db.catalog)[0].left
    True
    """
    shared: Rows = {
        table.name: list((public or {}).get(table.name, [_row(table, None, place) for place in range(6)]))
        for table in catalog.tables
        if not table.private
    }
    private = [table for table in catalog.tables if table.private]
    owners = [person for person in range(1, _CROWD + 1) for _ in range(2 if person % 4 else 9)]
    crowd = {
        table.name: [_row(table, person, place) for place, person in enumerate(owners)] for table in private
    }
    return tuple(_pairs(private, {**shared, **crowd}, {**shared, **{table.name: [] for table in private}}))


def _pairs(private: list[Table], crowd: Rows, nobody: Rows) -> Iterator[Pair]:
    for name, base in (("a crowd", crowd), ("nobody", nobody)):
        for kind in NEWCOMERS:
            if base is nobody and kind in ("ties", "one row", "below"):
                continue
            more = {table.name: list(_newcomer(table, kind)) for table in private}
            right = {table: [*more.get(table, []), *rows] for table, rows in base.items()}
            yield Pair(name=f"{name} and somebody: {kind}", left=base, right=right)


def _newcomer(table: Table, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of one unit more; where every row is a unit, one of them."""
    person = 10_007
    rows = _MANY if kind in ("many rows", "rare keys") else 8 if kind in ("upper", "lower") else 2
    if kind == "one row" or table.unit is None or table.unit.column is None:
        rows = 1
    for place in range(rows):
        row = _row(table, person, 5 * place + 1)
        for field in table.fields:
            if table.unit is not None and field.name == table.unit.column:
                continue
            row[field.name] = _changed(field, row[field.name], kind, place)
        yield row


def _changed(field: Field, usual: Any, kind: str, place: int) -> Any:
    match kind:
        case "rare keys" if field.kind is Kind.TEXT and not isinstance(field.domain, OneOf):
            return f"rare {place}"
        case "rare keys" if field.kind.whole and field.domain is None:
            return 10**9 + place
        case "upper" | "lower" if isinstance(field.domain, Between):
            return _between(field, Fraction(kind == "upper"))
        case "lower" if isinstance(field.domain, OneOf):
            return field.domain.values[0]  # all in one group; at the upper bound, in as many as there are
        case "beyond" | "below" if not isinstance(field.domain, OneOf):
            return _beyond(field.kind, kind == "beyond", usual)
        case "absent":
            return math.nan if field.kind.binary and place % 2 else None
        case "ties":
            return _row_value(field, 0)
        case _:
            return usual


def _row(table: Table, person: int | None, place: int) -> dict[str, Any]:
    row = {field.name: _row_value(field, place) for field in table.fields}
    if table.unit is not None and table.unit.column is not None and person is not None:
        field = table.field(table.unit.column)
        assert field is not None
        row[field.name] = f"p{person}" if field.kind is Kind.TEXT else person
    return row


def _row_value(field: Field, place: int) -> Any:
    """Return an ordinary value, the same for every run, different from row to row."""
    if isinstance(field.domain, OneOf):
        return field.domain.values[(place * 5 + place // 3) % len(field.domain.values)]
    if isinstance(field.domain, Between):
        return _between(field, Fraction((7 * place + 3) % 9 + 1, 10))  # never at a bound: who comes is
    match field.kind:
        case Kind.REAL | Kind.FLOAT:
            return place % 4 + 0.25
        case Kind.TEXT:
            return ("a", "b", "c")[place % 3]
        case Kind.BOOLEAN:
            return place % 2 == 0
        case Kind.DATE:
            return _EPOCH + datetime.timedelta(days=place % 30)
        case Kind.TIMESTAMP:
            return datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=place % 50)
        case _:
            return place % 4


_BEYOND: dict[Kind, tuple[Any, Any]] = {
    Kind.INTEGER: (-(2**63), 2**63 - 1),
    Kind.HUGEINT: (-(10**37), 10**37),
    Kind.REAL: (-math.inf, 1e308),
    Kind.FLOAT: (-math.inf, math.inf),
    Kind.DATE: (datetime.date.min, datetime.date.max),
    Kind.TIMESTAMP: (datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)),
}


def _beyond(kind: Kind, above: bool, usual: Any) -> Any:
    if kind.digits:
        largest = 10 ** (kind.digits - kind.scale) - 1
        return largest if above else -largest
    return _BEYOND.get(kind, (usual, usual))[above]


def _between(field: Field, share: Fraction) -> Any:
    """Return the value that lies at a share of the way between declared bounds."""
    assert isinstance(field.domain, Between)
    low: Any = field.domain.lower
    high: Any = field.domain.upper
    value = low + (high - low) * (share if isinstance(low, Fraction) else float(share))
    match field.kind:
        case kind if kind.exact:
            return math.floor(value)
        case Kind.REAL | Kind.FLOAT:
            return float(value)
        case Kind.TIMESTAMP if not isinstance(value, datetime.datetime):
            return datetime.datetime(value.year, value.month, value.day)
        case _:
            return value


def arrow_tables(rows: Rows, catalog: Catalog) -> dict[str, Any]:
    """Return tables as Arrow has them, typed by the catalog."""
    import pyarrow

    made = {}
    for table in catalog.tables:
        listed = rows[table.name]
        columns = {
            field.name: arrow_array([row[field.name] for row in listed], field.kind) for field in table.fields
        }
        made[table.name] = pyarrow.table(columns)
    return made
