"""Small worlds: generated tables about people, and the same tables with one person more.

The generator has a seed, for it makes data and never noise. Most people are ordinary; the one that
is added is as nasty as people get: hundreds of rows, NULL, NaN, infinities, the ends of int64,
texts with NUL and letters of any alphabet, keys that nobody else has.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow

from sfumato.backends import Source, open_tables
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of

__all__ = ["CATALOG", "NEIGHBOURS", "World", "crowd", "newcomer"]

INT64 = (-(2**63), 2**63 - 1)
REGIONS = ("north", "south", "east")
WORDS = ["a", "b", "c", "", " ", "ä", "日本", "a\x00b", "\U0001f3a8", "A"]
# infinite both ways, before the year 1, after the year 9999: whole days and microseconds, as Arrow has them
DAYS = [2**31 - 1, -(2**31) + 1, -800_000, 3_000_000]
MOMENTS = [2**63 - 1, -(2**63) + 1, -9 * 10**16, 3 * 10**17]
FAR: dict[str, Any] = {
    "price": Decimal("9999999999999.99"),
    "rate": Decimal(10**18 - 1),
    "code": 2**64 - 1,
    "single": math.inf,
}
NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 1 / 3, 99.5, 100.0, 1e308, -1e308, 5e-324]

_VISITS = {
    "person": pyarrow.int64(),
    "age": pyarrow.int32(),
    "amount": pyarrow.float64(),
    "qty": pyarrow.int64(),
    "big": pyarrow.int64(),
    "score": pyarrow.float64(),
    "region": pyarrow.string(),
    "member": pyarrow.bool_(),
    "word": pyarrow.string(),
    "day": pyarrow.date32(),
    "at": pyarrow.timestamp("us"),
    "price": pyarrow.decimal128(15, 2),
    "rate": pyarrow.decimal128(38, 20),
    "code": pyarrow.uint64(),
    "single": pyarrow.float32(),
}
_ORDERS = {
    "buyer": pyarrow.int64(),
    "cost": pyarrow.float64(),
    "place": pyarrow.string(),
    "item": pyarrow.int64(),
}
_PLACES = {"region": pyarrow.string(), "zone": pyarrow.string(), "size": pyarrow.int64()}

_CAPITALS = {"region": pyarrow.string(), "capital": pyarrow.string(), "height": pyarrow.float64()}

_KINDS = {
    pyarrow.int64(): Kind.INTEGER,
    pyarrow.int32(): Kind.INTEGER,
    pyarrow.float64(): Kind.REAL,
    pyarrow.string(): Kind.TEXT,
    pyarrow.bool_(): Kind.BOOLEAN,
    pyarrow.date32(): Kind.DATE,
    pyarrow.timestamp("us"): Kind.TIMESTAMP,
    pyarrow.decimal128(15, 2): Kind.decimal(15, 2),
    pyarrow.decimal128(38, 20): Kind.decimal(38, 20),
    pyarrow.uint64(): Kind.HUGEINT,
    pyarrow.float32(): Kind.FLOAT,
}
_DOMAINS = {
    "age": between(0, 110),
    "amount": between(-20, 100),
    "qty": between(0, 10),
    "big": between(-(10**12), 10**12),
    "score": between(0, 1),
    "cost": between(0, 50.5),
    "region": one_of(*REGIONS),
    "member": one_of(False, True),
    "zone": one_of("inner", "outer"),
    "size": between(1, 3),
    "height": between(0, 900),
    "day": between(datetime.date(2024, 1, 1), datetime.date(2025, 1, 31)),
    "at": between(datetime.date(2024, 1, 1), datetime.date(2025, 1, 31)),
    "price": between(0, 50),
    "rate": between(-1, 1),
    "code": between(0, 10**6),
    "single": between(-5, 5),
}


def _table(name: str, columns: dict[str, Any], unit: Unit | None) -> Table:
    fields = tuple(Field(key, _KINDS[of_type], _DOMAINS.get(key)) for key, of_type in columns.items())
    return Table(name=name, fields=fields, unit=unit)


_NAMED = {key: pyarrow.string() if key == "person" else of_type for key, of_type in _VISITS.items()}

CATALOG = Catalog(
    (
        _table("visits", _VISITS, Unit(name="person", column="person")),
        _table("orders", _ORDERS, Unit(name="person", column="buyer")),
        _table("named", _NAMED, Unit(name="name", column="person")),
        _table("lone", _VISITS, Unit(name="row", column=None)),
        _table("places", _PLACES, None),
        _table("capitals", _CAPITALS, None),
    )
)
"""People by number with two tables, people by name, rows that are their own units, public tables."""

_SCHEMAS = {
    "visits": _VISITS,
    "orders": _ORDERS,
    "named": _NAMED,
    "lone": _VISITS,
    "places": _PLACES,
    "capitals": _CAPITALS,
}

_PUBLIC = [
    {"region": "north", "zone": "inner", "size": 1},
    {"region": "south", "zone": "outer", "size": 2},
    {"region": "south", "zone": "inner", "size": 3},  # a row that matches becomes two
    {"region": "nowhere", "zone": "outer", "size": 1},
    {"region": None, "zone": "inner", "size": 2},
]
_UNIQUE = [  # no region twice, but for those that equal nothing
    {"region": "north", "capital": "a", "height": 12.5},
    {"region": "south", "capital": "b", "height": math.nan},
    {"region": "nowhere", "capital": "a", "height": 1e9},
    {"region": None, "capital": "c", "height": 3.0},
    {"region": None, "capital": "d", "height": 4.0},
]


@dataclass(frozen=True, slots=True)
class World:
    """The rows of every private table."""

    tables: dict[str, list[dict[str, Any]]]

    def __add__(self, other: World) -> World:
        return World({name: [*rows, *other.tables[name]] for name, rows in self.tables.items()})

    def opened(self, *, threads: int = 1, shuffled: int | None = None) -> Source:
        """Return the tables, with their rows in an order of their own."""
        held = {}
        for name, schema in _SCHEMAS.items():
            rows = list(self.tables.get(name, _UNIQUE if name == "capitals" else _PUBLIC))
            if shuffled is not None:
                random.Random(shuffled).shuffle(rows)
            columns = {key: [row[key] for row in rows] for key in schema}
            held[name] = pyarrow.table(columns, schema=pyarrow.schema(list(schema.items())))
        return open_tables(held, threads=threads)


def crowd(seed: int, *, people: int, rows: int) -> World:
    """Return a world of ordinary people, some of them without a name, some with odd values."""
    source = random.Random(seed)
    visits, orders = [], []
    for _ in range(rows):
        person = (
            source.choice([None, *range(1, people)]) if source.random() < 0.1 else source.randrange(people)
        )
        visits.append(_visit(source, person, odd=0.15))
    for _ in range(rows // 3):
        orders.append(_order(source, source.randrange(people), odd=0.15))
    return _world(visits, orders)


def newcomer(kind: str, seed: int, person: int) -> World:
    """Return all rows of one person more, of a kind of `NEIGHBOURS`; in `lone`, the one row."""
    source = random.Random(f"{kind} {seed}")
    plain = {"amount": 100.0, "age": 110, "qty": 10, "score": 1.0, "big": 10**12, "member": True}
    plain |= {"price": Decimal(50), "rate": Decimal(1), "code": 10**6, "single": 5.0}
    match kind:
        case "one row":
            visits, orders = [_visit(source, person, odd=0)], []
        case "ordinary":
            visits = [_visit(source, person, odd=0.1) for _ in range(6)]
            orders = [_order(source, person, odd=0.1) for _ in range(3)]
        case "huge":  # hundreds of rows, in every group there is and in many that there are not
            visits = [_visit(source, person, odd=0.2) for _ in range(250)]
            for place in range(0, 250, 2):
                visits[place]["word"] = f"rare {place % 40}"
            orders = [_order(source, person, odd=0.2) for _ in range(12)]
        case "extreme":  # every value at a bound, or beyond it
            visits = []
            for place in range(40):
                far = {"amount": 1e308, "age": 2**31 - 1, "qty": INT64[1], "score": math.inf, "big": INT64[1]}
                low = {
                    "amount": -1e308,
                    "age": -(2**31),
                    "qty": INT64[0],
                    "score": -math.inf,
                    "big": INT64[0],
                }
                values = (plain, far, low)[place % 3] if place % 2 else plain
                visits.append({**_visit(source, person, odd=0), **values, "word": WORDS[place % 7]})
                visits[-1] |= {"day": DAYS[place % 4], "at": MOMENTS[place % 4]} | (FAR if place % 3 else {})
            orders = [{**_order(source, person, odd=0), "cost": value} for value in (1e308, 50.5, -1.0)]
        case "absent":  # nothing that is a value
            nothing = dict.fromkeys(_VISITS)
            visits = [
                {**nothing, "person": person, "amount": math.nan, "score": math.nan},
                {**nothing, "person": person},
            ]
            orders = [{**dict.fromkeys(_ORDERS), "buyer": person, "cost": math.nan}]
        case "upper":  # many rows with every value at its upper bound, and nothing else
            visits = [{**_visit(source, person, odd=0), **plain} for _ in range(30)]
            orders = [{**_order(source, person, odd=0), "cost": 50.5} for _ in range(5)]
        case "beyond":  # few rows, which no cap touches, with every value far above its bound
            far = {"amount": 1e308, "age": 2**31 - 1, "qty": INT64[1], "score": math.inf, "big": INT64[1]}
            far |= {"day": datetime.date(9999, 12, 31), "at": datetime.datetime(9999, 12, 31), **FAR}
            visits = [{**_visit(source, person, odd=0), **far, "region": "north"} for _ in range(2)]
            orders = [{**_order(source, person, odd=0), "cost": math.inf}]
        case "lower":
            low = {"amount": -20.0, "age": 0, "qty": 0, "score": 0.0, "big": -(10**12), "member": False}
            low |= {"price": Decimal(0), "rate": Decimal(-1), "code": 0, "single": -5.0}
            visits = [{**_visit(source, person, odd=0), **low} for _ in range(30)]
            orders = [{**_order(source, person, odd=0), "cost": 0.0} for _ in range(5)]
        case _:
            raise ValueError(kind)
    world = _world(visits, orders)
    world.tables["lone"] = [source.choice(visits)]
    return world


NEIGHBOURS = ("one row", "ordinary", "huge", "extreme", "absent", "upper", "lower", "beyond")


def _world(visits: list[dict[str, Any]], orders: list[dict[str, Any]]) -> World:
    return World(
        {
            "visits": visits,
            "orders": orders,
            "named": [{**row, "person": _name(row["person"])} for row in visits],
            "lone": visits,
        }
    )


def _name(person: int | None) -> str | None:
    return None if person is None else f"{WORDS[person % len(WORDS)]}#{person}"


def _visit(source: random.Random, person: int | None, *, odd: float) -> dict[str, Any]:
    def value(usual: Any, strange: Sequence[Any]) -> Any:
        return source.choice(strange) if source.random() < odd else usual

    day = datetime.date(2024, 1, 1) + datetime.timedelta(days=source.randrange(400))
    moment = datetime.datetime(day.year, day.month, day.day, source.randrange(24), 30, 15, 123456)
    return {
        "person": person,
        "age": value(source.choice([20, 30, 40, 40, 110]), [None, -5, 2**31 - 1, -(2**31), 0]),
        "amount": value(round(source.uniform(-20, 100), 2), NUMBERS),
        "qty": value(source.randrange(11), [None, *INT64, -1, 11]),
        "big": value(source.randrange(-(10**12), 10**12), [None, *INT64, 0]),
        "score": value(source.choice([0.0, -0.0, 0.25, 0.5, 1.0]), NUMBERS),
        "region": value(source.choice(REGIONS), [None, "nowhere", "North", "north\x00"]),
        "member": value(source.random() < 0.5, [None]),
        "word": value(source.choice(WORDS[:5]), [None, *WORDS]),
        "day": value(
            day,
            [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), *DAYS],
        ),
        "at": value(
            moment, [None, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59), *MOMENTS]
        ),
        "price": value(Decimal(source.randrange(5000)).scaleb(-2), [None, FAR["price"], -FAR["price"]]),
        "rate": value(Decimal(source.choice([0, 6, 7, 93])).scaleb(-2), [None, FAR["rate"], -FAR["rate"]]),
        "code": value(source.choice([3, 2**53, 2**53 + 1]), [None, FAR["code"], 0]),
        "single": value(source.choice([0.0, -0.0, 0.1, -2.5]), NUMBERS),
    }


def _order(source: random.Random, person: int, *, odd: float) -> dict[str, Any]:
    strange = source.random() < odd
    return {
        "buyer": person,
        "cost": source.choice(NUMBERS) if strange else float(source.randrange(60)),
        "place": source.choice([*REGIONS, None, "nowhere"] if strange else REGIONS),
        "item": source.choice([*INT64, 0]) if strange else source.randrange(5),
    }
