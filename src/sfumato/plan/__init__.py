"""What was asked: SQL text or Python calls, as one small frozen tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.plan.options import Options
    from sfumato.plan.request import NamedQuery, Request
    from sfumato.plan.tree import Query

__all__ = ["NamedQuery", "Options", "Query", "Request"]

__getattr__, __dir__ = _contents(
    __name__, __all__, {"options": ["Options"], "tree": ["Query"]}, rest="request"
)
