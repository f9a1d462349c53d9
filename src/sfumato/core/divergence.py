"""The hockey-stick divergence of a batch of sampled Gaussians, from above and from below, at any rate.

One tilt shows the divergence of a sum to which every loss adds little. Where rare large losses carry it,
a tilt brings out losses that are larger still, and rarer. Then outputs are split by how many losses are
large: none, one (either is a sum that some tilt shows), or more, which is too unlikely to matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import upper_float
from sfumato.core.atoms import Atoms, sampled_gaussian
from sfumato.core.events.base import Direction, Event
from sfumato.core.events.gaussian import Gaussian
from sfumato.core.events.sampled import PoissonSubsampled
from sfumato.core.inversion import Inversion, LossSum, log_least
from sfumato.core.search import largest, lower_float, smallest

__all__ = ["Divergence", "divergence_at_delta", "divergence_at_epsilon", "inverts"]

_Parts = Sequence[tuple[Event, int]]

_FAILURE = 1e-6  # what losses that count as infinite may add to delta, relatively
_PAIR = 1e-4  # what two large losses may add to delta, relatively
_ROUGH = 1e-3  # what a simple bound on one large loss may be off by, relative to delta
_RESOLUTION = 2.0**-44
_RESOLUTION_BELOW = 2.0**-24
_DOUBLINGS = 60
_GUESSES = 24
_WIDEST_SHIFT = 20  # 1/sigma, beyond which `atoms` would need too many cells
_LEAST = Fraction(1, 10**100)  # rate / sigma, below which squares of losses leave the range of floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Divergence:
    """Bounds on delta(v) near `place`: the sum of what disjoint `cases` add, and of the `rest`.

    The first case has no large loss, the others have one; `split` has bounds of its own on those.

    Theorem: the divergence is a sum over outputs, so that of disjoint cases adds up.
    """

    cases: tuple[Inversion, ...]
    rest: float
    split: _Split | None
    place: float

    def delta_above(self, v: float) -> float:
        """Return an upper bound on delta(v). Rounds: up."""
        none, *ones = (case.delta_above(v) for case in self.cases)
        one = math.fsum(ones) if ones or self.split is None else self.split.one_above(v)
        return min(1.0, none + one + self.rest)

    def delta_below(self, v: float) -> float:
        """Return a lower bound on delta(v). Rounds: down."""
        none, *ones = (case.delta_below(v) for case in self.cases)
        return none + max(math.fsum(ones), self.split.one_below(v) if self.split else 0.0)

    def epsilon_above(self, delta: float) -> float:
        """Return a v >= 0 with delta(v) <= `delta`, inf if none is seen. Rounds: up."""
        high, stride = self.place, self._stride
        while self.delta_above(high) > delta:
            high, stride = high + stride, 2.0 * stride
            if stride > 2.0**_DOUBLINGS * self._stride:
                return math.inf
        return smallest(lambda v: self.delta_above(v) <= delta, 0.0, high, _RESOLUTION)

    def epsilon_below(self, delta: float) -> float:
        """Return a v with delta(v) > `delta`, or 0. Rounds: down."""
        low, stride = self.place, self._stride / 4.0
        while self.delta_below(low) <= delta:
            low, stride = max(low - stride, low / 2.0), 2.0 * stride
            if low <= 1e-6 * self.place:
                return 0.0
        high = low + 2.0 * stride
        while self.delta_below(high) > delta:
            low, high = high, 2.0 * high
        return largest(lambda v: self.delta_below(v) > delta, low, high, _RESOLUTION_BELOW)

    @property
    def _stride(self) -> float:
        return 1.0 / max(case.theta for case in self.cases)


def inverts(parts: _Parts) -> bool:
    """Return whether a batch consists of Gaussians, some of them sampled, of which atoms are known."""
    return any(_sampled(event) for event, _ in parts) and all(
        isinstance(event, Gaussian) or _sampled(event) for event, _ in parts
    )


def divergence_at_delta(parts: _Parts, direction: Direction, delta: float, *, above: bool) -> Divergence:
    """Prepare bounds around the v at which the divergence of a batch is about `delta`."""
    law = _sum(parts, direction, delta, above=above)
    theta = law.tilt_at_delta(delta)
    place, height = law.saddle(theta)
    split = _Split.of(law, delta)
    if split.agrees(max(place, 0.0), height):
        return _single(law, theta, place, above)
    place = smallest(lambda v: split.estimate(v) <= delta, 0.0, max(place, 0.0) + 64.0 / theta, 1e-3)
    return split.divergence(place, above)


def divergence_at_epsilon(parts: _Parts, direction: Direction, epsilon: float, *, above: bool) -> Divergence:
    """Prepare bounds around v = `epsilon`."""
    guess = 1.0
    for _ in range(_GUESSES):  # what counts as infinite or as large depends on delta
        law = _sum(parts, direction, guess, above=above)
        split = _Split.of(law, guess)
        found = max(1e-300, split.estimate(epsilon))
        if found > 0.5 * guess:
            break
        guess = max(found, 1e-3 * guess)  # a cut that is too early hides what is looked for
    theta = law.tilt_at_epsilon(epsilon)
    height = law.saddle(theta)[1]
    if split.agrees(epsilon, height):
        return _single(law, theta, epsilon, above)
    return split.divergence(epsilon, above)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Split:
    """A sum of losses, its small losses, and for each part the large ones: `count` times their masses."""

    law: LossSum
    small: LossSum
    large: tuple[Atoms, ...]

    @classmethod
    def of(cls, law: LossSum, delta: float) -> _Split:
        """Split so that two large losses have a chance of about _PAIR * delta."""
        chance = math.sqrt(2.0 * _PAIR * delta) / len(law.parts)
        parted = [(atoms.parted(chance / count), count) for atoms, count in law.parts]
        small = LossSum(parts=[(few, count) for (few, _), count in parted], variance=law.variance)
        return cls(law=law, small=small, large=tuple(many.times(count) for (_, many), count in parted))

    @property
    def chance(self) -> float:
        """The expected number of large losses, rounded up."""
        masses = [float(np.exp(atoms.logs).sum()) for atoms in self.large]
        return math.fsum(masses) * (1.0 + 1e-9)

    def estimate(self, v: float) -> float:
        """Return about delta(v)."""
        height = self.small.saddle(self.small.tilt_at_epsilon(v))[1]
        return math.exp(min(0.0, height)) + self._one(v)

    def agrees(self, v: float, height: float) -> bool:
        """Return whether a saddle point of the whole law, of e^`height` at v, sees all of the divergence."""
        return self.chance == 0.0 or self.estimate(v) > 0.7 * math.exp(height)

    def one_below(self, v: float) -> float:
        """Return a lower bound on what outputs with exactly one large loss add to delta(v).

        Theorem: (1 - x e^-L)_+ is convex in e^-L, whose mean over small losses is their Q-mass, at
        most 1, over their P-mass, at least 1 - `chance` (Jensen 1906). Rounds: down.
        """
        p = max(0.0, 1.0 - self.chance)
        return p * self._one(v - math.log(p) + 1e-12 * abs(v)) * (1.0 - 1e-9) if p else 0.0

    def one_above(self, v: float) -> float:
        """Return an upper bound on what outputs with exactly one large loss add to delta(v).

        Theorem: given that loss l, they add the divergence D of the small ones at v - l, which falls with
        it, and which lies below its chord, 1 - e^(v-l) (1 - D(0)) where l > v. Rounds: up.
        """
        return (self._one(v - 1e-12 * abs(v)) + self.chance * self.small_divergence) * (1.0 + 1e-9)

    @property
    def small_divergence(self) -> float:
        """An upper bound on the divergence D(0) of the small losses. Theorem: Chernoff's inequality."""
        theta = self.small.tilt_at_epsilon(0.0)
        return math.exp(self.small.cumulant(theta)[0] + log_least(theta)) * 1.01

    def divergence(self, v: float, above: bool) -> Divergence:
        """Prepare bounds around v: without a large loss, and with one of each part.

        Theorem: more than one large loss has at most the P-mass chance^2 / 2.
        """
        here, there = (math.log(max(self.estimate(x), 1e-300)) for x in (v, 1.01 * v))
        slope = (here - there) / (0.01 * v) if v > 0.0 else 0.0
        laws = [self.small]
        if not above or self.chance * self.small_divergence > _ROUGH * math.exp(here):
            laws += [self._with_one(place) for place, atoms in enumerate(self.large) if len(atoms.logs)]
        tilts = [(law, law.tilt_at_epsilon(v)) for law in laws]
        if not above:
            cases = tuple(Inversion.below(law, theta, here) for law, theta in tilts)
            return Divergence(cases=cases, rest=0.0, split=self, place=v)
        cases = tuple(Inversion.above(law, theta, slope) for law, theta in tilts)
        rest = self.law.infinite + self.chance**2 / 2.0
        return Divergence(cases=cases, rest=rest, split=self, place=v)

    def _with_one(self, place: int) -> LossSum:
        """Return the small losses, but for one large one of the part at `place`."""
        others = [(few, count - (at == place)) for at, (few, count) in enumerate(self.small.parts)]
        parts = [(self.large[place], 1), *(part for part in others if part[1])]
        return LossSum(parts=parts, variance=self.law.variance)

    def _one(self, v: float) -> float:
        """Return what one large loss adds to delta(v) where the small ones add up to 0."""
        return math.fsum(
            float(np.exp(atoms.logs) @ -np.expm1(np.minimum(v - atoms.losses, 0.0))) for atoms in self.large
        )


