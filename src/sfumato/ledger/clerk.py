"""The clerk: has the errands of one process written, by itself with those of others, or by others."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING

from sfumato.errors import LedgerError
from sfumato.ledger.connection import too_busy, unreliable
from sfumato.ledger.desk import Ask, Desk, Paper
from sfumato.ledger.turns import Errand

if TYPE_CHECKING:
    from sfumato.ledger.store import Store

__all__ = ["Clerk"]

_PAUSE = 0.001


class Clerk:
    """The place of one store at the desk of its ledger."""

    __slots__ = ("_desk", "_name", "_place", "_process")

    def __init__(self) -> None:
        self._process = os.getpid()
        self._name: str | None = None
        self._desk: Desk | None = None
        self._place: int | None = None

    def write(self, store: Store, errands: list[Errand]) -> None:
        """Write errands with all that lies on the desk, or have who attends the desk write them."""
        ask = errands[0].ask if len(errands) == 1 and store.serve is not None else None
        deadline = time.monotonic() + store.wait
        self._sit(store, create=False)
        while ask is not None:
            if self._desk is not None and self._place is not None and self._desk.attended(self._place):
                if self._write_elsewhere(store, errands[0], ask, self._desk, self._place, deadline):
                    return
                break  # nobody wrote it, and nobody will: it is for this process to see why
            if self._write_here(store, errands, at_once=True):
                return
            if time.monotonic() >= deadline:
                raise too_busy(store.path)
            self._sit(store, create=True)
            time.sleep(_PAUSE)
        self._write_here(store, errands, at_once=False)

    def leave(self) -> None:
        """Give the place at the desk back."""
        if self._desk is not None and self._place is not None and self._process == os.getpid():
            self._desk.leave_place(self._place)
            self._place = None

    def _sit(self, store: Store, *, create: bool) -> None:
        """Find the desk of a ledger at which several processes write; with `create`, make it."""
        if self._process != os.getpid():
            self.__init__()  # type: ignore[misc]
        if self._desk is None and store.path is not None and store.serve is not None:
            self._name = self._name or f"{os.path.realpath(store.path)}-desk"
            if create or os.path.exists(self._name):
                self._desk = Desk.at(self._name, store.path, create=create)
                self._place = None if self._desk is None else self._desk.take_place()

    # -- writing here ---------------------------------------------------------------------------

    def _write_here(self, store: Store, errands: list[Errand], *, at_once: bool) -> bool:
        """Write for oneself and for others; `at_once`, return False while others are at work."""
        began = time.monotonic()
        desk = self._desk
        with store.writing(at_once=at_once) as begun:
            if not begun:
                return False
            papers = [] if desk is None else desk.asked(store.identity)
            for errand in errands:
                _do(store, errand, alone=len(errands) + len(papers) == 1)
            for paper in papers:
                _do_for_another(store, paper)
        for paper in papers:
            paper.done()
        if desk is not None and self._place is not None:
            desk.attend(self._place, began)
        return True

    # -- writing elsewhere ------------------------------------------------------------------------

    def _write_elsewhere(
        self, store: Store, errand: Errand, ask: Ask, desk: Desk, place: int, deadline: float
    ) -> bool:
        """Have another process write; return whether it did. If not, it never will."""
        store.check_usable()
        ticket = desk.ask(place, ask.words(), store.identity)
        if ticket is None:
            return False
        try:
            note = _note(store, desk, place, ticket, deadline)
        finally:
            desk.withdraw(place)
        if note:
            errand.result = ask.result(Desk.link(note))
        return bool(note)


def _note(store: Store, desk: Desk, place: int, ticket: int, deadline: float) -> bytes | None:
    """Return the note of a record that another process wrote and that is on the disk; nothing if none did."""
    while True:
        if desk.wait(place, ticket, deadline):
            note = desk.noted(place, ticket)
            if note is not None:
                return note
        try:
            with store.writing(at_once=True) as begun:
                if begun:  # nobody else is at work: what was noted is in the chain, or never will be
                    desk.withdraw(place)
                    note = desk.noted(place, ticket)
                    return note if note and store.keeps(Desk.link(note)) else None
            if time.monotonic() >= deadline:
                raise too_busy(store.path)
        except LedgerError as error:
            raise _unsaid(store) if error.code == "SF604" else error from error
        time.sleep(_PAUSE)


def _unsaid(store: Store) -> LedgerError:
    return LedgerError(
        "another process is writing for this one, and did not finish within the stated wait",
        code="SF601",
        place=str(store.path),
        hints=("nothing was answered; what may have been charged stays charged",),
    )


def _do(store: Store, errand: Errand, *, alone: bool) -> None:
    if alone:
        errand.result = errand.section()
        return
    store.execute("SAVEPOINT errand")
    try:
        errand.result = errand.section()
    except BaseException as error:
        if isinstance(error, sqlite3.Error) and unreliable(error):
            raise
        errand.error = error
        store.execute("ROLLBACK TO errand")
        store.forget()
    store.execute("RELEASE errand")


def _do_for_another(store: Store, paper: Paper) -> None:
    def section() -> None:
        assert store.serve is not None
        paper.note(store.serve(paper.words))

    errand = Errand(section)
    _do(store, errand, alone=False)
    if isinstance(errand.error, Exception):
        paper.note(None)  # whatever is wrong with it, who asked will find out
    elif errand.error is not None:
        raise errand.error
