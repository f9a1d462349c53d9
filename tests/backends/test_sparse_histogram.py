"""How many groups one person brings must not decide whether a question with a histogram can be answered."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.analysis import bounding
from sfumato.analysis.bounded import BoundedQuery
from sfumato.backends.duckdb.compile import compile_query, lay_out
from sfumato.errors import QueryRefused

# Thresholds are such that one person's group is shown by chance once in 10^15 releases.
BUDGET = sf.Budget(epsilon=9, delta=1e-13, keys_delta=1e-14)
MEDIAN = "SELECT word, MEDIAN(x) AS m FROM people GROUP BY word"
WORDS = 50_000


def people(frame: pd.DataFrame, **columns: sf.Domain) -> sf.Database:
    return sf.connect(
        frame,
        name="people",
        unit="person",
        columns={"x": sf.between(0, 5), **columns},
        budget=BUDGET,
        max_groups=1,
        max_rows=1,
    )


def bounded(database: sf.Database, text: str = MEDIAN) -> BoundedQuery:
    return database.sql(text, epsilon=1).priced().boundings[0].query


@pytest.mark.parametrize("groups", [0, 1, 2**20, 2_000_000, 2**31, 2**32 + 1, 2**46])
def test_words_have_room_for_any_number_of_groups(groups: int) -> None:
    database = people(pd.DataFrame({"person": [1], "word": [1], "x": [1.0]}))
    text = "SELECT word, MEDIAN(x), SUM(x), COUNT(*) FROM people GROUP BY word"
    layout = lay_out(compile_query(bounded(database, text), database.catalog), groups)
    assert layout.packing.low_bits <= 63
    assert 2**layout.packing.code_bits >= groups


@pytest.mark.parametrize("whole", [True, False], ids=["one person", "each row a person"])
def test_a_person_with_many_groups_takes_the_memory_of_rows(whole: bool) -> None:
    """A table of all groups and 640 cells would take 256 megabytes; rows and keys take a few.

    False alarm below 1e-9: 50,000 groups of one person each, of which none may be shown.
    """
    frame = pd.DataFrame({"person": [1] * WORDS, "word": np.arange(WORDS), "x": [1.0] * WORDS})
    database = people(frame)
    if not whole:
        columns = {"x": sf.between(0, 5)}
        database = sf.connect(frame, name="people", unit=None, columns=columns, budget=BUDGET)
    query = bounded(database)
    assert len(query.measures[-1].edges) == 641
    tracemalloc.start()
    try:
        exact = database.backend.run(query)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    [groups] = exact.reveal()
    assert len(groups.keys) == (1 if whole else WORDS)
    assert len(database.sql(MEDIAN, epsilon=1).release()) == 0


def test_cells_of_selected_groups_are_those_of_all() -> None:
    """The same rows, once with the words declared and so with a table of all of them, once without.

    One person has fifty words before all others, of which one is kept: the other groups must be gone,
    and what is in the groups behind them must stay theirs.
    """
    draw = np.random.default_rng(5)
    size = 400
    frame = pd.DataFrame(
        {
            "person": [*range(size), *[size] * 50],
            "word": [*draw.integers(0, 9, size), *range(-50, 0)],
            "x": draw.uniform(-1, 6, size + 50),
        }
    )
    with_table = people(frame, word=sf.one_of(*range(-50, 9)))
    [dense] = with_table.backend.run(bounded(with_table), _salt=7).reveal()  # type: ignore[call-arg]
    found = people(frame)
    [sparse] = found.backend.run(bounded(found), _salt=7).reveal()  # type: ignore[call-arg]
    measure = bounded(found).measures[-1]
    there = np.flatnonzero(np.asarray(dense.measures[measure.name]).sum(axis=1))
    assert [dense.keys[place] for place in there] == list(sparse.keys)
    assert len(there) == 10
    table = dense.measures[measure.name][there]
    some = np.array([7, 0, 3])
    assert np.array_equal(table[some], sparse.measures[measure.name][some])
    assert np.array_equal(table, sparse.measures[measure.name])
    assert table.sum() == (size + 1) * measure.weight


def test_declared_groups_times_cells_have_a_public_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is a gigabyte; here it is lower, so that few groups reach it."""
    monkeypatch.setattr(bounding, "_MOST_CELLS", 5_000)
    frame = pd.DataFrame({"person": [1], "word": [1], "x": [1.0]})
    database = people(frame, word=sf.one_of(*range(9)))
    with pytest.raises(QueryRefused, match="SF405") as refusal:
        database.sql(MEDIAN, epsilon=1).release()
    assert "keys='selected'" in str(refusal.value)
    assert database.budget.spent == 0
    assert len(database.sql(MEDIAN, epsilon=1, keys="selected").release()) == 0
    assert len(database.sql("SELECT word, COUNT(*) FROM people GROUP BY word", epsilon=1).release()) == 9
