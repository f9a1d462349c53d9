"""Training a linear model on private rows, on the one path: one reservation, one look, many noisy sums.

The event is one noisy vector of moments (`moments`), and either T noisy sums of clipped gradients
(`gradients`), or one noisy matrix of second moments (`least_squares`), each chosen after the noisy answers
before it. Theorem (adaptive composition): whatever these were, one unit moves the moments by at most
`moment_norm_squared`, each gradient by at most SENSITIVITY, and the matrix by at most what
SECOND_MOMENTS_SQUARED says, so that all together cost at most the composed event that is charged. What is
made of the noisy integers is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.backends import Exact, UnitRows
from sfumato.core.events import Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_allocation import least_noise
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.vector_noise import VectorNoise, event_of_vectors
from sfumato.learn.descent import Descent, DescentState
from sfumato.learn.features import Features, ModelColumn
from sfumato.learn.gradients import (
    SENSITIVITY,
    EncodedRows,
    Residuals,
    clipped_sum,
    logistic_residuals,
    softmax_residuals,
    squared_residuals,
)
from sfumato.learn.least_squares import SECOND_MOMENTS_SQUARED, Solution, second_moments, solved
from sfumato.learn.models import LinearModel
from sfumato.learn.moments import Scaling, moment_norm_squared, moment_sums
from sfumato.learn.private_rows import PricedCandidate, TrainingRows, gaussian_budget
from sfumato.learn.reweighting import Reweighting
from sfumato.pipeline import Look, PricedAnswer, Tell, refuse_huge, silent
from sfumato.release.noise import add_noise_in_steps

if TYPE_CHECKING:
    pass

__all__ = [
    "PricedTraining",
    "TrainingState",
    "plan_training",
]

_MOMENTS_SHARE = Fraction(1, 20)  # of the cost; more makes scales no better than the clip needs
_TYPICAL = 2.0  # times the mean of squared norms: rows beyond count less in second moments


_OBJECTIVES: dict[str, Residuals] = {
    "logistic": logistic_residuals,
    "softmax": softmax_residuals,
    "squared": squared_residuals,
}


@dataclass(frozen=True, kw_only=True)
class PricedTraining(PricedCandidate, PricedAnswer[LinearModel]):
    """A training whose cost is known: the noise of the moments, and that of each gradient."""

    answer_type = LinearModel

    rows: TrainingRows
    features: Features
    label: ModelColumn
    objective: str  # logistic, softmax or squared
    descent: Descent | None  # None: least squares from second moments
    laws: tuple[NoiseLaw, NoiseLaw]
    epsilon: Fraction
    delta: Fraction
    weights: Reweighting | None = None

    @property
    def measured(self) -> Features:
        """The columns whose moments are measured: those of features, and a label that is a number."""
        label = (self.label,) if self.objective == "squared" else ()
        return Features((*self.features.columns, *label))

    @cached_property
    def event(self) -> Event:
        """Moments and all gradients, as one batch. Theorem: see the module."""
        return event_of_vectors(_vectors(self.measured, self.descent), self.laws)

    def asked(self) -> dict[str, Any]:
        """Return what is asked and what it costs."""
        return {
            **super().asked(),
            "features": self.features,
            "label": self.label,
            "objective": self.objective,
            "descent": self.descent,
            "weights": self.weights,
        }

    def computed(self, look: Look) -> LinearModel:
        """Return the model, without its receipt. It has to be paid for."""
        return self.trained(look.backend.training_rows(self.rows.relation), look.tell)

    @property
    def step_laws(self) -> tuple[NoiseLaw, ...]:
        """The noise of each step: of the moments, and of each gradient."""
        return (self.laws[0], *[self.laws[1]] * (1 if self.descent is None else self.descent.steps))

    @property
    def start(self) -> TrainingState:
        """The state before the first step."""
        return TrainingState()

    def trained(self, exact: Exact[UnitRows], tell: Tell = silent) -> LinearModel:
        """Return the model of rows that were read already. They have to be paid for."""
        vectors = partial(self.vectors, tell=tell)
        state = add_noise_in_steps(exact, vectors, self.update, self.start, self.step_laws)
        assert state.scaling is not None
        if state.solution is not None:
            scaled, half_widths = state.solution.parameters, state.solution.half_widths
            half_widths = state.scaling.unscaled_widths(half_widths) * state.label_scale
        else:
            assert state.descent is not None
            scaled, half_widths = state.descent.mean, None
        parameters = state.scaling.unscaled(scaled) * state.label_scale
        parameters[-1] += state.label_centre
        return LinearModel(
            half_widths=None if half_widths is None else tuple(half_widths.tolist()),
            objective=self.objective,
            features=self.features,
            label=self.label,
            parameters=parameters,
            units=state.scaling.units,
            units_deviation=state.scaling.deviation,
            cost=self.cost_record(),
            notes=self.notes(),
        )

    def vectors(self, rows: UnitRows, tell: Tell = silent) -> Callable[[TrainingState], npt.NDArray[Any]]:
        """Return the function that gives the exact integers of each step: private."""
        encoded: list[EncodedRows] = []
        weights = None if self.weights is None else self.weights.of_rows(rows.columns)

        def vector(state: TrainingState) -> npt.NDArray[Any]:
            if state.scaling is None:
                return moment_sums(self.measured, rows.columns, rows.sizes)
            if not encoded:
                scaled = state.scaling.scaled(self.features, rows.columns)
                encoded.append(EncodedRows.of(scaled, self._labels(rows, state), rows.sizes))
            if self.descent is None or state.descent is None:
                return second_moments(encoded[0], _TYPICAL * (state.scaling.spread + 1), weights)
            point = state.descent.ahead(self.descent.momentum)
            tell(f"step {state.descent.step + 1:,} of {self.descent.steps:,}")
            return clipped_sum(encoded[0], point, _OBJECTIVES[self.objective], self.descent.clip, weights)

        return vector

    def update(self, state: TrainingState, noisy: npt.NDArray[Any]) -> TrainingState:
        """Return the next state, from noisy integers alone."""
        width = self.features.width + 1
        if state.scaling is None:
            scaling = Scaling.of(self.measured, noisy, math.sqrt(self.laws[0].variance))
            classes = len(self.label.values) if self.objective == "softmax" else 1
            start = None if self.descent is None else self.descent.start(width, classes)
            if self.objective != "squared":
                return TrainingState(scaling=scaling, descent=start)
            scaling, centre, scale = scaling.parted()
            return TrainingState(scaling=scaling, descent=start, label_centre=centre, label_scale=scale)
        deviation = math.sqrt(self.laws[1].variance)
        if self.descent is None or state.descent is None:
            return replace(state, solution=solved(noisy, width, deviation))
        return replace(state, descent=self.descent.update(state.descent, noisy, state.scaling, deviation))

    def _labels(self, rows: UnitRows, state: TrainingState) -> npt.NDArray[np.float64]:
        read = rows.columns[self.label.name]
        if self.objective != "squared":
            return read
        return (self.label.encoded(read)[:, 0].astype(np.float64) - state.label_centre) / state.label_scale

    @property
    def columns(self) -> tuple[ModelColumn, ...]:
        """What is read of each row, beside the label."""
        return (*self.features.columns, *(() if self.weights is None else self.weights.columns))

    @property
    def described(self) -> str:
        """What tells it from another candidate of a choice."""
        columns = ", ".join(one.name for one in self.features.columns)
        if self.weights is not None:
            columns += f"; weighted by {', '.join(one.name for one in self.weights.columns)}"
        if self.descent is None:
            return f"least squares on {columns}"
        return f"{self.descent}; on {columns}"

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the model should know."""
        return (
            "a unit counts once: each of its rows with a weight of one over their number",
            f"rows without a listed value of `{self.label.name}` are left out"
            if self.label.values
            else f"rows without a value of `{self.label.name}` are left out",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingState:
    """Where a training is: before its moments are known, and then at a step of its descent. Public."""

    scaling: Scaling | None = None
    descent: DescentState | None = None
    solution: Solution | None = None
    label_centre: float = 0.0
    label_scale: float = 1.0


def _vectors(features: Features, descent: Descent | None) -> tuple[VectorNoise, VectorNoise]:
    """Return what gets noise: moments, and gradients as often as there are steps, or the second moments."""
    moments = VectorNoise(l2_squared=moment_norm_squared(features))
    if descent is None:
        rest = VectorNoise(l2_squared=SECOND_MOMENTS_SQUARED)
    else:
        rest = VectorNoise(l2_squared=SENSITIVITY**2, times=descent.steps)
    return moments.with_share(_MOMENTS_SHARE), rest.with_share(1 - _MOMENTS_SHARE)


def plan_training(
    rows: TrainingRows,
    *,
    features: Features,
    label: ModelColumn,
    objective: str,
    descent: Descent | None,
    epsilon: Fraction,
    share: Fraction = Fraction(1),
    weights: Reweighting | None = None,
) -> PricedTraining:
    """Price a training: free, and a function of the rows asked for, the catalog and the budget alone.

    The training gets a `share` of the cost of `epsilon`, in what the budget adds up.
    """
    budget = rows.database.terms
    gaussian_budget(budget, "training")
    refuse_huge(epsilon)
    none = GaussianNoise(Fraction(1))
    priced = PricedTraining(
        rows=rows,
        features=features,
        label=label,
        objective=objective,
        descent=descent,
        laws=(none, none),
        epsilon=epsilon,
        delta=budget.delta_loss,
        weights=weights,
    )
    vectors = _vectors(priced.measured, descent)
    moments, gradients = least_noise(GaussianNoise, vectors, budget, budget.allowance(epsilon) * share)
    return replace(priced, laws=(moments, gradients))