def _single(law: LossSum, theta: float, place: float, above: bool) -> Divergence:
    case = Inversion.above(law, theta) if above else Inversion.below(law, theta, math.inf)
    rest = law.infinite if above else 0.0
    return Divergence(cases=(case,), rest=rest, split=None, place=max(place, 0.0))


def _sum(parts: _Parts, direction: Direction, delta: float, *, above: bool) -> LossSum:
    """Return the losses of a batch, which those of `parts` never exceed (or, not `above`, never undercut).

    Theorem: a larger rate and a smaller sigma cost more, so both are rounded to that side; Gaussian
    losses add up to one of mu^2 = sum of 1/sigma^2 (Dong, Roth, Su 2022, Corollary 3.3).
    """
    rounded = upper_float if above else lower_float
    total = sum(count for _, count in parts)
    atoms: list[tuple[Atoms, int]] = []
    variance = Fraction(0)
    for event, count in parts:
        if isinstance(event, Gaussian):
            variance += count * event.mu() ** 2
        elif isinstance(event, PoissonSubsampled):
            shift, rate = rounded(Fraction(event.event.mu())), rounded(event.rate)
            failure = _FAILURE * delta / total
            law = sampled_gaussian(shift, rate, direction, above=above, failure=failure)
            atoms.append((law, count))
    return LossSum(parts=atoms, variance=rounded(variance))


def _sampled(event: Event) -> bool:
    """Return whether an event is a Gaussian on a true sample, in the range of `atoms`."""
    return (
        isinstance(event, PoissonSubsampled)
        and isinstance(event.event, Gaussian)
        and event.rate < 1
        and event.event.mu() <= _WIDEST_SHIFT
        and event.rate * event.event.mu() >= _LEAST
    )
