"""Three models of trust keep one promise, err as their formulas say, and are put into the right words."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local.ballots import SubsetSelection
from sfumato.local.compare import compare
from sfumato.local.comparison import OWNER, Comparison, MeasuredError
from sfumato.local.means import Duchi
from sfumato.local.people import People, invent_ages, invent_answers, read_answers, read_numbers
from sfumato.local.piecewise import Hybrid, Piecewise
from sfumato.local.response import KaryResponse
from sfumato.local.shuffling import central_epsilon
from sfumato.local.trust import MODELS, MeanAsked, SharesAsked
from sfumato.plots import Line, Points, svg

FALSE_ALARM = 1e-9

NUMBERS = MeanAsked(
    values=np.tile([10.0, 30.0, 40.0, 55.5, 90.0, 100.0], 50), low=Fraction(0), high=Fraction(110)
)
ANSWERS = SharesAsked(values=np.repeat([0, 1, 2], [150, 100, 50]), size=3)
MANY = SharesAsked(values=np.repeat(np.arange(60), 5), size=60)


# -- one promise --------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 2)])
def test_replacing_a_number_costs_the_trusted_collector_exactly_epsilon(epsilon: Fraction) -> None:
    """The count stays; the sum around the middle moves by the whole range, in units of its grid."""
    question = NUMBERS.question(NUMBERS.open(), epsilon)
    [answer], cost = question.priced().boundings[0].answers, question.priced().costs[0]
    rows, total = (cost.noise(measure) for measure in answer.measures)
    assert total.law.name == rows.law.name == "laplace"
    moved = (NUMBERS.high - NUMBERS.low) / answer.scale
    assert moved == 2 * total.event.sensitivity
    assert moved / total.law.parameter == epsilon
    assert cost.epsilon == epsilon and cost.delta == 0


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 2)])
def test_replacing_an_answer_costs_the_trusted_collector_exactly_epsilon(epsilon: Fraction) -> None:
    """Two counts move by one each."""
    [noise] = ANSWERS.question(ANSWERS.open(), epsilon).priced().costs[0].noises
    assert noise.law.name == "laplace" and noise.event.sensitivity == 1
    assert 2 / noise.law.parameter == epsilon


@pytest.mark.parametrize("asked", [NUMBERS, ANSWERS, MANY], ids=["mean", "response", "subset"])
@pytest.mark.parametrize("epsilon", [0.5, 1])
def test_reports_keep_the_promise_and_use_it_up(asked: Any, epsilon: float) -> None:
    ways = asked.ways(epsilon, 1e-6, asked.open())
    n = len(asked.values)
    assert ways["local"].epsilon <= epsilon
    assert ways["local"].epsilon == pytest.approx(epsilon, rel=1e-8)
    shuffled = ways["shuffled"]
    assert central_epsilon(shuffled, n, 1e-6) <= epsilon
    more = type(shuffled).from_epsilon(shuffled.epsilon * 1.001, **_domain(asked))
    assert central_epsilon(more, n, 1e-6) > epsilon


def test_without_delta_shuffled_is_local() -> None:
    ways = NUMBERS.ways(1, 0, NUMBERS.open())
    assert ways["shuffled"] == ways["local"]


def _domain(asked: Any) -> dict[str, Any]:
    return {"low": 0, "high": 110} if asked is NUMBERS else {"size": asked.size}


# -- formulas, exactly ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Duchi.from_epsilon, Piecewise.from_epsilon, Hybrid.tuned])
def test_the_error_of_reported_numbers_is_the_average_of_their_variances(make: Any) -> None:
    protocol = make(2, low=0, high=110)
    values, n = NUMBERS.values, len(NUMBERS.values)
    wanted = sum(protocol.variance(value, 1) for value in values.tolist()) / n**2
    assert NUMBERS.error(protocol) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kind", [KaryResponse, SubsetSelection])
def test_the_error_of_reported_answers_is_the_average_over_answers(kind: Any) -> None:
    protocol = kind.from_epsilon(1, size=3)
    shares = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    wanted = sum(protocol.variance(share, 300) for share in shares) / 3
    assert ANSWERS.error(protocol) == pytest.approx(wanted, rel=1e-12)


def test_the_better_protocol_is_taken() -> None:
    """K-ary response beats subset selection where there are few answers, and loses where there are many."""
    assert ANSWERS.ways(3, 0, ANSWERS.open())["local"].name == "response"
    assert MANY.ways(1, 0, MANY.open())["local"].name == "subset"


# -- formulas, measured ------------------------------------------------------------------------


def _sum_of_squares_limits(repetitions: int, proxy: float, variance: float) -> tuple[float, float]:
    """Return what a sum of squares of centred, sub-Gaussian, independent errors stays between.

    Above: Hsu, Kakade and Zhang (2012), from the variance proxy. Below: Maurer (2003), from a fourth
    moment of at most three squared variances. Each is passed with a chance of at most FALSE_ALARM / 2.
    """
    t = math.log(2 / FALSE_ALARM)
    above = proxy * (repetitions + 2 * math.sqrt(repetitions * t) + 2 * t)
    below = variance * (repetitions - math.sqrt(2 * 3 * repetitions * t))
    return below, above


@pytest.mark.parametrize("copies", [1, 16])
def test_reported_numbers_err_as_predicted(copies: int) -> None:
    """One bit a person, 1,500 repetitions, fixed people. False alarm 1e-9, proved and not approximate.

    Duchi's report is worth +-a on [-1, 1]: a proxy of a^2 by Hoeffding's lemma, and its coins have chances
    within (0.211, 0.789), where a coin's fourth cumulant is negative. Power: an error that is off by a
    factor of 1.3 in the variance upwards, or 0.6 downwards, is caught with near certainty; the two sizes
    tell a slope of -1/2 from one of -1.
    """
    values = np.tile(NUMBERS.values, copies)
    asked = MeanAsked(values=values, low=NUMBERS.low, high=NUMBERS.high)
    protocol = Duchi.from_epsilon(0.5, low=0, high=110)
    repetitions, predicted = 1500, asked.error(protocol)
    high = float(protocol.odds / (protocol.odds + 1))
    assert 0.211 < 1 - high < high < 0.789
    proxy = float(protocol.largest_report) ** 2 * 55**2 / len(values)
    below, above = _sum_of_squares_limits(repetitions, proxy, predicted)
    assert below <= asked.squared_errors(protocol, repetitions).sum() <= above
    assert below > 0.6 * predicted * repetitions and above < 1.35 * predicted * repetitions


def test_reported_answers_err_as_predicted() -> None:
    """Yes or no, 1,500 repetitions. False alarm 1e-9, proved as above; power alike."""
    asked, repetitions = SharesAsked(values=np.repeat([0, 1], [300, 100]), size=2), 1500
    protocol = KaryResponse.from_epsilon(0.5, size=2)
    predicted = asked.error(protocol)
    proxy = 1 / (4 * float(protocol.p - protocol.q) ** 2 * 400)
    below, above = _sum_of_squares_limits(repetitions, proxy, predicted)
    assert below <= asked.squared_errors(protocol, repetitions).sum() <= above


def _check_exceedances(hits: int, trials: int, chance: float) -> None:
    assert stats.binom.cdf(hits, trials, chance) > FALSE_ALARM / 2
    assert stats.binom.sf(hits - 1, trials, chance) > FALSE_ALARM / 2


@pytest.mark.soak
def test_the_collectors_counts_err_as_predicted() -> None:
    """Through the engine: how many noises reach a size is binomial, of an exact chance. False alarm 1e-9.

    Power: noise of half or twice the scale is caught with a chance above 99%.
    """
    asked = SharesAsked(values=np.repeat([0, 1, 2], [30, 20, 10]), size=3)
    question = asked.question(asked.open(), Fraction(1, 10))
    found = np.array([asked.answer(question) for _ in range(200)])
    noise = np.rint((found - asked.truth) * 60)
    fall, least = math.exp(-1 / 20), 14
    _check_exceedances(int((np.abs(noise) >= least).sum()), noise.size, 2 * fall**least / (1 + fall))
    variance = sum(m * m * fall ** abs(m) * (1 - fall) / (1 + fall) for m in range(-2000, 2001))
    assert asked.error(question) == pytest.approx(variance / 60**2, rel=1e-9)


@pytest.mark.soak
def test_the_collectors_mean_errs_as_predicted() -> None:
    """Through the engine, where the average is the middle of the range: the noise is the sum's, over n.

    False alarm 1e-9: the count's noise changes a quotient by at most a hundredth but with chance 1e-13,
    and the chance by less than the hundredth that is left on either side. Power: noise of half or
    twice the scale is caught with a chance above 97%.
    """
    asked = MeanAsked(values=np.tile([0.0, 110.0], 5000), low=Fraction(0), high=Fraction(110))
    question = asked.question(asked.open(), 1)
    errors = np.array([asked.answer(question)[0] for _ in range(400)]) - 55
    scale = 110 / 10_000  # of the mean: the range over n epsilon
    assert asked.error(question) == pytest.approx(2 * scale**2, rel=1e-6)
    hits = int((np.abs(errors) > scale * math.log(2)).sum())
    assert stats.binom.cdf(hits, 400, 0.49) > FALSE_ALARM / 2
    assert stats.binom.sf(hits - 1, 400, 0.51) > FALSE_ALARM / 2


def test_far_from_the_middle_the_counts_noise_tells() -> None:
    """All at one end: the deviation of the count's noise times half of the range is added."""
    ends = MeanAsked(values=np.full(10_000, 110.0), low=Fraction(0), high=Fraction(110))
    question = ends.question(ends.open(), 1)
    fall = math.exp(-1 / 2)
    count = sum(m * m * fall ** abs(m) * (1 - fall) / (1 + fall) for m in range(-200, 201))
    wanted = (2 * 110**2 + 55**2 * count) / 10_000**2
    assert ends.error(question) == pytest.approx(wanted, rel=1e-6)


