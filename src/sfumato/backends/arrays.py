"""Arrow columns as arrays, without pandas: `to_numpy` of an Arrow column imports it, where it is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["array_of"]


def array_of(column: Any) -> npt.NDArray[Any]:
    """Return an Arrow column of integers, none of them NULL, as an array."""
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)
