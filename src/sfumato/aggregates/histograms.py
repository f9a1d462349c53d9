"""HISTOGRAM: one count per cell. One measure, a histogram of one layer: cell * weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.columns import dates
from sfumato.aggregates.linear import fitted_widths, scaled
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.aggregates.record import AggregateRecord
from sfumato.catalog.kind import Kind

__all__ = ["Histogram"]


@dataclass(frozen=True, slots=True)
class Histogram(AggregateRecord):
    """HISTOGRAM(x): of declared values, or of equal cells between bounds."""

    counts: ClassVar[bool] = True
    lists: ClassVar[bool] = True

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Take any kind: values that are not in order may be declared one by one."""
        return not inner or (kind is not None and kind.numeric)

    def kind(self, argument: Kind | None) -> Kind | None:
        """Return a list."""
        return None

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for the cells."""
        return replace(asked.listed_cells(), kind=Kind.INTEGER, integer=True, lower=0.0)

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return a list of counts per group: the noisy integers of the lowest layer, whatever is above it."""
        [cells] = noisy
        shown = cells.layers[0].tolist()
        if cells.fitted is None:
            width = 0 if level is None else cells.noise.law.half_width(level)
            rows = [scaled(answer, row, answer.weight, width, non_negative=non_negative) for row in shown]
        else:
            signed = shown if cells.fitted.signed is None else cells.fitted.signed.tolist()
            widths = fitted_widths([answer.weight], [cells.fitted], [cells.noise.law], level)
            unit = answer.weight / cells.fitted.parts
            rows = [
                scaled(answer, row, unit, width, non_negative=non_negative, centres=centres)
                for row, width, centres in zip(shown, widths, signed, strict=True)
            ]
        return NoisyColumn(
            values=[row.values for row in rows],
            low=[row.low for row in rows],
            high=[row.high for row in rows],
        )

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the half-width of the noise of one cell."""
        return Forecast(name=answer.name, error=noises[0].law.half_width(level) * float(answer.weight))

    def notes(self, answer: Answer, noises: Sequence[AddedNoise], name: str, *, shown: bool) -> Iterator[str]:
        """Say which cells there are."""
        if not shown and answer.labels == tuple(range(len(answer.labels))):
            return  # cells that are only numbered, and that post-processing has read
        if answer.labels:
            yield f"cells of {name}: {_some(answer.labels)}"
        else:
            edges = answer.edges if answer.epoch is None else tuple(dates(answer.epoch, answer.edges))
            yield f"cells of {name} are between {_some(edges)}"


def _some(marks: tuple[Any, ...]) -> str:
    shown = [f"{mark:g}" if isinstance(mark, float) else str(mark) for mark in marks]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:6], "..", *shown[-5:]])
