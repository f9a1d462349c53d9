"""Ratios of noisy numbers, and intervals for them by Fieller's method.

A statistic theta solves numerator - theta * denominator = 0 in exact integers. With noise, the
left side at the true theta is noise alone, of a known law; the interval is all theta for which
it would not be surprising. Unlike "estimate plus or minus two deviations", that stays right
when the denominator is small, where the interval grows to the whole declared range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import tail
from sfumato.core.steps import spend

__all__ = ["Estimate", "fieller"]

_Floats = npt.NDArray[np.float64]
_Linear = tuple[_Floats, _Floats]

_HALVINGS = 60
_DOUBLINGS = 400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """One number per group and its interval; NaN as a value stands for NULL."""

    values: _Floats
    low: _Floats
    high: _Floats


def fieller(
    numerator: _Floats,
    denominator: _Floats,
    *,
    laws: Sequence[NoiseLaw],
    weights: Sequence[_Linear],
    extra: Callable[[_Floats], _Floats] | None = None,
    low: _Floats,
    high: _Floats,
    chance: float,
) -> tuple[_Floats, _Floats]:
    """Return, for each group, the theta in [low, high] that noise does not rule out at the level 1 - chance.

    The noise of (numerator - theta * denominator) is the sum over j of (a_j + b_j theta) * noise j,
    with (a_j, b_j) = weights[j]; `extra(theta)` is the variance of what is not linear in the noise.

    Theorem: at the true theta the left side is that noise, so the set of theta whose tail is above
    `chance` covers it with probability 1 - chance (Fieller 1954). The set is an interval where the
    denominator is clear of zero at the same level; where it is not, all of [low, high] is returned,
    and so it is for a chance of zero.
    """
    nothing = np.zeros_like(numerator)
    if chance == 0:
        return low, high

    def surprise(theta: _Floats) -> _Floats:
        spend()
        each = [a + b * theta for a, b in weights]
        more = nothing if extra is None else extra(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            return tail(laws, each, np.abs(numerator - theta * denominator), more)

    unclear = tail(laws, [b for _, b in weights], np.abs(denominator), nothing) >= chance
    unclear |= denominator <= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.where(unclear, 0.0, numerator / denominator)
    ends = []
    for limit, side in ((low, -1.0), (high, 1.0)):
        inside = centre.copy()
        given = unclear | np.isfinite(limit)
        outside = (
            limit if given.all() else np.where(given, limit, _beyond(surprise, centre, side, chance, given))
        )
        reached = surprise(np.where(unclear, centre, outside)) >= chance  # the limit is not ruled out
        for _ in range(_HALVINGS):
            middle = np.where(unclear, centre, inside + (outside - inside) / 2)
            kept = surprise(middle) >= chance
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(np.where(unclear | reached, limit, outside))
    lower, upper = np.clip(ends[0], low, high), np.clip(ends[1], low, high)
    return np.minimum(lower, upper), np.maximum(lower, upper)


def _beyond(
    surprise: Callable[[_Floats], _Floats],
    centre: _Floats,
    side: float,
    chance: float,
    given: npt.NDArray[np.bool_],
) -> _Floats:
    """Return points on one side of the centre that are ruled out, where there is no limit to search up to."""
    step = np.maximum(1e-9, np.abs(np.nan_to_num(centre, posinf=0.0, neginf=0.0)) * 1e-9)
    for _ in range(_DOUBLINGS):
        inside = (surprise(centre + side * step) >= chance) & ~given
        if not inside.any():
            break
        step = np.where(inside, 2 * step, step)
    return centre + side * step
