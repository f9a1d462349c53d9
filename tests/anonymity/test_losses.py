"""Loss is what its definitions say: against a slow reference, and where it can be worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.anonymity import Generalised, Goal, Intervals, reach
from sfumato.errors import InvalidArgument
from tests.anonymity import reference
from tests.anonymity.reference import QUASI, tables
from tests.anonymity.test_mondrian import width
from tests.anonymity.test_reaching import METHODS


def entropy_lost(made: Generalised, name: str) -> float:
    """Return the bits that generalising a column has cost, as a share of all, row by row."""
    each = made.column(name)
    values = reference.column(made.source, name)
    lost = most = 0.0
    for row, value in enumerate(values):
        alone = values.count(value)
        meant = values
        if not made.suppressed[row]:
            stands_for = [reference.same(one) for one in each.stands_for(each.of_row[row]).to_pylist()]
            meant = [one for one in values if one in stands_for]
        lost += -math.log2(alone / len(meant))
        most += -math.log2(alone / len(values))
    return lost / most if most else 0.0


@settings(max_examples=60)
@given(tables(least=3, most=12), st.sampled_from([Goal(k=2), Goal(k=4)]), st.sampled_from(METHODS))
def test_losses_are_those_of_the_definitions(table: pa.Table, goal: Goal, options: dict[str, Any]) -> None:
    try:
        made = reach(table, QUASI, goal, **options)
    except InvalidArgument:
        return
    loss = made.loss
    sizes = [made.class_of.tolist().count(number) for number in range(made.after.classes)]
    suppressed = int(made.suppressed.sum())
    assert loss.suppressed == suppressed / table.num_rows
    assert loss.discernibility == sum(size**2 for size in sizes) + suppressed * table.num_rows
    assert loss.class_size == pytest.approx((sum(sizes) / len(sizes)) / goal.k)
    for each, name in zip(loss.columns, QUASI, strict=True):
        assert each.entropy == pytest.approx(entropy_lost(made, name), abs=1e-9)
        if options == {"method": "mondrian"}:
            column, values = made.column(name), reference.column(table, name)
            meant = [column.stands_for(label).to_pylist() for label in column.of_row]
            widths = [width([reference.same(one) for one in run], values) for run in meant]
            assert each.certainty == pytest.approx(sum(widths) / len(widths), abs=1e-9)
    assert loss.certainty == pytest.approx(sum(each.certainty for each in loss.columns) / 3)
    assert loss.entropy == pytest.approx(sum(each.entropy for each in loss.columns) / 3)
    if options["method"] == "recoding":
        heights = [made.levels[name] / made.column(name).height for name in QUASI]  # type: ignore[operator]
        kept = 1 - loss.suppressed
        assert loss.precision == pytest.approx(1 - (kept * sum(heights) / 3 + loss.suppressed))
    else:
        assert loss.precision is None


def test_nothing_lost_and_everything_lost() -> None:
    table = pa.table({"x": [1, 1, 2, 2]})
    nothing = reach(table, ["x"], Goal(k=2)).loss
    assert (nothing.certainty, nothing.entropy, nothing.discernibility, nothing.class_size) == (0, 0, 8, 1)
    everything = reach(table, ["x"], Goal(k=4)).loss
    assert (everything.certainty, everything.entropy, everything.discernibility) == (1, 1, 16)


def test_losses_worked_out_by_hand() -> None:
    """Ages 0 to 9, once each, in halves: 4 of 9 years; 5 of 10 values, log2 5 of log2 10 bits."""
    halves = reach(pa.table({"age": range(10)}), ["age"], Goal(k=5)).loss
    assert halves.certainty == pytest.approx(4 / 9)
    assert halves.entropy == pytest.approx(math.log2(5) / math.log2(10))
    # By hierarchy: [0, 5) and [5, 10), of which 4 years (to 9) lie within the table.
    widths = {"age": Intervals(widths=(5,), high=10)}
    levels = reach(
        pa.table({"age": range(10)}), ["age"], Goal(k=5), method="recoding", hierarchies=widths
    ).loss
    assert levels.certainty == pytest.approx((5 / 9 + 4 / 9) / 2)
    assert levels.precision == pytest.approx(1 / 2)


def test_a_report_of_losses_names_every_column() -> None:
    made = reach(pa.table({"age": range(10), "sex": ["f", "m"] * 5}), ["age", "sex"], Goal(k=3))
    assert all(name in str(made.loss) for name in ("age", "sex", "certainty", "entropy"))
    assert made.loss.to_dict()["columns"][1]["column"] == "sex"
