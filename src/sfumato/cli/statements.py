"""Where one statement ends and the next begins: at a semicolon that is not inside a quote or a comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sqlglot
from sqlglot import TokenType
from sqlglot.errors import TokenError

__all__ = ["blank", "script", "split"]


def split(text: str) -> tuple[list[str], str]:
    """Return the statements of a text that are complete, without their semicolons, and what is left.

    >>> split("SELECT ';'; SELECT 2; -- done")
    (["SELECT ';'", 'SELECT 2'], ' -- done')
    """
    try:
        tokens = sqlglot.tokenize(text, dialect="duckdb")
    except TokenError:  # a quote or a comment is open: more is to come
        return [], text
    found, start, empty = [], 0, True
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            empty = False
            continue
        if not empty:
            found.append(text[start : token.start].strip())
        start, empty = token.end + 1, True
    return found, text[start:]


def blank(text: str) -> bool:
    """Return whether a text says nothing: white space and comments."""
    begins = text.lstrip()
    if not begins.startswith(("--", "/*")):
        return not begins.replace(";", "").strip()
    try:
        return not sqlglot.tokenize(text, dialect="duckdb")
    except TokenError:
        return False


def script(lines: Iterable[str]) -> Iterator[str]:
    """Cut a stream into statements, which end in a semicolon, and commands, which are a line."""
    held = ""
    for line in lines:
        if not held and line.strip().startswith("."):
            yield line.strip()
            continue
        held += line
        if ";" in line:
            whole, held = split(held)
            yield from whole
        if blank(held):
            held = ""
    if held:
        yield held.strip()
