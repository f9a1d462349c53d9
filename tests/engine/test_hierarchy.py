"""Hierarchies over a public table of places: cells that add up, and totals that the policy makes public."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.analysis import Cost
from sfumato.analysis.consistency import level_deviations, unit_of
from sfumato.errors import InvalidArgument, QueryRefused, SfumatoError
from sfumato.ledger import Ledger
from sfumato.ledger.receipts import verify_receipt
from sfumato.release import NoisyGroups, Release, tabulate
from sfumato.release.consistency import consistent_groups

PLACES = [(f"s{block % 3}", f"c{block % 3}{block % 2}", block) for block in range(12)]
CELLS = ("young", "middle", "old")
PEOPLE = [(block, CELLS[(block + turn) % 3]) for block in range(12) for turn in range(4 + block % 5)]
STATES = sorted({state for state, _, _ in PLACES})


def state_of(block: int) -> str:
    return PLACES[block][0]


def totals(**wrong: int) -> pa.Table:
    counted = {state: sum(state_of(block) == state for block, _ in PEOPLE) for state in STATES} | wrong
    return pa.table({"state": list(counted), "n": list(counted.values())})


BY_STATE = sf.Invariant(table="people", by=("state",), totals="state_totals", count="n")
IN_ALL = sf.Invariant(table="people", by=(), totals="nation", count="n")


def opened(*invariants: sf.Invariant, **public: Any) -> sf.Database:
    states, counties, blocks = zip(*PLACES, strict=True)
    homes, cells = zip(*PEOPLE, strict=True)
    return sf.connect(
        {"people": pa.table({"person": range(len(PEOPLE)), "block": homes, "age": cells})},
        unit="person",
        max_rows=1,
        max_groups=1,
        columns={"age": sf.one_of(*CELLS)},
        public={"places": pa.table({"state": states, "county": counties, "block": blocks}), **public},
        budget=sf.Budget(epsilon=1e9, delta=1e-6, rule="zcdp"),
        invariants=invariants,
    )


LEVELS = ["state", "county", "block"]


@pytest.fixture(scope="module")
def db() -> sf.Database:
    nation = pa.table({"n": [len(PEOPLE)]})
    return opened(BY_STATE, IN_ALL, state_totals=totals(), nation=nation)


def by_level(release: Release) -> list[dict[tuple[Any, ...], dict[Any, int]]]:
    """Return counts by cell, by group, by level: nation, states, counties, blocks."""
    found: list[dict[tuple[Any, ...], dict[Any, int]]] = [{}, {}, {}, {}]
    for row in release.rows:
        *keys, cell, number = row if len(row) == 5 else (*row[:3], None, row[3])
        known = tuple(key for key in keys if key is not None)
        found[len(known)].setdefault(known, {})[cell] = number
    return found


@pytest.mark.parametrize("non_negative", [False, True])
@pytest.mark.parametrize("cells", [None, "age"])
def test_totals_that_are_public_are_kept_and_named(
    db: sf.Database, cells: str | None, non_negative: bool
) -> None:
    asked = db.hierarchy(LEVELS, cells=cells, places="places", epsilon=0.3, non_negative=non_negative)
    release = asked.release()
    levels = by_level(release)
    assert [len(level) for level in levels] == [1, 3, 6, 12]
    for above, below in pairwise(levels):
        for group, counts in above.items():
            parts = [other for key, other in below.items() if key[: len(group)] == group]
            assert counts == {cell: sum(part[cell] for part in parts) for cell in counts}
    known = dict(zip(*totals().to_pydict().values(), strict=True))
    assert {state: sum(counts.values()) for (state,), counts in levels[1].items()} == known
    assert sum(levels[0][()].values()) == len(PEOPLE)
    if non_negative:
        assert min(number for level in levels for counts in level.values() for number in counts.values()) >= 0
    said = "how many rows `people` has by `state` (`state_totals`)"
    assert f"NOT PROTECTED, public by the owner's policy: {said}" in release.notes
    assert release.cost["unprotected"][0] == said and said in release.receipt["unprotected"]
    assert verify_receipt(release.receipt, db.ledger.public_key)
    assert "NOT PROTECTED" in repr(release) and "NOT PROTECTED" in release._repr_html_()
    assert "NOT PROTECTED" in repr(asked) and "NOT PROTECTED" in asked.explain()
    assert Release.from_json(release.to_json()).to_json() == release.to_json()
    if cells is None:  # what is known has no error
        ends = [
            one for row, one in zip(release.rows, release.intervals()["n"], strict=True) if row[1] is None
        ]
        assert len(ends) == 4 and all(one is not None and one[0] == one[1] for one in ends)
    assert all(
        ends is not None and ends[0] <= value <= ends[1]
        for value, ends in zip(release.column("n"), release.intervals()["n"], strict=True)
    )


def test_a_question_that_counts_something_else_keeps_no_totals(db: sf.Database) -> None:
    text = "SELECT state, COUNT(*) AS n FROM people JOIN places USING (block) {} GROUP BY ROLLUP (state)"
    whole = db.sql(text.format(""), epsilon=0.3, consistent=True).release()
    part = db.sql(text.format("WHERE age = 'old'"), epsilon=0.3, consistent=True).release()
    assert (
        "unprotected" in whole.cost and "unprotected" not in part.cost and "unprotected" not in part.receipt
    )


def test_a_workload_names_what_is_not_protected(db: sf.Database) -> None:
    """Also where the question that keeps the totals shares its measurements with one that comes first."""
    text = (
        "SELECT p.state, COUNT(*) AS n FROM people JOIN places AS p USING (block) GROUP BY ROLLUP (p.state)"
    )
    asked = db.workload([db.sql(text, epsilon=0.3), db.sql(text, epsilon=0.3, consistent=True)])
    assert "NOT PROTECTED" in repr(asked) and len(asked.priced().shared) == 1
    released = asked.release()
    assert "unprotected" in released.cost and "unprotected" in released.receipt
    assert any("NOT PROTECTED" in note for note in released[1].notes)


def test_without_noise_a_hierarchy_is_the_truth(db: sf.Database) -> None:
    levels = by_level(db.hierarchy(LEVELS, cells="age", places="places", epsilon=1e6).release())
    for (state, county, block), counts in levels[3].items():
        assert (state, county, block) == PLACES[block]
        assert counts == {cell: PEOPLE.count((block, cell)) for cell in CELLS}


def test_errors_beside_known_totals_are_as_predicted(db: sf.Database) -> None:
    """False alarm below 1e-9: a binomial tail of misses, and 7.5 deviations of a sample variance.

    The first cell of the first group of each level, over many draws of noise on the true counts.
    """
    rounds = 300
    asked = db.hierarchy(LEVELS, cells="age", places="places", epsilon=0.2)
    priced = asked.priced()
    [bounding], [cost] = priced.boundings, priced.costs
    sets = bounding.query.grouping_sets
    keys = [sorted({key[: len(chosen)] for key in bounding.query.declared or ()}) for chosen in sets]
    rows = [(PLACES[block], cell) for block, cell in PEOPLE]

    def counted(key: tuple[Any, ...]) -> list[int]:
        return [sum(home[: len(key)] == key and own == cell for home, own in rows) for cell in CELLS]

    truth = [np.array([counted(key) for key in groups]) for groups in keys]
    unit = unit_of(bounding, "m0")
    found: list[list[float]] = [[] for _ in sets]
    for _ in range(rounds):
        noisy = tuple(
            NoisyGroups(
                grouping_set=chosen,
                keys=tuple(keys[place]),
                measures={},
                layers={"m0": (truth[place] * unit + _drawn(cost, place, truth[place].shape),)},
            )
            for place, chosen in enumerate(sets)
        )
        groups = consistent_groups(noisy, bounding, cost, non_negative=False)
        for place, one in enumerate(groups):
            found[place].append(float(one.layers["m0"][0][0, 0] / unit - truth[place][0, 0]))
    table = tabulate("table", groups, bounding, cost)
    column = table.aggregate(table.answers[0])
    predicted = level_deviations(bounding, cost)
    for place, errors in enumerate(found):
        at = table.sets.index(place)
        width = (column.high[at][0] - column.low[at][0]) / 2
        assert sum(abs(error) > width for error in errors) <= binom.isf(1e-10, rounds, 0.05)
        ratio = float(np.mean(np.square(errors))) / (predicted["m0", place] / unit) ** 2
        assert abs(ratio - 1) < 7.5 * math.sqrt(2 / rounds)


def _drawn(cost: Cost, place: int, shape: tuple[int, ...]) -> Any:
    return cost.noise("m0", place).law.draw(math.prod(shape)).reshape(shape)


WRONG = {
    "sums": ((BY_STATE, IN_ALL), {"state_totals": totals(), "nation": pa.table({"n": [3]})}, "do not add up"),
    "a state without a total": ((BY_STATE,), {"state_totals": totals().slice(1)}, "just the groups"),
    "a total without a state": ((BY_STATE,), {"state_totals": totals(s9=4)}, "just the groups"),
    "two totals": (
        (BY_STATE,),
        {"state_totals": pa.concat_tables([totals(), totals(s0=4)])},
        "two totals of one group",
    ),
    "below zero": ((BY_STATE,), {"state_totals": totals(s0=-4)}, "below zero"),
}


@pytest.mark.parametrize(("invariants", "public", "said"), WRONG.values(), ids=WRONG.keys())
def test_invariants_that_contradict_are_refused_before_the_charge(
    invariants: tuple[sf.Invariant, ...], public: dict[str, Any], said: str
) -> None:
    database = opened(*invariants, **public)
    with pytest.raises(QueryRefused, match=said):
        database.hierarchy(LEVELS, places="places", epsilon=1).release()
    assert database.balance.spent_units == 0


@pytest.mark.parametrize(
    "changed",
    [{"table": "nobody"}, {"totals": "people"}, {"by": ("planet",)}, {"count": "state"}, {"by": "state"}],
)
def test_invariants_that_make_no_sense_are_refused(changed: dict[str, Any]) -> None:
    fields = {"table": "people", "by": ("state",), "totals": "state_totals", "count": "n", **changed}
    with pytest.raises(InvalidArgument, match="invariant"):
        opened(sf.Invariant(**fields), state_totals=totals())


@pytest.mark.parametrize(
    "options",
    [
        {"levels": []},
        {"levels": "block"},
        {"levels": ["block", "block"]},
        {"levels": ["state", "block"]},  # of the private table, which has no states
        {"places": "people"},
        {"places": "places", "cells": "person"},
        {"places": "places", "level_shares": (1, 2)},
    ],
)
def test_hierarchies_that_make_no_sense_are_refused(db: sf.Database, options: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError):
        db.hierarchy(**{"levels": LEVELS, **options}, epsilon=1).release()


PROJECT = """
ledger = "people.ledger"

