"""Published additive models: a curve for each column, which add up to the log odds. All may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import Value
from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn.features import Features, ModelColumn, public_column
from sfumato.learn.gradients import probabilities
from sfumato.release.storage import decode, dump, encode, load

__all__ = ["AdditiveModel", "cells_of", "number_of_cells"]

_FORMAT = 1


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdditiveModel:
    """An additive model of a label with two values: `effects` has a number for each cell of each column.

    The cells of a number are `bins` of equal width between its bounds. The first cell of a column with listed
    values is for rows that have none of them.

    >>> age = ModelColumn(name="age", lower=0, upper=100)
    >>> ill = ModelColumn(name="ill", values=(False, True))
    >>> model = AdditiveModel(features=Features((age,)), label=ill, bins=2, effects=(np.array([-1.0, 1.0]),))
    >>> model.predict({"age": [10, 90]}).tolist(), model.curve("age")
    ([False, True], [('0 to 50', -1.0), ('50 to 100', 1.0)])
    """

    features: Features
    label: ModelColumn
    bins: int
    effects: tuple[FloatArray, ...]
    cost: Mapping[str, Any] = field(default_factory=dict)
    receipt: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

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
    def classes(self) -> tuple[Value, ...]:
        """The two values of the label."""
        return self.label.values

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

    def predict_proba(self, data: Any) -> FloatArray:
        """Return the probability of each class for each public row."""
        return self.probabilities_of(self.features.of_public(data))

    def predict(self, data: Any) -> npt.NDArray[Any]:
        """Return the likelier class of each public row."""
        second = self.margins_of(self.features.of_public(data))[:, 0] > 0
        return np.array(self.classes)[second.astype(np.int64)]

    def score(self, data: Any, labels: Any = None) -> float:
        """Return the share of public rows with a listed label whose class is predicted."""
        truth = public_column(data, self.label.name) if labels is None else list(labels)
        return self.label.accuracy(truth, self.predict(data))

    def with_receipt(self, receipt: Mapping[str, Any]) -> AdditiveModel:
        """Return this model with the receipt of its charge."""
        return replace(self, receipt=receipt)

    def to_json(self) -> str:
        """Return the one JSON text of this model; `from_json` gives it back, and it the same text."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain["features"] = tuple(one.plain() for one in self.features.columns)
        plain["label"] = self.label.plain()
        return dump({"additive": _FORMAT, **encode(plain)})

    @staticmethod
    def from_json(text: str) -> AdditiveModel:
        """Return the model that was stored as `text`."""
        record = load(text)
        if record.pop("additive", None) != _FORMAT:
            raise Unsupported("a stored model of another format", place="text")
        try:
            plain = decode(record)
            plain["features"] = Features(tuple(ModelColumn(**one) for one in plain["features"]))
            plain["label"] = ModelColumn(**plain["label"])
            return AdditiveModel(**plain)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            raise InvalidArgument("this stored model is damaged", place="text") from None

    def __repr__(self) -> str:
        columns, epsilon = len(self.features.columns), float(self.cost.get("epsilon", 0))
        return f"<additive model of `{self.label.name}` on {columns} columns; epsilon {epsilon:.4g}>"
