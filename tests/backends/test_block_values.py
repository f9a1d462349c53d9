"""Statistics of blocks: DuckDB's values, a function of the multiset of rows, and never an error."""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pytest

from sfumato.aggregates.sample_and_aggregate import BlockStatistic
from sfumato.backends.bounding.block_values import BlockRows, blocks_of, statistic_of
from sfumato.backends.bounding.group_totals import GroupingSet
from sfumato.backends.bounding.packing import PackedChoice
from tests.engine.questions import Asked
from tests.engine.replay import planned

SOURCE = random.Random(5)
ORDINARY = [[round(SOURCE.lognormvariate(0, 1), 1) for _ in range(size)] for size in (4, 5, 30, 301)]
STRANGE = [
    [1.0], [1.0, 1.0], [0.1] * 3, [0.1] * 7, [1e308, 1e308], [1e308, -1e308, 1e308], [5e-324, 0.0],
    [math.inf], [math.inf, -math.inf, 1.0], [-1.0, 2.0, 3.0, 4.0],
    [0.0, -0.0, 0.0, 0.0], [1e200, 2e200, 1.0, 2.0],
]  # fmt: skip


def ends(values: list[float]) -> np.ndarray[Any, Any]:
    return np.sort(np.array(values, dtype=np.float64))


@pytest.mark.parametrize("statistic", BlockStatistic, ids=lambda one: one.label)
def test_they_are_what_duckdb_has_under_these_names(statistic: BlockStatistic) -> None:
    for values in ORDINARY:
        x = ends(values)
        columns = [x, np.sin(3 * x)][: statistic.arity]
        relation = duckdb.from_arrow(pyarrow.table(columns, names=["x", "y"][: statistic.arity]))
        for name in {*statistic.value} - {"std", "var"}:  # which are of other engines
            [(plain,)] = relation.aggregate(f"{name}({', '.join(relation.columns)})").fetchall()
            assert statistic_of(statistic, *columns) == pytest.approx(plain, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("statistic", BlockStatistic, ids=lambda one: one.label)
def test_no_value_makes_them_fail(statistic: BlockStatistic) -> None:
    """Nor warn: in tests a warning is an error."""
    for values in STRANGE:
        columns = [ends(values), ends(values)[::-1]][: statistic.arity]
        found = statistic_of(statistic, *columns)
        assert math.isnan(found) or math.isfinite(found)
    same = statistic_of(statistic, *[np.full(7, 0.1)] * statistic.arity)
    expected = {"stddev_samp": 0.0, "var_samp": 0.0, "entropy": 0.0, "mad": 0.0}.get(statistic.label, 0.1)
    if statistic.label in ("kurtosis", "kurtosis_pop", "skewness", "corr"):
        assert math.isnan(same)
    else:
        assert same == pytest.approx(expected)


def rows(order: list[int]) -> BlockRows:
    """Return three rows of each of 40 people, whose values cancel out but for 1, in some order."""
    text = "SELECT SAMPLE_AND_AGGREGATE(AVG(v.amount), -1, 1, blocks => 5) FROM visits AS v"
    [measure] = planned(Asked(text, {})).query.measures
    values = [(1e16, 1.0, -1e16)[place % 3] * (1 + place // 3 % 7) for place in order]
    return BlockRows.kept(
        measure,
        np.array([place // 3 for place in order], dtype=np.int64),
        np.zeros(len(order), dtype=np.int64),
        [np.array(values)],
        None,
        PackedChoice(max_groups=None, salt=7, key_hashes=np.zeros(1, dtype=np.uint64)),
    )


def test_order_changes_no_bit() -> None:
    """And it would, if doubles were added up as they come: these are of 1e16, and differ by whole numbers."""
    nothing = np.zeros(1, dtype=np.int64)
    group = GroupingSet(chosen=(), parents=nothing, firsts=nothing)
    order = list(range(120))
    found, naive = set(), set()
    for _ in range(20):
        SOURCE.shuffle(order)
        some = rows(order)
        found.add(tuple(some.totals(group).tolist()))
        naive.add(float(sum(some.values[0][some.blocks == 1].tolist())))
    assert len(found) == 1 and len(naive) > 1


def test_people_are_spread_over_blocks_and_each_is_in_one() -> None:
    hashes = np.arange(20_000, dtype=np.uint64)
    blocks = blocks_of(hashes, 12345, 50)
    counts = np.bincount(blocks, minlength=50)
    assert len(counts) == 50 and (abs(counts - 400) < 8 * math.sqrt(400)).all()
    assert (blocks_of(hashes[::-1], 12345, 50)[::-1] == blocks).all()
    assert (blocks_of(hashes, 54321, 50) != blocks).mean() > 0.9
