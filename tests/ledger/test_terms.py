"""Grants, renewals and parts: limits under the limit, which no clock, analyst or name gets around."""

from __future__ import annotations

import datetime
import itertools
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import GaussianRule, PrivacyBudget, PureRule
from sfumato.core.events import Pure
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError
from sfumato.ledger import OWNER, Ledger, Renewal
from sfumato.ledger.charges import Charge, Totals
from tests.ledger.accounts import HASHES, HUNDREDTH, answer, opened, reserve

DAY = 86_400_000
START = 20_000 * DAY + 5 * 3_600_000


class Clock:
    """A clock that is set by hand."""

    def __init__(self, at: int = START) -> None:
        self.at = at

    def __call__(self) -> int:
        return self.at


def spend(ledger: Ledger, loss: F = F(1, 100), **changes: object) -> None:
    reserve(ledger, Pure(loss=loss), **changes)


# -- grants -------------------------------------------------------------------------------


def test_a_grant_is_a_limit_of_its_own(folder):
    with opened(folder / "a") as ledger:
        ledger.grant("person", "alice", PrivacyBudget(epsilon=F(2, 100)))
        for _ in range(2):
            answer(ledger, analyst="alice")
        with pytest.raises(BudgetExceeded, match="alice") as exceeded:
            answer(ledger, analyst="alice")
        assert any(hint.startswith("the whole grant covers 2 ") for hint in exceeded.value.hints)
        with pytest.raises(LedgerError) as refusal:
            answer(ledger, analyst="bob")
        assert refusal.value.code == "SF609"
        answer(ledger)  # the owner
    with opened(folder / "a") as ledger:
        (grant,) = ledger.grants("person")
        assert (grant.analyst, grant.spent, grant.remaining) == ("alice", F(2, 100), 0)
        assert ledger.spent("person") == F(3, 100)
        assert [entry.analyst for entry in ledger.history()] == ["alice", "alice", None]
        assert len(ledger.history(analyst="alice")) == 2
        ledger.grant("person", "alice", PrivacyBudget(epsilon=F(3, 100)))
        assert ledger.grant_balance("person", "alice").remaining == F(1, 100)
        ledger.grant("person", "alice", PrivacyBudget(epsilon=F(1, 100)))  # less than was spent
        assert ledger.grant_balance("person", "alice").remaining == 0
        head = ledger.head()
        ledger.grant("person", "alice", PrivacyBudget(epsilon=F(1, 100)))
        assert ledger.head() == head  # the same again is no news
        ledger.verify()


def test_colluding_analysts_share_the_cap(folder):
    """Ten analysts with the whole budget each: together they get it once."""
    with opened(folder / "a") as ledger:
        names = [f"analyst {number}" for number in range(10)]
        for name in names:
            ledger.grant("person", name, PrivacyBudget(epsilon=1))
        granted = 0
        for name in itertools.islice(itertools.cycle(names), 300):
            try:
                spend(ledger, analyst=name)
                granted += 1
            except BudgetExceeded:
                continue
        assert granted == 100 and ledger.remaining("person") == 0
        assert sum(grant.spent for grant in ledger.grants("person")) == 1
        ledger.verify()


def test_a_grant_is_in_the_currency_of_the_budget():
    ledger = Ledger.open(None)
    ledger.register("person", PrivacyBudget(epsilon=3, delta=1e-6, keys_delta=1e-7))
    with pytest.raises(InvalidArgument):
        ledger.grant("person", "alice", PrivacyBudget(epsilon=1, rule=PureRule()))
    with pytest.raises(InvalidArgument):
        ledger.grant("person", "alice", 1)  # type: ignore[arg-type]
    ledger.grant(
        "person", "alice", PrivacyBudget(epsilon=1, delta=1e-6, keys_delta=1e-8, rule=GaussianRule())
    )
    with pytest.raises(BudgetExceeded, match="delta for keys"):
        ledger.reserve("person", HUNDREDTH, 2e-8, **{**HASHES, "analyst": "alice"})
    ledger.reserve("person", HUNDREDTH, 1e-8, **{**HASHES, "analyst": "alice"})
    assert ledger.grant_balance("person", "alice").keys_remaining == 0
    assert ledger.balance("person").keys_spent == F(1, 10**8)


def test_a_key_belongs_to_one_analyst():
    ledger = opened(None)
    for name in ("alice", "bob"):
        ledger.grant("person", name, PrivacyBudget(epsilon=1))
    for name in ("alice", "bob", OWNER):
        for _ in range(2):
            own = f"for {name}".encode()
            assert answer(ledger, own, analyst=name, idempotency_key="k") == own
    assert len(ledger.history()) == 3 and ledger.verify() == ledger.head()


# -- renewals -----------------------------------------------------------------------------


