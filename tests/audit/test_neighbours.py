"""Neighbours differ by one unit, are the same on every run, and hold what has broken systems before."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from sfumato.audit import answers, numbers, tables
from sfumato.audit.questions import PUBLIC
from sfumato.audit.worlds import CATALOG, NEWCOMERS, arrow_tables
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.errors import InvalidArgument


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 100), (-5, 5), (2.5, 7)])
def test_lists_differ_by_one_number(low: float, high: float) -> None:
    pairs = numbers(low, high)
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        more = Counter(map(repr, pair.right)) - Counter(map(repr, pair.left))
        less = Counter(map(repr, pair.left)) - Counter(map(repr, pair.right))
        assert sum(more.values()) == 1 and not less, pair.name
    values = [value for pair in pairs for value in pair.right]
    assert any(map(math.isnan, values)) and {math.inf, -math.inf} <= set(values)
    assert any(not pair.left for pair in pairs) and max(values) > 1000 * high


def test_the_traps_are_traps() -> None:
    """Floats round the other way, and integers run over: at these lists, not at ordinary ones."""
    named = {pair.name: pair for pair in numbers(0, 1)}
    trap = named["a sum at which 32-bit floats round up, and one person"]
    sums = [
        float(np.cumsum(np.array(side, dtype=np.float32), dtype=np.float32)[-1])
        for side in (trap.left, trap.right)
    ]
    assert sums[1] - sums[0] > 1.9
    for bits, word in ((8, np.int8), (16, np.int16)):
        pair = named[f"a sum at which {bits}-bit integers run over, and one person"]
        left, right = (int(np.array(side, dtype=word).sum(dtype=word)) for side in (pair.left, pair.right))
        assert left == 2 ** (bits - 1) - 1 and right == -(2 ** (bits - 1))


def test_answers_move_by_at_most_a_step() -> None:
    pairs = answers(6, step=2, level=10)
    assert len({tuple(pair.right) for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert len(pair.left) == len(pair.right) == 6
        assert all(abs(a - b) <= 2 for a, b in zip(pair.left, pair.right, strict=True))
    with pytest.raises(InvalidArgument):
        numbers(3, 3)


def test_worlds_differ_by_one_unit() -> None:
    pairs = tables(CATALOG, public=PUBLIC)
    again = tables(CATALOG, public=PUBLIC)
    assert [pair.right for pair in pairs] == [pair.right for pair in again] or _same(pairs, again)
    assert {name for name in NEWCOMERS if any(pair.name.endswith(name) for pair in pairs)} == set(NEWCOMERS)
    for pair in pairs:
        assert pair.left["places"] == pair.right["places"] == PUBLIC["places"]
        for table, unit in (("visits", "person"), ("calls", "caller")):
            before = Counter(row[unit] for row in pair.left[table])
            after = Counter(row[unit] for row in pair.right[table])
            assert len(after.keys() - before.keys()) == 1
            assert all(after[person] == rows for person, rows in before.items())
        assert len(pair.right["sales"]) == len(pair.left["sales"]) + 1
        arrow_tables(pair.right, CATALOG)  # fits the engine's types


def _same(pairs: Any, again: Any) -> bool:
    return [repr(pair.right) for pair in pairs] == [repr(pair.right) for pair in again]


def test_somebody_is_as_awkward_as_people_get() -> None:
    people = [[row for row in pair.right["visits"] if row["person"] == 10_007] for pair in tables(CATALOG)]
    rows = [row for one in people for row in one]
    assert max(map(len, people)) >= 50
    assert any(row["amount"] == 1e308 for row in rows) and any(row["amount"] == -math.inf for row in rows)
    assert any(row["amount"] == 10.0 for row in rows) and any(row["amount"] == 0.0 for row in rows)
    assert any(row["amount"] is None for row in rows)
    assert any(isinstance(row["amount"], float) and math.isnan(row["amount"]) for row in rows)
    assert any(str(row["word"]).startswith("rare") for row in rows)
    assert any(row["day"] == datetime.date(9999, 12, 31) for row in rows)
    assert {len({row["region"] for row in one}) for one in people} >= {1, 3}


def test_units_may_be_texts_and_tables_public() -> None:
    catalog = Catalog(
        (
            Table(
                name="t",
                fields=(
                    Field("who", Kind.TEXT),
                    Field(
                        "at", Kind.TIMESTAMP, between(datetime.date(2024, 1, 1), datetime.date(2024, 2, 1))
                    ),
                    Field("x", Kind.REAL),
                    Field("n", Kind.INTEGER),
                    Field("b", Kind.BOOLEAN),
                    Field("d", Kind.DATE),
                    Field("k", Kind.INTEGER, one_of(1, 2, 3)),
                ),
                unit=Unit(name="who", column="who"),
            ),
            Table(name="p", fields=(Field("k", Kind.INTEGER),), unit=None),
        )
    )
    for pair in tables(catalog):
        made = arrow_tables(pair.right, catalog)
        assert made["t"].num_rows > 0 and made["p"].num_rows == 6
