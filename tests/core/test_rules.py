"""Rules: prices, limits that their own conversions confirm, and refusals that name a way out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from sfumato.core.conversions import delta_of_mu, delta_of_pure
from sfumato.core.events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    Pure,
    Repeated,
    ZeroConcentrated,
)
from sfumato.core.renyi import delta_of_renyi, delta_of_rho
from sfumato.core.rules import UNITS, GaussianRule, PureRule, RenyiRule, Rule, ZeroConcentratedRule
from sfumato.errors import InvalidArgument, Unsupported

from .senseless import NOT_NUMBERS, name

RULES = [PureRule(), ZeroConcentratedRule(), RenyiRule(order=8), GaussianRule()]
F = Fraction


def test_prices_are_exact_where_they_are_rational():
    gaussian = Gaussian(sigma=F(10))
    assert PureRule().charge(Pure(loss=F(1, 10))) == UNITS // 10
    assert ZeroConcentratedRule().charge(gaussian) == UNITS // 200
    assert GaussianRule().charge(gaussian) == UNITS // 100
    assert RenyiRule(order=8).charge(gaussian) == pytest.approx(8 * UNITS / 200, rel=1e-15)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_batch_costs_the_sum_of_its_parts_whatever_it_is_made_of(rule):
    """A rule that ignores a count, or rounds part by part, fails."""
    third = Laplace(scale=F(3))
    one, batch = rule.charge(third), rule.charge(Repeated(event=third, times=1000))
    assert 1000 * (one - 1) < batch <= 1000 * one
    assert rule.charge(Composed(events=(third,) * 10)) == rule.charge(Repeated(event=third, times=10))


def test_a_gaussian_batch_is_exact_although_its_root_is_not():
    assert GaussianRule().charge(Repeated(event=Gaussian(sigma=F(10)), times=2)) == UNITS // 50


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-6), (8, 1e-3)])
def test_a_limit_is_the_most_that_converts_back(rule, epsilon, delta):
    limit = rule.limit(epsilon, delta)
    assert rule.epsilon(limit * F(99, 100), delta) <= epsilon
    assert rule.epsilon(limit * F(101, 100), delta) > epsilon
    profile = {
        "pure": lambda total: delta_of_pure(total, epsilon),
        "zero_concentrated": lambda total: delta_of_rho(total, epsilon),
        "renyi": lambda total: delta_of_renyi(8, total, epsilon),
        "gaussian": lambda total: delta_of_mu(math.sqrt(total), epsilon),
    }[rule.name]
    assert profile(limit) <= delta * (1 + 1e-5)


def test_a_pure_sum_is_its_own_epsilon_at_delta_zero():
    third = Fraction(1, 3)
    assert 0 < Fraction(PureRule().epsilon(third, 0)) - third < Fraction(1, 10**15)


def test_the_default_for_gaussian_noise_admits_more_of_it_than_zcdp_does():
    noise = DiscreteGaussian(sigma_squared=F(400), sensitivity=1)
    admitted = {
        rule.name: int(rule.limit(1, 1e-6) * UNITS) // rule.charge(noise) for rule in (RULES[1], RULES[3])
    }
    assert admitted["gaussian"] > 1.1 * admitted["zero_concentrated"]
    laplace = Laplace(scale=F(20))
    admitted = {
        rule.name: int(rule.limit(1, 1e-6) * UNITS) // rule.charge(laplace) for rule in (RULES[1], RULES[3])
    }
    assert admitted["gaussian"] < admitted["zero_concentrated"]


def test_an_event_without_a_price_is_refused_with_a_rule_that_has_one():
    with pytest.raises(Unsupported, match=r"ZeroConcentratedRule\(\) or GaussianRule\(\) or RenyiRule"):
        PureRule().charge(Gaussian(sigma=F(1)))
    with pytest.raises(Unsupported, match="ZeroConcentratedRule"):
        GaussianRule().charge(ZeroConcentrated(charge=F(1)))
    for rule in RULES:
        with pytest.raises(Unsupported, match="no rule accepts it"):
            rule.charge(Approximate(loss=F(1), failure=F(1, 10**6)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken(Event):
    """An event that states a senseless cost."""

    cost: float

    def tails(self, levels, direction):
        raise NotImplementedError

    def support(self, direction):
        raise NotImplementedError

    def epsilon(self):
        return self.cost


del Event.registry["Broken"]  # tests that go through every kind of event shall not meet it


@pytest.mark.parametrize("cost", [math.nan, -1.0])
def test_an_event_with_a_senseless_cost_is_refused(cost):
    with pytest.raises(InvalidArgument):
        PureRule().charge(Broken(cost=cost))


@pytest.mark.parametrize("thing", [None, 0.1, "Pure", Pure], ids=name)
def test_only_events_are_charged(thing):
    for rule in RULES:
        with pytest.raises(InvalidArgument):
            rule.charge(thing)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_records_read_back(rule):
    assert Rule.from_dict(rule.to_dict()) == rule


@pytest.mark.parametrize("record", [{}, {"rule": "any_order"}, {"rule": ["pure"]}, {"rule": None}])
def test_unknown_rules_are_refused(record):
    with pytest.raises((Unsupported, InvalidArgument)):
        Rule.from_dict(record)


@pytest.mark.parametrize(
    "record", [{"rule": "renyi"}, {"rule": "pure", "order": 2}, {"rule": "renyi", "order": "2"}]
)
def test_malformed_records_are_refused(record):
    with pytest.raises(InvalidArgument):
        Rule.from_dict(record)


@pytest.mark.parametrize("order", [*NOT_NUMBERS, 1, 0, -2], ids=name)
def test_senseless_orders_are_refused(order):
    with pytest.raises(InvalidArgument):
        RenyiRule(order=order)
