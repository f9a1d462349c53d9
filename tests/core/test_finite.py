"""Finite mechanisms: epsilon and delta are computed from the matrix, and the event says the same."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.core.events import Direction, Event
from sfumato.core.exponential import exp_below, log_above
from sfumato.core.finite import FiniteMechanism
from sfumato.core.mechanism import Mechanism
from sfumato.errors import InvalidArgument

F = Fraction


@st.composite
def matrices(draw, inputs=None):
    rows, columns = inputs or draw(st.integers(2, 4)), draw(st.integers(1, 4))
    weights = st.lists(st.integers(0, 6), min_size=columns, max_size=columns).filter(any)
    return [[F(w, sum(row)) for w in row] for row in (draw(weights) for _ in range(rows))]


def brute_delta(matrix, ratio):
    """The definition: the largest P(S) - ratio * Q(S) over every set S of outputs and ordered pair."""
    outputs = range(len(matrix[0]))
    sets = [[o for o in outputs if mask >> o & 1] for mask in range(2 ** len(matrix[0]))]
    return max(
        sum(matrix[i][o] for o in chosen) - ratio * sum(matrix[j][o] for o in chosen)
        for i, j in permutations(range(len(matrix)), 2)
        for chosen in sets
    )


@given(matrices(), st.integers(1, 40).map(lambda n: F(n, 7)).filter(lambda r: r >= 1))
def test_delta_is_the_worst_set_of_outputs(matrix, ratio):
    assert FiniteMechanism(matrix).delta_at_ratio(ratio) == brute_delta(matrix, ratio)


@given(matrices())
def test_epsilon_is_where_delta_reaches_zero(matrix):
    mechanism = FiniteMechanism(matrix)
    if mechanism.max_ratio is None:
        assert mechanism.epsilon == math.inf and mechanism.delta(10**9) > 0
    else:
        assert mechanism.delta_at_ratio(mechanism.max_ratio) == 0
        slightly_less = mechanism.max_ratio * (1 - F(1, 10**9))
        assert slightly_less < 1 or mechanism.delta_at_ratio(slightly_less) > 0
        assert mechanism.epsilon == log_above(mechanism.max_ratio)


@given(matrices(), st.floats(0, 5))
def test_delta_at_epsilon_rounds_up_by_next_to_nothing(matrix, epsilon):
    mechanism = FiniteMechanism(matrix)
    claimed = mechanism.delta(epsilon)
    with mpmath.workdps(60):
        e = mpmath.exp(mpmath.mpf(str(epsilon)))
        rows = [[mpmath.mpf(p.numerator) / p.denominator for p in row] for row in matrix]
        true = max(
            mpmath.fsum(max(mpmath.mpf(0), p - e * q) for p, q in zip(one, other, strict=True))
            for one, other in permutations(rows, 2)
        )
        assert true <= mpmath.mpf(claimed) <= true * (1 + mpmath.mpf(2) ** -50) + mpmath.mpf(10) ** -27


@given(matrices())
def test_event_dominates_every_pair_and_no_more(matrix):
    """At every ratio the pair of the event has exactly the delta of the worst pair of inputs."""
    mechanism = FiniteMechanism(matrix)
    event = mechanism.event
    pair = FiniteMechanism([event.with_person, event.without])
    columns = zip(*matrix, strict=True)
    ratios = {F(1)} | {p / q for column in columns for p, q in permutations(column, 2) if q and p >= q}
    for ratio in sorted(ratios | {r + F(1, 3) for r in ratios}):
        one_way = sum(max(F(0), p - ratio * q) for p, q in zip(event.with_person, event.without, strict=True))
        other = sum(max(F(0), q - ratio * p) for p, q in zip(event.with_person, event.without, strict=True))
        assert one_way == other == pair.delta_at_ratio(ratio) == mechanism.delta_at_ratio(ratio)


def test_event_prices_itself_like_the_matrix():
    sixths = [(3, 2, 1), (2, 2, 2), (1, 3, 2)]
    mechanism = FiniteMechanism([[F(weight, 6) for weight in row] for row in sixths])
    assert mechanism.max_ratio == 3
    assert mechanism.epsilon <= float(mechanism.event.epsilon()) <= mechanism.epsilon * (1 + 1e-12)
    for epsilon in (0.0, 0.3, 0.7, 1.0):
        assert mechanism.event.delta(epsilon) == pytest.approx(mechanism.delta(epsilon), rel=1e-6)
        assert mechanism.event.delta(epsilon) >= mechanism.delta(epsilon) * (1 - 1e-12)
    assert Event.from_dict(mechanism.event.to_dict()) == mechanism.event
    assert mechanism.event.tails(np.array([0.0]), Direction.REMOVE)[0] > 0


@given(st.data())
def test_post_processing_never_costs_more(data):
    matrix = data.draw(matrices())
    mechanism = FiniteMechanism(matrix)
    processed = mechanism.then(data.draw(matrices(inputs=len(matrix[0]))))
    for ratio in (F(1), F(3, 2), F(3), F(20)):
        assert processed.delta_at_ratio(ratio) <= mechanism.delta_at_ratio(ratio)
    if mechanism.max_ratio is not None:
        assert processed.max_ratio is not None and processed.max_ratio <= mechanism.max_ratio


@given(st.data())
def test_composition_multiplies_ratios_at_most(data):
    inputs = data.draw(st.integers(2, 3))
    one = FiniteMechanism(data.draw(matrices(inputs=inputs)))
    two = FiniteMechanism(data.draw(matrices(inputs=inputs)))
    both = one.compose(two)
    assert both.outputs == one.outputs * two.outputs
    assert both.pmf(1 % both.outputs, 0) == one.pmf(1 % both.outputs // two.outputs, 0) * two.pmf(
        1 % both.outputs % two.outputs, 0
    )
    if one.max_ratio is None or two.max_ratio is None:
        return
    assert both.max_ratio is not None
    assert max(one.max_ratio, two.max_ratio) <= both.max_ratio <= one.max_ratio * two.max_ratio


def test_two_coin_tosses_in_series_add_up():
    toss = FiniteMechanism([[F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]])
    assert toss.compose(toss).max_ratio == 9
    assert toss.compose(toss).then([[1, 0], [0, 1], [0, 1], [1, 0]]).max_ratio == 1  # whether they agree


def test_neighbours_restrict_the_pairs():
    """On a path 0 - 1 - 2 the far ends are two steps apart: their ratio is group privacy, not epsilon."""
    rows = [[F(4, 7), F(2, 7), F(1, 7)], [F(2, 6), F(2, 6), F(2, 6)], [F(1, 7), F(2, 7), F(4, 7)]]
    assert FiniteMechanism(rows).max_ratio == 4
    path = FiniteMechanism(rows, neighbours=[(1, 0), (1, 2), (0, 1)])
    assert path.neighbours == ((0, 1), (1, 2))
    assert path.max_ratio == F(7, 3)
    assert path.then([[1], [1], [1]]).max_ratio == 1
    with pytest.raises(InvalidArgument):
        path.compose(FiniteMechanism(rows))
    assert FiniteMechanism(rows, neighbours=[]).epsilon == 0


def test_a_mechanism_that_ignores_its_input_is_free():
    free = FiniteMechanism([[F(1, 3), F(2, 3)]] * 3)
    assert (free.epsilon, free.delta(0), free.max_ratio) == (0.0, 0.0, 1)
    assert free.event.epsilon() == 0


def test_release_has_the_law_of_its_row():
    """False alarm below 1e-9: 4e-10 per row; power: one output's probability off by 2% of itself."""
    rows = [[F(1, 7), F(0), F(5, 14), F(1, 2)], [F(1, 3), F(1, 3), F(1, 3), F(0)]]
    mechanism = FiniteMechanism(rows)
    inputs = np.tile([0, 1], 400_000)
    outputs = mechanism.release(inputs)
    for i, row in enumerate(rows):
        counts = np.bincount(outputs[inputs == i], minlength=4)
        used = [o for o in range(4) if row[o]]
        assert counts.sum() == counts[used].sum() == 400_000
        wanted = [float(row[o]) * 400_000 for o in used]
        assert stats.chisquare(counts[used], wanted).pvalue > 4e-10
    assert [mechanism.release(0) in (0, 2, 3) for _ in range(50)] == [True] * 50


