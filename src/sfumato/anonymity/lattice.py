"""Full-domain recoding: one level of its hierarchy for each column, those that lose least.

A node of the lattice is a level for each column. A search finds the node with the least loss among all
that reach the goal, without trying them all:

* Theorem: a class that has k rows and l distinct values keeps them when it is joined to others. So the
  rows that must be suppressed for k and l only get fewer from a node to those above it; a node that
  would lose too many rules out all below it, with any other criteria (Samarati 2001; LeFevre et al. 2005).
* Theorem: entropy is concave and the earth mover's distance convex, so with nothing suppressed they too
  hold above wherever they hold. With suppression they need not: there they are tried at every node.
* The loss of a node is at least that of its levels alone, plus what its suppressed rows lose more,
  at least. Nodes whose bound is above a loss that was reached are not tried.

So what is found is the optimum, and not only a good node. Columns two by two are tried first:
their tables are small, and they rule out most of the lattice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from operator import le

import numpy as np

from sfumato.anonymity.classes import Classes, Units, group
from sfumato.anonymity.columns import Coded, Floats, Integers
from sfumato.anonymity.goals import Goal
from sfumato.anonymity.ladders import Ladder
from sfumato.core.arguments import budget_quantity
from sfumato.errors import InvalidArgument

__all__ = ["Lattice", "Node", "best_node"]

Node = tuple[int, ...]

_MOST_NODES = 5_000_000
_TIE = 1e-9  # what a cell's height counts beside its certainty: of two that lose alike, the lower one wins


def best_node(
    ladders: Sequence[Ladder], goal: Goal, sensitive: Sequence[Coded], suppress: float
) -> tuple[Node, np.ndarray, int]:
    """Return the node that loses least, which rows it suppresses, and how many nodes were tried."""
    lattice = Lattice(ladders, goal, sensitive, suppress)
    lattice.search()
    if lattice.loss == math.inf:
        raise goal.unreached()
    return lattice.best, lattice.suppressed(lattice.best), lattice.tried


class Lattice:
    """The levels of some columns, and what is known of their combinations so far."""

    def __init__(
        self, ladders: Sequence[Ladder], goal: Goal, sensitive: Sequence[Coded], suppress: float
    ) -> None:
        self._ladders = tuple(ladders)
        self._goal = goal
        self._sensitive = tuple(sensitive) if goal.about_values else ()
        self._shape = tuple(ladder.height + 1 for ladder in ladders)
        if math.prod(self._shape) > _MOST_NODES:
            raise InvalidArgument(
                "the hierarchies have more than five million combinations of levels",
                place="hierarchies",
                hints=("take fewer columns or levels, or Mondrian",),
            )
        self._rows = len(ladders[0].column.codes)
        self._most = math.floor(budget_quantity(suppress, "suppress", zero=True) * self._rows)
        columns = [*(ladder.column for ladder in ladders), *self._sensitive]
        number, many, first = group([each.codes for each in columns], [each.size for each in columns])
        self._of_row = number
        self._whole = Units.rows(self._rows).joined(number, many, first)
        self._cache: list[tuple[Node, Units]] = [((0,) * len(ladders), self._whole)]  # joined where alike
        self._room = 8 * many
        self._alone, self._worst = self._levels_alone()
        self._lost = np.zeros(self._shape)  # at least this many rows must be suppressed
        self._open = np.ones(self._shape, dtype=bool)  # not tried, and not known to fail
        self.tried = 0
        self.best: Node = tuple(size - 1 for size in self._shape)
        self.loss = math.inf

    def search(self) -> None:
        """Find the node that loses least among those that reach the goal."""
        self._try_pairs()
        while (start := self._most_promising()) is not None:
            chain = self._chain(start)
            low, high = 0, len(chain) - 1
            while low <= high:
                middle = (low + high) // 2
                if self._try(chain[middle]):
                    high = middle - 1
                else:
                    low = middle + 1

    def suppressed(self, node: Node) -> np.ndarray:
        """Return which rows a node suppresses."""
        number, many, _ = _joined(self._ladders, node, self._whole)
        classes = Classes.of(number, many, self._whole, self._sensitive)
        keep = self._goal.settled(classes, self._most)
        assert keep is not None
        return np.asarray(~keep[number][self._of_row])

    def _levels_alone(self) -> tuple[Floats, Floats]:
        """Return for each node the loss of its levels, on average and for the row that loses most."""
        alone, worst = np.zeros(self._shape), np.zeros(self._shape)
        for axis, ladder in enumerate(self._ladders):
            shape = [1] * len(self._shape)
            shape[axis] = -1
            counts = ladder.column.counts
            raised = [_TIE * number / ladder.height for number in range(ladder.height + 1)]
            costs = [level.costs[level.groups] for level in ladder.levels]
            mean = [counts @ cost / self._rows + tie for cost, tie in zip(costs, raised, strict=True)]
            most = [cost.max() + tie for cost, tie in zip(costs, raised, strict=True)]
            alone += np.reshape(mean, shape) / len(self._ladders)
            worst += np.reshape(most, shape) / len(self._ladders)
        return alone, worst

    def _try_pairs(self) -> None:
        """Count what two columns alone would suppress, from the top: a bound for every node that has them."""
        for axes in combinations(range(len(self._ladders)), min(2, len(self._ladders))):
            ladders = [self._ladders[axis] for axis in axes]
            codes = [ladder.column.codes for ladder in ladders]
            number, many, first = group(codes, [ladder.column.size for ladder in ladders])
            units = Units.rows(self._rows).joined(number, many, first)
            shape = tuple(self._shape[axis] for axis in axes)
            lost = np.zeros(shape)
            for levels in sorted(np.ndindex(shape), key=lambda levels: (-sum(levels), levels)):
                if lost[levels] > self._most:
                    continue  # ruled out by one above
                number, many, _ = _joined(ladders, levels, units)
                sizes = np.bincount(number, weights=units.weights, minlength=many)
                below = tuple(slice(level + 1) for level in levels)
                lost[below] = np.maximum(lost[below], sizes[sizes < self._goal.k].sum())
            spread = [slice(None) if axis in axes else np.newaxis for axis in range(len(self._shape))]
            np.maximum(self._lost, lost[tuple(spread)], out=self._lost)
        self._open &= self._lost <= self._most

    def _most_promising(self) -> Node | None:
        bound = self._alone + self._lost / self._rows * (1 + _TIE - self._worst)
        bound = np.where(self._open, bound, math.inf)
        place = int(bound.argmin())
        if not bound.flat[place] < self.loss:
            return None
        return tuple(int(index) for index in np.unravel_index(place, self._shape))

    def _chain(self, node: Node) -> list[Node]:
        """Return a way from a node to the top, by steps that lose little, over nodes that are open."""
        chain = [node]
        while True:
            ups = [
                (*node[:axis], node[axis] + 1, *node[axis + 1 :])
                for axis in range(len(node))
                if node[axis] + 1 < self._shape[axis]
            ]
            ups = [up for up in ups if self._open[up]]
            if not ups:
                return chain
            node = min(ups, key=lambda up: (self._alone[up], up))
            chain.append(node)

    def _try(self, node: Node) -> bool:
        """Find out whether a node reaches the goal, and what follows for others."""
        self.tried += 1
        self._open[node] = False
        units = min((units for low, units in self._cache if all(map(le, low, node))), key=len)
        number, many, _ = _joined(self._ladders, node, units)
        classes = Classes.of(number, many, units, self._sensitive)
        self._remember(node, units, number, many)
        below = tuple(slice(level + 1) for level in node)
        bad = ~self._goal.upward.holds(classes)
        lost = int(classes.sizes[bad].sum())
        self._lost[below] = np.maximum(self._lost[below], lost)
        if lost > self._most:
            self._open[below] = False
            return False
        keep = self._goal.settled(classes, self._most)
        if keep is None:
            if self._most == 0:
                self._open[below] = False
            return False
        loss = self._loss(node, units, keep[number])
        if loss < self.loss:
            self.loss, self.best = loss, node
        return True

    def _loss(self, node: Node, units: Units, kept: np.ndarray) -> float:
        each = np.zeros(len(units))
        for ladder, level in zip(self._ladders, node, strict=True):
            rung = ladder.levels[level]
            each += (
                rung.costs[rung.groups[ladder.column.codes[units.examples]]] + _TIE * level / ladder.height
            )
        each = np.where(kept, each / len(self._ladders), 1 + _TIE)
        return float(units.weights @ each / self._rows)

    def _remember(self, node: Node, units: Units, number: Integers, many: int) -> None:
        """Keep the units of a node, joined where they are alike: those above it are counted from them."""
        if 2 * many > len(units):
            return
        codes = [number, *(column.codes[units.examples] for column in self._sensitive)]
        sizes = [many, *(column.size for column in self._sensitive)]
        joined, size, first = group(codes, sizes)
        if 2 * size <= len(units) and size <= self._room:
            self._room -= size
            self._cache.append((node, units.joined(joined, size, first)))


def _joined(ladders: Sequence[Ladder], node: Sequence[int], units: Units) -> tuple[Integers, int, Integers]:
    """Number the classes of units at a node."""
    codes, sizes = [], []
    for ladder, level in zip(ladders, node, strict=True):
        if level < ladder.height:
            groups = ladder.levels[level].groups
            codes.append(groups[ladder.column.codes[units.examples]])
            sizes.append(len(ladder.levels[level].costs))
    if not codes:
        return np.zeros(len(units), dtype=np.int64), 1, np.zeros(1, dtype=np.int64)
    return group(codes, sizes)
