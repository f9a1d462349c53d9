"""Several questions under one reservation, through the whole path: charged once, resumed, answered once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError
from sfumato.ledger import OWNER, Ledger, verify_receipt
from sfumato.pipeline import LookCost, Looks, PricedQuery, several_looks
from sfumato.session import Database
from tests.cli.programs import sfumato
from tests.processes import said

TEXT = "SELECT COUNT(*) AS n FROM people WHERE age >= {}"


def written(folder: Path, people: int = 400) -> None:
    table = pa.table({"person": list(range(people)), "age": [number % 100 for number in range(people)]})
    pq.write_table(table, folder / "people.parquet")


def opened(folder: Path, epsilon: float = 1) -> Database:
    budget = sf.Budget(epsilon=epsilon)
    caps = {"max_groups": 1, "max_rows": 1}
    columns = {"age": sf.between(0, 110)}
    source = folder / "people.parquet"
    return sf.connect(source, unit="person", columns=columns, budget=budget, ledger=folder / "a", **caps)


def asked(db: Database, age: int, epsilon: float = 0.1) -> PricedQuery:
    return db.sql(TEXT.format(age), epsilon=epsilon).priced()


@contextmanager
def begun(db: Database, steps: int = 3, **changes: Any) -> Iterator[Looks]:
    named: dict[str, Any] = {
        "unit": "person",
        "purpose": "find an age",
        "catalog": db.catalog,
        "ledger": db.ledger,
        "backend": db.backend,
        "analyst": OWNER,
        "idempotency_key": "search",
        "data_may_change": False,
        **changes,
    }
    with several_looks([LookCost.of(asked(db, 0))] * steps, **named) as looks:
        yield looks


@pytest.fixture
def db(tmp_path: Path) -> Database:
    written(tmp_path)
    return opened(tmp_path)


def test_each_question_may_follow_from_the_answers_before_and_all_are_one_charge(db: Database) -> None:
    with begun(db) as looks:
        first = looks.answer(1, asked(db, 50))
        second = looks.answer(2, asked(db, 25 if first.one()["n"] < 200 else 75))
        looks.end()
    [entry] = db.ledger.history()
    assert (entry.steps, entry.taken, entry.committed) == (3, 2, True)
    assert entry.cost == db.budget.spent == Fraction(3, 10)  # also the third, which was not taken
    assert second.receipt["step"] == "2 of 3"
    assert verify_receipt(second.receipt, db.ledger.public_key).sequence == entry.sequence
    assert db.ledger.verify() == db.ledger.head()


def test_a_stored_answer_comes_back_and_the_data_is_not_read_again(db: Database) -> None:
    with begun(db) as looks:
        first = looks.answer(1, asked(db, 50))

    class Blind:
        def __getattr__(self, name: str) -> Any:
            return getattr(db.backend, name)

        def run(self, query: object) -> Any:
            raise AssertionError("a step that was answered is computed again")

    blind = replace(db, backend=Blind())
    with begun(blind) as looks:
        assert looks.answer(1, asked(db, 50)).to_json() == first.to_json()
        with pytest.raises(LedgerError) as refusal:
            looks.answer(1, asked(db, 51))  # another question: not what was answered
        assert refusal.value.code == "SF606"
    assert len(db.ledger.history()) == 1


def test_a_step_costs_what_was_declared_and_nothing_is_burnt_by_asking_for_more(db: Database) -> None:
    with begun(db) as looks:
        for step, priced in (
            (1, asked(db, 50, 0.2)),
            (1, asked(db, 50, 0.05)),
            (1, db.sql("SELECT AVG(age) AS a FROM people", epsilon=0.1).priced()),
            (4, asked(db, 50)),
            (0, asked(db, 50)),
        ):
            with pytest.raises(InvalidArgument):
                looks.answer(step, priced)
        with pytest.raises(LedgerError) as refusal:
            looks.answer(2, asked(db, 50))
        assert refusal.value.code == "SF608" and looks.reservation.taken == 0
        looks.answer(1, asked(db, 50))


def test_all_steps_have_to_fit_before_the_first_is_taken(db: Database) -> None:
    with pytest.raises(BudgetExceeded), begun(db, steps=11):
        raise AssertionError
    with pytest.raises(InvalidArgument), begun(db, steps=0):
        raise AssertionError
    assert db.ledger.history() == ()


def test_a_budget_with_other_neighbours_is_refused_before_the_charge(db: Database) -> None:
    class Replacing:
        def __getattr__(self, name: str) -> Any:
            return getattr(db.ledger, name)

        def replace_one(self, unit: str) -> bool:
            return True

    with pytest.raises(LedgerError) as refusal, begun(db, ledger=Replacing()):
        raise AssertionError
    assert refusal.value.code == "SF605" and db.ledger.history() == ()


def test_an_engine_that_fails_burns_its_step_and_the_next_goes_on(db: Database) -> None:
    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(db.backend, name)

        def run(self, query: object) -> Any:
            raise sf.errors.EngineFailure

    with begun(replace(db, backend=Failing())) as looks, pytest.raises(sf.errors.EngineFailure):
        looks.answer(1, asked(db, 50))
    with begun(db) as looks:
        with pytest.raises(LedgerError) as refusal:
            looks.answer(1, asked(db, 50))
        assert refusal.value.code == "SF607"
        assert looks.answer(2, asked(db, 50)).columns == ("n",)


def test_data_that_comes_in_between(tmp_path: Path) -> None:
    """A stream says that its data changes; what does not say so goes on with the same data only."""
    written(tmp_path)
    first = opened(tmp_path)
    with begun(first, data_may_change=True) as stream, begun(first, idempotency_key="fixed") as fixed:
        monday = stream.answer(1, asked(first, 50))
        fixed.answer(1, asked(first, 50))
    written(tmp_path, 500)
    later = opened(tmp_path)
    with begun(later, data_may_change=True) as stream:
        assert stream.answer(1, asked(later, 50)).to_json() == monday.to_json()
        stream.answer(2, asked(later, 50))
    with pytest.raises(LedgerError) as refusal, begun(later, idempotency_key="fixed"):
        raise AssertionError
    assert refusal.value.code == "SF606"
    assert later.ledger.verify() == later.ledger.head()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.engine.test_looks import asked, begun, opened

folder = Path(sys.argv[1])
for place in ("1 run", "1 stored", "2 run", "2 stored", "3 run", "3 stored", "nowhere"):
    worker = os.fork()
    if worker == 0:
        try:
            db = opened(folder)
            with begun(db) as looks:
                for step in (1, 2, 3):
                    backend = type(db.backend)
                    run = backend.run
                    def killed(self, query):
                        exact = run(self, query)
                        if place == f"{step} run": os.kill(os.getpid(), signal.SIGKILL)
                        return exact
                    backend.run = killed
                    release = looks.answer(step, asked(db, 25 * step))
                    backend.run = run
                    if place == f"{step} stored": os.kill(os.getpid(), signal.SIGKILL)
                    print(step, release.to_json(), flush=True)
                looks.end()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    assert code == (0 if place == "nowhere" else -signal.SIGKILL), (place, code)
"""


