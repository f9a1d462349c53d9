"""The privacy-loss distribution of an event, put on a grid so that the cost can only grow, or only shrink.

A pair (P, Q) is known by its hockey-stick curve delta(epsilon) = P(L > epsilon) - e^epsilon Q(L > epsilon),
which is convex in x = e^epsilon. A measure on the grid that puts mass m_i on the loss l_i has the curve
infinite + sum of m_i (1 - e^(epsilon - l_i))_+, which is linear in x between grid points. Two facts carry
everything here:

* a curve that lies above another everywhere stays above it under composition with anything, because the
  composed curve is an average of shifted copies of it. The measures need not have mass one;
* a chord of a convex function lies above it. So it is enough to be right *at the grid points*, and any
  subset of them will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.core.events.base import Direction, Event
from sfumato.errors import InvalidArgument

__all__ = ["GUARD", "IntArray", "LossDistribution", "delta_of_event", "renyi_of_event"]

IntArray = npt.NDArray[np.int64]

GUARD = 2.0**-42
"""Twice the relative round-off (1024 ulp) that `Event.tails` may have. Tails that are off by a factor of
1 +- GUARD/2 move the curve by at most GUARD * P(L > epsilon), which is what raising every loss by GUARD
and every mass by a factor of 1 + GUARD outweighs (or, downwards, lowering them)."""

_REPRESENTABLE = 600.0  # above this loss Q-masses come near the smallest float
_SPECK = 1e-300  # at the lowest knot, so that some finite loss has mass even where all losses are infinite


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossDistribution:
    """P-mass `masses[i]` at the loss `indices[i] * step`, and P-mass `infinite` of infinite loss.

    >>> from sfumato.core import events
    >>> law = LossDistribution.pessimistic(events.Gaussian(sigma=2), 0.01, Direction.REMOVE)
    >>> round(law.delta(1.0), 5), round(events.Gaussian(sigma=2).delta(1.0), 5)  # from above, and exactly
    (0.00683, 0.00683)
    """

    step: float
    indices: IntArray
    masses: FloatArray
    infinite: float

    @classmethod
    def pessimistic(
        cls, event: Event, step: float, direction: Direction, knots: IntArray | None = None
    ) -> LossDistribution:
        """Discretise so that no composition looks cheaper than it is.

        Each cell between neighbouring knots gives its P- and Q-mass to its two ends. Where
        round-off makes a share negative it is raised to zero. Mass below the first knot moves up
        to it, mass above the last counts as infinite loss.

        Theorem: "connect the dots" (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022): the
        curve of the result meets the true one at the knots and is its chord between them.
        Assumes: tails are right to a factor of 1 +- GUARD/2. Rounds: up, once losses and
        masses are raised by GUARD.
        """
        indices = _every_knot(event, step, direction) if knots is None else knots
        levels = indices.astype(np.float64) * step
        above_p, above_q = event.tails(levels, direction)
        p, q = -np.diff(above_p), -np.diff(above_q)
        low = levels[:-1]
        exact_share = (p - q * np.exp(np.minimum(low, _REPRESENTABLE))) / -np.expm1(-np.diff(levels))
        upper = np.where(low > _REPRESENTABLE, p, exact_share)
        masses = np.zeros(len(indices))
        masses[:-1] += np.maximum(p - upper, 0.0)
        masses[1:] += np.maximum(upper, 0.0)
        masses[0] += max(_SPECK, 1.0 - float(above_p[0]))
        return cls(step=step, indices=indices, masses=masses, infinite=float(above_p[-1]))

    @classmethod
    def optimistic(
        cls, event: Event, step: float, direction: Direction, knots: IntArray | None = None
    ) -> LossDistribution:
        """Discretise so that no composition looks dearer than it is.

        Each cell becomes one output; outputs are then merged from the top, the last one of a
        group in part, so that the loss ln(p/q) of each group is a grid point.

        Theorem: merging outputs is post-processing, which lowers the curve everywhere.
        Assumes: tails are right to a factor of 1 +- GUARD/2. Rounds: down, once losses and
        masses are lowered by 2 GUARD.
        """
        indices = _every_knot(event, step, direction) if knots is None else knots
        indices = np.append(indices, indices[-1] + 1)  # so that a loss on the last knot has a cell above it
        levels = indices.astype(np.float64) * step
        # A loss on a grid point belongs to the cell above it, so that it need not be merged downwards.
        just_below = levels - 2.0**-30 * step - 2.0**-51 * np.abs(levels)
        above_p, above_q = event.tails(just_below, direction)
        # The factor keeps a loss that sits on a grid point from falling below it by round-off.
        p, q = -np.diff(above_p) * (1.0 + GUARD), -np.diff(above_q)
        # No loss in a cell exceeds its upper end, whatever round-off makes of a cell that holds nothing else.
        p = np.minimum(p, q * np.exp(np.minimum(levels[1:], 700.0)) * (1.0 + GUARD))
        far = levels[:-1] > _REPRESENTABLE
        near = ~far & (p > 0.0) & (q > 0.0)
        where, masses = _merge(p[near][::-1], q[near][::-1], step)
        # Losses too large for Q-masses to be told from zero are rounded down to a grid point.
        where = np.concatenate([indices[:1] - 1, where, indices[:-1][far] - 1])
        masses = np.concatenate([[_SPECK], masses, np.maximum(-np.diff(above_p)[far], 0.0)])
        infinite = max(0.0, float(above_p[-1]) - 1e-40)  # what `support` says may be finite after all
        return cls(step=step, indices=where, masses=masses, infinite=infinite)

    @property
    def losses(self) -> FloatArray:
        """The finite losses, in rising order."""
        return self.indices.astype(np.float64) * self.step

    def tilted(self, theta: float) -> tuple[float, FloatArray]:
        """Return ln E_P[e^(theta L)] over the finite losses, and masses of sum one tilted by e^(theta L)."""
        exponents = theta * self.losses
        logs = np.log(self.masses, out=np.full_like(self.masses, -math.inf), where=self.masses > 0.0)
        top = float(np.max(exponents + logs))
        weights = self.masses * np.exp(np.minimum(exponents - top, 700.0))
        total = float(weights.sum())
        return top + math.log(total), weights / total

    def cumulant(self, theta: float) -> float:
        """Return ln E_P[e^(theta L)] over the finite losses."""
        return self.tilted(theta)[0]

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence of this distribution itself."""
        gaps = np.minimum(epsilon - self.losses, 0.0)
        return self.infinite + float(self.masses @ -np.expm1(gaps))


