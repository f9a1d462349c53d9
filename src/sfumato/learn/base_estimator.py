"""What all estimators have in common: parameters by name, as in scikit-learn, and what a fitted one says."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Generic, NoReturn, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.analysis.expected_error import ExpectedError
from sfumato.core.arguments import FloatArray, Number, budget_quantity
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn.fit_question import FitQuestion
from sfumato.learn.fitted_model import LabelledModel
from sfumato.learn.private_rows import PricedCandidate, database_of
from sfumato.plan.builder import Frame
from sfumato.session.price import Price
from sfumato.session.progress import Progress

__all__ = ["CandidateEstimator", "ClassifierEstimator", "Estimator", "Predictor"]


class Predictor(Protocol):
    """A fitted model, which is published."""

    def to_json(self) -> str: ...

    def with_receipt(self, receipt: Mapping[str, Any]) -> Self: ...

    def predict(self, data: Any) -> Any: ...

    def predict_proba(self, data: Any) -> FloatArray: ...

    def score(self, data: Any, labels: Any = None) -> float: ...


_Model = TypeVar("_Model", bound=Predictor)
_Classifier = TypeVar("_Classifier", bound=LabelledModel)


class Estimator(ABC, Generic[_Model]):
    """An estimator: what it was made with, each under its own name, and `release_` once it is fitted.

    It has scikit-learn's conventions, but that `fit` takes a table. What a fit costs is asked by `question`.
    """

    epsilon: Number | None
    release_: _Model

    _asked_as: ClassVar[type[FitQuestion[Any]]] = FitQuestion

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what the estimator was made with, by name."""
        return {
            name: getattr(self, name)
            for name in inspect.signature(type(self).__init__).parameters
            if name != "self"
        }

    def set_params(self, **parameters: Any) -> Self:
        """Change what the estimator was made with."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise InvalidArgument(
                    f"there is no parameter `{name}`", place=name, hints=(f"known: {', '.join(known)}",)
                )
            setattr(self, name, value)
        return self

    def at(self, epsilon: Number | None) -> Self:
        """Return an estimator of the same parameters at another epsilon, not fitted yet."""
        return type(self)(**{**self.get_params(), "epsilon": epsilon})

    def __repr__(self) -> str:
        known = inspect.signature(type(self).__init__).parameters
        given = {name: one for name, one in self.get_params().items() if one != known[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={one!r}' for name, one in given.items())})"

    def __sklearn_tags__(self) -> NoReturn:
        """Refuse scikit-learn's search and cross-validation, which ask for this before they fit anything."""
        raise Unsupported(
            "scikit-learn's search and cross-validation fit arrays again and again, and charge nothing",
            place="fit",
            hints=("sfumato.learn.select_model([..], db.table('people'), epsilon=1) is charged once",),
        )

    def _fitted(self) -> _Model:
        found: _Model | None = getattr(self, "release_", None)
        if found is None:
            raise InvalidArgument("this model is not fitted yet", place="fit", hints=("fit(db.table(..))",))
        return found

    def predict(self, data: Any) -> Any:
        """Return the likeliest class of each public row, or the number that is predicted for it."""
        return self._fitted().predict(data)

    def predict_proba(self, data: Any) -> FloatArray:
        """Return the probability of each class for each public row."""
        return self._fitted().predict_proba(data)

    def score(self, data: Any, labels: Any = None) -> float:
        """Return how well public rows are predicted: the share of right classes, or R squared."""
        return self._fitted().score(data, labels)

    # -- fitting ------------------------------------------------------------------------------

    @abstractmethod
    def priced(self, table: Frame[Any]) -> Any:
        """Return the noise and the cost of fitting. Free."""

    def expected_errors(self, priced: Any) -> tuple[ExpectedError, ...]:
        """Return what errors of the fitted model are known beforehand."""
        return ()

    def price_notes(self, priced: Any) -> tuple[str, ...]:
        """Return what else the price of a fit says."""
        return ()

    def question(self, table: Frame[Any]) -> FitQuestion[_Model]:
        """Return the fit as a question: it shows its price, explains it and gives advice. Free."""
        return self._asked_as(
            database=database_of(table),
            epsilon=None if self.epsilon is None else budget_quantity(self.epsilon, "epsilon"),
            estimator=self.at(self.epsilon),
            table=table,
        )

    def price(self, table: Frame[Any]) -> Price:
        """Return what fitting would cost, against what is left of the budget. Free."""
        return self.question(table).price()

    def fit(
        self,
        table: Frame[Any],
        y: None = None,
        *,
        key: str | None = None,
        purpose: str | None = None,
        progress: Progress = None,
    ) -> Self:
        """Spend: charge the budget once, and train. With a `key`, the same again gives the stored model."""
        self.release_ = self.question(table).release(key=key, purpose=purpose, progress=progress)
        return self


class CandidateEstimator(Estimator[_Model]):
    """An estimator that can be a candidate of a choice: each candidate gets a share of the cost."""

    @abstractmethod
    def priced(self, table: Frame[Any], *, share: Fraction = Fraction(1)) -> PricedCandidate:
        """Return the noise and the cost of a training that gets a `share` of the cost of epsilon. Free."""


class ClassifierEstimator(Estimator[_Classifier]):
    """An estimator that tells classes apart."""

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The values of the label, as an array."""
        return np.array(self._fitted().classes)
