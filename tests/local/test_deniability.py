"""What respondents are told is what Bayes computes from the protocol's exact matrix."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from sfumato.errors import InvalidArgument
from sfumato.local.ballots import SubsetSelection
from sfumato.local.deniability import Deniability, told
from sfumato.local.means import Duchi
from sfumato.local.odds import odds_of
from sfumato.local.piecewise import Piecewise
from sfumato.local.questions import OneAnswer, YesNo
from sfumato.local.response import KaryResponse
from sfumato.local.stages import TwoStageResponse
from sfumato.local.survey import Survey

PRIORS = (Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10))

Matrix = dict[int, dict[Any, Fraction]]


def response_matrix(size: int, odds: Fraction) -> Matrix:
    """Return the law of every report: the truth weighs the odds, everything else 1."""
    weights = {
        own: {value: odds if value == own else Fraction(1) for value in range(size)} for own in range(size)
    }
    return {own: _normalised(law) for own, law in weights.items()}


def subset_matrix(size: int, odds: Fraction, chosen: int) -> Matrix:
    sets = list(itertools.combinations(range(size), chosen))
    weights = {own: {held: odds if own in held else Fraction(1) for held in sets} for own in range(size)}
    return {own: _normalised(law) for own, law in weights.items()}


def duchi_matrix(odds: Fraction) -> Matrix:
    """The two ends of the range are the numbers that are told apart best."""
    truth = odds / (odds + 1)
    return {0: {0: truth, 1: 1 - truth}, 1: {0: 1 - truth, 1: truth}}


def again(matrix: Matrix, times: int) -> Matrix:
    """Return the law of several independent reports."""
    return {
        own: {
            reports: math.prod((law[one] for one in reports), start=Fraction(1))
            for reports in itertools.product(law, repeat=times)
        }
        for own, law in matrix.items()
    }


def posteriors(matrix: Matrix, prior: Fraction) -> Iterator[Fraction]:
    """Yield what an observer believes of answer 0 after each report, for many beliefs about the rest."""
    others = [own for own in matrix if own != 0]
    for weights in itertools.product(range(4), repeat=len(others)):
        if not sum(weights):
            continue
        belief = {
            own: (1 - prior) * weight / sum(weights) for own, weight in zip(others, weights, strict=True)
        }
        for report in matrix[0]:
            own = prior * matrix[0][report]
            yield own / (own + sum(belief[other] * matrix[other][report] for other in others))


def _normalised(law: dict[Any, Fraction]) -> dict[Any, Fraction]:
    return {report: weight / sum(law.values()) for report, weight in law.items()}


COIN, ODDS = Fraction(3), odds_of(1)
PROTOCOLS = [
    (KaryResponse.coin_toss(), response_matrix(2, COIN)),
    (KaryResponse(size=2, odds=ODDS), response_matrix(2, ODDS)),
    (KaryResponse(size=4, odds=ODDS), response_matrix(4, ODDS)),
    (SubsetSelection(size=4, odds=ODDS, chosen=2), subset_matrix(4, ODDS, 2)),
    (Duchi(low=Fraction(0), high=Fraction(1), odds=ODDS), duchi_matrix(ODDS)),
]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize(("protocol", "matrix"), PROTOCOLS, ids=lambda it: getattr(it, "name", ""))
def test_no_belief_moves_further_and_some_moves_that_far(
    protocol: Any, matrix: Matrix, prior: Fraction
) -> None:
    beliefs = list(posteriors(matrix, prior))
    found = told(protocol, prior)
    assert max(beliefs) == found.most()
    assert min(beliefs) == found.least()


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_several_reports_multiply(prior: Fraction) -> None:
    for protocol, matrix in PROTOCOLS[:2]:
        beliefs = list(posteriors(again(matrix, 3), prior))
        found = told(protocol, prior, times=3)
        assert max(beliefs) == found.most() and min(beliefs) == found.least()
        assert found.epsilon == pytest.approx(3 * protocol.epsilon, rel=1e-15)


@pytest.mark.parametrize("share", PRIORS, ids=str)
def test_doubt_is_what_bayes_says_of_a_report_that_supports_an_answer(share: Fraction) -> None:
    """Among people of whom a share gives answer 0, and the rest the others in any proportion."""
    for protocol, matrix in PROTOCOLS[:4]:
        for weights in ([1] * (protocol.size - 1), range(1, protocol.size)):
            rest = {own: (1 - share) * weight / sum(weights) for own, weight in enumerate(weights, 1)}
            holds = (
                (lambda report: report == 0) if protocol.name == "response" else (lambda report: 0 in report)
            )
            own = share * sum(chance for report, chance in matrix[0].items() if holds(report))
            others = sum(
                rest[other] * chance
                for other in rest
                for report, chance in matrix[other].items()
                if holds(report)
            )
            assert told(protocol).doubt(share) == others / (own + others)
            assert told(protocol, share).doubt() == others / (own + others)


def test_a_coin_toss_in_numbers_everybody_knows() -> None:
    coin = told(KaryResponse.coin_toss())
    assert coin.odds == 3
    assert coin.doubt(Fraction(1, 10)) == Fraction(3, 4)
    assert coin.doubt(0) == 1 and coin.doubt(1) == 0


def test_epsilon_one_is_the_textbooks_73_percent() -> None:
    found = told(KaryResponse.from_epsilon(1, size=2))
    assert float(found.most()) == pytest.approx(0.7310585786, abs=1e-9)
    assert float(told(found.protocol, 0.1).most()) == pytest.approx(0.2319693, abs=1e-6)
    assert float(told(found.protocol, 0.01).most()) == pytest.approx(0.0267229, abs=1e-6)
    assert found.most() < Fraction(math.e / (1 + math.e))


# -- in words ----------------------------------------------------------------------------------


def test_the_sentence_of_a_coin_toss() -> None:
    assert told(KaryResponse.coin_toss()).sentence == (
        'If "yes" is reported, the chance that it is not your own is 25% where 50% of all people '
        "would give it, and whatever is reported, the odds that anybody gives your answer can change by no "
        "more than a factor of 3: from 50% to at most 75%, or down to at least 25%."
    )


def test_two_stages_are_told_by_what_all_days_give_away() -> None:
    """Not by one day's report, of which a patient observer sees many."""
    kept = TwoStageResponse(size=2, permanent=Fraction(3), instant=Fraction(3))
    survey = Survey.plan("s", YesNo(words="Yes?"), epsilon=1, protocol=kept, cap=2, every=7)
    assert told(kept).odds == 3 > kept.max_ratio
    assert "factor of 9 over all of your 2 reports" in told(survey).sentence


