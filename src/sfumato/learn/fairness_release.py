"""The fairness report: noisy cells of a model on the private table, and every rate that follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import Value
from sfumato.core.mechanism import confidence
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import InvalidArgument
from sfumato.learn.fairness_cells import GRID, FairnessCells, GroupTables, Subgroups
from sfumato.learn.rates import CellSum, ConfidenceLimits, Rate, rate_of
from sfumato.pages import Page
from sfumato.release import Published
from sfumato.release.storage import encode

__all__ = ["CalibrationBin", "ClassRates", "FairnessReport", "GroupReport"]

_EVERYONE = Fraction(1, 10)  # of what may miss, the share of the accuracy of everyone: all losses use it


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRates:
    """How often a class is missed, and how often it is predicted wrongly; None where nobody can be."""

    value: Value
    false_negative: Rate | None
    false_positive: Rate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """How often the model is right where it says that it is, with a probability between `low` and `high`.

    The verdict is "too sure" or "not sure enough" where that is sure, for all bins of all groups together.
    """

    low: float
    high: float
    right: Rate
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """What is known of one group. `loss` is the accuracy of everyone less that of the group.

    `units` is about how many units of protection the group has. Each interval covers with the level of the
    report by itself; those of `loss` cover all together.
    """

    name: str
    units: float
    units_interval: ConfidenceLimits
    accuracy: Rate
    classes: tuple[ClassRates, ...]
    calibration: tuple[CalibrationBin, ...]
    loss: ConfidenceLimits | None = None  # None: this is everyone

    @property
    def pays(self) -> bool:
        """Whether the group surely has a lower accuracy than everyone."""
        return self.loss is not None and self.loss.low > 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FairnessReport(Published):
    """A published report of what a model does to each group. Everything in it may be shown to anybody.

    `measured` holds the noisy cells, in steps of 1 / GRID of a unit; all else follows. Rates are those of the
    units of the table, each counted as one; intervals allow for the noise, and not for the chance that others
    might have been in the table.

    >>> from sfumato.core.gaussian import GaussianNoise
    >>> cells = FairnessCells(label="ill", classes=("no", "yes"), sets=(Subgroups(),), bins=1)
    >>> measured = np.array([400, 100, 50, 450, 150, 850]) * GRID
    >>> law = GaussianNoise(Fraction(GRID**2))
    >>> report = FairnessReport(model="model of ill", cells=cells, measured=measured, law=law)
    >>> report.group("everyone").accuracy.said()
    '85.0% (84.9 to 85.1)'
    """

    kind: ClassVar[str] = "fairness"

    model: str
    cells: FairnessCells
    measured: npt.NDArray[np.int64]
    law: NoiseLaw
    level: float = 0.95

    def __post_init__(self) -> None:
        confidence(self.level)
        list(self.cells.divided(self.measured))

    # -- what follows -------------------------------------------------------------------

    @property
    def groups(self) -> tuple[GroupReport, ...]:
        """All groups, that of everyone first."""
        return tuple(self._groups())

    def group(self, name: str) -> GroupReport:
        """Return one group by its name: `group("sex = f")`."""
        found = [one for one in self.groups if one.name == name]
        if not found:
            names = ", ".join(f"`{one.name}`" for one in self.groups[:6])
            raise InvalidArgument(f"no group `{name}`", place="group", hints=(f"there are {names}",))
        return found[0]

    @property
    def paying(self) -> tuple[GroupReport, ...]:
        """The groups that surely pay: their accuracy is below that of everyone."""
        return tuple(one for one in self.groups if one.pays)

    def accuracies(self, *, miss: float, everyone: float) -> Iterator[tuple[str, Rate]]:
        """Yield the accuracy of each group, with an interval that misses with probability `miss`.

        That of everyone, which is the first, misses with probability `everyone`.
        """
        for place, (tables, group, name) in enumerate(self._places()):
            yield name, self._accuracy(tables, group, miss if place else everyone)

    def _places(self) -> Iterator[tuple[GroupTables, int, str]]:
        """Yield all groups: their tables, their place in these, and their names."""
        for tables in self.cells.divided(self.measured):
            yield from ((tables, group, name) for group, name in enumerate(tables.subgroups.names))

    def _groups(self) -> Iterator[GroupReport]:
        miss = float(1 - confidence(self.level))
        others = max(1, sum(one.size for one in self.cells.sets[1:]))
        together = list(
            self.accuracies(miss=miss * float(1 - _EVERYONE) / others, everyone=miss * float(_EVERYONE))
        )
        everyone = together[0][1]
        pairs = zip(self._places(), together, strict=True)
        for place, ((tables, group, name), (_, rate)) in enumerate(pairs):
            units, width = self._units(tables, group, miss)
            yield GroupReport(
                name=name,
                units=max(0.0, units),
                units_interval=ConfidenceLimits(max(0.0, units - width), max(0.0, units + width)),
                accuracy=self._accuracy(tables, group, miss),
                classes=tuple(self._classes(tables, group, miss)),
                calibration=tuple(self._calibration(tables, group, miss)),
                loss=everyone.minus(rate) if place else None,
            )

    def _possible(self, subgroups: Subgroups, group: int) -> npt.NDArray[np.bool_]:
        """Return which labels the rows of a group can have: one, if the label is what divides groups."""
        possible = np.ones(len(self.cells.classes), dtype=np.bool_)
        if self.cells.label in subgroups.columns:
            axis = subgroups.columns.index(self.cells.label)
            own = np.unravel_index(group, tuple(map(len, subgroups.values)))[axis]
            possible &= np.array([one == subgroups.values[axis][own] for one in self.cells.classes])
        return possible

    def _count(self, table: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]) -> CellSum | None:
        cells = int(np.count_nonzero(chosen))
        return CellSum(int(table[chosen].sum()), cells) if cells else None

    def _rate(self, part: CellSum | None, rest: CellSum | None, miss: float) -> Rate | None:
        if part is None or rest is None:
            return None
        return rate_of(part, rest, deviation=self.law.deviation, miss=miss)

    def _halves(self, tables: GroupTables, group: int) -> tuple[CellSum, CellSum]:
        """Return how many rows of a group are right and wrong: both tables know it, and are averaged."""
        possible = self._possible(tables.subgroups, group)
        same = np.eye(len(possible), dtype=np.bool_)
        halves = []
        for chosen, place in ((same, 1), (~same, 0)):
            bins = tables.calibration[group, :, place]
            one = CellSum(int(bins.sum()), len(bins))
            other = self._count(tables.outcomes[group], chosen & possible[:, None])
            halves.append(one if other is None else one.averaged(other))
        return halves[0], halves[1]

    def _accuracy(self, tables: GroupTables, group: int, miss: float) -> Rate:
        right, wrong = self._halves(tables, group)
        return rate_of(right, wrong, deviation=self.law.deviation, miss=miss)

    def _units(self, tables: GroupTables, group: int, miss: float) -> tuple[float, float]:
        """Return about how many units a group has, and half of the interval. Theorem: see `rates`."""
        right, wrong = self._halves(tables, group)
        z = self.law.standard_quantile(miss)
        width = z * self.law.deviation * math.sqrt(right.cells + wrong.cells) + 2
        return (right.value + wrong.value) / GRID, width / GRID

    def _classes(self, tables: GroupTables, group: int, miss: float) -> Iterator[ClassRates]:
        table, classes = tables.outcomes[group], len(self.cells.classes)
        possible = self._possible(tables.subgroups, group)
        shown = [classes - 1] if classes == 2 else range(classes)  # of two, one is the other's mirror
        for place in shown:
            own = np.arange(classes) == place
            is_it, is_not = possible & own, possible & ~own
            missed, found = (self._count(table, np.outer(is_it, one)) for one in (~own, own))
            wrongly, spared = (self._count(table, np.outer(is_not, one)) for one in (own, ~own))
            yield ClassRates(
                value=self.cells.classes[place],
                false_negative=self._rate(missed, found, miss),
                false_positive=self._rate(wrongly, spared, miss),
            )

    def _calibration(self, tables: GroupTables, group: int, miss: float) -> Iterator[CalibrationBin]:
        edges = self.cells.edges.tolist()
        bins = self.cells.bins * sum(one.size for one in self.cells.sets)
        for place, (wrong, right) in enumerate(tables.calibration[group].tolist()):
            low, high, counts = edges[place], edges[place + 1], (CellSum(right, 1), CellSum(wrong, 1))
            rate, sure = (
                rate_of(*counts, deviation=self.law.deviation, miss=one) for one in (miss, miss / bins)
            )
            verdict = "too sure" if sure.high < low else "not sure enough" if sure.low > high else ""
            yield CalibrationBin(low=low, high=high, right=rate, verdict=verdict)

    # -- display and storage ------------------------------------------------------------

    def document(self) -> Page:
        """Return the report as a page: `report.document().html()` is one file that needs no other."""
        from sfumato.learn.fairness_page import fairness_page

        return fairness_page(self)

    def record(self) -> dict[str, Any]:
        """Return what follows from the cells as plain data: each rate with its interval."""
        return {
            "model": self.model,
            "level": self.level,
            "groups": [_group_record(one) for one in self.groups],
            "notes": list(self.notes),
            "receipt": dict(self.receipt),
        }

    def _plain(self) -> dict[str, Any]:
        cells = {
            "label": self.cells.label,
            "classes": self.cells.classes,
            "sets": tuple({"columns": one.columns, "values": one.values} for one in self.cells.sets),
            "bins": self.cells.bins,
        }
        return {**Published._plain(self), "cells": cells}

    @staticmethod
    def _fields_of(plain: dict[str, Any]) -> dict[str, Any]:
        sets = tuple(Subgroups(**one) for one in plain["cells"].pop("sets"))
        return {**plain, "cells": FairnessCells(**plain["cells"], sets=sets)}


def _group_record(group: GroupReport) -> dict[str, Any]:
    return {
        "group": group.name,
        "units": [group.units, *group.units_interval],
        "accuracy": _ends(group.accuracy),
        "points_below_everyone": None if group.loss is None else list(group.loss),
        "pays": group.pays,
        "classes": [
            {
                "class": encode(one.value),
                "false_negatives": _ends(one.false_negative),
                "false_positives": _ends(one.false_positive),
            }
            for one in group.classes
        ],
        "calibration": [{"bin": [one.low, one.high], "right": _ends(one.right)} for one in group.calibration],
    }


def _ends(rate: Rate | None) -> list[float] | None:
    """Return a rate and the ends of its interval; None where nothing is known."""
    return None if rate is None or not rate.informative else [rate.value, rate.low, rate.high]
