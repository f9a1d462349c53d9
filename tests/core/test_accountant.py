"""Budgets to the last drop: exact units, nothing lost, nothing overspent, nothing charged on refusal."""

from __future__ import annotations

import copy
import json
import math
import pickle
import threading
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.accountant import PrivacyBudget, PrivacyFilter
from sfumato.core.calibration import discrete_sigma_squared_of_mu
from sfumato.core.events import DiscreteGaussian, Gaussian, Pure
from sfumato.core.rules import UNITS, GaussianRule, PureRule, RenyiRule, ZeroConcentratedRule
from sfumato.errors import BudgetExceeded, InvalidArgument, Unsupported
from tests.processes import said

from .senseless import NOT_DELTAS, NOT_POSITIVE, name

F = Fraction
UNIT = F(1, UNITS)


# -- to the last drop ---------------------------------------------------------------------


def test_ten_times_a_tenth_is_exactly_one():
    purse = PrivacyFilter(PrivacyBudget(epsilon=1))
    for _ in range(10):
        purse.spend(Pure(loss=0.1))
    assert purse.spent == 1 and purse.remaining == 0
    with pytest.raises(BudgetExceeded) as refusal:
        purse.spend(Pure(loss=F(1, 10**20)))
    assert (refusal.value.requested, refusal.value.remaining) == (UNIT, 0)
    assert purse.spent == 1


def test_a_stream_of_tiny_losses_is_charged_not_lost():
    """Floats would add 1e-16 to 1 for ever without moving it."""
    purse = PrivacyFilter(PrivacyBudget(epsilon=2))
    purse.spend(Pure(loss=1))
    for _ in range(1000):
        assert purse.spend(Pure(loss=1e-16)) == 10**4
    assert purse.spent == 1 + F(1000, 10**16)


def test_thirds_round_up_so_the_third_does_not_fit():
    purse = PrivacyFilter(PrivacyBudget(epsilon=1))
    purse.spend(Pure(loss=F(1, 3)))
    purse.spend(Pure(loss=F(1, 3)))
    assert purse.spent > F(2, 3)
    with pytest.raises(BudgetExceeded):
        purse.spend(Pure(loss=F(1, 3)))
    purse.spend(Pure(loss=purse.remaining))
    assert purse.remaining == 0


def test_the_smallest_loss_costs_a_unit():
    purse = PrivacyFilter(PrivacyBudget(epsilon=1))
    assert purse.spend(Pure(loss=1e-30)) == 1
    assert purse.spend(Pure(loss=F(1, 10**400))) == 1
    assert PrivacyFilter(PrivacyBudget(epsilon=1, delta=1e-6)).cost(Pure(loss=1e-30)) == 1


@given(st.lists(st.fractions(min_value=F(1, 10**25), max_value=F(1, 3)), max_size=12))
@settings(max_examples=60)
def test_the_admitted_never_exceed_the_budget(losses):
    purse, admitted = PrivacyFilter(PrivacyBudget(epsilon=1)), F(0)
    for loss in losses:
        before = purse.spent
        fits = purse.can_spend(Pure(loss=loss))
        try:
            purse.spend(Pure(loss=loss))
        except BudgetExceeded:
            assert not fits and purse.spent == before
        else:
            assert fits
            admitted += loss
    assert admitted <= purse.spent <= 1
    assert purse.spent <= admitted + len(losses) * UNIT


# -- what a budget fixes ------------------------------------------------------------------


def test_the_rule_follows_from_delta_unless_given():
    assert PrivacyBudget(epsilon=1).rule == PureRule()
    assert PrivacyBudget(epsilon=1, delta=1e-6).rule == GaussianRule()
    assert PrivacyBudget(epsilon=1, delta=1e-6, keys_delta=1e-6).rule == PureRule()
    assert PrivacyBudget(epsilon=1, delta=1e-6, rule=RenyiRule(order=9)).rule == RenyiRule(order=9)


