"""White box: epsilon at a delta from the law itself, where it is a finite table or a shift of integer noise.

Nothing is sampled, so nothing is left to chance; what is computed is the truth of these neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from sfumato.core.arguments import Number
from sfumato.core.finite import FiniteMechanism
from sfumato.errors import InvalidArgument

__all__ = ["exact_epsilon", "finite_epsilon", "product_table", "repeated_table"]

_Weight = Fraction | float
_Table = list[tuple[Any, Any]]


def exact_epsilon(p: Iterable[Number], q: Iterable[Number], *, delta: Number = 0) -> float:
    """Return the smallest epsilon at which two laws are (epsilon, delta)-close; inf if there is none.

    Theorem: it is the largest of ln((P(S) - delta) / Q(S)) over all events S, in both orders; for a given
    Q(S), P(S) is largest for outcomes of the highest ratio P/Q (Neyman and Pearson 1933), so the
    events that consist of the first few outcomes in that order are enough. Exact until the logarithm, if
    all numbers are rational.

    >>> exact_epsilon([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]) == math.log(3)
    True
    """
    first, second = list(p), list(q)
    if len(first) != len(second) or not first:
        raise InvalidArgument("both laws must have the same outcomes", place="p")
    table = list(zip(first, second, strict=True))
    return max(_one_way(table, delta), _one_way([(b, a) for a, b in table], delta))


def _one_way(table: _Table, delta: Number) -> float:
    ordered = sorted(
        ((a, b) for a, b in table if a or b), key=lambda both: both[0] / (both[0] + both[1]), reverse=True
    )
    best: Any = 1
    over = under = 0 * ordered[0][0]
    for a, b in ordered:
        over, under = over + a, under + b
        if over - delta <= best * under:
            continue
        if not under:
            return math.inf
        best = (over - delta) / under
    return math.log(best)


def finite_epsilon(mechanism: FiniteMechanism, *, delta: Number = 0) -> float:
    """Return the exact epsilon of a stochastic matrix over all its neighbours.

    >>> half, quarter = Fraction(1, 2), Fraction(1, 4)
    >>> finite_epsilon(FiniteMechanism([[half, half], [quarter, 3 * quarter]])) == math.log(2)
    True
    """
    rows = mechanism.matrix
    return max(exact_epsilon(rows[i], rows[j], delta=delta) for i, j in mechanism.neighbours)


def product_table(*tables: Sequence[tuple[_Weight, _Weight]]) -> _Table:
    """Return the laws of independent releases together; outcomes of one ratio are merged, at no loss."""
    whole: dict[Any, list[Any]] = {0: [1, 1]}
    for table in tables:
        grown: dict[Any, list[Any]] = {}
        for a, b in table:
            for x, y in whole.values():
                p, q = x * a, y * b
                if not p and not q:
                    continue
                entry = grown.setdefault(_ratio(p, q), [0, 0])
                entry[0] += p
                entry[1] += q
        whole = grown
    return [(p, q) for p, q in whole.values()]


def repeated_table(table: Sequence[tuple[_Weight, _Weight]], times: int) -> _Table:
    """Return the laws of `times` releases of one kind."""
    whole: _Table = [(1, 1)]
    while times:
        if times % 2:
            whole = product_table(whole, table)
        times //= 2
        if times:
            table = product_table(table, table)
    return whole


def _ratio(p: Any, q: Any) -> Any:
    if isinstance(p, float) or isinstance(q, float):
        if not p or not q:
            return math.inf if p else -math.inf
        return round(math.log(p) - math.log(q), 9)  # what rounding made differ is one ratio
    return p / (p + q)
