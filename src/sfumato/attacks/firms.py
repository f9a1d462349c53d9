"""Invented firms with a few people each: many small worlds for the same experiment.

Each firm is one experiment, and one question grouped by firm runs them all: everyone works in one firm,
so each firm's answer has its own noise and costs each person the same epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.attacks.victims import one_row_each
from sfumato.catalog import between, one_of
from sfumato.core import bernoulli, discrete_gaussian
from sfumato.core.arguments import count
from sfumato.session import Database

__all__ = ["Firms", "MOST_SALARY", "VICTIM", "invent_firms"]

VICTIM = "Steven"
MOST_SALARY = 200_000

_Bools = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Firms:
    """Firms of people, one row for each firm; the first of each is the victim.

    `sick` is a fair coin for everyone, so that guessing a victim's is right half the time.
    """

    sick: _Bools
    salary: _Ints

    counting = "SELECT firm, COUNT(*) AS n FROM staff WHERE sick GROUP BY firm"

    def open(self, epsilon: float, *, without: bool = False) -> Database:
        """Open the people, or all but the victims, in this system, with a budget."""
        import pyarrow

        firms, people = self.sick.shape
        rows = {
            "firm": np.repeat(np.arange(firms), people).reshape(firms, people),
            "person": np.arange(firms * people).reshape(firms, people),
            "name": np.tile([VICTIM, *["somebody else"] * (people - 1)], (firms, 1)),
            "sick": self.sick,
            "salary": self.salary,
        }
        return one_row_each(
            pyarrow.table({name: row[:, int(without) :].ravel() for name, row in rows.items()}),
            name="staff",
            unit="person",
            epsilon=epsilon,
            columns={"firm": one_of(*range(firms)), "salary": between(0, MOST_SALARY)},
        )


def invent_firms(firms: int, people: int) -> Firms:
    """Invent firms: a fair coin decides who is sick, salaries are lognormal around 45,000."""
    shape = count(firms, "firms"), count(people, "people", least=2)
    steps, n = 1000, firms * people
    spread = discrete_gaussian(steps, size=n) / steps
    salary = np.minimum(np.exp(np.log(45_000) + 0.45 * spread), MOST_SALARY).astype(np.int64)
    sick = np.asarray(bernoulli(0.5, size=n), dtype=bool)
    return Firms(sick=sick.reshape(shape), salary=salary.reshape(shape))
