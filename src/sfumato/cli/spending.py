"""The one flow of the commands that spend: check, open, show the price or release, write the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.cli.options import AnswerOptions, EstimateOptions
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import screen, working

if TYPE_CHECKING:
    from sfumato.catalog import Project
    from sfumato.session import Database
    from sfumato.session.price import Price
    from sfumato.session.spending import Spendable

__all__ = ["Terminal", "answer", "opened", "released"]

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The command line as a door: prices go to standard output, steps to the screen.

    `about` are lines above a price, `facts` are more fields of its JSON.
    """

    as_json: bool
    step: str
    about: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def quote(self, price: Price) -> None:
        """Write a price to standard output."""
        record = {"price": price.record(), **self.facts}
        text = json.dumps(record) if self.as_json else "\n".join([*self.about, *price.lines()])
        write(f"{text}\n".encode(), None, paid=False)

    def working(self) -> AbstractContextManager[Callable[[str], object]]:
        """Show the steps on a terminal."""
        return working(self.step)


def opened(
    project: str, analyst: str | None, options: AnswerOptions, *, free: bool
) -> tuple[Project, Database]:
    """Return a project with its tables, once it is known that an answer can be written."""
    from sfumato.catalog import read_project
    from sfumato.cli.project import tables_of
    from sfumato.core.mechanism import confidence

    confidence(options.level)
    declared = read_project(project)
    can_write(options.output, kept(declared), style=options.style.value)
    return declared, tables_of(declared, analyst=analyst, free=free)


def released(
    question: Spendable[_Answer],
    options: AnswerOptions | EstimateOptions,
    *,
    step: str = "charging, computing, adding noise",
    price: Callable[[], Price] | None = None,
    agree: Callable[[Price], None] | None = None,
    purpose: str | None = None,
    about: tuple[str, ...] = (),
    **facts: Any,
) -> _Answer | None:
    """Spend on a question and return its answer; with `--dry-run`, write its price and return None.

    `price` and `agree` are those of `spend`. `about` are lines above the price, `facts` are more
    fields of its JSON.
    """
    from sfumato.session.spending import spend

    return spend(
        question,
        Terminal(as_json=options.style.value == "json", step=step, about=about, facts=facts),
        price=price,
        agree=agree,
        dry_run=options.dry_run,
        key=options.key,
        purpose=purpose,
    )


def answer(
    question: Spendable[Any],
    options: AnswerOptions,
    render: Callable[[Any], bytes] | None = None,
    *,
    price: Callable[[], Price] | None = None,
    about: tuple[str, ...] = (),
    **facts: Any,
) -> Any:
    """Spend on a question as `released` does, and write its answer where the options say; return it."""
    from sfumato.release.formats import rendered

    found = released(question, options, price=price, about=about, **facts)
    if found is None:
        return None
    text = rendered(found, options.style.value, options.level) if render is None else render(found)
    write(text, options.output)
    if options.output is not None:
        screen(error=True).print(f"written: {options.output}")
    return found
