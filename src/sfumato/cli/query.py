"""`sfumato query`, `sfumato losses` and `sfumato explain`."""

from __future__ import annotations

import json

from sfumato.catalog import read_project
from sfumato.cli.asking import asked
from sfumato.cli.options import AnswerOptions, Asking
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.project import open_tables
from sfumato.cli.screen import screen, working
from sfumato.core.mechanism import confidence
from sfumato.release.formats import rendered
from sfumato.session.pricing import price_of

__all__ = ["explain", "run"]


def run(asking: Asking, options: AnswerOptions, *, losses: bool = False) -> None:
    """Ask and release the question, or what it loses; with `dry_run`, show the price alone."""
    confidence(options.level)
    style, output = options.style.value, options.output
    can_write(output, kept(read_project(asking.project)), style=style)
    _, database = open_tables(asking.project, analyst=asking.analyst, free=options.dry_run)
    question = asked(asking, database)
    if losses:
        question = question.losses(epsilon=question.epsilon)
    if options.dry_run:
        price = price_of(question, size=asking.size)
        text = json.dumps({"price": price.record()}) if style == "json" else "\n".join(price.lines())
        write(f"{text}\n".encode(), None, paid=False)
        if price.refusal is not None:
            raise price.refusal
        return
    with working("charging, computing, adding noise"):
        release = question.release(key=options.key)
    write(rendered(release, style, options.level), output)
    if output is not None:
        screen(error=True).print(f"written: {output}")


def explain(asking: Asking, *, as_json: bool) -> None:
    """Explain a question and its price. Free."""
    _, database = open_tables(asking.project, analyst=asking.analyst, free=True)
    question = asked(asking, database)
    price = price_of(question, size=asking.size)
    text = question.explain(size=asking.size)
    if as_json:
        write(f"{json.dumps({'price': price.record(), 'explanation': text})}\n".encode(), None, paid=False)
        return
    write("\n".join([text, "", *price.lines(), ""]).encode(), None, paid=False)
