"""A ledger in a PostgreSQL database, for several hosts: the same journal, other statements and locks.

Reading order: `address`, `schema`, `connection`, `open_reservations`, `journal`.
"""

from sfumato.ledger.postgres.journal import PostgresJournal

__all__ = ["PostgresJournal"]
