"""Parquet files that state fewer digits of their decimals than one of these has."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

FAR = "9" * 20 + ".9"
FORMS: dict[
    str, tuple[int, int, dict[str, Any]]
] = {  # digits as they are written, digits that the file then states, and how they are stored
    "short bytes": (38, 4, {}),
    "nine digits": (38, 9, {}),
    "eighteen digits": (38, 18, {}),
    "as many bytes": (38, 20, {}),
    "an integer of 32 bits": (9, 4, {"store_decimal_as_integer": True}),
    "an integer of 64 bits": (18, 10, {"store_decimal_as_integer": True}),
}


def misstated(path: Path, form: str, *, far: bool) -> Path:
    """Write three decimals, and state fewer digits than one of them has, if it is `far`."""
    written, stated, options = FORMS[form]
    last = Decimal(FAR[-written:] if far else "2.5")
    values = pa.array([Decimal("1.5"), Decimal("-3.0"), last], pa.decimal128(written, 1))
    table = pa.table({"id": ["a", "b", "c"], "x": values})
    parquet.write_table(table, path, store_schema=False, write_statistics=False, **options)
    held = path.read_bytes()
    begins = len(held) - 8 - int.from_bytes(held[-8:-4], "little")
    old, new = (b"\x15" + bytes([2 * digits]) for digits in (written, stated))  # a field of the thrift footer
    assert held.count(old, begins) == 2, "the digits are stated twice, by the two names of the type"
    path.write_bytes(held[:begins] + held[begins:].replace(old, new))
    return path
