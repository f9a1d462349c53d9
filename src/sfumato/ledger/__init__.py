"""May it run: budgets of units of protection, charged before data is read, in a chain of records.

Reading order: `canonical`, `records` (what is written), `schema`, `connection`, `journal` (how it is
kept), `liveness`, `balance`, `reservation`, `ledger` (what is allowed), `verification` (what is believed).
"""

from sfumato.ledger.balance import Balance, Entry
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Head
from sfumato.ledger.reservation import Reservation

__all__ = ["Balance", "Entry", "Head", "Ledger", "Reservation"]
