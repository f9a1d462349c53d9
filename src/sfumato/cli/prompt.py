"""The prompt of the shell: history, completion, and the price of what is typed, live."""

from __future__ import annotations

import os
import string
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings

from sfumato.cli.screen import screen
from sfumato.cli.shell import COMMANDS, Shell
from sfumato.cli.statements import blank, split
from sfumato.errors import SfumatoError

__all__ = ["Names", "converse", "whole"]

_WORDS = [
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "AS", "AND", "OR", "NOT",
    "JOIN", "USING", "ON", "WITH", "CASE", "WHEN", "THEN", "ELSE", "END", "BETWEEN", "IN", "IS", "NULL",
    "DISTINCT", "DESC", "FILTER", "ROLLUP", "CUBE", "COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE",
    "HISTOGRAM", "MODE", "STDDEV_SAMP", "VAR_SAMP", "CORR", "MIN", "MAX", "LEAST", "GREATEST", "COALESCE",
]  # fmt: skip

_LETTERS = string.ascii_letters + string.digits + "_"


def converse(shell: Shell, *, ask: bool) -> None:
    """Talk until the end of input. A refusal is shown, and the conversation goes on."""
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=Names(shell),
        complete_while_typing=True,
        bottom_toolbar=lambda: _toolbar(shell, get_app().current_buffer.text),
        multiline=Condition(lambda: not whole(get_app().current_buffer.text)),
        prompt_continuation="    ..> ",
        key_bindings=_keys(),
    )
    screen().print("Ask in SQL; a question ends in a semicolon. .help lists commands, Ctrl-D leaves.")
    while True:
        try:
            text = session.prompt("sfumato> ")
        except KeyboardInterrupt:
            continue  # the line is dropped, as shells do
        except EOFError:
            return
        try:
            for statement in [text] if text.lstrip().startswith(".") else split(text)[0]:
                if _agreed(shell, statement, ask=ask) and not shell.run(statement):
                    return
        except SfumatoError as error:
            screen(error=True).print(str(error), style="red")
        except KeyboardInterrupt as stop:  # of a question: it says whether it was charged
            screen(error=True).print(str(stop) or "interrupted", style="red")


def whole(text: str) -> bool:
    """Return whether Enter ends the input: a command, nothing at all, or statements with their semicolons."""
    if text.lstrip().startswith(".") or blank(text):
        return True
    return ";" in text and blank(split(text)[1])


def _agreed(shell: Shell, text: str, *, ask: bool) -> bool:
    """Show the price of a statement and ask whether to pay it."""
    if not ask or not text.strip(" ;\n") or text.strip().startswith("."):
        return True
    price = shell.price(text)
    if price.refusal is not None:
        raise price.refusal
    session: PromptSession[str] = PromptSession(history=InMemoryHistory())
    try:
        given = session.prompt(
            f"epsilon {float(price.epsilon):g}, {price.share:.2%} of the budget: spend? [y/N] "
        )
    except (EOFError, KeyboardInterrupt):
        given = ""
    if given.strip().lower() in ("y", "yes"):
        return True
    shell.last = text.strip().rstrip(";")
    screen().print("nothing was spent")
    return False


class Names(Completer):
    """Completes commands, tables, columns and SQL words."""

    def __init__(self, shell: Shell) -> None:
        tables = shell.database.catalog.tables
        self._columns = {table.name.lower(): [field.name for field in table.fields] for table in tables}
        known = {table.name: "table" for table in tables}
        for table in tables:
            known |= {field.name: field.kind.value for field in table.fields}
        self._known = {**dict.fromkeys(_WORDS, ""), **known}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what the word before the cursor may become."""
        line = document.text_before_cursor
        if line.lstrip().startswith(".") and " " not in line.lstrip():
            typed = line.lstrip()
            for name in COMMANDS:
                if name.startswith(typed):
                    yield Completion(name, start_position=-len(typed), display_meta=COMMANDS[name])
            return
        word = line[len(line.rstrip(_LETTERS)) :]
        before = line[: len(line) - len(word)]
        owner = before[:-1].split()[-1].lower() if before.endswith(".") and before[:-1].split() else None
        names = self._columns.get(owner, []) if owner else self._known
        if not word and owner is None:
            return
        for name in names:
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, start_position=-len(word), display_meta=self._known.get(name, ""))


def _toolbar(shell: Shell, text: str) -> str:
    """Return the line below the prompt: the price of what stands there, or why it has none.

    The ledger may have gone from under it: that is said here, and does not end the conversation.
    """
    try:
        if not text.strip(" ;\n") or text.strip().startswith("."):
            spent = shell.database.balance
            share = 1 - spent.remaining / (spent.remaining + spent.spent)
            return f" {float(share):.1%} of the budget spent | {shell.set_to}"
        if shell.epsilon is None:
            return f" {shell.set_to}"
        return _priced(shell, text.strip().rstrip(";"), shell.epsilon, shell.database.balance.spent)
    except SfumatoError as error:
        return f" {error.code}: {error.message}"


@lru_cache(maxsize=64)
def _priced(shell: Shell, text: str, epsilon: Any, spent: Any) -> str:
    price = shell.price(text)
    errors = ", ".join(f"{name} {error}" for name, error in price.errors[:3])
    fit = f"{price.times:,} fit" if price.times else "does not fit"
    return f" {price.share:.2%} of the budget, {fit} | {errors}"


def _keys() -> KeyBindings:
    """Let Enter end a whole statement wherever the cursor is, and begin a new line otherwise."""
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: whole(get_app().current_buffer.text)))
    def _accept(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    return keys


def _history() -> History:
    """Return the history of this user; in memory, where it cannot be kept. It holds questions, no answers."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(os.environ.get("SFUMATO_HISTORY") or Path(state) / "sfumato" / "history")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
