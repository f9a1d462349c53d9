"""What linear estimators have in common: what they are made with, and their price."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arguments import FloatArray, Number, budget_quantity
from sfumato.errors import InvalidArgument
from sfumato.learn.base_estimator import CandidateEstimator
from sfumato.learn.descent import Descent
from sfumato.learn.features import Features, ModelColumn, declared_features, declared_label
from sfumato.learn.models import LinearModel
from sfumato.learn.private_rows import training_rows
from sfumato.learn.reweighting import Weights, declared_weights
from sfumato.learn.training import PricedTraining, plan_training
from sfumato.plan.builder import Frame

__all__ = ["LinearEstimator"]


class LinearEstimator(CandidateEstimator[LinearModel]):
    """A linear model that can be fitted; `release_` is the fitted one, which may be published.

    `features` are names of columns; without, all whose bounds or values are declared. `steps`, `clip` and
    `rate` are of the descent (`Descent`); what is None is chosen from public facts. `weights` say how much
    rows of declared values count against others: {"sex": {"f": 3}}.
    """

    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        *,
        label: str,
        epsilon: Number | None = None,
        features: Sequence[str] | None = None,
        steps: int | None = None,
        clip: float | None = None,
        rate: float | None = None,
        momentum: float | None = None,
        shrinkage: float | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.label = label
        self.epsilon = epsilon
        self.features = features
        self.steps = steps
        self.clip = clip
        self.rate = rate
        self.momentum = momentum
        self.shrinkage = shrinkage
        self.weights = weights

    @abstractmethod
    def _objective(self, label: ModelColumn) -> str:
        """Return what is minimised, or refuse the label."""

    # -- fitting ------------------------------------------------------------------------------

    def priced(self, table: Frame[Any], *, share: Fraction = Fraction(1)) -> PricedTraining:
        """Return the noise and the cost of a training, of which it gets a `share`. Free."""
        if self.epsilon is None:
            raise InvalidArgument(
                "it is not said what this model may cost", place="epsilon", hints=("give epsilon=1",)
            )
        label = declared_label(table, self.label)
        objective = self._objective(label)
        features = declared_features(table, self.features, but=(self.label,))
        weights = declared_weights(table, self.weights)
        read = features.columns if weights is None else (*features.columns, *weights.columns)
        rows = training_rows(table, read, labels=(label,))
        return plan_training(
            rows,
            features=features,
            label=label,
            objective=objective,
            descent=self._descent(features),
            epsilon=budget_quantity(self.epsilon, "epsilon"),
            share=share,
            weights=weights,
        )

    def _descent(self, features: Features) -> Descent | None:
        """Return the descent, None for least squares from second moments."""
        given = {name: getattr(self, name) for name in ("steps", "clip", "rate", "momentum", "shrinkage")}
        return Descent(**self._defaults | {name: one for name, one in given.items() if one is not None})

    # -- what was fitted ----------------------------------------------------------------------

    @property
    def coef_(self) -> FloatArray:
        """The coefficients: a row for each class (for the second of two), a column for each feature."""
        return np.ascontiguousarray(self._fitted().parameters[:-1].T)

    @property
    def intercept_(self) -> FloatArray:
        """The parameter of the constant 1, for each class."""
        return np.array(self._fitted().parameters[-1])
