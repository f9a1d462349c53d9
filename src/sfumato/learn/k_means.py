"""k-means on private rows: rounds of noisy counts and sums of those nearest to each centre, for one charge.

In each round every row is given to its nearest centre; the number of units there, and the sums of their
features, get noise, and the centre moves to their ratio. A centre whose count is within the noise starts anew
beside one of the largest. Features are not scaled by the data: a declared range is the unit of its column.

Theorem: a round is a `gradients.clipped_sum`. The margins of a row, x c - |c|^2 / 2 for each centre c, are
largest for the nearest one; the residual is 1 for that centre and 0 for the others; the constant feature
counts. A row has a norm of at most sqrt(columns + 1), which is the clip, so that nothing is clipped. So one
unit moves the integers of a round by at most SENSITIVITY, whatever the centres are, and all rounds cost the
repeated event that is charged. Where centres go is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.expected_error import ExpectedError
from sfumato.backends import UnitRows
from sfumato.core.arguments import FloatArray, Number, budget_quantity, count
from sfumato.core.events import Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_allocation import least_noise
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.uniform import uniform_below
from sfumato.core.vector_noise import VectorNoise
from sfumato.errors import InvalidArgument
from sfumato.learn.base_estimator import Estimator
from sfumato.learn.cluster_model import ClusterModel
from sfumato.learn.features import Features, declared_features
from sfumato.learn.gradients import SENSITIVITY, STEPS, EncodedRows, clipped_sum
from sfumato.learn.private_rows import PricedRows, TrainingRows, gaussian_budget, training_rows
from sfumato.pipeline import Look, PricedAnswer, Tell, refuse_huge, silent
from sfumato.plan.builder import Frame
from sfumato.release.noise import add_noise_in_steps

__all__ = ["KMeans", "PricedClusters", "nearest"]

_BESIDE = 0.1  # how far in each feature a centre that starts anew is from another
_VISIBLE = 3.0  # deviations of the noise that a count has to pass


def nearest(margins: FloatArray, labels: FloatArray) -> FloatArray:
    """Return 1 for the centre with the largest margin of each row, and 0 for the others."""
    return np.asarray(margins.argmax(axis=1)[:, None] == np.arange(margins.shape[1]), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _State:
    """Where the centres are, and the noisy counts of the last round. Public."""

    centres: FloatArray
    sizes: FloatArray
    round: int = 0


@dataclass(frozen=True, kw_only=True)
class PricedClusters(PricedRows, PricedAnswer[ClusterModel]):
    """Clusters whose cost is known: the noise of each round."""

    answer_type = ClusterModel

    rows: TrainingRows
    features: Features
    clusters: int
    rounds: int
    law: NoiseLaw
    epsilon: Fraction
    delta: Fraction

    @cached_property
    def event(self) -> Event:
        """All rounds. Theorem: see the module."""
        return _vectors(self.rounds).event(self.law)

    @property
    def clip(self) -> float:
        """The largest norm of a row, in its features' own scale."""
        return math.sqrt(len(self.features.columns) + 1)

    @property
    def deviation(self) -> float:
        """The deviation of the noise of a count of units."""
        return self.law.deviation * self.clip / SENSITIVITY

    def asked(self) -> dict[str, Any]:
        """Return what is asked and what it costs."""
        return {
            **super().asked(),
            "features": self.features,
            "clusters": self.clusters,
            "rounds": self.rounds,
        }

    def computed(self, look: Look) -> ClusterModel:
        """Return the clusters, without their receipt. They have to be paid for."""
        exact = look.backend.training_rows(self.rows.relation)
        start = _State(centres=self._offsets(self.clusters), sizes=np.zeros(self.clusters))
        vectors = partial(self.vectors, tell=look.tell)
        state = add_noise_in_steps(exact, vectors, self.update, start, [self.law] * self.rounds)
        return ClusterModel(
            features=self.features,
            centres=state.centres,
            sizes=state.sizes,
            deviation=self.deviation,
            cost=self.cost_record(),
            notes=("a unit counts once: each of its rows with a weight of one over their number",),
        )

    def vectors(self, rows: UnitRows, tell: Tell = silent) -> Callable[[_State], npt.NDArray[Any]]:
        """Return the function that gives the exact integers of each round: private."""
        steps = np.rint(self.features.encoded(rows.columns).astype(np.float64) * STEPS).astype(np.int16)
        encoded = EncodedRows.of(steps, np.zeros(len(steps)), rows.sizes)

        def vector(state: _State) -> npt.NDArray[Any]:
            tell(f"round {state.round + 1} of {self.rounds}")
            halves = np.square(state.centres).sum(axis=1) / -2
            return clipped_sum(encoded, np.vstack([state.centres.T, halves]), nearest, self.clip)

        return vector

    def update(self, state: _State, noisy: npt.NDArray[Any]) -> _State:
        """Return where the centres move, from noisy integers alone."""
        sums = noisy.astype(np.float64) * (self.clip / SENSITIVITY)
        sizes, centres = sums[-1], state.centres.copy()
        seen = sizes > _VISIBLE * self.deviation
        centres[seen] = np.clip((sums[:-1, seen] / sizes[seen]).T, -1.0, 1.0)
        lost = np.flatnonzero(~seen)
        if state.round + 1 < self.rounds and seen.any() and len(lost):
            largest = np.argsort(-np.where(seen, sizes, -np.inf))[: int(seen.sum())]
            beside = centres[largest[np.arange(len(lost)) % len(largest)]]
            centres[lost] = np.clip(beside + self._offsets(len(lost)), -1.0, 1.0)
        return _State(centres=centres, sizes=sizes, round=state.round + 1)

    def _offsets(self, number: int) -> FloatArray:
        """Return random corners of a small cube around 0: how centres are set apart."""
        signs = uniform_below(2, size=number * self.features.width).reshape(number, self.features.width)
        return np.asarray((2 * signs - 1) * _BESIDE, dtype=np.float64)


