"""The public entry: connect to data, ask, look at the price, release.

Asking is free. Only `Question.release` spends, and it takes the one path of `pipeline.answer`.
"""

from __future__ import annotations

from sfumato.session.budget import Budget
from sfumato.session.database import Database
from sfumato.session.opening import connect, open, open_project, propose
from sfumato.session.question import Question
from sfumato.session.sql_question import SqlQuestion

__all__ = ["Budget", "Database", "Question", "SqlQuestion", "connect", "open", "open_project", "propose"]
