"""Fitted linear models: what leaves. All of it may be shown to anybody, and predicts about public rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn.features import public_column
from sfumato.learn.fitted_model import LabelledModel
from sfumato.learn.gradients import probabilities
from sfumato.learn.moments import units_noise
from sfumato.pages import PageTable, Section

__all__ = ["LinearModel"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LinearModel(LabelledModel):
    """A published linear model: a parameter for each feature and class, and of the constant 1 at the end.

    `objective` is "logistic" (one column of parameters, for the second of two classes), "softmax" (one for
    each class), or "squared" (a number, by the bounds of the label). `units` is how many people there were,
    with noise of a standard deviation.

    >>> from sfumato.learn.features import Features, ModelColumn
    >>> age, ill = ModelColumn(name="age", lower=0, upper=100), ModelColumn(name="ill", values=(False, True))
    >>> parameters = np.array([[5.0], [0.0]])
    >>> model = LinearModel(
    ...     objective="logistic", features=Features((age,)), label=ill, parameters=parameters, units=900
    ... )
    >>> LinearModel.from_json(model.to_json()).predict({"age": [10, 90]}).tolist()
    [False, True]
    """

    kind: ClassVar[str] = "model"

    objective: str
    parameters: FloatArray
    units: float
    units_deviation: float = 0.0
    half_widths: tuple[float, ...] | None = None  # of the intervals of parameters, where they are known

    def __post_init__(self) -> None:
        columns = len(self.classes) if self.objective == "softmax" else 1
        if (
            self.objective not in ("logistic", "softmax", "squared")
            or (self.objective == "logistic") != (len(self.classes) == 2)
            or (self.objective == "squared") != (not self.classes)
            or np.shape(self.parameters) != (self.features.width + 1, columns)
            or not np.isfinite(self.parameters).all()
        ):
            raise InvalidArgument("these are not the parameters of a linear model", place="parameters")

    def units_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the (low, high) that covers how many units there were, with probability `level`."""
        width = units_noise(self.units_deviation).half_width(level)
        return self.units - width, self.units + width

    def coefficient_intervals(self) -> dict[str, tuple[float, float]]:
        """Return the (low, high) of each coefficient, which hold all at once with probability 0.95.

        They cover the coefficients that the same rows have without noise, bounded as they are. Of descent
        none are known.
        """
        if self.half_widths is None:
            raise Unsupported(
                "intervals of coefficients of a descent",
                place="coefficient_intervals",
                hints=("LinearRegression(.., method='moments') has them",),
            )
        pairs = zip(self.parameters[:-1, 0].tolist(), self.half_widths[:-1], strict=True)
        return {
            name: (own - width, own + width)
            for name, (own, width) in zip(self.features.names, pairs, strict=True)
        }

    def margins(self, data: Any) -> FloatArray:
        """Return the linear score of each public row, and of each class."""
        return self.margins_of(self.features.of_public(data))

    def margins_of(self, encoded: npt.NDArray[Any]) -> FloatArray:
        """Return the linear score of encoded rows: a function of each row alone.

        A product of matrices may round a row differently beside other rows; this adds column by column.
        """
        total = np.tile(self.parameters[-1], (len(encoded), 1))
        for values, parameters in zip(encoded.T, self.parameters[:-1], strict=True):
            total += values.astype(np.float64)[:, None] * parameters
        return total

    def probabilities_of(self, encoded: npt.NDArray[Any]) -> FloatArray:
        """Return the probability of each class for encoded rows: a function of each row alone."""
        if self.objective == "squared":
            raise Unsupported("probabilities of a number", place="predict_proba")
        found = probabilities(self.margins_of(encoded))
        return np.concatenate([1 - found, found], axis=1) if self.objective == "logistic" else found

    def predict(self, data: Any) -> npt.NDArray[Any]:
        """Return the likeliest class of each public row, or the number that is predicted for it."""
        margins = self.margins(data)
        if self.objective == "squared":
            low, high = self.label.lower, self.label.upper
            return np.asarray((low + high) / 2 + np.clip(margins[:, 0], -1, 1) * (high - low) / 2)
        places = margins[:, 0] > 0 if self.objective == "logistic" else margins.argmax(axis=1)
        return np.array(self.classes)[places.astype(np.int64)]

    def score(self, data: Any, labels: Any = None) -> float:
        """Return the share of public rows whose class is predicted, or of a number the R squared.

        Rows without a listed label are left out, as they are when a model is fitted.
        """
        if self.objective != "squared":
            return LabelledModel.score(self, data, labels)
        truth = public_column(data, self.label.name) if labels is None else list(labels)
        exact, found = np.asarray(truth, dtype=np.float64), self.predict(data)
        spread = np.square(exact - exact.mean()).sum()
        return float(1 - np.square(exact - found).sum() / spread) if spread else 0.0

    def to_sklearn(self) -> Any:
        """Return a pipeline of scikit-learn that predicts the same about public tables."""
        try:
            from sklearn import linear_model
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import FunctionTransformer
        except ModuleNotFoundError:
            hints = ("install it: pip install scikit-learn",)
            raise Unsupported("a pipeline of scikit-learn needs scikit-learn", hints=hints) from None

        found: Any = linear_model.LinearRegression()
        coefficients, intercept = self.parameters[:-1].T, self.parameters[-1]
        if self.objective == "squared":
            half, middle = (
                (self.label.upper - self.label.lower) / 2,
                (self.label.upper + self.label.lower) / 2,
            )
            found.coef_, found.intercept_ = coefficients[0] * half, intercept[0] * half + middle
        else:
            found = linear_model.LogisticRegression()
            found.coef_, found.intercept_ = coefficients, intercept
            found.classes_ = np.array(self.classes)
        found.n_features_in_ = self.features.width
        return make_pipeline(FunctionTransformer(self.features.of_public), found)

    @property
    def said(self) -> str:
        """What the model is, in a line."""
        kinds = {"logistic": "logistic", "softmax": "multinomial logistic", "squared": "linear"}
        columns = len(self.features.columns)
        return (
            f"{kinds[self.objective]} regression of `{self.label.name}` on {columns} columns "
            f"({self.features.width} features), from about {self.units:,.0f} units"
        )

    def sections(self) -> Iterable[Section]:
        """Yield the parameters: one for each feature, and of the constant 1 at the end."""
        several = self.objective == "softmax"
        heads = tuple(map(str, self.classes)) if several else (f"of {self.label.name}",)
        names = (*self.features.names, "(constant)")
        rows = [
            (name, *(f"{one:.6g}" for one in own))
            for name, own in zip(names, self.parameters.tolist(), strict=True)
        ]
        yield Section("Parameters", PageTable(heads=("feature", *heads), rows=rows))
