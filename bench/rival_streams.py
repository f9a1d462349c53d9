"""Errors of running totals in public implementations, from their own matrices; printed as JSON.

    python rival_streams.py 365 1024      in an environment with opendp, or with jax-privacy, or with both

One person is in one period. Errors are in units of the deviation sigma of one release of the same cost: the
deviation of a total times the sensitivity; the largest, and the root mean square over all totals.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np


def main() -> None:
    """Measure whatever is installed."""
    found: dict[str, Any] = {"versions": {}, "errors": {}}
    for package, measure in (("opendp", opendp), ("jax-privacy", jax_privacy)):
        try:
            found["versions"][package] = version(package)
        except PackageNotFoundError:
            continue
        for horizon in map(int, sys.argv[1:]):
            for what, (errors, length) in measure(horizon).items():
                both = float(errors.max()) * length, float(np.sqrt((errors**2).mean())) * length
                found["errors"].setdefault(f"{package}, {what}", {})[horizon] = both
    json.dump(found, sys.stdout)


def opendp(horizon: int) -> dict[str, tuple[Any, float]]:
    """Return deviations of totals and the sensitivity of b-ary trees, the best that are found.

    While a tree grows, a total is made of nodes that are complete, as few as there are. Once it is complete,
    all nodes are made to agree: that is better, and too late for a stream.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    best: dict[str, tuple[Any, float]] = {}
    for branching in (2, 4, 8, 16, dp.t.choose_branching_factor(horizon)):
        tree = dp.t.make_b_ary_tree(*space, leaf_count=horizon, branching_factor=branching)
        length = tree.map(1) ** 0.5  # one person is in one node of each level
        agree = dp.t.make_consistent_b_ary_tree(branching)
        nodes = len(tree([0] * horizon))
        totals = np.zeros((horizon, nodes))
        for node in range(nodes):  # what noise 1 in one node does to all totals
            leaves = list(agree([int(one == node) for one in range(nodes)]))[:horizon]
            totals[:, node] = np.cumsum(leaves)
        grown = np.sqrt([_digits(total, branching) for total in range(1, horizon + 1)])
        for what, errors in (
            ("tree as it grows", grown),
            ("tree after its end", np.linalg.norm(totals, axis=1)),
        ):
            if what not in best or errors.max() * length < best[what][0].max() * best[what][1]:
                best[what] = errors, length
    return best


def _digits(number: int, base: int) -> int:
    """Return the sum of digits: how many complete nodes of a tree make the first `number` leaves."""
    return number % base + _digits(number // base, base) if number else 0


def jax_privacy(horizon: int) -> dict[str, tuple[Any, float]]:
    """Return deviations of totals and the sensitivity of three factorisations."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax_privacy.matrix_factorization import buffered_toeplitz, dense, sensitivity, toeplitz

    def of_column(column: Any) -> tuple[Any, float]:
        squares = toeplitz.per_query_error(strategy_coef=column, n=horizon)
        return np.sqrt(np.asarray(squares)), float(toeplitz.sensitivity_squared(column, horizon)) ** 0.5

    buffers = buffered_toeplitz.optimize(n=horizon, error="max")
    found = {
        "Toeplitz": of_column(toeplitz.optimal_max_error_strategy_coefs(horizon)),
        "buffered Toeplitz": of_column(buffers.toeplitz_coefs(horizon)),
    }
    if horizon <= 400:  # minutes for more
        matrix = dense.optimize(horizon)
        squares = dense.per_query_error(strategy_matrix=matrix)
        length = float(sensitivity.single_participation_sensitivity(matrix))
        found["dense"] = (np.sqrt(np.asarray(squares)), length)
    return found


if __name__ == "__main__":
    main()
