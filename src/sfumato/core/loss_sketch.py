"""The outline of a loss distribution: a few thousand cells, enough to plan where to look closely.

Nothing here carries a guarantee. It finds the tilt that brings the wanted tail to the middle, the
window that holds the tilted mass, and the step and the knots at which the guaranteed discretisation
of `losses` is evaluated; a poor plan costs tightness or time, never soundness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.events.base import Direction, Event
from sfumato.core.losses import IntArray

__all__ = ["LossSketch", "NEGLIGIBLE", "WindowPlan", "tilt_at_delta", "tilt_at_epsilon"]

NEGLIGIBLE = 36.0
"""-ln of the tilted mass that may lie beyond either end of the window."""

_TINY = 2.0**-1000
_LEAST_LOSS = 1e-100  # anything below is no loss
_UNSEEN = 2.0**-46  # P-mass at the bottom that is moved up rather than resolved
_LEAST_SIZE = 2.0**16  # a window is cut into at least this many steps
_MOST_SIZE = 2.0**23  # and into no more than these
_MOST_KNOTS = 2.0**18  # per event
_LEAST_STEP = 2.0**-32  # below it, round-off would outweigh what finer cells gain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossSketch:
    """Cells of losses between `edges`: P(L > lower edge), the P-mass as a logarithm, one typical loss."""

    edges: FloatArray
    above: FloatArray
    log_masses: FloatArray
    losses: FloatArray

    @classmethod
    def of(cls, event: Event, direction: Direction) -> LossSketch:
        """Sketch an event over its support."""
        return cls._between(event, direction, *event.support(direction))

    @classmethod
    def reaching(cls, event: Event, direction: Direction, theta: float) -> LossSketch | None:
        """Sketch it as far up as E[e^(theta L)] needs; None where that has no known bound."""
        sketch = cls.of(event, direction)
        low, high = event.support(direction)
        if event.tails(np.array([high]), direction)[0][0] == 0.0:
            return sketch
        # The support leaves out up to 1e-40 of mass: follow it up until it no longer counts.
        beyond = high + (high - low) * np.linspace(0.0, 40.0, 4001)
        tail = event.tails(beyond, direction)[0]
        weights = _log(tail) + theta * beyond
        faint = np.flatnonzero((tail > 0.0) & (weights < sketch.moments(theta)[0] - 60.0))
        endless = tail[-1] > 0.0 and tail[-1] == tail[len(tail) // 2]
        if endless or len(faint) == 0:
            return None
        return cls._between(event, direction, low, float(beyond[faint[0]]))

    @classmethod
    def _between(cls, event: Event, direction: Direction, low: float, high: float) -> LossSketch:
        """Cut a range evenly and, because losses may have very different sizes, in octaves around zero."""
        reach = max(abs(low), abs(high), _LEAST_LOSS)
        octaves = reach * np.exp2(-np.arange(0.0, 40.0, 1.0 / 16.0))
        sliver = 1e-9 * reach  # the ends of a bounded loss are often atoms: give them cells of their own
        even = np.linspace(low, high, 1025)
        edges = np.concatenate([even, -octaves, octaves, [low + sliver, high - sliver]])
        edges = np.unique(np.append(edges[(edges >= low) & (edges <= high)], high + 1e-12 * reach))
        above_p, above_q = event.tails(edges, direction)
        # Far down, P(L > l) is one but for round-off, and cells there would hold nothing else.
        start = max(0, int(np.argmax(above_p < 1.0 - _UNSEEN)) - 1)
        edges, above_p, above_q = edges[start:], above_p[start:], above_q[start:]
        p, q = -np.diff(above_p), -np.diff(above_q)
        p[0] += max(_TINY, 1.0 - above_p[0])
        ratios = np.where(q > _TINY, _log(p) - np.log(np.maximum(q, _TINY)), edges[1:])
        losses = np.clip(ratios, edges[:-1], edges[1:])
        return cls(edges=edges, above=above_p[:-1], log_masses=_log(p), losses=losses)

    def tilted(self, theta: float) -> tuple[float, FloatArray]:
        """Return ln E[e^(theta L)] and the masses of the law tilted by e^(theta L)."""
        exponents = self.log_masses + theta * self.losses
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        return top + math.log(total), weights / total

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Return ln E[e^(theta L)] and its first two derivatives."""
        cumulant, weights = self.tilted(theta)
        mean = float(weights @ self.losses)
        return cumulant, mean, float(weights @ np.square(self.losses - mean))

    def density(self, tilts: Sequence[float]) -> FloatArray:
        """Return how far apart knots should be in each cell, relative to each other; inf where it is empty.

        Cells of width h add p h^2 to the variance and need width/h knots: the fewest knots for a
        given total have h as the density's cube root, inverted. The first tilt is the one that counts.
        """
        weights = self.tilted(tilts[0])[1]
        for tilt in tilts[1:]:
            weights = weights + 1e-4 * self.tilted(tilt)[1]
        full = weights > _TINY
        relative = np.full(len(weights), math.inf)
        relative[full] = np.cbrt(np.diff(self.edges)[full] / weights[full])
        relative /= math.sqrt(float(weights[full] @ np.square(relative[full])))
        density: FloatArray = np.maximum(relative, 1.0)
        return density

    def spacing(self, tilts: Sequence[float], step: float, count: int) -> FloatArray:
        """Return how far apart to put knots in each cell.

        Besides, p must stand out from the round-off of P(L > l) / h that sharing it between the ends
        of a cell has; and the mean of e^(tilt L), to the power of `count`, must not grow by mass that
        moved by h, a factor of e^(tilt h).
        """
        most = np.full(len(self.losses), math.inf)
        with np.errstate(divide="ignore"):
            for tilt in tilts:
                room = -np.log(1e10 * count * self.tilted(tilt)[1])
                most = np.minimum(most, np.maximum(0.5, room) / max(1.0, abs(tilt)))
        masses = np.maximum(np.exp(self.log_masses), _TINY)
        with np.errstate(over="ignore"):
            noise = np.sqrt(2.0**-48 * self.above * np.diff(self.edges) / masses)
        wanted = np.minimum(step * self.density(tilts), most)
        return np.where(np.isfinite(self.log_masses), np.maximum(np.maximum(wanted, noise), step), math.inf)

    def step_for(self, theta: float, knots: float) -> float:
        """Return the step that leads to about as many knots as given."""
        return max(float(np.sum(np.diff(self.edges) / self.density([theta]))) / knots, _LEAST_STEP)

    def knots(self, tilts: Sequence[float], step: float, count: int = 1) -> IntArray:
        """Return the grid points at which to evaluate tails: dense where the tilted mass is."""
        spacing = self.spacing(tilts, step, count)
        full = np.isfinite(spacing)
        starts = np.floor(self.edges[:-1][full] / step).astype(np.int64)
        stops = np.ceil(self.edges[1:][full] / step).astype(np.int64)
        strides = np.exp2(np.floor(np.log2(np.minimum(spacing[full] / step, 2.0**40)))).astype(np.int64)
        firsts = -(-starts // strides) * strides
        counts = np.maximum(0, -(-(stops - firsts) // strides))
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        inner = np.repeat(firsts, counts) + places * np.repeat(strides, counts)
        # Where full cells meet empty ones, and at the top, knots close the cell.
        opens = self.edges[:-1][full & ~np.append(False, full[:-1])]
        closes = self.edges[1:][full & ~np.append(full[1:], False)]
        bottom, top = np.floor(self.edges[:1] / step), np.floor(self.edges[-1:] / step) + 1.0
        outer = np.concatenate([bottom, np.floor(opens / step), np.ceil(closes / step), top])
        return np.unique(np.concatenate([inner, outer.astype(np.int64)]))


_Parts = Sequence[tuple[LossSketch, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """Where to look: the tilt, the further tilts that bound the window's ends, the ends, the step."""

    theta: float
    lower: float | None
    upper: float | None
    low: float
    high: float
    step: float

    @classmethod
    def around(cls, parts: _Parts, theta: float, error: float, pieces: int | None = None) -> WindowPlan:
        """Plan a window around the law tilted by `theta`.

        Each of `pieces` cells of width h adds up to h^2/6 to the variance, h^2/12 to the mean, and
        so theta (1 + theta) h^2/12 to ln delta. That may amount to `error`, or to what changes
        epsilon by a relative `error`/16; and always to a small share of the untilted variance.
        """
        base, mean, variance = _total(parts, theta)
        edges = [sum(count * float(outline.losses[end]) for outline, count in parts) for end in (0, -1)]
        scale = max(abs(edges[0]), abs(edges[1]), _LEAST_LOSS)
        start = math.sqrt(2.0 * NEGLIGIBLE / max(variance, 1e-18 * scale * scale))

        def end(sign: float, edge: float) -> tuple[float | None, float]:
            def excess(tilt: float) -> float:
                cumulant, slope, _ = _total(parts, theta + sign * tilt)
                return sign * tilt * slope - cumulant + base - NEGLIGIBLE

            tilt = _root(excess, start)
            if tilt is None:
                return None, edge
            reach = sign * (_total(parts, theta + sign * tilt)[0] - base + NEGLIGIBLE) / tilt
            return tilt, min(edge, reach) if sign > 0 else max(edge, reach)

        (lower, low), (upper, high) = end(-1.0, edges[0]), end(1.0, edges[1])
        width = max(high - low, 1e-9 * scale)
        number = pieces or sum(count for _, count in parts)
        allowed = max(error, error / 16.0 * theta * mean) / max(theta * (1.0 + theta), _TINY)
        square = 12.0 / number * min(allowed, 2.0 * error * max(variance, _total(parts, 0.0)[2]))
        dense = max(outline.step_for(theta, _MOST_KNOTS) for outline, _ in parts)
        step = max(min(width / _LEAST_SIZE, math.sqrt(square)), width / _MOST_SIZE, dense)
        if theta * step > 2.0:  # the grid cannot show what such a tilt would bring out
            return cls.around(parts, 1.0 / step, error, pieces)
        step = _aligned(parts, theta, step)
        return cls(theta=theta, lower=lower, upper=upper, low=low, high=high, step=step)

    def knots(self, outline: LossSketch, count: int) -> IntArray:
        """Return where to evaluate the tails of an event that occurs `count` times."""
        ends = [self.theta + end for end in (-(self.lower or 0.0), self.upper or 0.0) if end]
        return outline.knots([self.theta, *ends], self.step, count)


def tilt_at_epsilon(parts: _Parts, epsilon: float) -> float:
    """Return the theta that makes the bound e^(K - theta epsilon) theta^theta / (1+theta)^(1+theta) least.

    It bounds delta(epsilon) = E[(1 - e^(epsilon-L))_+], where K = ln E[e^(theta L)].
    """

    def slope(theta: float) -> float:
        return _total(parts, theta)[1] + math.log(theta / (1.0 + theta)) - epsilon

    return _root(slope) or 1.0


def tilt_at_delta(parts: _Parts, delta: float) -> float:
    """Return the theta at which that least bound equals delta."""

    def depth(theta: float) -> float:
        cumulant, mean, _ = _total(parts, theta)
        return theta * mean + math.log1p(theta) - cumulant + math.log(delta)

    return _root(depth) or 1.0


def _aligned(parts: _Parts, theta: float, step: float) -> float:
    """Return a slightly larger step that puts the heaviest atoms on grid points, or just above them."""
    losses = np.concatenate([outline.losses for outline, _ in parts])
    weights = np.concatenate([count * outline.tilted(theta)[1] for outline, count in parts])
    heavy = np.argsort(weights)[-64:]
    losses, weights = losses[heavy], weights[heavy]
    most = math.floor(abs(losses[-1]) / step)
    if most < 1:
        return step
    candidates = abs(losses[-1]) / np.arange(most, max(most - 256, most * 3 // 4), -1)
    places = losses / candidates[:, None] + 1e-6
    return float(candidates[np.argmin((places - np.floor(places)) @ weights)])


def _total(parts: _Parts, theta: float) -> tuple[float, float, float]:
    """Return the cumulant of a composition and its first two derivatives."""
    moments = np.array([outline.moments(theta) for outline, _ in parts])
    counts = np.array([float(count) for _, count in parts])
    cumulant, mean, variance = counts @ moments
    return float(cumulant), float(mean), float(variance)


def _root(increasing: Callable[[float], float], start: float = 1.0) -> float | None:
    """Return a point above zero just below where an increasing function crosses zero; None if it does not."""
    low = high = start = max(start, 1e-200)  # a variance beyond floats would make it zero
    if increasing(start) < 0.0:
        while increasing(high) < 0.0:
            low, high = high, 4.0 * high
            if high > 2.0**60 * start:
                return None
    else:
        while increasing(low) >= 0.0:
            low, high = low / 4.0, low
            if low < 2.0**-200 * start:
                return low
    while high > 1.01 * low:
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if increasing(middle) < 0.0 else (low, middle)
    return low


def _log(values: FloatArray) -> FloatArray:
    return np.log(values, out=np.full_like(values, -math.inf), where=values > 0.0)