def test_nothing_is_predicted_of_a_mean_of_few() -> None:
    few = MeanAsked(values=np.array([3.0, 4.0]), low=Fraction(0), high=Fraction(10))
    assert few.error(few.question(few.open(), 1)) is None


# -- the whole comparison ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(
        answers=["bus", "car", "walk"], people=1600, repetitions=8, sizes=[25, 200], epsilons=[0.1, 1, 4]
    )


def test_every_model_is_measured_everywhere(found: Comparison) -> None:
    assert [(one.epsilon, one.model) for one in found.by_epsilon] == [
        (epsilon, model) for epsilon in (0.1, 1, 4) for model in MODELS
    ]
    assert [(one.people, one.model) for one in found.by_people] == [
        (people, model) for people in (25, 200, 1600) for model in MODELS
    ]
    assert all(one.low <= one.error <= one.high for one in (*found.by_epsilon, *found.by_people))
    assert found.at("local") in found.by_people


def test_predicted_slopes_are_those_of_theory(found: Comparison) -> None:
    """A trusted collector's error is proportional to 1/n, that of reports to 1/root(n); shuffled between."""
    few, all_ = ({one.model: one for one in found.by_people[place : place + 3]} for place in (0, 6))
    slopes = {
        model: math.log(all_[model].predicted / few[model].predicted) / math.log(1600 / 25)
        for model in MODELS
    }
    assert slopes["central"] == pytest.approx(-1, abs=1e-9)
    assert slopes["local"] == pytest.approx(-0.5, abs=1e-9)
    assert -1 < slopes["shuffled"] < -0.5