def test_delta_is_split_once_and_the_parts_do_not_mix():
    budget = PrivacyBudget(epsilon=1, delta=1e-6, keys_delta=2e-7)
    assert (budget.delta_loss, budget.keys_limit) == (F(8, 10**7), 2 * 10**13)
    assert budget.limit < PrivacyBudget(epsilon=1, delta=1e-6).limit
    purse = PrivacyFilter(budget)
    purse.spend(Gaussian(sigma=F(1000)), keys_delta=1.5e-7)
    with pytest.raises(BudgetExceeded, match="keys"):
        purse.spend(Gaussian(sigma=F(1000)), keys_delta=1e-7)
    assert (purse.spent, purse.keys_spent) == (F(1, 10**6), F(15, 10**8))
    assert purse.keys_remaining == F(5, 10**8)
    with pytest.raises(BudgetExceeded, match="gaussian rule"):
        purse.spend(Gaussian(sigma=F(1)), keys_delta=1e-9)
    assert purse.keys_spent == F(15, 10**8)
    with pytest.raises(BudgetExceeded):
        PrivacyFilter(PrivacyBudget(epsilon=1)).spend(Pure(loss=F(1, 2)), keys_delta=1e-300)


def test_epsilon_of_one_query_means_that_query_alone():
    """Ten queries of epsilon 0.5, each (0.5, delta)-private alone, fit where epsilons would add up to 5."""
    budget = PrivacyBudget(epsilon=3, delta=1e-7)
    mu = math.sqrt(budget.allowance(0.5))
    event = DiscreteGaussian(sigma_squared=discrete_sigma_squared_of_mu(1, mu), sensitivity=1)
    assert 0.95e-7 < event.delta(0.5) <= 1e-7
    purse, asked = PrivacyFilter(budget), 0
    while purse.can_spend(event):
        purse.spend(event)
        asked += 1
    assert asked > 20  # epsilons alone would admit 6


def test_a_pure_budget_with_a_delta_admits_a_little_more():
    assert PrivacyBudget(epsilon=1, delta=1e-6, rule=PureRule()).limit > UNITS


# -- refusals -----------------------------------------------------------------------------


def test_an_event_without_a_price_is_refused_and_nothing_charged():
    purse = PrivacyFilter(PrivacyBudget(epsilon=1))
    for call in (purse.cost, purse.can_spend, purse.spend):
        with pytest.raises(Unsupported, match="GaussianRule"):
            call(Gaussian(sigma=F(10)))
    assert purse.spent == 0


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=name)
def test_senseless_epsilons_are_refused(value):
    with pytest.raises(InvalidArgument):
        PrivacyBudget(epsilon=value)
    with pytest.raises(InvalidArgument):
        Pure(loss=value)


@pytest.mark.parametrize("value", NOT_DELTAS, ids=name)
def test_senseless_deltas_are_refused_and_nothing_charged(value):
    with pytest.raises(InvalidArgument):
        PrivacyBudget(epsilon=1, delta=value)
    with pytest.raises(InvalidArgument):
        PrivacyBudget(epsilon=1, delta=F(1, 2), keys_delta=value)
    purse = PrivacyFilter(PrivacyBudget(epsilon=1, delta=F(1, 2), keys_delta=F(1, 4)))
    with pytest.raises(InvalidArgument):
        purse.spend(Gaussian(sigma=F(1000)), keys_delta=value)
    with pytest.raises(InvalidArgument):
        purse.can_spend(Gaussian(sigma=F(1000)), keys_delta=value)
    assert purse.spent == purse.keys_spent == 0


def test_a_delta_of_one_over_n_is_refused_where_n_is_public():
    with pytest.raises(InvalidArgument, match="1/n"):
        PrivacyBudget(epsilon=1, delta=1e-4, people=10_000)
    assert PrivacyBudget(epsilon=1, delta=1e-6, people=10_000).delta == F(1, 10**6)


@pytest.mark.parametrize("people", [0, -5, 1.5, True, "10"])
def test_senseless_numbers_of_people_are_refused(people):
    with pytest.raises(InvalidArgument):
        PrivacyBudget(epsilon=1, delta=1e-6, people=people)