def test_what_is_kept_by_value_is_not_said_to_hide_changes() -> None:
    """Of lives that change at other times there is no bound: nothing is said of all reports together."""
    coin = KaryResponse.coin_toss()
    survey = Survey.plan("s", YesNo(words="Yes?"), epsilon=1.1, protocol=coin, cap=3)
    sentence = told(survey).sentence
    assert "factor of 3:" in sentence and "reports together" not in sentence
    assert sentence.endswith("for as long as it stays the same; that it changed, and when, can be seen.")


@pytest.mark.parametrize("protocol", [Piecewise.tuned(1), SubsetSelection.from_epsilon(1, size=9)])
def test_the_sentence_of_any_other_protocol_rounds_against_the_collector(protocol: Any) -> None:
    found = told(protocol)
    assert found.sentence == (
        "Whatever is reported, the odds that anybody gives your answer can change by no more than a factor "
        "of 2.72: from 50% to at most 73.2%, or down to at least 26.8%."
    )
    assert isinstance(protocol, SubsetSelection) or found.doubt() is None


def test_only_a_question_of_yes_or_no_speaks_of_yes() -> None:
    coin = KaryResponse.coin_toss()
    yes = Survey.plan("s", YesNo(words="Yes?"), epsilon=1.1, protocol=coin)
    other = Survey.plan("s", OneAnswer(words="Which?", answers=("tea", "coffee")), epsilon=1.1, protocol=coin)
    assert '"yes"' in told(yes).sentence and '"yes"' not in told(other).sentence


def test_a_survey_with_a_cap_adds_up() -> None:
    coin = KaryResponse.coin_toss()
    once = Survey.plan("s", YesNo(words="Yes?"), epsilon=1.1, protocol=coin)
    often = Survey.plan("s", YesNo(words="Yes?"), epsilon=1.1, protocol=coin, cap=3, every=1)
    assert told(once).times == 1
    assert told(often).most() == Fraction(27, 28)
    assert told(often).epsilon == pytest.approx(3 * math.log(3))
    assert "all of your 3 reports" in told(often).sentence and "factor of 27" in told(often).sentence
    assert told(often, times=1).most() == Fraction(3, 4)


def test_beyond_all_measure_nothing_is_promised() -> None:
    found = told(KaryResponse.from_epsilon(20, size=2), times=10**12)
    assert (found.most(), found.least()) == (1, 0)
    assert "to at most 100%" in found.sentence and "at least 0%" in found.sentence
    assert "10^" in found.sentence
    near = told(KaryResponse.from_epsilon(20, size=2), times=5)
    assert near.most() < 1 and near.least() > 0


def test_one_answer_tells_nothing() -> None:
    found = told(KaryResponse.from_epsilon(1, size=1))
    assert (found.odds, found.epsilon, found.most(), found.least()) == (1, 0, Fraction(1, 2), Fraction(1, 2))
    assert "factor of 1:" in found.sentence


def test_the_smallest_epsilon_still_rounds_up() -> None:
    assert "factor of 1.01" in told(KaryResponse.from_epsilon(1e-6, size=2)).sentence


@pytest.mark.parametrize("prior", [0, 1, -0.1, 1.5, math.nan, "half", True])
def test_a_prior_that_cannot_change_is_refused(prior: Any) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        told(KaryResponse.coin_toss(), prior)
    assert refusal.value.place == "prior"


@pytest.mark.parametrize("times", [0, -1, 1.5, True])
def test_times_are_counted(times: Any) -> None:
    with pytest.raises(InvalidArgument):
        told(KaryResponse.coin_toss(), times=times)


def test_only_protocols_and_surveys_can_be_told_about() -> None:
    with pytest.raises(InvalidArgument):
        told("survey.toml")  # type: ignore[arg-type]
    assert isinstance(told(Duchi.from_epsilon(1)), Deniability)
