"""The dialect: DuckDB's SQL as the parser knows it, with what the engine takes and the parser does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB

if TYPE_CHECKING:
    from sqlglot.parser import Parser as _Parser
else:
    _Parser = DuckDB.Parser

__all__ = ["parsed"]


def parsed(text: str) -> list[exp.Expr | None]:
    """Return the statements of a text; raise the parser's `ParseError` if it cannot be read."""
    tokens = [part for token in sqlglot.tokenize(text, dialect="duckdb") for part in _single(token)]
    return _Conditions(dialect=DuckDB()).parse(tokens, text)


_SUM = re.compile(r"([\d.]+[eE][+-]?\d+)([+-])(.+)")  # `1e3+5`, which the tokenizer takes for one number
_SIGNS = {"+": TokenType.PLUS, "-": TokenType.DASH}


def _single(token: Token) -> Iterator[Token]:
    """Yield the tokens that one token of the parser's holds."""
    parts = _SUM.fullmatch(token.text) if token.token_type is TokenType.NUMBER else None
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


class _Conditions(_Parser):
    """Takes conditions as keys of ROLLUP and CUBE, ROLLUP(age > 30), and a column "all" in ORDER BY."""

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
