"""Where in a statement one is: the question, and the common table expressions in sight."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.plan.functions import call
from sfumato.plan.numbers import KindError
from sfumato.plan.question import Statement
from sfumato.plan.scope import ScopedRows
from sfumato.plan.tree import Call, Expression

__all__ = ["Context", "Cte", "Released", "Source"]


@dataclass(frozen=True, slots=True)
class Released:
    """A query over released tables: post-processing, with the names of its columns."""

    query: exp.Query
    columns: tuple[str, ...]


Source = tuple[str, ScopedRows] | Released | None
"""An entry of FROM: an alias and rows of people, a released query, or None if it is public."""


@dataclass(slots=True)
class Cte:
    """A query of WITH. Over private rows it is read anew wherever it is used."""

    query: exp.Query
    context: Context
    private: bool
    used: bool = False
    released: Released | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The question and the common table expressions that a query can name."""

    question: Statement
    ctes: dict[str, Cte] = field(default_factory=dict)

    def call(self, name: str, arguments: tuple[Expression, ...], at: exp.Expr) -> Call:
        """Return a call of the allow-list, or refuse it with a caret."""
        try:
            return call(name, arguments)
        except KindError as error:
            self.question.refuse(str(error), "SF403", at)

    def private(self, node: exp.Expr) -> bool:
        """Whether a query reads a private table anywhere."""
        for table in node.find_all(exp.Table):
            cte, known = self.ctes.get(table.name.lower()), self.question.catalog.table(table.name)
            if (cte is not None and cte.private) or (known is not None and known.private):
                return True
        return False
