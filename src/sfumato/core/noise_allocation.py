"""Allocation: how much noise each of several things gets, so that all of them together cost what they may."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Event
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.rules import PureRule
from sfumato.core.steps import remembered, spend

__all__ = ["Kinds", "Noised", "least_noise", "weight_of_share"]

_BITS = 32  # shares of a pure epsilon are kept this short
_TRIES = 60
_STEPS_PER_KIND = 20
_FEW = 64  # items of a search whose result is kept


class Noised(Protocol):
    """What gets noise: a sensitivity, and the norm under a law, in sensitivities, of all that one unit moves.

    `importance` is the weight of its variance in the sum that the allocation makes least.
    """

    @property
    def sensitivity(self) -> int: ...

    @property
    def importance(self) -> Fraction: ...

    def norm_under(self, law: type[NoiseLaw]) -> int | Fraction: ...

    def event(self, law: NoiseLaw) -> Event: ...

    def alike(self) -> Hashable: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """The kinds of items of a list, those that are alike: a cube has few kinds of items, and many of each."""

    first: tuple[int, ...]  # where the first of each kind is
    times: tuple[int, ...]  # how many there are of each kind
    places: tuple[int, ...]  # of each item of the list, its kind

    @staticmethod
    def of(items: Sequence[Noised]) -> Kinds:
        """Find the kinds of items."""
        spend(len(items))
        known: dict[Hashable, int] = {}
        first: list[int] = []
        places: list[int] = []
        for place, item in enumerate(items):
            kind = known.setdefault(item.alike(), len(known))
            if kind == len(first):
                first.append(place)
            places.append(kind)
        counts = Counter(places)
        return Kinds(
            first=tuple(first),
            times=tuple(counts[kind] for kind in range(len(first))),
            places=tuple(places),
        )


def weight_of_share(share: Fraction, law: type[NoiseLaw], norm: int | Fraction, *, pure: bool) -> Fraction:
    """Return the importance by which an item of this norm gets its share of the cost, as the other items do.

    Theorem: `least_noise` gives an item of norm N and importance w the parameter u ~ (N / w)^(1/(p+1)). The
    cost is N / u, and that is the share where w = share^(p+1) / N^p. Of Laplace noise under a rule that
    adds up squares it is about (N / u)^2, and then w = share^(3/2) / N^2.
    """
    power = law.power()
    exponent = power + 1 if pure or law.euclidean else Fraction(power + 1, 2)
    return Fraction(float(share) ** float(exponent)) / Fraction(norm) ** power


def least_noise(
    law: type[NoiseLaw], items: Sequence[Noised], budget: PrivacyBudget, allowance: Fraction
) -> tuple[NoiseLaw, ...]:
    """Return the least noise of each item, in the best proportions, whose price is within the allowance.

    What was found for few items is kept: a question is priced to be shown, explained and released.
    """
    find = _searched if len(items) > _FEW else _kept
    return find(law, tuple(items), budget, allowance)


def _searched(
    law: type[NoiseLaw], items: tuple[Noised, ...], budget: PrivacyBudget, allowance: Fraction
) -> tuple[NoiseLaw, ...]:
    """Search for the level of all noises at which they cost what is allowed.

    Theorem: with relative parameters u, sum w u^p is least for u ~ (norm / w)^(1/(p+1)) where sum norm / u
    is fixed (Lagrange): p = 1 for Gaussian noise, where u is the variance, and 2 for Laplace noise, where
    u is the scale. Rounds: up, to more noise.
    """
    kinds, rule = Kinds.of(items), budget.rule
    found = [items[place] for place in kinds.first]
    if law.pure and isinstance(rule, PureRule):
        return _pure(law, kinds, found, allowance)
    power = law.power()
    norms = [item.norm_under(law) for item in found]
    ratios = [
        (norm / float(item.importance)) ** (1 / (1 + power)) for item, norm in zip(found, norms, strict=True)
    ]

    def at(level: float) -> list[NoiseLaw]:
        spend(_STEPS_PER_KIND * len(ratios))
        amounts = zip(found, ratios, strict=True)
        return [law.relative(Fraction(level * ratio), item.sensitivity) for item, ratio in amounts]

    def total(candidate: list[NoiseLaw]) -> Fraction:
        spent = Fraction(0)
        for item, own, number in zip(found, candidate, kinds.times, strict=True):
            for part, times in item.event(own).parts():
                spent += Fraction(rule.price(part)) * times * number
        return spent

    def of_all(candidate: list[NoiseLaw]) -> tuple[NoiseLaw, ...]:
        return tuple(candidate[kind] for kind in kinds.places)

    # Prices fall about like 1 / level^power: follow that to the allowance.
    known = [(norm, ratio, item.sensitivity) for item, norm, ratio in zip(found, norms, ratios, strict=True)]
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
                return of_all(candidate)
        else:
            low = level
        step = level * ratio ** (1 / power) * (1 + 1e-8)
        inside = low < step < high
        level = step if inside else (math.sqrt(low * high) if low and math.isfinite(high) else step)
        if high < low * (1 + 1e-7):
            break
    return of_all(at(high))


_kept = remembered(256)(_searched)


def _pure(
    law: type[NoiseLaw], kinds: Kinds, found: Sequence[Noised], epsilon: Fraction
) -> tuple[NoiseLaw, ...]:
    """Divide epsilon itself: the shares add up to it exactly."""
    norms = [item.norm_under(law) for item in found]
    each = [float(norm**2 * item.importance) ** (1 / 3) for item, norm in zip(found, norms, strict=True)]
    if len(set(each)) == 1:
        shares = [Fraction(1, len(kinds.places))] * len(each)
    else:
        whole = sum(each[kind] for kind in kinds.places)
        rounded = [Fraction(max(1, round(wish / whole * 2**_BITS))) for wish in each]
        parts = sum(part * times for part, times in zip(rounded, kinds.times, strict=True))
        shares = [part / parts for part in rounded]
    laws = [
        law(norm * item.sensitivity / (epsilon * share))
        for item, norm, share in zip(found, norms, shares, strict=True)
    ]
    return tuple(laws[kind] for kind in kinds.places)
