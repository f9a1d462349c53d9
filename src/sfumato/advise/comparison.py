"""A comparison: what several projects promise people, and how far off their answers are. Like with like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from sfumato.advise.advice import Advice
from sfumato.advise.choice import Choice
from sfumato.advise.limits import RiskLimit, largest_epsilon
from sfumato.advise.risk import FALSE_ALARMS, Risk
from sfumato.errors import InvalidArgument
from sfumato.pages import Page, PageTable, Presentable

__all__ = ["ComparedProject", "ProjectComparison", "RAREST", "crossings"]

RAREST = 1e-9
"""The lowest rate of false alarms that curves are compared at."""

_ALIKE = 0.01  # a relative difference of two curves that is not told apart: they are bounds, a little above
_STEPS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedProject:
    """One project of a comparison: what it declares, and the advice on its budget and on what it shares.

    >>> from sfumato.advise import advise, choice_of_budget
    >>> from sfumato.core.accountant import PrivacyBudget
    >>> budget = choice_of_budget(PrivacyBudget(epsilon=1))
    >>> advice = advise(budget)
    >>> one = ComparedProject(
    ...     name="a", unit="person", declared={}, budget=budget, advice=advice, year=advice.risk
    ... )
    >>> one.advice.epsilon
    Fraction(1, 1)
    """

    name: str
    unit: str  # what one unit is: only projects that protect the same are held against each other
    declared: Mapping[str, str]
    budget: Choice
    advice: Advice  # on the whole budget
    year: Risk  # of what may be spent within a year
    shared: Mapping[str, Advice] = field(default_factory=dict)  # on what all of the projects declare


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProjectComparison(Presentable):
    """Several projects side by side, from declarations and plans alone.

    >>> from sfumato.advise import advise, choice_of_budget
    >>> from sfumato.core.accountant import PrivacyBudget
    >>> def project(name, epsilon):
    ...     budget = choice_of_budget(PrivacyBudget(epsilon=epsilon))
    ...     of = {"budget": budget, "advice": advise(budget), "year": advise(budget).risk}
    ...     return ComparedProject(name=name, unit="person", declared={}, **of)
    >>> ProjectComparison(projects=(project("a", 1), project("b", 2))).verdicts()[0][:23]
    'a is stricter than b: a'
    """

    projects: tuple[ComparedProject, ...]
    notes: tuple[str, ...] = ()  # what could not be compared, and why

    @property
    def rate(self) -> float:
        """The rate of false alarms at which beliefs are stated: one for all, where some need one."""
        return max(one.advice.risk.false_alarms for one in self.projects)

    def rows(self) -> list[tuple[str, ...]]:
        """Return what is declared and what it means for people: a name, then a cell for each project."""
        projects, rate = self.projects, self.rate
        advised = [one.advice for one in projects]
        after = f", {rate:g} false alarms" if rate else ""
        beliefs = [one.risk.posterior(one.prior, false_alarms=rate) for one in advised]
        numbers = {
            "advantage": [one.risk.advantage for one in advised],
            f"belief from {advised[0].prior:g}{after}": beliefs,
            f"found at {FALSE_ALARMS:g} false alarms": [one.risk.found(FALSE_ALARMS) for one in advised],
            f"advantage, family of {advised[0].family.people}": [one.family.advantage for one in advised],
            "advantage, all of a year": [one.year.advantage for one in projects],
        }
        return [
            ("protects", *(one.unit for one in projects)),
            *((name, *(one.declared.get(name, "") for one in projects)) for name in projects[0].declared),
            *((name, *(f"{number:.4f}" for number in row)) for name, row in numbers.items()),
        ]

    def shared_rows(self) -> list[tuple[str, ...]]:
        """Return the risk and the errors of what all projects declare; the same errors alone."""
        rows = []
        for name in self.projects[0].shared:
            advised = [one.shared[name] for one in self.projects]
            rows.append((f"{name}: epsilon", *(f"{float(one.epsilon):.4g}" for one in advised)))
            rows.append((f"{name}: advantage", *(f"{one.risk.advantage:.4f}" for one in advised)))
            for place, (often, _) in enumerate(advised[0].year):
                many = [one.year[place][1].advantage for one in advised]
                rows.append((f"{name}: advantage, {often} for a year", *(f"{each:.4f}" for each in many)))
            errors = [{error.name: error.said for error in one.errors} for one in advised]
            for column in errors[0]:
                if all(column in one for one in errors):
                    rows.append((f"{name}: {column}", *(one[column] for one in errors)))
        return rows

    def verdicts(self) -> list[str]:
        """Return which of each two is stricter and by how much, or where their curves cross."""
        return [_verdict(one, other) for one, other in combinations(self.projects, 2)]

    def lines(self) -> list[str]:
        """Return the comparison as text."""
        names = tuple(one.name for one in self.projects)
        rows = self.rows()
        if shared := self.shared_rows():
            rows += [("", *("" for _ in names)), *shared]
        return [
            *PageTable(heads=("", *names), rows=rows).text().splitlines(),
            "",
            *self.verdicts(),
            *(f"{one.name}: {one.advice.risk.sentence}" for one in self.projects),
            *self.notes,
            "nothing was spent, and nothing was asked of the data",
        ]

    def record(self) -> dict[str, Any]:
        """Return the comparison as plain data: the advice on each project by its name, and the verdicts."""
        return {
            "projects": {
                one.name: {
                    "protects": one.unit,
                    "declared": dict(one.declared),
                    "budget": one.advice.record(),
                    "year": one.year.advantage,
                    "shared": {name: advice.record() for name, advice in one.shared.items()},
                }
                for one in self.projects
            },
            "verdicts": self.verdicts(),
            "notes": list(self.notes),
        }

    def document(self) -> Page:
        """Return the comparison as a page to file, with its curves."""
        from sfumato.advise.comparison_page import comparison_page

        return comparison_page(self)


def crossings(one: Risk, other: Risk) -> tuple[int, list[float]]:
    """Return which risk is the lower where alarms are rarest, and the rates at which their curves cross.

    The first is -1, 1 or, where they are alike throughout, 0. Power is compared from a rate of 1e-9 up, and
    differences below one percent of it are none: both curves are bounds.
    Theorem: a curve is its own inverse, for it holds in both directions. So two of them are in the same order
    on both sides of the diagonal, and rates up to one half tell all.
    """
    rates = np.geomspace(RAREST, 0.5, _STEPS).tolist()
    found: list[tuple[float, int]] = []
    for rate in rates:
        mine, yours = one.curve.tpr(rate), other.curve.tpr(rate)
        if abs(mine - yours) > _ALIKE * min(mine, yours):
            found.append((rate, -1 if mine < yours else 1))
    if not found:
        return 0, []
    crossed = [(left * right) ** 0.5 for (left, sign), (right, then) in pairwise(found) if sign != then]
    return found[0][1], crossed


def _verdict(one: ComparedProject, other: ComparedProject) -> str:
    if one.unit != other.unit:
        return (
            f"{one.name} and {other.name} protect different things, `{one.unit}` and `{other.unit}`:"
            " which of them is stricter cannot be said"
        )
    first, crossed = crossings(one.advice.risk, other.advice.risk)
    if not first:
        names = f"{one.name} and {other.name}"
        return f"{names} are as strict as each other over all time: their curves differ by less than 1%"
    strict, loose = (one, other) if first < 0 else (other, one)
    least, most = strict.advice.risk.advantage, loose.advice.risk.advantage
    if not crossed:
        return (
            f"{strict.name} is stricter than {loose.name}: at every rate of false alarms an attacker finds"
            f" fewer people, the advantage is {least:.3g} and not {most:.3g}. {_as_strict(strict, loose)}"
        )
    return (
        f"Neither {one.name} nor {other.name} is stricter: their curves cross where {_listed(crossed)}"
        f" is a false alarm. Where such alarms are rarer, an attacker finds fewer people with {strict.name};"
        f" where they are more frequent, with {loose.name}. The advantage is {least:.3g} with {strict.name},"
        f" {most:.3g} with {loose.name}"
    )


def _as_strict(strict: ComparedProject, loose: ComparedProject) -> str:
    """Say which epsilon of the looser one has the advantage of the stricter one."""
    try:
        wanted = largest_epsilon(loose.budget, RiskLimit(advantage=strict.advice.risk.advantage))
    except InvalidArgument:  # its delta alone tells more
        return f"No epsilon would give {loose.name} the advantage of {strict.name}: its delta is too large"
    return (
        f"{loose.name} would have the advantage of {strict.name} at epsilon {float(wanted):.3g},"
        f" and not {float(loose.budget.epsilon):.3g}"
    )


def _listed(rates: Sequence[float]) -> str:
    return " and where ".join(f"one in {float(f'{1 / rate:.2g}'):,.0f}" for rate in rates)
