"""All tables of two columns by OpenDP, in the rivals' environment: error and seconds, as JSON.

Standard input holds the cells of every row and the (epsilon, delta) of all tables together. OpenDP's own
contingency tables (`dp.mbi`) measure every table with equal noise, and fit a model to the measurements with
private-pgm; without private-pgm there are the measurements alone.
"""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import combinations
from typing import Any

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")


def main() -> None:
    """Measure everything and print one JSON object."""
    given = json.load(sys.stdin)
    codes = {name: np.array(column) for name, column in given["codes"].items()}
    found = {"each table measured": measured(codes, given["sizes"], given["epsilon"], given["delta"])}
    try:
        import mbi  # noqa: F401
    except ImportError:
        pass
    else:
        found["a model fitted by private-pgm"] = fitted(
            codes, given["sizes"], given["epsilon"], given["delta"]
        )
    print(json.dumps(found))


def tables(codes: dict[str, Any], sizes: dict[str, int]) -> list[tuple[tuple[str, str], Any]]:
    """Return the exact counts of all tables of two columns."""
    found = []
    for one, other in combinations(codes, 2):
        counts = np.zeros((sizes[one], sizes[other]), dtype=np.int64)
        np.add.at(counts, (codes[one], codes[other]), 1)
        found.append(((one, other), counts))
    return found


def measured(codes: dict[str, Any], sizes: dict[str, int], epsilon: float, delta: float) -> dict[str, float]:
    """Add OpenDP's Gaussian noise to every table, of one scale for all."""
    began = time.perf_counter()
    exact = tables(codes, sizes)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)

    def together(scale: float) -> Any:
        each = dp.m.make_gaussian(*space, scale=scale)  # one person is in one cell of each table
        several = dp.c.make_composition([each] * len(exact))
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(several), delta=delta)

    scale = dp.binary_search_param(together, d_in=1.0, d_out=(epsilon, delta), T=float)
    noise = dp.m.make_gaussian(*space, scale=scale)
    squares = cells = 0.0
    for _, counts in exact:
        noisy = np.array(noise(counts.reshape(-1).tolist()))
        squares += float(((noisy - counts.reshape(-1)) ** 2).sum())
        cells += counts.size
    return {"rmse": math.sqrt(squares / cells), "seconds": time.perf_counter() - began}


def fitted(codes: dict[str, Any], sizes: dict[str, int], epsilon: float, delta: float) -> dict[str, float]:
    """Ask OpenDP for a contingency table that is fitted to all tables of two columns."""
    import polars as pl

    began = time.perf_counter()
    frame = pl.DataFrame(codes).lazy()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon, delta=delta),
        split_evenly_over=1,
    )
    queries = [dp.mbi.Count(by=pair) for pair in combinations(codes, 2)]
    keys = {name: list(range(size)) for name, size in sizes.items()}
    asked = (
        context.query().select(*codes).contingency_table(keys=keys, algorithm=dp.mbi.Fixed(queries=queries))
    )
    table = asked.release()
    squares = cells = 0.0
    for pair, counts in tables(codes, sizes):
        squares += float(((np.array(table.project(pair)) - counts) ** 2).sum())
        cells += counts.size
    return {"rmse": math.sqrt(squares / cells), "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    main()
