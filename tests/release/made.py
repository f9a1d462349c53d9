"""Plans and exact groups made by hand, and noise that is zero: what the tests of this folder share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import BoundedQuery, Bounding, Measure, MeasureKind
from sfumato.analysis.pricing import Cost, Noise
from sfumato.analysis.selection import Selection
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog.kind import Kind
from sfumato.core import gaussian, laplace
from sfumato.core.events import DiscreteLaplace
from sfumato.core.noise_law import noise_law
from sfumato.plan.options import Options
from sfumato.plan.tree import ColumnRef, Scan
from sfumato.release import NoisyTable, add_noise, tabulate

EVENT = DiscreteLaplace(scale=Fraction(10), sensitivity=1)


def freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every draw zero; parameters, and so intervals, stay as they are."""

    def zeros(parameter: Any, size: int, **_: Any) -> Any:
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(laplace, "discrete_laplace", zeros)
    monkeypatch.setattr(gaussian, "discrete_gaussian", zeros)


def bounding(
    measures: dict[str, MeasureKind],
    answers: Sequence[Answer] = (),
    *,
    keys: Sequence[tuple[str, Kind]] = (("k", Kind.TEXT),),
    sets: Sequence[tuple[int, ...]] | None = None,
    select: bool = False,
) -> Bounding:
    """Return a plan with these measures."""
    return Bounding(
        query=BoundedQuery(
            source=Scan(table="t", alias="t", columns=()),
            row_unit=False,
            keys=tuple((name, ColumnRef(name=f"t.{name}", kind=kind)) for name, kind in keys),
            grouping_sets=tuple(sets) if sets is not None else (tuple(range(len(keys))),),
            declared=None,
            max_groups=1,
            max_rows=1,
            measures=tuple(Measure(name=name, kind=kind, sensitivity=1) for name, kind in measures.items()),
        ),
        answers=tuple(answers),
        select_keys=select,
    )


def cost(
    plan: Bounding,
    parameter: int | Fraction | dict[str, Fraction] = 10,
    *,
    kind: str = "laplace",
    levels: int = 1,
    branching: int = 2,
    threshold: int | None = None,
    measure: str | None = None,
) -> Cost:
    """Return noise of one parameter (or one per measure) on every measure of every set."""
    places = range(len(plan.query.grouping_sets))

    def of(name: str) -> Fraction:
        return parameter[name] if isinstance(parameter, dict) else Fraction(parameter)

    return Cost(
        noises=tuple(
            Noise(
                measure=each.name,
                grouping_set=place,
                law=noise_law(kind, of(each.name)),
                levels=levels if each.kind is MeasureKind.CELLS else 1,
                branching=branching,
                event=EVENT,
            )
            for place in places
            for each in plan.query.measures
        ),
        selections=()
        if threshold is None
        else tuple(
            Selection(
                grouping_set=place,
                measure=measure,
                law=noise_law(kind, Fraction(10)),
                threshold=threshold,
                delta=Fraction(1, 10**6),
                event=None if measure else EVENT,
            )
            for place in places
            if plan.query.grouping_sets[place]
        ),
        epsilon=Fraction(1, 2),
        delta=Fraction(1, 10**6),
        keys_delta=Fraction(0),
    )


def exact(
    keys: Sequence[tuple[Any, ...]],
    measures: dict[str, Any],
    *,
    units: Sequence[int] | None = None,
    grouping_set: tuple[int, ...] = (0,),
) -> ExactGroups:
    """Return exact groups."""
    return ExactGroups(
        grouping_set=grouping_set,
        keys=tuple(keys),
        measures={
            name: values if isinstance(values, np.ndarray) else np.array(values, dtype=np.int64)
            for name, values in measures.items()
        },
        units=None if units is None else np.array(units, dtype=np.int64),
    )


def table(plan: Bounding, price: Cost, *groups: ExactGroups, non_negative: bool = False) -> NoisyTable:
    """Return the noisy table of exact groups."""
    noisy = add_noise(Exact(groups), plan, price)
    return tabulate("released", noisy, plan, price, options=Options(non_negative=non_negative))


def counting(name: str = "n") -> Answer:
    """Return COUNT(*)."""
    return Answer(name=name, function=Function.COUNT_ROWS, measures=("n",), kind=Kind.INTEGER, integer=True)
