"""Asking for fairness across epsilon: each epsilon is a training and a report of its own, both charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.core.arguments import Number, budget_quantity
from sfumato.errors import InvalidArgument, SfumatoError
from sfumato.learn.base_estimator import ClassifierEstimator
from sfumato.learn.fairness import Groups, cells_of, fairness_report, plan_fairness
from sfumato.learn.private_rows import MOST_TRAININGS
from sfumato.learn.sweep_report import SweepReport, SweepRun
from sfumato.plan.builder import Frame
from sfumato.session.price import Price, price_together
from sfumato.session.progress import Progress

__all__ = ["FairnessSweep", "fairness_sweep"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FairnessSweep:
    """Trainings and reports at several epsilons, with one price tag; nothing is spent until `release`."""

    estimator: ClassifierEstimator[Any]
    frame: Frame[Any]
    groups: Groups
    epsilons: tuple[Fraction, ...]
    report_epsilon: Fraction
    bins: int = 5
    level: float = 0.95

    def price(self) -> Price:
        """Return what all trainings and reports would cost together, against what is left. Free."""
        trained = [self.estimator.at(epsilon).priced(self.frame) for epsilon in self.epsilons]
        first = trained[0]
        cells = cells_of(self.frame, first.label, self.groups, self.bins)
        report = plan_fairness(
            self.frame, first.features, first.label, cells, epsilon=self.report_epsilon, level=self.level
        )
        return price_together(first.rows.database, [*trained, *[report] * len(trained)], notes=(self.said(),))

    def said(self) -> str:
        """Say in a sentence what is charged."""
        trained = ", ".join(f"{float(one):g}" for one in self.epsilons)
        return (
            f"{2 * len(self.epsilons)} charges: a training at epsilon {trained} each, and for each of these"
            f" models a report at epsilon {float(self.report_epsilon):g}"
        )

    def release(
        self, *, key: str | None = None, purpose: str | None = None, progress: Progress = None
    ) -> SweepReport:
        """Spend: train and report at every epsilon. Refused as a whole if the whole does not fit.

        With a `key`, what was already charged under it is returned free: a sweep that was stopped goes on.
        """
        refusal = self.price().refusal
        if refusal is not None and key is None:
            raise refusal
        runs = []
        for epsilon in self.epsilons:
            training, reporting = (
                None if key is None else f"{key} {what} {epsilon}" for what in ("training", "report")
            )
            model = self.estimator.at(epsilon)
            model.fit(self.frame, key=training, purpose=purpose, progress=progress)
            asked = fairness_report(
                model,
                self.frame,
                groups=self.groups,
                epsilon=self.report_epsilon,
                bins=self.bins,
                level=self.level,
            )
            report = asked.release(key=reporting, purpose=purpose, progress=progress)
            runs.append(SweepRun(epsilon=epsilon, model=model.release_, report=report))
        return SweepReport(runs=tuple(runs), level=self.level)

    def __repr__(self) -> str:
        try:
            lines = self.price().lines()
        except SfumatoError as refusal:  # showing something must not fail
            return f"a sweep that will be refused:\n{refusal}"
        return "\n".join(["a fairness sweep, not asked for yet", *lines])


def fairness_sweep(
    estimator: ClassifierEstimator[Any],
    table: Frame[Any],
    *,
    groups: Groups,
    epsilons: Sequence[Number],
    report_epsilon: Number,
    bins: int = 5,
    level: float = 0.95,
) -> FairnessSweep:
    """Ask who loses how much at which epsilon of training; every epsilon is charged; `.release()` spends.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import LogisticRegression, fairness_sweep
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000, "ill": [False, True] * 1000,
    ...                    "sex": ["f", "m", "m", "f"] * 500})
    >>> columns = {"age": sf.between(0, 100), "sex": sf.one_of("f", "m")}
    >>> budget = sf.Budget(epsilon=9, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> model = LogisticRegression(label="ill", features=["age"], steps=20)
    >>> asked = fairness_sweep(
    ...     model, db.table("people"), groups=["sex"], epsilons=[0.1, 1], report_epsilon=1
    ... )
    >>> asked.said()
    '4 charges: a training at epsilon 0.1, 1 each, and for each of these models a report at epsilon 1'
    >>> len(asked.release().runs)
    2
    """
    if not isinstance(estimator, ClassifierEstimator):
        raise InvalidArgument(
            "a sweep trains a model that tells classes apart",
            place="estimator",
            hints=("fairness_sweep(LogisticRegression(label='ill'), ..)",),
        )
    found = sorted({budget_quantity(one, "epsilons") for one in epsilons})
    if len(found) < 2 or len(found) < len(epsilons):
        raise InvalidArgument(
            "a sweep has two epsilons at least, each once", place="epsilons", hints=("epsilons=[0.1, 1]",)
        )
    if len(found) > MOST_TRAININGS:
        raise InvalidArgument(
            f"a sweep has {MOST_TRAININGS} epsilons at most",
            place="epsilons",
            hints=("each is a training and a report, and both are charged",),
        )
    return FairnessSweep(
        estimator=estimator,
        frame=table,
        groups=groups,
        epsilons=tuple(found),
        report_epsilon=budget_quantity(report_epsilon, "report_epsilon"),
        bins=bins,
        level=level,
    )
