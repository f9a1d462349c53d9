"""Decimals of Parquet files that have more digits than their type: no question fails at one of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.errors import InvalidArgument
from tests.backends.misstated import misstated


def counts(source: Any) -> list[float]:
    """Return how many rows meet conditions; of so large an epsilon no count has noise, but for e^-1000."""
    db = sf.connect(
        source, unit="id", name="t", max_rows=1, max_groups=1, budget=sf.Budget(epsilon=10**7, delta=0.1)
    )
    conditions = ("x > 0", "x > DECIMAL '1.4444444444444444444'", "x + x > 0.001", "CAST(x AS TEXT) <> ''")
    return [
        float(db.sql(f"SELECT COUNT(*) AS n FROM t WHERE {one}", epsilon=100_000).release().one()["n"])
        for one in conditions
    ]


@pytest.mark.parametrize("form", ["as many bytes", "an integer of 32 bits", "an integer of 64 bits"])
def test_a_decimal_of_too_many_digits_is_null(tmp_path: Path, form: str) -> None:
    assert counts(misstated(tmp_path / "near.parquet", form, far=False)) == [2, 2, 2, 3]
    path = misstated(tmp_path / "far.parquet", form, far=True)
    if form != "an integer of 32 bits":  # of these the engine reads 16 bits, which may be any number
        assert counts(path) == [1, 1, 1, 2]
    else:
        assert all(most - 1 <= n <= most for n, most in zip(counts(path), (2, 2, 2, 3), strict=True))


@pytest.mark.parametrize("form", ["short bytes", "nine digits", "eighteen digits"])
def test_bytes_that_the_reader_may_fail_at_are_looked_through_when_a_file_is_opened(
    tmp_path: Path, form: str
) -> None:
    """The engine's reader fails at a decimal that its integer of 16, 32 or 64 bits cannot hold."""
    assert counts(misstated(tmp_path / "near.parquet", form, far=False)) == [2, 2, 2, 3]
    with pytest.raises(InvalidArgument, match="none of its type") as refused:
        open_tables({"t": misstated(tmp_path / "far.parquet", form, far=True)})
    assert "9999" not in str(refused.value)


def test_decimals_that_the_engine_reads_safely_stay_in_their_file(tmp_path: Path) -> None:
    whole = {}
    for digits in (1, 4, 9, 18, 19, 38):
        path = tmp_path / f"{digits}.parquet"
        parquet.write_table(pa.table({"x": pa.array([Decimal(1)], pa.decimal128(digits, 0))}), path)
        opened = open_tables({"t": path})
        whole[digits] = bool(opened._objects)
        opened.close()
    assert not any(whole.values())
