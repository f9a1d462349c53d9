"""What one unit changes of the cells of a fairness report, by removing each of many invented units."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from sfumato.errors import InvalidArgument
from sfumato.learn.fairness_cells import GRID, FairnessCells, Subgroups

SEX = Subgroups(columns=("sex",), values=(("f", "m"),))
RACE = Subgroups(columns=("race",), values=(("a", "b", "c"),))
BOTH = Subgroups(columns=("sex", "race"), values=(("f", "m"), ("a", "b", "c")))
CELLS = FairnessCells(label="ill", classes=("no", "yes", "maybe"), sets=(Subgroups(), SEX, RACE, BOTH))

Rows = dict[str, np.ndarray]


def unit(rows: int, seed: int) -> Rows:
    """Return the rows of one unit; some values are not declared, some probabilities are not numbers."""
    draw = np.random.default_rng(seed)
    probabilities = draw.dirichlet(np.ones(3), rows)
    probabilities[draw.random(rows) < 0.1] = draw.choice([np.nan, np.inf, -np.inf])
    return {
        "ill": draw.integers(-1, 3, rows),
        "sex": draw.integers(-1, 2, rows),
        "race": draw.integers(-1, 3, rows),
        "probabilities": probabilities,
    }


def counted(units: list[Rows]) -> np.ndarray:
    """Return the exact cells of units."""
    whole = {name: np.concatenate([one[name] for one in units]) for name in units[0]}
    return CELLS.counted(
        sizes=np.array([len(one["ill"]) for one in units]),
        labels=whole.pop("ill"),
        probabilities=whole.pop("probabilities"),
        columns=whole,
    )


def units() -> Iterator[Rows]:
    """Yield units of one row, of a few and of many; two of them in the same cell with all rows."""
    yield from (unit(rows, seed) for seed, rows in enumerate([1] * 20 + [2, 3, 7, 100, 3000]))
    same = {"ill": 1, "sex": 0, "race": 2}
    for rows in (1, 3):
        plain: Rows = {name: np.full(rows, code) for name, code in same.items()}
        yield plain | {"probabilities": np.tile([0.1, 0.8, 0.1], (rows, 1))}


def test_a_unit_moves_each_table_by_the_grid_at_most_and_all_by_the_claimed_norm() -> None:
    people = list(units())
    whole = counted(people)
    most = 0
    for place in range(len(people)):
        moved = whole - counted(people[:place] + people[place + 1 :])
        assert (moved >= 0).all()
        assert int((moved**2).sum()) <= CELLS.l2_squared
        for tables in CELLS.divided(moved):
            assert tables.outcomes.sum() <= GRID
            assert tables.calibration.sum() == tables.outcomes.sum()  # both tables count the same rows
        most = max(most, int((moved**2).sum()))
    assert most == CELLS.l2_squared == 8 * GRID**2  # a person in all tables: the bound is tight


def test_a_unit_with_more_rows_than_steps_counts_nothing() -> None:
    assert not counted([unit(GRID + 1, 99)]).any()


def test_cells_are_where_the_row_is() -> None:
    row: Rows = {name: np.array([code]) for name, code in {"ill": 2, "sex": 1, "race": 0}.items()}
    moved = counted([row | {"probabilities": np.array([[0.1, 0.75, 0.15]])}])
    everyone, sex, _, both = CELLS.divided(moved)
    assert everyone.outcomes[0, 2, 1] == sex.outcomes[1, 2, 1] == both.outcomes[3, 2, 1] == GRID
    assert CELLS.edges[3] <= 0.75 < CELLS.edges[4]
    assert everyone.calibration[0, 3].tolist() == [GRID, 0]
    assert BOTH.names[3] == "sex = m, race = a"


def test_rows_without_a_declared_group_are_among_everyone_alone() -> None:
    row: Rows = {name: np.array([code]) for name, code in {"ill": 2, "sex": -1, "race": 0}.items()}
    tables = CELLS.divided(counted([row | {"probabilities": np.array([[0.1, 0.75, 0.15]])}]))
    assert [one.outcomes.sum() for one in tables] == [GRID, 0, GRID, 0]


def test_sets_are_named_once_and_are_not_too_many() -> None:
    with pytest.raises(InvalidArgument, match="twice"):
        FairnessCells(label="ill", classes=("no", "yes"), sets=(SEX, SEX))
    wide = Subgroups(columns=("zip",), values=(tuple(range(100_000)),))
    with pytest.raises(InvalidArgument, match="at most"):
        FairnessCells(label="ill", classes=("no", "yes"), sets=(wide,))
