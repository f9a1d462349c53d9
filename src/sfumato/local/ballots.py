"""Ballots: reports with one bit for every answer; a bit is one where the answer is ticked."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from typing import ClassVar

from sfumato.core.arguments import count, probability
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Flags, Integers
from sfumato.local.bits import bytes_for, count_bits, ones, well_formed
from sfumato.local.protocol import Columns, FieldKind, FrequencyProtocol

__all__ = ["Ballot", "ChosenBallot", "CoinBallot", "usual_ones"]

_UNUSUAL = math.log(2e12)  # each of the two limits is passed with a chance of at most 1e-12 / 2


class Ballot(FrequencyProtocol):
    """A report supports every answer whose box is ticked."""

    fields: ClassVar[dict[str, FieldKind]] = {"bits": "bits"}

    @property
    def message_bits(self) -> int:
        """A bit per answer."""
        return self.size

    def octets(self, field: str) -> int:
        """Return the bytes of a report."""
        return bytes_for(self.message_bits)

    def collect(self, reports: Columns) -> Integers:
        """Count the reports in which each box is ticked."""
        return count_bits(reports["bits"], self.message_bits)[: self.size]


class CoinBallot(Ballot):
    """Every box is ticked by a coin of its own: with chance `own` where the answer is held, else `other`."""

    own: Fraction
    other: Fraction

    def _held(self) -> int:
        """Return how many answers a person holds at most."""
        return 1

    def _check_chances(self) -> None:
        object.__setattr__(self, "own", probability(self.own, "own"))
        object.__setattr__(self, "other", probability(self.other, "other"))
        if not 0 < self.other < self.own < 1:
            raise InvalidArgument(
                "the bit of a held answer must be likelier to be set than others, and none certain",
                place="own",
                hints=("build it with from_epsilon", "an epsilon below 1e-9 leaves no information"),
            )

    @property
    def p(self) -> Fraction:
        """The chance that the box of a held answer is ticked."""
        return self.own

    @property
    def q(self) -> Fraction:
        """The chance that the box of any other answer is ticked."""
        return self.other

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports with the right number of bytes, empty padding and a usual number of ticks.

        A report with every box ticked would count for every answer. An honest one is lost with a chance
        of at most 1e-12, whatever its answers, which moves an estimate by at most 1e-12 / (p - q). With
        few answers every number of ticks is usual: of one answer each, all of them ticked is refused once
        other^(size - 1) is below 5e-13 (from 23 answers on at epsilon 1).
        """
        flags = well_formed(reports["bits"], self.size)
        if flags.any():
            low, high = usual_ones(self.size, self.other, self._held())
            found = ones(reports["bits"])
            flags &= (low <= found) & (found <= high)
        return flags


class ChosenBallot(Ballot):
    """Exactly `chosen` boxes are ticked."""

    chosen: int

    def _check_chosen(self) -> None:
        if 2 * count(self.chosen, "chosen") > self.size + 1:
            raise InvalidArgument(
                "chosen must be at most half of the answers",
                place="chosen",
                hints=("more of them say less about those that are held; let from_epsilon choose",),
            )

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports with the right number of bytes, empty padding and exactly `chosen` ticks."""
        flags = well_formed(reports["bits"], self.message_bits)
        return flags & (ones(reports["bits"]) == self.chosen) if flags.any() else flags


def usual_ones(size: int, other: Fraction, most: int = 1) -> tuple[int, int]:
    """Return how few and how many boxes an honest report of at most `most` answers ticks, but for 1e-12.

    Theorem: at least size - most of the bits have chance `other`, and all have at least that (fewer
    ones are then even less likely). A binomial number reaches a share x of n with a chance of at most
    exp(-n KL(x, other)) (Chernoff 1952), on either side.
    """
    chance = float(other)

    def unusual(hits: int, trials: int) -> bool:
        return trials > 0 and trials * _divergence(hits / trials, chance) >= _UNUSUAL

    last = math.floor(chance * size)
    low = last + 1 - bisect_left(range(last + 1), True, key=lambda less: unusual(last - less, size))
    coins = size - most
    start = math.ceil(chance * coins)
    high = start + bisect_left(range(start, coins + 1), True, key=lambda hits: unusual(hits, coins))
    return low, most - 1 + high


def _divergence(x: float, y: float) -> float:
    """Return the relative entropy of two coins."""
    heads = x * math.log(x / y) if x > 0 else 0.0
    return heads + ((1 - x) * math.log((1 - x) / (1 - y)) if x < 1 else 0.0)
