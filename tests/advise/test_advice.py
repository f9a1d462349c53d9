"""Advice: what it proposes holds, what it says is true, and it costs and reads nothing."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.advise import (
    Advice,
    Harm,
    RiskLimit,
    about_delta,
    advise,
    choice_of_budget,
    largest_epsilon,
    publish_whole_records,
    risk_of,
    usual_delta,
)
from sfumato.advise.limits import cheapest_epsilon
from sfumato.analysis.forecast import forecasts
from sfumato.continual.series import period_deviations, total_deviations
from sfumato.core.events import DiscreteLaplace
from sfumato.core.measures import ApproximateDP
from sfumato.errors import InvalidArgument
from sfumato.local import NumberIn, OneAnswer, SeveralOf, Survey, YesNo
from sfumato.local.choices import choice_of_survey
from sfumato.local.stages import TwoStageResponse
from sfumato.session.database import Database
from sfumato.session.marginals import MarginalsQuestion
from sfumato.session.stream import Stream
from sfumato.session.workload import Workload
from tests.advise.trap import Trap, without_data

COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def db() -> Database:
    people = pa.table(
        {
            "who": range(90),
            "region": ["north", "south", "west"] * 30,
            "cost": [float(i % 50) for i in range(90)],
            "day": ["2026-01-01"] * 90,
            "old": [True, False] * 45,
        }
    )
    people = people.set_column(3, "day", people["day"].cast(pa.date32()))
    return sf.connect(
        people,
        name="visits",
        unit="who",
        columns={
            "region": sf.one_of("north", "south", "west"),
            "cost": sf.between(0, 50),
            "old": sf.one_of(True, False),
        },
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=1, delta=1e-6),
    )


@pytest.fixture(scope="module")
def stream(db) -> Stream:
    return db.stream(
        "SELECT COUNT(*) AS n FROM visits", name="daily", by="day", every="day", start="2026-01-01",
        horizon=30, epsilon=0.5,
    )  # fmt: skip


@pytest.fixture(scope="module")
def survey() -> Survey:
    return Survey.plan("cheating", YesNo(words="Have you ever cheated?"), epsilon=1)


def test_advice_spends_nothing_and_reads_no_data(db, stream, survey):
    """Neither the open tables nor the ledger are touched; a release and an advance meet the same trap.

    That opening tables reads no value either is shown on files without values, in tests/cli/test_advise.py.
    """
    blind = replace(without_data(db), ledger=Trap())
    question = blind.sql(COUNT, epsilon=0.5)
    asked = replace(stream, database=blind, question=replace(stream.question, database=blind))
    for advised in (
        blind.advise(people=90, advantage=0.1),
        blind.advise("SELECT AVG(cost) AS c FROM visits", people=90),
        blind.workload([COUNT], epsilon=1).advise(),
        blind.marginals(["region"], ways=1, epsilon=1).advise(),
        question.advise(error=30),
        asked.advise(),
        survey.advise(people=90),
    ):
        assert "nothing was spent" in repr(advised)
    with pytest.raises(AssertionError, match="looked at data"):
        question.release()
    with pytest.raises(AssertionError, match="looked at data"):
        asked.advance("2026-01-02")


def test_the_numbers_are_those_of_the_question(db):
    question = db.sql(COUNT, epsilon=0.5)
    advice = question.advise(people=90, prior=0.1)
    event = question.priced().event
    assert advice.risk == risk_of(event)
    assert advice.family.advantage == risk_of(event, people=4).advantage
    assert [(often, risk.times) for often, risk in advice.year] == [("every week", 52), ("every day", 365)]
    assert advice.alone == risk_of(ApproximateDP(epsilon=0.5, delta=1e-6)).advantage > advice.risk.advantage
    [error] = advice.errors
    assert error.name == "n" and error.said in repr(question)
    now = [point for point in advice.frontier if point.current]
    assert [point.epsilon for point in now] == [Fraction(1, 2)]
    assert now[0].advantage == pytest.approx(advice.risk.advantage, rel=1e-4)
    errors = [point.errors[0].error for point in advice.frontier]
    assert errors == sorted(errors, reverse=True)
    assert "n would be" in advice.at_half() and "times as far off" in advice.at_half()
    record = json.loads(json.dumps(advice.record()))
    assert record["posterior"] == advice.risk.posterior(0.1) and len(record["curve"]) == 101
    assert "1 (now)" not in advice._repr_html_() and "0.5 (now)" in advice._repr_html_()
    assert advice.risk.sentence in repr(advice) and advice.risk.sentence in advice._repr_html_()


def test_a_limit_on_risk_is_kept_with_about_the_smallest_noise(db):
    question = db.sql(COUNT, epsilon=0.5)
    for options, measure, limit in (
        ({"advantage": 0.1}, lambda risk: risk.advantage, 0.1),
        ({"posterior": 0.2, "prior": 0.01}, lambda risk: risk.posterior(0.01), 0.2),
    ):
        advice = question.advise(**options)
        assert measure(advice.risk) <= limit * (1 + 1e-4)
        wider = question.priced(advice.epsilon * Fraction(103, 100))
        assert measure(risk_of(wider.event, keys_delta=wider.keys_delta)) > limit * 0.99
    pure = choice_of_budget(sf.Budget(epsilon=1))
    exact = math.log(0.25 * 99)  # e^epsilon pi / (e^epsilon pi + 1 - pi) = 0.2
    assert 0 <= exact - float(largest_epsilon(pure, RiskLimit(posterior=0.2, prior=0.01))) < 0.01
    exact = math.log(1.1 / 0.9)  # (e^epsilon - 1) / (e^epsilon + 1) = 0.1
    assert 0 <= exact - float(largest_epsilon(pure, RiskLimit(advantage=0.1))) < 0.001


def test_an_error_and_a_limit_together(db):
    question = db.sql(COUNT, epsilon=0.5)
    cheapest = question.within(20).epsilon
    easy = question.advise(advantage=0.3, error=20)
    assert easy.epsilon == cheapest and easy.stated.feasible and "both can be had" in repr(easy)
    hard = question.advise(advantage=0.05, error=5)
    assert not hard.stated.feasible and hard.risk.advantage <= 0.05
    assert "both cannot be had" in hard.stated.said and "Either the error gives" in hard.stated.said
    assert question.advise(error=20).epsilon == cheapest
    with pytest.raises(InvalidArgument, match="the whole budget has no error of its own"):
        db.advise(error=3)


@pytest.mark.parametrize(("funds", "harm"), [(4000.0, 5.0), (100.0, 1.0)])
def test_money_is_the_method_of_hsu_and_others(funds, harm):
    """N (e^epsilon - 1) E within the budget: epsilon is ln(1 + B / (N E)) at most."""
    limit = Harm(people=1000, chance=0.0001, cost=harm * 10_000, funds=funds)
    exact = math.log1p(funds / (1000 * harm))
    found = float(largest_epsilon(choice_of_budget(sf.Budget(epsilon=1)), limit))
    assert 0 <= exact - found < 0.01 * exact


def test_money_may_leave_no_epsilon(db):
    question = db.sql(COUNT, epsilon=0.5)
    poor = Harm(people=100_000, chance=0.01, cost=1000, funds=10_000)
    advice = question.advise(harm=poor, error=5)
    assert not advice.stated.feasible and "people are owed" in advice.stated.said
    with pytest.raises(InvalidArgument, match="no epsilon meets compensation of at most 1 "):
        question.advise(harm=Harm(people=100_000, chance=0.01, cost=1000, funds=1))


def test_delta_is_refused_at_one_in_n_and_proposed_below(db):
    with pytest.raises(InvalidArgument, match="not below 1/n"):
        db.advise(people=1_000_000)
    for people in (1, 90, 20_000, 10**6, 10**9):
        assert usual_delta(people) * people <= 0.1
        assert "no promise" in about_delta(usual_delta(people), people)
    assert "1e-07 is usual, for then it is 0.05" in about_delta(1e-6, 500_000)
    assert "Nobody says how many" in db.advise().delta


def test_publishing_whole_records_counts_as_private_at_a_large_delta():
    """False alarm below 1e-9: a Poisson of mean 400 is within 130. Power: half the chance, or double."""
    found = publish_whole_records(people=1000, delta=0.01, runs=40)
    assert len(found.published) == 40 and abs(sum(found.published) - 400) < 130
    assert "no noise" in str(found) and "(0, 0.01)-private" in str(found)
    with pytest.raises(InvalidArgument, match="draws"):
        publish_whole_records(people=10**8, delta=0.01)


def test_several_questions_are_advised_on_as_a_whole(db):
    asked = [f"SELECT COUNT(*) AS n FROM visits WHERE cost < {at}" for at in (10, 20)]
    workload = db.workload(asked, epsilon=1)
    advice = workload.advise()
    assert advice.risk == risk_of(workload.priced().event)
    assert [one.name for one in advice.errors] == ["q1.n", "q2.n"]
    whole = db.advise(*asked)
    assert whole.errors == advice.errors and whole.risk == risk_of(db.terms)
    assert whole.alone > 3 * whole.risk.advantage
    one = db.advise(COUNT, error=20)
    assert one.epsilon == db.sql(COUNT).within(20).epsilon and "both" not in one.stated.said


def test_tables_and_streams_have_the_errors_that_they_state(db, stream):
    tables = db.marginals(["region"], ways=1, epsilon=0.5)
    advice = tables.advise()
    assert advice.risk == risk_of(tables.priced().event)
    assert [(one.name, one.said) for one in advice.errors] == list(tables.price().errors)
    advice = stream.advise()
    assert advice.risk == risk_of(stream.priced().event) and not advice.year
    beside = stream.baseline()
    for one, times in zip(advice.errors, (beside.ways[0].total, beside.ways[0].period), strict=True):
        assert abs(one.error - times * beside.release[1]) < 1  # in whole units, as intervals are
    question = db.sql(COUNT, epsilon=1, noise="gaussian", keys="selected")
    found = replace(stream, question=question)
    keys_delta = found.priced().keys_delta
    assert keys_delta > 0 and found.advise().risk == risk_of(found.priced().event, keys_delta=keys_delta)


def test_a_survey_has_the_risk_of_one_report(survey):
    advice = survey.advise(people=1000, advantage=0.2)
    assert "which of two answers they gave" in advice.risk.sentence
    assert float(advice.epsilon) == pytest.approx(math.log(1.2 / 0.8), abs=0.01)
    assert 0.05 < survey.advise(people=1000).errors[0].error < 0.1  # 1.96 / sqrt(1000) / tanh(1/2) / 2
    assert [risk.times for _, risk in advice.year] == [52, 365, 1]
    assert advice.year[2][1].advantage == advice.risk.advantage < advice.year[0][1].advantage


def test_a_survey_that_asks_again_has_the_risk_of_a_year(survey):
    """By brute force: k coins of bias e/(1 + e) or its reverse are told apart by how many show heads."""

    def told_apart(draws: int, epsilon: float = 1) -> float:
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        return sum(
            math.comb(draws, k) * max(0.0, p**k * (1 - p) ** (draws - k) - p ** (draws - k) * (1 - p) ** k)
            for k in range(draws + 1)
        )

    yes, one_of = YesNo(words="Today?"), OneAnswer(words="Which?", size=4)
    for question, limits, draws in (
        (yes, {"cap": 3, "every": 7}, 3),
        (yes, {"cap": 500, "every": 30}, 14),  # a year may begin on the last of 30 days
        (yes, {"cap": 5}, 2),  # there are no more values to keep a report of
        (SeveralOf(words="Which?", answers=("a", "b"), most=2), {"cap": 4}, 4),  # sets, so more than two
        (one_of, {"cap": 3}, 3),
    ):
        daily = Survey.plan("daily", question, epsilon=1, **limits)
        choice = choice_of_survey(daily, people=1000)
        year = choice.at(Fraction(1)).risk()
        assert year.advantage == pytest.approx(told_apart(draws), rel=1e-3)
        assert choice.at(Fraction(1)).advantage == pytest.approx(told_apart(draws), rel=1e-3)
        assert f"after {draws} releases" in year.sentence
        assert bool(choice.notes) == ("every" not in limits)
    advice = daily.advise(people=1000)
    assert "when an answer changed is not hidden" in repr(advice)
    assert advice.year[0][1].advantage == pytest.approx(told_apart(1))  # of an answer that never changes
    assert advice.alone == pytest.approx(math.tanh(3 / 2))  # of all three epsilons
    two = TwoStageResponse.from_epsilon(2, first=1, size=2)  # a day's report is a coin of epsilon 1
    choice = choice_of_survey(Survey.plan("two", yes, epsilon=1, protocol=two, cap=2), people=1000)
    found = cheapest_epsilon(choice, 0.0671)
    assert float(found) == pytest.approx(2, rel=0.01)
    assert choice.at(found).advantage == pytest.approx(told_apart(2, float(found)), rel=1e-3)


# -- backwards from an error, by every kind -----------------------------------------------------


@pytest.fixture(scope="module")
def workload(db) -> Workload:
    asked = {f"below{at}": f"SELECT COUNT(*) AS n FROM visits WHERE cost < {at}" for at in (10, 20)}
    return db.workload(asked, epsilon=0.5)


@pytest.fixture(scope="module")
def tables(db) -> MarginalsQuestion:
    return db.marginals(["region", "old"], ways=[1, 2], epsilon=0.5)


@pytest.fixture(scope="module")
def advised(workload) -> Advice:
    return workload.advise(error=30)


def largest(workload: Workload, epsilon: Fraction) -> float:
    errors = replace(workload, epsilon=epsilon).price().errors
    return max(float(said.strip("±").split()[0]) for _, _, said in errors)


def test_the_cheapest_epsilon_of_a_workload_is_for_its_largest_error(db, workload, advised):
    assert largest(workload, advised.epsilon) <= 30 < largest(workload, advised.epsilon * Fraction(99, 100))
    assert all(one.error <= 30 for one in advised.errors)
    several = (COUNT, "SELECT COUNT(*) AS n, AVG(cost) AS c FROM visits")
    with pytest.raises(InvalidArgument, match=r"`q2.c` is not known beforehand: depends on the group's size"):
        db.advise(*several, error=30)
    with pytest.raises(InvalidArgument, match=r"no error is called `q3.n`"):
        db.advise(*several, error={"q3.n": 30})


def test_the_error_of_a_hierarchy_is_that_of_its_worst_level(db):
    levels = "SELECT region, old, COUNT(*) AS n FROM visits GROUP BY ROLLUP(region, old)"
    for options in ({}, {"consistent": True}):
        question = db.sql(levels, epsilon=0.5, **options)
        advice = question.advise(error=40)
        priced = question.priced(advice.epsilon)
        errors = [
            forecasts(priced.boundings[0], priced.costs[0], grouping_set=place)[0].error for place in range(3)
        ]
        assert advice.errors[0].error == max(errors) <= 40
    assert min(errors) < max(errors)
    ranks = db.workload([levels, "SELECT MEDIAN(cost) AS m FROM visits"], epsilon=1, size=90)
    assert "of ranks (95%)" in repr(ranks)
    with pytest.raises(InvalidArgument, match=r"`q2.m` is a share of ranks, and so below 1"):
        ranks.advise(error=40)


def test_questions_that_keep_an_epsilon_are_not_moved_by_that_of_the_workload(db):
    own = db.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.2)
    partly = db.workload({"own": own, "rest": COUNT}, epsilon=0.5)
    with pytest.raises(InvalidArgument, match="no epsilon up to 20 makes the error this small") as refused:
        partly.advise(error=20)
    assert "own.n still has ±" in refused.value.hints[0]
    assert partly.advise().frontier[0].epsilon >= Fraction(1, 4)  # an eighth is below what `own` costs
    settled = db.workload({"own": own}, epsilon=None)
    [point] = settled.advise().frontier
    assert point.current and point.epsilon == settled.priced().epsilon


def test_the_cheapest_epsilon_of_tables_is_that_of_their_release(tables):
    """`within` divides noise for the error, and finds its epsilon in another way."""
    for error, named in (
        (20, 20),
        ({"region": 10, "region x old": 40}, {"region": 10, ("region", "old"): 40}),
    ):
        advice, own = tables.advise(error=error), tables.within(named)
        assert 1 <= float(advice.epsilon / own.epsilon) < 1.006  # to three digits
        wanted = (
            error if isinstance(error, dict) else dict.fromkeys((one.name for one in advice.errors), error)
        )
        assert all(one.error <= wanted.get(one.name, math.inf) for one in advice.errors)
    with pytest.raises(InvalidArgument, match="no error is called `cost`"):
        tables.advise(error={"cost": 3})
    assert "both cannot be had" in tables.advise(error=3, advantage=0.1).stated.said


def test_the_cheapest_epsilon_of_a_stream_is_for_its_worst_period(db, stream):
    """The noise of every total, by brute force: rows of A C^-1, with z of the deviation that is drawn."""
    advice = stream.advise(error=100)

    def worst(epsilon: Fraction) -> float:
        priced = stream.priced(epsilon)
        [(name, law)] = priced.laws.items()
        column = np.array(priced.factorisation.coefficients) / 2**24
        c = np.array([[column[i - j] if i >= j else 0.0 for j in range(30)] for i in range(30)])
        totals = np.tril(np.ones((30, 30))) @ np.linalg.inv(c)
        return 1.96 * law.deviation / priced.steps(name) * float(np.linalg.norm(totals, axis=1).max())

    assert worst(advice.epsilon) <= 100.5 and worst(advice.epsilon * Fraction(99, 100)) > 99.5
    assert [one.name for one in advice.errors] == ["n, worst running total", "n, worst day"]
    assert advice.errors[0].error == 100 > advice.errors[1].error
    hard = stream.advise(error=10, advantage=0.05).stated.said
    assert "both cannot be had" in hard and "above the 1 of the whole budget" in hard
    endless = db.stream(
        "SELECT COUNT(*) AS n, AVG(cost) AS c FROM visits", name="ever", by="day", every="day",
        start="2026-01-01", design=30, epsilon=0.5,
    )  # fmt: skip
    name = "n, worst running total of the first 30 days"
    assert endless.advise(error={"n": 100}).epsilon == cheapest_epsilon(endless.choice(), {name: 100})
    with pytest.raises(InvalidArgument, match="`c, worst running total of the first 30 days` is not known"):
        endless.advise(error=100)
    errors = endless.choice(size=200).at(Fraction(4)).errors
    known = {one.name.removesuffix(" of the first 30 days"): one.error for one in errors}
    priced = endless.priced(4)
    for what, find in (("running total", total_deviations), ("day", period_deviations)):
        every = [
            forecasts(priced.bounding, priced.cost_of_sum(float(off)), size=200 * (at if "t" in what else 1))
            for at, off in enumerate(find(priced.factorisation, 30), 1)
        ]
        for place, column in enumerate("nc"):
            assert known[f"{column}, worst {what}"] == max(one[place].error for one in every)


def test_the_cheapest_epsilon_of_a_survey_is_for_its_worst_answer(survey):
    """A share's report is a coin of bias q + f (p - q); of a mean, half of the people are at either end."""
    found = float(cheapest_epsilon(choice_of_survey(survey, people=1000), 0.1))

    def worst(epsilon: float) -> float:
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        coins = [p * f + (1 - p) * (1 - f) for f in (0, 0.25, 0.5, 0.75, 1)]
        return 1.96 * max(math.sqrt(r * (1 - r) / 1000) for r in coins) / (2 * p - 1)

    assert worst(found) <= 0.1 < worst(found * 0.99)
    with pytest.raises(InvalidArgument, match="no epsilon up to 20"):
        survey.advise(people=10, error=0.1)
    age = NumberIn(words="How old?", low=0, high=110)
    outcome = choice_of_survey(Survey.plan("age", age, epsilon=0.5), people=1000).at(Fraction(1, 2))
    odds = math.exp(0.5)  # Duchi: a report is one of two ends, at (e^epsilon + 1)/(e^epsilon - 1) half-widths
    assert outcome.errors[0].error == pytest.approx(1.96 * 55 * (odds + 1) / (odds - 1) / 1000**0.5, rel=1e-3)


