"""The dialect: DuckDB's SQL as the parser knows it, with what the engine takes and the parser does not."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB

from sfumato.core.steps import spend

if TYPE_CHECKING:
    from sqlglot.parser import Parser as _Parser
else:
    _Parser = DuckDB.Parser


__all__ = ["parsed"]


def parsed(text: str) -> list[exp.Expr | None]:
    """Return the statements of a text; raise the parser's `ParseError` if it cannot be read."""
    tokens: list[Token] = []
    for token in sqlglot.tokenize(text, dialect="duckdb"):
        tokens += _single(token) if token.token_type is TokenType.NUMBER else (token,)
    statements = _Strict(dialect=DuckDB()).parse(_with_top(tokens), text)
    for statement in statements:
        if statement is not None:
            _open_parentheses(statement)
    return statements


_BEFORE_TOP = {TokenType.SELECT, TokenType.DISTINCT}


def _with_top(tokens: list[Token]) -> list[Token]:
    """Return tokens in which TOP of `SELECT TOP 5 x` is the word that other engines have for LIMIT."""
    found = list(tokens)
    for place in range(1, len(tokens) - 1):
        before, word, after = tokens[place - 1 : place + 2]
        counted = before.token_type in _BEFORE_TOP and after.token_type is TokenType.NUMBER
        if counted and word.token_type is TokenType.VAR and word.text.upper() == "TOP":
            found[place] = Token(TokenType.TOP, word.text, word.line, word.col, word.start, word.end, [])
    return found


_MORE = ("joins", "pivots", "sample", "with_")  # what may stand behind parentheses, besides an alias


def _open_parentheses(statement: exp.Expr) -> None:
    """Take away parentheses around tables in FROM: (a) AS c is a AS c; around joins, a SELECT of all of them.

    Without an alias, (a JOIN b) at the beginning of FROM is a JOIN b, and a and b keep their names.
    """
    for node in list(statement.find_all(exp.Subquery)):
        table, parent = node.this, node.parent
        if not isinstance(table, exp.Table) or any(node.args.get(name) for name in _MORE):
            continue
        joins, alias = table.args.get("joins") or [], node.args.get("alias")
        if not joins and (alias is None or table.args.get("alias") is None):
            table.set("alias", alias or table.args.get("alias"))
            node.replace(table)
            continue
        table.set("joins", None)
        if alias is None and isinstance(parent, exp.From) and isinstance(parent.parent, exp.Select):
            node.replace(table)
            parent.parent.set("joins", [*joins, *(parent.parent.args.get("joins") or [])])
        else:
            inner = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), joins=joins or None)
            node.set("this", inner)


_SUM = re.compile(r"([\d.]+[eE][+-]?\d+)([+-])(.+)")  # `1e3+5`, which the tokenizer takes for one number
_SIGNS = {"+": TokenType.PLUS, "-": TokenType.DASH}


def _single(token: Token) -> Iterator[Token]:
    """Yield the tokens that one number of the parser's holds."""
    parts = _SUM.fullmatch(token.text)
    if parts is None:
        yield token
        return
    first, sign, rest = parts.groups()
    types = (TokenType.NUMBER, _SIGNS[sign], TokenType.NUMBER)
    start = token.start
    for kind, text in zip(types, (first, sign, rest), strict=True):
        column = token.col - (token.end + 1 - start - len(text))
        part = Token(kind, text, token.line, column, start, start + len(text) - 1, [])
        yield from _single(part)
        start += len(text)


_DEPTHS = {
    **dict.fromkeys((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE), 1),
    **dict.fromkeys((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE), -1),
}
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}


def _arguments(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each argument of a call, `name ( first , second )`; nothing of what is no call."""
    depth, argument = 0, list[Token]()
    for token in tokens[1:]:
        depth += _DEPTHS.get(token.token_type, 0)
        ends = depth == 0 or (depth == 1 and token.token_type is TokenType.COMMA)
        if ends and argument:
            yield argument
            argument = []
        elif not ends and (depth > 1 or token.token_type is not TokenType.L_PAREN):
            argument.append(token)
        if depth == 0:
            return


def _named(argument: list[Token]) -> bool:
    """Return whether an argument holds a number or a name: the parser notes where these stood."""
    pairs = zip_longest(argument, argument[1:])
    return any(
        token.token_type is TokenType.NUMBER
        or (token.token_type in _NAMES and (after is None or after.token_type is not TokenType.L_PAREN))
        for token, after in pairs
    )


class _Strict(_Parser):
    """Takes conditions as keys of ROLLUP and CUBE, ROLLUP(age > 30), and a column "all" in ORDER BY.

    Refuses calls of which the parser would drop an argument, as in LOG2(x, 3).
    """

    def _parse_function_call(self, *given: Any, **options: Any) -> exp.Expr | None:
        first = self._index
        call: exp.Expr | None = super()._parse_function_call(*given, **options)
        if call is not None:
            spend((self._index - first) // 4)  # the tokens of a call, once for each call around it
            places = sorted(node.meta["start"] for node in call.walk() if "start" in node.meta)
            for argument in _arguments(self._tokens[first : self._index]):
                begin, end = argument[0].start, argument[-1].end
                if _named(argument) and bisect_left(places, begin) == bisect_right(places, end):
                    self.raise_error("The function takes fewer arguments", argument[0])
        return call

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered | None:
        def written() -> exp.Expr | None:
            this = parse_method() if parse_method else self._parse_disjunction()
            if this is None or this.name.upper() != "ALL":
                return this
            word = isinstance(this, exp.Column) and not this.table and not this.this.args.get("quoted")
            return this if word else exp.Paren(this=this)  # the parser takes every name ALL for the word

        return super()._parse_ordered(written)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        kinds: dict[TokenType, type[exp.Cube | exp.Rollup]] = {
            TokenType.CUBE: exp.Cube,
            TokenType.ROLLUP: exp.Rollup,
        }
        for token, kind in kinds.items():
            if self._match(token):
                keys = [] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction)
                return self.expression(kind(expressions=keys))
        return None

    def _warn_unsupported(self) -> None:
        """Log nothing: what is not a question is refused, and the text of a question is nobody else's."""
