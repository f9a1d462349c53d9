"""What published models share: the features that they predict from, and a label with listed values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import Value
from sfumato.core.arguments import FloatArray
from sfumato.learn.features import Features, ModelColumn, public_column
from sfumato.pages import Page, Paragraph, Section
from sfumato.release.published import CLOSING, Published

__all__ = ["FittedModel", "LabelledModel"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FittedModel(Published):
    """A published model. It predicts about public rows, from the columns of `features`."""

    features: Features

    @property
    @abstractmethod
    def said(self) -> str:
        """What the model is, in a line."""

    @abstractmethod
    def predict(self, data: Any) -> npt.NDArray[Any]:
        """Return a prediction for each public row."""

    def sections(self) -> Iterable[Section]:
        """Yield the sections that show the parameters."""
        return ()

    def document(self) -> Page:
        """Return what the model is, its parameters, what to know of it, and its receipt."""
        return Page(
            title="Published model",
            made=self.spent,
            brief=(Paragraph(f"<{self.said}; epsilon {float(self.cost.get('epsilon', 0)):.4g}>"),),
            opening=(Paragraph(f"{self.said[:1].upper()}{self.said[1:]}."),),
            sections=(*self.sections(), *self.last_sections()),
            closing=CLOSING,
        )

    def _plain(self) -> dict[str, Any]:
        return {**Published._plain(self), "features": tuple(one.plain() for one in self.features.columns)}

    @staticmethod
    def _fields_of(plain: dict[str, Any]) -> dict[str, Any]:
        return {**plain, "features": Features(tuple(ModelColumn(**one) for one in plain["features"]))}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LabelledModel(FittedModel):
    """A published model of a label."""

    label: ModelColumn

    @property
    def classes(self) -> tuple[Value, ...]:
        """The values that the label may have."""
        return self.label.values

    @abstractmethod
    def probabilities_of(self, encoded: npt.NDArray[Any]) -> FloatArray:
        """Return the probability of each class for encoded rows: a function of each row alone."""

    def predict_proba(self, data: Any) -> FloatArray:
        """Return the probability of each class for each public row."""
        return self.probabilities_of(self.features.of_public(data))

    def predict(self, data: Any) -> npt.NDArray[Any]:
        """Return the likeliest class of each public row."""
        return np.asarray(np.array(self.classes)[self.predict_proba(data).argmax(axis=1)])

    def score(self, data: Any, labels: Any = None) -> float:
        """Return the share of public rows with a listed label whose class is predicted."""
        truth = public_column(data, self.label.name) if labels is None else list(labels)
        return self.label.accuracy(truth, self.predict(data))

    def _plain(self) -> dict[str, Any]:
        return {**FittedModel._plain(self), "label": self.label.plain()}

    @staticmethod
    def _fields_of(plain: dict[str, Any]) -> dict[str, Any]:
        return {**FittedModel._fields_of(plain), "label": ModelColumn(**plain["label"])}