def test_trust_is_worth_something_everywhere(found: Comparison) -> None:
    for place in range(0, 9, 3):
        central, shuffled, local = (one.predicted for one in found.by_epsilon[place : place + 3])
        assert central < shuffled <= local
    assert found.one_in("central") == pytest.approx(1)
    assert 1 <= found.one_in("shuffled") < found.one_in("local")


def _made(rmse: Any, *, spread: float = 25.0, people: int = 1000) -> Comparison:
    """Make a comparison from a function (model, epsilon, n) -> error."""

    def one(model: Any, epsilon: float, n: int) -> MeasuredError:
        error = rmse(model, epsilon, n)
        return MeasuredError(
            model=model,
            epsilon=epsilon,
            people=n,
            error=error,
            low=error / 1.2,
            high=error * 1.2,
            predicted=error,
        )

    return Comparison(
        what="x", people=people, epsilon=1.0, delta=1e-6, repetitions=9, spread=spread,
        by_epsilon=tuple(one(model, epsilon, people) for epsilon in (0.25, 1.0, 4.0) for model in MODELS),
        by_people=tuple(one(model, 1.0, n) for n in (10, 100, people) for model in MODELS),
    )  # fmt: skip


def test_slopes_are_fitted_through_logarithms() -> None:
    powers = {"central": -1.0, "shuffled": -0.8, "local": -0.5}
    found = _made(lambda model, epsilon, n: 7 * n ** powers[model] / epsilon)
    assert {one.model: one.value for one in found.slopes} == pytest.approx(powers)
    assert [one.value for one in found.epsilon_slopes] == pytest.approx([-1] * 3)
    each = math.log(1.2) / 1.959963984540054
    wanted = (
        each / math.sqrt(2) / math.log(10)
    )  # least squares at -1, 0, 1: the root of the sum of squares is 1/root(2)
    assert found.slopes[0].deviation == pytest.approx(wanted)


