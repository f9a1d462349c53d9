"""Limits: how large a question may be. What is larger is refused before work is done on it.

Planning is free, so it must be short: nobody's question may keep a process busy, or end it. Each limit is
far above what a question about people needs, and the work up to it is linear, or small. Text is measured
before it is parsed, a statement before it is read, and the tree before it is analysed: that also from Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType, exp

from sfumato.core.steps import spend
from sfumato.plan import tree

if TYPE_CHECKING:
    from sfumato.plan.question import Statement

__all__ = [
    "FURTHEST",
    "LARGEST",
    "MOST_AGGREGATES",
    "MOST_CHARACTERS",
    "MOST_COLUMNS",
    "MOST_DEPTH",
    "MOST_DIGITS",
    "MOST_EXPONENT",
    "MOST_GROUPING_SETS",
    "MOST_KEYS",
    "MOST_NESTING",
    "MOST_NODES",
    "MOST_RELATIONS",
    "NEAREST",
    "balanced",
    "check_query",
    "check_statement",
    "check_tokens",
    "is_number",
    "size",
]

MOST_CHARACTERS = 100_000  # of a statement
MOST_NESTING = 30  # parentheses and CASEs within one another
MOST_DEPTH = 60
"""Operations upon operations, such as the sums in a + b + c + ..; AND and OR count once for any number.

