"""Measures where each row is a unit by itself: what SQL adds up is all there is to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import Measure, MeasureKind
from sfumato.backends.arrays import array_of
from sfumato.backends.bounding.group_totals import GroupingSet, GroupTotals, distinct_by_group
from sfumato.backends.duckdb.compile import Program
from sfumato.backends.duckdb.engine import Engine
from sfumato.backends.totals import SparseCells, empty, sum_by_group

__all__ = ["count_rows"]

_Array = npt.NDArray[Any]


def count_rows(
    engine: Engine, program: Program, summed: str, matched: str, sets: tuple[GroupingSet, ...]
) -> list[GroupTotals]:
    """Return the totals of each grouping set; `summed` has the finest groups, `matched` the rows."""
    found = engine.table(f"SELECT * FROM {summed}")
    codes = array_of(found.column("code"))
    cells = {}
    distinct = {}
    for measure in program.query.measures:
        if measure.kind is MeasureKind.CELLS:
            integer = program.integers[measure.name]
            assert integer is not None
            cell = f"SELECT code, {integer.sql} AS cell FROM {matched}"
            text = f"SELECT code, cell, count(*) FROM ({cell}) WHERE cell > 0 GROUP BY code, cell"
            cells[measure.name] = engine.columns(text)
        elif measure.kind is MeasureKind.DISTINCT:
            column = program.distinct[measure.name]
            there = f"SELECT DISTINCT code, {column} AS value FROM {matched} WHERE {column} IS NOT NULL"
            value = ", value" if measure.factors else ""
            numbered = f"SELECT code, dense_rank() OVER (ORDER BY value) - 1{value} FROM ({there})"
            distinct[measure.name] = engine.columns(numbered)

    def total(place: int, measure: Measure, one: GroupingSet, units: _Array) -> Any:
        if measure.kind is MeasureKind.CELLS:
            groups, cell, many = cells[measure.name]
            places = one.parents[groups] * (len(measure.edges) - 1) + cell - 1
            return SparseCells.summed(measure, one.size, [(places, many * measure.weight)])
        if measure.kind is MeasureKind.DISTINCT:
            groups, values, *of_rows = distinct[measure.name]
            addends = None
            if of_rows:
                addends = np.zeros(int(values.max(initial=-1)) + 1, dtype=np.int64)
                addends[values] = of_rows[0]
            return distinct_by_group(measure, one.parents[groups], values, one.size, addends)
        if program.integers[measure.name] is None:
            result: _Array = empty(measure, one.size) + units
            return result
        sums = array_of(found.column(f"s{place}"))
        result = empty(measure, one.size) + sum_by_group(one.parents[codes], sums, one.size)
        if f"t{place}" in found.column_names:
            upper = sum_by_group(one.parents[codes], array_of(found.column(f"t{place}")), one.size)
            result = result + upper.astype(object) * 2**31
        return result

    totals = []
    for one in sets:
        units = sum_by_group(one.parents[codes], array_of(found.column("units")), one.size)
        measures = {
            measure.name: total(place, measure, one, units)
            for place, measure in enumerate(program.query.measures)
        }
        totals.append(GroupTotals(units=units.astype(np.int64), measures=measures))
    return totals
