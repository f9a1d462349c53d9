"""Exact laws of the integer noise, and the chi-square verdict, as oracles for the sampler tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import special, stats

FALSE_ALARM = 1e-9

Tail = Callable[[np.ndarray], np.ndarray]


def geometric_tail(scale: Fraction, m: np.ndarray) -> np.ndarray:
    """P(X >= m) for P(x) proportional to exp(-x/scale), x >= 0."""
    return np.where(m <= 0, 1.0, np.exp(-np.maximum(m, 0) / float(scale)))


def laplace_tail(scale: Fraction, m: np.ndarray) -> np.ndarray:
    """P(X >= m) for P(x) proportional to exp(-|x|/scale)."""
    r = math.exp(-1 / float(scale))
    upper = np.exp(-np.maximum(m, 1 - m) / float(scale)) / (1 + r)  # P(X >= m) for m > 0, P(X < m) for m <= 0
    return np.where(m > 0, upper, 1 - upper)


def gaussian_tail(sigma: Fraction, m: np.ndarray) -> np.ndarray:
    """P(X >= m) for P(x) proportional to exp(-x^2/(2 sigma^2)).

    By direct summation for sigma below 100. Above, by the Euler-Maclaurin formula around
    the midpoints, whose error there is far below what 10^7 draws can see.
    """
    s = float(sigma)
    if s < 100:
        x = np.arange(-math.ceil(12 * s) - 5, math.ceil(12 * s) + 6)
        weights = np.exp(-((x / s) ** 2) / 2)
        tail = np.append(np.cumsum(weights[::-1])[::-1], 0.0) / weights.sum()
        return tail[np.clip(m - x[0], 0, len(x)).astype(np.int64)]
    return special.ndtr(-(m - 0.5) / s)


def chi_square_verdict(draws: np.ndarray, tail: Tail, edges: np.ndarray, verdicts: int = 1) -> None:
    """Fail if the counts between `edges` differ from the law; false alarm FALSE_ALARM over all `verdicts`.

    The statistic is that of the likelihood ratio: in bins of few draws its far tail is that of chi-square,
    where that of Pearson's is up to a hundred times as heavy. Half of FALSE_ALARM is kept for what is left.

    `edges` are integers; the bins are (-inf, edges[0]), [edges[0], edges[1]), ..., [edges[-1], inf).
    Bins expected to hold fewer than 10 draws are merged into their neighbour.
    """
    counts = np.diff(np.concatenate(([0], np.searchsorted(np.sort(draws), edges, "left"), [len(draws)])))
    survive = np.concatenate(([1.0], tail(edges), [0.0]))
    expected = -np.diff(survive) * len(draws)
    merged_counts, merged_expected, c, e = [], [], 0.0, 0.0
    for count, expect in zip(counts, expected, strict=True):
        c, e = c + count, e + expect
        if e >= 10:
            merged_counts.append(c)
            merged_expected.append(e)
            c = e = 0.0
    merged_counts[-1] += c
    merged_expected[-1] += e
    observed, wanted = np.array(merged_counts), np.array(merged_expected)
    excess = special.xlogy(observed, observed / wanted) - (observed - wanted)
    statistic = 2 * float(excess.sum())
    limit = float(stats.chi2.isf(FALSE_ALARM / 2 / verdicts, max(1, len(wanted) - 1)))
    assert statistic <= limit, f"chi-square {statistic:.1f} above {limit:.1f} with {len(wanted)} bins"


def quantile_edges(scale: Fraction, reach: float) -> np.ndarray:
    """Integer bin edges over +-reach scales, at most about 160, awkward with respect to powers of two."""
    s = float(scale)
    return np.unique(np.round(np.linspace(-reach * s, reach * s, 161)).astype(np.int64))