def test_release_takes_every_share_of_a_huge_denominator(monkeypatch):
    from sfumato.core import finite

    tiny = F(1, 10**40)
    mechanism = FiniteMechanism([[tiny, 1 - 2 * tiny, tiny]])
    edge = FiniteMechanism([[F(1, 2**63), 1 - F(1, 2**63), F(0)]])  # just where 64-bit integers end
    for chosen, drawn, output in [
        (mechanism, 0, 0),
        (mechanism, 1, 1),
        (mechanism, 10**40 - 2, 1),
        (mechanism, 10**40 - 1, 2),
        (edge, 0, 0),
        (edge, 1, 1),
        (edge, 2**63 - 1, 1),
    ]:
        monkeypatch.setattr(
            finite,
            "uniform_below",
            lambda n, size=None, d=drawn: d if size is None else np.array([d] * size),
        )
        assert chosen.release(0) == output
        assert chosen.release([0, 0]).tolist() == [output, output]


def test_loss_of_an_output():
    mechanism = FiniteMechanism([[F(1, 2), F(1, 2), F(0), F(0)], [F(1, 6), F(1, 3), F(1, 2), F(0)]])
    assert mechanism.privacy_loss(0, 0, 1) == pytest.approx(math.log(3), rel=1e-15)
    assert mechanism.privacy_loss(0, 1, 0) == -mechanism.privacy_loss(0, 0, 1)
    assert mechanism.privacy_loss(2, 0, 1) == -math.inf and mechanism.privacy_loss(2, 1, 0) == math.inf
    with pytest.raises(InvalidArgument, match="cannot occur"):
        mechanism.privacy_loss(3, 0, 1)
    assert isinstance(mechanism, Mechanism)


