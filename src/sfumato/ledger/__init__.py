"""May it run: budgets of units of protection, charged before data is read, in a chain of records.

Reading order: `canonical`, `records`, `charges`, `query_texts`, `terms` (what is written), `receipts`,
`schema`, `forks`, `connection`, `group_commit`, `open_reservations`, `store`, `journal` (how it is kept),
`account`, `accounts`, `reservation`, `ledger` (what is allowed), `verification` (what is believed).
"""

from sfumato.ledger.account import Balance, GrantBalance
from sfumato.ledger.charges import Entry
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.query_texts import QueryText
from sfumato.ledger.receipts import verify_receipt
from sfumato.ledger.records import Head
from sfumato.ledger.reservation import Reservation
from sfumato.ledger.terms import OWNER, Binding, Owner, Proposal, Renewal

__all__ = [
    "Balance",
    "Binding",
    "Entry",
    "GrantBalance",
    "Head",
    "Ledger",
    "OWNER",
    "Owner",
    "Proposal",
    "QueryText",
    "Renewal",
    "Reservation",
    "verify_receipt",
]
