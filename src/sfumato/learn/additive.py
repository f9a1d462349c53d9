"""Boosted additive models on private rows: a curve for each column, improved in turn from noisy sums.

Each column is divided into cells: its listed values, or bins of its bounds. First all cells are counted, with
noise. Then, column after column and round after round, the residuals (label less probability) of the rows in
each cell are summed with noise, and the curve of the column moves by them, less where noise is large.

Theorem: a unit with n rows counts each of them floor(GRID / n) at most in whole numbers, so that it adds to
the cells of one column a vector whose absolute values sum to at most GRID; its Euclidean norm is at most
that, and that of the counts of all k columns at most sqrt(k) GRID. For residuals: they lie between -1 and 1,
depend on the unit's own rows and on curves alone, and are rounded toward zero. Sums are of whole numbers
below 2^53, exact in every order. So all steps cost at most the composed event that is charged, whatever the
curves are; the curves themselves are post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.backends import Exact, UnitRows
from sfumato.core.arguments import FloatArray, Number, budget_quantity, count
from sfumato.core.events import Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_allocation import least_noise
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.vector_noise import VectorNoise, event_of_vectors
from sfumato.errors import InvalidArgument
from sfumato.learn.additive_model import AdditiveModel, cells_of, number_of_cells
from sfumato.learn.base_estimator import CandidateEstimator, ClassifierEstimator
from sfumato.learn.descent import moderate
from sfumato.learn.features import Features, ModelColumn, declared_features, declared_label
from sfumato.learn.gradients import probabilities
from sfumato.learn.private_rows import PricedCandidate, TrainingRows, gaussian_budget, training_rows
from sfumato.pipeline import Look, PricedAnswer, Tell, refuse_huge, silent
from sfumato.plan.builder import Frame
from sfumato.release.noise import add_noise_in_steps

__all__ = ["AdditiveClassifier", "GRID", "PricedAdditive"]

GRID = 1 << 20
"""How many whole numbers a unit counts."""

_COUNTS_SHARE = Fraction(1, 10)
_CURVATURE = 0.25  # of the logistic loss, at most
_CAUTION = 2.0  # deviations of the noise that are added to what a cell's sum is divided by


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _State:
    """The curves, and the noisy counts of cells once they are known. Public."""

    effects: tuple[FloatArray, ...]
    counts: tuple[FloatArray, ...] = ()
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class PricedAdditive(PricedCandidate, PricedAnswer[AdditiveModel]):
    """An additive model whose cost is known: the noise of counts, and that of the sums of residuals."""

    answer_type = AdditiveModel

    rows: TrainingRows
    features: Features
    label: ModelColumn
    bins: int
    rounds: int
    rate: float
    laws: tuple[NoiseLaw, NoiseLaw]
    epsilon: Fraction
    delta: Fraction

    @cached_property
    def event(self) -> Event:
        """Counts and all sums, as one batch. Theorem: see the module."""
        return event_of_vectors(_vectors(len(self.features.columns), self.rounds), self.laws)

    @property
    def step_laws(self) -> tuple[NoiseLaw, ...]:
        """The noise of each step: of the counts, and of the sums of each column in each round."""
        return (self.laws[0], *[self.laws[1]] * (self.rounds * len(self.features.columns)))

    @property
    def start(self) -> _State:
        """The state before the first step: all curves are 0."""
        return _State(
            effects=tuple(np.zeros(number_of_cells(one, self.bins)) for one in self.features.columns)
        )

    def asked(self) -> dict[str, Any]:
        """Return what is asked and what it costs."""
        return {
            **super().asked(),
            "features": self.features,
            "label": self.label,
            "settings": [self.bins, self.rounds, self.rate],
        }

    def computed(self, look: Look) -> AdditiveModel:
        """Return the model, without its receipt. It has to be paid for."""
        return self.trained(look.backend.training_rows(self.rows.relation), look.tell)

    def trained(self, exact: Exact[UnitRows], tell: Tell = silent) -> AdditiveModel:
        """Return the model of rows that were read already. They have to be paid for."""
        vectors = partial(self.vectors, tell=tell)
        state = add_noise_in_steps(exact, vectors, self.update, self.start, self.step_laws)
        return AdditiveModel(
            features=self.features,
            label=self.label,
            bins=self.bins,
            effects=state.effects,
            cost=self.cost_record(),
            notes=self.notes(),
        )

    @property
    def columns(self) -> tuple[ModelColumn, ...]:
        """What is read of each row, beside the label."""
        return self.features.columns

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the model should know."""
        return (
            "a unit counts once: each of its rows with a weight of one over their number",
            f"rows without a listed value of `{self.label.name}` are left out",
        )

    @property
    def described(self) -> str:
        """What tells it from another candidate of a choice."""
        columns = ", ".join(one.name for one in self.columns)
        return f"additive: bins {self.bins}, rounds {self.rounds}, rate {self.rate:g}; on {columns}"

    def vectors(self, rows: UnitRows, tell: Tell = silent) -> Callable[[_State], npt.NDArray[np.int64]]:
        """Return the function that gives the exact integers of each step: private."""
        cells = cells_of(self.features, self.features.encoded(rows.columns), self.bins)
        labels = rows.columns[self.label.name]
        shares = np.repeat(GRID / rows.sizes, rows.sizes)

        def vector(state: _State) -> npt.NDArray[np.int64]:
            if not state.counts:
                pairs = zip(cells, state.effects, strict=True)
                return np.concatenate([_summed(own, np.trunc(shares), len(curve)) for own, curve in pairs])
            at = (state.step - 1) % len(cells)
            if at == 0:
                tell(f"round {(state.step - 1) // len(cells) + 1} of {self.rounds}")
            total = np.zeros(len(labels))
            for own, curve in zip(cells, state.effects, strict=True):
                total += curve[own]
            residuals = labels - probabilities(total[:, None])[:, 0]
            return _summed(cells[at], np.trunc(residuals * shares), len(state.effects[at]))

        return vector

    def update(self, state: _State, noisy: npt.NDArray[Any]) -> _State:
        """Return the next state, from noisy integers alone."""
        found = noisy.astype(np.float64) / GRID
        if not state.counts:
            ends = np.cumsum([len(one) for one in state.effects])[:-1]
            counts = tuple(np.maximum(one, 0.0) for one in np.split(found, ends))
            return replace(state, counts=counts, step=1)
        at = (state.step - 1) % len(state.effects)
        weight = _CURVATURE * state.counts[at] + _CAUTION * self.laws[1].deviation / GRID + 1.0
        moved = np.clip(state.effects[at] + self.rate * found / weight, -20.0, 20.0)
        effects = (*state.effects[:at], moved, *state.effects[at + 1 :])
        return replace(state, effects=effects, step=state.step + 1)


