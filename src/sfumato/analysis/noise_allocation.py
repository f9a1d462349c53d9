"""Allocation: how much noise each item of a query gets, so that all of them together cost what they may."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, Event, Repeated
from sfumato.core.noise_allocation import least_noise, weight_of_share
from sfumato.core.noise_law import NoiseLaw

__all__ = ["Item", "Treatment", "calibrated", "tree_shape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that gets noise: a measure in a grouping set, or the unit counts that select its keys."""

    measure: str | None
    grouping_set: int
    sensitivity: int
    weight: Fraction
    shifts: tuple[tuple[int, int], ...]  # (how many times the sensitivity one number moves, how many numbers)
    levels: int = 1
    branching: int = 2
    blocks: Fraction = Fraction(1)  # about how many noisy numbers an answer's variance is that of
    norm: bool = False  # only the norms of all shifts are known
    total: Fraction | None = None  # all shifts together are at most this many sensitivities (with `norm`)
    emphasis: Fraction = Fraction(1)  # beside the weight, where it is said which share of the cost it gets
    rounds: tuple[Fraction, ...] = ()  # shares of rounds; in each, the sensitivity is of a whole vector

    def event(self, law: NoiseLaw) -> Event:
        """Return what this noise on the item costs."""
        if self.rounds:
            return Composed(events=tuple(event for _, event in self.in_rounds(law)))
        if self.norm:
            l1 = math.ceil(Fraction(self.sensitivity * self.l1, self.levels))
            l2_squared = math.ceil(Fraction(self.sensitivity**2 * self.l2_squared, self.levels))
            each = law.joint_event(l1=l1, l2_squared=l2_squared)
            return each if self.levels == 1 else Repeated(event=each, times=self.levels)
        events: list[Event] = []
        for multiple, times in self.shifts:
            one, number = law.event(self.sensitivity * multiple), times * self.levels
            events.append(one if number == 1 else Repeated(event=one, times=number))
        return events[0] if len(events) == 1 else Composed(events=tuple(events))

    def alike(self) -> Item:
        """Return what all items have that get the same noise: everything but their names."""
        return replace(self, measure=None, grouping_set=0)

    def with_share(self, share: Fraction, law: type[NoiseLaw], *, pure: bool) -> Item:
        """Return the item with the emphasis that gives it a share of the cost of all items."""
        return replace(self, emphasis=weight_of_share(share, law, self.norm_under(law), pure=pure))

    @property
    def importance(self) -> Fraction:
        """How much the variance of its noise matters."""
        return self.weight * self.blocks * self.emphasis

    def norm_under(self, law: type[NoiseLaw]) -> int | Fraction:
        """Return the norm of all shifts that the cost under a law depends on, in sensitivities."""
        return law.norm(self.l1, self.l2_squared)

    def in_rounds(self, law: NoiseLaw) -> list[tuple[NoiseLaw, Event]]:
        """Return the noise and the event of each round; their shares make up the whole noise."""
        laws = [law.share(share) for share in self.rounds]
        return [(own, own.joint_event(l1=self.sensitivity, l2_squared=self.sensitivity**2)) for own in laws]

    @property
    def l1(self) -> int | Fraction:
        """The sum of all shifts, in sensitivities."""
        if self.total is not None:
            return self.levels * self.total
        return self.levels * sum([multiple * times for multiple, times in self.shifts])

    @property
    def l2_squared(self) -> int | Fraction:
        """The sum of all squared shifts, in squared sensitivities: at most the largest times their sum."""
        if self.total is not None:
            largest = Fraction(max(multiple for multiple, _ in self.shifts))
            return self.levels * self.total * min(self.total, largest)
        return self.levels * sum([multiple**2 * times for multiple, times in self.shifts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """One kind of noise for all items, and how much of it for each."""

    items: tuple[Item, ...]
    laws: tuple[NoiseLaw, ...]

    @property
    def objective(self) -> float:
        """The weighted sum of relative variances."""
        known: dict[tuple[int, Fraction, Fraction, int], float] = {}
        total = 0.0
        for item, law in zip(self.items, self.laws, strict=True):
            kind = (id(law), item.weight, item.blocks, item.sensitivity)  # items of one kind share a law
            if kind not in known:
                known[kind] = float(item.weight * item.blocks * law.variance / item.sensitivity**2)
            total += known[kind]
        return total


def tree_shape(cells: int, law: type[NoiseLaw]) -> tuple[int, int]:
    """Return (levels, branching) of the layers over a histogram with the smallest error of a rank.

    A rank is a sum of up to branching - 1 blocks of each layer (once layers are made consistent, it has
    the variance of about a sixth of them), and each layer's variance grows with the number of
    layers: in proportion for Gaussian noise, with its square for Laplace noise.
    """
    shapes = []
    for levels in range(1, max(2, cells.bit_length() + 1)):
        branching = max(2, math.ceil(cells ** (1 / levels) - 1e-9))
        while branching**levels < cells:
            branching += 1
        shapes.append(((branching - 1) * levels ** (1 + law.power()), levels, branching))
    _, levels, branching = min(shapes)
    return levels, branching


def calibrated(
    law: type[NoiseLaw], items: tuple[Item, ...], budget: PrivacyBudget, allowance: Fraction
) -> Treatment:
    """Return the least noise, in the best proportions, whose price is within the allowance."""
    return Treatment(items=items, laws=least_noise(law, items, budget, allowance))
