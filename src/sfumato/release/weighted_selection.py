"""Selection by weights: groups that nobody declared, found by noisy weights.

The rule and its proof are in `analysis.selection`.

All is integers: a unit's weight in each of its groups comes from a public table, by the number of its
groups that were not found yet, and weights add up exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.selection import Selection
from sfumato.backends.exact import Membership
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import Unsupported

__all__ = ["found_in_rounds", "weights_of"]

_Integers = npt.NDArray[Any]
_Flags = npt.NDArray[np.bool_]
_Noisy = Callable[[_Integers, NoiseLaw, int], _Integers]


def found_in_rounds(members: Membership, size: int, selection: Selection, noisy: _Noisy) -> _Flags:
    """Return which of `size` groups were found in some round; `noisy` adds fresh noise within a cut."""
    if not selection.rounds or selection.grid < 1:
        raise Unsupported("a selection by weights that does not say how")
    found = np.zeros(size, dtype=np.bool_)
    for one in selection.rounds:
        weights = weights_of(members, found, selection)
        reached = noisy(weights, one.law, one.cut) > one.cut
        found |= reached.astype(np.bool_)
    return found


def weights_of(members: Membership, found: _Flags, selection: Selection) -> npt.NDArray[np.int64]:
    """Return the weight of every group; each unit divides its own over its groups not found yet."""
    return members.weights(found, lambda groups: _weight(selection, groups))


def _weight(selection: Selection, groups: int) -> int:
    """Return what a unit weighs in each of its groups, rounded down."""
    return selection.law.divided(selection.grid, groups)
