"""Lower bounds are below the truth, come close to it, and outputs of any kind can be told apart."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest

from sfumato.audit import OutputColumns, Pair, lower_bound, repeated
from sfumato.audit.black_box import best_bound
from sfumato.audit.evidence import epsilon_of_counts
from sfumato.core import (
    FiniteMechanism,
    GaussianMechanism,
    RandomizedResponseMechanism,
    Sensitivity,
    bernoulli,
    discrete_gaussian,
    discrete_laplace,
    uniform_below,
)
from sfumato.errors import InvalidArgument


def laplace(epsilon: float) -> Any:
    return lambda data, trials: data + discrete_laplace(Fraction(1) / Fraction(epsilon), size=trials)


def smooth_laplace(epsilon: float) -> Any:
    """Laplace noise with as good as a density, its low bits cut off."""

    def run(data: Any, trials: int) -> Any:
        uniform = (uniform_below(2**53, size=trials) + 0.5) / 2**53 - 0.5
        noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) / epsilon
        return np.rint((data + noise) * 2**20) / 2**20

    return run


def response(bit: Any, trials: int) -> Any:
    return RandomizedResponseMechanism.coin_toss().release(np.full(trials, bit))


def gaussian(data: Any, trials: int) -> Any:
    return GaussianMechanism.from_budget(1, 0.02, sensitivity=Sensitivity(each=Fraction(1))).release(
        np.full(trials, data)
    )


def three_gaussians(data: Any, trials: int) -> Any:
    noise = discrete_gaussian(16, size=3 * trials, squared=True).reshape(trials, 3)
    return noise + data


def three_gaussians_epsilon() -> float:
    from sfumato.core import Composition, events

    event = events.DiscreteGaussian(sigma_squared=Fraction(16), sensitivity=1)
    return Composition([(event, 3)]).epsilon(0.05)


TRUE = [
    ("laplace 0.5", laplace(0.5), 0.5, 0.0),
    ("laplace 1", laplace(1), 1.0, 0.0),
    ("laplace 2", laplace(2), 2.0, 0.0),
    ("smooth laplace 1", smooth_laplace(1), 1.0, 0.0),
    ("response", response, math.log(3), 0.0),
    ("gaussian", gaussian, 1.0, 0.02),
    ("three gaussians", three_gaussians, three_gaussians_epsilon(), 0.05),
    ("a constant", lambda data, trials: np.zeros(trials), 0.0, 0.0),
]


@pytest.mark.parametrize(("name", "run", "epsilon", "delta"), TRUE, ids=[one[0] for one in TRUE])
def test_bounds_are_below_the_truth(name: str, run: Any, epsilon: float, delta: float) -> None:
    """Eighty bounds, each above the truth with probability at most 1/20: more than 22 with less than 1e-10.

    Estimates in place of bounds would be above it in half of all cases, and are caught.
    """
    above = 0
    for _ in range(80):
        found = lower_bound(run, 0, 1, delta=delta, trials=1_000, miss=0.05)
        above += found.epsilon > epsilon * (1 + 1e-9)
    assert above <= 22


@pytest.mark.parametrize(("name", "run", "epsilon", "delta"), TRUE, ids=[one[0] for one in TRUE])
def test_bounds_come_close(name: str, run: Any, epsilon: float, delta: float) -> None:
    """At 1e-10 the bound is above the truth with probability 1e-10, and not far below it.

    A miss of the lower end needs a deviation of 8 standard errors or more, of whichever mechanism.
    """
    found = lower_bound(run, 0, 1, delta=delta, trials=100_000, miss=1e-10)
    assert found.epsilon <= epsilon
    assert found.epsilon >= 0.7 * epsilon - 0.08


def test_figures_for_laplace_noise_are_met() -> None:
    """Smooth Laplace noise of epsilon .5, 1 and 2, 100,000 trials, at 95%: bounds of .481, .976, 1.963.

    Single bounds have standard deviations of .007, .009 and .014. The mean of five is below these limits by
    a deviation of 7 standard errors or more: with probability below 1e-10.
    """
    for epsilon, wanted in ((0.5, 0.459), (1.0, 0.948), (2.0, 1.919)):
        bounds = [lower_bound(smooth_laplace(epsilon), 0.0, 1.0, miss=0.05).epsilon for _ in range(5)]
        assert sum(bounds) / len(bounds) >= wanted


def test_choosing_and_testing_are_apart() -> None:
    """Outputs that are unique in every trial are told apart by nothing: testing again on the choice would.

    False alarm at most 1e-10.
    """

    def unique(data: Any, trials: int) -> list[str]:
        return [f"{number}" for number in uniform_below(2**62, size=trials).tolist()]

    found = lower_bound(unique, 0, 1, trials=4_000, miss=1e-10)
    assert found.epsilon == 0
    assert found.likely.trials == 3_000


def test_the_bound_is_wrong_as_rarely_as_it_says() -> None:
    """Exactly, by going through all hits of 60 trials, for many pairs of probabilities."""
    from scipy.stats import binom

    n, miss = 60, 0.1
    hits = np.arange(n + 1)
    table = np.array([epsilon_of_counts(hits, other, (n, n), delta=0.05, miss=miss) for other in hits]).T
    worst = 0.0
    for p in np.linspace(0.05, 0.95, 19):
        for q in np.linspace(0.05, 0.95, 19):
            truth = max(0.0, math.log(max(p - 0.05, 1e-300) / q))
            chances = np.outer(binom.pmf(hits, n, p), binom.pmf(hits, n, q))
            worst = max(worst, float(chances[table > truth + 1e-12].sum()))
    assert 0.005 < worst <= miss


def test_evidence_is_what_its_hits_prove() -> None:
    found = lower_bound(laplace(1), 0, 1, trials=4_000, miss=1e-7, delta=0.01)
    again = epsilon_of_counts(found.likely.hits, found.unlikely.hits, (3_000, 3_000), delta=0.01, miss=1e-7)
    assert found.epsilon == again[0] > 0
    assert (found.miss, found.delta, found.likely.trials) == (1e-7, 0.01, 3_000)


def test_hits_prove_what_they_prove() -> None:
    assert epsilon_of_counts(0, 0, (100, 100), delta=0.0, miss=1e-3)[0] == 0
    sure = epsilon_of_counts(10**6, 0, (10**6, 10**6), delta=0.0, miss=1e-9)[0]
    assert 10 < sure < math.log(10**6)
    assert epsilon_of_counts(400, 0, (1000, 1000), delta=0.5, miss=1e-3)[0] == 0  # a delta explains it
    low, high = (epsilon_of_counts(600, 100, (1000, 1000), delta=0.0, miss=m)[0] for m in (1e-9, 1e-2))
    assert low < high < math.log(6)


# -- outputs of any kind ----------------------------------------------------------------------

FLIPPED = bernoulli(Fraction(1, 10), size=400_000)
_AT = [0]


def flip() -> bool:
    """One bit in ten is wrong."""
    _AT[0] = (_AT[0] + 1) % len(FLIPPED)
    return bool(FLIPPED[_AT[0]])


def fails(bit: int) -> Any:
    if bit ^ flip():
        raise ValueError("there is such a person")
    raise KeyError("there is not")


OUTPUTS: dict[str, Any] = {
    "number": lambda bit: bit ^ flip(),
    "huge number": lambda bit: 10**400 + (bit ^ flip()),
    "beyond floats": lambda bit: 2**60 + (bit ^ flip()),
    "nan": lambda bit: math.nan if bit ^ flip() else 0.0,
    "none": lambda bit: None if bit ^ flip() else 0,
    "type": lambda bit: 1.0 if bit ^ flip() else 1,
    "sign of zero": lambda bit: -0.0 if bit ^ flip() else 0,
    "text": lambda bit: "yes" if bit ^ flip() else "no",
    "length": lambda bit: ["x"] * (3 + (bit ^ flip())),
    "nested": lambda bit: {"a": [1, {"b": (bit ^ flip(), "x")}]},
    "key": lambda bit: {"a": 1, "b": 2} if bit ^ flip() else {"a": 1},
    "set": lambda bit: {"a", "b"} if bit ^ flip() else {"a"},
    "array": lambda bit: np.array([[1, 2], [3, bit ^ flip()]]),
    "arrow": lambda bit: pyarrow.table({"x": [1, bit ^ flip()]}),
    "frame": lambda bit: pd.DataFrame({"x": [1, bit ^ flip()]}),
    "error type": fails,
    "infinities": lambda bit: (math.inf, math.inf if bit ^ flip() else -math.inf, 1e308),
    "low bits": lambda bit: 1.5 + (2.0**-40 if bit ^ flip() else 0.0) + 2.0**-45,
    "difference": lambda bit: (lambda noise: (noise, noise + (bit ^ flip())))(discrete_laplace(1000)),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_any_output_can_tell(name: str) -> None:
    """One bit, right in nine of ten outputs, wherever it hides: the truth is ln 9 = 2.2.

    Below 1.4 only by a deviation of 8 standard errors; above 2.2 with probability 1e-10.
    """
    found = lower_bound(repeated(OUTPUTS[name]), 0, 1, trials=2_000, miss=1e-10)
    assert 1.2 < found.epsilon <= math.log(9)


def test_columns_that_are_missing_are_not_told_from_columns_of_nothing() -> None:
    def run(data: Any, trials: int) -> OutputColumns:
        places = {"here": np.zeros(trials)}
        if data:
            places["never shown"] = np.full(trials, np.nan)
        return OutputColumns(trials, places)

    assert lower_bound(run, 0, 1, trials=1_000).epsilon == 0


def test_an_error_in_a_run_is_an_output() -> None:
    def run(data: Any, trials: int) -> Any:
        if data:
            raise ValueError
        return np.zeros(trials)

    found = lower_bound(run, 0, 1, trials=4_000)
    assert found.epsilon > 4


def test_the_best_pair_is_found_and_named() -> None:
    pairs = [Pair(name=f"0 and {far}", left=0, right=far) for far in (0, 3, 1)]
    found = best_bound(laplace(1), pairs, trials=40_000)
    assert found.pair == "0 and 3" and 2 < found.epsilon <= 3
    assert "at least" in str(found) and "0 and 3" in str(found)


def test_a_likelihood_ratio_of_many_places_is_learned() -> None:
    """Twelve coins of 0.6 against 0.4 prove much more together than any one does: ln 1.5 = 0.41.

    False alarm below 1e-9: the bound is 2.65, of deviation 0.12, and 1.5 is nine of them away.
    """
    mechanism = FiniteMechanism([[Fraction(3, 5), Fraction(2, 5)], [Fraction(2, 5), Fraction(3, 5)]])

    def run(data: Any, trials: int) -> Any:
        return mechanism.release(np.full((trials, 12), data))

    assert lower_bound(run, 0, 1, trials=40_000).epsilon > 1.5


@pytest.mark.parametrize(
    "change",
    [
        {"miss": 0},
        {"miss": 1},
        {"delta": -0.1},
        {"delta": 2},
        {"trials": 3},
        {"run": lambda data, trials: 5},
        {"run": lambda data, trials: [1]},
    ],
)
def test_nonsense_is_refused(change: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"run": laplace(1), "left": 0, "right": 1, "trials": 100, **change}
    with pytest.raises(InvalidArgument):
        lower_bound(**arguments)
