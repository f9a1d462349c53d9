"""The sparse vector: privacy computed from the law of its answers; broken variants are caught."""

from __future__ import annotations

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from sfumato.core.events import Pure
from sfumato.core.grid import Grid
from sfumato.core.sparse import SparseVector
from sfumato.errors import BudgetExceeded, InvalidArgument, Unsupported
from tests.processes import said

F = Fraction


def sequences(length, crossings):
    """Every sequence of answers that a run over `length` queries can give."""
    for answers in product((False, True), repeat=length):
        ends = [i for i, answer in enumerate(answers) if answer][crossings - 1 : crossings]
        yield answers[: ends[0] + 1] if ends else answers


def law_of_run(answers, values, *, threshold_scale, query_scale):
    """An independent law: a double sum over the noises, with either scale None for no noise at all."""

    def weights(scale, reach=400):
        noise = np.arange(-reach, reach + 1)
        if scale is None:
            return noise, (noise == 0).astype(float)
        law = np.exp(-np.abs(noise) / float(scale))
        return noise, law / law.sum()

    threshold_noise, threshold_law = weights(threshold_scale)
    query_noise, query_law = weights(query_scale)
    chance = threshold_law.copy()
    for answer, value in zip(answers, values, strict=True):
        above = (value + query_noise[None, :] >= threshold_noise[:, None]) @ query_law
        chance = chance * (above if answer else 1 - above)
    return chance.sum()


@pytest.mark.parametrize("crossings", [1, 2, 3])
@pytest.mark.parametrize("monotone", [False, True])
def test_pmf_is_the_law_of_the_run(crossings, monotone):
    run = SparseVector(0, epsilon=2, crossings=crossings, monotone=monotone)
    values = [1, -2, 0, 3]
    seen = set(sequences(4, crossings))
    chances = {answers: run.pmf(answers, values[: len(answers)]) for answers in seen}
    assert math.fsum(chances.values()) == pytest.approx(1, abs=1e-12)
    for answers, chance in chances.items():
        brute = law_of_run(
            answers, values[: len(answers)], threshold_scale=run.threshold_scale, query_scale=run.query_scale
        )
        assert chance == pytest.approx(brute, rel=1e-8)
    assert run.pmf([True] * crossings + [False], [0] * (crossings + 1)) == 0


def worst_case(run, monotone, length=5):
    """The largest loss over all answers: below queries rise and above queries fall, or all move one way."""
    losses = []
    for answers in set(sequences(length, run.crossings)):
        for centre in (-3, 0, 3):
            x = [centre] * len(answers)
            ways = [1, -1] if monotone else [None]
            for way in ways:
                y = [c + (way or (-1 if answer else 1)) for c, answer in zip(x, answers, strict=True)]
                losses += [abs(run.privacy_loss(answers, x, y)), abs(run.privacy_loss(answers, y, x))]
    return max(losses)


@pytest.mark.parametrize("crossings", [1, 2, 3])
@pytest.mark.parametrize("monotone", [False, True])
def test_loss_is_at_most_epsilon(crossings, monotone):
    for epsilon in (0.5, 2):
        run = SparseVector(0, epsilon=epsilon, crossings=crossings, monotone=monotone)
        worst = worst_case(run, monotone)
        assert 0.3 * epsilon <= worst <= epsilon + 1e-9


def test_values_between_the_steps_of_the_noise_are_private_too():
    for step in (F(1, 3), F(1, 4), F(2)):
        run = SparseVector(F(1, 7), epsilon=1, sensitivity=F(1, 3), crossings=2, step=step)
        for answers in set(sequences(3, 2)):
            for shift in (F(0), F(1, 10), F(2, 9)):
                x = [shift, -shift, F(1, 2)][: len(answers)]
                y = [v + (F(-1, 3) if answer else F(1, 3)) for v, answer in zip(x, answers, strict=True)]
                assert abs(run.privacy_loss(answers, x, y)) <= 1 + 1e-9


def test_a_sensitivity_between_steps_is_rounded_up():
    """A sixth of a step can move a query by a whole one; many answers below show the threshold's noise."""
    run = SparseVector(F(1, 7), epsilon=1, sensitivity=F(1, 3), step=2)
    assert run.threshold_scale == 1 / run.threshold_epsilon
    assert run.query_scale == 2 / (1 - run.threshold_epsilon)
    x, y = [F(0)] * 60, [F(1, 3)] * 60
    assert 0.8 * run.threshold_epsilon < run.privacy_loss([False] * 60, x, y) <= run.threshold_epsilon


def loss(answers, x, y, **scales):
    with_x, with_y = law_of_run(answers, x, **scales), law_of_run(answers, y, **scales)
    return math.inf if with_y == 0 else math.log(with_x / with_y)


def test_broken_variants_of_the_literature_are_caught():
    """Each leaves out one ingredient, and exceeds the epsilon of the run it imitates."""
    run = SparseVector(0, epsilon=1, crossings=3)
    below, above = [False] * 12, [True] * 3
    x, y = [0] * 15, [1] * 12 + [-1] * 3
    right = {"threshold_scale": run.threshold_scale, "query_scale": run.query_scale}
    assert loss(below + above, x, y, **right) <= 1
    # Query noise that does not grow with the crossings; a threshold without noise; queries without noise.
    assert loss(below + above, x, y, **right | {"query_scale": run.query_scale / 3}) > 1
    assert loss(below, x[:12], y[:12], **right | {"threshold_scale": None}) > 1
    assert loss([False, True], [0, 1], [1, 0], **right | {"query_scale": None}) == math.inf


