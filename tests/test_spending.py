"""One flow for spending: whatever is asked, a door shows the same prices, refusals and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidArgument
from sfumato.session.price import Price
from sfumato.session.spending import spend

COUNT = "SELECT COUNT(*) AS n FROM people"
ASKED: dict[str, Callable[[sf.Database, float], Any]] = {
    "a question": lambda db, epsilon: db.sql(COUNT, epsilon=epsilon),
    "a workload": lambda db, epsilon: db.workload([COUNT], epsilon=epsilon),
    "tables": lambda db, epsilon: db.marginals(["old"], ways=1, epsilon=epsilon),
}


@dataclass
class Recorder:
    """A door that remembers what it was shown."""

    prices: list[Price] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def quote(self, price: Price) -> None:
        self.prices.append(price)

    @contextmanager
    def working(self) -> Iterator[Callable[[str], object]]:
        yield self.steps.append


def database() -> sf.Database:
    people = pa.table({"who": range(900), "old": [True, False] * 450})
    budget = sf.Budget(epsilon=3, delta=1e-6)
    return sf.connect(people, name="people", unit="who", max_rows=1, max_groups=1, budget=budget)


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_whatever_is_asked_is_priced_refused_and_answered_alike(asked) -> None:
    db, door = database(), Recorder()
    assert spend(asked(db, 1), door, dry_run=True) is None
    assert len(door.prices) == 1 and not door.steps and not db.balance.spent_units
    with pytest.raises(BudgetExceeded):
        spend(asked(db, 30), door, dry_run=True)
    assert len(door.prices) == 2  # it is shown, and then refused
    assert spend(asked(db, 1), door, key="once") is not None
    assert len(door.prices) == 2 and door.steps and db.balance.spent_units
    spent = db.balance.spent_units
    assert spend(asked(db, 1), door, key="once") is not None
    assert db.balance.spent_units == spent


def test_somebody_who_is_asked_first_sees_the_price_and_may_decline() -> None:
    db, door, seen = database(), Recorder(), []

    def decline(price: Price) -> None:
        seen.append(price)
        raise InvalidArgument("nothing was spent", place="--yes")

    with pytest.raises(InvalidArgument, match="nothing was spent"):
        spend(db.sql(COUNT, epsilon=1), door, agree=decline)
    assert len(seen) == 1 and not door.steps and not db.balance.spent_units
    with pytest.raises(BudgetExceeded):
        spend(db.sql(COUNT, epsilon=30), door, agree=seen.append)
    assert len(seen) == 1  # nobody is asked about what cannot be had
    spend(db.sql(COUNT, epsilon=2.5), door, agree=seen.append, key="large")
    spend(db.sql(COUNT, epsilon=2.5), door, agree=seen.append, key="large")  # it was paid for
    assert len(seen) == 3 and seen[-1].refusal is not None
