"""Values of blocks: people are divided into blocks, and a statistic of each block becomes an integer.

A unit's block is a salted hash of its name. The statistic is a function of the block's multiset of rows, bit
by bit: rows are sorted before anything is computed, so that neither their order nor threads matter. (Sums of
doubles depend on the order in which they are added up: the sums of an engine would not do.)

It is total. Rows in which an argument is absent are left out; a block without rows, with too few of them,
or whose statistic overflows, divides by zero or is otherwise no finite number, has the value zero: the middle
of the range that the question gives. What one unit moves: `analysis/measures`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.sample_and_aggregate import BlockStatistic
from sfumato.analysis.bounded import Measure
from sfumato.backends.bounding.entries import kept_rows
from sfumato.backends.bounding.group_totals import GroupingSet
from sfumato.backends.bounding.packing import PackedChoice
from sfumato.backends.bounding.priorities import mixed, starts_of
from sfumato.backends.totals import empty, sum_by_group

__all__ = ["BlockRows", "blocks_of", "statistic_of"]

_Integers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Words = npt.NDArray[np.uint64]

_BLOCKS = np.uint64(0x9E3779B97F4A7C15)  # tells a unit's block apart from the priorities of its groups


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BlockRows:
    """The rows that count, with the finest group and the block of each. Private."""

    measure: Measure
    codes: _Integers
    blocks: _Integers
    values: tuple[_Floats, ...]

    @staticmethod
    def kept(
        measure: Measure,
        units: _Integers,
        codes: _Integers,
        values: Sequence[npt.NDArray[Any]],
        unit_hashes: _Words | None,
        choice: PackedChoice,
    ) -> BlockRows:
        """Return the rows of groups that count of their units, in which no value is NaN."""
        assert measure.blocks is not None
        columns = [column.astype(np.float64) + 0.0 for column in values]  # there is one zero, 0.0
        keep = kept_rows(units, codes, unit_hashes, choice)
        for column in columns:
            keep &= ~np.isnan(column)
        units = units[keep]
        hashes = units.view(np.uint64) if unit_hashes is None else unit_hashes[units]
        return BlockRows(
            measure=measure,
            codes=codes[keep].astype(np.int64),
            blocks=blocks_of(hashes, choice.salt, measure.blocks.number),
            values=tuple(column[keep] for column in columns),
        )

    def totals(self, one: GroupingSet) -> npt.NDArray[Any]:
        """Return the sum over blocks for each group of a set."""
        described = self.measure.blocks
        assert described is not None
        places = one.parents[self.codes] * described.number + self.blocks
        total: npt.NDArray[Any] = empty(self.measure, one.size)
        if not len(places):
            return total
        order = np.lexsort((*reversed(self.values), places))  # by block, then by values
        places, columns = places[order], [column[order] for column in self.values]
        starts = starts_of(places)
        pairs = zip(starts.tolist(), [*starts[1:].tolist(), len(places)], strict=True)
        found = [
            statistic_of(described.statistic, *(column[begin:end] for column in columns))
            for begin, end in pairs
        ]
        integers = described.grid.to_integers(np.array(found) - described.centre)
        total = total + sum_by_group(places[starts] // described.number, integers, one.size)
        return total


def blocks_of(hashes: _Words, salt: int, number: int) -> _Integers:
    """Return the block of each unit, by its hash and the salt alone."""
    words = mixed(mixed(hashes ^ np.uint64(salt)) ^ _BLOCKS)
    return (words % np.uint64(number)).astype(np.int64)


def statistic_of(statistic: BlockStatistic, *columns: _Floats) -> float:
    """Return a statistic of sorted values, NaN where it is no finite number. It never fails.

    >>> statistic_of(BlockStatistic.MAD, np.array([1.0, 2.0, 4.0, 9.0]))
    1.5
    >>> statistic_of(BlockStatistic.GEOMEAN, np.array([-1.0, 4.0]))
    nan
    """
    try:
        with np.errstate(all="ignore"):
            found = float(_STATISTICS[statistic](*columns))
    except (ArithmeticError, ValueError):
        return math.nan
    return found if math.isfinite(found) else math.nan


# -- statistics, of at least one row --------------------------------------------------------
# Differences and products of doubles are rounded one by one, whatever computes them; `fsum` adds up
# exactly, and rounds once.


def _sum(values: _Floats) -> float:
    return math.fsum(values.tolist())


def _mean(values: _Floats) -> float:
    return _sum(values) / len(values)


def _median(values: _Floats) -> float:
    below, above = float(values[(len(values) - 1) // 2]), float(values[len(values) // 2])
    return below + (above - below) / 2


def _mad(values: _Floats) -> float:
    return _median(np.sort(np.abs(values - _median(values))))


def _centred(values: _Floats) -> _Floats:
    """Return values less their mean; zeros, if all are the same."""
    apart: _Floats = values - values[0]
    apart = apart - _mean(apart)
    return apart


def _variance(values: _Floats) -> float:
    apart = _centred(values)
    return _sum(apart * apart) / (len(values) - 1)


def _skewness(values: _Floats) -> float:
    n, apart = len(values), _centred(values)
    squares, cubes = _sum(apart * apart) / n, _sum(apart * apart * apart) / n
    return math.sqrt(n * (n - 1)) / (n - 2) * cubes / (squares * math.sqrt(squares))


def _kurtosis_pop(values: _Floats) -> float:
    apart = _centred(values)
    squares = apart * apart
    second, fourth = _sum(squares) / len(values), _sum(squares * squares) / len(values)
    return fourth / (second * second) - 3


def _kurtosis(values: _Floats) -> float:
    n = len(values)
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (_kurtosis_pop(values) + 3) - 3 * (n - 1))


def _entropy(values: _Floats) -> float:
    counts = np.diff(starts_of(values), append=len(values)).tolist()
    shares = [count / len(values) for count in counts]
    return -math.fsum(share * math.log2(share) for share in shares)


def _geomean(values: _Floats) -> float:
    return math.exp(math.fsum(map(math.log, values.tolist())) / len(values))


def _correlation(x: _Floats, y: _Floats) -> float:
    x, y = _centred(x), _centred(y)
    return _sum(x * y) / (math.sqrt(_sum(x * x)) * math.sqrt(_sum(y * y)))


_STATISTICS: dict[BlockStatistic, Callable[..., float]] = {
    BlockStatistic.AVG: _mean,
    BlockStatistic.CORR: _correlation,
    BlockStatistic.ENTROPY: _entropy,
    BlockStatistic.GEOMEAN: _geomean,
    BlockStatistic.KURTOSIS: _kurtosis,
    BlockStatistic.KURTOSIS_POP: _kurtosis_pop,
    BlockStatistic.MAD: _mad,
    BlockStatistic.MAX: lambda values: values[-1],
    BlockStatistic.MEDIAN: _median,
    BlockStatistic.MIN: lambda values: values[0],
    BlockStatistic.SKEWNESS: _skewness,
    BlockStatistic.STDDEV: lambda values: math.sqrt(_variance(values)),
    BlockStatistic.VARIANCE: _variance,
}