def test_declaring_two_way_queries_monotone_would_be_caught():
    run = SparseVector(0, epsilon=1, crossings=3, monotone=True)
    answers = [False] * 12 + [True] * 3
    assert run.privacy_loss(answers, [0] * 15, [1] * 12 + [-1] * 3) > 1


def test_the_run_has_the_law():
    """False alarm below 1e-9; power: a scale of either noise off by 20%."""
    values, n = [0, 1, 2], 5000
    counts: dict[tuple[bool, ...], int] = {}
    for _ in range(n):
        run = SparseVector(1, epsilon=2, crossings=1)
        answers: list[bool] = []
        for value in values:
            answers.append(run.ask(value))
            if answers[-1]:
                break
        counts[tuple(answers)] = counts.get(tuple(answers), 0) + 1
    keys = sorted(set(sequences(3, 1)))
    wanted = [SparseVector(1, epsilon=2).pmf(key, values[: len(key)]) * n for key in keys]
    assert set(counts) <= set(keys)
    assert stats.chisquare([counts.get(key, 0) for key in keys], wanted, sum_check=False).pvalue > 5e-10


def test_the_threshold_noise_is_drawn_once():
    """Exact: two answers to one question agree more often than independent noise would make them."""
    run = SparseVector(0, epsilon=1, crossings=2)
    once = run.pmf([False], [0])
    assert run.pmf([False, False], [0, 0]) > once**2 * 1.02


def test_it_stops_after_the_last_crossing():
    run = SparseVector(0, epsilon=1, crossings=2)
    assert run.event == Pure(loss=F(1))
    assert [run.ask(-(10**9)) for _ in range(200)] == [False] * 200  # below costs nothing more
    assert run.ask(10**9) and run.remaining == 1 and run.ask(F(10**9)) and run.remaining == 0
    for value in (-(10**9), 10**9, math.nan):
        with pytest.raises(BudgetExceeded, match="2 crossings") as caught:
            run.ask(value)
        assert caught.value.remaining == 0


def test_eight_threads_cannot_use_a_crossing_twice():
    run = SparseVector(0, epsilon=1, crossings=5)

    def ask(_):
        try:
            return run.ask(10**9)
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(200)))
    assert answers.count(True) == 5 and answers.count(None) == 195


def test_a_run_cannot_be_copied():
    run = SparseVector(0, epsilon=1)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Unsupported, match="cannot be copied"):
            duplicate(run)
    assert "noise" not in repr(run) and "1 of 1 crossings left" in repr(run)


FORKED_RUN = """
import os
from sfumato.core.sparse import SparseVector
from sfumato.errors import Unsupported
run = SparseVector(0, epsilon=1)
child = os.fork()
if child == 0:
    try:
        run.ask(10**9)
    except Unsupported:
        os._exit(7)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), run.ask(10**9))
"""


def test_a_forked_child_cannot_continue_the_run():
    assert said(FORKED_RUN) == ["7 True"]


def test_noise_is_split_by_the_two_thirds_rule():
    run = SparseVector(0, epsilon=1, crossings=4)
    assert run.threshold_epsilon == pytest.approx(1 / (1 + 8 ** (2 / 3)), rel=1e-3)
    assert run.threshold_scale == 1 / run.threshold_epsilon
    assert run.query_scale == 8 / (1 - run.threshold_epsilon)
    counts = SparseVector(0, epsilon=1, crossings=8, monotone=True)
    assert counts.threshold_epsilon == pytest.approx(1 / 5, rel=1e-3)
    assert counts.query_scale == 8 / (1 - counts.threshold_epsilon)


def test_real_values_come_through_a_grid():
    grid = Grid(step=F(1, 100), lower=0, upper=100)
    run = SparseVector(grid.to_integer(50.0), epsilon=1, sensitivity=1)
    assert run.ask(grid.to_integer(math.nan)) in (True, False)


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, float("1e400"), True, "1", None, [1]], ids=repr
)
def test_senseless_parameters_are_refused(bad):
    for name in ("threshold", "epsilon", "sensitivity", "crossings", "step"):
        if name == "step" and bad is None:
            continue
        with pytest.raises(InvalidArgument) as caught:
            SparseVector(**{"threshold": 0, "epsilon": 1} | {name: bad})
        assert caught.value.place == name
    with pytest.raises(InvalidArgument) as caught:
        SparseVector(0, epsilon=1).ask(bad)
    assert caught.value.place == "value" and "inf" not in str(caught.value).replace("finite", "")


@pytest.mark.parametrize("bad", [0, -1])
def test_senseless_amounts_are_refused(bad):
    for name in ("epsilon", "sensitivity", "crossings", "step"):
        with pytest.raises(InvalidArgument):
            SparseVector(0, **{"epsilon": 1} | {name: bad})
    with pytest.raises(InvalidArgument):
        SparseVector(0, epsilon=1, crossings=1.5)
    with pytest.raises(InvalidArgument):
        SparseVector(0, epsilon=1, monotone=1)
    with pytest.raises(InvalidArgument, match="1e100 steps"):
        SparseVector(0, epsilon=F(1, 10**400))
    with pytest.raises(InvalidArgument):
        SparseVector(0, epsilon=1).pmf([True], [1, 2])
    with pytest.raises(Unsupported):
        SparseVector(0, epsilon=1, step=F(1, 10**9)).pmf([True], [1])
    with pytest.raises(Unsupported):
        SparseVector(0, epsilon=1).privacy_loss([True, False], [1, 2], [2, 3])