@given(st.integers(1, 10**30), st.integers(0, 10**30))
def test_log_above_is_the_next_float(d, more):
    ratio = F(d + more, d)
    claimed = log_above(ratio)
    with mpmath.workdps(120):
        true = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert mpmath.mpf(claimed) >= true
        assert claimed == 0 or mpmath.mpf(math.nextafter(claimed, 0)) < true


def test_log_above_where_it_is_delicate():
    tiny = F(1, 2**300)
    assert log_above(1 + tiny) == math.ldexp(1, -300)  # ln(1 + x) < x, and x is a float
    assert log_above(F(10) ** 5000) == pytest.approx(5000 * math.log(10), rel=1e-15)


@given(st.fractions(0, 800))
def test_exp_below_is_below_and_close(epsilon):
    bound = exp_below(epsilon)
    with mpmath.workdps(500):
        true = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        value = mpmath.mpf(bound.numerator) / bound.denominator
        assert value <= true <= value * (1 + mpmath.mpf(2) ** -90)


@pytest.mark.parametrize(
    "matrix",
    [
        [],
        [[]],
        [[1], [F(1, 2), F(1, 2)]],
        [[F(1, 2), F(1, 3)]],
        [[F(3, 2), F(-1, 2)]],
        [[0.1, 0.9], [0.2, 0.8]],  # as binary numbers these do not sum to one
        [[math.nan, 1]],
        [[math.inf, 1]],
        [[float("1e400"), 1]],
        [[True, False]],
        [["1"]],
        [1, 2],
        "1",
        5,
    ],
    ids=repr,
)
def test_senseless_matrices_are_refused(matrix):
    with pytest.raises(InvalidArgument):
        FiniteMechanism(matrix)
    with pytest.raises(InvalidArgument):
        FiniteMechanism([[1]]).then(matrix)


def test_other_senseless_arguments_are_refused():
    toss = FiniteMechanism([[F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]])
    for bad in (2, -1, True, 0.0, "0", None):
        with pytest.raises(InvalidArgument):
            toss.release(bad)
        with pytest.raises(InvalidArgument):
            toss.pmf(bad, 0)
        with pytest.raises(InvalidArgument):
            toss.pmf(0, bad)
    for bad in ([0, 2], [-1], [0.5], [True]):
        with pytest.raises(InvalidArgument):
            toss.release(bad)
    for bad in (math.nan, math.inf, -1, True, "1", float("1e400")):
        with pytest.raises(InvalidArgument):
            toss.delta(bad)
        with pytest.raises(InvalidArgument):
            toss.delta_at_ratio(bad)
    with pytest.raises(InvalidArgument):
        toss.delta_at_ratio(F(1, 2))
    for bad in ([(0, 5)], [(0,)], [0], [(0, -1)], [(0, True)]):
        with pytest.raises(InvalidArgument):
            FiniteMechanism(toss.matrix, neighbours=bad)
    with pytest.raises(InvalidArgument):
        toss.compose(5)
    with pytest.raises(InvalidArgument):
        toss.then([[1]])
