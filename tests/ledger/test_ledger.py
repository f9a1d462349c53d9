"""What a ledger allows: budgets fixed once, charges before answers, nothing given back."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction as F

import pytest

from sfumato.core import GaussianRule, PrivacyBudget, PrivacyFilter, RenyiRule, ZeroConcentratedRule
from sfumato.core.events import Composed, Gaussian, Laplace, Pure, Repeated
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError, Unsupported
from sfumato.ledger import Ledger
from sfumato.ledger.account import Account
from tests.ledger.accounts import HASHES, HUNDREDTH, answer, opened, raw, reserve


@pytest.fixture(params=["tmp_path", "memory", "databases"])
def ledger(request):
    folder = None if request.param == "memory" else request.getfixturevalue(request.param)
    with opened(None if folder is None else folder / "people.ledger") as ledger:
        yield ledger


# -- budgets ------------------------------------------------------------------------------


def test_the_budget_can_be_spent_to_the_last_drop_and_no_further(ledger):
    for _ in range(10):
        with reserve(ledger, Pure(loss=0.1)) as reservation:
            reservation.commit(b"")
    assert ledger.remaining("person") == 0 and ledger.spent("person") == 1
    with pytest.raises(BudgetExceeded) as refusal:
        reserve(ledger, Pure(loss=F(1, 10**20)))
    assert refusal.value.remaining == 0 and refusal.value.requested == F(1, 10**20)
    assert len(ledger.history()) == 10
    ledger.verify()


def test_a_refusal_is_that_of_the_filter_and_charges_nothing(ledger):
    reserve(ledger, Pure(loss=0.75))
    purse = PrivacyFilter(PrivacyBudget(epsilon=1))
    purse.spend(Pure(loss=0.75))
    with pytest.raises(BudgetExceeded) as ours:
        reserve(ledger, Pure(loss=0.5))
    with pytest.raises(BudgetExceeded) as theirs:
        purse.spend(Pure(loss=0.5))
    assert str(ours.value) == str(theirs.value) and ours.value.remaining == F(1, 4)
    assert ledger.remaining("person") == F(1, 4)
    reserve(ledger, Pure(loss=0.25))


@pytest.mark.parametrize("rule", [ZeroConcentratedRule(), GaussianRule(), RenyiRule(order=3.5)], ids=repr)
def test_totals_are_those_of_a_filter(folder, rule):
    budget = PrivacyBudget(epsilon=3, delta=1e-6, keys_delta=1e-7, rule=rule)
    batch = Composed(events=(Gaussian(sigma=50), Repeated(event=Laplace(scale=100), times=3)))
    purse = PrivacyFilter(budget)
    for _ in range(2):  # closed and opened again in between
        with Ledger.open(folder / "people.ledger") as ledger:
            ledger.register("person", budget)
            for event, keys in ((batch, 1e-9), (Pure(loss=F(1, 70)), F(1, 3 * 10**10))):
                ledger.reserve("person", event, keys, **HASHES)
                purse.spend(event, keys)
            balance = ledger.balance("person")
            assert (balance.spent, balance.remaining) == (purse.spent, purse.remaining)
            assert (balance.keys_spent, balance.keys_remaining) == (purse.keys_spent, purse.keys_remaining)
            assert balance.budget == budget == ledger.budget("person")
            entry = ledger.history("person")[-2]
            assert entry.event == batch and entry.keys_delta == F(1, 10**9)
            ledger.verify()


def test_delta_for_keys_is_a_budget_of_its_own():
    ledger = Ledger.open(None)
    ledger.register("person", PrivacyBudget(epsilon=1, delta=1e-6, keys_delta=1e-7))
    ledger.reserve("person", Pure(loss=0.01), 1e-7, **HASHES)
    with pytest.raises(BudgetExceeded, match="delta for keys"):
        ledger.reserve("person", Pure(loss=0.01), F(1, 10**30), **HASHES)  # rounds up to a unit
    assert len(ledger.history()) == 1


def test_registering_again_never_gives_a_fresh_budget(folder):
    with opened(folder / "a") as ledger:
        answer(ledger)
    with opened(folder / "a") as ledger:
        assert ledger.spent("person") == F(1, 100)
        head = ledger.head()
        ledger.register("person", PrivacyBudget(epsilon=1.0))
        assert ledger.head() == head
        for other in (
            PrivacyBudget(epsilon=2),
            PrivacyBudget(epsilon=F(1, 2)),
            PrivacyBudget(epsilon=1, delta=1e-6),
            PrivacyBudget(epsilon=1, delta=1e-6, keys_delta=1e-6),
        ):
            with pytest.raises(LedgerError) as refusal:
                ledger.register("person", other)
            assert refusal.value.code == "SF605" and refusal.value.hints
        assert ledger.head() == head and ledger.units() == ("person",)


def test_units_have_budgets_of_their_own(ledger):
    ledger.register("household", PrivacyBudget(epsilon=2), distinct=True)
    ledger.reserve("household", Pure(loss=2), 0, **HASHES)
    assert (ledger.remaining("person"), ledger.remaining("household")) == (1, 0)
    assert [entry.unit for entry in ledger.history("household")] == ["household"]
    assert ledger.history("person") == ()
    with pytest.raises(LedgerError) as refusal:
        ledger.remaining("nobody")
    assert refusal.value.code == "SF605"
    ledger.verify()


def test_a_limit_on_record_is_never_widened():
    """Another version of scipy may compute another limit: the smaller one holds."""
    ledger = opened(None)
    limit = PrivacyBudget(epsilon=1).limit
    account = ledger._accounts.known("person")
    for computed in (limit * 2, limit // 2):
        object.__setattr__(account.budget, "limit", computed)
        again = Account(registered=account.registered, budget=account.budget, renewal=None)
        assert again.balance(None, 0).limit == min(limit, computed)


# -- reservations -------------------------------------------------------------------------


def test_leaving_without_a_commit_burns(ledger):
    with pytest.raises(ZeroDivisionError), reserve(ledger):
        raise ZeroDivisionError
    with reserve(ledger):
        pass
    assert ledger.spent("person") == F(2, 100)
    assert [entry.committed for entry in ledger.history()] == [False, False]
    with pytest.raises(LedgerError) as refusal:
        ledger.release(ledger.history()[0].sequence)
    assert refusal.value.code == "SF608"
    ledger.verify()


def test_a_reservation_is_answered_once_and_in_time(ledger):
    with reserve(ledger) as reservation:
        reservation.commit(b"one")
        with pytest.raises(LedgerError) as again:
            reservation.commit(b"two")
    with reserve(ledger) as late:
        pass
    with pytest.raises(LedgerError) as over:
        late.commit(b"three")
    assert again.value.code == over.value.code == "SF608"
    assert ledger.release(reservation.sequence) == b"one"
    with pytest.raises(InvalidArgument), reserve(ledger) as wrong:
        wrong.commit("text")  # type: ignore[arg-type]


def test_history_tells_public_facts(ledger):
    with reserve(ledger, idempotency_key="k") as reservation:
        reservation.commit(b"noisy")
    (entry,) = ledger.history()
    assert entry.sequence == reservation.sequence and entry.committed and entry.key == "k"
    assert entry.event == HUNDREDTH and entry.cost == F(1, 100) and entry.keys_delta == 0
    assert not hasattr(entry, "data_version")


def test_the_head_grows_with_every_record(ledger):
    heads = [ledger.head()]
    with reserve(ledger) as reservation:
        heads.append(ledger.head())
        assert reservation.head == heads[-1]
        heads.append(reservation.commit(b"x"))
    assert ledger.head() == heads[-1] == ledger.verify()
    assert len({head.hash for head in heads}) == 3
    assert all(ledger.verify(anchor=head) == heads[-1] for head in heads)


# -- idempotency keys ---------------------------------------------------------------------


def test_the_same_request_is_answered_from_the_ledger(folder):
    with opened(folder / "a") as ledger:
        first = answer(ledger, b"first", idempotency_key="k")
        assert answer(ledger, b"second", idempotency_key="k") == first == b"first"
    with opened(folder / "a") as ledger:
        head = ledger.head()
        assert answer(ledger, b"third", idempotency_key="k") == first
        assert ledger.head() == head and ledger.spent("person") == F(1, 100)
        with reserve(ledger, idempotency_key="k") as replayed, pytest.raises(LedgerError) as refusal:
            replayed.commit(b"fourth")
        assert refusal.value.code == "SF608"


def test_a_replay_is_free_when_the_budget_is_gone(ledger):
    answer(ledger, idempotency_key="k")
    reserve(ledger, Pure(loss=0.99))
    assert answer(ledger, b"other", idempotency_key="k") == b"noisy"
    with pytest.raises(BudgetExceeded):
        answer(ledger, idempotency_key="new")


@pytest.mark.parametrize("changed", ["request_hash", "data_version", "policy_hash"])
def test_a_key_stands_for_one_request(ledger, changed):
    answer(ledger, idempotency_key="k")
    with pytest.raises(LedgerError) as refusal:
        answer(ledger, idempotency_key="k", **{changed: "other"})
    assert refusal.value.code == "SF606"
    assert ledger.spent("person") == F(1, 100)


def test_a_key_belongs_to_one_unit(ledger):
    ledger.register("household", PrivacyBudget(epsilon=2), distinct=True)
    answer(ledger, idempotency_key="k")
    with pytest.raises(LedgerError) as refusal:
        ledger.reserve("household", HUNDREDTH, 0, **HASHES, idempotency_key="k")
    assert refusal.value.code == "SF606"


def test_a_burnt_key_stays_burnt(folder):
    with opened(folder / "a") as ledger:
        with reserve(ledger, idempotency_key="k"):
            pass
        for _ in range(2):
            with pytest.raises(LedgerError) as refusal:
                answer(ledger, idempotency_key="k")
            assert refusal.value.code == "SF607"
    with opened(folder / "a") as ledger, pytest.raises(LedgerError) as refusal:
        answer(ledger, idempotency_key="k")
    assert refusal.value.code == "SF607"


def test_whoever_asks_while_the_answer_is_made_waits_no_longer_than_stated(folder):
    with opened(folder / "a", wait=0.05) as ledger, opened(folder / "a", wait=0.05) as other:
        with reserve(ledger, idempotency_key="k") as reservation:
            for asking in (ledger, other):
                with pytest.raises(LedgerError) as refusal:
                    answer(asking, idempotency_key="k")
                assert refusal.value.code == "SF604"
            reservation.commit(b"made")
        assert answer(ledger, idempotency_key="k") == answer(other, idempotency_key="k") == b"made"
        assert ledger.spent("person") == F(1, 100)


# -- bad input ----------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused_before_anything_is_charged(ledger):
    for change in (
        {"request_hash": ""},
        {"data_version": None},
        {"policy_hash": "x" * 1025},
        {"idempotency_key": "\0"},
        {"idempotency_key": "\ud800"},
    ):
        with pytest.raises(InvalidArgument):
            reserve(ledger, **change)
    for event, keys in ((0.1, 0), (HUNDREDTH, -1), (HUNDREDTH, 1), (HUNDREDTH, float("nan")), (None, 0)):
        with pytest.raises(InvalidArgument):
            ledger.reserve("person", event, keys, **HASHES)  # type: ignore[arg-type]
    with pytest.raises(Unsupported):
        reserve(ledger, Gaussian(sigma=3))  # no finite epsilon
    for unit, budget in (("", PrivacyBudget(epsilon=1)), ("new", 1)):
        with pytest.raises(InvalidArgument):
            ledger.register(unit, budget)  # type: ignore[arg-type]
    for path in ("", "a\0b", 5):
        with pytest.raises(InvalidArgument):
            Ledger.open(path)  # type: ignore[arg-type]
    for wait in (0, -1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(InvalidArgument):
            Ledger.open(None, wait=wait)  # type: ignore[arg-type]
    assert ledger.history() == () and ledger.spent("person") == 0


def test_odd_names_survive(ledger):
    unit = "Ärztin 'x'; DROP TABLE records --\u4eba"
    ledger.register(unit, PrivacyBudget(epsilon=1), distinct=True)
    ledger.reserve(unit, HUNDREDTH, 0, **HASHES, idempotency_key='"; --')
    assert ledger.spent(unit) == F(1, 100) and ledger.units() == ("person", unit)
    ledger.verify()


def test_a_ledger_says_where_it_is_and_cannot_be_copied(tmp_path):
    with opened(None) as memory, opened(tmp_path / "a") as file:
        assert "forgotten" in repr(memory) and memory.path is None
        assert str(tmp_path / "a") in repr(file)
        for thing in (memory, file, reserve(file)):
            for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(Unsupported):
                    duplicate(thing)
    with pytest.raises(LedgerError):
        file.head()
    file.close()


def test_the_last_entry_is_the_newest_of_the_history(ledger):
    assert ledger.last_entry() is None and ledger.last_entry("person") is None
    ledger.grant("person", "alice", PrivacyBudget(epsilon=1))
    answer(ledger, analyst="alice")
    answer(ledger)
    reserve(ledger)
    assert ledger.last_entry() == ledger.last_entry("person") == ledger.history()[-1]
    assert ledger.last_entry("person", analyst="alice") == ledger.history()[0]
    assert ledger.last_entry("nobody") is None


@pytest.mark.parametrize("ledger", ["tmp_path", "memory"], indirect=True)
def test_looking_up_walks_no_records(ledger):
    """However long the ledger: every statement of a spend and of a look at the budget goes by an index."""
    answer(ledger)
    ledger.grant("person", "alice", PrivacyBudget(epsilon=1))
    statements: list[str] = []
    raw(ledger).set_trace_callback(statements.append)
    answer(ledger, idempotency_key="k", analyst="alice")
    answer(ledger, idempotency_key="k", analyst="alice")
    for look in (ledger.head, ledger.units, ledger.last_entry, ledger.public_keys):
        look()
    for look in (ledger.balance, ledger.grants, ledger.last_entry):
        look("person")
    ledger.last_entry("person", analyst="alice")
    raw(ledger).set_trace_callback(None)
    selects = {one for one in statements if one.startswith("SELECT") and "records" in one}
    assert len(selects) > 8
    for select in selects:
        for *_, step in raw(ledger).execute(f"EXPLAIN QUERY PLAN {select}"):
            newest = "ORDER BY sequence DESC" in select and "LIMIT 1" in select
            assert "SCAN" not in step or "USING INDEX" in step or newest, select
