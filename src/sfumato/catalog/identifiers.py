"""Identifiers: how a name is written in SQL. Every module that writes SQL quotes names here."""

from __future__ import annotations

from sfumato.errors import Unsupported

__all__ = ["identifier"]


def identifier(name: str) -> str:
    """Return a name as SQL takes it, whatever letters are in it.

    >>> identifier('a"b')
    '"a""b"'
    """
    if "\0" in name:
        raise Unsupported("a name with a NUL in it")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unsupported("a name that is not valid unicode") from None
    return '"' + name.replace('"', '""') + '"'
