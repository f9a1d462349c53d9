"""May it run: budgets of units of protection, charged before data is read, in a chain of records.

Reading order: `canonical`, `records`, `renewal`, `charges`, `terms` (what is written), `signer`, `receipts`,
`schema`, `forks`, `connection`, `group_commit`, `sidecar_files`, `open_reservations`, `store`, `journal` (how
it is kept), `account`, `accounts`, `reservation`, `ledger` (what is allowed), `verification`, `export` (what
is believed).
"""

from sfumato.ledger.account import Balance, GrantBalance
from sfumato.ledger.charges import Entry
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.receipts import verify_receipt
from sfumato.ledger.records import Head
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.reservation import Reservation
from sfumato.ledger.terms import OWNER, Binding, Owner, Proposal

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
    "Renewal",
    "Reservation",
    "verify_receipt",
]
