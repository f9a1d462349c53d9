"""The clerk: has the errands of one process written, by itself with those of others, or by others."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING

from sfumato.errors import LedgerError
from sfumato.ledger.connection import FAILURES, raise_refusal, too_busy, unreliable
from sfumato.ledger.desk import Ask, Desk, Paper, link_noted
from sfumato.ledger.turns import Errand

if TYPE_CHECKING:
    from sfumato.ledger.store import Store

__all__ = ["Clerk"]

_PAUSE = 0.001


class Clerk:
    """The place of one store at the desk of its ledger."""

    __slots__ = ("_desk", "_met", "_name", "_place")

    def __init__(self) -> None:
        self._name: str | None = None
        self._desk: Desk | None = None
        self._place: int | None = None
        self._met = False  # whether another process was met at work

    def write(self, store: Store, errands: list[Errand]) -> None:
        """Write errands with all that lies on the desk, or have who attends the desk write them."""
        deadline = time.monotonic() + store.wait
        ask = errands[0].ask if len(errands) == 1 and store.serve is not None else None
        self._find_desk(store)
        while ask is not None:
            if self._desk is not None and self._place is not None and self._desk.attended(self._place):
                if self._write_elsewhere(store, errands[0], ask, self._desk, self._place, deadline):
                    return
                break  # nobody wrote it, and nobody will: it is for this process to see why
            if self._write_here(store, errands, at_once=True):
                return
            if time.monotonic() >= deadline:
                raise too_busy(store.path)
            self._make_desk(store)
            time.sleep(_PAUSE)
        self._write_here(store, errands, at_once=False)

    def leave(self) -> None:
        """Give the place at the desk back."""
        if self._desk is not None and self._place is not None:
            self._desk.leave_place(self._place)
            self._place = None

    def _find_desk(self, store: Store) -> None:
        """Sit down at the desk of a ledger, if several processes have met there."""
        if self._desk is None and store.path is not None and store.serve is not None:
            self._name = self._name or f"{os.path.realpath(store.path)}-desk"
            if os.path.exists(self._name):
                self._sit(Desk.at(self._name, store.path, create=False))

    def _make_desk(self, store: Store) -> None:
        """Make a desk, since another process is at work; try once."""
        if self._desk is None and not self._met and self._name is not None and store.path is not None:
            self._met = True
            self._sit(Desk.at(self._name, store.path, create=True))

    def _sit(self, desk: Desk | None) -> None:
        self._desk = desk
        self._place = None if desk is None else desk.take_place()

    # -- writing here ---------------------------------------------------------------------------

    def _write_here(self, store: Store, errands: list[Errand], *, at_once: bool) -> bool:
        """Write for oneself and for others; `at_once`, return False while others are at work."""
        began = time.monotonic()
        desk = self._desk
        with store.writing(at_once=at_once) as begun:
            if not begun:
                return False
            papers = [] if desk is None else desk.papers(store.identity)
            for errand in errands:
                _do(store, errand, alone=len(errands) + len(papers) == 1)
            for paper in papers:
                _do_for_another(store, paper)
        for paper in papers:
            paper.settle()
        if desk is not None and self._place is not None:
            desk.tell_of_writing(self._place, began)
        return True

    # -- writing elsewhere ------------------------------------------------------------------------

    def _write_elsewhere(
        self, store: Store, errand: Errand, ask: Ask, desk: Desk, place: int, deadline: float
    ) -> bool:
        """Have another process write; return whether it did. If not, it never will."""
        store.check_usable()
        words = ask.words()
        try:
            ticket = desk.ask(place, words, store.identity)
            note = None if ticket is None else _outcome(store, desk, place, ticket, deadline)
        finally:
            desk.withdraw(place)
        if note:
            errand.result = ask.result(link_noted(note))
        return bool(note)


def _outcome(store: Store, desk: Desk, place: int, ticket: int, deadline: float) -> bytes | None:
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
                    return note if note and store.keeps(link_noted(note)) else None
        except LedgerError as error:
            if error.code != "SF604":
                raise
            raise _unsaid(store) from error
        if time.monotonic() >= deadline:
            raise _unsaid(store)
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
        errand.error = _refusal_for(error, store)
        store.execute("ROLLBACK TO errand")
        store.forget()
    store.execute("RELEASE errand")


def _refusal_for(error: BaseException, store: Store) -> BaseException:
    """Return what is raised to who sent an errand: outside a shared transaction nobody translates it."""
    try:
        if isinstance(error, FAILURES):
            raise_refusal(error, store.path)
    except LedgerError as refusal:
        return refusal
    return error


def _do_for_another(store: Store, paper: Paper) -> None:
    def section() -> None:
        assert store.serve is not None
        paper.note(store.serve(paper.words))

    errand = Errand(section)
    _do(store, errand, alone=False)
    if isinstance(errand.error, Exception):
        paper.decline()  # whatever is wrong with it, who asked will find out
    elif errand.error is not None:
        raise errand.error
