"""Keys of groups as columns: the same groups, in the same order, as Python makes of the same tuples."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sfumato.backends.group_keys import GroupKeys, key_columns
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported

VALUES: dict[Kind, list[Any]] = {
    Kind.TEXT: ["b", "", "é", "z", "\U0001f600", "￿", None],
    Kind.INTEGER: [-(2**63), -1, 0, 2**63 - 1, None],
    Kind.HUGEINT: [-(2**127), 3, 10**38, 2**127 - 1, None],
    Kind.BOOLEAN: [True, False, None],
    Kind.REAL: [-1.5, 0.0, 1e300, float("-inf"), None],
    Kind.FLOAT: [-1.5, 0.25, None],
    Kind.DATE: [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    Kind.TIMESTAMP: [datetime.datetime(1, 1, 1), datetime.datetime(2026, 1, 1, 0, 0, 0, 7), None],
    Kind.decimal(5, 2): [Decimal("-1.50"), Decimal("2.00"), None],
}


def _rows(kinds: tuple[Kind, ...], many: int) -> list[tuple[Any, ...]]:
    source = random.Random(repr(kinds))
    return [tuple(source.choice(VALUES[kind]) for kind in kinds) for _ in range(many)]


def _columns(rows: list[tuple[Any, ...]], kinds: tuple[Kind, ...], chunks: int) -> tuple[Any, ...]:
    """Return columns as engines return them: Python's values, or Arrow's in several chunks."""
    plain = key_columns(list(zip(*rows, strict=True)) or [()] * len(kinds), kinds)
    size = -(-max(1, len(rows)) // chunks)
    return tuple(
        pa.chunked_array([column.combine_chunks().slice(at * size, size) for at in range(chunks)])
        for column in plain
    )


def _ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(set(rows), key=lambda row: [(value is None, value) for value in row])


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize(
    "kinds", [*((kind,) for kind in VALUES), (Kind.TEXT, Kind.INTEGER), tuple(VALUES), ()], ids=str
)
def test_groups_are_those_of_equal_tuples(kinds: tuple[Kind, ...], chunks: int) -> None:
    rows = _rows(kinds, 60)
    groups = GroupKeys(_columns(rows, kinds, chunks), len(rows), kinds)
    keys = list(groups.keys)
    assert keys == _ordered(rows) and len(groups) == len(keys)
    assert [list(map(type, key)) for key in keys] == [list(map(type, key)) for key in _ordered(rows)]
    assert [keys[place] for place in groups.of_rows] == rows
    others = _rows(kinds, 300)[60:]
    known = {key: place for place, key in enumerate(keys)}
    places = groups.places(_columns(others, kinds, chunks), len(others))
    assert places.tolist() == [known.get(row, -1) for row in others]


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_no_rows_are_no_groups(kind: Kind) -> None:
    groups = GroupKeys(key_columns([()], [kind]), 0, (kind,))
    assert list(groups.keys) == [] and len(groups) == 0
    some = VALUES[kind]
    assert groups.places(key_columns([some], [kind]), len(some)).tolist() == [-1] * len(some)
    assert groups.places(key_columns([()], [kind]), 0).tolist() == []


@pytest.mark.parametrize("column", [(0.1, 0.1000000001), pa.chunked_array([[0.1, 0.1000000001]])])
def test_two_keys_are_never_rounded_to_one(column: Any) -> None:
    with pytest.raises(Unsupported, match="rounded"):
        key_columns([column], [Kind.FLOAT])


def test_keys_are_hidden() -> None:
    groups = GroupKeys(key_columns([("secret",)], [Kind.TEXT]), 1, (Kind.TEXT,))
    assert "secret" not in f"{groups!r} {groups.keys!r}"
