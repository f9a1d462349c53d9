"""Spending: the one way from a question to its answer, for every door that spends.

A door is where a question comes from: the command line, a server. It shows prices and progress; what is
asked and what it costs is the question's own business.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from sfumato.session.price import Price

__all__ = ["Door", "Spendable", "spend"]

_Answer_co = TypeVar("_Answer_co", covariant=True)
_Answer = TypeVar("_Answer")


class Spendable(Protocol[_Answer_co]):
    """A question that can be paid for."""

    def price(self) -> Price: ...

    def release(
        self, *, key: str | None, purpose: str | None, progress: Callable[[str], object]
    ) -> _Answer_co: ...


class Door(Protocol):
    """Where a question comes from: it shows what is not paid now, and the steps of what is."""

    def quote(self, price: Price) -> None:
        """Show a price that is not going to be paid now."""

    def working(self) -> AbstractContextManager[Callable[[str], object]]:
        """Show that work goes on; what is yielded is told of each step."""


def spend(
    question: Spendable[_Answer],
    door: Door,
    *,
    price: Callable[[], Price] | None = None,
    agree: Callable[[Price], None] | None = None,
    dry_run: bool = False,
    key: str | None = None,
    purpose: str | None = None,
) -> _Answer | None:
    """Charge, and return the answer; with `dry_run`, show the price, spend nothing and return None.

    `price` finds the price where a question needs more for it, such as the size of a group. `agree` asks
    somebody whether to pay, and raises if the answer is no. A price that the budget does not cover is
    refused: in a dry run once it is shown, else before anybody is asked.
    """
    found = question.price if price is None else price
    if dry_run:
        shown = found()
        door.quote(shown)
        if shown.refusal is not None:
            raise shown.refusal
        return None
    if agree is not None:
        shown = found()
        if shown.refusal is not None and key is None:  # under a key it may have been paid for already
            raise shown.refusal
        agree(shown)
    with door.working() as tell:
        return question.release(key=key, purpose=purpose, progress=tell)
