"""Choosing a cell, or a group: what it costs to choose one by its number, and to tell nothing else.

The exponential mechanism chooses a cell of count c with a chance proportional to e^(rate c); where a budget
counts pure epsilon, permute and flip does, which costs the same there and never falls further short.

Theorem (what one unit moves): it adds at least 0 and at most s = `sensitivity` to each cell of a group, so
that one unit more lowers no count, and raises none by more than s. Counts are monotone: at a rate of e / s
the exponential mechanism has losses within a range of length e, and permute and flip within -e and e
(`core/selection`).

Theorem (several groups): as for quantiles (`analysis/single_quantile`), a unit in k groups meets k choices.
If all fall into one group of a coarser grouping set, counts rise by up to k s there, and the range is k e.

Theorem (choosing a group by its count or sum): one unit more moves the number of each group that it is in
by something between a <= 0 <= b, and that of every other group by 0, which is between them as well; b - a is
`Measure.span`. Both mechanisms look at nothing but differences between numbers, so that their law stays the
same if -a is added to all numbers after the unit came. Then none has fallen, and none has risen by more than
b - a: the monotone case above with s = b - a, in however many groups the unit is. For the smallest number all
signs change, and b - a does not. Where a group is chosen in each of several parts, a unit in k groups meets
one choice in each part that it is in: at most k choices, and at most as many as there are parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.analysis.noise_allocation import Item
from sfumato.core.events import Composed, Event, Repeated
from sfumato.core.noise_law import NoiseLaw

if TYPE_CHECKING:
    from sfumato.core.selection import ExponentialMechanism, PermuteAndFlip

__all__ = ["CellChoice", "CellChoiceItem", "chosen_blocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChoice:
    """How one cell of a histogram, or one group, is chosen by its number."""

    epsilon: Fraction  # range of losses of one choice, if one unit moves one group
    sensitivity: int  # `Measure.span`; of the cells of a histogram it is the sensitivity
    flips: bool = False  # permute and flip instead of the exponential mechanism

    @property
    def mechanism(self) -> ExponentialMechanism | PermuteAndFlip:
        """The mechanism that chooses."""
        from sfumato.core.selection import ExponentialMechanism, PermuteAndFlip  # few questions need them

        kind = PermuteAndFlip if self.flips else ExponentialMechanism
        return kind(self.epsilon, sensitivity=self.sensitivity, monotone=True)

    @property
    def rate(self) -> Fraction:
        """How much of the exponent one integer of a number is worth."""
        return self.epsilon / self.sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChoiceItem(Item):
    """A histogram of which one cell is chosen, or groups of which one is, for about the cost of one count."""

    pure: bool = False  # the budget counts pure epsilon

    def choice(self, law: NoiseLaw) -> CellChoice:
        """Return the choice that costs what the noise would: exactly for Laplace noise, else about."""
        epsilon = law.choice(self.sensitivity, Fraction(1))
        return CellChoice(epsilon=epsilon, sensitivity=self.sensitivity, flips=self.pure)

    def event(self, law: NoiseLaw) -> Event:
        """Return what the choices cost, in all groups of one unit."""
        one, events = self.choice(law), list[Event]()
        for multiple, times in self.shifts:
            each = replace(one, epsilon=one.epsilon * multiple).mechanism.event
            events.append(each if times == 1 else Repeated(event=each, times=times))
        return events[0] if len(events) == 1 else Composed(events=tuple(events))


def chosen_blocks(law: type[NoiseLaw]) -> Fraction:
    """Return the squared scale by which a choice falls short, in the variance of a count of the same cost.

    The scale is s / e. A count's Laplace noise has a variance of 2 (s / e)^2; Gaussian noise costs as much as
    a range of e = 2 s / sigma.
    """
    return Fraction(1, 4) if law.euclidean else Fraction(1, 2)
