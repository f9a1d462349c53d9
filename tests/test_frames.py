"""Answers become frames of other libraries where these are installed, and say what to install elsewhere."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import Unsupported
from sfumato.release.frames import frame_library


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"person": range(50), "sex": ["a", "b"] * 25})
    domains = {"sex": sf.one_of("a", "b")}
    db = sf.connect(
        frame,
        name="t",
        unit="person",
        max_rows=1,
        max_groups=1,
        columns=domains,
        budget=sf.Budget(epsilon=9, delta=1e-6),
    )
    release = db.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).release()
    tables = db.marginals(["sex"], ways=1, epsilon=1).release()
    assert getattr(release, f"to_{name}")().shape == (1, 1)
    monkeypatch.setitem(sys.modules, name, None)
    doors = [getattr(release, f"to_{name}"), lambda: frame_library(name)]
    if name == "pandas":
        doors.append(tables.table("sex").to_pandas)
    for door in doors:
        with pytest.raises(Unsupported) as refusal:
            door()
        assert refusal.value.hints == (f"pip install 'sfumato[{name}]'",)
