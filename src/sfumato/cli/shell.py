"""`sfumato shell`: one question after another, with its price in view and nothing spent by accident.

On a terminal: history, completion, the price of the line as it is typed. From a pipe: the same
statements and commands, one after another, until something is refused.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction

from sfumato.catalog import Project
from sfumato.cli.budget import lines_of, record_of
from sfumato.cli.options import AnswerOptions, Format
from sfumato.cli.project import open_tables
from sfumato.cli.screen import screen
from sfumato.cli.spending import answer
from sfumato.cli.statements import script
from sfumato.core.arguments import budget_quantity
from sfumato.errors import InvalidArgument
from sfumato.session import Database, SqlQuestion
from sfumato.session.price import Price

__all__ = ["COMMANDS", "Shell", "run"]

COMMANDS = {
    ".budget": "what is spent and left",
    ".epsilon": "the epsilon of each question: .epsilon 0.5",
    ".explain": "explain a question, or the last one: .explain SELECT ..",
    ".format": "how answers are written: table, csv, json, markdown",
    ".help": "this list",
    ".quit": "leave; Ctrl-D does, too",
    ".tables": "tables, columns, and what is declared about them",
}
"""The commands of the shell."""

_STYLES = ("table", "csv", "json", "markdown")


def run(file: str, *, epsilon: float | None, analyst: str | None, purpose: str | None, ask: bool) -> None:
    """Open a project and answer questions until there are no more."""
    project, database = open_tables(file, analyst=analyst)
    chosen = None if epsilon is None else budget_quantity(epsilon, "epsilon")
    shell = Shell(project=project, database=database, epsilon=chosen, purpose=purpose)
    if sys.stdin.isatty():
        from sfumato.cli.prompt import converse

        converse(shell, ask=ask)
        return
    for statement in script(sys.stdin):
        if not shell.run(statement):
            return


@dataclass(slots=True, kw_only=True, eq=False)
class Shell:
    """A conversation: its database, and what was said so far."""

    project: Project
    database: Database
    epsilon: Fraction | None = None
    purpose: str | None = None
    style: str = "table"
    last: str | None = None

    def run(self, statement: str) -> bool:
        """Carry out a statement or a command; return whether to go on. Refusals are raised."""
        text = statement.strip()
        if text.startswith("."):
            return self._command(text)
        if text.strip(";").strip():
            self.last = text
            self.release(self.question(text))
        return True

    def question(self, text: str) -> SqlQuestion:
        """Return the question of a statement. Free."""
        text = text.strip().rstrip(";").rstrip()
        question = self.database.sql(text, epsilon=self.epsilon, purpose=self.purpose)
        if question.epsilon is None and not question.free:
            raise InvalidArgument(
                "a question needs a price",
                place="epsilon",
                hints=(".epsilon 0.5 sets it for all that follow",),
            )
        return question

    @property
    def set_to(self) -> str:
        """The epsilon of each question, in words."""
        return f"epsilon {float(self.epsilon):g}" if self.epsilon else "no epsilon set: .epsilon 0.5"

    def price(self, text: str) -> Price:
        """Return the price of a statement. Free."""
        return self.question(text).price()

    def release(self, question: SqlQuestion) -> None:
        """Spend, and show the answer."""
        answer(question, AnswerOptions(given=Format(self.style)))

    # -- commands -------------------------------------------------------------------------------

    def _command(self, text: str) -> bool:
        name, _, rest = text.partition(" ")
        rest = rest.strip()
        match name.lower():
            case ".quit" | ".exit":
                return False
            case ".help":
                width = max(len(each) for each in COMMANDS)
                self._say([f"{each.ljust(width)}  {what}" for each, what in COMMANDS.items()])
                self._say(["anything else is SQL, and ends in a semicolon"])
            case ".budget":
                self._say(lines_of(record_of(self.project, self.database.ledger)))
            case ".tables":
                self._say(self._tables())
            case ".explain":
                self._explain(rest)
            case ".epsilon":
                self._set_epsilon(rest)
            case ".format" if rest in _STYLES:
                self.style = rest
            case ".format":
                raise InvalidArgument(f"formats are {', '.join(_STYLES)}", place=".format")
            case _:
                raise InvalidArgument(
                    f"there is no command {name}", place="shell", hints=(".help lists them",)
                )
        return True

    def _explain(self, text: str) -> None:
        self.last = text or self.last
        if not self.last:
            raise InvalidArgument("nothing was asked yet", place=".explain", hints=(".explain SELECT ..",))
        question = self.question(self.last)
        self._say([question.explain(), "", *question.price().lines()])

    def _set_epsilon(self, text: str) -> None:
        if text:
            try:
                value = float(text)
            except ValueError:
                hints = (".epsilon 0.5",)
                raise InvalidArgument("epsilon is a number", place=".epsilon", hints=hints) from None
            self.epsilon = budget_quantity(value, "epsilon")
        self._say([self.set_to])

    def _tables(self) -> list[str]:
        lines = []
        for table in self.database.catalog.tables:
            whose = "public" if table.unit is None else f"private, unit `{table.unit.text or 'the row'}`"
            lines.append(f"{table.name}: {whose}")
            for field in table.fields:
                known = "" if field.domain is None else f", {_domain(field.domain)}"
                lines.append(f"  {field.name}  {field.kind.value}{known}")
            lines += [f"  {one.name}  {one.of_type}: questions cannot use it" for one in table.unsupported]
        return lines

    @staticmethod
    def _say(lines: list[str]) -> None:
        screen().print("\n".join(lines))


def _domain(domain: object) -> str:
    values = getattr(domain, "values", None)
    if values is not None:
        shown = [str(value) for value in values[:6]]
        return f"one of {', '.join(shown)}{', ..' if len(values) > 6 else ''}"
    return f"between {domain.lower} and {domain.upper}"  # type: ignore[attr-defined]
