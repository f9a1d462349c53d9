"""`sfumato ledger ..`: begin it, check it, look at it, and take parts of it elsewhere."""

from __future__ import annotations

import datetime
import io
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import (
    FormatOption,
    LedgerOptions,
    OutputOption,
    Plain,
    PlainOption,
    ProjectOption,
    command,
    group_of,
    style_of,
)
from sfumato.cli.outputs import can_write, kept, write, writing
from sfumato.cli.screen import say, screen, working
from sfumato.errors import InvalidArgument, LedgerError, ProjectRefused, SfumatoError

if TYPE_CHECKING:
    from sfumato.catalog import Project
    from sfumato.ledger import Ledger
    from sfumato.release import Published

__all__ = ["ledger_app"]

ledger_app = group_of("Begin, verify, show and export the ledger.")


@command(ledger_app, "create")
def _create(options: LedgerOptions) -> None:
    """Begin a new, empty ledger. The first question fixes the budget in it, for ever."""
    from sfumato.catalog import is_address, read_project
    from sfumato.ledger import Ledger

    target = read_project(options.project).ledger if options.ledger is None else options.ledger
    there = not is_address(str(target)) and Path(target).exists()
    with nullcontext() if there else Ledger.open(target) as ledger:
        if ledger is None or ledger.units() or ledger.head().sequence > 1:
            raise LedgerError(
                "there is a ledger already",
                code="SF601",
                place="ledger",
                hints=("it goes on; nothing to do",),
            )
        screen().print(f"begun: {ledger.place}\nanchor: {ledger.head()}")


