"""Constant parts: what a question computes without a column is one value, and is read from the engine.

MONTHNAME(DATE '2024-01-01') is always January. Ranges know no calendar of names, and no function of the
allow-list is written twice: the engine that will compute the value computes it here, too. A constant is a
function of the question alone, so no private row has a part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from sfumato.catalog.kind import Value
from sfumato.core.steps import spend
from sfumato.plan import tree
from sfumato.plan.columns import references

__all__ = ["ONE_ROW", "is_constant", "with_constants"]

ONE_ROW = tree.Listed(columns=(), rows=((),))
"""The relation of one row without columns, over which constants are computed."""

_Node = TypeVar("_Node", bound=tree.Node)
_STEPS_PER_VALUE = 300  # each is a statement of the engine
_TESTS = ("condition", "unless", "where")  # which rows there are: no value comes from these


def is_constant(expression: tree.Expression) -> bool:
    """Whether an expression reads no column."""
    return next(references(expression), None) is None


def with_constants(node: _Node, value_of: Callable[[tree.Expression], Value]) -> _Node:
    """Return a plan in which each computed constant is a literal; conditions of rows stay as they are."""
    if isinstance(node, (tree.Scan, tree.Listed, tree.Literal, tree.ColumnRef)):
        return node
    if isinstance(node, (tree.Call, tree.Case, tree.Cast)) and is_constant(node):
        spend(_STEPS_PER_VALUE)
        return tree.Literal(value=value_of(node), kind=node.kind, span=node.span)  # type: ignore[return-value]
    fields = (name for name in node.__slots__ if name not in _TESTS)
    return replace(node, **{name: _changed(getattr(node, name), value_of) for name in fields})


def _changed(value: Any, value_of: Callable[[tree.Expression], Value]) -> Any:
    if isinstance(value, tree.Node):
        return with_constants(value, value_of)
    return tuple(_changed(one, value_of) for one in value) if type(value) is tuple else value