[tables.people]
path = "people.parquet"
unit = "person"
max_rows = 1
max_groups = 1

[tables.places]
path = "places.parquet"
public = true

[tables.state_totals]
path = "totals.parquet"
public = true

[budget]
epsilon = 5
delta = 1e-6

[[policy.invariants]]
table = "people"
by = ["state"]
totals = "state_totals"
count = "n"
"""


def test_a_project_file_declares_invariants(tmp_path: Path) -> None:
    states, counties, blocks = zip(*PLACES, strict=True)
    homes, cells = zip(*PEOPLE, strict=True)
    pq.write_table(
        pa.table({"person": range(len(PEOPLE)), "block": homes, "age": cells}), tmp_path / "people.parquet"
    )
    pq.write_table(
        pa.table({"state": states, "county": counties, "block": blocks}), tmp_path / "places.parquet"
    )
    pq.write_table(totals(), tmp_path / "totals.parquet")
    (tmp_path / "sfumato.toml").write_text(PROJECT)
    Ledger.open(tmp_path / "people.ledger")
    release = sf.open(tmp_path / "sfumato.toml").hierarchy(LEVELS, places="places", epsilon=0.5).release()
    assert "unprotected" in release.receipt
    (tmp_path / "sfumato.toml").write_text(PROJECT.replace('by = ["state"]\n', ""))
    with pytest.raises(SfumatoError, match="by"):
        sf.open(tmp_path / "sfumato.toml")
