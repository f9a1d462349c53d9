"""May it run: budgets of units of protection, charged before data is read, in a chain of records.

Reading order: `canonical`, `records`, `renewal`, `totals`, `terms`, `charges` (what is written), `signer`,
`receipts`, `schema`, `connection`, `journal` (how it is kept), `liveness`, `balance`, `account`, `proposal`,
`accounts`, `spending`, `reservation`, `ledger` (what is allowed), `verification`, `export` (what is
believed).
"""

from sfumato.ledger.balance import Balance, Entry, GrantBalance
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proposal import Binding, Proposal
from sfumato.ledger.receipts import verify_receipt
from sfumato.ledger.records import Head
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.reservation import Reservation

__all__ = [
    "Balance",
    "Binding",
    "Entry",
    "GrantBalance",
    "Head",
    "Ledger",
    "Proposal",
    "Renewal",
    "Reservation",
    "verify_receipt",
]