def renewed(path, clock: Clock, every: str = "day", epoch: F = F(2, 100), life: F = F(5, 100)) -> Ledger:
    ledger = Ledger.open(path, clock=clock)
    renewal = Renewal(every=every, budget=PrivacyBudget(epsilon=epoch))
    ledger.register("person", PrivacyBudget(epsilon=life), renewal=renewal)
    return ledger


def drained(ledger: Ledger) -> int:
    """Spend hundredths until refused; return how many there were."""
    for number in itertools.count():
        try:
            spend(ledger)
        except BudgetExceeded:
            return number
    raise AssertionError


def test_epochs_compose_into_the_lifetime_and_carry_nothing_over(folder):
    clock = Clock()
    with renewed(folder / "a", clock) as ledger:
        assert drained(ledger) == 2
        balance = ledger.balance("person")
        assert (balance.epoch_remaining, balance.available, balance.remaining) == (0, 0, F(3, 100))
        assert balance.epoch_ends == 20_001 * DAY
        clock.at += DAY
        spend(ledger)  # one of two
        clock.at += DAY
        assert ledger.balance("person").epoch_spent == 0 and ledger.spent("person") == F(3, 100)
        assert drained(ledger) == 2  # not three
        clock.at += 365 * DAY
        assert drained(ledger) == 0  # the lifetime is over
        assert ledger.balance("person").spent == F(5, 100) and "lifetime" in str(ledger.balance("person"))
        ledger.verify()


def test_a_forward_jump_opens_one_epoch_and_a_backward_jump_none(folder):
    clock = Clock()
    with renewed(folder / "a", clock, life=F(1)) as ledger:
        assert drained(ledger) == 2
        for jump in (-DAY, -3650 * DAY, -START):  # back: nothing, whatever the clock says
            clock.at = START + jump
            assert drained(ledger) == 0
        clock.at = START + 10 * DAY  # ten days ahead: one epoch, not ten
        assert drained(ledger) == 2
        for day in range(10):  # the clock is put right: nothing until it has caught up
            clock.at = START + day * DAY
            assert drained(ledger) == 0
    with renewed(folder / "a", clock, life=F(1)) as ledger:  # nor after a restart
        assert drained(ledger) == 0
        clock.at = START + 11 * DAY
        assert drained(ledger) == 2
        ledger.verify()


def test_summer_time_opens_no_epoch():
    """Epochs end at midnight UTC; when wall clocks change, at 1:00 UTC, nothing happens."""
    for change in (datetime.datetime(2026, 3, 29, 1), datetime.datetime(2026, 10, 25, 1)):
        at = int(change.replace(tzinfo=datetime.UTC).timestamp() * 1000)
        clock = Clock(at - 1)
        ledger = renewed(None, clock)
        assert drained(ledger) == 2
        for hour in (0, 1, -1, 2):
            clock.at = at + hour * 3_600_000
            assert drained(ledger) == 0


@given(
    every=st.sampled_from(["day", "week", "month", "year"]),
    jumps=st.lists(st.integers(-800 * DAY, 800 * DAY), min_size=1, max_size=12),
)
def test_no_walk_of_the_clock_refills_an_epoch_twice(every, jumps):
    """However the clock moves: one allowance for each epoch that is later than all before."""
    clock = Clock()
    ledger = renewed(None, clock, every=every, life=F(1))
    renewal = Renewal(every=every, budget=PrivacyBudget(epsilon=1))
    highest, spent = -1, 0
    for jump in jumps:
        clock.at = max(0, clock.at + jump)
        number = renewal.epoch_at(max(clock.at, 0))
        fresh = number > max(highest, renewal.epoch_at(START))
        expected = 2 if fresh or highest == -1 else 0
        highest = max(highest, number, renewal.epoch_at(START))
        assert drained(ledger) == expected
        spent += expected
    assert ledger.spent("person") == F(spent, 100)
    ledger.verify()


@given(st.integers(0, 4_000_000_000_000), st.sampled_from(["day", "week", "month", "year"]))
def test_epochs_follow_the_calendar_of_utc(at, every):
    renewal = Renewal(every=every, budget=PrivacyBudget(epsilon=1))
    epoch = renewal.epoch_at(at)
    end = renewal.ends(epoch)
    assert renewal.epoch_at(end - 1) == epoch and renewal.epoch_at(end) == epoch + 1 and at < end
    day = datetime.datetime.fromtimestamp(end / 1000, datetime.UTC)
    assert (day.hour, day.minute) == (0, 0)
    assert {"week": day.weekday() == 0, "month": day.day == 1, "year": (day.day, day.month) == (1, 1)}.get(
        every, True
    )


