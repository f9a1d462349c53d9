"""The price of choosing one of several models privately, and how it is done.

Each unit is in one of `folds`, by a coin of its own that is tossed for this choice alone. All candidates are
trained on the units outside the first fold, and judged on those inside: a unit scores the share of its rows
that a candidate predicts right (of numbers, one less the error as a part of the label's range), rounded down
to a grid. The exponential mechanism chooses by the sums of scores; the winner is the model that was trained,
and its score is published with noise. With `all_folds` each fold is held out once, scores are summed over all
folds, and the winner is trained once more, on all units.

Theorem (one fold): a unit that is added or removed changes the rows that candidates are trained on, or those
that they are judged on, and never both: which of the two is decided by its own coin, and no other unit's coin
depends on it. So whatever the coins are, the cost is that of all trainings, or that of choice and score,
whichever is larger (`Parallel`); and it is no larger for coins that are not known, since divergences are
quasi-convex.
Theorem (all folds): a unit in fold j is in the rows of every training but those without fold j: it is met by
folds - 1 trainings of each candidate, by one training of the winner, and its score counts once.
Theorem (scores): a unit adds to each sum a whole number from 0 to GRID, and to score and rest of the winner
two numbers of at least 0 whose sum is at most GRID, hence a vector of norm at most GRID. One unit more lowers
no sum: the choice is monotone (`core/selection`). A prediction depends on its own row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.cell_choice import CellChoice
from sfumato.backends import Exact, UnitRows
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, Event, Parallel, Repeated
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_allocation import least_noise, weight_of_share
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.uniform import uniform_below
from sfumato.core.vector_noise import VectorNoise
from sfumato.learn.additive_model import AdditiveModel
from sfumato.learn.models import LinearModel
from sfumato.learn.private_rows import PricedCandidate, PricedRows, TrainingRows
from sfumato.learn.selected_model import GRID, SelectedModel
from sfumato.pipeline import Look, PricedAnswer, Tell
from sfumato.release.noise import add_noise_in_steps, choose_by_score, hidden

__all__ = ["DividedRows", "PricedSelection", "score_sums", "scoring_laws"]

_Model = LinearModel | AdditiveModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DividedRows:
    """Private rows, and the fold of each unit."""

    rows: UnitRows
    folds: npt.NDArray[np.int64]

    def __repr__(self) -> str:
        return "<divided rows: hidden>"

    @staticmethod
    def of(rows: UnitRows, folds: int) -> DividedRows:
        """Toss a coin of `folds` sides for each unit."""
        return DividedRows(rows=rows, folds=uniform_below(folds, size=len(rows.sizes)))

    def outside(self, fold: int) -> UnitRows:
        """Return the rows of the units that are not in a fold."""
        return self.rows.of_units(self.folds != fold)

    def inside(self, fold: int) -> UnitRows:
        """Return the rows of the units in a fold."""
        return self.rows.of_units(self.folds == fold)


def score_sums(model: _Model, rows: UnitRows) -> npt.NDArray[np.int64]:
    """Return the sums of the scores of units, and of what they lack of the grid. Theorem: see the module."""
    if not len(rows.sizes):
        return np.zeros(2, dtype=np.int64)
    margins, labels = model.margins_of(model.features.encoded(rows.columns)), rows.columns[model.label.name]
    if model.objective == "squared":
        missed = np.abs(np.clip(margins[:, 0], -1.0, 1.0) - model.label.encoded(labels)[:, 0]) / 2
        each = np.trunc(np.clip(1.0 - missed, 0.0, 1.0) * GRID).astype(np.int64)
    else:
        found = margins[:, 0] > 0 if model.objective == "logistic" else margins.argmax(axis=1)
        each = (found == labels).astype(np.int64) * GRID
    starts = np.concatenate([[0], np.cumsum(rows.sizes[:-1])])
    units = np.add.reduceat(each, starts) // rows.sizes
    return np.array([units.sum(), (GRID - units).sum()], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class PricedSelection(PricedRows, PricedAnswer[SelectedModel]):
    """A choice among models whose cost is known."""

    answer_type = SelectedModel

    rows: TrainingRows
    trainings: tuple[PricedCandidate, ...]
    refits: tuple[PricedCandidate, ...]  # one of them is run, where all folds are held out
    folds: int
    laws: tuple[NoiseLaw, NoiseLaw]  # what the choice costs as much as, and the noise of the winner's score
    epsilon: Fraction
    delta: Fraction

    @cached_property
    def event(self) -> Event:
        """All trainings, choice and score, as one event. Theorems: see the module.

        Of the trainings of the winner one is run, after the choice was published: it costs what the most
        expensive of them does (`Parallel`, whose costs are the largest of its parts).
        """
        trainings = Composed(events=tuple(one.event for one in self.trainings))
        choice, score = _scoring()
        scoring = Composed(events=(choice.event(self.laws[0]), score.event(self.laws[1])))
        if not self.refits:
            return Parallel(events=(trainings, scoring))
        refit = Parallel(events=tuple(one.event for one in self.refits))
        return Composed(events=(Repeated(event=trainings, times=self.folds - 1), scoring, refit))

    @property
    def falls_short(self) -> float:
        """By how many units' scores the winner may fall short of the best candidate, at most in 19 of 20."""
        choice = _scoring()[0].choice(self.laws[0])
        return choice.mechanism.error(0.95, candidates=len(self.trainings)) / GRID

    def asked(self) -> dict[str, Any]:
        """Return what is asked, which trainings know of their rows, and what it costs."""
        return {
            "trainings": [one.fingerprint() for one in self.trainings],
            "folds": self.folds,
            "all_folds": bool(self.refits),
            "cost": self.cost_record(),
        }

    def computed(self, look: Look) -> SelectedModel:
        """Return the chosen model, without its receipt. It has to be paid for."""
        exact = look.backend.training_rows(self.rows.relation)
        divided = hidden(exact, partial(DividedRows.of, folds=self.folds))
        held_out = range(self.folds if self.refits else 1)
        fitted = [self._trained(divided, fold, look.tell) for fold in held_out]
        look.tell("choosing")
        mechanism = _scoring()[0].choice(self.laws[0]).mechanism
        winner = choose_by_score(divided, lambda rows: self.scores(fitted, rows)[:, 0], mechanism)
        nothing: npt.NDArray[Any] = np.zeros(0, dtype=np.int64)
        measured = add_noise_in_steps(
            divided,
            lambda rows: lambda state: self.scores(fitted, rows)[winner],
            lambda state, noisy: noisy,
            nothing,
            (self.laws[1],),
        )
        if self.refits:
            look.tell("training the winner")
        model = self.refits[winner].trained(exact) if self.refits else fitted[0][winner]
        return SelectedModel(
            winner=winner,
            candidates=tuple(one.described for one in self.trainings),
            model=replace(model, cost=self.cost_record()),
            measured=measured,
            law=self.laws[1],
            cost=self.cost_record(),
            notes=self._notes(),
        )

    def _trained(self, divided: Exact[DividedRows], fold: int, tell: Tell) -> list[_Model]:
        models: list[_Model] = []
        outside = hidden(divided, lambda rows: rows.outside(fold))
        for place, one in enumerate(self.trainings, 1):
            of_fold = f", without fold {fold + 1} of {self.folds}" if self.refits else ""
            tell(f"training candidate {place} of {len(self.trainings)}{of_fold}")
            models.append(one.trained(outside))
        return models

    def scores(self, fitted: Sequence[Sequence[_Model]], rows: DividedRows) -> npt.NDArray[np.int64]:
        """Return score and rest of each candidate, over units of the folds that it was trained without."""
        total = np.zeros((len(self.trainings), 2), dtype=np.int64)
        for fold, models in enumerate(fitted):
            inside = rows.inside(fold)
            total += np.array([score_sums(model, inside) for model in models])
        return total

    def _notes(self) -> tuple[str, ...]:
        held = "each in its turn, and then on all units" if self.refits else "one of them, which judges"
        return (
            f"{len(self.trainings)} candidates were trained without one of {self.folds} folds, {held}",
            "the score is that of the units held out; its interval covers the noise alone",
            *self.trainings[0].notes(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WinnerChoice:
    """The choice of the winner, which costs about what noise on one number would: see `analysis.cell_choice`.

    One unit raises the sum of each candidate's scores by `sensitivity` at most, and lowers none.
    """

    sensitivity: int
    importance: Fraction = Fraction(1)

    def choice(self, law: NoiseLaw) -> CellChoice:
        """Return the choice that costs about what the noise would."""
        return CellChoice(epsilon=law.choice(self.sensitivity, Fraction(1)), sensitivity=self.sensitivity)

    def event(self, law: NoiseLaw) -> Event:
        """Return what the choice costs."""
        return self.choice(law).mechanism.event

    def norm_under(self, law: type[NoiseLaw]) -> int | Fraction:
        """Return one, in sensitivities: one choice is made."""
        return law.norm(1, 1)

    def alike(self) -> _WinnerChoice:
        return self


def _scoring() -> tuple[_WinnerChoice, VectorNoise]:
    """Return the choice and the winner's score, which cost about as much each."""
    half = Fraction(1, 2)
    choice = _WinnerChoice(sensitivity=GRID)
    share = weight_of_share(half, GaussianNoise, choice.norm_under(GaussianNoise), pure=False)
    return replace(choice, importance=share), VectorNoise(l2_squared=GRID**2).with_share(half)


def scoring_laws(budget: PrivacyBudget, allowance: Fraction) -> tuple[NoiseLaw, NoiseLaw]:
    """Return the noise that the choice costs as much as, and that of the winner's score."""
    choice, score = least_noise(GaussianNoise, _scoring(), budget, allowance)
    return choice, score
