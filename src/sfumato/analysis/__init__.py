"""What a question costs: bounding, sensitivity, key selection, noise choice.

Expected errors and explanations are imported where they are shown: an answer does without them.
"""

from sfumato.aggregates.answer import Answer
from sfumato.analysis.batches import price_together
from sfumato.analysis.bounded import BoundedQuery, Bounding, Factor, Measure, MeasureKind
from sfumato.analysis.bounding import bound
from sfumato.analysis.pricing import Cost, Noise, price
from sfumato.analysis.selection import Round, Selection

__all__ = [
    "Answer",
    "BoundedQuery",
    "Bounding",
    "Cost",
    "Factor",
    "Measure",
    "MeasureKind",
    "Noise",
    "Round",
    "Selection",
    "bound",
    "price",
    "price_together",
]
