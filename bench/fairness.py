"""Who pays for privacy: scikit-learn's digits with one of ten classes cut to a tenth, trained with epsilon 8.

Of each three rows two are trained on and one is held out; of the eights to train on, nine of ten are held out
instead. The model without privacy is scikit-learn's, on the same rows. Held-out rows are those of another
private table, which the fairness report is about. The mitigation weighs eights ten times, as many times as
they are too few, or thirty times. All settings are defaults. Intervals are those of means over runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from report import Row, show
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression as WithoutPrivacy

import sfumato as sf
from sfumato.learn import LogisticRegression, fairness_report

__all__ = ["fairness_rows"]

CUT, PARTS = 8, 10
EPSILON, REPORT = 8, 3
RUNS = 16
SEVERAL = 3.0


def fairness_rows(runs: int = RUNS) -> Iterator[Row]:
    """Train with and without weights, many times; compare what each class loses."""
    pixels, digits = load_digits(return_X_y=True)
    trained = _trained_on(digits)
    frames = [_table(pixels[rows], digits[rows]) for rows in (trained, ~trained)]
    table, held_out = (_opened(frame) for frame in frames)
    public = frames[1]
    plain = WithoutPrivacy(max_iter=5000).fit(pixels[trained] / 16, digits[trained])
    before = _by_class(plain.predict(pixels[~trained] / 16), digits[~trained])
    found, flags = {}, 0
    for weight in (1, 10, 30):
        each = []
        for _ in range(runs):
            model = LogisticRegression(label="digit", epsilon=EPSILON, weights={"digit": {CUT: weight}})
            each.append(_by_class(model.fit(table).predict(public), digits[~trained]))
            if weight == 1:
                asked = fairness_report(model, held_out, groups=["digit"], epsilon=REPORT)
                flags += asked.release().group(f"digit = {CUT}").pays
        found[weight] = np.array(each)
    lost = 100 * (before - found[1].mean(axis=0))
    title = f"digits, {CUT} cut to a tenth, epsilon {EPSILON}"
    yield Row(
        name=f"{title}: points it loses, beside the mean of all classes",
        ours=lost[CUT],
        rival=lost.mean(),
        unit="points",
        ratio=lost[CUT] / lost.mean(),
        least=SEVERAL,
    )
    yield Row(
        name=f"{title}: share of reports at epsilon {REPORT} on held-out rows that flag it",
        ours=flags / runs,
        rival=None,
        unit="",
        ratio=flags / runs,
        least=1.0,
    )
    yield from (_narrowed(title, weight, found[1], found[weight]) for weight in (10, 30))


def _narrowed(title: str, weight: int, without: Any, weighted: Any) -> Row:
    """Return by how much the gap between the mean of all classes and the one that was cut is narrower."""
    gaps = [100 * (one.mean(axis=1) - one[:, CUT]) for one in (without, weighted)]
    means, errors = [one.mean() for one in gaps], [one.var(ddof=1) / len(one) for one in gaps]
    freedom = sum(errors) ** 2 / sum(one**2 / (len(gaps[0]) - 1) for one in errors)  # Welch
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(sum(errors))
    narrower = means[0] - means[1]
    others = 100 * (np.delete(without, CUT, axis=1).mean() - np.delete(weighted, CUT, axis=1).mean())
    return Row(
        name=f"{title}: gap with a weight of {weight}, beside none; narrower by {narrower:.1f} points "
        f"(95%: {narrower - half:.1f} to {narrower + half:.1f}), other classes lose {others:.1f}",
        ours=means[1],
        rival=means[0],
        unit="points",
        ratio=narrower - half,
        least=1.0,
    )


def _trained_on(digits: Any) -> Any:
    """Return which rows are trained on: a fixed rule."""
    trained = np.arange(len(digits)) % 3 != 0
    few = np.flatnonzero(trained & (digits == CUT))
    trained[np.delete(few, slice(None, None, PARTS))] = False
    return trained


def _table(pixels: Any, digits: Any) -> pa.Table:
    columns = {f"p{place}": pixels[:, place] for place in range(pixels.shape[1])}
    return pa.table({"who": np.arange(len(digits)), **columns, "digit": digits.astype(np.int64)})


def _opened(frame: pa.Table) -> Any:
    columns: dict[str, Any] = {f"p{place}": sf.between(0, 16) for place in range(64)}
    database = sf.connect(
        frame, name="digits", unit="who", columns={**columns, "digit": sf.one_of(*range(10))},
        budget=sf.Budget(epsilon=10_000, delta=1e-5),
    )  # fmt: skip
    return database.table("digits")


def _by_class(predicted: Any, digits: Any) -> Any:
    return np.array([(predicted[digits == one] == one).mean() for one in range(10)])


if __name__ == "__main__":
    show(fairness_rows(), {})
