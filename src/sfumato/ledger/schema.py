"""The tables of a ledger in SQLite: records, which only grow, and texts of questions, which can be erased.

Bodies are what is hashed. The columns beside them (kind, unit, analyst, source, key, reservation, step)
repeat parts of the body so that they can be looked up; `verify` compares them. Triggers refuse every
change but appending the next record, so that no slip of a program can rewrite history. Someone who
owns the file can drop them; that is what the chain of hashes is for.
"""

from __future__ import annotations

import sqlite3

from sfumato.errors import LedgerError
from sfumato.ledger.records import FORMAT

__all__ = ["APPLICATION", "STATEMENTS", "check", "check_format", "create", "mark"]

APPLICATION = 0x7366756D
"""Marks a SQLite file as a ledger: "sfum"."""

STATEMENTS = (
    """CREATE TABLE records (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    kind TEXT NOT NULL,
    unit TEXT,
    analyst TEXT,
    source TEXT,
    key TEXT,
    reservation INTEGER,
    step INTEGER,
    release BLOB
)""",
    "CREATE UNIQUE INDEX one_budget ON records (unit) WHERE kind = 'registered'",
    "CREATE INDEX charges ON records (unit, sequence) WHERE kind = 'reserved'",
    "CREATE INDEX signers ON records (sequence) WHERE kind = 'signer'",
    "CREATE INDEX analysts ON records (kind, unit, analyst, sequence) WHERE analyst IS NOT NULL",
    "CREATE UNIQUE INDEX one_unit ON records (source) WHERE source IS NOT NULL",
    "CREATE INDEX bindings ON records (unit, sequence) WHERE kind = 'bound'",
    "CREATE UNIQUE INDEX one_request ON records (key, ifnull(analyst, '')) WHERE key IS NOT NULL",
    "CREATE UNIQUE INDEX one_output ON records (reservation, ifnull(step, 0)) WHERE reservation IS NOT NULL",
    """CREATE TRIGGER appended BEFORE INSERT ON records
WHEN new.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM records)
BEGIN SELECT raise(ABORT, 'records are appended in order'); END""",
    """CREATE TRIGGER never_updated BEFORE UPDATE ON records
BEGIN SELECT raise(ABORT, 'records are never changed'); END""",
    """CREATE TRIGGER never_deleted BEFORE DELETE ON records
BEGIN SELECT raise(ABORT, 'records are never deleted'); END""",
    """CREATE TABLE query_texts (
    sequence INTEGER PRIMARY KEY,
    text TEXT NOT NULL
)""",
    """CREATE TRIGGER texts_of_charges BEFORE INSERT ON query_texts
WHEN NOT EXISTS (SELECT 1 FROM records WHERE sequence = new.sequence AND kind = 'reserved')
BEGIN SELECT raise(ABORT, 'a text belongs to a charge'); END""",
    """CREATE TRIGGER texts_never_updated BEFORE UPDATE ON query_texts
BEGIN SELECT raise(ABORT, 'texts are kept or erased, never changed'); END""",
)


def create(connection: sqlite3.Connection) -> None:
    """Write the empty tables, inside the caller's transaction."""
    for statement in STATEMENTS:
        connection.execute(statement)
    mark(connection)


def mark(connection: sqlite3.Connection) -> None:
    """Write into the file's header what it is."""
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def check(connection: sqlite3.Connection) -> None:
    """Refuse a file that is not a ledger, is of another format, or whose tables were changed."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise LedgerError(
            "the file is not a ledger",
            code="SF602",
            hints=(
                "an empty file is refused too: it may be all that is left of a ledger",
                "name a file that does not exist to begin a new one",
            ),
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > 0:
        check_format(version)
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite#_%' ESCAPE '#'")
    if version != FORMAT or {sql for (sql,) in found} != set(STATEMENTS):
        raise LedgerError("the tables of the ledger are not those of its format", code="SF602")


def check_format(version: int) -> None:
    """Refuse another format than that of this version of sfumato."""
    if version != FORMAT:
        newer = version > FORMAT
        raise LedgerError(
            f"the ledger has format {version}; this version of sfumato reads format {FORMAT}",
            code="SF603",
            hints=("update sfumato" if newer else "the format changed before the first stable version",),
        )
