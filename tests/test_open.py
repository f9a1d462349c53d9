"""`sf.open`: a database from a project file, over several tables, under its policy."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.catalog import Analyst, Catalog, Policy, read_project
from sfumato.errors import BudgetExceeded, LedgerError, ProjectRefused, QueryRefused
from sfumato.ledger import Ledger
from sfumato.session import open_project
from tests.cli.programs import PROJECT, make_project


def test_several_tables_private_and_public(tmp_path: Path) -> None:
    """Each of the intervals, of level 1 - 1e-10, misses with that chance."""
    db = sf.open(make_project(tmp_path))
    joined = (
        "SELECT country, COUNT(*) AS n FROM people JOIN regions ON region = regions.name GROUP BY country"
    )
    release = db.sql(f"{joined} ORDER BY country", epsilon=0.5).release()
    assert release.column("country") == ["A", "B"]
    low, high = release.intervals(1 - 1e-10)["n"][0]
    assert low <= 2000 <= high
    both = "SELECT AVG(cost) AS cost, COUNT(*) AS n FROM people JOIN visits USING (person)"
    db.sql(both, epsilon=0.5, max_rows=2).release()
    assert db.unit == "person" and db.budget.spent > 0


def test_two_private_tables_have_one_budget(tmp_path: Path) -> None:
    db = sf.open(make_project(tmp_path))
    db.sql("SELECT COUNT(*) FROM people", epsilon=1.5).release()
    with pytest.raises(BudgetExceeded):
        for _ in range(3):
            db.sql("SELECT COUNT(*) FROM visits", epsilon=1.5, max_rows=2).release()


def test_the_ledger_must_be_there(tmp_path: Path) -> None:
    path = make_project(tmp_path, ledger=False)
    with pytest.raises(LedgerError) as caught:
        sf.open(path)
    assert caught.value.code == "SF601" and not (tmp_path / "people.ledger").exists()


def test_a_policy_is_part_of_the_catalog(tmp_path: Path) -> None:
    path = make_project(tmp_path, PROJECT + "\n[policy]\nceiling = 0.2\n")
    db = sf.open(path)
    question = db.sql("SELECT COUNT(*) AS n FROM people")
    for ask in ({"epsilon": 0.21}, {"epsilon": 3}):
        with pytest.raises(QueryRefused) as caught:
            db.sql("SELECT COUNT(*) AS n FROM people", **ask).release()
        assert caught.value.code == "SF408"
    with pytest.raises(QueryRefused):
        question.release(error=1)
    assert db.budget.spent == 0
    question.within(1000).release()
    free = Catalog(db.catalog.tables)
    assert free.fingerprint() != db.catalog.fingerprint(), "another policy: another idempotency"


def test_who_may_ask(tmp_path: Path) -> None:
    text = PROJECT + "\n[policy.analysts.anna]\nepsilon = 0.3\n"
    path = make_project(tmp_path, text)
    for who in (sf.OWNER, "eve"):
        with pytest.raises(ProjectRefused):
            sf.open(path, analyst=who)
    db = sf.open(path, analyst="anna")
    db.sql("SELECT COUNT(*) FROM people", epsilon=0.3).release()
    with pytest.raises(BudgetExceeded):
        sf.open(path, analyst="anna").sql("SELECT COUNT(*) FROM people", epsilon=0.3).release()
    wider = sf.open(path, analyst="anna")
    wider.ledger.grant("person", "anna", sf.Budget(epsilon=0.9, delta=wider.terms.delta))
    wider.sql("SELECT COUNT(*) FROM people", epsilon=0.3).release()
    [grant] = wider.ledger.grants("person")
    assert grant.spent == wider.budget.spent, "a wider grant does not forget what was spent"


def test_grants_are_written_once(tmp_path: Path) -> None:
    path = make_project(tmp_path, PROJECT + "\n[policy.analysts.anna]\nepsilon = 0.3\n")
    head = sf.open(path, analyst="anna").ledger.head()
    assert sf.open(path, analyst="anna").ledger.head() == head


def test_prices_can_be_seen_without_the_ledger(tmp_path: Path) -> None:
    path = make_project(tmp_path)
    db = open_project(read_project(path), ledger=Ledger.open(None))
    assert "±" in repr(db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1))
    assert Ledger.open(tmp_path / "people.ledger", create=False).units() == ()


def test_two_analysts_of_one_name_are_refused() -> None:
    anna = Analyst(name="anna", budget=sf.Budget(epsilon=1))
    with pytest.raises(sf.errors.InvalidArgument):
        Policy(analysts=(anna, anna))
