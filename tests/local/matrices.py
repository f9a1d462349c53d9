"""Exact matrices of small protocols, and verdicts: do reports follow them, do estimates and limits hold?"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.local.protocol import FrequencyProtocol

FALSE_ALARM = 1e-9
NEARLY = 10  # statistics are only nearly normal: judged ten times as strictly, they keep to FALSE_ALARM

Law = Mapping[Any, Fraction]


def largest_ratio(laws: Mapping[Hashable, Law]) -> Fraction:
    """Return the largest ratio of a report's probabilities under two answers."""
    reports = {report for law in laws.values() for report in law}
    ratios = [Fraction(1)]
    for report in reports:
        chances = [law.get(report, Fraction(0)) for law in laws.values()]
        if max(chances) > 0:
            ratios.append(max(chances) / min(chances))  # a report that only some can send divides by zero
    return max(ratios)


def check_matrix(protocol: FrequencyProtocol, laws: Mapping[Any, Law], supports: Callable[[Any, int], bool]):
    """Check epsilon, p and q against laws, whose keys are the sets of answers that people hold."""
    assert all(sum(law.values()) == 1 for law in laws.values())
    assert largest_ratio(laws) == protocol.max_ratio
    assert protocol.epsilon == pytest.approx(math.log(protocol.max_ratio), rel=1e-14)
    for own, law in laws.items():
        for answer in range(protocol.size):
            chance = sum(weight for report, weight in law.items() if supports(report, answer))
            assert chance == (protocol.p if answer in own else protocol.q)


def check_draws(codes: np.ndarray, law: Mapping[int, Fraction], tests: int = 1) -> None:
    """Fail if integers do not follow the law, by chi-square; false alarm at most FALSE_ALARM / tests.

    Small cells make large statistics likelier than chi-square says: by a factor of 3 at most in the laws of
    these tests (tails of binomial counts, convolved), where NEARLY leaves room for 10.
    """
    assert set(np.unique(codes).tolist()) <= {code for code, chance in law.items() if chance > 0}
    wanted = {code: float(chance) * len(codes) for code, chance in law.items() if chance > 0}
    counts = np.bincount(codes, minlength=max(wanted) + 1)
    often = [code for code in wanted if wanted[code] >= 10]
    observed, expected = [counts[code] for code in often], [wanted[code] for code in often]
    if sum(expected) < len(codes) - 10:
        observed.append(len(codes) - sum(observed))
        expected.append(len(codes) - sum(expected))
    if len(expected) > 1:
        statistic = float(((np.array(observed) - expected) ** 2 / np.array(expected)).sum())
        assert statistic <= stats.chi2.isf(FALSE_ALARM / NEARLY / tests, len(expected) - 1)


def codes_of(packed: np.ndarray, size: int) -> np.ndarray:
    """Return each row of packed bits as an integer, the first answer in the lowest bit."""
    return np.unpackbits(packed, axis=1, count=size).astype(np.int64) @ (1 << np.arange(size))


def code(answers: Any) -> int:
    """Return a set of answers as an integer."""
    return sum(1 << answer for answer in answers)


def check_surveys(protocol: Any, people: Any, shares: list[Fraction], repeat: int = 2000) -> None:
    """Send the same people's answers `repeat` times, and judge estimates and limits answer by answer.

    `people(times)` gives everyone's answers, that many times over. False alarm below FALSE_ALARM in all: each
    answer has five tails, and supports of few people make squares that large likelier than chi-square says,
    by a factor below NEARLY. Power: a bias of a sixth of a deviation, a variance that is a quarter off,
    limits that cover below 91%.
    """
    n = len(people(1))
    reports = protocol.randomise(people(repeat))
    assert protocol.valid(reports).all()
    values, inside = [], []
    for start in range(0, repeat * n, n):
        batch = {name: column[start : start + n] for name, column in reports.items()}
        found = protocol.shares(protocol.collect(batch), n)
        values.append(found.values)
        inside.append(
            (found.low - 1e-9 <= np.array(shares, float)) & (np.array(shares, float) <= found.high + 1e-9)
        )
        assert (found.low <= np.clip(found.values, 0, 1)).all()
        assert (np.clip(found.values, 0, 1) <= found.high).all()
    tail = FALSE_ALARM / NEARLY / (5 * len(shares))
    for answer, share in enumerate(shares):
        column = np.array(values)[:, answer] - float(share)
        variance = protocol.variance(share, n)
        assert abs(column.mean()) <= stats.norm.isf(tail) * math.sqrt(variance / repeat)
        spread = (column**2).sum() / variance
        assert stats.chi2.isf(1 - tail, repeat) <= spread <= stats.chi2.isf(tail, repeat)
        assert stats.binom.cdf(np.array(inside)[:, answer].sum(), repeat, 0.95) > tail


def exact_coverage(protocol: FrequencyProtocol, n: int, level: float, holders: int) -> float:
    """Return the chance that limits hold the share holders / n, summed over every number of supports.

    The protocol has n + 1 answers, so that every number of supports is judged at once.
    """
    assert protocol.size == n + 1
    found = protocol.shares(np.arange(n + 1), n, level)
    law = np.convolve(
        stats.binom.pmf(np.arange(holders + 1), holders, float(protocol.p)),
        stats.binom.pmf(np.arange(n - holders + 1), n - holders, float(protocol.q)),
    )
    inside = (found.low - 1e-12 <= holders / n) & (holders / n <= found.high + 1e-12)
    return float(law[inside].sum())


def rebuilt(protocol: Any) -> Any:
    """Build a protocol from what a survey file holds."""
    read = {
        name: Fraction(value) if isinstance(value, str) else value
        for name, value in protocol.parameters().items()
    }
    return type(protocol)(**read)
