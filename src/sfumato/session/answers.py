"""Answers: what every kind of question does once it is priced, and what Ctrl-C says before that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from sfumato.pipeline import PricedAnswer, Published, answer

if TYPE_CHECKING:
    from sfumato.session.database import Database

__all__ = ["answered", "not_charged_yet"]

_Answer = TypeVar("_Answer", bound=Published)


def answered(
    database: Database,
    priced: PricedAnswer[_Answer],
    *,
    key: str | None,
    purpose: str | None,
    tell: Callable[[str], object],
) -> _Answer:
    """Charge and answer, as whoever the database was opened for."""
    return answer(
        priced,
        catalog=database.catalog,
        ledger=database.ledger,
        backend=database.backend,
        idempotency_key=key,
        analyst=database.analyst,
        purpose=purpose,
        tell=tell,
    )


@contextmanager
def not_charged_yet() -> Iterator[None]:
    """Let Ctrl-C say that nothing was charged."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted: nothing was charged") from None
