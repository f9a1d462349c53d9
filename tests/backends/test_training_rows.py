"""Rows for trainings: a unit's rows stand beside each other, whatever names its rows and leads to it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.learn.features import ModelColumn
from sfumato.learn.private_rows import training_rows

NUMBER, LETTER = ModelColumn(name="x", lower=0, upper=9), ModelColumn(name="alias", values=("a", "b"))
BUDGET = sf.Budget(epsilon=1, delta=1e-6)
COLUMNS = {"x": sf.between(0, 9), "alias": sf.one_of("a", "b")}


def units(db: sf.Database, frame: Any) -> Counter[tuple[tuple[str, ...], ...]]:
    """Return the rows of each unit, in an order of their own, and how many units have them."""
    rows = training_rows(frame, (NUMBER, LETTER))
    found = db.backend.training_rows(rows.relation)
    assert "hidden" in repr(found) and "hidden" in repr(found.reveal())
    opened = found.reveal()
    texts = [
        tuple(map(str, one)) for one in zip(*(opened.columns[name] for name in ("x", "alias")), strict=True)
    ]
    ends = np.cumsum(opened.sizes)
    parts = zip(ends - opened.sizes, ends, strict=True)
    return Counter(tuple(sorted(texts[start:end])) for start, end in parts)


@pytest.mark.parametrize(
    "names", [[1, 1, 2, 2, None, 3], ["a", "a", "b", "b", None, "B"]], ids=["numbers", "texts"]
)
def test_a_units_rows_are_together_and_nobodys_are_dropped(names: list[Any]) -> None:
    table = pa.table({"who": names, "x": [5, None, 1, 1, 2, 3], "alias": ["a", "b", None, "c", "a", "b"]})
    db = sf.connect(table, name="t", unit="who", columns=COLUMNS, budget=BUDGET)
    first, second, third = (("5.0", "0.0"), ("nan", "1.0")), (("1.0", "-1.0"),) * 2, (("3.0", "1.0"),)
    assert units(db, db.table("t")) == Counter([first, second, third])
    some = db.table("t").where(sf.col("x") < 4)
    assert units(db, some) == Counter([second, third])


def test_rows_that_are_units_by_themselves_stay_alone() -> None:
    table = pa.table({"x": [1.0, 1.0, float("nan")], "alias": ["a", "a", "b"]})
    db = sf.connect(table, name="t", unit=None, columns=COLUMNS, budget=BUDGET)
    assert units(db, db.table("t")) == Counter({(("1.0", "0.0"),): 2, (("nan", "1.0"),): 1})


def test_the_unit_is_reached_through_a_key_and_public_columns_join() -> None:
    db = sf.connect(
        {
            "orders": pa.table({"id": [1, 2, 3], "owner": ["ann", "ann", "bob"]}),
            "lines": pa.table({"ref": [1, 2, 3, 9], "x": [1, 2, 3, 4], "place": [0, 0, 1, 1]}),
        },
        public={"places": pa.table({"place": [0, 1], "alias": ["a", "b"]})},
        unit={"orders": "owner", "lines": "ref -> orders.id -> owner"},
        columns={"lines.x": sf.between(0, 9)},
        budget=BUDGET,
    )
    joined = db.table("lines").join(
        db.table("places"), on=sf.col("lines.place") == sf.col("places.place"), how="left"
    )
    frame = joined.select("x", alias_=sf.col("alias")).select("x", letter=sf.col("alias_"))
    rows = training_rows(frame, (NUMBER, ModelColumn(name="letter", values=("a", "b"))))
    found = db.backend.training_rows(rows.relation).reveal()
    assert sorted(found.sizes.tolist()) == [1, 2]  # of line 9 nobody is the owner
    assert found.columns["letter"].sum() == 1


def test_rows_of_nobody_and_of_several_people_are_refused() -> None:
    table = pa.table({"who": [1], "x": [1], "alias": ["a"]})
    db = sf.connect(
        table, name="t", unit="who", columns=COLUMNS, public={"p": pa.table({"x": [1, 2]})}, budget=BUDGET
    )
    with pytest.raises(QueryRefused):
        training_rows(db.table("p"), (NUMBER,))
    with pytest.raises(SfumatoError):
        training_rows(db.table("p").join(db.table("t"), on=sf.lit(True), how="left").select("t.x"), (NUMBER,))
