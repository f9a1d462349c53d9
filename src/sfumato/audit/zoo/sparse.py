"""The wrong sparse vectors: four published variants that are not private (Lyu, Su and Li 2017).

Each is asked the same queries at threshold 0; the algorithm numbers are those of Lyu, Su and Li. The twin is
the variant of `sfumato.core`, which has all that each of these leaves out.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.audit.neighbours import answers
from sfumato.audit.output_table import OutputColumns
from sfumato.audit.subject import ONE, Animal, Subject
from sfumato.core.noise import discrete_laplace
from sfumato.core.sparse import SparseVector

__all__ = ["ANIMALS", "sparse_subject"]


def _run(
    queries: Any,
    trials: int,
    *,
    threshold_scale: float,
    query_scale: float | None,
    crossings: int | None = None,
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
        claim=ONE,
        run=run,
        neighbours=answers(size),
        trials=trials,
        law=law,
    )


_TWIN = sparse_subject(4, 2, 1_000)


def _subject(name: str, size: int, trials: int, **variant: Any) -> Subject:
    run = partial(_run, **variant)
    return Subject(name=f"sparse vector {name}", claim=ONE, run=run, neighbours=answers(size), trials=trials)


ANIMALS = (
    Animal(
        subject=_subject(
            "that shows values", 5, 300_000, threshold_scale=2, query_scale=2, crossings=1, values=True
        ),
        twin=_TWIN,
        mistake="a query above the threshold is published with the noise that decided",
        source="Roth 2011 (lecture notes); Algorithm 3 of Lyu, Su and Li 2017",
    ),
    Animal(
        subject=_subject(
            "without a factor for crossings", 10, 100_000, threshold_scale=4, query_scale=4 / 3, crossings=5
        ),
        twin=_TWIN,
        mistake="noise on queries does not grow with the number of crossings",
        source="Lee and Clifton 2014; Algorithm 4 of Lyu, Su and Li 2017",
    ),
    Animal(
        subject=_subject("without noise on queries", 8, 40_000, threshold_scale=1, query_scale=None),
        twin=_TWIN,
        mistake="only the threshold gets noise",
        source="Stoddard, Chen and Machanavajjhala 2014; Algorithm 5 of Lyu, Su and Li 2017",
    ),
    Animal(
        subject=_subject("without an end", 16, 100_000, threshold_scale=2, query_scale=2),
        twin=_TWIN,
        mistake="noise as for one crossing, and no limit to how many there are",
        source="Chen, Xiao, Zhang and Xu 2015; Algorithm 6 of Lyu, Su and Li 2017",
    ),
)
