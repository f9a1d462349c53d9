"""Shares: how much noise each item of a query gets, so that all of them together cost what they may."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import (
    Composed,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    Event,
    Gaussian,
    Repeated,
)
from sfumato.core.rules import PureRule

__all__ = ["Item", "NoiseKind", "Treatment", "calibrated", "shortened", "tree_shape"]

NoiseKind = Literal["laplace", "gaussian"]
"""Both are noises on integers, with exactly the stated law."""

_BITS = 32  # parameters of noise are kept this short
_TRIES = 60


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
    norm: bool = False  # Gaussian: only the norm of all shifts is known
    rounds: tuple[
        Fraction, ...
    ] = ()  # shares of each round: in each, the sensitivity is that of a whole vector

    def event(self, kind: NoiseKind, parameter: Fraction) -> Event:
        """Return what noise of a parameter on this item costs."""
        if self.rounds:
            return Composed(events=tuple(event for _, event in self.in_rounds(kind, parameter)))
        if self.norm and kind == "gaussian":
            return self._vector(parameter)
        events: list[Event] = []
        for multiple, times in self.shifts:
            shift = self.sensitivity * multiple
            one: Event
            if kind == "laplace":
                one = DiscreteLaplace(scale=parameter, sensitivity=shift)
            else:
                one = DiscreteGaussian(sigma_squared=parameter, sensitivity=shift)
            number = times * self.levels
            events.append(one if number == 1 else Repeated(event=one, times=number))
        return events[0] if len(events) == 1 else Composed(events=tuple(events))

    def _vector(self, parameter: Fraction) -> Event:
        """Return Gaussian noise on numbers of which only the norm of their change is known."""
        norm = Fraction(self.sensitivity**2 * self.l2_squared // self.levels)
        one = DiscreteGaussianVector(sigma_squared=parameter, l2_squared=norm)
        return one if self.levels == 1 else Repeated(event=one, times=self.levels)

    def in_rounds(self, kind: NoiseKind, parameter: Fraction) -> list[tuple[Fraction, Event]]:
        """Return the parameter and the event of each round; the shares of them make up the whole parameter.

        Only the norm of a change is known: its sum for Laplace noise (a shift by all of it in one number
        costs no less: `analysis.pricing`), its Euclidean length for Gaussian noise.
        """
        found: list[tuple[Fraction, Event]] = []
        for share in self.rounds:
            own = parameter / share
            if kind == "laplace":
                found.append((own, DiscreteLaplace(scale=own, sensitivity=self.sensitivity)))
            else:
                own = shortened(own)
                event = DiscreteGaussianVector(sigma_squared=own, l2_squared=Fraction(self.sensitivity**2))
                found.append((own, event))
        return found

    @property
    def l1(self) -> int:
        """The sum of all shifts, in sensitivities."""
        return self.levels * sum(multiple * times for multiple, times in self.shifts)

    @property
    def l2_squared(self) -> int:
        """The sum of all squared shifts, in squared sensitivities."""
        return self.levels * sum(multiple**2 * times for multiple, times in self.shifts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """One kind of noise for all items, and how much of it for each."""

    kind: NoiseKind
    items: tuple[Item, ...]
    parameters: tuple[Fraction, ...]

    @property
    def objective(self) -> float:
        """The weighted sum of relative variances."""
        total = 0.0
        for item, parameter in zip(self.items, self.parameters, strict=True):
            variance = 2 * parameter**2 if self.kind == "laplace" else parameter
            total += float(item.weight * item.blocks * variance / item.sensitivity**2)
        return total


def tree_shape(cells: int, kind: NoiseKind) -> tuple[int, int]:
    """Return (levels, branching) of the layers over a histogram with the smallest error of a rank.

    A rank is a sum of up to branching - 1 blocks of each layer (once layers are made consistent, it has
    the variance of about a sixth of them), and each layer's variance grows with the number of
    layers: in proportion for Gaussian noise, with its square for Laplace noise.
    """
    power = 3 if kind == "laplace" else 2
    shapes = []
    for levels in range(1, max(2, cells.bit_length() + 1)):
        branching = max(2, math.ceil(cells ** (1 / levels) - 1e-9))
        while branching**levels < cells:
            branching += 1
        shapes.append(((branching - 1) * levels**power, levels, branching))
    _, levels, branching = min(shapes)
    return levels, branching


# -- how much noise -------------------------------------------------------------------------


def calibrated(
    kind: NoiseKind, items: tuple[Item, ...], budget: PrivacyBudget, allowance: Fraction
) -> Treatment:
    """Return the least noise, in the best proportions, of which the price is within the allowance.

    Theorem: sum w v is least for v ~ sqrt(l2^2 / w) where sum l2^2 / v is fixed, as for Gaussian
    noise of relative variance v; and for u ~ (l1 / w)^(1/3) where sum l1 / u is fixed and v = 2 u^2,
    as for Laplace noise of relative scale u (Lagrange). Rounds: up, to more noise.
    """
    if kind == "laplace" and isinstance(budget.rule, PureRule):
        return _pure(items, allowance)
    if kind == "laplace":
        ratios = [(item.l1 / float(item.weight * item.blocks)) ** (1 / 3) for item in items]
    else:
        ratios = [math.sqrt(item.l2_squared / float(item.weight * item.blocks)) for item in items]

    def at(level: float) -> Treatment:
        parameters = []
        for item, ratio in zip(items, ratios, strict=True):
            relative = Fraction(level * ratio)
            unit = item.sensitivity if kind == "laplace" else item.sensitivity**2
            parameters.append(shortened(relative * unit))
        return Treatment(kind=kind, items=items, parameters=tuple(parameters))

    def total(candidate: Treatment) -> Fraction:
        spent = Fraction(0)
        for item, parameter in zip(items, candidate.parameters, strict=True):
            for part, times in item.event(kind, parameter).parts():
                spent += Fraction(budget.rule.price(part)) * times
        return spent

    # Prices fall about like 1/level (Gaussian) or 1/level^2 (Laplace): follow that to the allowance.
    level, power = (1.0, 0.5) if kind == "laplace" else (_guess(items, ratios, budget, allowance), 1.0)
    low, high = 0.0, math.inf
    for _ in range(_TRIES):
        candidate = at(level)
        spent = total(candidate)
        ratio = float(spent / allowance)
        if spent <= allowance:
            high = level
            if ratio > 1.0 - 1e-6:
                return candidate
        else:
            low = level
        step = level * ratio**power * (1 + 1e-8)
        inside = low < step < high
        level = step if inside else (math.sqrt(low * high) if low and math.isfinite(high) else step)
        if high < low * (1 + 1e-7):
            break
    return at(high)


def _guess(items: tuple[Item, ...], ratios: list[float], budget: PrivacyBudget, allowance: Fraction) -> float:
    """Return about the level at which Gaussian noise costs the allowance: certifying a sigma is slow."""
    unit = float(budget.rule.price(Gaussian(sigma=Fraction(1)))) / float(allowance)
    level = unit * sum(item.l2_squared / ratio for item, ratio in zip(items, ratios, strict=True))
    total = 0.0
    for item, ratio in zip(items, ratios, strict=True):
        variance = level * ratio * item.sensitivity**2
        # what a certified mu^2 of integers is above that of real numbers
        total += item.l2_squared / ratio * (1 + 1 / ((6 if variance >= 1_000 else 12) * variance))
    return unit * total * (1 + 1e-7)


def _pure(items: tuple[Item, ...], epsilon: Fraction) -> Treatment:
    """Divide epsilon itself: the shares add up to it exactly."""
    wishes = [float(item.l1**2 * item.weight * item.blocks) ** (1 / 3) for item in items]
    if len(set(wishes)) == 1:
        shares = [Fraction(1, len(items))] * len(items)
    else:
        rounded = [Fraction(max(1, round(wish / sum(wishes) * 2**_BITS))) for wish in wishes]
        shares = [part / sum(rounded) for part in rounded]
    scales = tuple(
        item.l1 * item.sensitivity / (epsilon * share) for item, share in zip(items, shares, strict=True)
    )
    return Treatment(kind="laplace", items=items, parameters=scales)


def shortened(value: Fraction) -> Fraction:
    """Round up to a fraction of few bits, a power of two below."""
    shift = _BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    unit = Fraction(2) ** -shift
    return math.ceil(value / unit) * unit
