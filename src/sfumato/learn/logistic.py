"""Logistic regression on private rows, in the convention of scikit-learn but for `fit`: it takes a table."""

from __future__ import annotations

from sfumato.errors import InvalidArgument
from sfumato.learn.base_estimator import ClassifierEstimator
from sfumato.learn.estimator import LinearEstimator
from sfumato.learn.features import MOST_FEATURES, ModelColumn
from sfumato.learn.models import LinearModel

__all__ = ["LogisticRegression"]


class LogisticRegression(ClassifierEstimator[LinearModel], LinearEstimator):
    """Logistic regression by noisy full-batch gradient descent; of more than two classes, multinomial.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import LogisticRegression
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000, "ill": [False, True] * 1000})
    >>> columns = {"age": sf.between(0, 100)}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> model = LogisticRegression(label="ill", epsilon=1).fit(db.table("people"))
    >>> model.predict({"age": [10, 90]}).tolist()
    [False, True]
    """

    def _objective(self, label: ModelColumn) -> str:
        if len(label.values) < 2:
            raise InvalidArgument(
                f"`{label.name}` has {len(label.values) or 'no'} listed value{'s' * (not label.values)}, and "
                "classes are two at least",
                place="label",
                hints=(f"declare its values: columns={{{label.name!r}: sf.one_of('no', 'yes')}}",),
            )
        if len(label.values) > MOST_FEATURES:  # the proof of `gradients` allows for the rounding of 8,192
            raise InvalidArgument(
                f"`{label.name}` has {len(label.values):,} values, and a model at most {MOST_FEATURES:,}",
                place="label",
            )
        return "logistic" if len(label.values) == 2 else "softmax"
