"""The search for the event that tells two neighbours apart best, on samples that are there for choosing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.audit.evidence import epsilon_of_counts
from sfumato.audit.features import Feature, fitted, plain
from sfumato.audit.output_table import OutputColumn, OutputTable
from sfumato.core.arguments import FloatArray

__all__ = ["Distinguisher", "best_distinguisher"]

_Counts = npt.NDArray[np.int64]
_CUTS = 300
_EXTREMES = 12  # at each end: rare events are there
_ATOMS = 200
_FINALISTS = 4  # of each feature, that are compared exactly


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher:
    """An event, in words and as a test; under which neighbour it is likelier; what it promises to prove."""

    words: str
    holds: Callable[[OutputTable], npt.NDArray[np.bool_]]
    left_is_likely: bool
    promise: float


def best_distinguisher(left: OutputTable, right: OutputTable, *, delta: float, miss: float) -> Distinguisher:
    """Return the event with the largest lower bound on these samples; its promise is biased, so test it.

    Learned features are fitted to the first half and judged on the second, plain ones judged on all.
    """
    best = Distinguisher("anything", lambda outputs: np.ones(outputs.size, dtype=np.bool_), True, 0.0)
    first = [outputs.among(slice(0, outputs.size // 2)) for outputs in (left, right)]
    rest = [outputs.among(slice(outputs.size // 2, None)) for outputs in (left, right)]
    both = OutputTable({**right.columns, **left.columns}, left.size, left.of_numbers)
    found = [best]
    for features, sides in ((plain(both), (left, right)), (fitted(*first), rest)):
        for feature in features:
            values = (feature.of(side) for side in sides)
            found += _by_threshold(feature, *values, delta=delta, miss=miss)
    found += _by_atom(left, right, delta=delta, miss=miss)
    return max(found, key=lambda it: it.promise)


def _by_threshold(
    feature: Feature, left: FloatArray, right: FloatArray, *, delta: float, miss: float
) -> Iterator[Distinguisher]:
    """Yield the best events that a feature is at least, at most, or equal to something."""
    cuts = _cuts(left, right)
    if not len(cuts):
        return
    ordered = [np.sort(values[~np.isnan(values)]) for values in (left, right)]
    below = [np.searchsorted(values, cuts, side="left") for values in ordered]
    upto = [np.searchsorted(values, cuts, side="right") for values in ordered]
    tests: list[tuple[str, list[_Counts], Callable[[FloatArray, float], npt.NDArray[np.bool_]]]] = [
        (">=", [len(values) - some for values, some in zip(ordered, below, strict=True)], np.greater_equal),
        ("<=", upto, np.less_equal),
        ("=", [more - some for more, some in zip(upto, below, strict=True)], np.equal),
    ]
    for sign, hits, compare in tests:
        for at, left_is_likely, promise in _finalists(hits[0], hits[1], len(left), delta=delta, miss=miss):
            cut = float(cuts[at])
            yield Distinguisher(
                f"[{feature.words} {sign} {cut:.12g}]",
                lambda outputs, cut=cut, compare=compare: compare(feature.of(outputs), cut),  # type: ignore[misc]
                left_is_likely,
                promise,
            )


def _by_atom(left: OutputTable, right: OutputTable, *, delta: float, miss: float) -> Iterator[Distinguisher]:
    """Yield the best events that a place holds one value: a text, NaN, None, nothing at all."""
    for name in dict.fromkeys([*left.columns, *right.columns]):
        sides = [outputs.column(name) for outputs in (left, right)]
        counted: dict[str | None, list[int]] = {}
        if all(side.atoms is None for side in sides):  # numbers: thresholds have seen to them, not to NaN
            counted[None] = [int(np.isnan(side.numbers).sum()) for side in sides]
        else:
            for place, side in enumerate(sides):
                for text, number in zip(*np.unique(side.texts(), return_counts=True), strict=True):
                    counted.setdefault(str(text), [0, 0])[place] += int(number)
        known = sorted(counted, key=lambda atom: -abs(counted[atom][0] - counted[atom][1]))[:_ATOMS]
        hits = np.array([counted[atom] for atom in known]).T
        for at, left_is_likely, promise in _finalists(hits[0], hits[1], left.size, delta=delta, miss=miss):
            value = known[at]
            yield Distinguisher(
                f"[{name} is {value or 'not there'}]",
                lambda outputs, name=name, value=value: _holds(outputs.column(name), value),  # type: ignore[misc]
                left_is_likely,
                promise,
            )


def _holds(column: OutputColumn, value: str | None) -> npt.NDArray[np.bool_]:
    """Return where a column holds an atom, which is a text; None where it holds no number."""
    found: npt.NDArray[np.bool_] = np.isnan(column.numbers) if value is None else column.texts() == value
    return found


def _finalists(
    left: _Counts, right: _Counts, trials: int, *, delta: float, miss: float
) -> Iterator[tuple[int, bool, float]]:
    """Yield places, orders and exact promises of the few events that look best by a quick bound."""
    for left_is_likely, p, q in ((True, left, right), (False, right, left)):
        top = np.argsort(_quick(p, q, trials, delta))[-_FINALISTS:]
        exact = epsilon_of_counts(p[top], q[top], (trials, trials), delta=delta, miss=miss)
        at = int(np.argmax(exact))
        if exact[at] > 0:
            yield int(top[at]), left_is_likely, float(exact[at])


def _quick(p: _Counts, q: _Counts, n: int, delta: float) -> FloatArray:
    """Return about the lower bound: Wilson's limits at five standard errors."""
    z2 = 25.0

    def limit(hits: _Counts, side: int) -> FloatArray:
        share = hits / n
        spread = np.sqrt(z2 * share * (1 - share) / n + z2**2 / (4 * n * n))
        found: FloatArray = (share + z2 / (2 * n) + side * spread) / (1 + z2 / n)
        return found

    low = np.maximum(limit(p, -1) - delta, 1e-300)
    return np.log(low) - np.log(np.maximum(limit(q, 1), 1e-300))


def _cuts(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return where to cut: all values where they are few, else quantiles and what is at the ends."""
    pooled = np.concatenate([left, right])
    values = np.unique(pooled[~np.isnan(pooled)])
    if len(values) <= _CUTS:
        return values
    places = np.linspace(0, len(values) - 1, _CUTS).astype(np.int64)
    ordered = np.sort(pooled[~np.isnan(pooled)])
    common = ordered[np.linspace(0, len(ordered) - 1, _CUTS).astype(np.int64)]
    ends = np.concatenate([values[:_EXTREMES], values[-_EXTREMES:]])
    return np.unique(np.concatenate([values[places[::4]], common, ends]))
