"""What is chosen: MODE, the most frequent value, and ARG_MAX, the group with the largest count or sum.

MODE has one measure, a histogram with a cell for each value. Where nothing else is asked of the histogram,
one cell is chosen by its count (`analysis/cell_choice`); where it gets noise anyway, the cell with the
largest noisy count is taken, which costs nothing more. ARG_MAX has the measure of its count or sum, and one
group is chosen by that. The answer is a value and not a number, so that it has no interval: what is known is
by how much it may fall short.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.aggregates.record import AggregateRecord
from sfumato.catalog.kind import Kind
from sfumato.core.noise_sums import miss
from sfumato.errors import Unsupported

__all__ = ["ChosenGroup", "Mode"]

_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class _Chosen(AggregateRecord):
    chooses: ClassVar[bool] = True

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Take any kind; not one unit's own rows, whose ties the engine breaks by their order."""
        return kind is not None and not inner


@dataclass(frozen=True, slots=True)
class Mode(_Chosen):
    """MODE(x): of declared values, or of whole numbers or dates between bounds."""

    def kind(self, argument: Kind | None) -> Kind | None:
        """Return the kind of the values."""
        return argument

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for the cells."""
        return asked.listed_cells(single=True)

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return the chosen value of each group, or that of the largest noisy count."""
        [cells] = noisy
        counts = cells.layers[0]
        places = counts.argmax(axis=1) if cells.noise.row_rate is None else counts[:, 0]
        nothing: list[Any] = [None for _ in places]
        values = [answer.labels[place] for place in places.tolist()]
        return NoisyColumn(values=values, low=nothing, high=nothing)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return by how many rows the answer may fall short of the most frequent value."""
        short = "rows short of the most frequent value"
        return Forecast(name=answer.name, error=_short(answer, noises[0], level), falls_short=short)

    def notes(self, answer: Answer, noises: Sequence[AddedNoise], name: str, *, shown: bool) -> Iterator[str]:
        """Say how it was chosen, and what is known instead of an interval."""
        short = max(_short(answer, noise, _LEVEL) for noise in noises)
        yield (
            f"{name} is chosen privately among {len(answer.labels):,} values: with probability {_LEVEL:.0%}"
            f" it has at most {short:,.3g} rows less than the most frequent one; of no rows it is any of them"
        )


@dataclass(frozen=True, slots=True)
class ChosenGroup(_Chosen):
    """ARG_MAX and ARG_MIN over groups: a group is shown, and of the number that it is chosen by nothing."""

    largest: bool = True

    def measured(self, asked: MeasureRequest) -> Answer:
        """Refuse: the count or sum of groups is asked for, and `analysis/group_choice` chooses by it."""
        raise Unsupported("a choice of groups, and no number to choose them by")

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return no number for any group."""
        nothing: list[Any] = [None for _ in noisy[0].layers[0]]
        return NoisyColumn(values=nothing, low=nothing, high=nothing)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return by how much the number of the group may fall short of the best."""
        return Forecast(name=answer.name, error=_short(answer, noises[0], level), falls_short=self._short_of)

    def notes(self, answer: Answer, noises: Sequence[AddedNoise], name: str, *, shown: bool) -> Iterator[str]:
        """Say how the group was chosen, and what is known of its number."""
        short = max(_short(answer, noise, _LEVEL) for noise in noises)
        yield (
            f"a group is chosen privately among {answer.candidates:,}, and no number is told:"
            f" with probability {_LEVEL:.0%} its own is at most {short:,.4g} {self._short_of}"
        )

    @property
    def _short_of(self) -> str:
        return "below the largest" if self.largest else "above the smallest"


def _short(answer: Answer, noise: AddedNoise, level: float) -> float:
    """Return by how much the answer falls short of the best value or group, with a probability.

    Theorem: a cell that is t below the best is chosen with a chance of at most e^(-rate t); sum over the
    rivals. Of noisy counts, all of c are off by at most w but for a chance of c P(|noise| > w), and then the
    largest is at most 2 w below the best.
    """
    rivals, chance = (answer.candidates or len(answer.labels)) - 1, miss(level)
    if rivals == 0:
        return 0.0
    if noise.row_rate is None:
        steps = 2.0 * noise.law.half_width(1 - chance / (rivals + 1))
    else:
        steps = max(0.0, math.log(rivals / chance)) / float(noise.row_rate)
    return steps * float(answer.weight)
