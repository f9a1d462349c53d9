"""The reports of a sweep: what each group loses at each epsilon of training, against the largest one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any

from sfumato.core.mechanism import confidence
from sfumato.errors import InvalidArgument
from sfumato.learn.fairness_cells import value_said
from sfumato.learn.fairness_page import loss_said, report_blocks
from sfumato.learn.fairness_release import FairnessReport, GroupReport
from sfumato.learn.rates import ConfidenceLimits, Rate
from sfumato.pages import (
    Deferred,
    Figure,
    Flag,
    Notes,
    Notice,
    Page,
    PageTable,
    Pictures,
    Presentable,
    Section,
)
from sfumato.plots import Axis, Line, Picture, Points
from sfumato.release.published import CLOSING

__all__ = ["GroupCurve", "SweepReport", "SweepRun"]

_CURVES = 6  # groups of one picture

_Rows = Iterator[tuple[tuple[str, ...], Rate | None]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepRun:
    """One epsilon of a sweep: the model that was trained with it, and its fairness report."""

    epsilon: Fraction
    model: Any
    report: FairnessReport


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCurve:
    """The accuracy of one group at each epsilon, and what it loses against the largest.

    `losses` are what is lost lies between: for all groups and all epsilons together, at the level of the
    sweep; the last, at the largest epsilon itself, is zero. `everyone` are those of everyone.
    """

    name: str
    epsilons: tuple[Fraction, ...]
    accuracies: tuple[Rate, ...]
    losses: tuple[ConfidenceLimits, ...]
    everyone: tuple[ConfidenceLimits, ...]

    def loss_said(self, place: int) -> str:
        """Return what is lost at an epsilon, in points; nothing at the largest, or where nothing is known."""
        known = self.accuracies[place].informative and self.accuracies[-1].informative
        return loss_said(self.losses[place]) if known and place < len(self.epsilons) - 1 else ""

    def verdict(self, place: int) -> str:
        """Say whether the group surely loses at an epsilon, and surely more than everyone does."""
        loss, all_of_them = self.losses[place], self.everyone[place]
        if loss.low <= 0:
            return ""
        return "pays more than everyone" if loss.low > all_of_them.high else "pays"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SweepReport(Presentable):
    """The fairness reports of one kind of model, trained with several epsilons, the smallest first.

    Each model and each report was charged for by itself, and has its own receipt. All of it may be shown.

    >>> import numpy as np
    >>> from sfumato.core.gaussian import GaussianNoise
    >>> from sfumato.learn.fairness_cells import GRID, FairnessCells, Subgroups
    >>> cells = FairnessCells(label="ill", classes=("no", "yes"), sets=(Subgroups(),), bins=1)
    >>> def run(epsilon, right):
    ...     measured = np.array([right, 500 - right, 500 - right, right, 1000 - 2 * right, 2 * right]) * GRID
    ...     law = GaussianNoise(Fraction(GRID**2))
    ...     report = FairnessReport(model="model of ill", cells=cells, measured=measured, law=law)
    ...     return SweepRun(epsilon=Fraction(epsilon), model=None, report=report)
    >>> SweepReport(runs=(run(1, 300), run(2, 400))).curves[0].verdict(0)
    'pays'
    """

    runs: tuple[SweepRun, ...]
    level: float = 0.95

    def __post_init__(self) -> None:
        confidence(self.level)
        epsilons = [run.epsilon for run in self.runs]
        if len(epsilons) < 2 or epsilons != sorted(set(epsilons)):
            raise InvalidArgument("a sweep has two epsilons at least, each once", place="epsilons")
        if any(run.report.cells != self.runs[0].report.cells for run in self.runs):
            raise InvalidArgument("the reports of a sweep are about the same groups", place="runs")

    @property
    def curves(self) -> tuple[GroupCurve, ...]:
        """The curve of each group, that of everyone first.

        Theorem: with G groups and E epsilons each of the G E intervals of accuracies misses with probability
        (1 - level) / (G E) at most, so with probability `level` none misses, and no difference does.
        """
        groups = sum(one.size for one in self.runs[0].report.cells.sets)
        alone = float(1 - confidence(self.level))
        together = alone / (groups * len(self.runs))
        narrow, wide = (
            [list(run.report.accuracies(miss=miss, everyone=miss)) for run in self.runs]
            for miss in (alone, together)
        )
        losses = [_losses([run[place][1] for run in wide]) for place in range(groups)]
        return tuple(
            GroupCurve(
                name=narrow[0][place][0],
                epsilons=tuple(run.epsilon for run in self.runs),
                accuracies=tuple(run[place][1] for run in narrow),
                losses=losses[place],
                everyone=losses[0],
            )
            for place in range(groups)
        )

    @property
    def paying(self) -> tuple[str, ...]:
        """The groups that surely lose at some epsilon."""
        return tuple(one.name for one in self.curves if any(map(one.verdict, range(len(self.runs)))))

    def document(self) -> Page:
        """Return the sweep as a page: `sweep.document().html()` is one file that needs no other."""
        curves = self.curves
        table, notice, cost = self._table(curves), self._notice(), self.cost_said()
        pictures = Pictures(lambda: _pictures(curves))
        reports = [
            Section(
                f"The report at epsilon {float(run.epsilon):g}",
                Deferred(partial(report_blocks, run.report)),
            )
            for run in self.runs
        ]
        return Page(
            title=f"Fairness across epsilon: {self.runs[0].report.model}",
            made=cost,
            brief=(table, notice, Notes((cost,)), pictures),
            opening=(notice,),
            sections=(
                Section("Accuracy by group", pictures, table),
                Section("Error rates by group", Deferred(lambda: [self._error_rates()])),
                Section("Calibration by group", Deferred(lambda: [self._calibration()])),
                *reports,
            ),
            closing=CLOSING,
        )

    def cost_said(self) -> str:
        """Say in a sentence what was charged."""
        trained = ", ".join(f"{float(run.epsilon):g}" for run in self.runs)
        each = float(self.runs[0].report.cost.get("epsilon", 0))
        return f"Charged: trainings at epsilon {trained}, and for each a report at epsilon {each:g}."

    def _notice(self) -> Notice:
        paying = self.paying
        said = "No group is seen to lose accuracy"
        if paying:
            said = f"These lose accuracy: {'; '.join(paying)}"
        level = f"{self.level:.0%} for all groups and epsilons together"
        return Notice(f"{said}, against the largest epsilon, at {level}.", tone="bad" if paying else "plain")

    def _table(self, curves: Sequence[GroupCurve]) -> PageTable:
        rows: list[tuple[str | Flag, ...]] = [
            (
                curve.name,
                f"{float(epsilon):g}",
                curve.accuracies[place].said(),
                curve.loss_said(place),
                Flag(verdict) if (verdict := curve.verdict(place)) else "",
            )
            for curve in curves
            for place, epsilon in enumerate(curve.epsilons)
        ]
        return PageTable(
            heads=("group", "epsilon", "accuracy", "points lost", "verdict"),
            rows=rows,
            caption="Points lost against the largest epsilon; their intervals hold for all together.",
        )

    def _across(self, heads: tuple[str, ...], cells: Callable[[GroupReport], _Rows]) -> PageTable:
        """Return a table with a column for each epsilon; `cells` names rows of a group, with their rates."""
        by_run = [[row for group in run.report.groups for row in cells(group)] for run in self.runs]
        rows = [
            (*same[0][0], *("" if rate is None else rate.said() for _, rate in same))
            for same in zip(*by_run, strict=True)
        ]
        return PageTable(heads=(*heads, *(f"epsilon {float(run.epsilon):g}" for run in self.runs)), rows=rows)

    def _error_rates(self) -> PageTable:
        def cells(group: GroupReport) -> _Rows:
            for one in group.classes:
                yield (group.name, value_said(one.value), "false negatives"), one.false_negative
                yield (group.name, value_said(one.value), "false positives"), one.false_positive

        return self._across(("group", "class", "rate"), cells)

    def _calibration(self) -> PageTable:
        def cells(group: GroupReport) -> _Rows:
            for one in group.calibration:
                yield (group.name, f"{one.low:.0%} to {one.high:.0%}"), one.right

        return self._across(("group", "right where the probability is"), cells)


def _losses(rates: Sequence[Rate]) -> tuple[ConfidenceLimits, ...]:
    *smaller, largest = rates
    return (*(largest.minus(one) for one in smaller), ConfidenceLimits(0.0, 0.0))


def _pictures(curves: Sequence[GroupCurve]) -> tuple[Figure, ...]:
    marks: list[tuple[Line, Points]] = []
    for curve in curves:
        known = [
            (float(epsilon), rate.value, rate.low, rate.high)
            for epsilon, rate in zip(curve.epsilons, curve.accuracies, strict=True)
            if rate.informative
        ]
        if known:
            line = Line(label=curve.name, points=tuple((x, y) for x, y, *_ in known))
            marks.append((line, Points(label=curve.name, points=tuple(known))))
    return tuple(
        Figure(
            Picture(
                title="Accuracy by epsilon of training",
                caption="Upright lines are intervals. Groups of which nothing is known are left out.",
                x=Axis(title="epsilon of training", log=True),
                y=Axis(title="accuracy", percent=True, low=0, high=1),
                marks=tuple(chain.from_iterable(marks[at : at + _CURVES])),
            )
        )
        for at in range(0, len(marks), _CURVES)
    )