def _vectors(rounds: int) -> VectorNoise:
    """Return what gets noise: counts and sums, once a round."""
    return VectorNoise(l2_squared=SENSITIVITY**2, times=rounds)


class KMeans(Estimator[ClusterModel]):
    """k-means by rounds of noisy counts and sums.

    `features` are names of columns; without, all whose bounds or values are declared. More `rounds` have more
    noise each: they help where people are many and columns few.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import KMeans
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000})
    >>> columns = {"age": sf.between(0, 100)}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> clusters = KMeans(clusters=2, epsilon=1).fit(db.table("people"))
    >>> len(set(clusters.predict({"age": [20, 70]}).tolist()))
    2
    """

    def __init__(
        self,
        *,
        clusters: int,
        epsilon: Number | None = None,
        features: Sequence[str] | None = None,
        rounds: int = 6,
    ) -> None:
        self.clusters = clusters
        self.epsilon = epsilon
        self.features = features
        self.rounds = rounds

    def priced(self, table: Frame[Any]) -> PricedClusters:
        """Return the noise and the cost. Free."""
        if self.epsilon is None:
            raise InvalidArgument(
                "it is not said what these clusters may cost", place="epsilon", hints=("give epsilon=1",)
            )
        epsilon, rounds = budget_quantity(self.epsilon, "epsilon"), count(self.rounds, "rounds", most=1_000)
        refuse_huge(epsilon)
        features = declared_features(table, self.features, but=())
        rows = training_rows(table, features.columns)
        budget = rows.database.terms
        gaussian_budget(budget, "k-means")
        [law] = least_noise(GaussianNoise, [_vectors(rounds)], budget, budget.allowance(epsilon))
        return PricedClusters(
            rows=rows,
            features=features,
            clusters=count(self.clusters, "clusters", least=2, most=1_000),
            rounds=rounds,
            law=law,
            epsilon=epsilon,
            delta=budget.delta_loss,
        )

    def expected_errors(self, priced: PricedClusters) -> tuple[ExpectedError, ...]:
        """Return what errors of the clusters are known beforehand: that of the number of units in each."""
        return (ExpectedError.within("size of a cluster", 1.96 * priced.deviation),)

    @property
    def cluster_centers_(self) -> FloatArray:
        """The centres: a row for each cluster, a column for each feature, from -1 to 1."""
        return np.array(self._fitted().centres)