def _every_knot(event: Event, step: float, direction: Direction) -> IntArray:
    """Return all grid points of an event's support, the last one strictly above it."""
    low, high = event.support(direction)
    return np.arange(math.floor(low / step), math.floor(high / step) + 2, dtype=np.int64)


def delta_of_event(event: Event, epsilon: float) -> float:
    """Return the delta of one event at `epsilon`, the larger of both directions.

    Theorem: delta = P(L > epsilon) - e^epsilon Q(L > epsilon). Rounds: up, by GUARD P(L > epsilon).
    """
    if not epsilon >= 0.0:
        raise InvalidArgument("epsilon must be zero or more", place="epsilon")
    worst = 0.0
    for direction in event.directions:
        above_p, above_q = (float(tail[0]) for tail in event.tails(np.array([epsilon]), direction))
        # Where e^epsilon overflows, P alone is the bound.
        lowered = above_q * math.exp(epsilon) if epsilon <= _REPRESENTABLE else 0.0
        worst = max(worst, above_p * (1.0 + GUARD) - lowered)
    return min(1.0, worst)


def renyi_of_event(event: Event, order: float) -> float:
    """Return an upper bound on the Renyi divergence of `order` > 1, the larger of both directions.

    Theorem: e^((order-1) L) is convex in e^-L, so the pessimistic distribution has the larger
    mean. Assumes: once P(L > l) e^((order-1) l) has fallen by e^60 from its bulk it stays
    negligible; where it has not when P(L > l) underflows, the answer is inf. Rounds: up.
    """
    from sfumato.core.loss_sketch import LossSketch

    if not (order > 1.0 and math.isfinite(order)):
        raise InvalidArgument("order must be above 1 and finite", place="order")
    theta = order - 1.0
    worst = 0.0
    for direction in event.directions:
        outline = LossSketch.reaching(event, direction, theta)
        if outline is None:
            return math.inf
        step = outline.step_for(theta, 2**15)
        law = LossDistribution.pessimistic(event, step, direction, outline.knots([theta], step))
        worst = max(worst, law.cumulant(theta) / theta)
    # The sum of exponentials is right to some ulp, and ln of it was divided by theta.
    return worst + 2.0 * GUARD * order + 2.0**-46 / theta


def _merge(p: FloatArray, q: FloatArray, step: float) -> tuple[IntArray, FloatArray]:
    """Merge outputs, given from the highest loss down, into groups whose losses are grid points."""
    where: list[int] = []
    masses: list[float] = []
    target, scale, held_p, held_q = 0, 1.0, 0.0, 0.0
    spots = np.floor(np.minimum(np.log(p / q), _REPRESENTABLE) / step).astype(np.int64)
    for next_p, next_q, spot in zip(p.tolist(), q.tolist(), spots.tolist(), strict=True):
        if held_p > 0.0:
            # The share of the next output that brings the group's ratio down to the target.
            excess, lack = held_p - scale * held_q, scale * next_q - next_p
            if lack <= 0.0 or excess >= lack:
                held_p, held_q = held_p + next_p, held_q + next_q
                continue
            share = max(0.0, excess / lack)
            where.append(target)
            masses.append(held_p + share * next_p)
            held_p, held_q = (1.0 - share) * next_p, (1.0 - share) * next_q
        else:
            held_p, held_q = next_p, next_q
        target, scale = spot, math.exp(spot * step)
    if held_p > 0.0:
        where.append(target)
        masses.append(held_p)
    return np.array(where[::-1], dtype=np.int64), np.array(masses[::-1])
