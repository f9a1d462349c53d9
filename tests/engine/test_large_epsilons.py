"""Epsilons of 1e20, which GoogleSQL's documentation writes for no noise, and up to the largest that is taken.

They protect nobody, and are still priced, charged and told like all others: never for less than they cost,
to the last unit of the ledger, and with no more work than a small one.
"""

from __future__ import annotations

import cProfile
import pstats
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core import RenyiRule
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.rules import UNITS
from sfumato.errors import BudgetExceeded, InvalidArgument

LARGEST = 10**22
EPSILONS = (10**20, 10**21, LARGEST)
PEOPLE = pa.table({"who": range(40), "size": [3 + who % 5 for who in range(40)]})
ASKED = "SELECT COUNT(*) AS n, SUM(size) AS s, AVG(size) AS m, MEDIAN(size) AS q FROM people"


def budgets(epsilon: int) -> dict[str, PrivacyBudget]:
    return {
        "pure": sf.Budget(epsilon=epsilon, rule="pure"),
        "gaussian": sf.Budget(epsilon=epsilon, delta=1e-6),
        "zcdp": sf.Budget(epsilon=epsilon, delta=1e-6, rule="zcdp"),
        "renyi": PrivacyBudget(epsilon=epsilon, delta=1e-6, rule=RenyiRule(order=8)),
    }


def people(budget: PrivacyBudget, ledger: Path | None = None) -> sf.Database:
    columns = {"size": sf.between(0, 10)}
    return sf.connect(
        {"people": PEOPLE}, unit="who", columns=columns, max_rows=1, budget=budget, ledger=ledger
    )


@pytest.mark.parametrize("rule", budgets(1))
@pytest.mark.parametrize("epsilon", EPSILONS, ids="{:.0e}".format)
def test_it_costs_what_epsilon_allows_and_the_answer_is_exact(rule: str, epsilon: int) -> None:
    budget = budgets(3 * epsilon)[rule]
    db = people(budget)
    question = db.sql(ASKED, epsilon=epsilon)
    event = question.priced().event
    allowed, charge = budget.allowance(epsilon) * UNITS, budget.rule.charge(event)
    prices = sum(Fraction(budget.rule.price(part)) * times * UNITS for part, times in event.parts())
    assert prices <= charge < prices + 1 and allowed / 2 < charge <= allowed + 1
    assert "n: ±0 (95%)" in repr(question) and "instead of" not in repr(question)
    release = question.release()
    assert release.cost["epsilon"] == epsilon and db.balance.spent_units == charge
    [(n, s, m, q)] = release.rows
    assert (n, s, m, q) == (40, 200, pytest.approx(5, abs=1e-6), 5)
    for name, value in zip(release.columns, (n, s, m, q), strict=True):
        [(low, high)] = release.intervals(0.95)[name]
        assert low <= value <= high and high - low <= 2  # a sum of declared values has a grid


@pytest.mark.parametrize("rule", budgets(1))
def test_the_ledger_adds_up_to_the_last_unit(rule: str, tmp_path: Path) -> None:
    """Two of them fit, and what is left of a third one is told after the ledger is opened again."""
    epsilon, file = 10**20, tmp_path / "people.ledger"
    budget = budgets(int(2.5 * epsilon))[rule]
    question = people(budget, file).sql(ASKED, epsilon=epsilon)
    charge = budget.rule.charge(question.priced().event)
    question.release()
    db = people(budget, file)
    assert db.balance.spent_units == charge
    fitting = (db.balance.limit - charge) // charge
    for _ in range(fitting):
        db.sql(ASKED, epsilon=epsilon).release()
    with pytest.raises(BudgetExceeded):
        db.sql(ASKED, epsilon=epsilon).release()
    assert db.balance.spent == Fraction((1 + fitting) * charge, UNITS)
    db.ledger.verify()


def calls(question: Any) -> int:
    """Return how much work it is to price and answer a question, in calls of functions."""
    with cProfile.Profile() as profile:
        question.release()
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("rule", budgets(1))
def test_it_takes_about_the_work_of_a_small_one(rule: str) -> None:
    """False alarm below 1e-9: draws that are tried again add some 50 calls each, and thousands are left."""
    db = people(budgets(3 * LARGEST)[rule])
    for epsilon in (2, LARGEST):  # what is read and computed once and kept
        db.sql(ASKED, epsilon=epsilon).release()
    small, large = (calls(db.sql(ASKED, epsilon=epsilon)) for epsilon in (2, LARGEST))
    assert large < 3 * small  # a root is searched for further away


def test_a_larger_one_is_refused() -> None:
    db = people(budgets(10 * LARGEST)["pure"])
    with pytest.raises(InvalidArgument, match="protects no one"):
        db.sql(ASKED, epsilon=LARGEST + 1).priced()
    clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={LARGEST}) COUNT(*) FROM people"
    with pytest.raises(InvalidArgument, match="protects no one"):
        db.sql(f"{clause} UNION ALL {clause}").priced()
