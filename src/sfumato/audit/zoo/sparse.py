"""The wrong sparse vectors: four published variants that are not private (Lyu, Su and Li 2017).

Each is asked the same queries at threshold 0; the algorithm numbers are those of Lyu, Su and Li. The twin is
the variant of `sfumato.core`, which has all that each of these leaves out.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.audit.neighbours import answers
from sfumato.audit.output_table import OutputColumns
from sfumato.audit.subject import Claim, Subject
from sfumato.audit.zoo.animal import Animal
from sfumato.core.noise import discrete_laplace
from sfumato.core.sparse import SparseVector

__all__ = ["ANIMALS", "sparse_subject"]

_ONE = Claim(epsilon=1)


def _run(
    queries: Any,
    trials: int,
    *,
    threshold_scale: float,
    query_scale: float | None,
    crossings: int | None,
    values: bool = False,
) -> OutputColumns:
    """Answer all queries in each trial: 1 above, 0 below, NaN after the last crossing."""
    limit = discrete_laplace(threshold_scale, size=trials)
    left = np.full(trials, len(queries) if crossings is None else crossings)
    columns: dict[str, npt.NDArray[Any]] = {}
    for place, query in enumerate(queries):
        noise: npt.NDArray[np.int64] | int = 0
        if query_scale is not None:
            noise = discrete_laplace(query_scale, size=trials)
        noisy = np.broadcast_to(query + noise, (trials,))
        above = (noisy >= limit) & (left > 0)
        said = np.where(left > 0, above.astype(np.float64), np.nan)
        columns[f"answer {place}"] = said
        if values:
            columns[f"value {place}"] = np.where(above, noisy, np.nan)
        left = left - above
    return OutputColumns(trials, columns)


def _roth(queries: Any, trials: int) -> OutputColumns:
    return _run(queries, trials, threshold_scale=2, query_scale=2, crossings=1, values=True)


def _lee_clifton(queries: Any, trials: int) -> OutputColumns:
    return _run(queries, trials, threshold_scale=4, query_scale=4 / 3, crossings=5)


def _stoddard(queries: Any, trials: int) -> OutputColumns:
    return _run(queries, trials, threshold_scale=1, query_scale=None, crossings=None)


def _chen(queries: Any, trials: int) -> OutputColumns:
    return _run(queries, trials, threshold_scale=2, query_scale=2, crossings=None)


def sparse_subject(size: int, crossings: int, trials: int = 4_000) -> Subject:
    """Return the sparse vector of the core as a subject."""

    def run(queries: Any, number: int) -> list[tuple[bool, ...]]:
        outputs = []
        for _ in range(number):
            vector = SparseVector(0, epsilon=1, crossings=crossings)
            said = []
            for query in queries:
                if not vector.remaining:
                    break
                said.append(vector.ask(query))
            outputs.append(tuple(said))
        return outputs

    def law(queries: Any) -> dict[tuple[bool, ...], float]:
        vector = SparseVector(0, epsilon=1, crossings=crossings)
        found = {}
        for said in product((False, True), repeat=len(queries)):
            used = [at for at, above in enumerate(said, 1) if above]
            said = said[: used[crossings - 1]] if len(used) >= crossings else said
            found[said] = vector.pmf(said, queries[: len(said)])
        return found

    return Subject(
        name=f"sparse vector, {crossings} crossing" + "s" * (crossings > 1),
        claim=_ONE,
        run=run,
        neighbours=answers(size),
        trials=trials,
        law=law,
    )


_TWIN = sparse_subject(4, 2, 1_000)


def _animal(name: str, run: Any, size: int, mistake: str, source: str, trials: int = 40_000) -> Animal:
    subject = Subject(name=name, claim=_ONE, run=run, neighbours=answers(size), trials=trials)
    return Animal(subject=subject, twin=_TWIN, mistake=mistake, source=source)


ANIMALS = (
    _animal(
        "sparse vector that shows values",
        _roth,
        5,
        "a query above the threshold is published with the noise that decided",
        "Roth 2011 (lecture notes); Algorithm 3 of Lyu, Su and Li 2017",
        300_000,
    ),
    _animal(
        "sparse vector without a factor for crossings",
        _lee_clifton,
        10,
        "noise on queries does not grow with the number of crossings",
        "Lee and Clifton 2014; Algorithm 4 of Lyu, Su and Li 2017",
        100_000,
    ),
    _animal(
        "sparse vector without noise on queries",
        _stoddard,
        8,
        "only the threshold gets noise",
        "Stoddard, Chen and Machanavajjhala 2014; Algorithm 5 of Lyu, Su and Li 2017",
    ),
    _animal(
        "sparse vector without an end",
        _chen,
        16,
        "noise as for one crossing, and no limit to how many there are",
        "Chen, Xiao, Zhang and Xu 2015; Algorithm 6 of Lyu, Su and Li 2017",
        100_000,
    ),
)
