"""What a question costs: bounding, sensitivity, key selection, noise choice, expected error."""

from sfumato.analysis.answer import Answer, Bounding
from sfumato.analysis.bounded import BoundedQuery, Factor, Measure, MeasureKind
from sfumato.analysis.bounding import bound
from sfumato.analysis.explain import explain
from sfumato.analysis.forecast import Forecast, cheapest, forecasts
from sfumato.analysis.pricing import Cost, Noise, Selection, price

__all__ = [
    "Answer",
    "BoundedQuery",
    "Bounding",
    "Cost",
    "Factor",
    "Forecast",
    "Measure",
    "MeasureKind",
    "Noise",
    "Selection",
    "bound",
    "cheapest",
    "explain",
    "forecasts",
    "price",
]