def test_other_nonsense_is_refused():
    with pytest.raises(InvalidArgument):
        PrivacyBudget(epsilon=1, delta=1e-7, keys_delta=1e-6)
    with pytest.raises(InvalidArgument):
        PrivacyBudget(epsilon=1, rule="pure")  # type: ignore[arg-type]
    for rule in (ZeroConcentratedRule(), GaussianRule(), RenyiRule(order=2)):
        with pytest.raises(InvalidArgument):
            PrivacyBudget(epsilon=1, rule=rule)
    with pytest.raises(InvalidArgument):
        PrivacyFilter(1)  # type: ignore[arg-type]


# -- sharing and moving -------------------------------------------------------------------


def test_threads_never_overspend(monkeypatch):
    """Eight threads race for ten tenths, pausing between check and charge; without a lock most get in."""
    left = PrivacyFilter._left

    def look_and_pause(self):
        found = left(self)
        time.sleep(0.001)
        return found

    monkeypatch.setattr(PrivacyFilter, "_left", look_and_pause)
    purse, admitted = PrivacyFilter(PrivacyBudget(epsilon=1)), []
    start = threading.Barrier(8)

    def spend():
        start.wait()
        for _ in range(10):
            try:
                purse.spend(Pure(loss=F(1, 10)))
            except BudgetExceeded:
                return
            admitted.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 10 and purse.remaining == 0


@pytest.mark.parametrize(
    "rule", [PureRule(), ZeroConcentratedRule(), RenyiRule(order=3.5), GaussianRule()], ids=repr
)
def test_a_filter_continues_from_its_record(rule):
    purse = PrivacyFilter(PrivacyBudget(epsilon=F(1, 3), delta=1e-6, keys_delta=1e-7, rule=rule))
    purse.spend(Pure(loss=F(1, 1000)), keys_delta=1e-8)
    record = json.loads(json.dumps(purse.to_dict()))
    again = PrivacyFilter.from_dict(record)
    assert again.budget == purse.budget
    assert (again.spent, again.remaining) == (purse.spent, purse.remaining)
    assert (again.keys_spent, again.keys_remaining) == (purse.keys_spent, purse.keys_remaining)


@pytest.mark.parametrize(
    "change",
    [
        {"spent": "-1"},
        {"spent": 5},
        {"spent": "1e3"},
        {"spent": " 1"},
        {"spent": "9" * 10_000},
        {"spent": "\u0661"},
        {"keys_spent": None},
        {"budget": {}},
        {"budget": {"epsilon": "1/0", "delta": "0", "keys_delta": "0", "rule": {"rule": "pure"}}},
        {"budget": {"epsilon": "nan", "delta": "0", "keys_delta": "0", "rule": {"rule": "pure"}}},
    ],
)
def test_malformed_records_are_refused(change):
    record = {**PrivacyFilter(PrivacyBudget(epsilon=1)).to_dict(), **change}
    with pytest.raises(InvalidArgument):
        PrivacyFilter.from_dict(record)


def test_a_filter_cannot_be_copied():
    purse = PrivacyFilter(PrivacyBudget(epsilon=1))
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Unsupported):
            duplicate(purse)


FORKED_SPEND = """
import os
from fractions import Fraction
from sfumato.core.accountant import PrivacyBudget, PrivacyFilter
from sfumato.core.events import Pure
from sfumato.errors import Unsupported
purse = PrivacyFilter(PrivacyBudget(epsilon=1))
child = os.fork()
if child == 0:
    try:
        purse.spend(Pure(loss=Fraction(1, 2)))
    except Unsupported:
        os._exit(7)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), purse.spend(Pure(loss=Fraction(1, 2))) > 0)
"""


def test_a_forked_child_cannot_spend() -> None:
    """Parent and child would each spend the whole budget."""
    assert said(FORKED_SPEND) == ["7 True"]
