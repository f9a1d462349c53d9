"""Arrow columns as arrays, without pandas: `to_numpy` of an Arrow column imports it, where it is there."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import MOST_DIGITS, Kind, Value

__all__ = ["array_of", "arrow_array"]


def arrow_array(values: Sequence[Value], kind: Kind) -> Any:
    """Return values of a kind as an Arrow array; whole numbers of 128 bits are decimals there."""
    import pyarrow

    types = {
        Kind.INTEGER: pyarrow.int64(),
        Kind.HUGEINT: pyarrow.decimal128(MOST_DIGITS, 0),
        Kind.FLOAT: pyarrow.float32(),
        Kind.REAL: pyarrow.float64(),
        Kind.TEXT: pyarrow.string(),
        Kind.BOOLEAN: pyarrow.bool_(),
        Kind.DATE: pyarrow.date32(),
        Kind.TIMESTAMP: pyarrow.timestamp("us"),
    }
    if kind.digits or kind is Kind.HUGEINT:
        values = [None if value is None else Decimal(value) for value in values]  # type: ignore[arg-type]
    of_type = pyarrow.decimal128(kind.digits, kind.scale) if kind.digits else types[kind]
    return pyarrow.array(values, type=of_type)


def array_of(column: Any) -> npt.NDArray[Any]:
    """Return an Arrow column of integers, none of them NULL, as an array."""
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)
