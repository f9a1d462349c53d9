"""Values that no privacy parameter may have; each must be refused by type or range, at once."""

from __future__ import annotations

import math

import numpy as np

NOT_NUMBERS = (math.nan, math.inf, -math.inf, 1e400, True, np.True_, "1", b"1", None, [1], 1 + 0j)
NOT_POSITIVE = (*NOT_NUMBERS, 0, 0.0, -1, -1e-300)
NOT_DELTAS = (*NOT_NUMBERS, 1, 1.0, 2, -1e-9)


def name(value: object) -> str:
    """Name a case after the value."""
    return repr(value)
