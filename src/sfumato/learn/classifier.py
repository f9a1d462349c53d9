"""Models that tell classes apart: what a fairness report needs to know of a published model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from sfumato.catalog.kind import Value
from sfumato.core.arguments import FloatArray
from sfumato.learn.features import Features, ModelColumn

__all__ = ["Classifier"]


class Classifier(ABC):
    """A published model that is applied to encoded rows: what it says of a row depends on that row alone.

    Code that sees private rows takes models of this base alone, and not whatever has the same methods.
    """

    __slots__ = ()

    features: Features
    label: ModelColumn
    cost: Mapping[str, Any]

    @property
    def classes(self) -> tuple[Value, ...]:
        """The values that the label may have; none, if it is a number."""
        return self.label.values

    @abstractmethod
    def probabilities_of(self, encoded: npt.NDArray[Any]) -> FloatArray:
        """Return the probability of each class for each encoded row."""

    @abstractmethod
    def predict_proba(self, data: Any) -> FloatArray:
        """Return the probability of each class for each public row."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the one text from which the same model comes back."""
