"""Noise is added to everything, and what is dropped leaves no trace."""

from __future__ import annotations

import datetime
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.analysis.bounded import MeasureKind
from sfumato.backends.exact import Exact
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import EngineFailure, Unsupported
from sfumato.release import add_noise
from sfumato.release.noise import add_noise_in_steps, key_order
from tests.release import made

MOMENT, CELLS = MeasureKind.MOMENT, MeasureKind.CELLS


def test_exact_values_are_never_printed_or_stored() -> None:
    secret = Exact((made.exact([("bob",)], {"n": [12345]}),))
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>20}", "%s" % secret):  # noqa: UP031
        assert "12345" not in shown and "bob" not in shown
    with pytest.raises(Unsupported):
        pickle.dumps(secret)


def test_noise_is_added_to_every_number() -> None:
    """False alarm: all 64 draws of scale 10^9 are zero, below 1e-500. Catches a measure left exact."""
    plan = made.bounding({"n": MOMENT, "c": CELLS}, select=False)
    price = made.cost(plan, 10**9, levels=3)
    groups = made.exact([("a",), ("b",)], {"n": [5, 6], "c": np.zeros((2, 9), dtype=np.int64)})
    [noisy] = add_noise(Exact((groups,)), plan, price)
    assert [layer.shape for layer in noisy.layers["c"]] == [(2, 9), (2, 5), (2, 3)]
    assert (noisy.measures["n"] != [5, 6]).any()
    assert all((layer != 0).any() for layer in noisy.layers["c"])
    assert set(noisy.measures) == {"n"} and set(noisy.layers) == {"c"}


def test_steps_see_noisy_integers_alone() -> None:
    """False alarm: a draw of scale 10^9 is zero, below 1e-8 each; all of three are, below 1e-24."""
    exact, law = Exact(np.array([3, 4])), GaussianNoise(Fraction(10**18))
    seen = add_noise_in_steps(
        exact,
        lambda rows: lambda state: rows * (len(state) + 1),
        lambda state, noisy: (*state, noisy),
        tuple[Any, ...](),
        [law] * 3,
    )
    assert [one.dtype for one in seen] == [np.int64] * 3
    assert any((one != np.array([3, 4]) * place).any() for place, one in enumerate(seen, 1))
    with pytest.raises(Unsupported):
        add_noise_in_steps(exact, lambda rows: lambda state: rows / 2, lambda state, noisy: state, 0, [law])


def test_what_fails_among_rows_always_says_the_same() -> None:
    def failing(rows: Any) -> Any:
        raise ValueError(f"could not use {rows}")

    for vectors in (failing, lambda rows: lambda state: failing(rows)):
        with pytest.raises(EngineFailure) as raised:
            add_noise_in_steps(
                Exact("12345"), vectors, lambda state, noisy: state, 0, [GaussianNoise(Fraction(1))]
            )
        assert raised.value.__context__ is None and "12345" not in str(raised.value)


def test_layers_are_sums_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding({"c": CELLS})
    groups = made.exact([("a",)], {"c": np.arange(10)[None, :]})
    [noisy] = add_noise(Exact((groups,)), plan, made.cost(plan, levels=3, branching=3))
    assert [layer.tolist() for layer in noisy.layers["c"]] == [
        [list(range(10))],
        [[3, 12, 21, 9]],
        [[36, 9]],
    ]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_has_the_stated_spread(kind: str) -> None:
    """100,000 draws: the mean of |x| within 3% of the law's. False alarm below 1e-15; catches a
    parameter taken for another (a scale for a variance, sigma for sigma squared)."""
    plan = made.bounding({"n": MOMENT})
    price = made.cost(plan, 900, kind=kind)  # type: ignore[arg-type]
    number = 100_000
    groups = made.exact([(i,) for i in range(number)], {"n": np.zeros(number, dtype=np.int64)})
    [noisy] = add_noise(Exact((groups,)), plan, price)
    expected = 900 if kind == "laplace" else 30 * np.sqrt(2 / np.pi)
    assert abs(np.abs(noisy.measures["n"]).mean() / expected - 1) < 0.03


def test_a_measure_without_noise_is_refused_before_the_secret_is_opened() -> None:
    class Sealed(Exact[tuple[()]]):
        def open(self) -> tuple[()]:
            raise AssertionError("opened")

    plan = made.bounding({"n": MOMENT, "s": MOMENT})
    price = made.cost(made.bounding({"n": MOMENT}))
    with pytest.raises(Unsupported):
        add_noise(Sealed(()), plan, price)
    selecting = made.bounding({"n": MOMENT}, select=True)
    with pytest.raises(Unsupported):
        add_noise(Sealed(()), selecting, made.cost(selecting))


