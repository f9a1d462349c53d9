"""Published clusters: centres and noisy sizes. All of it may be shown to anybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn.features import Features, ModelColumn
from sfumato.release.storage import decode, dump, encode, load

__all__ = ["ClusterModel"]

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterModel:
    """Clusters of a private table: `centres`, a row for each, in the features' own scale from -1 to 1.

    `sizes` are about how many units each had before the centres moved last, with noise of `deviation`.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import KMeans
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000})
    >>> db = sf.connect(people, name="people", unit="who", columns={"age": sf.between(0, 100)},
    ...                 budget=sf.Budget(epsilon=3, delta=1e-6))
    >>> found = KMeans(clusters=2, epsilon=1).fit(db.table("people")).release_
    >>> [10 < one["age"] < 80 for one in found.described()]
    [True, True]
    """

    features: Features
    centres: FloatArray
    sizes: FloatArray
    deviation: float
    cost: Mapping[str, Any] = field(default_factory=dict)
    receipt: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def described(self) -> list[dict[str, float]]:
        """Return each centre by the names of features: of numbers their own, of listed values shares."""
        return [dict(zip(self.features.names, self._own(centre), strict=True)) for centre in self.centres]

    def _own(self, centre: FloatArray) -> list[float]:
        found, place = [], 0
        for column in self.features.columns:
            for value in centre[place : place + len(column.names)].tolist():
                if not column.values:
                    found.append((column.lower + column.upper + value * (column.upper - column.lower)) / 2)
                else:
                    found.append((1 + value) / 2 if len(column.values) == 2 else value)
            place += len(column.names)
        return found

    def distances(self, data: Any) -> FloatArray:
        """Return the squared distance of each public row to each centre."""
        rows = self.features.of_public(data).astype(np.float64)
        return np.asarray(np.square(rows[:, None, :] - self.centres[None, :, :]).sum(axis=2))

    def predict(self, data: Any) -> npt.NDArray[np.int64]:
        """Return the number of the nearest centre for each public row."""
        return np.asarray(self.distances(data).argmin(axis=1))

    def predict_proba(self, data: Any) -> NoReturn:
        """Refuse: a row is in one cluster."""
        raise Unsupported("probabilities of clusters", place="predict_proba")

    def score(self, data: Any, labels: Any = None) -> float:
        """Return minus the mean squared distance of public rows to their nearest centre."""
        return -float(self.distances(data).min(axis=1).mean())

    def with_receipt(self, receipt: Mapping[str, Any]) -> ClusterModel:
        """Return these clusters with the receipt of their charge."""
        return replace(self, receipt=receipt)

    def to_json(self) -> str:
        """Return the one JSON text of these clusters; `from_json` gives them back, and they the same text."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain["features"] = tuple(one.plain() for one in self.features.columns)
        return dump({"clusters": _FORMAT, **encode(plain)})

    @staticmethod
    def from_json(text: str) -> ClusterModel:
        """Return the clusters that were stored as `text`."""
        record = load(text)
        if record.pop("clusters", None) != _FORMAT:
            raise Unsupported("stored clusters of another format", place="text")
        try:
            plain = decode(record)
            plain["features"] = Features(tuple(ModelColumn(**one) for one in plain["features"]))
            return ClusterModel(**plain)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            raise InvalidArgument("these stored clusters are damaged", place="text") from None

    def __repr__(self) -> str:
        epsilon = float(self.cost.get("epsilon", 0))
        columns = ", ".join(one.name for one in self.features.columns)
        return f"<{len(self.centres)} clusters by {columns}; epsilon {epsilon:.4g}>"
