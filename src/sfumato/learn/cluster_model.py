"""Published clusters: centres and noisy sizes. All of it may be shown to anybody."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import Unsupported
from sfumato.learn.fitted_model import FittedModel
from sfumato.pages import PageTable, Section

__all__ = ["ClusterModel"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ClusterModel(FittedModel):
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

    kind: ClassVar[str] = "clusters"

    centres: FloatArray
    sizes: FloatArray
    deviation: float

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

    @property
    def said(self) -> str:
        """What the clusters are, in a line."""
        columns = ", ".join(one.name for one in self.features.columns)
        return f"{len(self.centres)} clusters by {columns}"

    def sections(self) -> Iterable[Section]:
        """Yield the centres and their sizes."""
        rows = [
            (str(place), f"{size:,.0f}", *(f"{one:.4g}" for one in centre.values()))
            for place, (size, centre) in enumerate(zip(self.sizes.tolist(), self.described(), strict=True))
        ]
        heads = ("cluster", "about how many units", *self.features.names)
        yield Section("Centres", PageTable(heads=heads, rows=rows))
