"""What was asked: SQL text or Python calls, as one small frozen tree."""

from sfumato.plan.request import NamedQuery, Options, Request
from sfumato.plan.tree import Query

__all__ = ["NamedQuery", "Options", "Query", "Request"]