def test_the_frontier_is_around_what_is_advised(db, workload, advised):
    advice = advised
    factors = [float(point.epsilon / advice.epsilon) for point in advice.frontier if not point.current]
    assert factors == [0.25, 0.5, 1, 2, 4]
    assert [point.epsilon for point in advice.frontier if point.current] == [workload.epsilon]
    assert [point.epsilon for point in advice.frontier if point.advised] == [advice.epsilon]
    assert f"at half of it, epsilon {float(advice.epsilon / 2):.4g}" in advice.at_half()
    assert "<- advised\n" in repr(advice) and "<- now\n" in repr(advice)
    many = db.workload(
        [f"SELECT COUNT(*) AS n FROM visits WHERE cost < {at}" for at in range(1, 6)], epsilon=1
    )
    assert "the largest error ±" in repr(many.advise()) and "(now)" in many.advise()._repr_html_()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prior": 0}, "certainty"),
        ({"prior": 1}, "certainty"),
        ({"prior": 2}, "prior"),
        ({"posterior": 0.01}, "no epsilon meets"),
        ({"posterior": 0.5, "prior": 1}, "certainty"),
        ({"advantage": 0}, "no epsilon meets"),
        ({"advantage": 1e-9}, "no epsilon meets"),
        ({"advantage": -1}, "advantage"),
        ({"people": 0}, "people"),
        ({"family": 0}, "people"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(db, options, said):
    with pytest.raises(InvalidArgument, match=said):
        db.advise(**options)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cost": -1}, "cost must not be negative"),
        ({"funds": -1}, "funds must not be negative"),
        ({"chance": 0}, "never happens"),
        ({"people": 0}, "people"),
    ],
)
def test_costs_that_make_no_sense_are_refused(fields, said):
    with pytest.raises(InvalidArgument, match=said):
        Harm(**{"people": 10, "chance": 0.1, "cost": 1, "funds": 1, **fields})
    with pytest.raises(InvalidArgument, match="advantage or on the posterior"):
        RiskLimit()
    with pytest.raises(InvalidArgument, match="needs a prior"):
        RiskLimit(posterior=0.2)


def test_a_question_that_is_free_has_nothing_to_choose(db):
    with pytest.raises(InvalidArgument, match="for free"):
        db.sql(COUNT, free=True).advise()
    assert advise(choice_of_budget(sf.Budget(epsilon=1))).delta == "delta 0: the promise never fails"
    assert risk_of(DiscreteLaplace(scale=2, sensitivity=1)).advantage > 0