def _summed(cells: npt.NDArray[np.int64], values: FloatArray, number: int) -> npt.NDArray[np.int64]:
    """Return the sums of whole numbers by cell."""
    return np.bincount(cells, weights=values, minlength=number).astype(np.int64)


def _vectors(columns: int, rounds: int) -> tuple[VectorNoise, VectorNoise]:
    """Return what gets noise: the counts of all columns, and the sums of one column as often as there are."""
    counts = VectorNoise(l2_squared=columns * GRID**2)
    sums = VectorNoise(l2_squared=GRID**2, times=rounds * columns)
    return counts.with_share(_COUNTS_SHARE), sums.with_share(1 - _COUNTS_SHARE)


class AdditiveClassifier(ClassifierEstimator[AdditiveModel], CandidateEstimator[AdditiveModel]):
    """A boosted additive model of a label with two values: a curve for each column, which can be read.

    Numbers are divided into `bins` of their declared bounds. In each of `rounds` every curve moves once, by
    `rate`. With much budget or many people it learns what a linear model cannot; with little, its many cells
    have more noise.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import AdditiveClassifier
    >>> people = pa.table({"who": range(3000), "age": [20, 50, 80] * 1000, "ill": [True, False, True] * 1000})
    >>> columns = {"age": sf.between(0, 100)}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> model = AdditiveClassifier(label="ill", epsilon=1).fit(db.table("people"))
    >>> model.predict({"age": [20, 50, 80]}).tolist()
    [True, False, True]
    """

    def __init__(
        self,
        *,
        label: str,
        epsilon: Number | None = None,
        features: Sequence[str] | None = None,
        bins: int = 16,
        rounds: int = 10,
        rate: float = 0.3,
    ) -> None:
        self.label = label
        self.epsilon = epsilon
        self.features = features
        self.bins = bins
        self.rounds = rounds
        self.rate = rate

    def priced(self, table: Frame[Any], *, share: Fraction = Fraction(1)) -> PricedAdditive:
        """Return the noise and the cost of a training, of which it gets a `share`. Free."""
        if self.epsilon is None:
            raise InvalidArgument(
                "it is not said what this model may cost", place="epsilon", hints=("give epsilon=1",)
            )
        epsilon, rounds = budget_quantity(self.epsilon, "epsilon"), count(self.rounds, "rounds", most=10_000)
        refuse_huge(epsilon)
        label = declared_label(table, self.label)
        if len(label.values) != 2:
            raise InvalidArgument(
                f"`{label.name}` does not have two listed values",
                place="label",
                hints=("LogisticRegression takes any number of values, LinearRegression numbers",),
            )
        features = declared_features(table, self.features, but=(self.label,))
        rows = training_rows(table, features.columns, labels=(label,))
        budget = rows.database.terms
        gaussian_budget(budget, "an additive model")
        vectors = _vectors(len(features.columns), rounds)
        counts, sums = least_noise(GaussianNoise, vectors, budget, budget.allowance(epsilon) * share)
        return PricedAdditive(
            rows=rows,
            features=features,
            label=label,
            bins=count(self.bins, "bins", least=2, most=10_000),
            rounds=rounds,
            rate=moderate(self.rate, "rate"),
            laws=(counts, sums),
            epsilon=epsilon,
            delta=budget.delta_loss,
        )
