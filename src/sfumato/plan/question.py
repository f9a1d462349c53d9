"""The question being read: its text, the catalog, places for carets, and names that are free."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from sqlglot import exp

from sfumato.catalog.catalog import Catalog
from sfumato.plan.hints import CLAUSES, refuse
from sfumato.plan.limits import MOST_RELATIONS, check_query
from sfumato.plan.options import DEFAULT_OPTIONS, Options
from sfumato.plan.request import NamedQuery
from sfumato.plan.scope import Output
from sfumato.plan.syntax import function_name
from sfumato.plan.tree import Span
from sfumato.plan.unit_safety import check_units

__all__ = ["Clause", "NamedArgument", "Statement"]

_CLOSING = re.compile(r"\s*\)")


@dataclass(slots=True, kw_only=True)
class NamedArgument:
    """A named argument of an aggregate, and the call whose parentheses it was written in."""

    name: str
    value: Any  # of bounds: both of them; of epsilon: a fraction; of report_format: its name
    call: Span
    span: Span
    taken: int = 0


@dataclass(slots=True, kw_only=True)
class Clause:
    """GoogleSQL's privacy clause: its first words, where it ends, the unit it names, and its options."""

    span: Span
    end: int
    unit: tuple[str | None, str] | None = None
    options: Options = DEFAULT_OPTIONS
    keys_epsilon: Fraction | None = None
    taken: bool = False


class Statement:
    """What is known while one statement is taken apart. Holds no data and reads none."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        self.text = text
        self.catalog = catalog
        self.queries: list[NamedQuery] = []
        self.public: list[str] = []
        self.clauses: list[Clause] = []
        self.arguments: list[NamedArgument] = []
        self.free = False  # about public tables alone
        self._aliases: set[str] = set()
        self._reserved: set[str] = {table.name.lower() for table in catalog.tables}

    # -- refusals ----------------------------------------------------------------------------

    def refuse(self, message: str, code: str, at: exp.Expr | Span | None = None, *hints: str) -> NoReturn:
        """Raise the refusal of this question, with a caret under `at`."""
        refuse(self.text, message, *hints, at=at if isinstance(at, Span) else self.place(at), code=code)

    def check_whole(self, unit: Output, at: exp.Expr, *hints: str) -> None:
        """Refuse the unit of the far side of an outer join: a row without a match has none."""
        if not unit.whole:
            message = f"`{unit.name}` is absent where the outer join found no match"
            self.refuse(message, "SF406", at, *hints)

    def only(self, node: exp.Expr, *handled: str) -> None:
        """Refuse a node that says anything beyond the arguments that are handled.

        This is what keeps a clause from being dropped in silence: a parser that learns new
        syntax puts it into an argument that no one here names.
        """
        for name, value in node.args.items():
            if name in handled or value is None or value is False or value == [] or value == "":
                continue
            parts = value if isinstance(value, list) else [value]
            placed = (part for part in parts if isinstance(part, exp.Expr) and self.span(part) is not None)
            at = next(placed, node)
            clause = name.strip("_").replace("_", " ").upper()
            if isinstance(node, exp.AggFunc) and name in ("count", "expressions"):
                self.refuse(f"{self.name(node).upper()} takes one argument", "SF403", at, CLAUSES["count"])
            hints = (CLAUSES[name],) if name in CLAUSES else ()
            title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
            self.refuse(f"{clause} is not supported in {title}", "SF404", at, *hints)

    def span(self, node: exp.Expr) -> Span | None:
        """Return where a node stands, read off the tokens it was made from."""
        places = [part.meta for part in node.walk() if "start" in part.meta]
        if not places:
            return None
        start = min(place["start"] for place in places)
        end = max(place["end"] for place in places) + 1
        missing = self.text.count("(", start, end) - self.text.count(")", start, end)
        while missing > 0 and (closing := _CLOSING.match(self.text, end)):
            end = closing.end()
            missing -= 1
        return Span(start, end)

    def name(self, node: exp.Expr) -> str:
        """Return what a function or operator is called in the text, for messages."""
        if isinstance(node, exp.Func) and "start" in node.meta:
            return self.text[node.meta["start"] : node.meta["end"] + 1].lower()
        return function_name(node)

    def place(self, node: exp.Expr | None) -> Span | None:
        """Return where a node stands, or else the nearest node around it that has a place."""
        while node is not None:
            span = self.span(node)
            if span is not None:
                return span
            node = node.parent
        return None

    # -- names -------------------------------------------------------------------------------

    def alias(self, wanted: str) -> str:
        """Return a name for a relation that no other relation of this question has.

        Letters, digits and underscores only, so that the first dot of a column's name ends the alias.
        """
        if len(self._aliases) >= MOST_RELATIONS:
            hint = "a query of WITH counts wherever it is used: use it once, or ask in several questions"
            self.refuse(f"a question has at most {MOST_RELATIONS} tables and subqueries", "SF404", None, hint)
        return _free(re.sub(r"\W", "_", wanted) or "_", self._aliases)

    def reserve(self, name: str) -> None:
        """Keep a name from being given to a released table."""
        self._reserved.add(name.lower())

    def free_table(self) -> str:
        """Return a name for a released table: one that no other table of the statement has."""
        return _free("released", self._reserved)

    def ask(self, asked: NamedQuery) -> None:
        """Add a private question, or refuse it."""
        check_query(asked.query, self)
        check_units(asked.query, self.catalog)
        self.queries.append(asked)

    def use_public(self, name: str) -> None:
        """Note that post-processing reads a public table."""
        if name not in self.public:
            self.public.append(name)


def _free(stem: str, taken: set[str]) -> str:
    name, count = stem, 1
    while name.lower() in taken:
        count += 1
        name = f"{stem}_{count}"
    taken.add(name.lower())
    return name
