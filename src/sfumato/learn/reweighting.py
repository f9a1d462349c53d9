"""Reweighting: how much rows of declared groups count in training, so that small groups are not outvoted.

Theorem: the weight of a row is a public function of that row's own values, and is at most 1. It multiplies
the row's gradient before that is clipped (`gradients`), so one unit moves a sum by no more than without
weights, and nothing is charged for them. The largest weight is 1 and the others are smaller: raising a
gradient that is clipped anyway would change nothing, lowering the others does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arguments import FloatArray, Number, positive
from sfumato.errors import InvalidArgument
from sfumato.learn.features import Columns, ModelColumn, declared_label
from sfumato.plan.builder import Frame

__all__ = ["Reweighting", "Weights", "declared_weights"]

Weights = Mapping[str, Mapping[Any, Number]]
"""By columns, how much each value counts against others, which count 1: {"digit": {8: 10}}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reweighting:
    """The weight of each declared value of some columns, the largest being 1; `others` have no such value.

    >>> digit = ModelColumn(name="digit", values=(7, 8))
    >>> once = Reweighting(columns=(digit,), weights=((0.1, 1.0),), others=(0.1,))
    >>> once.of_rows({"digit": np.array([0.0, 1.0, -1.0])}).tolist()
    [0.1, 1.0, 0.1]
    """

    columns: tuple[ModelColumn, ...]
    weights: tuple[tuple[float, ...], ...]
    others: tuple[float, ...]

    def of_rows(self, read: Columns) -> FloatArray:
        """Return the weight of each row, of which the columns were read: a function of each row alone."""
        found: FloatArray = np.ones(())
        for column, weights, other in zip(self.columns, self.weights, self.others, strict=True):
            places = np.nan_to_num(read[column.name], nan=-1.0).astype(np.int64)
            found = found * np.array([*weights, other])[np.clip(places, -1, len(weights) - 1)]
        return np.minimum(found, 1.0)


def declared_weights(frame: Frame[Any], given: Weights | None) -> Reweighting | None:
    """Return weights of declared values, scaled so that the largest is 1. Free."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in given.values()):
        hint = "weights={'sex': {'f': 3}}"
        raise InvalidArgument("weights are of values, by columns", place="weights", hints=(hint,))
    columns, weights, others = [], [], []
    for name, own in given.items():
        column = declared_label(frame, name)
        if any(value not in column.values for value in own):
            raise InvalidArgument(
                f"weights name a value that is not declared for `{name}`",
                place="weights",
                hints=(f"declared are {', '.join(map(str, column.values[:8]))}",) if column.values else (),
            )
        found = [float(positive(own.get(value, 1), "weights")) for value in column.values]
        columns.append(column)
        weights.append(tuple(one / max(found) for one in found))
        others.append(min(1.0, 1.0 / max(found)))
    return Reweighting(columns=tuple(columns), weights=tuple(weights), others=tuple(others))
