"""Export: the whole chain as JSON Lines, which an outsider can check with a page of code.

One line per record, in order: a JSON object of `sequence`, `previous`, `hash`, `body` (the text that is
hashed, as text) and, where the record is that of a release, `release` (its bytes in Base64; null if
they were left out).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

from sfumato.ledger.journal import Journal

__all__ = ["exported"]

_PAGE = 1000


def exported(journal: Journal, *, releases: bool) -> Iterator[str]:
    """Yield a line for each record there was when the export began; others go on spending meanwhile."""
    with journal.reading():
        last = journal.last().sequence
    for start in range(1, last + 1, _PAGE):
        with journal.reading():
            rows = list(journal.rows("WHERE sequence BETWEEN ? AND ?", start, min(last, start + _PAGE - 1)))
        for row in rows:
            line: dict[str, object] = {
                "sequence": row.sequence,
                "previous": row.previous,
                "hash": row.hash,
                "body": row.body,
            }
            if row.release is not None:
                line["release"] = base64.b64encode(row.release).decode() if releases else None
            yield json.dumps(line, separators=(",", ":")) + "\n"
