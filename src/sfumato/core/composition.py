"""Composition: what a batch of events, fixed in advance, costs together; from above and from below."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.core.arguments import (
    MOST_EVENTS,
    Cost,
    FloatArray,
    Number,
    budget_quantity,
    count,
    delta_quantity,
    upper_float,
)
from sfumato.core.divergence import divergence_at_delta, divergence_at_epsilon, inverts
from sfumato.core.events.base import Direction, Event
from sfumato.core.loss_sketch import LossSketch, WindowPlan, tilt_at_delta, tilt_at_epsilon
from sfumato.core.losses import GUARD, LossDistribution
from sfumato.core.search import lower_float, smallest
from sfumato.core.tilt import TiltedLaw, convolve
from sfumato.errors import InvalidArgument

__all__ = ["Composition"]

_Parts = tuple[tuple[Event, int], ...]
_Tilt = Callable[[Sequence[tuple[LossSketch, int]]], float]

_ERROR = 2e-5  # what discretisation may add to ln(delta)
_ERROR_BELOW = 1e-4  # the same for lower bounds, which only show how tight the upper ones are
_ERROR_WHOLE = 1e-3  # and for whole laws, which need several transforms
_BATCH = 1000  # larger counts are composed in two rounds
_DEPTHS = (4.5, 18.0, 40.0, 72.0, 112.0)  # -ln of the tails at which a whole law is tilted


class Composition:
    """A batch of events on the same people; each part is an event, or an event and how often it occurred.

    Theorem: the delta of a batch is the hockey-stick divergence of the sum of independent privacy
    losses (Sommer, Meiser and Mohammadi 2019); the parts are discretised as `LossDistribution`
    says and summed as `convolve` says. Assumes: the batch was fixed before any answer was seen.
    Rounds: up; the `bounds` also say how far below the exact value can be.

    >>> from sfumato.core.events.gaussian import Gaussian
    >>> low, high = Composition([(Gaussian(sigma=50), 1000)]).epsilon_bounds(1e-6)
    >>> low <= 2.92160059 <= high <= 1.0001 * low
    True
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[Event | tuple[Event, int]]) -> None:
        counts: dict[Event, int] = {}
        for part in parts:
            event, times = part if isinstance(part, tuple) and len(part) == 2 else (part, 1)
            if not isinstance(event, Event):
                raise InvalidArgument(
                    f"a part must be an event or (event, count), got {type(event).__name__}", place="parts"
                )
            for inner, number in event.parts():
                counts[inner] = counts.get(inner, 0) + number * count(times, "count")
        if sum(counts.values()) > MOST_EVENTS:
            raise InvalidArgument("a batch has at most 1e12 events", place="parts")
        self._parts = tuple(counts.items())

    @property
    def parts(self) -> _Parts:
        """The different elementary events, each with its count."""
        return self._parts

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions that have to be looked at."""
        return (Direction.REMOVE,) if self._symmetric else (Direction.REMOVE, Direction.ADD)

    def epsilon(self, delta: Number) -> float:
        """Return an epsilon at which the batch is (epsilon, delta)-private, inf if none is. Rounds: up."""
        allowed, pure = lower_float(delta_quantity(delta)), self._pure()
        if allowed == 0.0 or pure == 0:
            return upper_float(pure)
        if self._total == 1:
            return min(upper_float(pure), _inverse(self._parts[0][0], allowed))
        worst = 0.0
        for direction in self.directions:
            if self._inverts:
                law_sum = divergence_at_delta(self._parts, direction, allowed, above=True)
                worst = max(worst, law_sum.epsilon_above(allowed))
                continue
            guard, reach, failure = _limits(self._parts, direction)
            law = _above(self._parts, direction, lambda parts: tilt_at_delta(parts, allowed))
            found = law.epsilon_above(allowed / math.exp(self._total * GUARD), -guard)
            worst = max(worst, min(found + guard, reach if failure <= allowed else math.inf))
        return min(upper_float(pure), worst * (1.0 + 2.0**-50))

    def delta(self, epsilon: Number) -> float:
        """Return a delta at which the batch is (epsilon, delta)-private. Rounds: up."""
        level, pure = budget_quantity(epsilon, "epsilon", zero=True), self._pure()
        if level >= pure:
            return 0.0
        nearest = float(level)
        lowest = nearest if budget_quantity(nearest, "epsilon", zero=True) <= level else lower_float(level)
        if self._total == 1:
            return self._parts[0][0].delta(lowest)
        worst = 0.0
        for direction in self.directions:
            if self._inverts:
                law_sum = divergence_at_epsilon(self._parts, direction, lowest, above=True)
                worst = max(worst, law_sum.delta_above(lowest))
                continue
            guard, reach, failure = _limits(self._parts, direction)
            if lowest >= reach:
                worst = max(worst, failure)
                continue
            law = _above(self._parts, direction, lambda parts: tilt_at_epsilon(parts, lowest))
            worst = max(worst, law.delta_above(lowest - guard) * math.exp(self._total * GUARD))
        return min(1.0, worst)

    def epsilon_bounds(self, delta: Number) -> tuple[float, float]:
        """Return (low, high) around the smallest epsilon at which the batch is (epsilon, delta)-private.

        Assumes, for `low`: the parts' own laws are exact. Where a part is itself only bounded (a batch
        inside a sample or a partition, a `DiscreteGaussianVector`), both ends are about that bound.
        """
        high, low = self.epsilon(delta), 0.0
        # The smallest epsilon falls as delta grows, so where delta is 0 that of another delta is a bound.
        needed = max(upper_float(delta_quantity(delta)), 1e-30) * math.exp(2.0 * self._total * GUARD)
        for direction in self.directions if self._parts else ():
            if self._inverts:
                law_sum = divergence_at_delta(self._parts, direction, needed, above=False)
                low = max(low, law_sum.epsilon_below(needed))
                continue
            guard, _, _ = _limits(self._parts, direction)
            law = _below(self._parts, direction, lambda parts: tilt_at_delta(parts, needed))
            low = max(low, law.epsilon_below(needed) - 2.0 * guard)
        return min(low, high), high

    def delta_bounds(self, epsilon: Number) -> tuple[float, float]:
        """Return (low, high) around the smallest delta at which the batch is (epsilon, delta)-private.

        Assumes, for `low`: as `epsilon_bounds`.
        """
        high, low = self.delta(epsilon), 0.0
        level = upper_float(budget_quantity(epsilon, "epsilon", zero=True))
        for direction in self.directions if high > 0.0 else ():
            if self._inverts:
                law_sum = divergence_at_epsilon(self._parts, direction, level, above=False)
                low = max(low, law_sum.delta_below(level))
                continue
            guard, _, _ = _limits(self._parts, direction)
            law = _below(self._parts, direction, lambda parts: tilt_at_epsilon(parts, level))
            low = max(low, law.delta_below(level + 2.0 * guard) / math.exp(2.0 * self._total * GUARD))
        return min(low, high), high

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return (P(L > level), Q(L > level)) of a pair of laws that dominates the batch. Rounds: up."""
        law, above_p, above_q, guard = self._whole(direction)
        first = int(law.indices[0])
        places = np.floor((levels - guard) / law.step) + (1.0 - first)  # of the first loss above the level
        chosen = np.clip(places, 0, len(law.indices)).astype(np.int64)
        return above_p[chosen], above_q[chosen]

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return the range of finite losses of that pair."""
        law, _, _, guard = self._whole(direction)
        return float(law.losses[0]) + guard, float(law.losses[-1]) + guard

    @property
    def _symmetric(self) -> bool:
        return all(event.symmetric for event, _ in self._parts)

    @property
    def _inverts(self) -> bool:
        """Whether the batch has several events, of which a relatively accurate law is known."""
        return self._total > 1 and inverts(self._parts)

    @property
    def _total(self) -> int:
        return sum(times for _, times in self._parts)

    def _pure(self) -> Cost:
        """Return the sum of the pure epsilons. Theorem: basic composition (Dwork et al. 2006)."""
        costs = [(event.epsilon(), times) for event, times in self._parts]
        if any(math.isinf(cost) for cost, _ in costs):
            return math.inf
        return sum((Fraction(cost) * times for cost, times in costs), Fraction(0))

    def _whole(self, direction: Direction) -> tuple[LossDistribution, FloatArray, FloatArray, float]:
        law, above_p, above_q = _whole(self._parts, Direction.REMOVE if self._symmetric else direction)
        return law, above_p, above_q, _limits(self._parts, direction)[0]


def _above(parts: _Parts, direction: Direction, tilt: _Tilt) -> TiltedLaw:
    """Compose pessimistic laws, in two rounds where there are many: blocks, then blocks of blocks.

    The second round needs a grid only as fine as its few blocks, and the first only a small window.
    """
    outlines = [LossSketch.of(event, direction) for event, _ in parts]
    counts = [times for _, times in parts]
    theta = tilt(list(zip(outlines, counts, strict=True)))
    blocks = math.isqrt(max(counts)) if max(counts) > _BATCH else 0
    rest = [times % blocks for times in counts] if blocks else counts
    whole = WindowPlan.around(list(zip(outlines, counts, strict=True)), theta, _ERROR, blocks + sum(rest))

    def laws(times: Sequence[int], plan: WindowPlan) -> list[tuple[LossDistribution, int]]:
        return [
            (LossDistribution.pessimistic(event, plan.step, direction, plan.knots(outline, number)), number)
            for (event, _), outline, number in zip(parts, outlines, times, strict=True)
            if number
        ]

    if not blocks:
        return convolve(laws(counts, whole), whole)
    inner = [times // blocks for times in counts]
    used = [part for part in zip(outlines, inner, strict=True) if part[1]]
    plan = WindowPlan.around(used, theta, _ERROR, blocks * sum(inner))
    if plan.theta != whole.theta:  # what a block may lack is known at its own tilt only: one round then
        single = WindowPlan.around(list(zip(outlines, counts, strict=True)), theta, _ERROR)
        return convolve(laws(counts, single), single)
    factor = max(1, round(whole.step / plan.step))
    block, stray = convolve(laws(inner, plan), plan).coarsened(factor)
    whole = replace(whole, step=block.step)
    lacking = math.expm1(min(700.0, 1.01 * blocks * stray))
    return convolve([(block, blocks), *laws(rest, whole)], whole, stray=lacking)


def _below(parts: _Parts, direction: Direction, tilt: _Tilt) -> TiltedLaw:
    """Compose optimistic laws."""
    outlines = [(LossSketch.of(event, direction), times) for event, times in parts]
    plan = WindowPlan.around(outlines, tilt(outlines), _ERROR_BELOW)
    return convolve(
        [
            (LossDistribution.optimistic(event, plan.step, direction, plan.knots(outline, times)), times)
            for (event, times), (outline, _) in zip(parts, outlines, strict=True)
        ],
        plan,
    )


@lru_cache(maxsize=16)
def _whole(parts: _Parts, direction: Direction) -> tuple[LossDistribution, FloatArray, FloatArray]:
    """Return a pessimistic composed law, accurate in its whole upper tail, and its tails.

    At each point the least of several tilted transforms' bounds on one and the same law counts. P-mass
    that is missing at the bottom, or too much there, is settled where P(L > l) reaches one: below that
    loss the curve runs straight to delta = 1 at e^epsilon = 0, by convexity above the true one. Rounds: up.
    """
    outlines = [(LossSketch.of(event, direction), times) for event, times in parts]
    tilts = [0.0, *(tilt_at_delta(outlines, math.exp(-depth)) for depth in _DEPTHS)]
    plans = [WindowPlan.around(outlines, theta, _ERROR_WHOLE) for theta in tilts]
    step = max(plan.step for plan in plans[:3])
    plans = [replace(plan, step=step) for plan in plans]
    first, last = math.floor(plans[0].low / step), math.ceil(plans[-1].high / step)
    laws = []
    for (event, times), (outline, _) in zip(parts, outlines, strict=True):
        knots = np.unique(np.concatenate([plan.knots(outline, times) for plan in plans]))
        laws.append((LossDistribution.pessimistic(event, step, direction, knots), times))
    # Discretised laws end a step or two above the true ones: a window that ends with those goes as far.
    edge = sum(times * int(law.indices[-1]) for law, times in laws)
    last = max(last, edge) if edge - last <= 4 * sum(times for _, times in parts) else last
    masses, infinite = np.full(last + 1 - first, math.inf), 1.0
    for plan in plans:
        tilted = convolve(laws, plan, window=(first, last))
        masses = np.minimum(masses, tilted.ceiling(first, last))
        infinite = min(infinite, tilted.infinite + tilted.tail_above(last))
    grown = math.exp(sum(times for _, times in parts) * GUARD)
    infinite = min(1.0, infinite * grown)
    above_p = np.append(np.cumsum(masses[::-1] * grown)[::-1], 0.0) + infinite
    full = np.flatnonzero(above_p[:-1] >= 1.0)
    bottom = int(full[-1]) if len(full) else 0
    above_p = above_p[bottom:]
    above_p[0] = 1.0
    indices, settled = np.arange(first + bottom, last + 1), -np.diff(above_p)
    lowered = settled * np.exp(np.minimum(-(indices * step + _limits(parts, direction)[0]), 700.0))
    above_q = np.append(np.minimum(1.0, np.cumsum(lowered[::-1])[::-1]), 0.0)
    law = LossDistribution(step=step, indices=indices, masses=settled, infinite=infinite)
    return law, above_p, above_q


def _limits(parts: _Parts, direction: Direction) -> tuple[float, float, float]:
    """Return what round-off may add to the loss, the largest finite loss, and the chance of more."""
    guard, reach, never = 0.0, 0.0, 0.0
    for event, times in parts:
        low, high = event.support(direction)
        above = float(event.tails(np.array([high]), direction)[0][0])
        guard += times * (GUARD + 2.0**-51 * max(abs(low), abs(high)))
        reach += times * high
        never += times * (math.log1p(-above) if above < 1.0 else -math.inf)
    return guard, math.nextafter(reach * (1.0 + 2.0**-50), math.inf), abs(math.expm1(never)) * (1.0 + GUARD)


def _inverse(event: Event, allowed: float) -> float:
    """Return the smallest epsilon at which one event's delta is at most `allowed`, inf if there is none."""
    high = 1.0
    while event.delta(high) > allowed:
        high *= max(2.0, high)
        if math.isinf(high):
            return math.inf
    found = smallest(lambda epsilon: event.delta(epsilon) <= allowed, 0.0, high, 2.0**-36)
    return math.nextafter(found, math.inf) if found else 0.0  # `delta` read it as the decimal it prints as
