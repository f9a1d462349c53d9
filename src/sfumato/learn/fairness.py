"""Asking for a fairness report: what a published model does to each group of a private table. It is charged.

The model is public, and is applied to private rows inside the one look that the report pays for. All cells
(`fairness_cells`) are one vector that gets discrete Gaussian noise of one law; the event is that of a vector
which a unit moves by `FairnessCells.l2_squared`. All else is post-processing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.expected_error import ExpectedError
from sfumato.backends import UnitRows
from sfumato.core.arguments import FloatArray, Number, budget_quantity
from sfumato.core.events import Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.mechanism import confidence
from sfumato.core.noise_allocation import least_noise
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.vector_noise import VectorNoise
from sfumato.errors import InvalidArgument
from sfumato.learn.fairness_cells import GRID, FairnessCells, Subgroups
from sfumato.learn.fairness_release import FairnessReport
from sfumato.learn.features import Features, ModelColumn, declared_label
from sfumato.learn.fitted_model import LabelledModel
from sfumato.learn.private_rows import PricedRows, TrainingRows, database_of, gaussian_budget, training_rows
from sfumato.pipeline import Look, PricedAnswer, refuse_huge
from sfumato.plan.builder import Frame
from sfumato.release.noise import add_noise_in_steps
from sfumato.session.question import Question

__all__ = [
    "FairnessQuestion",
    "Groups",
    "PricedFairness",
    "cells_of",
    "fairness_report",
    "model_named",
    "plan_fairness",
    "released",
]

Groups = Sequence[str | Sequence[str]]
"""Columns that divide units into groups, each by itself, or several together: ["sex", ("sex", "race")]."""

_SIZES = (100, 1_000, 10_000)  # of groups, whose errors are forecast


def released(model: Any) -> LabelledModel:
    """Return the published model of a fitted estimator or of a choice, or the one that was given."""
    found = getattr(model, "release_", model)
    found = getattr(found, "model", found)
    if not isinstance(found, LabelledModel) or len(found.classes) < 2:
        raise InvalidArgument(
            "a fairness report is about a fitted model of classes",
            place="model",
            hints=("fit it first: LogisticRegression(label='ill', epsilon=1).fit(db.table('people'))",),
        )
    return found


@dataclass(frozen=True, kw_only=True)
class PricedFairness(PricedRows, PricedAnswer[FairnessReport]):
    """A fairness report whose cost is known. Without a model it has a price, and cannot be answered."""

    answer_type = FairnessReport

    rows: TrainingRows
    cells: FairnessCells
    columns: tuple[ModelColumn, ...]
    law: NoiseLaw
    epsilon: Fraction
    delta: Fraction
    level: float
    model: LabelledModel | None = None

    @cached_property
    def event(self) -> Event:
        """All cells, as one vector. Theorem: see `fairness_cells`."""
        return VectorNoise(l2_squared=self.cells.l2_squared).event(self.law)

    def asked(self) -> dict[str, Any]:
        """Return what is asked and what it costs."""
        model = "" if self.model is None else self.model.to_json()
        return {
            **super().asked(),
            "columns": self.columns,
            "cells": self.cells,
            "level": self.level,
            "model": hashlib.sha256(model.encode()).hexdigest(),
        }

    def expected_error(self, units: float, *, most: float = 1.0) -> float:
        """Return about half of the interval of the accuracy of a group of so many units, 9 of 10 right."""
        classes, bins = len(self.cells.classes), self.cells.bins
        right, wrong = (one * bins / (one + bins) for one in (classes, classes**2 - classes))
        z = self.law.standard_quantile(float(1 - confidence(self.level)))
        noise = z * self.law.deviation * math.sqrt(0.1**2 * right + 0.9**2 * wrong)
        return min(most, noise / GRID / units)

    def least_units(self, error: float) -> int:
        """Return about how many units a group needs for an error of its accuracy that is no larger."""
        return math.ceil(self.expected_error(1.0, most=math.inf) / error)

    def computed(self, look: Look) -> FairnessReport:
        """Return the report, without its receipt. It has to be paid for."""
        assert self.model is not None
        exact = look.backend.training_rows(self.rows.relation)
        nothing: npt.NDArray[Any] = np.zeros(0, dtype=np.int64)
        measured = add_noise_in_steps(
            exact,
            lambda rows: lambda state: self.counted(rows),
            lambda state, noisy: noisy,
            nothing,
            (self.law,),
        )
        return FairnessReport(
            model=model_named(self.model),
            cells=self.cells,
            measured=measured,
            law=self.law,
            level=self.level,
            cost=self.cost_record(),
            notes=self._notes(),
        )

    def counted(self, rows: UnitRows) -> npt.NDArray[np.int64]:
        """Return the exact cells of private rows: they have to get noise."""
        assert self.model is not None
        model, codes = self.model, {one.name: _codes(rows.columns[one.name]) for one in self.columns}
        return self.cells.counted(
            sizes=rows.sizes,
            labels=_codes(rows.columns[self.cells.label]),
            columns=codes,
            probabilities=model.probabilities_of(model.features.encoded(rows.columns)),
        )

    def _notes(self) -> tuple[str, ...]:
        return (
            "a unit counts as one: each of its rows with a weight of one over their number",
            "intervals allow for the noise: rates are those of this table, not of a population",
            f"rows without a declared value of `{self.cells.label}` are left out",
            "rows without a declared group are among everyone alone",
            f"an accuracy is known to about 10 points for groups of {self.least_units(0.1):,} units or more",
            "with twice the epsilon half as many units are enough",
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FairnessQuestion(Question[PricedFairness, FairnessReport]):
    """A fairness report with its price tag; nothing is spent until `release`."""

    model: LabelledModel
    frame: Frame[Any]
    groups: Groups
    bins: int = 5
    level: float = 0.95

    refused_as = "a fairness report"

    @property
    def called(self) -> str:
        """What advice calls it."""
        return "the fairness report"

    @property
    def title(self) -> str:
        """The line above its price."""
        return "a fairness report, not asked for yet"

    def _plan(self, epsilon: Fraction | None) -> PricedFairness:
        if epsilon is None:
            raise InvalidArgument(
                "it is not said what this report may cost", place="epsilon", hints=("give epsilon=1",)
            )
        label = self.model.label
        return plan_fairness(
            self.frame, self.model.features, label, cells_of(self.frame, label, self.groups, self.bins),
            epsilon=epsilon, level=self.level, model=self.model,
        )  # fmt: skip

    def _expected(self, priced: PricedFairness, size: float | None) -> tuple[ExpectedError, ...]:
        """Return how far off the accuracy of groups of some sizes, or of one, will be."""
        sizes = _SIZES if size is None else (size,)
        errors = ((f"accuracy of a group of {one:,g}", 100 * priced.expected_error(one)) for one in sizes)
        return tuple(ExpectedError(name=name, error=one, said=f"±{one:.2g} points") for name, one in errors)


def fairness_report(
    model: Any,
    table: Frame[Any],
    *,
    groups: Groups,
    epsilon: Number,
    bins: int = 5,
    level: float = 0.95,
) -> FairnessQuestion:
    """Ask what a fitted model does to each group of a private table; `.release()` spends.

    `groups` are columns with declared values, or several columns together. `bins` are those of calibration.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import LogisticRegression, fairness_report
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000, "ill": [False, True] * 1000,
    ...                    "sex": ["f", "m", "m", "f"] * 500})
    >>> columns = {"age": sf.between(0, 100), "sex": sf.one_of("f", "m")}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> model = LogisticRegression(label="ill", features=["age"], epsilon=1).fit(db.table("people"))
    >>> report = fairness_report(model, db.table("people"), groups=["sex"], epsilon=1).release()
    >>> [one.name for one in report.groups]
    ['everyone', 'sex = f', 'sex = m']
    """
    return FairnessQuestion(
        database=database_of(table),
        model=released(model),
        frame=table,
        groups=groups,
        epsilon=budget_quantity(epsilon, "epsilon"),
        bins=bins,
        level=level,
    )


def cells_of(frame: Frame[Any], label: ModelColumn, groups: Groups, bins: int) -> FairnessCells:
    """Return which cells a report about groups has, from declarations alone. Free."""
    if len(label.values) < 2:
        raise InvalidArgument("a fairness report is about a model of classes", place="label")
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise InvalidArgument(
            "groups are columns, each by itself or several together",
            place="groups",
            hints=("groups=['sex', 'race', ('sex', 'race')]",),
        )
    sets = [Subgroups()]
    for given in groups:
        names = (given,) if isinstance(given, str) else tuple(given)
        if not names or len(set(names)) < len(names):
            raise InvalidArgument("a group is of different columns, by name", place="groups")
        found = [_divides(frame, name) for name in names]
        sets.append(Subgroups(columns=names, values=tuple(one.values for one in found)))
    return FairnessCells(label=label.name, classes=label.values, sets=tuple(sets), bins=bins)


def plan_fairness(
    frame: Frame[Any],
    features: Features,
    label: ModelColumn,
    cells: FairnessCells,
    *,
    epsilon: Number,
    level: float,
    model: LabelledModel | None = None,
) -> PricedFairness:
    """Price a report: free, and a function of what is asked, the catalog and the budget alone."""
    confidence(level)
    names = dict.fromkeys(name for one in cells.sets for name in one.columns)
    columns = tuple(_divides(frame, name) for name in names)
    rows = training_rows(frame, _without_twins((*features.columns, *columns, label)), labels=(label,))
    budget, asked = rows.database.terms, budget_quantity(epsilon, "epsilon")
    gaussian_budget(budget, "a fairness report")
    refuse_huge(asked)
    if model is not None:  # one that lacks its module is refused while that is free
        model.probabilities_of(np.zeros((0, features.width), dtype=np.float32))
    vector = VectorNoise(l2_squared=cells.l2_squared)
    [law] = least_noise(GaussianNoise, [vector], budget, budget.allowance(asked))
    return PricedFairness(
        rows=rows,
        cells=cells,
        columns=columns,
        law=law,
        epsilon=asked,
        delta=budget.delta_loss,
        level=level,
        model=model,
    )


def model_named(model: LabelledModel) -> str:
    """Return what a report calls a model."""
    epsilon = model.cost.get("epsilon")
    trained = "" if epsilon is None else f", trained with epsilon {float(epsilon):g}"
    return f"model of {model.label.name}{trained}"


def _divides(frame: Frame[Any], name: str) -> ModelColumn:
    found = declared_label(frame, name)
    if not found.values:
        raise InvalidArgument(
            f"`{name}` is a number, and groups are of declared values",
            place="groups",
            hints=(f"make groups of it: db.table(..).select(.., old=sf.col({name!r}) >= 65)",),
        )
    return found


def _without_twins(columns: Sequence[ModelColumn]) -> tuple[ModelColumn, ...]:
    """Return each column once: one that divides groups may be a feature of the model, too."""
    found: dict[str, ModelColumn] = {}
    for one in columns:
        if found.setdefault(one.name, one) != one:
            raise InvalidArgument(
                f"`{one.name}` is declared otherwise than when the model was trained", place="groups"
            )
    return tuple(found.values())


def _codes(read: FloatArray) -> npt.NDArray[np.int64]:
    return np.nan_to_num(read, nan=-1.0).astype(np.int64)
