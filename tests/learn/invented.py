"""An invented fairness report, from cells of a known table: for the tests of what follows from cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.catalog.kind import Value
from sfumato.core.gaussian import GaussianNoise
from sfumato.learn.fairness_cells import FairnessCells, Subgroups
from sfumato.learn.fairness_release import FairnessReport

SETS = (
    Subgroups(),
    Subgroups(columns=("sex",), values=(("f", "m"),)),
    Subgroups(columns=("sex", "region"), values=(("f", "m"), ("north", "south", "far away in the east"))),
)


def exact_cells(
    *, right: dict[str, float], units: int = 20_000, sets: tuple[Subgroups, ...] = SETS
) -> tuple[FairnessCells, np.ndarray]:
    """Return the exact cells of a model that is right about each sex as often as `right` says."""
    draw = np.random.default_rng(5)
    classes: tuple[Value, ...] = ("no", "yes")
    sex, label = draw.integers(0, 2, units), draw.integers(0, 2, units)
    hit = draw.random(units) < np.where(sex == 0, right["f"], right["m"])
    sure = draw.uniform(0.6, 1.0, units)
    predicted = np.where(hit, label, 1 - label)
    second = np.where(predicted == 1, sure, 1 - sure)
    cells = FairnessCells(label="ill", classes=classes, sets=sets)
    counted = cells.counted(
        sizes=np.ones(units, dtype=np.int64),
        labels=label,
        columns={"sex": sex, "region": draw.choice(3, units, p=[0.9, 0.099, 0.001]), "ill": label},
        probabilities=np.stack([1 - second, second], axis=1),
    )
    return cells, counted


def noisy_report(*, right: dict[str, float], deviations: int = 4, **more: object) -> FairnessReport:
    """Return a report whose noise has a deviation of so many times what one unit changes of all tables."""
    cells, exact = exact_cells(right=right, **more)  # type: ignore[arg-type]
    law = GaussianNoise(Fraction(deviations**2 * cells.l2_squared))
    return FairnessReport(
        model="logistic regression of ill",
        cells=cells,
        measured=exact + law.draw(len(exact)),
        law=law,
        cost={"epsilon": Fraction(1), "delta": Fraction(1, 10**6)},
        notes=("each unit counts as one",),
    )
