"""What a k-anonymous table tells all the same; and this system, asked by the same attacker."""

from __future__ import annotations

import pandas as pd
import pytest

from sfumato.anonymity import Goal, reach
from sfumato.attacks.attack_result import AttackResult
from sfumato.attacks.homogeneity import homogeneity
from sfumato.errors import InvalidArgument
from sfumato.plots import Bars
from tests.attacks.chances import above, below


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return homogeneity(people=12_000, ks=(2, 5), epsilons=(0.5, 2.0), victims=800)


def test_who_knows_the_others_of_a_class_knows_everyone(found: AttackResult) -> None:
    assert found.naive.share == 1.0


def test_through_this_system_that_attacker_meets_the_bound_and_no_more(found: AttackResult) -> None:
    """False alarm 1e-10 each. Power: with 450 people, as usual, a rate that is off by 0.17 is seen.

    How many there are follows from the commonest of eight illnesses, which at least one in eight has: of a
    thousand classes 128 or more, so that fewer than 100 coins are served with probability below 1e-10.
    """
    for point in found.curve:
        assert point.rate.trials >= 100
        assert not above(point), point
        assert not below(point), point


def test_more_knowledge_tells_more_and_larger_classes_less(found: AttackResult) -> None:
    """False alarm below 1e-9: shares of 6,000 people; half of the twos are alike, a fifth of the fives."""
    alone, knowing, two = (dict(mark.bars) for mark in found.pictures[0].marks)  # type: ignore[union-attr]
    assert all(isinstance(mark, Bars) for mark in found.pictures[0].marks)
    assert alone["k = 2"] > alone["k = 5"]
    for k in ("k = 2", "k = 5"):
        assert alone[k] <= knowing[k]
        assert alone[k] < two[k]


def test_classes_of_one_value_are_found_exactly() -> None:
    """Two clusters of ages: one all ill, one mixed. k = 4 keeps them apart, so the first is known."""
    ages = [20, 21, 22, 23, 70, 71, 72, 73] * 10
    ill = ["flu"] * 4 + ["flu", "cold", "flu", "cold"]
    frame = pd.DataFrame({"age": ages, "ill": ill * 10})
    made = reach(frame, ["age"], Goal(k=40), sensitive="ill")
    assert made.after.classes == 2
    assert made.after.diversity[0].homogeneous == 0.5


def test_bad_input_is_refused() -> None:
    frame = pd.DataFrame({"age": range(200), "ill": ["flu"] * 200})
    with pytest.raises(InvalidArgument, match="same for everyone"):
        homogeneity(frame, quasi=["age"], secret="ill", ks=(2,))
    with pytest.raises(InvalidArgument, match="no row has this value"):
        homogeneity(frame.assign(ill=["flu", "cold"] * 100), quasi=["age"], secret="ill", value="x", ks=(2,))
    with pytest.raises(InvalidArgument, match="too few rows"):
        homogeneity(frame.head(5), quasi=["age"], secret="ill", ks=(2,))
    with pytest.raises(InvalidArgument, match="no column"):
        homogeneity(frame, quasi=["agee"], secret="ill", ks=(2,))
