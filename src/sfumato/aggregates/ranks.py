"""Quantiles, MIN and MAX: ranks in one noisy histogram, however many are asked for.

A tree of noisy counts answers several quantiles (`quantiles`); a single one is found first and measured
afterwards (`quantile_estimate`). Which of both it was, the noise of the measure says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import ClassVar

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.columns import column, lists
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.aggregates.quantile_estimate import CLEAR, located
from sfumato.aggregates.quantiles import quantiles
from sfumato.aggregates.record import AggregateRecord
from sfumato.aggregates.trees import Tree
from sfumato.catalog.kind import Kind
from sfumato.core.intervals import Interval
from sfumato.core.noise_sums import miss

__all__ = ["Extreme", "Quantile"]

_TIMELY = (Kind.DATE, Kind.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Quantile(AggregateRecord):
    """QUANTILE(x, rank), one or several; MEDIAN and the other special forms of SQL become this one."""

    rank: float | None = None  # the one that stands for the aggregate, which has no others

    ranks: ClassVar[bool] = True

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Take numbers, and what has an order besides."""
        return kind is not None and (kind.numeric or (kind in _TIMELY and not inner))

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return where the values lie."""
        return arguments[0]

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for one histogram."""
        argument, cells = asked.argument(), asked.ranked_cells()
        return replace(
            cells,
            kind=argument.kind or (Kind.INTEGER if argument.whole else Kind.REAL),
            integer=argument.whole and cells.points,
            quantiles=asked.quantiles if self.rank is None else (self.rank,),
            several=asked.several,
            epoch=argument.epoch,
            lower=float(argument.low),
            upper=float(argument.high),
        )

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return one value per group and quantile."""
        [cells] = noisy
        noise, chance = cells.noise, 0.0 if level is None else miss(level)
        if noise.quantile is None or noise.row_rate is None:
            tree = Tree(
                cells=len(answer.edges) - 1,
                levels=noise.levels,
                branching=noise.branching,
                variance=float(noise.law.variance),
            )
            found = quantiles(answer, cells.layers, tree, noise.law, chance)
        else:
            one = located(
                answer, cells.layers, noise.quantile, noise.row_rate, noise.anchor, noise.law, chance
            )
            found = [one] * len(answer.quantiles)
        each = [column(answer, estimate) for estimate in found]
        return lists(each, len(cells.layers[0])) if answer.several else each[0]

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return by how many rows the rank is off, or by which share of a group of a stated size."""
        [noise] = noises
        z = NormalDist().inv_cdf((1 + level) / 2)
        if noise.row_rate is not None:
            rows = _found(noise, answer, size, z, level)
        else:
            layered = noise.levels * (noise.branching - 1)
            blocks = (len(answer.edges) - 1 if noise.levels == 1 else layered) / 6
            rows = z * noise.law.deviation * math.sqrt(max(1.0, blocks)) * float(answer.weight)
        error = rows if size is None else min(1.0, rows / size)
        return Forecast(name=answer.name, error=error, in_ranks=True)


@dataclass(frozen=True, slots=True)
class Extreme(Quantile):
    """MIN or MAX, as a quantile near the end: an exact extreme is one person's value."""

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Take numbers and what has an order; among one unit's own rows anything."""
        return inner or (kind is not None and (kind.numeric or kind in _TIMELY))

    def kind(self, argument: Kind | None) -> Kind | None:
        """Return the kind of the values."""
        return argument

    def notes(self, answer: Answer, noises: Sequence[AddedNoise], name: str, *, shown: bool) -> Iterator[str]:
        """Say which quantile it is."""
        word = "smallest" if self.label == "min" else "largest"
        yield f"{name} is not the exact {word}: it is the {answer.quantiles[0]:g} quantile"


def _found(noise: AddedNoise, answer: Answer, size: float | None, z: float, level: float) -> float:
    """Return by how many rows the rank of a found quantile is off.

    By the choice, with Laplace noise and among single values: where values are spread evenly around the
    quantile, a miss exceeds t with probability e^(-rate t). Else, where values are dense enough to correct
    it, by its anchor's noise and about a quarter of the way that it is corrected; in a group that is too
    small for that, by that whole way. Rows that share one value share all of its ranks.
    """
    assert noise.quantile is not None and noise.row_rate is not None
    parts = float(answer.weight)
    way = parts * float(1 / noise.row_rate)  # the rank's scale when found
    if noise.anchor is None or answer.points:
        return -math.log(1 - level) * way
    off = parts * noise.anchor.deviation / noise.quantile.denominator
    annuli = (len(answer.edges) - 2).bit_length() + 1
    if size is not None and size < CLEAR * parts * noise.law.deviation * math.sqrt(2 * annuli):
        return max(z * off, -math.log(1 - level) * way)
    return z * math.hypot(off, way * math.sqrt(2) / 4)