def test_killed_while_it_looks_and_before_it_publishes_each_step_has_one_answer(tmp_path: Path) -> None:
    written(tmp_path)
    published: dict[str, set[str]] = {}
    for line in said(KILLED, tmp_path):
        step, _, text = line.partition(" ")
        published.setdefault(step, set()).add(text)
    with Ledger.open(tmp_path / "a") as ledger:
        [entry] = ledger.history()
        assert (entry.taken, entry.committed, ledger.spent("person")) == (3, True, Fraction(3, 10))
        for step in (1, 2, 3):
            assert published[str(step)] == {ledger.release(entry.sequence, step=step).decode()}
        assert ledger.verify() == ledger.head()


def test_the_command_line_shows_steps_and_checks_their_receipts(db: Database, tmp_path: Path) -> None:
    ledger = ("--ledger", str(db.ledger.path))
    with begun(db) as looks:
        release = looks.answer(1, asked(db, 50))
        number = release.receipt["reservation"]
        assert "1 of 3 steps, not ended" in sfumato(tmp_path, "ledger", "history", *ledger).stdout
        assert sfumato(tmp_path, "ledger", "show", number, *ledger).returncode == 5
        looks.end()
    assert "1 of 3 steps, ended" in sfumato(tmp_path, "ledger", "history", *ledger).stdout
    shown = sfumato(tmp_path, "ledger", "show", number, "--step", "1", "-f", "json", *ledger)
    assert json.loads(shown.stdout)["rows"] == [release.one()]
    assert "--step 1" in sfumato(tmp_path, "ledger", "show", number, *ledger).stderr
    assert sfumato(tmp_path, "ledger", "show", number, "--step", "2", *ledger).returncode == 5
    (tmp_path / "receipt.json").write_text(json.dumps(dict(release.receipt)))
    assert sfumato(tmp_path, "ledger", "receipt", "receipt.json", *ledger).returncode == 0
    (tmp_path / "receipt.json").write_text(json.dumps({**release.receipt, "step": "2 of 3"}))
    assert sfumato(tmp_path, "ledger", "receipt", "receipt.json", *ledger).returncode == 5
