"""Protocols: how one person's answer becomes one report, and many reports become shares.

A protocol is frozen, public and complete: its parameters are integers and exact ratios that a survey
file can hold, so that a phone and a collector mean the same thing. It has two halves that never meet:

    randomise   answers -> reports    what every phone does; here for many simulated people at once
    collect     reports -> totals     what the collector does; totals of batches are added up
    supports    totals  -> counts     once, at the end

Reports are columns of a table (`fields`): integers, or bits packed into bytes, the first answer in the
highest bit of the first byte. Nothing in a report but these columns depends on the answer.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.core.arguments import Number, count, probability
from sfumato.core.exponential import log_above
from sfumato.core.mechanism import confidence
from sfumato.core.proportion import clopper_pearson
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Floats, Integers
from sfumato.local.odds import check_odds

__all__ = [
    "Columns",
    "DerivedProtocol",
    "FieldKind",
    "FrequencyProtocol",
    "OddsProtocol",
    "Protocol",
    "Shares",
    "below",
]

Columns = Mapping[str, Array]
"""Reports by field: an array of integers (n), or of packed bits (n x bytes, uint8)."""
FieldKind = Literal["integer", "bits"]


def below(column: Array, bound: int) -> Flags:
    """Flag the integers from 0 to bound - 1."""
    flags: Flags = (column >= 0) & (column < bound)
    return flags


class Protocol(ABC):
    """What every protocol has. Subclasses are frozen dataclasses, whose fields are the parameters."""

    name: ClassVar[str]
    fields: ClassVar[Mapping[str, FieldKind]] = {"value": "integer"}

    @property
    @abstractmethod
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon of one report: the largest ratio of its probabilities under two answers."""

    @property
    def epsilon(self) -> float:
        """The pure epsilon of one report. Rounds: up, to the next float."""
        return log_above(self.max_ratio)

    @property
    def lifetime_ratio(self) -> Fraction:
        """The exact e^epsilon of a report that is kept, and sent again on any number of days."""
        return self.max_ratio

    @property
    @abstractmethod
    def message_bits(self) -> int:
        """How many bits a report needs."""

    def octets(self, field: str) -> int:
        """Return how many bytes the bits of a field take."""
        raise InvalidArgument(f"the reports of {self.name} have no bits", place=field)

    def parameters(self) -> dict[str, Any]:
        """Return what a survey file says of it: integers, and ratios written as '3/4'."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {name: str(value) if isinstance(value, Fraction) else value for name, value in values.items()}

    @abstractmethod
    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""

    @abstractmethod
    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that a phone could have sent; whatever is in the columns, it does not fail."""

    @abstractmethod
    def collect(self, reports: Columns) -> Array:
        """Return the totals of a batch of valid reports, of a size that does not depend on the batch."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """What reports say about each answer.

    `values` are unbiased: noise may push one below 0 or above 1. Limits lie between 0 and 1.
    """

    values: Floats
    low: Floats
    high: Floats
    deviations: Floats
    reports: int
    level: float

    @classmethod
    def of(
        cls, counts: Array, n: int, low: Floats, high: Floats, *, p: Fraction, q: Fraction, level: float
    ) -> Shares:
        """Return the shares of answers that so many of n reports support, with limits of that chance."""
        one, none, gap = float(p), float(q), float(p - q)
        values = (counts / max(n, 1) - none) / gap
        f = np.clip(values, 0.0, 1.0)
        return cls(
            values=values,
            low=np.clip((low - none) / gap, 0.0, 1.0),
            high=np.clip((high - none) / gap, 0.0, 1.0),
            deviations=np.sqrt((f * one * (1 - one) + (1 - f) * none * (1 - none)) / max(n, 1)) / gap,
            reports=n,
            level=level,
        )


class FrequencyProtocol(Protocol):
    """A pure protocol: a report supports its sender's answer with chance p, any other answer with chance q.

    Theorem: (c/n - q)/(p - q) is unbiased for the share f of those who gave an answer that c of n
    reports support, with variance (f p(1-p) + (1-f) q(1-q)) / (n (p-q)^2) (Wang, Blocki, Li and Jha 2017).
    """

    size: int
    """How many answers there are: 0 .. size - 1."""

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The chance that a report supports the answer it was made from."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The chance that it supports any other one."""

    def supports(self, totals: Array) -> Integers:
        """Return how many reports support each answer: unless a protocol says otherwise, the totals."""
        return totals

    def variance(self, frequency: Number, n: int) -> float:
        """Return the variance of the estimate of an answer that a `frequency` of n people gave."""
        f, p, q = probability(frequency, "frequency"), self.p, self.q
        return float((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (count(n, "n") * (p - q) ** 2))

    def shares(self, totals: Array, reports: int, level: float = 0.95) -> Shares:
        """Return an estimate with limits for every answer.

        Theorem: reports of a random sample are independent coins of bias q + f (p - q), which Clopper and
        Pearson (1934) cover at any size; for a fixed group of people the number of supports varies less
        than that (Hoeffding 1956), so that their own shares are covered too.
        Without reports nothing is known.
        """
        n = count(reports, "reports", least=0)
        counts, miss = self.supports(totals), float(1 - confidence(level))
        if n == 0:
            nothing = np.full(self.size, math.nan)
            return Shares(
                values=nothing, low=np.zeros(self.size), high=np.ones(self.size), deviations=nothing,
                reports=0, level=level,
            )  # fmt: skip
        distinct, places = np.unique(counts, return_inverse=True)  # of many answers most counts are alike
        low, high = (limit[places] for limit in clopper_pearson(distinct, n, miss / 2))
        return Shares.of(counts, n, low, high, p=self.p, q=self.q, level=level)

    def _answers(self, answers: Array) -> Integers:
        """Read answers; one outside the domain is its sender's mistake, and is not repeated."""
        found = np.asarray(answers)
        if (
            found.ndim != 1
            or found.dtype.kind not in "iub"
            or (found.size and not (found.min() >= 0 and found.max() < self.size))
        ):
            raise InvalidArgument(
                f"answers must be integers from 0 to {self.size - 1}",
                place="answers",
                hints=("give the place of each answer in the survey's list",),
            )
        return found.astype(np.int64)


class OddsProtocol(FrequencyProtocol):
    """A protocol for one of `size` answers: a report weighs `odds` or 1, by its sender's answer."""

    odds: Fraction
    largest_size: ClassVar[int] = 2**62

    def __post_init__(self) -> None:
        if count(self.size, "size") > self.largest_size:
            raise InvalidArgument(
                f"there can be at most {self.largest_size} answers here",
                place="size",
                hints=("group answers; local hashing takes up to 2^62 of them",),
            )
        check_odds(self.odds)

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon: of one answer alone, nothing can be told apart."""
        return self.odds if self.size > 1 else Fraction(1)


class DerivedProtocol(FrequencyProtocol):
    """A protocol whose reports are those of another one, `single`, about something drawn from the answer."""

    @property
    @abstractmethod
    def single(self) -> FrequencyProtocol:
        """The protocol for a single answer that makes the reports."""

    @property
    def fields(self) -> Mapping[str, FieldKind]:  # type: ignore[override]
        """Those of the protocol that makes the reports."""
        return self.single.fields

    @property
    def message_bits(self) -> int:
        """How many bits a report needs."""
        return self.single.message_bits

    def octets(self, field: str) -> int:
        """Return how many bytes the bits of a field take."""
        return self.single.octets(field)

    def valid(self, reports: Columns) -> Flags:
        """Flag what the protocol that makes the reports could have sent."""
        return self.single.valid(reports)

    def collect(self, reports: Columns) -> Array:
        """Return the totals of a batch."""
        return self.single.collect(reports)

    def supports(self, totals: Array) -> Integers:
        """A report supports what it does under `single`; what comes after the answers are dummies."""
        return self.single.supports(totals)[: self.size]
