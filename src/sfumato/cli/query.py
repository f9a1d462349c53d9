"""`sfumato query`, `sfumato losses` and `sfumato explain`."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Option

from sfumato.cli.options import AnswerOptions, Asking, Plain, PlainOption
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import screen
from sfumato.cli.spending import answer, opened
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.session import Database, SqlQuestion

__all__ = [
    "explain",
    "losses",
    "one_price",
    "query",
    "question_text",
    "text_of",
    "with_price",
]

_LONGEST = 1_000_000  # letters of a question
_Plot = Annotated[
    str | None, Option("--plot", help="Draw the answer as well, into an .svg, .png or .html file.")
]


def query(asking: Asking, options: AnswerOptions, plot: _Plot = None) -> None:
    """Ask, and spend: charge the budget, compute, add noise, show the answer with its errors."""
    _answer(asking, options, losses=False, plot=plot)


def losses(asking: Asking, options: AnswerOptions) -> None:
    """Ask what caps and bounds take from a question, instead of its answer: rows, groups, values. Spends."""
    _answer(asking, options, losses=True)


def _answer(asking: Asking, options: AnswerOptions, *, losses: bool, plot: str | None = None) -> None:
    """Ask and release the question, or what it loses."""
    prices_only = options.dry_run and not asking.free  # a free answer is of the data as it is
    project, database = opened(asking.project, asking.analyst, options, free=prices_only)
    if plot is not None:
        from sfumato.plots import check_drawing

        check_drawing(plot)
        can_write(plot, kept(project), place="--plot")
    question = _asked(asking, database)
    if losses:
        question = question.losses(epsilon=question.epsilon)
    found = answer(question, options, price=partial(question.price, size=asking.size))
    if plot is not None and found is not None:
        from sfumato.plots import save

        save(found.plot(level=options.level), plot)
        screen(error=True).print(f"written: {plot}")


def explain(asking: Asking, style: PlainOption = Plain.table) -> None:
    """Explain what one unit can change, the noise, the cost and the error. Free: asks nothing of the data."""
    from sfumato.cli.project import open_tables

    _, database = open_tables(asking.project, analyst=asking.analyst, free=not asking.free)
    question = _asked(asking, database)
    price = question.price(size=asking.size)
    text = question.explain(size=asking.size)
    if style is Plain.json:
        write(f"{json.dumps({'price': price.record(), 'explanation': text})}\n".encode(), None, paid=False)
        return
    write("\n".join([text, "", *price.lines(), ""]).encode(), None, paid=False)


def _asked(asking: Asking, database: Database) -> SqlQuestion:
    """Return the question, at the epsilon that was given or follows from the error."""
    one_price(asking.epsilon, asking.error)
    question = database.sql(
        question_text(asking.question),
        epsilon=asking.epsilon,
        purpose=asking.purpose,
        free=asking.free,
        **asking.options,
    )
    if question.only_free:
        return question
    return with_price(question, asking.error, asking.size)


def one_price(epsilon: float | None, error: float | None) -> None:
    """Refuse two prices."""
    if epsilon is not None and error is not None:
        raise InvalidArgument("give epsilon or an error, not both", place="--error")


def with_price(question: SqlQuestion, error: float | None, size: float | None = None) -> SqlQuestion:
    """Return a question at the epsilon that it has, or that follows from an error."""
    if error is not None and not question.free:
        return question.within(error, size=size)
    if question.epsilon is None and not question.free:
        raise InvalidArgument(
            "a question needs a price",
            place="--epsilon",
            hints=("--epsilon 0.5 says what it may give away, --error 40 how far off it may be",),
        )
    return question


def question_text(given: str) -> str:
    """Return SQL: what was given, the contents of the file it names, or of standard input for `-`."""
    from sfumato.cli.statements import blank, split

    named = given == "-" or os.path.isfile(given) or given.lower().endswith(".sql")
    text = text_of(given) if named else given
    whole, rest = split(text)
    text = whole[0] if len(whole) == 1 and blank(rest) else text.strip()  # several: the parser refuses them
    if blank(text):
        raise InvalidArgument("the question is empty", place="question", hints=("give SQL, a file or -",))
    return text


def text_of(file: str) -> str:
    """Return the contents of a file, or of standard input for `-`."""
    if file == "-":
        return sys.stdin.read(_LONGEST + 1)
    try:
        with open(file, encoding="utf-8") as given:
            return given.read(_LONGEST + 1)
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument(
            "the file with the question cannot be read", place=file, hints=("give SQL, a file or -",)
        ) from None