def test_groups_below_the_threshold_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding({"n": MOMENT, "c": CELLS}, select=True)
    groups = made.exact(
        [("z",), ("secret",), ("b",), (None,), ("a",)],
        {"n": [1, 2, 3, 4, 5], "c": np.arange(10).reshape(5, 2)},
        units=[10, 9, 11, 12, 10],
    )
    [noisy] = add_noise(Exact((groups,)), plan, made.cost(plan, threshold=10))
    assert noisy.keys == (("a",), ("b",), ("z",), (None,))
    assert noisy.measures["n"].tolist() == [5, 3, 1, 4]
    assert noisy.layers["c"][0].tolist() == [[8, 9], [4, 5], [0, 1], [6, 7]]


def test_a_noisy_measure_that_decides_is_the_one_that_is_shown() -> None:
    """No chance: whatever the noise, what is shown reaches the threshold."""
    plan = made.bounding({"n": MOMENT}, select=True)
    number = 2000
    groups = made.exact([(i,) for i in range(number)], {"n": np.full(number, 50, dtype=np.int64)})
    [noisy] = add_noise(Exact((groups,)), plan, made.cost(plan, 20, threshold=50, measure="n"))
    assert (noisy.measures["n"] >= 50).all()
    assert len(noisy.keys) == len(noisy.measures["n"])


def test_selection_keeps_singletons_at_the_rate_of_the_law() -> None:
    """A million singletons, threshold 40, scale 5: P(1 + X >= 40) = exp(-39/5) / (1 + exp(-1/5)) = 2.25e-4.
    Within 7 deviations; false alarm below 1e-10. Catches a strict comparison, noise of another scale."""
    plan = made.bounding({"n": MOMENT}, select=True)
    number = 1_000_000
    groups = made.exact([(0,)] * number, {"n": np.ones(number, dtype=np.int64)})
    [noisy] = add_noise(Exact((groups,)), plan, made.cost(plan, 5, threshold=40, measure="n"))
    expected = number * np.exp(-39 / 5) / (1 + np.exp(-1 / 5))
    assert abs(len(noisy.keys) - expected) < 7 * np.sqrt(expected)


def test_sums_that_outgrow_a_word_widen(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding({"n": MOMENT, "c": CELLS})
    huge = np.array([2**80, 1], dtype=object)
    cells = np.full((2, 4), 2**62, dtype=np.int64)
    [noisy] = add_noise(
        Exact((made.exact([("a",), ("b",)], {"n": huge, "c": cells}),)),
        plan,
        made.cost(plan, levels=2, branching=4),
    )
    assert noisy.measures["n"].tolist() == [2**80, 1]
    assert noisy.layers["c"][0].dtype == np.int64 and noisy.layers["c"][1].tolist() == [[2**64], [2**64]]


def test_a_sum_at_the_edge_of_a_word_does_not_wrap() -> None:
    """No chance: of 1000 sums 2^63 - 1 + X none may be near -2^63."""
    plan = made.bounding({"n": MOMENT})
    groups = made.exact([(i,) for i in range(1000)], {"n": np.full(1000, 2**63 - 1)})
    [noisy] = add_noise(Exact((groups,)), plan, made.cost(plan, 1000))
    assert all(value > 2**62 for value in noisy.measures["n"].tolist())


def test_the_order_of_keys_is_total_and_null_is_last() -> None:
    day, hour = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5)
    keys = [(None,), ("é",), ("Z",), ("",), (float("nan"),), (2.5,), (-1,), (True,), (hour,), (day,)]
    ranked = sorted(keys, key=key_order)
    assert str(ranked) == str(
        [(True,), (-1,), (2.5,), (float("nan"),), ("",), ("Z",), ("é",), (day,), (hour,), (None,)]
    )
    keys.reverse()
    assert str(sorted(keys, key=key_order)) == str(ranked)


def test_keys_cannot_be_selected_without_units() -> None:
    plan = made.bounding({"n": MOMENT}, select=True)
    with pytest.raises(Unsupported):
        add_noise(Exact((made.exact([("a",)], {"n": [5]}),)), plan, made.cost(plan, threshold=3))


@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(2) ** 70])
def test_no_groups_is_no_error(parameter: Fraction) -> None:
    plan = made.bounding({"n": MOMENT, "c": CELLS}, select=True)
    groups = made.exact([], {"n": [], "c": np.zeros((0, 4), dtype=np.int64)}, units=[])
    [noisy] = add_noise(Exact((groups,)), plan, made.cost(plan, parameter, threshold=3, levels=2))
    assert noisy.keys == () and noisy.layers["c"][1].shape == (0, 2)
