"""The public entry: asking is free, releasing spends once, and refusals cost nothing."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError, QueryRefused
from sfumato.plan.summaries import count

PEOPLE = pd.DataFrame(
    {
        "person": [i // 3 for i in range(900)],
        "region": [("north", "south", "west")[i % 3] for i in range(900)],
        "age": [20 + i % 60 for i in range(900)],
    }
)


def database(**changes):
    arguments = {
        "unit": "person",
        "name": "people",
        "columns": {"age": sf.between(0, 110), "region": sf.one_of("north", "south", "west")},
        "budget": sf.Budget(epsilon=3, delta=1e-7),
        "max_groups": 3,
        "max_rows": 1,
    }
    return sf.connect(PEOPLE, **{**arguments, **changes})


QUESTION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region ORDER BY region"


def test_a_question_shows_its_price_and_spends_nothing():
    db = database()
    question = db.sql(QUESTION, epsilon=0.5)
    assert "n: ±" in repr(question) and "nothing is spent" in repr(question)
    assert "one unit can change" in question.explain() and "a0" not in question.explain()
    assert db.budget.spent == 0


def test_a_release_spends_and_covers():
    """Each of six intervals of level 1 - 1e-10 misses with probability 1e-10."""
    db = database()
    release = db.sql(QUESTION, epsilon=1).release()
    assert release.columns == ("region", "n", "age") and release.column("region") == [
        "north",
        "south",
        "west",
    ]
    ends = release.intervals(1 - 1e-10)
    assert all(low <= 300 <= high for low, high in ends["n"])
    assert all(type(value) is int for value in release.column("n"))
    assert 0 < db.budget.spent < Fraction(db.budget.limit, 10**20)
    assert release.receipt["unit"] == "person" and float(release.cost["epsilon"]) == 1
    assert list(release.to_pandas().columns) == ["region", "n", "age"]


def test_ten_half_questions_cost_less_than_five():
    db = database()
    for _ in range(10):
        db.sql("SELECT COUNT(*) FROM people", epsilon=0.5).release()
    with pytest.raises(BudgetExceeded):
        for _ in range(40):
            db.sql("SELECT COUNT(*) FROM people", epsilon=0.5).release()


def test_a_key_returns_the_same_release_for_free(tmp_path):
    path = tmp_path / "people.ledger"
    db = database(ledger=path)
    first = db.sql(QUESTION, epsilon=0.5).release(key="monday")
    spent = db.budget.spent
    again = database(ledger=path)
    assert again.sql(QUESTION, epsilon=0.5).release(key="monday").to_json() == first.to_json()
    assert again.budget.spent == spent
    with pytest.raises(LedgerError):
        again.sql(QUESTION, epsilon=0.25).release(key="monday")


def test_a_budget_is_fixed_once(tmp_path):
    database(ledger=tmp_path / "people.ledger")
    with pytest.raises(LedgerError):
        database(ledger=tmp_path / "people.ledger", budget=sf.Budget(epsilon=30, delta=1e-7))


def test_the_cheapest_epsilon_for_an_error():
    db = database()
    question = db.sql("SELECT COUNT(*) AS n FROM people")
    release = question.release(error=25)
    [(low, high)] = release.intervals()["n"]
    assert high - low <= 50 and float(release.cost["epsilon"]) < 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM people", "SF404"),
        ("SELECT region FROM people GROUP BY region", "SF404"),
        ("SELECT SUM(person) FROM people", "SF406"),
        ("SELECT COUNT(*) FROM nobody", "SF402"),
        ("SELECT COUNT(*), 1/'a' FROM people HAVING nonsense(1)", "SF403"),
        ("DROP TABLE people", "SF407"),
    ],
)
def test_refusals_cost_nothing(text, code):
    db = database()
    with pytest.raises(QueryRefused) as caught:
        db.sql(text, epsilon=0.5).release()
    assert caught.value.code == code
    assert db.budget.spent == 0


def test_python_asks_the_same():
    db = database()
    request = db.table("people").where(sf.col("age") > 30).group_by("region").agg(n=count())
    release = db.ask(request, epsilon=0.5).release()
    assert release.columns == ("region", "n") and len(release) == 3


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidArgument):
        database(columns={"aeg": sf.between(0, 1)})
    with pytest.raises(InvalidArgument):
        database(unit="nobody")
    with pytest.raises(InvalidArgument):
        database().sql(QUESTION).release()
    with pytest.raises(InvalidArgument):
        database().sql(QUESTION, epsilon=float("nan"))
    with pytest.raises(InvalidArgument):
        sf.connect("no such file.parquet", unit=None, budget=sf.Budget(epsilon=1))
