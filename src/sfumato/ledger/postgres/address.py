"""Addresses of databases: what is a connection string, and how it is named without its secrets."""

from __future__ import annotations

from urllib.parse import urlsplit

from sfumato.errors import LedgerError

__all__ = ["check", "shown"]


def shown(address: str) -> str:
    """Return an address without user, password and options: what errors may say.

    >>> shown("postgresql://ada:secret@db.example:5433/ledger?sslmode=require")
    'postgresql://db.example:5433/ledger'
    >>> shown("postgresql://ada:se@cr/et@db/ledger")
    'postgresql://..'
    """
    rest = address.split("://", 1)[-1]
    if rest.partition("?")[0].count("@") > 1:
        return "postgresql://.."
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "postgresql://.."
    if "@" in parts.path or "@" in parts.query or "@" in parts.fragment:
        return "postgresql://.."  # part of a password that was not quoted
    return f"postgresql://{parts.hostname or ''}{port}{parts.path}"


def check(address: str) -> None:
    """Refuse what is no connection string, in words that repeat nothing of it."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(address)
        wrong = "\0" in address
    except (ProgrammingError, ValueError):
        wrong = True
    if wrong:
        raise LedgerError(
            "the address of the ledger is not a connection string",
            code="SF601",
            place="ledger",
            hints=("postgresql://host/database, or postgresql:///?service=name with a service file",),
        )
