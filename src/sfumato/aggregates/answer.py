"""Answers: how each aggregate of a question is computed from noisy measures. All post-processing.

Write N, S, .. for the noisy integers of the measures that an `Answer` names, in this order:

    COUNT_ROWS, COUNT            (count)             N * weight
    COUNT_UNITS                  (units)             N
    COUNT_DISTINCT               (distinct)          N
    SUM                          (sum)               S * scale
                                 (count, sum)        S * scale + centre * N * weight
    AVG                          (count, sum)        centre + (S * scale) / (N * weight)
    VAR_*, STDDEV_*              (count, sum, square)           n = N * weight, mean = S * scale / n
                                 sum of squared deviations D = Q * scale^2 - n * mean^2
                                 population D / n, sample D / (n - 1), STDDEV its root
    COVAR_*                      (count, sum of the first, sum of the second, cross)
                                 D = C * scale * second_scale - n * mean_1 * mean_2
    CORR                         (count, sum of the first, sum of the second, square of the first,
                                  square of the second, cross)
    QUANTILE, MIN, MAX           (cells)             a histogram over `edges`: weighted ranks
    HISTOGRAM                    (cells)             one number per cell, cell * weight

Means are centred: the first factor is (x - centre), in steps of `scale`; the second likewise. A
count's integer may be in parts of a row: `weight` says how much of a row one unit of it is. So may
a histogram's: a person with n rows in a group enters with weight min(n, max_rows) / n for each.
Counts that are too small to divide by make a ratio NULL; an answer outside `lower` and `upper`
(where given) may be moved to the nearer one, which is also post-processing.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction

from sfumato.aggregates.registry import Function
from sfumato.catalog.kind import Kind, Value

__all__ = ["Answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How one aggregate is answered; the module says what `measures` holds for each function."""

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
    labels: tuple[Value, ...] = ()  # HISTOGRAM of a declared list: the value of each cell
    half_widths: tuple[float, ...] = ()  # how far each factor can be from its centre, for forecasts
    epoch: datetime.date | None = None  # of dates: the numbers are days (microseconds) from this one on
    lower: float | None = None  # what the exact answer cannot be below, for public reasons
    upper: float | None = None
