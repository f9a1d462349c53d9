"""Buckets divide all numbers, and bounds are read off them by the rule that is written down."""

from __future__ import annotations

import random

import pytest

from sfumato.catalog import Kind
from sfumato.plan.buckets import Buckets, SoughtBounds
from sfumato.release.sandbox import PlainTable, query

KINDS = [Kind.INTEGER, Kind.REAL]


@pytest.mark.parametrize("kind", KINDS)
def test_buckets_follow_one_another(kind: Kind) -> None:
    buckets = Buckets.of(kind)
    assert len(buckets.lows) == len(buckets.highs) == len(buckets) == len(buckets.edges) + 1
    assert list(buckets.edges) == sorted(set(buckets.edges))
    assert all(low <= high for low, high in zip(buckets.lows, buckets.highs, strict=True))
    zero = buckets.lows.index(0)
    assert buckets.highs[zero] == 0 and zero == len(buckets) // 2
    for place, edge in enumerate(buckets.edges):
        if place + 1 != zero:  # tiny numbers count as zero
            assert buckets.lows[place + 1] == edge
        if place != zero:
            assert buckets.highs[place] == (edge - 1 if kind is Kind.INTEGER else edge)


def test_whole_numbers_of_64_bits_have_a_bucket() -> None:
    buckets = Buckets.of(Kind.INTEGER)
    assert (buckets.lows[0], buckets.highs[-1]) == (-(2**63), 2**63 - 1)


def by_hand(
    buckets: Buckets, cells: list[int], apart: int, beside: int, share: float
) -> tuple[float | None, float | None]:
    """The rule, step by step."""
    sure = [place for place, n in enumerate(cells) if n >= apart]
    if not sure:
        return None, None
    first, last = sure[0], sure[-1]
    while first > 0 and cells[first - 1] >= beside:
        first -= 1
    while last + 1 < len(cells) and cells[last + 1] >= beside:
        last += 1
    held = {place: max(0, cells[place]) for place in range(first, last + 1)}
    cut = sum(held.values()) * (share / 2)
    while sum(held[place] for place in held if place <= first) <= cut:
        first += 1
    while sum(held[place] for place in held if place >= last) <= cut:
        last -= 1
    low, high = buckets.lows[first], buckets.highs[last]
    if 0 < low <= high / 16:
        return 0, high
    return (low, 0) if 0 > high >= low / 16 else (low, high)


def _sought(buckets: Buckets, share: float) -> str:
    sought = SoughtBounds(buckets=buckets, column="x", share=share, false_alarm=0.05)
    return sought.postprocessing(released="r", cells="a", apart=50, beside=20)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_bounds_are_read_off_by_the_rule(kind: Kind, share: float) -> None:
    buckets = Buckets.of(kind)
    source = random.Random(f"{kind} {share}")
    found = set()
    for turn in range(40):
        cells = [round(source.gauss(0, 8)) for _ in range(len(buckets))]
        start = source.choice([0, 1, len(cells) // 2 - 4, len(cells) // 2, len(cells) - 12])
        for place in range(start, start + source.choice([0, 1, 3, 8, 12]) if turn % 4 else start):
            cells[min(place, len(cells) - 1)] += source.choice([20, 60, 300])
        sql = _sought(buckets, share)
        answer = query({"r": PlainTable(columns=("a",), types=("BIGINT[]",), values=([cells],))}, sql)
        assert answer.columns == ("low", "high")
        assert answer.types == (("BIGINT",) * 2 if kind is Kind.INTEGER else ("DOUBLE",) * 2)
        expected = by_hand(buckets, cells, 50, 20, share)
        assert tuple(values[0] for values in answer.values) == expected
        found.add(expected)
    assert (None, None) in found and len(found) > 8


def test_numbers_below_zero_end_at_zero() -> None:
    buckets = Buckets.of(Kind.INTEGER)
    cells = [0] * len(buckets)
    zero = buckets.lows.index(0)
    cells[zero - 12 : zero - 2] = [100] * 10
    sql = _sought(buckets, 0.0)
    answer = query({"r": PlainTable(columns=("a",), types=("BIGINT[]",), values=([cells],))}, sql)
    assert answer.values == ([-4095], [0])
