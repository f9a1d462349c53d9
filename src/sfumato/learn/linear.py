"""Linear regression on private rows: a number, predicted from the other columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sfumato.core.arguments import Number
from sfumato.errors import InvalidArgument
from sfumato.learn.descent import Descent
from sfumato.learn.estimator import LinearEstimator
from sfumato.learn.features import Features, ModelColumn
from sfumato.learn.reweighting import Weights

__all__ = ["LinearRegression"]

_FEW = 8  # features: for more, descent errs less


class LinearRegression(LinearEstimator):
    """Linear regression: by least squares from noisy second moments, or by noisy gradient descent.

    `method` is "moments", which tells intervals of coefficients and is better for few features, or "descent";
    without, moments are for up to 8 features, unless something is said of the descent.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import LinearRegression
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000, "cost": [200, 700] * 1000})
    >>> columns = {"age": sf.between(0, 100), "cost": sf.between(0, 1000)}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> model = LinearRegression(label="cost", epsilon=1).fit(db.table("people"))
    >>> bool(350 < model.predict({"age": [45]})[0] < 550)
    True
    """

    _defaults: ClassVar[dict[str, Any]] = {"clip": 2.0, "rate": 2.5, "shrinkage": None}

    def __init__(
        self,
        *,
        label: str,
        epsilon: Number | None = None,
        features: Sequence[str] | None = None,
        method: str | None = None,
        steps: int | None = None,
        clip: float | None = None,
        rate: float | None = None,
        momentum: float | None = None,
        shrinkage: float | None = None,
        weights: Weights | None = None,
    ) -> None:
        super().__init__(
            label=label,
            epsilon=epsilon,
            features=features,
            steps=steps,
            clip=clip,
            rate=rate,
            momentum=momentum,
            shrinkage=shrinkage,
            weights=weights,
        )
        self.method = method

    def _descent(self, features: Features) -> Descent | None:
        if self.method not in (None, "descent", "moments"):
            raise InvalidArgument("a method is 'moments' or 'descent'", place="method")
        own = (self.steps, self.clip, self.rate, self.momentum, self.shrinkage)
        said = any(one is not None for one in own)
        if self.method == "moments" and said:
            raise InvalidArgument("steps, clip, rate, momentum and shrinkage are of descent", place="method")
        if self.method == "moments" or (self.method is None and not said and features.width <= _FEW):
            return None
        return super()._descent(features)

    def _objective(self, label: ModelColumn) -> str:
        if label.values or label.lower == label.upper:
            raise InvalidArgument(
                f"`{label.name}` is not a number between two different bounds",
                place="label",
                hints=("of listed values, use LogisticRegression",),
            )
        return "squared"
