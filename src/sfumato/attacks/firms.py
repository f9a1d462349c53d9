"""Invented firms with a few people each: many small worlds for the same experiment.

Each firm is one experiment, and one question grouped by firm runs them all: everyone works in one firm,
so each firm's answer has its own noise and costs each person the same epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.catalog import between, one_of
from sfumato.core import bernoulli, discrete_gaussian
from sfumato.core.arguments import count
from sfumato.session import Budget, Database, connect

__all__ = ["Firms", "MOST_SALARY", "VICTIM", "invent_firms"]

VICTIM = "Steven"
MOST_SALARY = 200_000

_Bools = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Firms:
    """People in firms of one size; the first of each is the victim.

    `sick` is a fair coin for everyone, so that guessing a victim's is right half the time.
    """

    firms: int
    people: int
    sick: _Bools
    salary: _Ints

    @property
    def firm(self) -> _Ints:
        """Whose firm each person works in."""
        return np.repeat(np.arange(self.firms), self.people)

    @property
    def victim(self) -> _Bools:
        """Who is the victim of each firm."""
        return np.tile(np.arange(self.people) == 0, self.firms)

    def totals(self, values: npt.NDArray[Any], among: _Bools | None = None) -> _Ints:
        """Return the exact total of each firm, over some of its people."""
        counted = values if among is None else values * among
        return np.asarray(counted.reshape(self.firms, self.people).sum(axis=1, dtype=np.int64))

    def table(self, among: _Bools | None = None) -> Any:
        """Return the people, or some of them, as a table."""
        import pyarrow

        rows = {
            "firm": self.firm,
            "person": np.arange(self.firms * self.people),
            "name": np.where(self.victim, VICTIM, "somebody else"),
            "sick": self.sick,
            "salary": self.salary,
        }
        return pyarrow.table({name: row if among is None else row[among] for name, row in rows.items()})

    def open(self, epsilon: float, *, among: _Bools | None = None) -> Database:
        """Open the people, or some of them, in this system, with a budget."""
        return connect(
            self.table(among),
            name="staff",
            unit="person",
            columns={
                "firm": one_of(*range(self.firms)),
                "salary": between(0, MOST_SALARY),
            },
            max_groups=1,
            max_rows=1,
            budget=Budget(epsilon=epsilon, rule="pure"),
        )


def invent_firms(firms: int, people: int) -> Firms:
    """Invent firms: a fair coin decides who is sick, salaries are lognormal around 45,000."""
    n = count(firms, "firms") * count(people, "people", least=2)
    steps = 1000
    spread = discrete_gaussian(steps, size=n) / steps
    salary = np.minimum(np.exp(np.log(45_000) + 0.45 * spread), MOST_SALARY).astype(np.int64)
    return Firms(
        firms=firms, people=people, sick=np.asarray(bernoulli(0.5, size=n), dtype=bool), salary=salary
    )
