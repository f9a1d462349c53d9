"""GROUP BY: keys, positions, aliases, ALL, and the grouping sets that ROLLUP and CUBE stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

from sqlglot import exp

from sfumato.plan.context import Context
from sfumato.plan.expressions import Expressions
from sfumato.plan.limits import MOST_GROUPING_SETS
from sfumato.plan.scope import Scope
from sfumato.plan.syntax import has_aggregate, within
from sfumato.plan.tree import Expression, Literal

__all__ = ["Grouping", "cubed", "grouping", "rolled_up"]

_Set = tuple[int, ...]  # positions of keys


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys, each once, and the sets of their positions. `unit`: the unit itself is a key."""

    keys: tuple[Expression, ...]
    sets: tuple[_Set, ...]
    unit: bool

    def position(self, key: Expression) -> int | None:
        """Return the position of a key, None if it is not one."""
        return self.keys.index(key) if key in self.keys else None


def grouping(select: exp.Select, scope: Scope, context: Context) -> Grouping:
    """Return what a SELECT groups by."""
    return _Reader(select, scope, context).read()


class _Reader:
    def __init__(self, select: exp.Select, scope: Scope, context: Context) -> None:
        self.select = select
        self.scope = scope
        self.question = context.question
        self.expressions = Expressions(context.question, scope)
        self.keys: list[Expression] = []
        self.unit = False

    def read(self) -> Grouping:
        group = self.select.args.get("group")
        if group is None:
            return Grouping(keys=(), sets=((),), unit=False)
        self.question.only(group, "expressions", "all")
        elements: list[Sequence[_Set]] = []
        if group.args.get("all"):
            if group.expressions:
                self.question.refuse("GROUP BY ALL stands alone", "SF404", group)
            for item in self.select.expressions:
                value = item.unalias()
                if not has_aggregate(value) and any(isinstance(part, exp.Column) for part in within(value)):
                    elements.append([self._keys([value])])
        elif not group.expressions:
            self.question.refuse("GROUP BY lists nothing", "SF401", self.select)
        for element in group.expressions:
            elements.append(self._sets(element))
        self._check_sets(math.prod(len(element) for element in elements), group)
        sets = [tuple(sorted(set().union(*map(set, chosen)))) for chosen in product(*elements)]
        if len(set(sets)) != len(sets):
            self.question.refuse("a grouping set is listed twice", "SF404", group)
        if self.unit and len(sets) > 1:
            self.question.refuse("the unit cannot be in grouping sets", "SF406", group)
        return Grouping(keys=tuple(self.keys), sets=tuple(sets), unit=self.unit)

    def _sets(self, element: exp.Expr) -> Sequence[_Set]:
        match element:
            case exp.Rollup():
                self._check_sets(len(element.expressions) + 1, element)
                parts = [self._keys(_members(part)) for part in element.expressions]
                return rolled_up(parts)
            case exp.Cube():
                self._check_sets(2 ** len(element.expressions), element)
                parts = [self._keys(_members(part)) for part in element.expressions]
                return cubed(parts)
            case exp.GroupingSets():
                self._check_sets(len(element.expressions), element)
                return [one for part in element.expressions for one in self._sets(part)]
            case exp.Tuple() | exp.Paren():
                return [self._keys(_members(element))]
        return [self._keys([element])]

    def _check_sets(self, count: int, at: exp.Expr) -> None:
        if count > MOST_GROUPING_SETS:
            hint = "list the ones you need: GROUPING SETS ((a, b), (a), ())"
            self.question.refuse(f"more than {MOST_GROUPING_SETS} grouping sets", "SF404", at, hint)

    def _keys(self, nodes: list[exp.Expr]) -> _Set:
        positions = []
        for node in nodes:
            value = self._meant(node)
            if has_aggregate(value):
                self.question.refuse("an aggregate cannot be grouped by", "SF404", node)
            unit = self.expressions.unit(value)
            if unit is not None:
                self.question.check_whole(unit, node)
                self.unit = True
                continue
            key = self.expressions(value)
            self.unit = self.unit or bool(self.expressions.keys(value))  # all rows of a key are of its unit
            if isinstance(key, Literal):
                self.question.refuse("a constant makes no groups", "SF404", node)
            if key not in self.keys:
                self.keys.append(key)
            positions.append(self.keys.index(key))
        return tuple(positions)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """Return the expression that a position or an alias of the SELECT list stands for."""
        items: list[exp.Expr] = self.select.expressions
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            position = int(node.this)
            if not 1 <= position <= len(items):
                message = f"there is no column {position} in the SELECT list"
                self.question.refuse(message, "SF402", node)
            return items[position - 1].unalias()
        if isinstance(node, exp.Column) and not node.table and not self.scope.find(node.name):
            for item in items:
                if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
                    return item.unalias()
        return node


def _members(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return _members(node.this) if isinstance(node, exp.Paren) else [node]


def rolled_up(parts: list[_Set]) -> tuple[_Set, ...]:
    """Return the sets of ROLLUP: all parts together, all but the last, and so on, and none."""
    return tuple(tuple(chain(*parts[:count])) for count in range(len(parts), -1, -1))


def cubed(parts: list[_Set]) -> tuple[_Set, ...]:
    """Return the sets of CUBE: every choice of parts, the largest first."""
    sizes = range(len(parts), -1, -1)
    return tuple(tuple(chain(*chosen)) for size in sizes for chosen in combinations(parts, size))
