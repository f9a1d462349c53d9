"""Choosing one of several models privately: `select_model` shows what it costs, and `release` does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.analysis.expected_error import ExpectedError
from sfumato.core.arguments import Number, budget_quantity, count
from sfumato.errors import InvalidArgument
from sfumato.learn.base_estimator import CandidateEstimator
from sfumato.learn.priced_selection import PricedSelection, scoring_laws
from sfumato.learn.private_rows import MOST_TRAININGS, database_of, training_rows
from sfumato.learn.selected_model import GRID, SelectedModel
from sfumato.plan.builder import Frame
from sfumato.session.question import Question

__all__ = ["ModelSelection", "select_model"]

_REFIT, _SCORING = Fraction(1, 2), Fraction(1, 10)  # shares of the cost with all folds; trainings: the rest


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelSelection(Question[PricedSelection, SelectedModel]):
    """A choice among models with one price tag; nothing is spent until `release`.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import LogisticRegression, select_model
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000, "ill": [False, True] * 1000})
    >>> columns = {"age": sf.between(0, 100)}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> candidates = [LogisticRegression(label="ill", steps=steps) for steps in (5, 20)]
    >>> selection = select_model(candidates, db.table("people"), epsilon=1)  # free: shows the price
    >>> chosen = selection.release()
    >>> chosen.winner in (0, 1), chosen.model.predict({"age": [10, 90]}).tolist()
    (True, [False, True])
    """

    candidates: tuple[CandidateEstimator[Any], ...]
    table: Frame[Any]
    folds: int = 10
    all_folds: bool = False

    refused_as = "a choice among models"

    @property
    def called(self) -> str:
        """What advice calls it."""
        return f"the choice among {len(self.candidates)} models"

    @property
    def title(self) -> str:
        """The line above its price."""
        epsilon = "" if self.epsilon is None else f": epsilon = {float(self.epsilon):g}"
        return f"{len(self.candidates)} models to choose from, not asked yet{epsilon}"

    def _plan(self, epsilon: Fraction | None) -> PricedSelection:
        if epsilon is None:
            raise InvalidArgument(
                "it is not said what this choice may cost", place="epsilon", hints=("give epsilon=1",)
            )
        own = [one.at(epsilon) for one in self.candidates]
        number = len(own)
        each = Fraction(1, number)
        if self.all_folds:
            each *= (1 - _REFIT - _SCORING) / (self.folds - 1)
        trainings = [one.priced(self.table, share=each) for one in own]
        if len({one.label for one in trainings}) > 1:
            raise InvalidArgument("candidates are models of one label", place="candidates")
        columns = tuple(dict.fromkeys(column for one in trainings for column in one.columns))
        rows = training_rows(self.table, columns, labels=(trainings[0].label,))
        budget = rows.database.terms
        refits = [one.priced(self.table, share=_REFIT) for one in own] if self.all_folds else []
        return PricedSelection(
            rows=rows,
            trainings=tuple(trainings),
            refits=tuple(refits),
            folds=self.folds,
            laws=scoring_laws(budget, budget.allowance(epsilon) * (_SCORING if self.all_folds else 1)),
            epsilon=epsilon,
            delta=budget.delta_loss,
        )

    def _expected(self, priced: PricedSelection, size: float | None) -> tuple[ExpectedError, ...]:
        short, half_width = priced.falls_short, priced.laws[1].half_width(0.95) / GRID
        said = f"at most {short:.4g} units below the best (95%)"
        return (
            ExpectedError(name="the winner's score", error=short, said=said),
            ExpectedError.within("its sum over units", half_width),
        )


def select_model(
    candidates: Sequence[CandidateEstimator[Any]],
    table: Frame[Any],
    *,
    epsilon: Number,
    folds: int = 10,
    all_folds: bool = False,
) -> ModelSelection:
    """Return the private choice among candidates, whose whole cost is `epsilon`. Free until `release`.

    Candidates are estimators of one label without an epsilon of their own. Units are divided into `folds` by
    coins; the candidates are trained without the first fold, and judged on it. With `all_folds` this is
    cross-validation, which costs more: see docs/model-selection.md for what was measured.

    >>> from sfumato.learn import LogisticRegression
    >>> select_model([LogisticRegression(label="ill")], None, epsilon=1)
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidArgument: ...
    """
    if not isinstance(candidates, Sequence):
        raise InvalidArgument("candidates are a list of estimators", place="candidates")
    several = tuple(candidates)
    if len(several) < 2 or not all(isinstance(one, CandidateEstimator) for one in several):
        raise InvalidArgument(
            "a choice is among two linear, logistic or additive models at least",
            place="candidates",
            hints=("[LogisticRegression(label='ill', steps=steps) for steps in (20, 100)]",),
        )
    if len(several) > MOST_TRAININGS:
        raise InvalidArgument(
            f"a choice is among {MOST_TRAININGS} models at most",
            place="candidates",
            hints=("each of them gets a share of the cost: few that differ much are better",),
        )
    if any(one.epsilon is not None for one in several):
        raise InvalidArgument(
            "candidates have no epsilon of their own: the choice has one for all of them",
            place="epsilon",
            hints=("select_model([LogisticRegression(label='ill', steps=20), ..], table, epsilon=1)",),
        )
    found = ModelSelection(
        database=database_of(table),
        candidates=several,
        table=table,
        epsilon=budget_quantity(epsilon, "epsilon"),
        folds=count(folds, "folds", least=2, most=100),
        all_folds=bool(all_folds),
    )
    found.priced()  # refuses what cannot be asked, before anything is charged
    return found
