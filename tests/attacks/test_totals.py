"""Attacks on totals, by differences, by refusals, by asking again: what their pages claim; planted bugs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.attacks.attack_result import AttackResult, bit_bound
from sfumato.attacks.averaging import averaging
from sfumato.attacks.differencing import differencing
from sfumato.attacks.refusing import MaxAuditor, refusing
from sfumato.core import laplace
from sfumato.core.noise import discrete_laplace
from sfumato.errors import InvalidArgument
from sfumato.plots import Bars, Picture, svg
from tests.attacks.chances import above, below

EPSILONS = (0.25, 1.0, 3.0)


@pytest.fixture(scope="module")
def difference() -> AttackResult:
    return differencing(epsilons=EPSILONS, firms=3000, people=6)


def points_of(picture: Picture, label: str) -> list[tuple[float, ...]]:
    mark = next(mark for mark in picture.marks if mark.label == label)
    assert not isinstance(mark, Bars)
    return [tuple(point) for point in mark.points]


# -- differencing --------------------------------------------------------------------------------


def test_exact_totals_give_everyone_away(difference: AttackResult) -> None:
    assert difference.naive.share == 1.0
    assert difference.naive.trials == 3000


def test_through_this_system_the_best_attacker_is_what_epsilon_says(difference: AttackResult) -> None:
    """The bound is met, and not passed.

    False alarm: six comparisons at 1e-10. Power: with 3,000 firms a rate that is off by 0.07 is seen; noise
    of half the scale is off by 0.12 at epsilon 1.
    """
    for point in difference.curve:
        assert point.bound == bit_bound(point.epsilon)
        assert not above(point), point
        assert not below(point), point


@pytest.mark.soak
def test_noise_of_half_the_scale_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(scale: Any, size: int | None = None) -> Any:
        return discrete_laplace(scale / 2, size=size)

    monkeypatch.setattr(laplace, "discrete_laplace", half)
    [point] = differencing(epsilons=(1.0,), firms=3000, people=6).curve
    assert above(point)


def test_who_asks_twice_gets_less_than_who_asks_once(difference: AttackResult) -> None:
    """False alarm below 1e-9: at epsilon 1 the two rates are .731 and .60, each of 3,000 firms."""
    twice = dict(points_of(difference.pictures[0], "who asks twice and subtracts, as in the story"))
    once = {point.epsilon: point.rate.share for point in difference.curve}
    assert twice[1.0] < once[1.0]


def test_a_salary_is_exact_from_exact_averages_and_nowhere_near_from_ours(difference: AttackResult) -> None:
    """False alarm below 1e-9: with bounds of 200,000 the noise is some 100,000, medians of 3,000 firms."""
    facts = dict(difference.facts)
    assert facts["salary from two exact averages"].startswith("right to the unit in 100.0%")
    errors = dict(points_of(difference.pictures[1], "from two averages of this system"))
    [guess, _] = points_of(difference.pictures[1], "guessing the usual salary")
    assert errors[1.0] > guess[1]


def test_ones_own_table(tmp_path: Any) -> None:
    """A table of one's own: naive answers tell all; false alarm of the bound's test 1e-10."""
    frame = pd.DataFrame({"sick": [True, False, False, True] * 10, "age": range(40)})
    path = tmp_path / "staff.parquet"
    frame.to_parquet(path)
    for data in (frame, path):
        found = differencing(data, trait="sick", epsilons=(1.0,), trials=20)
        assert found.naive.share == 1.0
        assert not above(found.curve[0])
        assert "sick" in found.success


@pytest.mark.parametrize("attack", [differencing, averaging])
def test_bad_tables_are_refused_with_a_hint(attack: Any) -> None:
    frame = pd.DataFrame({"sick": [True, True], "age": [30, 41], "name": ["a", "b"]})
    for trait, about in ((None, "which column"), ("sick", "same for everyone"), ("age", "true and false")):
        with pytest.raises(InvalidArgument, match=about):
            attack(frame, trait=trait)
    with pytest.raises(InvalidArgument, match="no column"):
        attack(frame, trait="ill")


# -- refusing ------------------------------------------------------------------------------------


def test_an_auditor_never_tells_a_value_and_its_refusals_do() -> None:
    """Whatever it answers, two people may have every value it told; yet a refusal names one."""
    auditor = MaxAuditor([10, 20, 30, 40])
    assert auditor.largest([0, 1, 2, 3]) == 40
    assert auditor.largest([0, 1, 3]) == 40
    assert auditor.largest([0, 1]) is None  # else 40 would be the fourth's
    assert auditor.largest([3]) is None
    assert auditor.largest([1, 3]) == 40
    assert auditor.largest([0, 3]) is None  # who has 40 is in {1, 3}, and in {0, 3}: then the fourth has it


def test_refusals_tell_everything_and_noisy_answers_hardly_anything() -> None:
    """False alarm: 1e-10 for the bound; guesses of 500 threes, of deviation 0.028 at most, come within 0.2 of
    always saying no."""
    found = refusing(epsilons=(0.5,), threes=1000)
    assert found.naive.share == 1.0
    [point] = found.curve
    assert not above(point)
    assert abs(point.rate.share - 2 / 3) < 0.2


# -- averaging -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def average() -> AttackResult:
    return averaging(epsilons=(0.5, 2.0), each=0.5, questions=400, firms=1500, people=4)


def test_patience_pays_where_nobody_keeps_an_account(average: AttackResult) -> None:
    """False alarm below 1e-9: the average of 400 has a standard deviation of 0.14, and 0.5 is needed."""
    assert average.naive.share > 0.99
    path = points_of(average.pictures[0], "noise without an account")
    assert path[0][1] < 0.75 < path[-1][1]


def test_the_budget_ends_it(average: AttackResult) -> None:
    facts = dict(average.facts)
    assert facts["asked of this system, budget 0.5"].startswith("1 answered")
    assert facts["asked of this system, budget 2"].startswith("4 answered")
    for point in average.curve:
        assert not above(point), point


@pytest.mark.soak
def test_an_account_that_forgets_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that charges a fortieth lets the attacker ask forty times as often: the bound is passed."""
    from sfumato.core.rules import PureRule

    real = PureRule.charge
    monkeypatch.setattr(PureRule, "charge", lambda self, event: real(self, event) // 40)
    found = averaging(epsilons=(0.5,), each=0.5, questions=2, firms=1500, people=4)
    assert above(found.curve[0])


def test_averaging_over_ones_own_table() -> None:
    """False alarm below 1e-9: the average of 4,000 has a standard deviation of 0.045, and 0.5 is needed."""
    frame = pd.DataFrame({"sick": [True, False] * 20})
    found = averaging(frame, trait="sick", epsilons=(1.0,), each=0.5, questions=4000, trials=6)
    assert found.naive.share == 1.0
    assert dict(found.facts)["asked of this system, budget 1"].startswith("2 answered")


def test_pictures_are_drawn(difference: AttackResult, average: AttackResult) -> None:
    for finding in (difference, average):
        for picture in finding.pictures:
            assert picture.caption
            assert svg(picture).startswith("<svg")


def test_guesses_of_the_curve_are_counted(difference: AttackResult) -> None:
    assert all(point.rate.trials == 3000 for point in difference.curve)
    assert np.isclose(difference.guess, 0.5)
