"""Short names for the arrays of the local model, and their cutting into pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Flags", "Floats", "Integers", "Octets", "slices"]

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]


def slices(length: int, step: int) -> Iterator[slice]:
    """Cut 0 .. length - 1 into pieces, so that work on a piece stays in the processor's cache."""
    return (slice(start, min(start + step, length)) for start in range(0, length, step))