@pytest.mark.parametrize("spread", [0.0, 0.3, 25.0])
def test_one_in_so_many_is_as_good_with_trust(spread: float) -> None:
    """Put the number found into the error of a sample that a trusted collector asks."""
    found = _made(
        lambda model, epsilon, n: {"central": 3 / n, "shuffled": 0.1, "local": 0.9}[model], spread=spread
    )
    for model, error in (("shuffled", 0.1), ("local", 0.9)):
        m = 1000 / found.one_in(model)
        drawn = spread * 1000 / 999 * (1 / m - 1 / 1000)
        assert drawn + (3 / m) ** 2 == pytest.approx(error**2)
    assert f"one in {found.one_in('shuffled'):.3g}" in found.sentence
    assert f"{round(1000 / found.one_in('local')):,} drawn at random" in found.sentence


def test_a_finished_comparison_can_be_stored_and_read_by_people(found: Comparison) -> None:
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["by_people"][0]["model"] == "central" and stored["by_people"][0]["each"] is None
    assert stored["sentence"] == found.sentence
    text = str(found)
    assert repr(found) == text and OWNER in text and "invented" in text
    assert "1,600" in text and "to the power" in text
    assert max(map(len, text.splitlines())) <= 130


def test_pictures_are_drawn_from_the_numbers(found: Comparison) -> None:
    for picture, axis, power, points in zip(
        found.pictures(), ("epsilon", "people"), (-1, -0.5), (found.by_epsilon, found.by_people), strict=True
    ):
        assert picture.x.log and picture.y.log
        lines = [mark for mark in picture.marks if isinstance(mark, Line)]
        spots = {mark.label: mark.points for mark in picture.marks if isinstance(mark, Points)}
        for model in MODELS:
            ours = [one for one in points if one.model == model]
            assert spots[model] == tuple(
                (getattr(one, axis), one.error, one.low, one.high) for one in ours if one.error > 0
            )
        [dashed] = [line for line in lines if line.dashed]
        local = [one.predicted for one in points if one.model == "local"]
        assert dashed.points[0][1] == local[0]
        (x, y), (x2, y2) = dashed.points[0], dashed.points[-1]
        assert math.log(y2 / y) / math.log(x2 / x) == pytest.approx(power)
        assert svg(picture).startswith("<svg")


# -- the people -----------------------------------------------------------------------------------


def test_numbers_are_read_clamped_and_counted() -> None:
    table = pa.table({"x": pa.array([None, math.nan, -5.0, 3.0, math.inf, 10.0])})
    people = read_numbers(table, "x", 0, 10)
    assert people.values.tolist() == [0, 3, 10, 10]
    assert (people.dropped, people.clamped) == (2, 2)


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.decimal128(30, 2)], ids=str
)
def test_every_kind_of_number_is_read(kind: pa.DataType) -> None:
    assert read_numbers(pa.table({"x": pa.array([1, 2, None]).cast(kind)}), "x", 0, 10).values.tolist() == [
        1,
        2,
    ]


def test_answers_are_places_in_the_list() -> None:
    table = pa.table({"a": ["no", "yes", None, "maybe", "yes"], "b": [1, 2, 3, 2, None]})
    people = read_answers(table, "a", ["yes", "no"])
    assert people.values.tolist() == [1, 0, 0] and people.dropped == 2
    assert read_answers(table, "b", ["2", "3"]).values.tolist() == [0, 1, 0]