Readers and writers of a tree call themselves for each level, some more than once: this many fit into Python's
stack, also where a program is deep in it already.
"""
MOST_NODES = 40_000  # columns, constants and operations of one private question, all together
MOST_RELATIONS = 100  # tables and subqueries of a statement, a query of WITH counted wherever it is used
MOST_COLUMNS = 500  # columns of a SELECT list
MOST_AGGREGATES = 100  # different aggregates of one private question
MOST_KEYS = 100  # keys of GROUP BY
MOST_GROUPING_SETS = 64  # multiplied where several of ROLLUP, CUBE and GROUPING SETS are listed
FURTHEST = 10**60  # the largest bound of what is added up: squares of its noise are still numbers
NEAREST = Fraction(1, 10**60)  # the smallest bound, but for zero
LARGEST = 2**127 - 1  # the largest whole number of post-processing; 1e40 and its like are binary
MOST_DIGITS = 400  # letters of a number
MOST_EXPONENT = 400  # the power of ten of a number such as 1e-9, with either sign

_EXPONENT = re.compile(r"[eE]([+-]?\d*)")
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_OPENS = {TokenType.L_PAREN, TokenType.CASE, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSES = {TokenType.R_PAREN, TokenType.END, TokenType.R_BRACKET, TokenType.R_BRACE}
_CHAINS = (exp.And, exp.Or)
_LEFT_AS_IT_IS = 16  # AND and OR of so few conditions are not rearranged


# -- text -----------------------------------------------------------------------------------


def check_tokens(tokens: Sequence[Token], question: Statement) -> None:
    """Refuse a text with numbers that are too long, or too deeply nested to be parsed."""
    depth = 0
    for token in tokens:
        place = tree.Span(token.start, token.end + 1)
        if token.token_type is TokenType.NUMBER and (problem := _number_problem(token.text)):
            hint = f"a number has at most {MOST_DIGITS} digits, and powers of ten up to 1e{MOST_EXPONENT}"
            question.refuse(problem, "SF401", place, hint)
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        if depth > MOST_NESTING:
            hint = "name an inner step: WITH step AS (SELECT ..) SELECT .."
            question.refuse("the question is nested too deeply", "SF401", place, hint)


def _number_problem(text: str) -> str:
    """Return what keeps a number from being computed with: nothing, if all is well.

    >>> _number_problem("1e-9"), _number_problem("1e-300000000"), _number_problem("9" * 5000)
    ('', 'this number is too small', 'this number is too long')
    """
    if len(text) > MOST_DIGITS:
        return "this number is too long"
    for power in _EXPONENT.findall(text):  # several: `1e3+5` comes as one
        digits = power.lstrip("+-0")
        if not power[-1:].isdecimal():
            return "this is not a number"
        if len(digits) > 3 or int(digits or 0) > MOST_EXPONENT:
            return f"this number is too {'small' if power.startswith('-') else 'large'}"
    return ""


def is_number(text: str) -> bool:
    """Tell whether a text is one number: the tokenizer lets `0.1.5` and `1e3+5` through as one.

    >>> is_number("0.15"), is_number("1_000"), is_number("2e-3"), is_number("0.1.5")
    (True, True, True, False)
    """
    return _NUMBER.fullmatch(text.replace("_", "")) is not None


# -- statements -----------------------------------------------------------------------------


def balanced(node: exp.Expr) -> exp.Expr:
    """Return a statement with long chains of AND and of OR as trees of little depth: they mean the same.

    a AND b AND c AND d is parsed as ((a AND b) AND c) AND d, so that a thousand conditions are a thousand
    levels. AND and OR are associative, also where a condition is NULL.
    """
    chains = [part for part in node.walk() if isinstance(part, _CHAINS)]
    within = {id(chain.this) for chain in chains if type(chain.this) is type(chain)}
    for chain in (chain for chain in chains if id(chain) not in within):
        kind = type(chain)
        parts: list[exp.Expr] = []
        inner: exp.Expr = chain
        while type(inner) is kind:
            parts.append(inner.expression)
            inner = inner.this
        parts.append(inner)
        if len(parts) > _LEFT_AS_IT_IS:
            middle = (len(parts) + 1) // 2
            parts.reverse()
            chain.set("this", _joined(kind, parts[:middle]))
            chain.set("expression", _joined(kind, parts[middle:]))
    return node


def _joined(kind: type[exp.And] | type[exp.Or], parts: list[exp.Expr]) -> exp.Expr:
    while len(parts) > 1:
        pairs = [
            kind(this=one, expression=other) for one, other in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0]


def check_statement(statement: exp.Expr, question: Statement) -> None:
    """Refuse a statement that is too deep, or lists too many columns or keys."""
    found: list[tuple[exp.Expr, int]] = [(statement, 1)]
    while found:
        node, depth = found.pop()
        if depth > MOST_DEPTH:
            hint = "name an inner step: WITH step AS (SELECT ..) SELECT .."
            question.refuse("the question is nested too deeply", "SF401", node, hint)
        if isinstance(node, exp.Select) and len(node.expressions) > MOST_COLUMNS:
            at = node.expressions[MOST_COLUMNS]
            question.refuse(f"a SELECT lists at most {MOST_COLUMNS} columns", "SF404", at)
        if isinstance(node, exp.Group) and len(node.expressions) > MOST_KEYS:
            at = node.expressions[MOST_KEYS]
            question.refuse(f"GROUP BY takes at most {MOST_KEYS} keys", "SF404", at)
        for child in node.iter_expressions():
            found.append((child, depth + 1))


# -- trees ----------------------------------------------------------------------------------


def check_query(query: tree.Query, question: Statement) -> None:
    """Refuse a private question whose tree is too large; the same from SQL and from Python."""
    if len(query.grouping_sets) > MOST_GROUPING_SETS:
        question.refuse(f"more than {MOST_GROUPING_SETS} grouping sets", "SF404")
    if len(query.keys) > MOST_KEYS:
        question.refuse(f"GROUP BY takes at most {MOST_KEYS} keys", "SF404")
    if len(query.aggregates) > MOST_AGGREGATES:
        at = query.aggregates[MOST_AGGREGATES][1].span
        hint = "ask for some of them in another question"
        question.refuse(f"a question has at most {MOST_AGGREGATES} aggregates", "SF404", at, hint)
    count = 0
    found: list[tuple[tree.Node, int]] = [(query.source, 1)]
    found += [(part, 1) for _, part in (*query.keys, *query.aggregates)]
    while found:
        node, depth = found.pop()
        count += 1
        if depth > MOST_DEPTH:
            question.refuse("the question is nested too deeply", "SF401", getattr(node, "span", None))
        if count > MOST_NODES:
            hint = "keep a long list of values in a public table, and join it"
            question.refuse("the question is too large", "SF401", None, hint)
        below = 0 if isinstance(node, _ROWS) else depth  # rows upon rows: MOST_RELATIONS limits them
        found.extend((part, below + 1) for part in tree.parts(node))
    spend(count)


def size(query: tree.Query) -> int:
    """Return how many columns, constants and operations a private question has."""
    count, found = 0, [query.source, *(part for _, part in (*query.keys, *query.aggregates))]
    while found:
        count += 1
        found.extend(tree.parts(found.pop()))
    return count


_ROWS = (tree.Filter, tree.Projection, tree.Join, tree.SemiJoin, tree.Union, tree.PerUnit, tree.PublicChoice)
