"""Linear regression on private rows: a number, predicted from the other columns."""

from __future__ import annotations

from typing import ClassVar

from sfumato.errors import InvalidArgument
from sfumato.learn.estimator import LinearEstimator
from sfumato.learn.features import ModelColumn

__all__ = ["LinearRegression"]


class LinearRegression(LinearEstimator):
    """Linear regression by noisy full-batch gradient descent on the squared error.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import LinearRegression
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000, "cost": [200, 700] * 1000})
    >>> columns = {"age": sf.between(0, 100), "cost": sf.between(0, 1000)}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> model = LinearRegression(label="cost", epsilon=1).fit(db.table("people"))
    >>> 350 < model.predict({"age": [45]})[0] < 550
    True
    """

    _defaults: ClassVar[dict[str, float]] = {"clip": 2.0, "rate": 2.5}

    def _objective(self, label: ModelColumn) -> str:
        if label.values or label.lower == label.upper:
            raise InvalidArgument(
                f"`{label.name}` is not a number between two different bounds",
                place="label",
                hints=("of listed values, use LogisticRegression",),
            )
        return "squared"