def test_a_renewal_needs_a_period_and_the_same_rule():
    with pytest.raises(InvalidArgument):
        Renewal(every="hour", budget=PrivacyBudget(epsilon=1))
    with pytest.raises(InvalidArgument):
        Renewal(every="day", budget=1)  # type: ignore[arg-type]
    ledger = Ledger.open(None)
    other = Renewal(every="day", budget=PrivacyBudget(epsilon=1, delta=1e-6))
    with pytest.raises(InvalidArgument):
        ledger.register("person", PrivacyBudget(epsilon=1), renewal=other)
    day = Renewal(every="day", budget=PrivacyBudget(epsilon=1))
    ledger.register("person", PrivacyBudget(epsilon=1), renewal=day)
    for renewal in (None, Renewal(every="week", budget=PrivacyBudget(epsilon=1))):
        with pytest.raises(LedgerError) as refusal:
            ledger.register("person", PrivacyBudget(epsilon=1), renewal=renewal)
        assert refusal.value.code == "SF605"


# -- parts --------------------------------------------------------------------------------


def divided(path=None, *, replace_one: bool = False) -> Ledger:
    ledger = Ledger.open(path)
    ledger.register("person", PrivacyBudget(epsilon=1), partition="birth_year", replace_one=replace_one)
    return ledger


def test_different_parts_cost_the_largest_of_them(folder):
    with divided(folder / "a") as ledger:
        spend(ledger, F(6, 10), parts=["1980"])
        spend(ledger, F(9, 10), parts=["1981"])
        assert ledger.spent("person") == F(9, 10)
        assert ledger.remaining("person") == F(1, 10)
        with pytest.raises(BudgetExceeded):
            spend(ledger, F(2, 10), parts=["1981"])
        with pytest.raises(BudgetExceeded):
            spend(ledger, F(2, 10), parts=["1980", "1981"])
        with pytest.raises(BudgetExceeded):
            spend(ledger, F(2, 10))  # everyone, also those born in 1981
        spend(ledger, F(1, 10))
        with pytest.raises(BudgetExceeded) as refusal:
            spend(ledger, F(4, 10), parts=["1980"])
        assert refusal.value.remaining == F(3, 10)
        spend(ledger, F(3, 10), parts=["1980"])
        assert ledger.remaining("person") == 0
        ledger.verify()
    with divided(folder / "a") as ledger:
        assert ledger.balance("person").parts == {"1980": F(9, 10), "1981": F(9, 10)}
        assert [entry.parts for entry in ledger.history()] == [("1980",), ("1981",), None, ("1980",)]


def test_replacing_one_unit_costs_two_parts():
    ledger = divided(replace_one=True)
    for part in ("1980", "1981", "1982"):
        spend(ledger, F(3, 10), parts=[part])
    assert ledger.spent("person") == F(6, 10)
    spend(ledger, F(4, 10), parts=["1980"])
    with pytest.raises(BudgetExceeded):
        spend(ledger, F(1, 100), parts=["1981"])
    ledger.verify()


def test_other_data_or_another_policy_begins_the_parts_again_at_full_cost():
    """A person's part may have changed: what was charged to any part is then borne by everyone."""
    for changed in ("data_version", "policy_hash"):
        ledger = divided()
        spend(ledger, F(4, 10), parts=["1980"])
        spend(ledger, F(3, 10), parts=["1981"])
        spend(ledger, F(3, 10), parts=["1981"], **{changed: "other"})
        assert ledger.spent("person") == F(7, 10)
        assert ledger.balance("person").parts == {"1981": F(3, 10)}
        ledger.verify()


def test_parts_need_a_partition():
    ledger = opened(None)
    with pytest.raises(LedgerError) as refusal:
        spend(ledger, parts=["1980"])
    assert refusal.value.code == "SF605"
    for parts in ([], ["\0"], [str(number) for number in range(1001)]):
        with pytest.raises(InvalidArgument):
            spend(divided(), parts=parts)


charges = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 5),
        st.none() | st.frozensets(st.sampled_from("abc"), min_size=1),
        st.sampled_from("xy"),
    ),
    max_size=25,
)


@given(charges, st.sampled_from([1, 2]))
def test_totals_cover_every_unit_whatever_its_parts_were(charges, touched):
    """The definition, by brute force: one part per unit and version; replace-one concerns two units."""
    totals = Totals(touched=touched)
    for units, keys, parts, version in charges:
        named = None if parts is None else tuple(sorted(parts))
        totals = totals.charged(Charge(units=units, keys_units=keys, parts=named, version=version))

    def loss(*people: dict[str, str]) -> int:
        """Add up what concerns these people; two of one part are a replacement there, priced as one."""
        return sum(
            units * len({own[version] for own in people} & (parts or set()))
            for units, _, parts, version in charges
        )

    everyone = sum(units for units, _, parts, _ in charges if parts is None)
    people = [dict(zip("xy", pair, strict=True)) for pair in itertools.product("abc", repeat=2)]
    worst = max(loss(*some) for some in itertools.combinations(people, touched))
    assert totals.spent >= everyone + worst
    if len({version for *_, version in charges}) <= 1:
        single = {part: loss({"x": part, "y": part}) for part in "abc"}
        assert totals.spent == everyone + sum(sorted(single.values(), reverse=True)[:touched])