@command(ledger_app, "grant")
def _grant(
    analyst: Annotated[str, Argument(help="The name of an analyst in the project file.")],
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Put the grant that the project file states on record; it replaces an earlier one."""
    from sfumato.catalog import read_project
    from sfumato.cli.project import book_of
    from sfumato.session import propose

    read = read_project(project)
    stated = read.policy.analyst(analyst)
    if stated is None:
        raise read.written.refusal(
            f"the project file has no grant of `{analyst}`",
            ("policy", "analysts"),
            code="SF705",
            hints=("add it: [policy.analysts.<name>] with an epsilon",),
        )
    with book_of(read) as ledger:
        propose(read, ledger)
        ledger.grant(read.unit, analyst, stated.budget)
        screen().print(f"on record: {ledger.grant_balance(read.unit, analyst)}")


@command(ledger_app, "verify")
def _verify(
    *,
    anchor: Annotated[
        str | None, Option("--anchor", help="A head noted before, to find what was cut off or rewritten.")
    ] = None,
    options: LedgerOptions,
    style: PlainOption = Plain.table,
) -> None:
    """Walk the whole chain; find any record that was edited, deleted, moved or put in."""
    from sfumato.cli.project import open_ledger

    with open_ledger(options) as ledger, working("walking the chain"):
        found = ledger.verify(anchor=anchor)
    held = "" if anchor is None else "; the anchor is in it"
    text = f"{found.sequence:,} records, every one in its place{held}\nanchor: {found}"
    say(
        {"records": found.sequence, "anchor": str(found), "against": anchor},
        text,
        as_json=style is Plain.json,
    )


@command(ledger_app, "anchor")
def _anchor(options: LedgerOptions) -> None:
    """Print the head of the chain: keep it where the ledger's keeper cannot write."""
    from sfumato.cli.project import open_ledger

    with open_ledger(options) as ledger:
        screen().print(str(ledger.head()))


@command(ledger_app, "history")
def _history(
    *,
    limit: Annotated[int, Option("--limit", "-n", help="How many to show; 0 for all.")] = 20,
    options: LedgerOptions,
    style: PlainOption = Plain.table,
) -> None:
    """List who asked what, when, what for and at what cost. Texts of questions are for the owner alone."""
    from sfumato.cli.history import charges, lines_of
    from sfumato.cli.project import open_ledger

    if limit < 0:
        raise InvalidArgument("limit must be 0 or more", place="--limit")
    with open_ledger(options) as ledger:
        records = charges(ledger, ledger.newest(limit) if limit else ledger.entries())
    text = "\n".join(lines_of(records)) if records else "nothing was charged yet"
    say(records, text, as_json=style is Plain.json)


@command(ledger_app, "erase")
def _erase(
    numbers: Annotated[list[int] | None, Argument(help="The numbers of charges.")] = None,
    *,
    every: Annotated[bool, Option("--all", help="The texts of all charges.")] = False,
    before: Annotated[
        str | None, Option("--before", help="The texts of charges before a day, such as 2026-01-31.")
    ] = None,
    options: LedgerOptions,
) -> None:
    """Erase texts of questions and their purposes, for good. What was charged stays charged."""
    from sfumato.cli.history import date_of
    from sfumato.cli.project import open_ledger

    if sum((bool(numbers), every, before is not None)) != 1:
        raise InvalidArgument(
            "say which texts: numbers of charges, --before a day, or --all",
            place="erase",
            hints=("`sfumato ledger history` shows the numbers",),
        )
    end = None if before is None else _day(before)
    with open_ledger(options) as ledger:
        wanted = numbers
        if end is not None:
            wanted = [entry.sequence for entry in ledger.entries() if date_of(entry.at) < end]
        count = ledger.erase_query_texts(None if every else wanted)
    screen().print(f"erased: the texts of {count:,} charges; that they were is on record")


def _day(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.combine(datetime.date.fromisoformat(text), datetime.time(), datetime.UTC)
    except ValueError:
        raise InvalidArgument("a day is written 2026-01-31", place="--before") from None


@command(ledger_app, "show")
def _show(
    *,
    number: Annotated[int, Argument(help="The number of the charge that paid for it.")],
    step: Annotated[int | None, Option("--step", help="Of a charge for several looks: which one.")] = None,
    given: FormatOption = None,
    output: OutputOption = None,
    options: LedgerOptions,
) -> None:
    """Show an old answer again, free."""
    from sfumato.cli.project import open_ledger

    style = style_of(given, output).value
    can_write(output, kept(_project(options.project), options.ledger), style=style)
    with open_ledger(options) as ledger:
        release = _released(ledger, number, step)
    write(_rendered(release, style, 0.95), output)


def _rendered(release: Published, style: str, level: float) -> bytes:
    from sfumato.cli.marginals import rendered_marginals
    from sfumato.release.formats import rendered
    from sfumato.workloads.marginal_release import Marginals

    if isinstance(release, Marginals):
        return rendered_marginals(release, style, level=level)
    return rendered(release, style, level)


def _released(ledger: Ledger, number: int, step: int | None = None) -> Published:
    from sfumato.learn.stored import read_stored

    try:
        stored = ledger.release(number, step=step)
    except LedgerError as error:
        if error.code != "SF608":
            raise
        raise LedgerError(
            f"charge {number} has no answer",
            code="SF608",
            sequence=number,
            hints=("`sfumato ledger history` lists the numbers of those that were answered",),
        ) from None
    if not stored:
        raise LedgerError(
            f"charge {number} was answered in steps",
            code="SF608",
            sequence=number,
            hints=("--step 1 shows the first of them",),
        )
    try:
        text = stored.decode()
    except UnicodeDecodeError:
        raise LedgerError(
            f"step {step} of charge {number} is a checkpoint of a training, and no table",
            code="SF608",
            sequence=number,
            hints=("the trained network is what `fit` returns, under the same key",),
        ) from None
    return read_stored(text)


def _project(file: str) -> Project | None:
    """Return the project, None where there is none: a ledger can be looked at by itself."""
    from sfumato.catalog import read_project

    try:
        return read_project(file)
    except ProjectRefused:
        return None


@command(ledger_app, "receipt")
def _receipt(
    receipt: Annotated[str, Argument(help="The number of a charge; or a receipt, a file or -, to check.")],
    options: LedgerOptions,
) -> None:
    """Print the receipt of an answer, or check one that somebody holds against the ledger."""
    from sfumato.cli.project import open_ledger

    with open_ledger(options) as ledger:
        if receipt.isascii() and receipt.isdecimal():
            number = int(receipt) if len(receipt) < 20 else 0  # more digits than any charge has
            stored = _released(ledger, number).receipt
            write(f"{json.dumps(dict(stored), indent=2)}\n".encode(), None, paid=False)
            return
        held = _held(receipt)
        answered = "receipt" in held
        release = _check_receipt(ledger, held["receipt"] if answered else held)
        if answered and not _same_answer(release, held):
            raise LedgerError(
                "the receipt is genuine, but the answer beside it is not the one that the ledger holds",
                code="SF611",
                place=receipt,
                hints=(f"`sfumato ledger show {release.receipt['reservation']}` shows the one it holds",),
            )
    if answered:
        screen().print("the answer is genuine: this ledger signed its receipt, and holds the same answer")
    else:
        screen().print("the receipt is genuine: this ledger signed it, and holds the answer it is for")


def _check_receipt(ledger: Ledger, held: Any) -> Published:
    """Return the stored release that a receipt is for."""
    from sfumato.ledger import verify_receipt

    keys = ledger.public_keys()
    if not isinstance(held, dict) or held.get("public_key") not in keys:
        raise LedgerError("the receipt was signed by a key that this ledger does not have", code="SF611")
    verify_receipt(held, held["public_key"])
    step = int(held["step"].split()[0]) if "step" in held else None
    stored = _released(ledger, int(held["reservation"]), step)
    if dict(stored.receipt) != held:
        raise LedgerError("the ledger holds another receipt for this answer", code="SF611")
    return stored


def _same_answer(stored: Published, held: dict[str, Any]) -> bool:
    """Return whether a file holds this answer: as a command wrote it, or as Python stores it."""
    if held == json.loads(stored.to_json()):
        return True
    try:
        return bool(held == json.loads(_rendered(stored, "json", held["level"])))
    except (KeyError, TypeError, SfumatoError):
        return False


def _held(given: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if given == "-" else Path(given).read_text()
        held = json.loads(text)
    except (OSError, RecursionError, ValueError):
        held = None
    if not isinstance(held, dict):
        raise InvalidArgument(
            "there is no receipt in this",
            place=given,
            hints=("give the number of a charge, or a file that holds a receipt or an answer as JSON",),
        )
    return held


@command(ledger_app, "report")
def _report(
    *,
    html: Annotated[str, Option("--html", help="The file to write: one page that needs no other.")],
    anchor: Annotated[
        str | None, Option("--anchor", help="A head noted before, which must be in it.")
    ] = None,
    questions: Annotated[bool, Option(help="With the texts of questions, for the owner alone.")] = True,
    limit: Annotated[int, Option("--limit", "-n", help="How many charges to list; 0 for all.")] = 1000,
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Write one page to file and to sign: what is protected, the budget, who spent it on what, anchors."""
    from sfumato.catalog import read_project
    from sfumato.cli.ledger_report import page_of
    from sfumato.cli.project import book_of

    if limit < 0:
        raise InvalidArgument("limit must be 0 or more", place="--limit")
    read = read_project(project)
    can_write(html, kept(read), place="--html")
    with book_of(read) as ledger, working("walking the chain"):
        now = datetime.datetime.now(datetime.UTC)
        page = page_of(read, ledger, anchor=anchor, questions=questions, limit=limit, now=now)
    write(page.html().encode(), html, paid=False, place="--html", private=True)
    screen().print(f"written: {html}")


@command(ledger_app, "export")
def _export(
    *,
    output: Annotated[str, Argument(help="The file to write, or - for standard output.")] = "-",
    releases: Annotated[bool, Option(help="With the answers that were given.")] = True,
    questions: Annotated[
        bool, Option("--questions", help="With the texts of questions, which may name people.")
    ] = False,
    options: LedgerOptions,
) -> None:
    """Write every record as JSON Lines that an outsider can check without this program."""
    from sfumato.cli.project import open_ledger

    target = None if output == "-" else output
    with open_ledger(options) as ledger:
        can_write(target, kept(_project(options.project), ledger.path))
        with working("writing the records"), writing(target, paid=False, private=questions) as out:
            text = io.TextIOWrapper(out, encoding="ascii", newline="\n", write_through=True)
            try:
                count = ledger.export(text, releases=releases, questions=questions)
            finally:
                text.detach()
    if target is not None:
        screen(error=True).print(f"written: {output}, {count:,} records")
