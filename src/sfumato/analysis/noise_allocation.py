"""Allocation: how much noise each item of a query gets, so that all of them together cost what they may."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, Event, Repeated
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.rules import PureRule
from sfumato.core.steps import remembered, spend

__all__ = ["Item", "Kinds", "Treatment", "calibrated", "tree_shape"]

_BITS = 32  # shares of a pure epsilon are kept this short
_TRIES = 60
_STEPS_PER_KIND = 20
_FEW = 64  # items of a search whose result is kept


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
        """Return the item with the emphasis by which it gets a share of the cost, beside items with others.

        Theorem: `calibrated` gives an item of norm N and weight w the parameter u ~ (N / w)^(1/(p+1)). The
        cost is N / u, and that is the share where w = share^(p+1) / N^p. Of Laplace noise under a rule that
        adds up squares it is about (N / u)^2, and then w = share^(3/2) / N^2.
        """
        power, norm = law.power(), Fraction(law.norm(self.l1, self.l2_squared))
        exponent = power + 1 if pure or law.euclidean else Fraction(power + 1, 2)
        return replace(self, emphasis=Fraction(float(share) ** float(exponent)) / norm**power)

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
class Kinds:
    """The different items of a list, but for their names: a cube has few kinds of items, and many of each."""

    items: tuple[Item, ...]
    first: tuple[int, ...]  # where the first of each kind is
    times: tuple[int, ...]  # how many there are of each kind
    places: tuple[int, ...]  # of each item of the list, its kind

    @staticmethod
    def of(items: Sequence[Item]) -> Kinds:
        """Find the kinds of items."""
        spend(len(items))
        known: dict[Item, int] = {}
        first: list[int] = []
        places: list[int] = []
        for place, item in enumerate(items):
            kind = known.setdefault(item.alike(), len(known))
            if kind == len(first):
                first.append(place)
            places.append(kind)
        counts = Counter(places)
        return Kinds(
            items=tuple([items[place] for place in first]),
            first=tuple(first),
            times=tuple(map(counts.__getitem__, range(len(first)))),
            places=tuple(places),
        )


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


# -- how much noise -------------------------------------------------------------------------


def calibrated(
    law: type[NoiseLaw], items: tuple[Item, ...], budget: PrivacyBudget, allowance: Fraction
) -> Treatment:
    """Return the least noise, in the best proportions, whose price is within the allowance.

    What was found for few items is kept: a question is priced to be shown, explained and released.
    """
    find = _least if len(items) > _FEW else _kept_least
    return find(law, items, budget, allowance)


def _least(
    law: type[NoiseLaw], items: tuple[Item, ...], budget: PrivacyBudget, allowance: Fraction
) -> Treatment:
    """Search for the level of all noises at which they cost what is allowed.

    Theorem: with relative parameters u, sum w u^p is least for u ~ (norm / w)^(1/(p+1)) where sum norm / u
    is fixed (Lagrange): p = 1 for Gaussian noise, where u is the variance, and 2 for Laplace noise, where
    u is the scale. Rounds: up, to more noise.
    """
    rule = budget.rule
    if law.pure and isinstance(rule, PureRule):
        return _pure(law, items, allowance)
    kinds, power = Kinds.of(items), law.power()
    norms = [law.norm(item.l1, item.l2_squared) for item in kinds.items]
    ratios = [
        (norm / float(item.weight * item.blocks * item.emphasis)) ** (1 / (1 + power))
        for item, norm in zip(kinds.items, norms, strict=True)
    ]

    def at(level: float) -> list[NoiseLaw]:
        spend(_STEPS_PER_KIND * len(ratios))
        amounts = zip(kinds.items, ratios, strict=True)
        return [law.relative(Fraction(level * ratio), item.sensitivity) for item, ratio in amounts]

    def total(candidate: list[NoiseLaw]) -> Fraction:
        spent = Fraction(0)
        for item, own, number in zip(kinds.items, candidate, kinds.times, strict=True):
            for part, times in item.event(own).parts():
                spent += Fraction(rule.price(part)) * times * number
        return spent

    def treated(candidate: list[NoiseLaw]) -> Treatment:
        return Treatment(items=items, laws=tuple([candidate[kind] for kind in kinds.places]))

    # Prices fall about like 1 / level^power: follow that to the allowance.
    known = [
        (norm, ratio, item.sensitivity) for item, norm, ratio in zip(kinds.items, norms, ratios, strict=True)
    ]
    level = law.first_level(
        [known[kind] for kind in kinds.places],
        lambda event: float(rule.price(event)) / float(allowance),
    )
    low, high = 0.0, math.inf
    for _ in range(_TRIES):
        candidate = at(level)
        spent = total(candidate)
        ratio = float(spent / allowance)
        if spent <= allowance:
            high = level
            if ratio > 1.0 - 1e-6:
                return treated(candidate)
        else:
            low = level
        step = level * ratio ** (1 / power) * (1 + 1e-8)
        inside = low < step < high
        level = step if inside else (math.sqrt(low * high) if low and math.isfinite(high) else step)
        if high < low * (1 + 1e-7):
            break
    return treated(at(high))


_kept_least = remembered(256)(_least)


def _pure(law: type[NoiseLaw], items: tuple[Item, ...], epsilon: Fraction) -> Treatment:
    """Divide epsilon itself: the shares add up to it exactly."""
    kinds = Kinds.of(items)
    each = [float(item.l1**2 * item.weight * item.blocks * item.emphasis) ** (1 / 3) for item in kinds.items]
    if len(set(each)) == 1:
        shares = [Fraction(1, len(items))] * len(each)
    else:
        whole = sum(each[kind] for kind in kinds.places)
        rounded = [Fraction(max(1, round(wish / whole * 2**_BITS))) for wish in each]
        parts = sum(part * times for part, times in zip(rounded, kinds.times, strict=True))
        shares = [part / parts for part in rounded]
    laws = [
        law(item.l1 * item.sensitivity / (epsilon * share))
        for item, share in zip(kinds.items, shares, strict=True)
    ]
    return Treatment(items=items, laws=tuple([laws[kind] for kind in kinds.places]))
