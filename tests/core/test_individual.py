"""Individual differential privacy: what it promises, what it does not, and that no budget takes it."""

from __future__ import annotations

from fractions import Fraction
from statistics import median_low

import pytest

from sfumato.core.accountant import Odometer, PrivacyBudget, PrivacyFilter
from sfumato.core.adjacency import Adjacency
from sfumato.core.events.base import Event
from sfumato.core.individual import IndividualPrivacy, local_sensitivity
from sfumato.core.laplace import LaplaceMechanism
from sfumato.core.rules import GaussianRule, PureRule, RenyiRule, ZeroConcentratedRule
from sfumato.errors import InvalidArgument, Unsupported

from .senseless import NOT_POSITIVE, name

RULES = [PureRule(), ZeroConcentratedRule(), RenyiRule(order=8), GaussianRule()]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_filter_refuses_it_and_charges_nothing(rule):
    purse = PrivacyFilter(PrivacyBudget(epsilon=1, delta=1e-6, rule=rule))
    claim = IndividualPrivacy(epsilon=0.1)
    assert not isinstance(claim, Event)
    for call in (purse.cost, purse.can_spend, purse.spend):
        with pytest.raises(Unsupported, match="individual"):
            call(claim)  # type: ignore[arg-type]
    assert purse.spent == 0
    with pytest.raises(InvalidArgument):
        Odometer().record(claim)  # type: ignore[arg-type]


def test_local_sensitivity_tries_every_neighbour():
    rows = (1, 2, 2, 2, 9)
    assert local_sensitivity(median_low, rows, range(10)) == 0
    assert local_sensitivity(sum, rows, range(10)) == 9
    assert local_sensitivity(sum, rows, range(10), Adjacency.REPLACE_ONE) == 9 - 0
    assert local_sensitivity(len, rows, range(10), Adjacency.REPLACE_ONE) == 0
    assert local_sensitivity(lambda r: Fraction(sum(r), len(r)), (0, 9), range(10)) == Fraction(9, 2)


def test_it_protects_against_neighbours_of_this_dataset():
    """Laplace noise of this scale: the loss between these rows and each neighbour is at most epsilon."""
    rows, claim = (1, 2, 3, 9), IndividualPrivacy(epsilon=1)
    scale = claim.scale(local_sensitivity(max, rows, range(10)))
    neighbours = [rows[:i] + rows[i + 1 :] for i in range(4)] + [(*rows, new) for new in range(10)]
    losses = [abs(max(other) - max(rows)) / scale for other in neighbours]
    assert max(losses) == claim.epsilon


def test_it_is_weaker_the_noise_itself_gives_a_dataset_away():
    """Neighbours, one with local sensitivity 0: its answer is never 3, its neighbour's sometimes is."""
    calm, restless = (2, 2, 2, 9, 9), (2, 2, 9, 9)
    claim = IndividualPrivacy(epsilon=1)
    scales = [claim.scale(local_sensitivity(median_low, rows, range(10))) for rows in (calm, restless)]
    assert scales == [0, 7]
    assert median_low(calm) == median_low(restless) == 2
    chance = LaplaceMechanism(scales[1]).pmf(3, 2)
    assert chance > 0.05  # and under `calm`, which adds no noise, it is 0: the loss is infinite


def test_it_composes_with_its_own_kind_only():
    assert IndividualPrivacy(epsilon=0.1).compose(IndividualPrivacy(epsilon=0.2)).epsilon == Fraction(3, 10)
    with pytest.raises(InvalidArgument):
        IndividualPrivacy(epsilon=1).compose(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=name)
def test_senseless_epsilons_are_refused(value):
    with pytest.raises(InvalidArgument):
        IndividualPrivacy(epsilon=value)


def test_senseless_questions_are_refused():
    with pytest.raises(InvalidArgument):
        IndividualPrivacy(epsilon=1).scale(-1)
    with pytest.raises(InvalidArgument):
        local_sensitivity(max, (), range(3))
    with pytest.raises(InvalidArgument):
        local_sensitivity(max, (1,), ())
    with pytest.raises(InvalidArgument):
        local_sensitivity(max, (1,), range(3), "replace_one")  # type: ignore[arg-type]
