"""Least squares from noisy second moments: the equations are those of the rows, and intervals cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn import LinearModel, LinearRegression
from sfumato.learn.gradients import STEPS, EncodedRows
from sfumato.learn.least_squares import second_moments, solved


def made(number: int, seed: int) -> EncodedRows:
    """Return rows of three features that go together, and a label that follows from them."""
    rng = np.random.default_rng(seed)
    plain = rng.normal(size=(number, 3))
    plain[:, 1] += plain[:, 0]
    labels = plain @ [0.5, -0.4, 0.0] + 0.3 + rng.normal(size=number) * 0.5
    return EncodedRows.of(
        np.rint(plain.clip(-8, 8) * STEPS).astype(np.int16), labels, np.ones(number, np.int64)
    )


def test_without_noise_it_is_the_least_squares_of_the_rows() -> None:
    rows = made(2000, 0)
    found = solved(second_moments(rows, 1e4), 4, 0.0)  # no row is far from typical
    exact, *_ = np.linalg.lstsq(rows.features / STEPS, rows.labels, rcond=None)
    assert np.abs(found.parameters[:, 0] - exact).max() < 1e-3 and not found.half_widths.any()
    split = [second_moments(EncodedRows.of(*parts), 1e4) for parts in halves(rows)]
    assert np.array_equal(sum(split), second_moments(rows, 1e4))


def halves(rows: EncodedRows) -> list[tuple[Any, Any, Any]]:
    parts = (slice(0, 777), slice(777, None))
    return [
        (rows.features[own, :-1], rows.labels[own], np.ones(len(rows.labels[own]), np.int64)) for own in parts
    ]


def misses(relative: float, runs: int, claimed: float = 1.0) -> tuple[int, float]:
    """Return how often some coefficient is outside its interval, and the mean width of intervals."""
    exact = second_moments(made(2000, 1), 5.0)
    truth = solved(exact, 4, 0.0).parameters
    law = GaussianNoise(int(relative * float(exact.max())) ** 2)
    missed, widths = 0, []
    for _ in range(runs):
        found = solved(exact + law.draw(exact.size), 4, claimed * float(law.parameter) ** 0.5)
        missed += bool((np.abs(found.parameters - truth)[:, 0] > found.half_widths).any())
        widths.append(found.half_widths.mean())
    return missed, float(np.mean(widths))


@pytest.mark.parametrize("relative", [0.0005, 0.01, 0.2])
def test_intervals_cover(relative: float) -> None:
    """At most 5 in 100 miss; of 200 runs 40 or more would with a chance below 1e-9."""
    missed, _ = misses(relative, 200)
    assert missed < 40


def test_intervals_of_a_planted_smaller_noise_do_not_cover() -> None:
    missed, width = misses(0.01, 200, claimed=0.05)
    assert missed >= 40 and 0 < width < 0.1


def test_few_features_have_intervals_that_are_stored() -> None:
    rng = np.random.default_rng(4)
    age, size = rng.uniform(0, 100, (2, 3000))
    table = pa.table({"who": np.arange(3000), "age": age, "size": size, "pay": 10 * age + 500})
    columns = {"age": sf.between(0, 100), "size": sf.between(0, 100), "pay": sf.between(0, 2000)}
    db = sf.connect(table, name="t", unit="who", columns=columns, budget=sf.Budget(epsilon=99, delta=1e-6))
    model = LinearRegression(label="pay", epsilon=20).fit(db.table("t"))
    found = LinearModel.from_json(model.release_.to_json()).coefficient_intervals()
    for name, exact in (("age", 0.5), ("size", 0.0)):  # fifty years are half of the half width of pay
        low, high = found[name]
        assert 0 < high - low < 0.2 and abs((low + high) / 2 - exact) < 0.1
    assert np.abs(model.predict({"age": [20, 80], "size": [1, 99]}) - [700, 1300]).max() < 100
    again = LinearRegression(label="pay", epsilon=20, steps=5).fit(db.table("t"))
    with pytest.raises(Unsupported, match="descent"):
        again.release_.coefficient_intervals()
    wrong: list[dict[str, Any]] = [{"method": "magic"}, {"method": "moments", "steps": 5}]
    for given in wrong:
        with pytest.raises(InvalidArgument):
            LinearRegression(label="pay", epsilon=1, **given).price(db.table("t"))


def test_a_descent_of_a_small_table_is_not_all_noise() -> None:
    """Three times the noise shrinks coefficients; without, they are ten times as large. Means of 10 fits.

    False alarm below 1e-9: by Chernoff's bound, with moments measured in 300 fits, means of the logarithms of
    10 fits each are as close as a factor of 3 with a chance of (1/25)^10.
    """
    rng = np.random.default_rng(8)
    table = pa.table({"who": np.arange(200), **{f"x{place}": rng.normal(size=200) for place in range(10)}})
    table = table.append_column("y", pa.array(rng.uniform(-1, 1, 200)))
    columns = {name: sf.between(-3, 3) for name in table.column_names if name.startswith("x")}
    db = sf.connect(
        table,
        name="t",
        unit="who",
        columns=columns | {"y": sf.between(-1, 1)},
        budget=sf.Budget(epsilon=99, delta=1e-6),
    )

    def size(**given: Any) -> float:
        fits = [LinearRegression(label="y", epsilon=1, **given).fit(db.table("t")) for _ in range(10)]
        return float(np.exp(np.mean([np.log(np.abs(fit.coef_).mean()) for fit in fits])))

    assert 3 * size() < size(shrinkage=0)
