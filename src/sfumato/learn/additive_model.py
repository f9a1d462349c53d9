"""Published additive models: a curve for each column, which add up to the log odds. All may be shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument
from sfumato.learn.features import Features, ModelColumn
from sfumato.learn.fitted_model import LabelledModel
from sfumato.learn.gradients import probabilities
from sfumato.pages import PageTable, Section

__all__ = ["AdditiveModel", "cells_of", "number_of_cells"]


def number_of_cells(column: ModelColumn, bins: int) -> int:
    """Return how many cells a column has: bins of a number, or one for each listed value and one for none."""
    return len(column.values) + 1 if column.values else bins


def cells_of(features: Features, encoded: npt.NDArray[Any], bins: int) -> list[npt.NDArray[np.int64]]:
    """Return the cell of each row in each column: a function of that row alone."""
    found, place = [], 0
    for column in features.columns:
        own = encoded[:, place : place + len(column.names)].astype(np.float64)
        place += len(column.names)
        if not column.values:
            cells = np.clip(np.floor((own[:, 0] + 1) / 2 * bins), 0, bins - 1)
        elif len(column.values) == 2:  # -1 and 1, and 0 where there is none
            cells = np.array([1, 0, 2])[np.rint(own[:, 0]).astype(np.int64) + 1]
        else:
            cells = np.where(own.any(axis=1), own.argmax(axis=1) + 1, 0)
        found.append(cells.astype(np.int64))
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AdditiveModel(LabelledModel):
    """An additive model of a label with two values: `effects` has a number for each cell of each column.

    The cells of a number are `bins` of equal width between its bounds. The first cell of a column with listed
    values is for rows that have none of them.

    >>> age = ModelColumn(name="age", lower=0, upper=100)
    >>> ill = ModelColumn(name="ill", values=(False, True))
    >>> model = AdditiveModel(features=Features((age,)), label=ill, bins=2, effects=(np.array([-1.0, 1.0]),))
    >>> model.predict({"age": [10, 90]}).tolist(), model.curve("age")
    ([False, True], [('0 to 50', -1.0), ('50 to 100', 1.0)])
    """

    kind: ClassVar[str] = "additive"

    bins: int
    effects: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        cells = [(number_of_cells(column, self.bins),) for column in self.features.columns]
        found = [np.shape(one) for one in self.effects]
        if (
            len(self.classes) != 2
            or found != cells
            or not all(np.isfinite(one).all() for one in self.effects)
        ):
            raise InvalidArgument("these are not the effects of an additive model", place="effects")

    @property
    def objective(self) -> str:
        """What was minimised, as `LinearModel` says it."""
        return "logistic"

    def curve(self, name: str) -> list[tuple[str, float]]:
        """Return what each cell of a column adds to the log odds of the second class."""
        for column, effects in zip(self.features.columns, self.effects, strict=True):
            if column.name == name:
                if column.values:
                    cells = ["none of these", *map(str, column.values)]
                else:
                    edges = np.linspace(column.lower, column.upper, self.bins + 1).tolist()
                    cells = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
                return list(zip(cells, effects.tolist(), strict=True))
        raise InvalidArgument(f"this model has no column `{name}`", place="name")

    def margins_of(self, encoded: npt.NDArray[Any]) -> FloatArray:
        """Return the log odds of encoded rows: a function of each row alone."""
        total = np.zeros(len(encoded))
        for cells, effects in zip(cells_of(self.features, encoded, self.bins), self.effects, strict=True):
            total += effects[cells]
        return total[:, None]

    def probabilities_of(self, encoded: npt.NDArray[Any]) -> FloatArray:
        """Return the probability of each class for encoded rows: a function of each row alone."""
        found = probabilities(self.margins_of(encoded))
        return np.concatenate([1 - found, found], axis=1)

    def predict(self, data: Any) -> npt.NDArray[Any]:
        """Return the likelier class of each public row."""
        second = self.margins_of(self.features.of_public(data))[:, 0] > 0
        return np.array(self.classes)[second.astype(np.int64)]

    @property
    def said(self) -> str:
        """What the model is, in a line."""
        return f"additive model of `{self.label.name}` on {len(self.features.columns)} columns"

    def sections(self) -> Iterable[Section]:
        """Yield the curve of each column."""
        for place, column in enumerate(self.features.columns, 1):
            rows = [(cell, f"{effect:.6g}") for cell, effect in self.curve(column.name)]
            table = PageTable(heads=(column.name, "adds to the log odds"), rows=rows)
            yield Section(f"What {column.name} adds", table, anchor=f"column-{place}")
