"""Entries that the engine added up are chosen as rows are; names stand for units whatever their hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.backends.bounding.contributions import bound_contributions
from sfumato.backends.bounding.entries import Entries, bound_entries
from sfumato.backends.bounding.packing import PackedChoice, PackedRows, Packing, Slot
from sfumato.backends.duckdb import DuckDBBackend, backend, by_unit, unit_numbers
from sfumato.backends.duckdb.compile import Program

SLOT = Slot(word=0, shift=0, bits=3)
KEY_HASHES = np.array([3, 3, 5, 7], dtype=np.uint64)  # two keys share a hash
UNIT = st.one_of(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(UNIT, st.integers(0, 3), st.integers(0, 7)), max_size=60),
    st.integers(0, 2**64 - 1),
    st.sampled_from([None, 1, 2, 3]),
)
def test_entries_are_chosen_as_rows_are(
    rows: list[tuple[int, int, int]], salt: int, max_groups: int | None
) -> None:
    choice = PackedChoice(max_groups=max_groups, salt=salt, key_hashes=KEY_HASHES, sums=(SLOT,))
    units, codes, values = (np.array([row[at] for row in rows], dtype=np.int64) for at in range(3))
    words = ((codes << 3) | values).view(np.uint64)
    expected = bound_contributions(
        PackedRows(units=units, words=(words,)), Packing(code_bits=2, value_bits=3), choice
    )
    together: dict[tuple[int, int], list[int]] = {}
    for unit, code, value in rows:
        together.setdefault((unit, code), []).append(value)
    pairs = sorted(together, key=hash)
    found = bound_entries(
        Entries(
            units=np.array([unit for unit, _ in pairs], dtype=np.int64),
            codes=np.array([code for _, code in pairs], dtype=np.int64),
            rows=np.array([len(together[pair]) for pair in pairs], dtype=np.int64),
            sums={SLOT: np.array([sum(together[pair]) for pair in pairs], dtype=np.int64)},
        ),
        choice,
    )

    def listed(kept: Any) -> list[tuple[int, ...]]:
        return list(zip(kept.code.tolist(), kept.rows.tolist(), kept.sums[SLOT].tolist(), strict=True))

    assert sorted(listed(found)) == sorted(entry for one in expected for entry in listed(one))
    assert len(set(zip(found.unit.tolist(), found.code.tolist(), strict=True))) == len(found.code)


# -- the engine -----------------------------------------------------------------------------

QUESTIONS = (
    "SELECT g, COUNT(*) AS n, SUM(x) AS a, AVG(y) AS b, COUNT(DISTINCT who) AS w FROM t GROUP BY g",
    "SELECT g, COUNT(*) AS n, SUM(x) FILTER (WHERE i > 40) AS a FROM t GROUP BY ROLLUP (g)",
    "SELECT COUNT(*) AS n, SUM(i) AS s, AVG(y) AS y, COUNT(DISTINCT i) AS d FROM t",
    "SELECT MEDIAN(i) AS m FROM t",
    "SELECT COUNT(*) AS n, SUM(x) AS a, AVG(y) AS b FROM t",
    "SELECT h, COUNT(*) AS n, SUM(x) AS a, AVG(y) AS b, SUM(i) FILTER (WHERE x > 50) AS c FROM t GROUP BY h",
    "SELECT h, SUM(x * y) AS a, AVG(y) AS b FROM t GROUP BY ROLLUP (h)",
    "SELECT k, COUNT(*) AS n FROM t JOIN u USING (who) GROUP BY k",
)


def database() -> sf.Database:
    """Return people with texts for names; far more rows and groups than caps allow."""
    draw = np.random.default_rng(3)
    who = [f"person {number:.0f}" for number in np.floor(900 * draw.random(2000) ** 4)]
    rows = {
        "who": who,
        "g": [f"g{number}" for number in draw.integers(0, 9, 2000)],
        "x": draw.normal(50, 30, 2000),
        "y": draw.normal(50, 30, 2000),
        "i": draw.integers(0, 90, 2000),
        "h": draw.integers(0, 4, 2000),
    }
    more = {"who": [f"person {number}" for number in range(70)], "k": [number % 3 for number in range(70)]}
    bounds: dict[str, Any] = {name: sf.between(0, 100) for name in ("t.x", "t.y", "t.i")}
    bounds["t.h"] = sf.one_of(*range(3))
    return sf.connect(
        {"t": pyarrow.table(rows), "u": pyarrow.table(more)},
        unit="who",
        columns=bounds,
        budget=sf.Budget(epsilon=100, delta=1e-6),
        max_groups=3,
        max_rows=4,
    )


def totals(db: sf.Database, text: str) -> list[Any]:
    """Return the exact integers of a question, with a salt of our own."""
    (bounding,) = db.sql(text, epsilon=1, max_distinct=2).priced().boundings
    assert isinstance(db.backend, DuckDBBackend)
    return [
        (
            list(groups.keys),
            None if groups.units is None else groups.units.tolist(),
            {name: np.asarray(values).tolist() for name, values in groups.measures.items()},
            None if groups.members is None else sorted(groups.members.sizes.tolist()),
        )
        for groups in db.backend.run(bounding.query, _salt=7).reveal()
    ]


@pytest.mark.parametrize("text", QUESTIONS)
def test_no_way_to_the_totals_changes_them(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()
    expected = totals(db, text)
    monkeypatch.setattr(Program, "sums_whole", False)
    assert totals(db, text) == expected
    monkeypatch.setattr(Program, "sums_first", False)
    assert totals(db, text) == expected
    monkeypatch.setattr(DuckDBBackend, "_numbers", lambda *_: None)
    assert totals(db, text) == expected
    monkeypatch.setattr(DuckDBBackend, "_told_apart", lambda *_: False)
    assert totals(db, text) == expected
    monkeypatch.undo()
    monkeypatch.setattr(DuckDBBackend, "_numbers", lambda *_: None)
    assert totals(db, text) == expected
    monkeypatch.setattr(DuckDBBackend, "_told_apart", lambda *_: False)
    assert totals(db, text) == expected


@pytest.mark.parametrize("text", QUESTIONS)
def test_units_whose_names_have_one_hash_stay_apart(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three hashes for hundreds of people, taking a hash for a person would leave three people."""

    def few(column: str) -> str:
        return f"(hash({column}) % 3)"

    for module in (backend, by_unit, unit_numbers):
        monkeypatch.setattr(module, "hash_of", few)
    db = database()
    found = totals(db, text)
    monkeypatch.setattr(DuckDBBackend, "_numbers", lambda *_: None)
    assert totals(database(), text) == found
    monkeypatch.setattr(DuckDBBackend, "_told_apart", lambda *_: False)
    assert totals(database(), text) == found
    if "GROUP BY" not in text:  # everybody is there
        counted = totals(database(), "SELECT COUNT(DISTINCT who) AS n FROM t")
        assert next(iter(counted[0][2].values()))[0] > 300
