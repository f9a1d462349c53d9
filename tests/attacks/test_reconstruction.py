"""Rebuilding a column from counts: from accurate ones all of it, from this system's hardly anything."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from sfumato.attacks.attack_result import AttackResult
from sfumato.attacks.reconstruction import Method, rebuild, reconstruction
from sfumato.core import bernoulli, gaussian, laplace
from sfumato.errors import InvalidArgument


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return reconstruction(people=1000, epsilons=(1.0,))


def test_a_thousand_secrets_from_four_thousand_accurate_counts(found: AttackResult) -> None:
    """Over 95% of the bits. False alarm below 1e-9: rounding to fives is noise of 1.4, root n over 20."""
    assert found.naive.trials == 1000
    assert found.naive.share > 0.95


def test_at_a_total_of_one_hardly_more_than_guessing(found: AttackResult) -> None:
    """False alarm below 1e-9: 1,000 bits, 54% expected at most, and 65% is seven standard errors away."""
    [point] = found.curve
    assert point.epsilon == 1.0
    assert point.rate.share < 0.65


def test_more_noise_rebuilds_less(found: AttackResult) -> None:
    """Of root n over 8, 4 and 2: over 99%, over 90%, below 90% (published: 100, 92-98, 77-80)."""
    shares = [float(text.split("%")[0]) for label, text in found.facts if label.startswith("noise")]
    assert shares[0] > 99
    assert shares[1] > 90
    assert 65 < shares[2] < 90


@pytest.mark.parametrize("method", ["least squares", "linear programming"])
def test_exact_counts_are_solved_exactly(method: str) -> None:
    bits = np.asarray(bernoulli(0.5, size=60), dtype=bool)
    halves = np.asarray(bernoulli(0.5, size=60 * 240), dtype=bool).reshape(240, 60)
    answers = halves.astype(float) @ bits
    assert (rebuild(halves, answers, method=cast(Method, method)) == bits).all()


def test_linear_programming_stands_wild_answers_and_least_squares_does_not() -> None:
    """A tenth of the answers are nonsense. False alarm below 1e-9 by the margin of Dwork et al. 2007."""
    bits = np.asarray(bernoulli(0.5, size=60), dtype=bool)
    halves = np.asarray(bernoulli(0.5, size=60 * 400), dtype=bool).reshape(400, 60)
    answers = halves.astype(float) @ bits
    answers[:40] += 1000
    assert (rebuild(halves, answers, method="linear programming") == bits).all()
    assert (rebuild(halves, answers, method="least squares") != bits).any()


def test_missing_noise_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Any, size: int | None = None, squared: bool = False) -> Any:
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(gaussian, "discrete_gaussian", none)
    monkeypatch.setattr(laplace, "discrete_laplace", none)
    assert reconstruction(people=120, epsilons=(1.0,)).curve[0].rate.share > 0.95


def test_ones_own_column() -> None:
    """False alarm below 1e-9: of 100 bits 0.08 are wrong on average, and ten have to be. Guessing has 75%."""
    frame = pd.DataFrame({"sick": ([True] * 3 + [False]) * 25})
    found = reconstruction(frame, trait="sick", epsilons=(1.0,))
    assert found.guess == 0.75
    assert found.naive.share > 0.9
    assert found.naive.trials == 100


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no such method"):
        rebuild(np.ones((2, 2), dtype=bool), np.zeros(2), method=cast(Method, "guessing"))
