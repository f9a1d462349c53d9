"""Totals without a declared cap beside the best fixed cap known afterwards: nine tails, and others.

    python bench/ladder.py [--runs 1000]

Of each table (a tail, 500, 5,000 or 60,000 people, epsilon 0.1, 0.5 or 2) the root mean squared error of
the ladder's total, over the least of any fixed cap: what that cap leaves out, and its noise. The cap is
chosen with the truth at hand, as nobody can. The Gaussian ladder and cap have rho = epsilon^2 / 2. How much
a level has to stand out was chosen on the other tails, not on the nine.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from report import Row, show

from sfumato.core.ladder import CapLadder, GaussianLadder, LaplaceLadder
from sfumato.core.ladder_estimates import estimate

__all__ = ["ladder_rows"]

TOP = 20
PEOPLE, EPSILONS = (500, 5_000, 60_000), (0.1, 0.5, 2.0)
MOST = {"Gaussian": (1.5, 1.9), "Laplace": (2.3, 3.8)}
_Rows = npt.NDArray[np.int64]


def tails(people: int, seed: int = 7) -> Iterator[tuple[str, _Rows]]:
    """Yield how many rows each person has, by the name of the tail."""
    draw = np.random.default_rng(seed)

    def whole(values: npt.ArrayLike) -> _Rows:
        return np.clip(np.floor(values), 1, 2**TOP).astype(np.int64)

    yield "one row each", np.ones(people, dtype=np.int64)
    yield "a few", 1 + draw.poisson(1.5, people)
    yield "geometric", draw.geometric(0.2, people)
    yield "lognormal", whole(np.exp(draw.normal(1, 1, people)) + 1)
    yield "wide lognormal", whole(np.exp(draw.normal(0.7, 1.7, people)) + 1)
    for power in (2.5, 1.5, 1.1):
        yield f"Pareto {power}", whole((1 - draw.random(people)) ** (-1 / power))
    few = draw.geometric(0.3, people)
    few[: max(3, people // 1000)] = 3000
    yield "a few machines", few


def other_tails(people: int) -> Iterator[tuple[str, _Rows]]:
    """Yield tails that nothing was tuned on."""
    draw = np.random.default_rng(11)
    yield "uniform to 100", draw.integers(1, 101, people)
    yield "Pareto 1.8", np.clip((1 - draw.random(people)) ** (-1 / 1.8), 1, 2**TOP).astype(np.int64)
    yield "seven each", np.full(people, 7)
    yield "Weibull", 1 + (20 * draw.weibull(0.5, people)).astype(np.int64)
    yield "two kinds", np.where(draw.random(people) < 0.1, draw.poisson(200, people), 1)
    yield "negative binomial", 1 + draw.negative_binomial(0.4, 0.02, people)


def totals(rows: _Rows) -> npt.NDArray[np.int64]:
    """Return the exact totals of the levels: see `core.ladder.divided`, of one group."""
    level = np.minimum(np.frexp(rows.astype(float))[1] - 1, TOP - 1)
    lower = 2**level
    low = np.bincount(level, weights=2 * lower - rows, minlength=TOP + 1)
    high = np.bincount(level + 1, weights=2 * (rows - lower), minlength=TOP + 1)
    return (low + high).astype(np.int64)


def ladder_of(law: str, epsilon: float) -> CapLadder:
    """Return the ladder of an epsilon: of Gaussian noise, of rho = epsilon^2 / 2."""
    exact = Fraction(epsilon)
    if law == "Laplace":
        return LaplaceLadder(top=TOP, epsilon=exact)
    single = GaussianLadder(top=TOP, variance=Fraction(1))
    return GaussianLadder(top=TOP, variance=single.l2_squared / exact**2)


def best_error(rows: _Rows, law: str, epsilon: float) -> float:
    """Return the least error of any cap: what it leaves out, and its noise."""
    caps = np.unique(np.append(np.round(2 ** np.arange(0, TOP + 0.1, 0.25)), rows.max()))
    ordered = np.sort(rows)
    before = np.concatenate([[0], np.cumsum(ordered)])
    above = np.searchsorted(ordered, caps, side="right")
    lost = before[-1] - before[above] - (len(rows) - above) * caps
    noise = caps / epsilon * (math.sqrt(2) if law == "Laplace" else 1)
    return float(np.sqrt(lost**2 + noise**2).min())


def error(rows: _Rows, ladder: CapLadder, runs: int) -> float:
    """Return the root mean squared error of the ladder's total."""
    exact = ladder.published(totals(rows)[:, None].astype(object))[:, 0]
    levels = range(ladder.lowest, ladder.top + 1)
    noisy = [
        one + ladder.noise(level).draw(runs).astype(object) for one, level in zip(exact, levels, strict=True)
    ]
    found = [estimate(ladder, row).total for row in np.array(noisy, dtype=object).T]
    return float(np.sqrt(np.mean((np.array(found) - rows.sum()) ** 2)))


def ladder_rows(runs: int = 1000) -> Iterator[Row]:
    """Compare both ladders over all tables: the median, nine of ten, and the worst."""
    for title, tables in (("nine tails", tails), ("other tails", other_tails)):
        for law, (median, nine) in MOST.items():
            found: list[tuple[float, str]] = []
            for people in PEOPLE:
                for name, rows in tables(people):
                    for epsilon in EPSILONS:
                        ratio = error(rows, ladder_of(law, epsilon), runs) / best_error(rows, law, epsilon)
                        found.append((ratio, f"{name}, {people} people, epsilon {epsilon:g}"))
            ratios = [ratio for ratio, _ in found]
            worst, where = max(found)
            for what, value, most in (
                ("median", float(np.median(ratios)), median),
                ("nine of ten", float(np.quantile(ratios, 0.9)), nine),
                (f"worst ({where})", worst, math.inf),
            ):
                shown = f"{law} ladder over {title}, error beside the best cap: {what}"
                yield Row(
                    name=shown, ours=value, rival=1.0, unit="", ratio=value,
                    most=most if tables is tails else math.inf,
                )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    show(ladder_rows(parser.parse_args().runs), {})
