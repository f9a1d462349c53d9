"""Tables about small areas, and the people who fit them.

The tables are those kinds of the census of 2010 that say most about who lives in a block: sex by age
group, for each race and for each ethnicity; race by ethnicity; and sex by single years of age, up to 19
for each block, and for each race and ethnicity only for the whole tract. Each person is counted once in
each kind.

Whoever reads them solves for the number of people of each kind in each block. If the tables are noisy,
nobody fits all of them; then the likeliest people are those who fit best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sfumato.anonymity.columns import Integers
from sfumato.attacks.population import uniforms
from sfumato.backends.owned import read_owned
from sfumato.catalog import one_of
from sfumato.core.scientific import scientific
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.session import Budget, connect

__all__ = ["AGES", "Blocks", "COLUMNS", "TABLES", "fitting", "nearest"]

COLUMNS = ("tract", "block", "sex", "age", "race", "ethnicity")
AGES = 101
"""Ages from 0 to 100; who is older counts as 100."""

_GROUPS = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
_YOUNG = 20
_OF_AGE = np.searchsorted(_GROUPS, np.arange(AGES), side="right") - 1

TABLES = {
    "sex by age group by race, each block": ("block", "sex", "age_group", "race"),
    "sex by age group by ethnicity, each block": ("block", "sex", "age_group", "ethnicity"),
    "race by ethnicity, each block": ("block", "race", "ethnicity"),
    "sex by year of age under 20, each block": ("block", "sex", "young"),
    "sex by year of age by race, each tract": ("tract", "sex", "age", "race"),
    "sex by year of age by ethnicity, each tract": ("tract", "sex", "age", "ethnicity"),
}
"""What is published: each table by the columns that it counts people by."""

_MOST = 500_000  # unknown numbers of one tract
_INERTIA = 0.5
"""What it costs, in logarithms of odds, to put somebody where the guess has nobody, or the reverse."""

_Published = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """People in blocks, one row each: every column numbered from 0, blocks in the order of their tracts."""

    tract: Integers
    block: Integers
    sex: Integers
    age: Integers
    race: Integers
    ethnicity: Integers

    @classmethod
    def read(cls, data: Any, columns: Sequence[str]) -> Blocks:
        """Read people from a table; rows with something missing are left out."""
        if len(columns) != len(COLUMNS) or len(set(columns)) != len(COLUMNS):
            raise InvalidArgument(
                "six different columns are needed", place="columns", hints=(f"for {', '.join(COLUMNS)}",)
            )
        table = read_owned(data, list(columns)).drop_null()
        if table.num_rows == 0:
            raise InvalidArgument("there are no people", place="data")
        years = columns[COLUMNS.index("age")]
        try:
            age = np.asarray(table[years].combine_chunks().cast(pa.float64()), dtype=np.float64)
        except pa.ArrowException:
            raise InvalidArgument(f"column `{years}` is not a number of years", place=years) from None
        coded = {
            name: np.asarray(table[column].combine_chunks().dictionary_encode().indices, dtype=np.int64)
            for name, column in zip(COLUMNS, columns, strict=True)
            if name != "age"
        }
        # A block is told apart within its tract.
        _, block = np.unique(coded["tract"] * len(age) + coded["block"], return_inverse=True)
        coded["block"] = block
        found = cls(age=np.clip(np.nan_to_num(age), 0, AGES - 1).astype(np.int64), **coded)
        size = found.sizes
        kinds = size["sex"] * AGES * size["race"] * size["ethnicity"]
        most = max(len(np.unique(block[coded["tract"] == tract])) for tract in range(size["tract"]))
        if most * kinds > _MOST:
            raise InvalidArgument(
                f"a tract has {most} blocks with {kinds:,} kinds of people each: too many to solve for",
                place="data",
                hints=(f"at most {_MOST:,} in all: take smaller tracts, or fewer races",),
            )
        return found

    @property
    def people(self) -> int:
        """How many there are."""
        return len(self.age)

    @property
    def sizes(self) -> dict[str, int]:
        """How many values each column has."""
        found = {name: int(getattr(self, name).max()) + 1 for name in COLUMNS if name != "age"}
        return found | {"age": AGES, "age_group": len(_GROUPS), "young": _YOUNG}

    @property
    def columns(self) -> dict[str, Integers]:
        """The columns that tables count by; `young` is -1 from the age of 20."""
        return _with_age_groups({name: getattr(self, name) for name in COLUMNS})

    def cells(self) -> Integers:
        """Return how many people of each block, sex, age, race and ethnicity there are."""
        return self._counted(("block", "sex", "age", "race", "ethnicity"))

    def exact(self) -> dict[str, Integers]:
        """Return the tables as they are: the naive release."""
        return {title: self._counted(by) for title, by in TABLES.items()}

    def _counted(self, by: Sequence[str]) -> Integers:
        columns, size = self.columns, self.sizes
        counted = np.zeros([size[name] for name in by], dtype=np.int64)
        among = columns["young"] >= 0 if "young" in by else slice(None)
        np.add.at(counted, tuple(columns[name][among] for name in by), 1)
        return counted

    def released(self, epsilon: float) -> dict[str, Integers]:
        """Return the same tables from this system, each for an equal part of epsilon.

        The lists of blocks, ages and so on are public, so every cell is shown, empty or not.
        """
        columns, size = self.columns, self.sizes
        rows = {name: pa.array(values, mask=values < 0) for name, values in columns.items()}
        database = connect(
            pa.table(rows),
            name="people",
            unit=None,
            columns={name: one_of(*range(size[name])) for name in columns},
            budget=Budget(epsilon=epsilon, rule="pure"),
        )
        # Charges are rounded up, so a sixth is asked for as what is just below it in binary.
        part = Fraction(int(database.terms.epsilon * 2**40 / len(TABLES)), 2**40)
        tables = {}
        for title, by in TABLES.items():
            keys = ", ".join(by)
            text = f"SELECT {keys}, COUNT(*) AS n FROM people GROUP BY {keys}"
            release = database.sql(text, epsilon=part).release()
            places = tuple(np.array(release.column(name), dtype=np.int64) for name in by)
            counted = np.zeros([size[name] for name in by], dtype=np.int64)
            counted[places] = release.column("n")
            tables[title] = counted
        return tables


def _with_age_groups(columns: Mapping[str, Integers]) -> dict[str, Integers]:
    age = columns["age"]
    return {**columns, "age_group": _OF_AGE[age], "young": np.where(age < _YOUNG, age, -1)}


def fitting(tables: _Published, blocks: Integers, tract: int, *, seconds: float = 60) -> Integers:
    """Return people of one tract who fit exact tables: counts by block, sex, age, race and ethnicity.

    Of all who fit, any: the direction in which the solver looks is random. Whole numbers are demanded, though
    tables of this kind hardly ever leave room for fractions.
    """
    optimize = scientific("optimize")
    Bounds, LinearConstraint, milp = optimize.Bounds, optimize.LinearConstraint, optimize.milp
    matrix, wanted, shape = _sums(tables, blocks, tract)
    possible = np.flatnonzero((matrix.T @ (wanted == 0)) == 0)  # no table says that there is nobody
    rows = np.flatnonzero(wanted)
    found = milp(
        uniforms(len(possible)),
        constraints=LinearConstraint(matrix[rows][:, possible], wanted[rows], wanted[rows]),
        integrality=np.ones(len(possible)),
        bounds=Bounds(0, np.inf),
        options={"time_limit": seconds},
    )
    if found.x is None:
        raise Unsupported("the solver did not finish", hints=("take smaller tracts",))
    people = np.zeros(int(np.prod(shape)), dtype=np.int64)
    people[possible] = np.rint(found.x)
    return people.reshape(shape)


def nearest(tables: _Published, blocks: Integers, tract: int, guess: Integers, epsilon: float) -> Integers:
    """Return people of one tract who fit noisy tables best, starting from a guess of who they are.

    Theorem: under noise of a Laplace law the likeliest are those for whom the sum of all misfits, over the
    scale of the noise, is least. To that the distance from the guess is added, so that a table too noisy
    to say anything changes nothing. The unknown numbers may be fractions; they are rounded at random, and
    each block keeps as many people as the guess has there.
    """
    sparse = scientific("sparse")
    linprog = scientific("optimize").linprog
    matrix, wanted, shape = _sums(tables, blocks, tract)
    sums, cells = matrix.shape
    start = guess.ravel()
    some = np.flatnonzero(start)
    each = sparse.kron(sparse.eye(len(blocks)), np.ones((1, cells // len(blocks))), format="csr")
    aside = sparse.eye(sums, format="csr")
    # Who is added, who of the guess is taken away, and by how much the tables say more than that, or less.
    added = sparse.vstack([matrix, each])
    misfit = sparse.vstack([aside, sparse.csr_matrix((len(blocks), sums))])
    most = np.concatenate([np.full(cells, np.inf), start[some], np.full(2 * sums, np.inf)])
    found = linprog(
        np.repeat([_INERTIA, epsilon / len(TABLES)], [cells + len(some), 2 * sums]),
        A_eq=sparse.hstack([added, -added.tocsc()[:, some], misfit, -misfit], format="csc"),
        b_eq=np.concatenate([wanted - matrix @ start, np.zeros(len(blocks))]),
        bounds=np.stack([np.zeros(len(most)), most], axis=1),
        method="highs",
    )
    if found.x is None:
        raise Unsupported("the solver did not finish", hints=("take smaller tracts",))
    amounts = start + found.x[:cells]
    amounts[some] -= found.x[cells : cells + len(some)]
    upto = np.cumsum(np.maximum(amounts, 0).reshape(len(blocks), -1), axis=1)
    whole = np.floor(upto + uniforms(len(blocks))[:, None] * (1 - 1e-6))  # 1e-6 for what the solver rounds
    return np.diff(whole, axis=1, prepend=0).astype(np.int64).reshape(shape)


def _sums(tables: _Published, blocks: Integers, tract: int) -> tuple[Any, npt.NDArray[Any], tuple[int, ...]]:
    """Return which unknowns add up to which published numbers of one tract, these numbers, and the shape."""
    sparse = scientific("sparse")
    titles = list(TABLES)
    races, ethnicities = (tables[titles[2]].shape[1], tables[titles[2]].shape[2])
    shape = (len(blocks), tables[titles[0]].shape[1], AGES, races, ethnicities)
    place = dict(zip(("block", *COLUMNS[2:]), (axis.ravel() for axis in np.indices(shape)), strict=True))
    place = _with_age_groups(place | {"tract": np.zeros_like(place["block"])})
    cells = len(place["block"])
    matrices, wanted = [], []
    for title, by in TABLES.items():
        part = tables[title][blocks] if by[0] == "block" else tables[title][[tract]]
        columns = np.flatnonzero(place["young"] >= 0) if "young" in by else np.arange(cells)
        row = np.ravel_multi_index(tuple(place[name][columns] for name in by), part.shape)
        ones = np.ones(len(columns))
        matrices.append(sparse.csr_matrix((ones, (row, columns)), shape=(part.size, cells)))
        wanted.append(part.ravel())
    return sparse.vstack(matrices, format="csr"), np.concatenate(wanted), shape
