"""What all estimators have in common: parameters by name, as in scikit-learn, and what a fitted one says."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar

from sfumato.core.arguments import FloatArray, positive
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.plan.builder import Frame
from sfumato.session.answers import answered, not_charged_yet
from sfumato.session.price import Price, price_against
from sfumato.session.progress import Progress, shown

__all__ = ["Estimator", "OneLookEstimator", "Predictor", "moderate"]


def moderate(value: Any, name: str) -> float:
    """Return a setting of a training that is from 1e-6 to 1e6: floats hold all that is made of it.

    >>> moderate(10, "rate")
    10.0
    """
    exact = positive(value, name)
    if not Fraction(1, 10**6) <= exact <= 10**6:
        raise InvalidArgument(f"{name} is from 1e-6 to 1e6", place=name)
    return float(exact)


class Predictor(Protocol):
    """A fitted model, which may be published."""

    def predict(self, data: Any) -> Any: ...

    def predict_proba(self, data: Any) -> FloatArray: ...

    def score(self, data: Any, labels: Any = None) -> float: ...


_Model = TypeVar("_Model", bound=Predictor)


class Estimator(Generic[_Model]):
    """An estimator: what it was made with, each under its own name, and `release_` once it is fitted."""

    release_: _Model

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


class OneLookEstimator(Estimator[_Model], ABC):
    """An estimator that is fitted in one look at the data: it has a price, and `fit` takes a table."""

    @abstractmethod
    def priced(self, table: Frame[Any]) -> Any:
        """Return the noise and the cost of fitting. Free."""

    def price(self, table: Frame[Any]) -> Price:
        """Return what fitting would cost, against what is left of the budget. Free."""
        priced = self.priced(table)
        return price_against(priced.rows.database, priced, ())

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
        with not_charged_yet():
            priced = self.priced(table)
        with shown(progress) as tell:
            self.release_ = answered(priced.rows.database, priced, key=key, purpose=purpose, tell=tell)
        return self