def test_invented_people_are_within_their_bounds() -> None:
    ages = invent_ages(2000).values
    assert ages.min() >= 0 and ages.max() <= 99 and len(set(ages)) > 50
    answers = invent_answers(2000, ["a", "b", "c"])
    assert set(answers.values.tolist()) == {0, 1, 2} and answers.invented


def test_a_sample_holds_everybody_at_most_once() -> None:
    people = People(values=np.arange(1000), what="x")
    some = people.shuffled(400).values
    assert len(set(some.tolist())) == 400 and set(people.shuffled().values.tolist()) == set(range(1000))
    assert some.tolist() != sorted(some.tolist())  # by chance once in 400!


# -- corners ----------------------------------------------------------------------------------------


def test_one_person() -> None:
    found = compare(pa.table({"x": [3]}), column="x", low=0, high=10, repetitions=2, epsilons=[])
    assert found.people == 1 and found.slopes == () and found.one_in("local") is None
    assert found.at("shuffled").each == pytest.approx(1)
    text = str(found)
    assert "shuffled is local there" in text and "little to compare" in text
    for picture in found.pictures():
        assert svg(picture).startswith("<svg")


def test_what_was_left_out_is_said() -> None:
    table = pa.table({"x": pa.array([1.0, None, 99.0, *[2.0] * 400])})
    found = compare(table, column="x", low=0, high=10, people=300, repetitions=2, epsilons=[], sizes=[])
    text = " ".join(str(found).split())
    assert "Left out, for they have no such value: 1." in text
    assert "moved to the nearer one in every model: 1." in text
    assert "random sample: 102 more" in text and "invented" not in text


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"column": "y", "low": 0, "high": 1}, "y"),
        ({"low": 0, "high": 1}, "column"),
        ({"column": "x"}, "low"),
        ({"column": "x", "low": 0}, "high"),
        ({"column": "x", "low": 5, "high": 5}, "low"),
        ({"column": "x", "low": 6, "high": 5}, "low"),
        ({"column": "text", "low": 0, "high": 5}, "column"),
        ({"column": "flag", "low": 0, "high": 5}, "column"),
        ({"column": "empty", "low": 0, "high": 5}, "column"),
        ({"column": "text", "answers": ["c", "d"]}, "column"),
        ({"column": "list", "answers": ["c", "d"]}, "list"),
        ({"column": "text", "answers": ["a"]}, "answers"),
        ({"column": "text", "answers": ["a", "a"]}, "answers"),
        ({"column": "text", "answers": ["a", ""]}, "answers"),
        ({"column": "text", "answers": ["a", "b"], "low": 0}, "answers"),
        ({"column": "x", "low": 0, "high": 5, "epsilon": 0}, "epsilon"),
        ({"column": "x", "low": 0, "high": 5, "epsilon": -1}, "epsilon"),
        ({"column": "x", "low": 0, "high": 5, "epsilon": 21}, "epsilon"),
        ({"column": "x", "low": 0, "high": 5, "delta": 1}, "delta"),
        ({"column": "x", "low": 0, "high": 5, "delta": 0.5}, "delta"),
        ({"column": "x", "low": 0, "high": 5, "people": 0}, "people"),
        ({"column": "x", "low": 0, "high": 5, "repetitions": 1}, "repetitions"),
        ({"column": "x", "low": 0, "high": 5, "sizes": [0]}, "sizes"),
        ({"column": "x", "low": 0, "high": 5, "epsilons": [0]}, "epsilons"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], place: str) -> None:
    table = pa.table({
        "x": [4711.5, 2.0, 3.0], "text": ["a", "b", "b"], "flag": [True, False, True],
        "empty": pa.array([None, math.nan, None], pa.float64()), "list": [[1], [2], [3]],
    })  # fmt: skip
    with pytest.raises(InvalidArgument) as refusal:
        compare(table, **{"repetitions": 2, **options})
    assert refusal.value.place == place
    assert "4711" not in str(refusal.value)


def test_bounds_without_a_table_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="need a table"):
        compare(low=0, high=5)
