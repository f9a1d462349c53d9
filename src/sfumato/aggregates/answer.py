"""Answers: how each aggregate of a question is computed from noisy measures. All post-processing.

Write N, S, .. for the noisy integers of the measures that an `Answer` names; the record of its function
says which they are, and in what order. Means are centred: the first factor is (x - centre), in steps of
`scale`; the second likewise. A count's integer may be in parts of a row: `weight` says how much of a row
one unit of it is. So may a histogram's: a person with n rows in a group enters with weight
min(n, max_rows) / n for each. Counts that are too small to divide by make a ratio NULL; an answer outside
`lower` and `upper` (where given) may be moved to the nearer one, which is also post-processing.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from sfumato.catalog.kind import Kind, Value
from sfumato.core.gaussian_sums import GaussianSum
from sfumato.core.mechanism import confidence
from sfumato.core.noise_law import NoiseLaw

if TYPE_CHECKING:
    from sfumato.aggregates.registry import Function

__all__ = ["AddedNoise", "Answer", "Fitted", "Forecast", "NoisyColumn", "NoisyMeasure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How one aggregate is answered; its function's record says what `measures` holds."""

    name: str
    function: Function
    measures: tuple[str, ...]
    kind: Kind = Kind.REAL  # of the answer
    integer: bool = False  # the exact answer is a whole number: round the noisy one to one
    weight: Fraction = Fraction(1)  # rows (or units) per unit of the count's or the cells' integer
    scale: Fraction = Fraction(1)  # the step of the first factor's grid
    centre: float = 0.0
    second_scale: Fraction = Fraction(1)
    second_centre: float = 0.0
    quantiles: tuple[float, ...] = ()  # QUANTILE as asked; MIN and MAX: the one that stands for them
    several: bool = False  # a list of quantiles, also if it has one
    edges: tuple[float, ...] = ()  # cells: ascending, one more than there are cells
    points: bool = False  # cell i holds exactly the value edges[i]: a quantile is one of them
    labels: tuple[Value, ...] = ()  # the value of each cell, where each has one
    candidates: int = 0  # groups among which one is chosen
    half_widths: tuple[float, ...] = ()  # how far each factor can be from its centre, for forecasts
    epoch: datetime.date | None = None  # of dates: the numbers are days (microseconds) from this one on
    lower: float | None = None  # what the exact answer cannot be below, for public reasons
    upper: float | None = None

    @property
    def many(self) -> bool:
        """Whether each group has a list of numbers."""
        return self.several or self.function.record.lists


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedNoise:
    """The noise that one measure got in one grouping set."""

    measure: str
    grouping_set: int
    law: NoiseLaw
    levels: int = 1
    branching: int = 2
    row_rate: Fraction | None = None  # a cell was chosen, at this rate;
    quantile: Fraction | None = None  # it is where this quantile was found,
    anchor: NoiseLaw | None = None  # and the excess at its place has this noise
    times: int = 1  # each number is a sum of this many that got such noise, or of fewer

    def half_width(self, level: Any) -> int:
        """Return what the noise of a number stays within with probability `level`."""
        if self.times == 1:
            return self.law.half_width(level)
        return self.law.sum_half_width(self.times, 1 - confidence(level))

    @property
    def deviation(self) -> float:
        """An upper bound of the standard deviation of the noise of a number."""
        return self.law.deviation * math.sqrt(self.times)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """Integers of a measure that add up over grouping sets, instead of noisy ones (`release.consistency`).

    Each is less than `step` away from an estimate of a known deviation. One noisy integer is `parts` of them.
    `noises` are the laws of the estimates' noise, one per group, where they are known.
    Where negative ones were not wanted, `signed` are those that are less than a step away.
    """

    deviations: npt.NDArray[Any]  # of each group; of a histogram, of each of its cells
    step: int
    parts: int = 1
    signed: npt.NDArray[Any] | None = None
    noises: tuple[GaussianSum, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyMeasure:
    """The noisy integers of one measure, one per group; of a histogram, its layers."""

    noise: AddedNoise
    fitted: Fitted | None = None
    sums: npt.NDArray[Any] | None = None
    layers: tuple[npt.NDArray[Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyColumn:
    """Values of one column, and the ends of their intervals; keys have none."""

    values: list[Any]
    low: list[Any]
    high: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The half-width that holds an answer's noise with the stated probability.

    `error` is None if it depends on the group's size and none was given, and for a correlation, of which
    only `even` is known: the same for values spread evenly between their bounds. In ranks: of a group of
    a stated size the quantile asked for, plus or minus `error`; without a size, that many rows. A chosen
    value or group falls short of the best one by at most `error`: `falls_short` says in what.
    """

    name: str
    error: float | None
    in_ranks: bool = False
    falls_short: str = ""
    needs_size: bool = False
    even: float | None = None
