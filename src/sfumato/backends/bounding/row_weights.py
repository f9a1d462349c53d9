"""Row weights: how much of its rows a unit enters a group with, as a fraction in whole numbers.

A unit with n rows in a group has the weight min(n, m) / n for each of them, where m is `max_rows`. With a
cap T on its rows over all groups, W is the sum of min(n, m) over the groups that it is kept in; where
W > T, every weight of the unit is multiplied by T / W.

Theorem: a unit's weights are a function of its own rows, and of public caps, alone. The weights of all its
rows in a group add up to at most m, and over all groups to at most T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RowWeights"]

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowWeights:
    """The weight of each entry (a unit in a group): `top` / `bottom`, at most one. Caps are below 2^31."""

    top: _Integers
    bottom: _Integers

    @staticmethod
    def of(
        unit: _Integers,
        rows: _Integers,
        *,
        most: int | None,
        total: int | None = None,
        keep: npt.NDArray[np.bool_] | None = None,
    ) -> RowWeights:
        """Return the weights of entries with these numbers of rows, of units numbered from zero.

        `keep` flags the groups that count, where others are among the entries: their weights mean nothing.

        >>> found = RowWeights.of(np.array([0, 0, 1]), np.array([4, 1, 3]), most=3, total=2)
        >>> list(zip(found.top.tolist(), found.bottom.tolist()))
        [(6, 16), (2, 4), (6, 9)]
        """
        top = rows if most is None else np.minimum(rows, most)
        if total is None or not len(rows):
            return RowWeights(top=top, bottom=rows)
        counted = top if keep is None else top * keep
        whole = np.bincount(unit, weights=counted).astype(np.int64)[unit]  # exact: far below 2^53
        over = whole > total
        return RowWeights(top=np.where(over, top * total, top), bottom=np.where(over, rows * whole, rows))

    @property
    def light(self) -> npt.NDArray[np.bool_]:
        """Flag the entries whose rows all count in full."""
        flags: npt.NDArray[np.bool_] = self.top >= self.bottom
        return flags

    def some(self, entries: npt.NDArray[Any]) -> RowWeights:
        """Return the weights of some entries, by their places or flags, in that order."""
        return RowWeights(top=self.top[entries], bottom=self.bottom[entries])

    def applied(self, sums: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return trunc(s * top / bottom) for a sum s of each entry, in whole numbers throughout.

        >>> rows = np.array([3, 3, 1])
        >>> RowWeights.of(np.arange(3), rows, most=1).applied(np.array([7, -7, 5])).tolist()
        [2, -2, 5]
        """
        over = np.flatnonzero(~self.light)
        if not len(over):
            return sums
        result = sums.copy()
        part, top, bottom = sums[over], self.top[over], self.bottom[over]
        if sums.dtype == object or int(top.max()) * int(bottom.max()) >= 2**63:
            triples = zip(part.tolist(), top.tolist(), bottom.tolist(), strict=True)
            shares = [abs(s) * t // b * (1 if s > 0 else -1) for s, t, b in triples]
            result[over] = np.array(shares, dtype=sums.dtype)
            return result
        whole, rest = np.divmod(np.abs(part), bottom)  # s = q b + r: s t / b = q t + r t / b, and r t < b t
        share = whole * top + rest * top // bottom
        result[over] = np.where(part < 0, -share, share)
        return result
