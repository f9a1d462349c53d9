"""Features: what can be read off an output; each is a number per output, from columns of outputs.

Plain features are fixed beforehand. Learned ones are fitted to a first part of the samples that are
there for choosing, and judged by the rest of them; what is tested is tested on other samples again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.audit.output_table import OutputColumn, OutputTable
from sfumato.core.arguments import FloatArray

__all__ = ["Feature", "fitted", "lowest_bits", "plain"]

_PAIRED = 6  # up to this many columns, all pairs are looked at; above it, neighbours only
_BINS = 24
_MOST_ATOMS = 4096
_REMAINDERS = (2, 3, 5, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """A number per output; NaN where it makes no sense, which no threshold holds for."""

    words: str
    of: Callable[[OutputTable], FloatArray]


def plain(outputs: OutputTable) -> Iterator[Feature]:
    """Yield the features of outputs: values, low bits, remainders, sums, differences, extremes."""
    for name, column in outputs.columns.items():
        yield _feature(name, lambda values: values, name)
        finite = column.numbers[np.isfinite(column.numbers)]
        if (finite != np.rint(finite)).any():
            yield _feature(f"log2 of the lowest bit of {name}", lowest_bits, name)
        elif (np.abs(finite) > 1).any():  # whole numbers, and not just answers of yes and no
            for modulus in _REMAINDERS:
                yield _feature(f"{name} mod {modulus}", partial(_remainders, modulus=modulus), name)
    whole = [name for name in outputs.columns if not name.startswith("length")]
    if len(whole) < 2:
        return
    for one, other in combinations(whole, 2) if len(whole) <= _PAIRED else pairwise(whole):
        yield _feature(f"{one} - {other}", np.subtract, one, other)
        yield _feature(f"{one} + {other}", np.add, one, other)
    yield Feature("the sum of all numbers", lambda s: _table(s, whole).sum(axis=1))
    yield Feature("the largest number", lambda s: _table(s, whole).max(axis=1))
    yield Feature("the smallest number", lambda s: _table(s, whole).min(axis=1))
    yield Feature("the place of the largest", lambda s: _table(s, whole).argmax(axis=1).astype(np.float64))


def _feature(words: str, function: Callable[..., FloatArray], *names: str) -> Feature:
    """Return a function of the numbers of some columns."""
    return Feature(words, lambda outputs: function(*(outputs.column(name).numbers for name in names)))


def _remainders(values: FloatArray, modulus: int) -> FloatArray:
    return np.mod(np.where(np.isfinite(values), values, np.nan), modulus)


def lowest_bits(values: FloatArray) -> FloatArray:
    """Return the exponent of the lowest set bit of floats: 0.5 has -1, 12 has 2, zero and the like NaN.

    A float that was rounded at a large number is a multiple of a coarse power of two; the same float
    drawn near zero hardly ever is (Mironov 2012).

    >>> lowest_bits(np.array([0.5, 12.0, 0.0])).tolist()
    [-1.0, 2.0, nan]
    """
    mantissas, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    with np.errstate(divide="ignore"):
        trailing = np.log2((whole & -whole).astype(np.float64))
    return np.where(whole == 0, np.nan, exponents - 53 + trailing)


def fitted(left: OutputTable, right: OutputTable) -> Iterator[Feature]:
    """Yield features learned from samples of both neighbours: likelihood ratios.

    Of single columns that hold few different values; of whole outputs, where these are few; and of all
    columns together, as if they were independent (naive Bayes).
    """
    names = list(dict.fromkeys([*left.columns, *right.columns]))
    scores: list[Callable[[OutputTable], FloatArray]] = []
    for name in names:
        score = _score_of_column(left.column(name), right.column(name))
        if score is not None:
            scores.append(lambda s, name=name, score=score: score(s.column(name)))  # type: ignore[misc]
            yield Feature(f"the likelihood ratio of {name}", scores[-1])
    if len(scores) > 1:
        yield Feature(
            f"the summed likelihood ratios of {len(scores)} places",
            lambda s: np.sum([score(s) for score in scores], axis=0),
        )
        whole = _score_of_outputs(left, right, names)
        if whole is not None:
            yield Feature("the likelihood ratio of the whole output", whole)


def _score_of_column(left: OutputColumn, right: OutputColumn) -> Callable[[OutputColumn], FloatArray] | None:
    """Learn ln(P(value) / Q(value)): per value where these are few, else per bin."""
    numbers = np.concatenate([left.numbers, right.numbers])
    if left.atoms is not None or right.atoms is not None:
        table = _ratios(left.texts().tolist(), right.texts().tolist())
        if table is None:
            return None
        return lambda column: np.array([table.get(text, 0.0) for text in column.texts().tolist()])
    values = np.unique(numbers[~np.isnan(numbers)])
    if not len(values):
        return None
    edges = values
    if len(values) > 2 * _BINS:  # as many samples in every bin
        edges = np.unique(np.quantile(numbers[~np.isnan(numbers)], np.linspace(0, 1, _BINS + 1)[1:-1]))

    def place(column: OutputColumn) -> npt.NDArray[np.int64]:
        places = np.searchsorted(edges, column.numbers, side="right")
        return np.where(np.isnan(column.numbers), len(edges) + 1, places)

    counts = [np.bincount(place(side), minlength=len(edges) + 2).astype(np.float64) for side in (left, right)]
    ratios = _log_ratio(counts[0], counts[1], len(left.numbers), len(right.numbers))
    return lambda column: ratios[place(column)]


def _score_of_outputs(
    left: OutputTable, right: OutputTable, names: list[str]
) -> Callable[[OutputTable], FloatArray] | None:
    """Learn the likelihood ratio of whole outputs, where few of them are different."""

    def rows(outputs: OutputTable) -> list[Any]:
        parts = []
        for name in names:
            column = outputs.column(name)
            parts.append((column.numbers if column.atoms is None else column.atoms).tolist())
        return list(zip(*parts, strict=True))

    table = _ratios(rows(left), rows(right))
    if table is None:
        return None
    return lambda outputs: np.array([table.get(row, 0.0) for row in rows(outputs)])


def _ratios(left: list[Any], right: list[Any]) -> dict[Any, float] | None:
    counts: dict[Any, list[int]] = {}
    for side, values in enumerate((left, right)):
        for value in values:
            counts.setdefault(value, [0, 0])[side] += 1
    if len(counts) > min(_MOST_ATOMS, (len(left) + len(right)) // 4):
        return None
    table = np.array(list(counts.values()), dtype=np.float64)
    ratios = _log_ratio(table[:, 0], table[:, 1], len(left), len(right))
    return dict(zip(counts, ratios.tolist(), strict=True))


def _log_ratio(left: FloatArray, right: FloatArray, lefts: int, rights: int) -> FloatArray:
    """Return smoothed log-ratios; where nothing was seen, zero."""
    ratios: FloatArray = np.log((left + 0.5) / (right + 0.5)) + math.log((rights + 1) / (lefts + 1))
    return np.where(left + right == 0, 0.0, ratios)


def _table(outputs: OutputTable, names: list[str]) -> FloatArray:
    table = np.stack([outputs.column(name).numbers for name in names], axis=1)
    return np.where(np.isnan(table), -np.inf, table)
