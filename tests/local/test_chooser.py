"""The chooser: never more than 1% above the best of the published table, within limits, and it says why."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sfumato.errors import InvalidArgument
from sfumato.local.chooser import choose
from sfumato.local.prefix_tree import PrefixTree
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, SurveyQuestion, Text, YesNo

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0)


def table(epsilon: float, k: int) -> dict[str, float]:
    """Return n * Var at f = 0 of the published protocols, written down anew from their formulas."""
    e, h = math.exp(epsilon), math.exp(epsilon / 2)
    g = round(e) + 1
    found = {
        "response": (e + k - 2) / (e - 1) ** 2,
        "symmetric": h / (h - 1) ** 2,
        "optimised": 4 * e / (e - 1) ** 2,
        "hashing": (e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)),
        "hadamard": ((e + 1) / (e - 1)) ** 2,
    }
    for w in {max(1, math.floor(k / (e + 1))), max(1, math.ceil(k / (e + 1)))}:
        p = w * e / (w * e + k - w)
        q = (p * (w - 1) + (1 - p) * w) / (k - 1)
        found[f"subset {w}"] = q * (1 - q) / (p - q) ** 2
    return found


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 10, 16, 50, 100, 1000, 1024, 5000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_it_is_within_one_percent_of_the_table(epsilon: float, k: int) -> None:
    """Also the best of them if any is longer than a report may be: compared without limits."""
    choice = choose(
        OneAnswer(words="Which?", size=k), epsilon=epsilon, people=1000, message_bits=10**9, seconds=10**9
    )
    chosen = next(one for one in choice.candidates if one.protocol is choice.protocol)
    assert chosen.variance <= 1.01 * min(table(epsilon, k).values())
    assert chosen.protocol.epsilon <= epsilon and chosen.protocol.epsilon == pytest.approx(epsilon, abs=1e-8)
    assert all(
        chosen.message_bits <= one.message_bits
        for one in choice.candidates
        if one.variance <= 1.005 * min(other.variance for other in choice.candidates)
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_numbers_are_within_one_percent_of_the_best_worst_case(epsilon: float) -> None:
    """Duchi, piecewise and hybrid of the published formulas, on [-1, 1]; the tuned ones are below."""
    e, h = math.exp(epsilon), math.exp(epsilon / 2)
    duchi = ((e + 1) / (e - 1)) ** 2
    piecewise = 1 / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)
    mixed = (h + 3) / (3 * h * (h - 1)) + ((e + 1) / (e - 1)) ** 2 / h if epsilon > 0.61 else duchi
    choice = choose(NumberIn(words="How many?", low=-1, high=1), epsilon=epsilon, people=1000)
    chosen = next(one for one in choice.candidates if one.protocol is choice.protocol)
    assert chosen.variance <= 1.01 * min(duchi, piecewise, mixed)


def test_a_long_report_or_a_slow_count_is_left_out_and_said_so() -> None:
    question = OneAnswer(words="Which?", size=100_000)
    free = choose(question, epsilon=3, people=10**6, message_bits=10**9, seconds=10**9)
    short = choose(question, epsilon=3, people=10**6, message_bits=17, seconds=10**9)
    quick = choose(question, epsilon=3, people=10**6, message_bits=10**9, seconds=5)
    assert free.protocol.message_bits > 17 >= short.protocol.message_bits
    by_name = {one.protocol.name: one for one in quick.candidates}
    assert by_name["hashing"].refused == "takes too long to count" and quick.protocol.name != "hashing"
    assert "report too long" in short.explain() and "chosen" in quick.explain()
    with pytest.raises(InvalidArgument, match="limits"):
        choose(question, epsilon=1, people=10, message_bits=3)


@pytest.mark.parametrize(
    "question",
    [
        YesNo(words="Really?"),
        OneAnswer(words="Which?", size=1),
        OneAnswer(words="Which?", size=10_000_000),
        SeveralOf(words="Which?", size=12, most=3),
        SeveralOf(words="Which?", size=5, most=5),
        NumberIn(words="How many?", low="1/3", high=7),
        Text(words="What?", length=6),
    ],
    ids=lambda one: f"{one.kind}-{getattr(one, 'size', '')}",
)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0])
def test_every_question_finds_a_protocol(question: SurveyQuestion, epsilon: float) -> None:
    choice = choose(question, epsilon=epsilon, people=10_000)
    assert choice.protocol.epsilon <= epsilon and choice.protocol.name in choice.explain()


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": 21}, {"people": 0}, {"message_bits": 0}, {"seconds": 0}],
)
def test_bad_limits_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        choose(YesNo(words="Really?"), **{"epsilon": 1, "people": 10, **wrong})


def test_a_text_is_judged_by_the_reports_that_test_it() -> None:
    """Levels that only search say nothing about a share; and the time is that of the search."""
    tree = PrefixTree.from_epsilon(2, octets=6)
    testing = sum(word == 18 for word in tree.words) / len(tree.words)
    assert 0 < testing < tree.lengths.count(18) / len(tree.lengths)
    question = Text(words="What?", length=6)
    variances = {n: choose(question, epsilon=2, people=n).candidates[0].variance for n in (10**3, 10**6)}
    one = float(tree.q * (1 - tree.q) / (tree.p - tree.q) ** 2)
    assert all(variance == pytest.approx(one / testing) for variance in variances.values())
    with pytest.raises(InvalidArgument, match=r"allow \d+ seconds") as refusal:
        choose(question, epsilon=2, people=10**6, seconds=1)
    assert refusal.value.place == "seconds"
