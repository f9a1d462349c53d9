"""The one path: every answer about private data, from every door, is made by `answer` or by its steps.

    request ──> plan ──> bounded plan ──> cost ──> reserved in the ledger
                                                      ──> exact integers ──> noise ──> release

All before the reservation is free, reads no data, and fails the same way whatever the data.
All after it is paid for: an error, a crash or a timeout burns what was reserved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.pipeline.answering import admit, answer, answer_public, parts_charged
    from sfumato.pipeline.looks import Looks, reserved_steps, several_looks
    from sfumato.pipeline.planning import bounded_queries, parts_of_request, plan, refuse_huge
    from sfumato.pipeline.priced import Look, LookCost, Priced, PricedAnswer, Tell, silent
    from sfumato.pipeline.priced_query import FoundLimits, PricedQuery, published, unprotected_totals

__all__ = [
    "FoundLimits",
    "Look",
    "LookCost",
    "Looks",
    "Priced",
    "PricedAnswer",
    "PricedQuery",
    "Tell",
    "admit",
    "answer",
    "answer_public",
    "bounded_queries",
    "parts_charged",
    "parts_of_request",
    "plan",
    "published",
    "refuse_huge",
    "reserved_steps",
    "several_looks",
    "silent",
    "unprotected_totals",
]

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "answering": ["admit", "answer", "answer_public", "parts_charged"],
        "looks": ["Looks", "reserved_steps", "several_looks"],
        "planning": ["bounded_queries", "parts_of_request", "plan", "refuse_huge"],
        "priced": ["Look", "LookCost", "Priced", "PricedAnswer", "Tell", "silent"],
        "priced_query": ["FoundLimits", "PricedQuery", "published", "unprotected_totals"],
    },
)
