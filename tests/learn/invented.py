"""An invented fairness report, from cells of a known table; and invented people with several rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.catalog.kind import Value
from sfumato.core.gaussian import GaussianNoise
from sfumato.learn import FittedNetwork, LinearModel, fairness_report
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


COLUMNS = {"age": sf.between(0, 100), "sex": sf.one_of("f", "m")}
GROUPS: list[str | tuple[str, ...]] = ["sex", "old", ("sex", "old")]


def visits(people: int, seed: int = 3) -> pa.Table:
    """Return rows of people: most have one, some have many; values are missing or not declared at times."""
    draw = np.random.default_rng(seed)
    who = np.concatenate([np.arange(people), np.repeat([1, 2, 3], [2, 7, 200])])
    rows = len(who)
    sex = draw.choice(["f", "m", "x"], rows, p=[0.3, 0.65, 0.05])
    age = draw.uniform(0, 100, rows)
    ill = np.where(sex == "f", age > 70, age > 40)  # one threshold cannot be right for both
    return pa.table(
        {
            "who": who,
            "sex": pa.array(sex.tolist(), mask=draw.random(rows) < 0.02),
            "old": pa.array((age > 60).tolist(), mask=draw.random(rows) < 0.02),
            "age": pa.array(age, mask=draw.random(rows) < 0.02),
            "ill": pa.array(ill.tolist(), mask=draw.random(rows) < 0.02),
        }
    )


def clinic(table: pa.Table, **more: Any) -> sf.Database:
    budget = sf.Budget(epsilon=100, delta=1e-6)
    return sf.connect(
        table, **{"name": "visits", "unit": "who", "columns": COLUMNS, "budget": budget, **more}
    )


def engine_cells(table: pa.Table, model: LinearModel | FittedNetwork) -> tuple[np.ndarray, int]:
    """Return the cells of a table before noise, from the engine's rows, and the norm that is claimed."""
    frame = clinic(table).table("visits")
    priced = fairness_report(model, frame, groups=GROUPS, epsilon=1).priced()
    rows = priced.rows.database.backend.training_rows(priced.rows.relation).reveal()
    return priced.counted(rows), int(Fraction(priced.event.to_dict()["l2_squared"]))
